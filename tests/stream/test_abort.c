/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that are given up: nobody gets half of one for a whole one, whatever of it was visible, and nothing stays
 * open, reserved or collected behind it. */
#include "stream/inbox.h"

#include "stream/stream.h"

enum { NOTE = 1, WHOLE = 2, PLACE = 3, HALF = 4, CARDS = 20 };

struct fixture {
    struct test_hub h;
    rnl_endpoint *a, *b;
    struct inbox in;
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
    return RNL_REFUSE(1);
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

static int set_up_with(void **state, const struct rnl_options *opt)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    test_hub_open(&f->h, 2, opt);
    f->a = f->h.ep[0], f->b = f->h.ep[1];
    for (unsigned i = 0; i < 2; i++) {
        TEST_MUST(rnl_handler_stream(f->h.ep[i], NOTE, inbox_stream, &f->in) == NOTE);
        TEST_MUST(rnl_handler_whole(f->h.ep[i], WHOLE, inbox_whole, &f->in, 0) == WHOLE);
        TEST_MUST(rnl_handler_whole(f->h.ep[i], PLACE, inbox_whole, &f->in, RNL_IN_PLACE) == PLACE);
        TEST_MUST(rnl_handler_stream(f->h.ep[i], HALF, half, f) == HALF);
    }
    rnl_on_refused(f->a, on_refused, f);
    acquaint(&f->h);
    f->in.count = f->in.started = 0;
    *state = f;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, NULL);
}

static int set_up_small(void **state) /* the smallest budget, and one stack */
{
    const struct rnl_options opt = {.receive_budget = 2 * 128 * 64, .stacks = 1};
    return set_up_with(state, &opt);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int status = test_hub_close(&f->h);
    inbox_free(&f->in);
    free(f);
    return status;
}

static rnl_stream *begin(struct fixture *f, unsigned handler, size_t bound, size_t answer)
{
    const struct rnl_begin b = {.peer = 1, .handler = handler, .bound = bound, .answer = answer};
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

static void what_was_not_visible_never_was(void **state)
{
    static const size_t bounds[] = {0, 8, 56, 57, 5000, 8000, 262144, 524288, 3 << 20};
    struct fixture *f = *state;
    for (unsigned round = 0; round < 3000; round++) {
        size_t bound = bounds[round % (sizeof bounds / sizeof *bounds)];
        const struct rnl_begin b = {.peer = 1, .handler = HALF, .bound = bound, .answer = round % 2 ? 100 : 0};
        rnl_stream *s;
        assert_int_equal(rnl_begin(f->a, &b, &s), 0); /* what was reserved is there again */
        assert_int_equal(rnl_piece(s, test_pattern(1, 0), bound < 1000 ? bound : 1000), 0);
        assert_int_equal(rnl_abort(s), 0);
        if (round % 100 == 0)
            arrives(f);
    }
    assert_int_equal(f->half_runs, 0);
    assert_int_equal(rnl_get_counters(f->b)->aborted_received, 0);
    assert_int_equal(rnl_get_counters(f->a)->aborted_sent, 3000);
}

static void a_handler_that_waits_is_told(void **state)
{
    static const size_t bounds[] = {50, 1000, 40000, 200000, 3 << 20};
    struct fixture *f = *state;
    for (size_t i = 0; i < 2 * sizeof bounds / sizeof *bounds; i++) {
        size_t bound = bounds[i / 2], half_of_it = bound < 600000 ? bound / 2 : 300000;
        rnl_stream *s = begin(f, HALF, bound, i % 2 ? 10 : 0);
        f->half_runs = f->half_status = 0;
        assert_int_equal(rnl_piece(s, test_pattern(1, 0), half_of_it), 0);
        assert_int_equal(rnl_flush(f->a), 0);
        drain(f->b);
        assert_int_equal(f->half_runs, 1);
        assert_int_equal(f->half_status, 0);
        assert_int_equal(rnl_piece(s, test_pattern(1, 0), 1), 0); /* not visible yet */
        assert_int_equal(rnl_abort(s), 0);
        drain(f->b);
        drain(f->b);
        assert_int_equal(f->half_status, RNL_ERR_ABORTED);
        SAYS(RNL_ERR_ABORTED, "rank 0", "gave");
        arrives(f);
    }
    drain(f->a);
    assert_int_equal(f->refused, 0); /* who gave it up does not get it back */
    assert_int_equal(rnl_get_counters(f->b)->aborted_received, 10);
}

static void a_whole_handler_never_runs(void **state)
{
    static const size_t bounds[] = {50, 1000, 40000, 200000, 3 << 20};
    struct fixture *f = *state;
    for (size_t i = 0; i < 2 * sizeof bounds / sizeof *bounds; i++) {
        size_t bound = bounds[i / 2], half_of_it = bound < 600000 ? bound / 2 : 300000;
        rnl_stream *s = begin(f, i % 2 ? WHOLE : PLACE, bound, 0);
        assert_int_equal(rnl_piece(s, test_pattern(1, 0), half_of_it), 0);
        assert_int_equal(rnl_flush(f->a), 0);
        drain(f->b);
        assert_int_equal(rnl_abort(s), 0);
        drain(f->b);
        arrives(f);
        assert_int_equal(f->in.count, i + 1);
    }
}

static void a_message_that_waits_for_a_stack_is_dropped(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s = begin(f, HALF, 1000, 0), *t;
    assert_int_equal(open_stream(f->b, 1, HALF, 1000, &t), 0); /* to itself: takes the only stack */
    assert_int_equal(rnl_piece(t, test_pattern(1, 0), 500), 0);
    drain(f->b);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 500), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    drain(f->b);
    assert_int_equal(f->half_runs, 1);
    assert_int_equal(rnl_abort(s), 0);
    drain(f->b);
    assert_int_equal(rnl_end(t), 0);
    drain(f->b);
    assert_int_equal(f->half_runs, 1);
    assert_int_equal(f->half_status, RNL_ERR_PAST_END);
    arrives(f);
}

