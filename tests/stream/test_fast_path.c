/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The short path asks only whether a message is of the kind that came before, on both sides: what that must not skip.
 */
#include "stream/three.h"

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
    const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 8};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_dead_are_not_sent_to),
        cmocka_unit_test(deaths_are_heard_of_by_who_is_busy),
        TEST(the_handler_is_the_one_of_now),
        TEST(nothing_is_taken_in_by_an_extract_of_nothing),
        cmocka_unit_test(an_empty_message_for_handler_0_waits_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
