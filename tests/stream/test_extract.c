/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Taking in: what runnel.h says of rnl_extract, rnl_receive and rnl_peek. */
#include "stream/three.h"

#include <stdlib.h>

/* ---- receiving ---- */

static int greedy(rnl_stream *s, unsigned peer, void *ctx)
{
    char *buf = ctx;
    const void *view = NULL;
    (void)peer;
    TEST_MUST(rnl_peek(s, &view) == 10 && memcmp(view, "0123456789", 10) == 0);
    TEST_MUST(rnl_receive(s, buf, 11) == RNL_ERR_PAST_END);
    TEST_MUST(buf[0] == 'x' && buf[10] == 'x'); /* nothing copied */
    TEST_MUST(rnl_receive(s, buf, SIZE_MAX) == RNL_ERR_PAST_END);
    TEST_MUST(rnl_receive(s, buf, 4) == 0);
    TEST_MUST(rnl_peek(s, &view) == 6 && memcmp(view, "456789", 6) == 0);
    TEST_MUST(rnl_receive(s, buf, 7) == RNL_ERR_PAST_END);
    TEST_MUST(rnl_receive(s, buf + 4, 6) == 0);
    TEST_MUST(rnl_peek(s, NULL) == 0);
    TEST_MUST(rnl_receive(s, buf, 0) == 0);
    TEST_MUST(rnl_receive(s, buf, 1) == RNL_ERR_PAST_END);
    return RNL_DONE;
}

static void receiving_past_the_end_copies_nothing(void **state)
{
    struct fixture *f = *state;
    char buf[16], bound[100] = "0123456789";
    rnl_stream *s;
    assert_int_equal(rnl_handler_stream(f->b, OTHER, greedy, buf), OTHER);
    for (unsigned how = 0; how < 3; how++) {
        memset(buf, 'x', sizeof buf);
        if (how == 0)
            assert_int_equal(rnl_send(f->a, 1, OTHER, bound, 10), 0);
        else if (how == 1)
            assert_int_equal(post_card(f->a, 1, OTHER, bound, 10), 0);
        else {
            assert_int_equal(open_stream(f->a, 1, OTHER, sizeof bound, &s), 0);
            assert_int_equal(rnl_piece(s, bound, 10), 0);
            assert_int_equal(rnl_end(s), 0);
        }
        assert_int_equal(rnl_extract(f->b, SIZE_MAX), 10);
        assert_memory_equal(buf, "0123456789", 10);
    }
}

/* ---- taking in ---- */

static void a_byte_limit_is_rounded_up_to_a_packet(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(rnl_send(f->a, 1, NOTE, test_pattern(i, 0), 40), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(post_card(f->a, 1, NOTE, test_pattern(i, 0), 1000), 0);
    assert_int_equal(rnl_extract(f->b, 0), 0);
    assert_int_equal(f->in.count, 0);
    assert_int_equal(rnl_extract(f->b, 1), 40);
    assert_int_equal(rnl_extract(f->b, 40), 40);
    assert_int_equal(rnl_extract(f->b, 41), 80);
    assert_int_equal(f->in.count, 4);
    assert_int_equal(rnl_extract(f->b, 41), 1040);
    assert_int_equal(rnl_extract(f->b, 1000), 1000);
    assert_int_equal(rnl_extract(f->b, 0), 0);
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 1000);
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 0);
    assert_int_equal(f->in.count, 8);
}

static void messages_without_payload_are_counted_only(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(rnl_send(f->a, 1, NOTE, NULL, 0), 0);
    uint64_t before = rnl_get_counters(f->b)->messages_received;
    assert_int_equal(rnl_extract(f->b, 1), 0);
    assert_int_equal(rnl_get_counters(f->b)->messages_received, before + 20);
    assert_int_equal(f->in.count, 20);
}

static int echo_to_self(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    unsigned char buf[600];
    size_t n = rnl_peek(s, NULL);
    TEST_MUST(rnl_receive(s, buf, n) == 0);
    if (f->echoes)
        TEST_MUST(post_card(f->a, peer, OTHER, buf, n) == 0);
    return RNL_DONE;
}

static void extracts_take_what_was_there(struct fixture *f, size_t length, unsigned there)
{
    const struct rnl_counters *c = rnl_get_counters(f->a);
    int bad = 0;
    f->echoes = 1;
    for (unsigned k = 0; k < there; k++)
        assert_int_equal(post_card(f->a, 0, OTHER, test_pattern(k, 0), length), 0);
    for (unsigned round = 0; round < 5; round++) {
        uint64_t before = c->messages_received;
        bad |= rnl_extract(f->a, SIZE_MAX) != (int64_t)(there * length) || c->messages_received - before != there;
    }
    f->echoes = 0;
    drain(f->a);
    if (bad)
        fail_msg("of %u messages of %zu bytes an extract takes more, or fewer", there, length);
}

