/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The short path asks only whether a message is of the kind that came before, on both sides: what that must not skip.
 */
#include "stream/three.h"

#include "endpoint/endpoint.h"

enum { ROUNDS = 40 };

/* a to b and back, alone each time: the short path on both sides. */
static void warm(struct fixture *f)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        TEST_MUST(rnl_send(f->a, 1, NOTE, "12345678", 8) == 0 && rnl_extract(f->b, SIZE_MAX) == 8);
        TEST_MUST(rnl_send(f->b, 0, NOTE, "12345678", 8) == 0 && rnl_extract(f->a, SIZE_MAX) == 8);
    }
    f->in.count = 0;
}

static void the_dead_are_not_sent_to(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s;
    const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = 8};
    warm(f);
    test_hub_kill(&f->h, 1, RNL_DEATH_SIGNAL, 9);
    (void)!rnl_extract(f->a, SIZE_MAX);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "12345678", 8), RNL_ERR_PEER_DEAD);
    assert_int_equal(rnl_begin(f->a, &b, &s), RNL_ERR_PEER_DEAD);
}

/* News is heard although something of another is there at each look. */
static void deaths_are_heard_of_by_who_is_busy(void **state)
{
    (void)state;
    struct test_hub h;
    struct inbox in = {0};
    struct rnl_peer_info info = {.state = RNL_PEER_UP};
    test_hub_open(&h, 3, NULL);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rnl_handler_stream(h.ep[i], NOTE, inbox_stream, &in), NOTE);
    for (unsigned i = 0; i < 1000 && rnl_get_counters(h.ep[1])->deaths == 0; i++) {
        if (i == ROUNDS)
            test_hub_kill(&h, 2, RNL_DEATH_SIGNAL, 9);
        assert_int_equal(rnl_send(h.ep[0], 1, NOTE, test_pattern(i, 0), 40), 0); /* has a line of its own */
        assert_int_equal(rnl_extract(h.ep[1], SIZE_MAX), 40);
        in.count = 0;
    }
    assert_int_equal(rnl_get_counters(h.ep[1])->deaths, 1);
    assert_int_equal(rnl_peer(h.ep[1], 2, &info), 0);
    assert_int_equal(info.state, RNL_PEER_DEAD);
    assert_int_equal(test_hub_close(&h), 0);
    inbox_free(&in);
}

static int sends_on(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    (void)s, (void)peer;
    f->echoes = rnl_send(f->a, 1, NOTE, "behind..", 8);
    return RNL_DONE;
}

/* Its open line has room, but a post waits for another. */
static void what_is_queued_goes_first(void **state)
{
    struct fixture *f = *state;
    struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = 8, .flags = RNL_NO_WAIT};
    const struct rnl_piece piece = {"posted", 6};
    rnl_stream *s;
    int status;
    assert_int_equal(rnl_handler_stream(f->a, OTHER, sends_on, f), OTHER);
    warm(f);
    while ((status = rnl_begin(f->a, &b, &s)) == 0)
        assert_true(rnl_piece(s, "12345678", 8) == 0 && rnl_end(s) == 0);
    assert_int_equal(status, RNL_NO_ROOM);
    b = (struct rnl_begin){.peer = 1, .handler = NOTE, .bound = 6};
    assert_int_equal(rnl_post(f->a, &b, &piece, 1, NULL, NULL), 0);
    assert_int_equal(rnl_get_counters(f->a)->posts_queued, 1);
    f->echoes = 0;
    assert_int_equal(rnl_send(f->c, 0, OTHER, "", 0), 0);
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
    assert_int_equal(f->echoes, RNL_NO_ROOM);
    drain(f->b);
    drain(f->a);
    drain(f->b);
    assert_memory_equal(f->in.buf, "posted", 6); /* the last */
}

static int other(rnl_stream *s, unsigned peer, void *ctx)
{
    uint64_t word;
    (void)peer;
    if (rnl_receive(s, &word, sizeof word) == 0)
        ++*(unsigned *)ctx;
    return RNL_DONE;
}

