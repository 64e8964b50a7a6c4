/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rnl_close: a collective that runs handlers until nothing is on the way, for everybody. */
#include "stream/inbox.h"

#include <pthread.h>
#include <stdatomic.h>

enum { NOTE = 1, HALF = 5 };

struct ring_of_ranks {
    struct test_hub h;
    struct inbox in;
    _Atomic unsigned hops;
};

static void messages_without_handler_are_dropped_and_told(void **state)
{
    struct ring_of_ranks w = {.hops = 0};
    (void)state;
    test_hub_open(&w.h, 3, NULL);
    rnl_endpoint *a = w.h.ep[0];
    assert_int_equal(rnl_handler_stream(w.h.ep[1], NOTE, inbox_stream, &w.in), NOTE);
    assert_int_equal(rnl_send(a, 1, 99, "1", 1), 0);
    assert_int_equal(rnl_send(a, 1, NOTE, "behind", 6), 0);
    assert_int_equal(post_card(a, 1, 99, test_pattern(1, 0), 100), 0);
    assert_int_equal(post_card(a, 1, 99, test_pattern(1, 0), 6000), 0);
    assert_int_equal(rnl_send(a, 1, NOTE, "behind", 6), 0);
    assert_int_equal(test_hub_close(&w.h), RNL_ERR_HANDLER);
    assert_int_equal(w.h.closed[0], 0);
    assert_int_equal(w.h.closed[1], RNL_ERR_HANDLER);
    assert_int_equal(w.h.closed[2], 0);
    assert_int_equal(w.in.count, 2);
    inbox_free(&w.in);
    /* with a sentence for the thread that closes */
    rnl_endpoint *ep;
    const struct rnl_options opt = {.size = sizeof opt};
    assert_int_equal(rnl_open(&ep, &opt), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(rnl_send(ep, 0, 77, "x", 1), 0);
    assert_int_equal(rnl_close(ep), RNL_ERR_HANDLER);
    SAYS(RNL_ERR_HANDLER, "3 messages", "77");
}

static int half(rnl_stream *s, unsigned peer, void *ctx)
{
    struct ring_of_ranks *w = ctx;
    unsigned char buf[600];
    (void)peer;
    TEST_MUST(rnl_receive(s, buf, 300) == 0);
    if (rnl_receive(s, buf, 300) == RNL_ERR_ABORTED)
        atomic_fetch_add(&w->hops, 1);
    return RNL_DONE;
}

static void open_messages_are_given_up(void **state)
{
    struct ring_of_ranks w = {.hops = 0};
    rnl_stream *s, *t;
    (void)state;
    test_hub_open(&w.h, 3, NULL);
    for (unsigned i = 1; i < 3; i++)
        assert_int_equal(rnl_handler_stream(w.h.ep[i], HALF, half, &w), HALF);
    assert_int_equal(open_stream(w.h.ep[0], 1, HALF, 600, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 300), 0);
    assert_int_equal(rnl_flush(w.h.ep[0]), 0);
    drain(w.h.ep[1]);
    assert_int_equal(open_stream(w.h.ep[0], 2, HALF, 600, &t), 0);
    assert_int_equal(rnl_piece(t, test_pattern(1, 0), 300), 0); /* nobody saw this one */
    assert_int_equal(test_hub_close(&w.h), RNL_ERR_ABORTED);    /* and who forgot them is told */
    assert_int_equal(w.h.closed[0], RNL_ERR_ABORTED);
    assert_int_equal(w.h.closed[1], 0);
    assert_int_equal(w.h.closed[2], 0);
    assert_int_equal(w.hops, 1);
    rnl_endpoint *ep; /* with a sentence for the thread that closes */
    const struct rnl_options opt = {.size = sizeof opt};
    assert_int_equal(rnl_open(&ep, &opt), 0);
    assert_int_equal(open_stream(ep, 0, HALF, 600, &s), 0);
    assert_int_equal(rnl_close(ep), RNL_ERR_ABORTED);
    SAYS(RNL_ERR_ABORTED, "1 message", "never ended", "rank 0");
}

static void told(void *arg, int status)
{
    int *runs = arg;
    TEST_MUST(status == RNL_ERR_JOB);
    ++*runs;
}

static int waits(rnl_stream *s, unsigned peer, void *ctx)
{
    char buf[600];
    (void)peer;
    *(int *)ctx = rnl_receive(s, buf, 600);
    return RNL_DONE;
}

/* The launcher is gone: what was queued, suspended and half collected is lost, and whoever waits for it is told. */
static void without_a_job_all_is_given_up_and_told(void **state)
{
    struct ring_of_ranks w = {.hops = 0};
    int runs = 0, received = 0;
    rnl_stream *s, *t;
    (void)state;
    test_hub_open(&w.h, 3, NULL);
    rnl_endpoint *ep = w.h.ep[0];
    assert_int_equal(rnl_handler_stream(ep, HALF, waits, &received), HALF);
    assert_int_equal(rnl_handler_whole(ep, NOTE, inbox_whole, &w.in, 0), NOTE);
    for (unsigned i = 0; i < 3; i++) {
        const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 3 << 20};
        const struct rnl_buffer piece = {test_pattern(i, 0), 3 << 20};
        assert_int_equal(rnl_post(ep, &b, &piece, 1, told, &runs), 0);
    }
    assert_int_equal(open_stream(w.h.ep[1], 0, HALF, 600, &s), 0);
    assert_int_equal(open_stream(w.h.ep[2], 0, NOTE, 600, &t), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 300), 0);
    assert_int_equal(rnl_piece(t, test_pattern(1, 0), 300), 0);
    assert_int_equal(rnl_flush(w.h.ep[1]), 0);
    assert_int_equal(rnl_flush(w.h.ep[2]), 0);
    drain(ep);
    drain(ep);
    assert_int_equal(rnl_get_counters(ep)->stacks_in_use, 1);
    test_hub_kill(&w.h, 0, RNL_DEATH_SIGNAL, 9);
    assert_int_equal(rnl_wait(ep, 1000000000), RNL_ERR_JOB);
    assert_int_equal(runs, 0);
    assert_int_equal(rnl_close(ep), RNL_ERR_JOB);
    w.h.ep[0] = NULL;
    assert_int_equal(runs, 3);
    assert_int_equal(received, RNL_ERR_JOB);
    assert_int_equal(w.in.count, 0);
    assert_int_equal(test_hub_close(&w.h), 0);
    inbox_free(&w.in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_without_handler_are_dropped_and_told),
        cmocka_unit_test(open_messages_are_given_up),
        cmocka_unit_test(without_a_job_all_is_given_up_and_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