static void an_extract_takes_what_was_there_and_no_more(void **state)
{
    static const size_t lengths[] = {0, 8, 30, 56, 100, 600};
    struct fixture *f = *state;
    assert_int_equal(rnl_handler_stream(f->a, OTHER, echo_to_self, f), OTHER);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (unsigned there = 1; there <= 8; there++)
            extracts_take_what_was_there(f, lengths[i], there);
}

static void quit_returns_after_that_handler(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(rnl_send(f->a, 1, NOTE, "12345678", 8), 0); /* in one line */
    assert_int_equal(post_card(f->a, 1, NOTE, test_pattern(1, 0), 1000), 0);
    assert_int_equal(rnl_send(f->c, 1, NOTE, "12345678", 8), 0);
    f->in.ending = RNL_QUIT;
    for (unsigned i = 1; i <= 5; i++) {
        assert_true(rnl_extract(f->b, SIZE_MAX) > 0);
        assert_int_equal(f->in.count, i);
    }
    f->in.ending = RNL_DONE;
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 0);
    /* of a handler that was suspended, too */
    rnl_stream *s;
    assert_int_equal(open_stream(f->a, 1, NOTE, 1000, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 500), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 500);
    assert_int_equal(rnl_piece(s, test_pattern(1, 500), 500), 0);
    assert_int_equal(rnl_end(s), 0);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "x", 1), 0);
    f->in.ending = RNL_QUIT;
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 500);
    assert_int_equal(f->in.count, 6);
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 1);
    f->in.ending = RNL_DONE;
}

static void peers_take_turns_when_the_limit_is_small(void **state)
{
    struct fixture *f = *state;
    unsigned from[3] = {0, 0, 0};
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(rnl_send(f->a, 1, NOTE, "12345678", 8), 0);
        assert_int_equal(rnl_send(f->c, 1, NOTE, "12345678", 8), 0);
    }
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(rnl_extract(f->b, 1), 8);
    for (unsigned i = 0; i < f->in.count; i++)
        from[f->in.got[i].peer]++;
    assert_int_equal(from[0], 4);
    assert_int_equal(from[2], 4);
    drain(f->b);
}

/* A rank that sent to several peers and then waits is looked at when the job hangs. */
static void who_waits_has_counted_what_it_sent(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(rnl_wait(f->a, 0), RNL_TIMED_OUT); /* so is what set_up sent */
    uint64_t before = rnl_get_counters(f->a)->messages_sent;
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(rnl_send(f->a, 1 + i % 2, NOTE, "12345", 5), 0);
    assert_int_equal(rnl_wait(f->a, 0), RNL_TIMED_OUT);
    assert_int_equal(rnl_get_counters(f->a)->messages_sent, before + 6);
    drain(f->b);
}

static int count_card(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)peer;
    TEST_MUST(n == 8);
    ++*(unsigned *)ctx;
    return RNL_DONE;
}

/* Its reading position has 16 bits; by the time it is read, b has taken thousands of lines more. A line each: the
 * handler changes from message to message. */
static void a_header_that_lay_long_says_no_more_than_it_meant(void **state)
{
    static const unsigned lines[] = {1, 2000, 4095, 4097, 5000, 7000, 8000, 8191, 8193, 12000, 20000};
    struct fixture *f = *state;
    unsigned got[2] = {0, 0};
    uint64_t card = 0;
    if (getenv("RNL_TEST_REMOTE"))
        skip(); /* headers pass between hosts as they are, and what was sent is not here at once */
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rnl_handler_whole(f->b, OTHER + i, count_card, &got[i], 0), OTHER + (int)i);
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        unsigned before = got[0] + got[1];
        assert_int_equal(rnl_send(f->b, 0, NOTE, "", 0), 0); /* a does not read it yet */
        for (unsigned i = 0; i < lines[k]; i++) {
            assert_int_equal(rnl_send(f->a, 1, OTHER + (int)(i & 1), &card, sizeof card), 0);
            if (i % 16 == 15)
                assert_true(rnl_extract(f->b, SIZE_MAX) > 0);
        }
        assert_true(rnl_extract(f->a, SIZE_MAX) >= 0);
        struct rnl_peer_info info;
        assert_int_equal(rnl_peer(f->a, 1, &info), 0);
        assert_int_equal(info.state, RNL_PEER_UP);
        while (got[0] + got[1] < before + lines[k])
            assert_true(rnl_extract(f->b, SIZE_MAX) > 0);
        assert_int_equal(rnl_extract(f->b, SIZE_MAX), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(receiving_past_the_end_copies_nothing),     TEST(a_byte_limit_is_rounded_up_to_a_packet),
        TEST(messages_without_payload_are_counted_only), TEST(an_extract_takes_what_was_there_and_no_more),
        TEST(quit_returns_after_that_handler),           TEST(peers_take_turns_when_the_limit_is_small),
        TEST(who_waits_has_counted_what_it_sent),        TEST(a_header_that_lay_long_says_no_more_than_it_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