static void the_handler_is_the_one_of_now(void **state)
{
    struct fixture *f = *state;
    unsigned others = 0;
    warm(f);
    assert_int_equal(rnl_handler_stream(f->b, NOTE, other, &others), NOTE);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "12345678", 8), 0);
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 8);
    assert_int_equal(others, 1);
    assert_int_equal(f->in.count, 0);
}

static void nothing_is_taken_in_by_an_extract_of_nothing(void **state)
{
    struct fixture *f = *state;
    warm(f);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "12345678", 8), 0);
    assert_int_equal(rnl_extract(f->b, 0), 0);
    assert_int_equal(f->in.count, 0);
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 8);
}

/* With no message read yet, and for no handler: the first header must not pass for one of a kind that was checked. */
static void an_empty_message_for_handler_0_waits_for_it(void **state)
{
    (void)state;
    struct test_hub h;
    struct inbox in = {0};
    test_hub_open(&h, 2, NULL);
    assert_int_equal(rnl_send(h.ep[0], 1, 0, NULL, 0), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(rnl_extract(h.ep[1], SIZE_MAX), 0);
    assert_int_equal(rnl_get_counters(h.ep[1])->missing_handler, 1);
    assert_int_equal(rnl_handler_stream(h.ep[1], 0, inbox_stream, &in), 0);
    assert_int_equal(rnl_extract(h.ep[1], SIZE_MAX), 0);
    assert_int_equal(in.count, 1);
    assert_int_equal(test_hub_close(&h), 0);
    inbox_free(&in);
}

/* The lone peer is polled with nothing else looked at, unless a message of it waits for a handler, or an answer may
 * come; and again once that is over. */
static void a_lone_peer_is_quick_while_nothing_is_odd(void **state)
{
    (void)state;
    enum { LATE = 7 };
    struct test_hub h;
    struct inbox in = {0};
    rnl_stream *s;
    const struct rnl_begin ask = {.peer = 0, .handler = NOTE, .bound = 8, .answer = 64};
    test_hub_open(&h, 2, NULL);
    rnl_endpoint *ep = h.ep[1];
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rnl_handler_stream(h.ep[i], NOTE, inbox_stream, &in), NOTE);
    for (unsigned i = 0; i < ROUNDS; i++)
        assert_true(rnl_send(h.ep[0], 1, NOTE, "12345678", 8) == 0 && rnl_extract(ep, SIZE_MAX) == 8);
    assert_non_null(ep->only);
    assert_int_equal(rnl_send(h.ep[0], 1, LATE, "12345678", 8), 0);
    assert_int_equal(rnl_extract(ep, SIZE_MAX), 0);
    assert_null(ep->only);
    assert_null(ep->alone);
    assert_int_equal(rnl_handler_stream(ep, LATE, inbox_stream, &in), LATE);
    assert_non_null(ep->only);
    assert_int_equal(rnl_extract(ep, SIZE_MAX), 8);
    assert_int_equal(rnl_begin(ep, &ask, &s), 0);
    assert_null(ep->only);
    assert_non_null(ep->alone);
    assert_int_equal(rnl_piece(s, "12345678", 8), 0);
    assert_int_equal(rnl_end(s), 0);
    (void)!rnl_extract(h.ep[0], SIZE_MAX);
    (void)!rnl_extract(ep, SIZE_MAX);
    assert_int_equal(test_hub_close(&h), 0);
    inbox_free(&in);
}

/* Requests like the one before are not looked at again, but their handler is the one of now, and so is their kind. */
static int takes_and_answers(rnl_stream *s, unsigned peer, void *ctx)
{
    unsigned char bytes[8];
    (void)peer;
    ++*(unsigned *)ctx;
    assert_int_equal(rnl_receive(s, bytes, sizeof bytes), 0);
    return rnl_reply(s, OTHER, bytes, sizeof bytes) == 0 ? RNL_DONE : RNL_QUIT;
}
static int refuses(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer;
    ++*(unsigned *)ctx;
    return RNL_REFUSE(3);
}

