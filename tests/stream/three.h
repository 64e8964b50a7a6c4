/* SPDX-License-Identifier: BSD-3-Clause
 *
 * three.h - three endpoints that know each other and note what they get, driven by one thread. */
#ifndef RNL_TESTS_STREAM_THREE_H
#define RNL_TESTS_STREAM_THREE_H

#include "stream/inbox.h"

enum { NOTE = 1, OTHER = 2 };

struct fixture {
    struct test_hub h;
    rnl_endpoint *a, *b, *c;
    struct inbox in; /* of b and c */
    int echoes;
};

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    test_hub_open(&f->h, 3, NULL);
    f->a = f->h.ep[0];
    f->b = f->h.ep[1];
    f->c = f->h.ep[2];
    for (unsigned i = 0; i < 3; i++)
        TEST_MUST(rnl_handler_stream(f->h.ep[i], NOTE, inbox_stream, &f->in) == NOTE);
    acquaint(&f->h);
    TEST_MUST(f->in.count == 9);
    f->in.count = f->in.started = 0;
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    int status = test_hub_close(&f->h);
    inbox_free(&f->in);
    free(f);
    return status;
}

#endif
