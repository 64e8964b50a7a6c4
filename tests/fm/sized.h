/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sized.h - FM 2.x as a job of one, for its tests: messages that begin with their length, and a handler that notes the
 * last one. */
#ifndef RNL_TESTS_FM_SIZED_H
#define RNL_TESTS_FM_SIZED_H

#include "fm/told.h"
#include "runnel/fm.h"
#include "runnel/runnel.h"
#include "support/must.h"
#include "support/random.h"

#include <stdlib.h>

static inline int set_up(void **state)
{
    (void)state;
    unsetenv("RUNNEL_FD");
    memset(&told, 0, sizeof told);
    FM_set_parameter(FM_ERROR_HANDLER, note_error);
    FM_initialize();
    return told.count;
}

static inline int tear_down(void **state)
{
    (void)state;
    told.count = 0;
    FM_finalize();
    return told.count;
}

static struct {
    int count, started, quit;
    size_t piece, n; /* of the last message */
    unsigned sender;
    unsigned char buf[1 << 20];
} in;

/* Messages begin with their length. */
static inline int sized(FM_stream *s, unsigned sender)
{
    uint32_t n;
    in.started++;
    FM_receive(&n, s, 4);
    TEST_MUST(n <= sizeof in.buf);
    memcpy(in.buf, &n, 4);
    for (size_t at = 4; at < n;) {
        size_t want = in.piece && in.piece < n - at ? in.piece : n - at;
        FM_receive(in.buf + at, s, want);
        at += want;
    }
    in.n = n;
    in.sender = sender;
    in.count++;
    return in.quit ? FM_QUIT : FM_CONTINUE;
}

static inline void send_sized(unsigned long handler, uint32_t n, size_t piece, size_t bound)
{
    FM_stream *s = FM_begin_message(FM_nodeid, bound, handler);
    TEST_MUST(s != NULL);
    FM_send_piece(s, &n, 4);
    for (size_t at = 4; at < n; at += piece)
        FM_send_piece(s, test_pattern(n, at), piece < n - at ? piece : n - at);
    FM_end_message(s);
}

static inline void clear(void)
{
    in.count = in.started = in.quit = 0;
    in.piece = 0;
}

#endif