static void requests_alone_are_what_they_are(void **state)
{
    (void)state;
    enum { THEN = ROUNDS / 2 + 2 }; /* after one of its kind */
    struct test_hub h;
    struct inbox in = {0};
    unsigned taken = 0, refused = 0;
    const struct rnl_begin ask = {.peer = 1, .handler = NOTE, .bound = 8, .answer = 64};
    test_hub_open(&h, 2, NULL);
    assert_int_equal(rnl_handler_stream(h.ep[1], NOTE, takes_and_answers, &taken), NOTE);
    assert_int_equal(rnl_handler_stream(h.ep[0], OTHER, inbox_stream, &in), OTHER);
    for (unsigned i = 0; i < ROUNDS; i++) {
        rnl_stream *s;
        if (i == THEN) /* comes back, each of them */
            assert_int_equal(rnl_handler_stream(h.ep[1], NOTE, refuses, &refused), NOTE);
        assert_int_equal(rnl_begin(h.ep[0], &ask, &s), 0);
        assert_int_equal(rnl_piece(s, "12345678", 8), 0);
        assert_int_equal(rnl_end(s), 0);
        if (i % 4 == 3) { /* of the same handler, but nothing to answer */
            assert_int_equal(rnl_extract(h.ep[1], SIZE_MAX), 8);
            assert_int_equal(rnl_handler_stream(h.ep[1], NOTE + 1, inbox_stream, &in), NOTE + 1);
            assert_int_equal(rnl_send(h.ep[0], 1, NOTE + 1, "12345678", 8), 0);
        }
        assert_int_equal(rnl_extract(h.ep[1], SIZE_MAX), 8);
        (void)!rnl_extract(h.ep[0], SIZE_MAX);
    }
    assert_int_equal(taken, THEN);
    assert_int_equal(refused, ROUNDS - THEN);
    assert_int_equal(rnl_get_counters(h.ep[0])->refused_received, ROUNDS - THEN);
    assert_int_equal(in.count, THEN + ROUNDS / 4);
    assert_int_equal(test_hub_close(&h), 0);
    inbox_free(&in);
}

/* In three calls, so that 512 bytes go the way of medium.c. */
static int send_long(rnl_endpoint *ep, size_t n)
{
    const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = n};
    rnl_stream *s;
    int status = rnl_begin(ep, &b, &s);
    if (status == 0)
        status = rnl_piece(s, test_pattern(n, 0), n);
    return status == 0 ? rnl_end(s) : status;
}

/* Messages that begin a line after a burst, and are given up or flushed, count as what they became. */
static void what_was_sent_is_counted_once(void **state)
{
    struct fixture *f = *state;
    const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = 8};
    rnl_stream *s;
    warm(f);
    (void)!rnl_wait(f->a, 0);
    uint64_t before = rnl_get_counters(f->a)->messages_sent, sent = 0;
    for (unsigned burst = 1; burst <= 9; burst++) {
        for (unsigned i = 0; i < burst; i++, sent++)
            assert_int_equal(rnl_send(f->a, 1, NOTE, "12345678", 8), 0);
        drain(f->b);
        assert_int_equal(rnl_send(f->b, 0, NOTE, "12345678", 8), 0); /* so that a knows what was read */
        drain(f->a);
        for (unsigned i = 0; i < burst; i++, sent++) /* with room known, alone in lines that others follow */
            assert_int_equal(send_long(f->a, i % 4 > 1 ? 512 : 8), 0);
        drain(f->b);
        assert_int_equal(rnl_send(f->b, 0, NOTE, "12345678", 8), 0);
        drain(f->a);
        assert_int_equal(rnl_begin(f->a, &b, &s), 0);
        assert_int_equal(rnl_piece(s, "12345678", 8), 0);
        if (burst % 2)
            assert_int_equal(rnl_abort(s), 0);
        else
            assert_int_equal(rnl_end(s), 0);
        sent += burst % 2 == 0;
        assert_int_equal(rnl_wait(f->a, 0), RNL_TIMED_OUT);
        assert_int_equal(rnl_get_counters(f->a)->messages_sent, before + sent);
    }
    drain(f->b);
}

/* A message for which a line would have been begun is given up: the line before it is as full as it was, and counts as
 * it did. */
