/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that are given up: nobody gets half of one for a whole one, whatever of it was visible, and nothing stays
 * open, reserved or collected behind it. */
#include "stream/inbox.h"

#include <stdbool.h>

enum { NOTE = 1, WHOLE = 2, PLACE = 3, HALF = 4, CARDS = 20 };

struct fixture {
    INBOX_FIXTURE;
    int half_runs, half_status, refused, done;
};

/* Notes what it is told when the rest does not come. */
static int half(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    unsigned char byte;
    (void)peer;
    f->half_runs++;
    while ((f->half_status = rnl_receive(s, &byte, 1)) == 0)
        ;
    TEST_MUST(rnl_receive(s, &byte, 1) == f->half_status); /* and for ever */
    if (f->half_status == RNL_ERR_ABORTED) {
        rnl_kept *kept;
        TEST_MUST(rnl_reply(s, NOTE, "", 0) < 0);
        TEST_MUST(rnl_keep(s, &kept) == RNL_ERR_ABORTED);
    }
    return RNL_REJECT(1);
}

static void on_refused(void *arg, unsigned peer, unsigned handler, unsigned reason, const void *buf, size_t n)
{
    (void)peer, (void)handler, (void)reason, (void)buf, (void)n;
    ((struct fixture *)arg)->refused++;
}

static void done(void *arg, int status)
{
    TEST_MUST(status == 0);
    ((struct fixture *)arg)->done++;
}

static void handlers(rnl_endpoint *ep, void *fixture)
{
    struct fixture *f = fixture;
    TEST_MUST(rnl_handler_stream(ep, NOTE, inbox_stream, &f->in) == NOTE);
    TEST_MUST(rnl_handler_whole(ep, WHOLE, inbox_whole, &f->in, 0) == WHOLE);
    TEST_MUST(rnl_handler_whole(ep, PLACE, inbox_whole, &f->in, RNL_IN_PLACE) == PLACE);
    TEST_MUST(rnl_handler_stream(ep, HALF, half, f) == HALF);
}

static int set_up_with(void **state, const struct rnl_options *opt)
{
    (void)inbox_open(state, sizeof(struct fixture), 2, opt, handlers);
    struct fixture *f = *state;
    rnl_on_rejected(f->a, on_refused, f);
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, NULL);
}

#define tear_down inbox_close

static rnl_stream *begin(struct fixture *f, unsigned handler, size_t bound, size_t answer)
{
    const struct rnl_message b = {.peer = 1, .handler = handler, .bound = bound, .answer = answer};
    rnl_stream *s;
    assert_int_equal(rnl_begin(f->a, &b, &s), 0);
    return s;
}

static void arrives(struct fixture *f)
{
    unsigned before = f->in.count;
    assert_int_equal(rnl_send(f->a, 1, NOTE, "next", 4), 0);
    drain(f->b);
    assert_int_equal(f->in.count, before + 1);
    assert_memory_equal(f->in.buf, "next", 4);
    assert_int_equal(rnl_get_counters(f->b)->stacks_in_use, 0);
}

struct continued {
    rnl_stream *s;
    bool ends;
    int status, ended;
};

static int continues(rnl_stream *s, unsigned peer, void *ctx)
{
    struct continued *c = ctx;
    (void)s, (void)peer;
    c->status = rnl_piece(c->s, test_pattern(1, 0), 3 << 20);
    if (c->ends)
        c->ended = rnl_end(c->s);
    return RNL_DONE;
}

/* A message whose chunks have used up the last cell: a handler composes it, which cannot wait for more. */
static rnl_stream *out_of_cells(struct fixture *f)
{
    struct continued c = {.s = NULL};
    for (unsigned i = 0; i < CARDS; i++) /* of unlike lengths: a cell each */
        assert_int_equal(rnl_send(f->a, 1, NOTE, "12", 1 + i % 2), 0);
    c.s = begin(f, HALF, 3 << 20, 0);
    assert_int_equal(rnl_handler_stream(f->a, HALF, continues, &c), HALF);
    assert_int_equal(rnl_send(f->b, 0, HALF, "go", 2), 0);
    drain(f->a);
    assert_int_equal(c.status, RNL_ERR_CONTEXT);
    return c.s;
}

/* All cells are used: the announcement of the abort has to wait, and nobody waits for it. */
static void without_a_cell_it_is_announced_later(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s = out_of_cells(f), *other;
    assert_int_equal(rnl_abort(s), 0);
    assert_int_equal(open_stream(f->a, 1, NOTE, 8, &other), RNL_NO_ROOM); /* not RNL_BUSY: the program has none open */
    const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 6};
    const struct rnl_buffer piece = {"behind", 6};
    assert_int_equal(rnl_post(f->a, &b, &piece, 1, done, f), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    for (unsigned i = 0; i < 4; i++) {
        drain(f->a);
        drain(f->b);
    }
    assert_int_equal(f->half_status, RNL_ERR_ABORTED);
    assert_int_equal(f->in.count, CARDS + 1);
    assert_int_equal(f->in.got[CARDS].n, 6);
    assert_int_equal(f->done, 1);
    arrives(f);
}

static void close_waits_until_it_is_said(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(rnl_abort(out_of_cells(f)), 0);
    assert_int_equal(test_hub_close(&f->h), 0);
    assert_int_equal(f->half_status, RNL_ERR_ABORTED);
}

/* ---- what fails half-way ---- */

static void after_half_a_piece_the_end_gives_up(void **state)
{
    struct fixture *f = *state;
    struct continued c = {.s = begin(f, NOTE, 3 << 20, 0), .ends = true};
    assert_int_equal(rnl_handler_stream(f->a, HALF, continues, &c), HALF);
    assert_int_equal(rnl_send(f->b, 0, HALF, "go", 2), 0);
    drain(f->a);
    assert_int_equal(c.status, RNL_ERR_CONTEXT); /* it cannot wait there, and a part is in */
    assert_int_equal(c.ended, RNL_ERR_ABORTED);
    assert_int_equal(rnl_handler_stream(f->b, NOTE, half, f), NOTE);
    for (unsigned i = 0; i < 3; i++) {
        drain(f->b);
        drain(f->a);
    }
    assert_int_equal(f->half_status, RNL_ERR_ABORTED);
    assert_int_equal(rnl_handler_stream(f->b, NOTE, inbox_stream, &f->in), NOTE);
    arrives(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_cell_it_is_announced_later),
        TEST(close_waits_until_it_is_said),
        TEST(after_half_a_piece_the_end_gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