/* A message whose chunks have used up the last line, as a piece leaves it that cannot go on. */
static rnl_stream *out_of_lines(struct fixture *f)
{
    const struct rnl_tx *t = &f->a->peer[1].conn->pair.tx[0];
    for (unsigned i = 0; i < CARDS; i++) /* of unlike lengths: a line each */
        assert_int_equal(rnl_send(f->a, 1, NOTE, "12", 1 + i % 2), 0);
    rnl_stream *s = begin(f, HALF, 3 << 20, 0);
    while (rnl_stream_put(s, test_pattern(1, 0), RNL_CHUNK) == RNL_CHUNK)
        ;
    assert_true(RNL_LINE_START(t->pos) >= t->stop);
    return s;
}

/* All lines are used: the word that it is given up has to wait, and nobody waits for it. */
static void without_a_line_it_is_said_later(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s = out_of_lines(f), *other;
    assert_int_equal(rnl_abort(s), 0);
    assert_int_equal(open_stream(f->a, 1, NOTE, 8, &other), RNL_NO_ROOM); /* not RNL_BUSY: the program has none open */
    const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = 6};
    const struct rnl_piece piece = {"behind", 6};
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
    assert_int_equal(rnl_abort(out_of_lines(f)), 0);
    assert_int_equal(test_hub_close(&f->h), 0);
    assert_int_equal(f->half_status, RNL_ERR_ABORTED);
}

static void to_the_dead_or_when_it_is_not_open(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s = begin(f, NOTE, 3 << 20, 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 100000), 0);
    test_hub_kill(&f->h, 1, RNL_DEATH_SIGNAL, 9);
    assert_true(rnl_extract(f->a, 0) >= 0);
    assert_int_equal(rnl_abort(s), 0);
    assert_int_equal(rnl_abort(s), RNL_ERR_ARG);
    SAYS(RNL_ERR_ARG, "not open");
    assert_int_equal(rnl_send(f->a, 0, NOTE, "x", 1), 0);
    drain(f->a);
}

/* ---- what fails half-way ---- */

struct continued {
    rnl_stream *s;
    int status, ended;
};

static int continues(rnl_stream *s, unsigned peer, void *ctx)
{
    struct continued *c = ctx;
    (void)s, (void)peer;
    c->status = rnl_piece(c->s, test_pattern(1, 0), 3 << 20);
    c->ended = rnl_end(c->s);
    return RNL_DONE;
}