static void what_was_given_up_begins_no_line(void **state)
{
    struct fixture *f = *state;
    const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = 8};
    rnl_stream *s;
    warm(f);
    (void)!rnl_wait(f->a, 0);
    uint64_t before = rnl_get_counters(f->a)->messages_sent;
    for (uint64_t i = 0; i < RNL_ITEMS_MAX + 1; i++) {
        if (i == RNL_ITEMS_MAX) {
            assert_int_equal(rnl_begin(f->a, &b, &s), 0);
            assert_int_equal(rnl_abort(s), 0);
        }
        assert_int_equal(rnl_send(f->a, 1, NOTE, test_pattern((unsigned)i, 0), 8), 0);
        assert_int_equal(rnl_tx_valid(&f->a->conn[1]->pair.tx[0]), 0);
    }
    assert_int_equal(rnl_wait(f->a, 0), RNL_TIMED_OUT);
    assert_int_equal(rnl_get_counters(f->a)->messages_sent, before + RNL_ITEMS_MAX + 1);
    drain(f->b);
    assert_int_equal(f->in.count, RNL_ITEMS_MAX + 1);
    assert_memory_equal(f->in.buf, test_pattern(RNL_ITEMS_MAX, 0), 8);
}

/* Some hundred bytes go by a line to which nothing is ever appended: what appending needs to know is not stored for
 * each. Such stores count in streams of these messages. */
static void what_only_appending_needs_is_left_by_medium_messages(void **state)
{
    struct fixture *f = *state;
    const struct rnl_tx *t = &f->a->conn[1]->pair.tx[0];
    warm(f);
    for (unsigned i = 0; i < ROUNDS; i++) {
        const unsigned char *end = t->end;
        uint32_t more = t->more, counted = t->counted;
        uint64_t line = rnl_tx_line(t);
        assert_int_equal(send_long(f->a, 512), 0);
        assert_true(rnl_tx_line(t) > line && !(t->pos & 7));
        if (i > 0) { /* what comes first may find no memory for bytes yet */
            assert_ptr_equal(t->end, end);
            assert_int_equal(t->more, more);
            assert_in_range(t->counted - counted, 0, 1);
        }
        assert_int_equal(rnl_extract(f->b, SIZE_MAX), 512);
        assert_int_equal(rnl_send(f->b, 0, NOTE, "12345678", 8), 0); /* so that a knows what was read */
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 8);
    }
}

/* Kinds that alternate, some of them through streams: each arrives as what it is. */
static void kinds_may_alternate(void **state)
{
    struct fixture *f = *state;
    struct test_random r = test_random_of(7, 7);
    for (unsigned i = 0; i < 2000; i++) {
        size_t n = test_random_below(&r, 3) * 8;
        const unsigned char *bytes = test_pattern(i, 0);
        if (test_random_below(&r, 2)) {
            const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = n};
            rnl_stream *s;
            assert_int_equal(rnl_begin(f->a, &b, &s), 0);
            assert_int_equal(rnl_piece(s, bytes, n), 0);
            assert_int_equal(rnl_end(s), 0);
        } else {
            assert_int_equal(rnl_send(f->a, 1, NOTE, bytes, n), 0);
        }
        if (test_random_below(&r, 3) == 0)
            assert_int_equal(rnl_send(f->b, 0, NOTE, "", 0), 0);
        if (test_random_below(&r, 2)) {
            drain(f->b);
            assert_int_equal(f->in.got[f->in.count - 1].n, n);
            assert_memory_equal(f->in.buf, bytes, n);
            f->in.count = 0;
        }
        drain(f->a);
    }
    drain(f->b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_dead_are_not_sent_to),
        cmocka_unit_test(deaths_are_heard_of_by_who_is_busy),
        TEST(what_is_queued_goes_first),
        TEST(the_handler_is_the_one_of_now),
        TEST(nothing_is_taken_in_by_an_extract_of_nothing),
        cmocka_unit_test(an_empty_message_for_handler_0_waits_for_it),
        cmocka_unit_test(a_lone_peer_is_quick_while_nothing_is_odd),
        cmocka_unit_test(requests_alone_are_what_they_are),
        TEST(what_was_sent_is_counted_once),
        TEST(what_was_given_up_begins_no_line),
        TEST(what_only_appending_needs_is_left_by_medium_messages),
        TEST(kinds_may_alternate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