static void after_half_a_piece_the_end_gives_up(void **state)
{
    struct fixture *f = *state;
    struct continued c = {.s = begin(f, NOTE, 3 << 20, 0)};
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

/* ---- a handler that is dropped ---- */

enum { RELAY = 5 };
struct relay {
    rnl_endpoint *ep;
    size_t bound;
};

/* Passes a message on to rank 2 while it comes. */
static int relay(rnl_stream *s, unsigned peer, void *ctx)
{
    struct relay *r = ctx;
    const struct rnl_begin b = {.peer = 2, .handler = HALF, .bound = r->bound};
    rnl_stream *out;
    char byte;
    (void)peer;
    TEST_MUST(rnl_begin(r->ep, &b, &out) == 0);
    while (rnl_receive(s, &byte, 1) == 0)
        TEST_MUST(rnl_piece(out, &byte, 1) == 0);
    TEST_MUST(rnl_end(out) == 0);
    return RNL_DONE;
}

static void what_a_dropped_handler_had_open_is_given_up(void **state)
{
    static const size_t bounds[] = {8, 56, 1000, 200000};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof bounds / sizeof *bounds; i++) {
        struct fixture f = {.done = 0};
        struct relay r = {.bound = bounds[i / 2]};
        const struct rnl_handler h = {.stream = relay, .ctx = &r, .flags = RNL_HANDLER_DROP};
        rnl_stream *s;
        test_hub_open(&f.h, 3, NULL);
        f.a = f.h.ep[0], f.b = f.h.ep[2], r.ep = f.h.ep[1];
        assert_int_equal(rnl_stream_register(r.ep, RELAY, &h), RELAY);
        for (unsigned k = 0; k < 3; k++) {
            assert_int_equal(rnl_handler_stream(f.h.ep[k], NOTE, inbox_stream, &f.in), NOTE);
            assert_int_equal(rnl_handler_stream(f.h.ep[k], HALF, half, &f), HALF);
        }
        acquaint(&f.h);
        assert_int_equal(open_stream(f.a, 1, RELAY, 1000, &s), 0);
        assert_int_equal(rnl_piece(s, test_pattern(1, 0), 4), 0);
        assert_int_equal(rnl_flush(f.a), 0);
        drain(r.ep);
        if (i % 2) { /* rank 2 has seen what came through before, or will */
            drain(r.ep);
            drain(f.b);
            assert_int_equal(f.half_runs, 1);
        }
        test_hub_kill(&f.h, 0, RNL_DEATH_SIGNAL, 9);
        for (unsigned k = 0; k < 3; k++) {
            drain(r.ep);
            drain(f.b);
        }
        assert_int_equal(rnl_get_counters(r.ep)->stacks_in_use, 0);
        assert_int_equal(f.half_status, RNL_ERR_ABORTED);
        assert_int_equal(rnl_get_counters(f.b)->stacks_in_use, 0);
        unsigned before = f.in.count;
        assert_int_equal(rnl_send(r.ep, 2, NOTE, "free", 4), 0); /* and not busy for ever */
        drain(f.b);
        assert_int_equal(f.in.count, before + 1);
        assert_int_equal(test_hub_close(&f.h), 0);
        inbox_free(&f.in);
    }
}

/* What a handler leaves open when it returns is the program's. */
static int leaves_open(rnl_stream *s, unsigned peer, void *ctx)
{
    rnl_stream **out = ctx;
    char buf[200];
    const struct rnl_begin b = {.peer = 0, .handler = NOTE, .bound = 100};
    (void)peer;
    TEST_MUST(rnl_begin(s->ep, &b, out) == 0);
    TEST_MUST(rnl_receive(s, buf, 200) == 0);
    return RNL_DONE;
}

static void what_a_handler_left_open_is_the_programs(void **state)
{
    struct fixture *f = *state;
    rnl_stream *out = NULL, *s = begin(f, NOTE, 200, 0);
    const struct rnl_handler h = {.stream = leaves_open, .ctx = &out, .flags = RNL_HANDLER_DROP};
    assert_int_equal(rnl_stream_register(f->b, NOTE, &h), NOTE);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rnl_piece(s, test_pattern(1, 0), 100), 0);
        assert_int_equal(rnl_flush(f->a), 0);
        drain(f->b);
    }
    assert_int_equal(rnl_end(s), 0);
    drain(f->b);
    assert_int_equal(rnl_get_counters(f->b)->stacks_in_use, 0);
    assert_null(out->owner);
    assert_int_equal(rnl_piece(out, "late", 4), 0);
    assert_int_equal(rnl_end(out), 0);
    drain(f->a);
    assert_int_equal(f->in.count, 1);
}

#define TEST(f)       cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define TEST_SMALL(f) cmocka_unit_test_setup_teardown(f, set_up_small, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_not_visible_never_was),
        TEST_SMALL(what_was_not_visible_never_was),
        TEST(a_handler_that_waits_is_told),
        TEST(a_whole_handler_never_runs),
        TEST_SMALL(a_message_that_waits_for_a_stack_is_dropped),
        TEST(without_a_line_it_is_said_later),
        TEST(close_waits_until_it_is_said),
        TEST(to_the_dead_or_when_it_is_not_open),
        TEST(after_half_a_piece_the_end_gives_up),
        cmocka_unit_test(what_a_dropped_handler_had_open_is_given_up),
        TEST(what_a_handler_left_open_is_the_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
