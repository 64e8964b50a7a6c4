/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rnl_close: a collective that runs handlers until nothing is on the way, for everybody. */
#include "stream/inbox.h"

#include <pthread.h>
#include <stdatomic.h>

enum { NOTE = 1, HOP = 2, ASK = 3, ANSWER = 4, HALF = 5 };

struct ring_of_ranks {
    struct test_hub h;
    struct inbox in;
    _Atomic unsigned hops, answers;
};

struct hop_ctx {
    struct ring_of_ranks *w;
    rnl_endpoint *ep;
};

static void free_it(void *copy, int status)
{
    TEST_MUST(status == 0);
    free(copy);
}

/* A message that hops on with its payload, until its count is used up. */
static int hop(rnl_stream *s, unsigned peer, void *ctx)
{
    struct hop_ctx *c = ctx;
    uint32_t left, n;
    unsigned char buf[4096];
    (void)peer;
    TEST_MUST(rnl_receive(s, &left, 4) == 0);
    TEST_MUST(rnl_receive(s, &n, 4) == 0);
    TEST_MUST(rnl_receive(s, buf, n) == 0);
    TEST_MUST(memcmp(buf, test_pattern(n, 0), n) == 0);
    atomic_fetch_add(&c->w->hops, 1);
    if (left == 0)
        return RNL_DONE;
    const struct rnl_begin b = {.peer = (rnl_rank(c->ep) + 1) % rnl_size(c->ep), .handler = HOP, .bound = 8 + n};
    rnl_stream *t;
    left--;
    int status = rnl_begin(c->ep, &b, &t);
    if (status == 0) {
        TEST_MUST(rnl_piece(t, &left, 4) == 0 && rnl_piece(t, &n, 4) == 0 && rnl_piece(t, buf, n) == 0);
        TEST_MUST(rnl_end(t) == 0);
    } else {
        unsigned char *copy = malloc(8 + n);
        const struct rnl_piece piece = {copy, 8 + n};
        TEST_MUST(status == RNL_NO_ROOM && copy != NULL);
        memcpy(copy, &left, 4);
        memcpy(copy + 4, &n, 4);
        memcpy(copy + 8, buf, n);
        TEST_MUST(rnl_post(c->ep, &b, &piece, 1, free_it, copy) == 0);
    }
    return RNL_DONE;
}

static void handlers_that_send_are_waited_for(void **state)
{
    static const uint32_t lengths[] = {0, 20, 48, 100, 4000};
    (void)state;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        struct ring_of_ranks w = {.hops = 0};
        struct hop_ctx ctx[5];
        uint32_t left = 300, n = lengths[l];
        unsigned char buf[8 + 4096];
        test_hub_open(&w.h, 5, NULL);
        for (unsigned i = 0; i < 5; i++) {
            ctx[i] = (struct hop_ctx){&w, w.h.ep[i]};
            assert_int_equal(rnl_handler_stream(w.h.ep[i], HOP, hop, &ctx[i]), HOP);
        }
        memcpy(buf, &left, 4);
        memcpy(buf + 4, &n, 4);
        memcpy(buf + 8, test_pattern(n, 0), n);
        for (unsigned i = 0; i < 5; i += 2)
            assert_int_equal(post_card(w.h.ep[i], i, HOP, buf, 8 + n), 0);
        assert_int_equal(test_hub_close(&w.h), 0);
        assert_int_equal(w.hops, 3 * 301);
    }
}

static int answer_long(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    TEST_MUST(rnl_reply(s, ANSWER, test_pattern(1, 0), 30000) == 0);
    return RNL_DONE;
}

static int count_answer(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct ring_of_ranks *w = ctx;
    (void)peer;
    TEST_MUST(n == 30000 && memcmp(buf, test_pattern(1, 0), n) == 0);
    atomic_fetch_add(&w->answers, 1);
    return RNL_DONE;
}

static void answers_on_the_way_are_waited_for(void **state)
{
    struct ring_of_ranks w = {.hops = 0};
    (void)state;
    test_hub_open(&w.h, 3, NULL);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(rnl_handler_stream(w.h.ep[i], ASK, answer_long, NULL), ASK);
        assert_int_equal(rnl_handler_whole(w.h.ep[i], ANSWER, count_answer, &w, 0), ANSWER);
    }
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned k = 0; k < 20; k++) {
            const struct rnl_begin b = {.peer = k % 3, .handler = ASK, .answer = 30000, .flags = RNL_NO_WAIT};
            rnl_stream *s;
            assert_int_equal(rnl_begin(w.h.ep[i], &b, &s), 0);
            assert_int_equal(rnl_end(s), 0);
        }
    }
    assert_int_equal(test_hub_close(&w.h), 0);
    assert_int_equal(w.answers, 60);
}

static void queued_posts_are_sent(void **state)
{
    struct ring_of_ranks w = {.hops = 0};
    (void)state;
    test_hub_open(&w.h, 2, NULL);
    assert_int_equal(rnl_handler_stream(w.h.ep[1], NOTE, inbox_stream, &w.in), NOTE);
    for (unsigned i = 0; i < 5; i++) {
        const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = 1000000};
        const struct rnl_piece piece = {test_pattern(i, 0), 1000000};
        assert_int_equal(rnl_post(w.h.ep[0], &b, &piece, 1, NULL, NULL), 0);
    }
    assert_int_equal(test_hub_close(&w.h), 0);
    assert_int_equal(w.in.count, 5);
    assert_memory_equal(w.in.buf, test_pattern(4, 0), 1000000);
    inbox_free(&w.in);
}

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
    assert_int_equal(test_hub_close(&w.h), 0);
    assert_int_equal(w.hops, 1);
}

/* A handler that holds a message to a third open while it waits for its own: only it may end that. */
struct relay {
    rnl_endpoint *ep;
};
static int relay(rnl_stream *s, unsigned peer, void *ctx)
{
    struct relay *r = ctx;
    const struct rnl_begin b = {.peer = 2, .handler = NOTE, .bound = 600};
    rnl_stream *t;
    unsigned char buf[300];
    (void)peer;
    TEST_MUST(rnl_begin(r->ep, &b, &t) == 0);
    for (unsigned i = 0; i < 2; i++) {
        TEST_MUST(rnl_receive(s, buf, 300) == 0);
        TEST_MUST(rnl_piece(t, buf, 300) == 0);
    }
    TEST_MUST(rnl_end(t) == 0);
    return RNL_DONE;
}

static void *close_it(void *ep)
{
    return (void *)(intptr_t)rnl_close(ep);
}

static void a_message_that_a_suspended_handler_sends_is_the_handlers_to_end(void **state)
{
    struct ring_of_ranks w = {.hops = 0};
    rnl_stream *s;
    pthread_t thread;
    void *status;
    (void)state;
    test_hub_open(&w.h, 3, NULL);
    struct relay r = {w.h.ep[1]};
    assert_int_equal(rnl_handler_stream(w.h.ep[1], HALF, relay, &r), HALF);
    assert_int_equal(rnl_handler_stream(w.h.ep[2], NOTE, inbox_stream, &w.in), NOTE);
    assert_int_equal(open_stream(w.h.ep[0], 1, HALF, 600, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 300), 0);
    assert_int_equal(rnl_flush(w.h.ep[0]), 0);
    drain(w.h.ep[1]);
    drain(w.h.ep[1]);
    assert_int_equal(rnl_get_counters(w.h.ep[1])->stacks_in_use, 1);
    test_wires_threads(w.h.wires);
    assert_int_equal(pthread_create(&thread, NULL, close_it, w.h.ep[1]), 0); /* before the other half is sent */
    test_sleep_ms(20);
    assert_int_equal(rnl_piece(s, test_pattern(1, 300), 300), 0);
    assert_int_equal(rnl_end(s), 0);
    w.h.ep[1] = NULL;
    rnl_hub *hub = w.h.hub;
    struct test_wires *wires = w.h.wires;
    w.h.hub = NULL; /* the thread still uses it */
    w.h.wires = NULL;
    assert_int_equal(test_hub_close(&w.h), 0);
    pthread_join(thread, &status);
    rnl_hub_free(hub);
    test_wires_free(wires);
    assert_int_equal((intptr_t)status, 0);
    assert_int_equal(w.in.count, 1);
    assert_int_equal(w.in.got[0].n, 600);
    assert_memory_equal(w.in.buf, test_pattern(1, 0), 600);
    inbox_free(&w.in);
}

static void who_closes_first_serves_the_others(void **state)
{
    struct ring_of_ranks w = {.hops = 0};
    pthread_t thread;
    void *status;
    (void)state;
    test_hub_open(&w.h, 2, NULL);
    assert_int_equal(rnl_handler_stream(w.h.ep[0], ASK, answer_long, NULL), ASK);
    assert_int_equal(rnl_handler_whole(w.h.ep[1], ANSWER, count_answer, &w, 0), ANSWER);
    test_wires_threads(w.h.wires);
    assert_int_equal(pthread_create(&thread, NULL, close_it, w.h.ep[0]), 0);
    for (unsigned i = 0; i < 300; i++) {
        const struct rnl_begin b = {.peer = 0, .handler = ASK, .bound = 500, .answer = 30000};
        rnl_stream *s;
        assert_int_equal(rnl_begin(w.h.ep[1], &b, &s), 0);
        assert_int_equal(rnl_piece(s, test_pattern(1, 0), 500), 0);
        assert_int_equal(rnl_end(s), 0);
        if (i % 50 == 0)
            test_sleep_ms(5);
        while (i % 20 == 19 && w.answers < i)
            assert_true(rnl_wait(w.h.ep[1], 10000000000) >= 0);
    }
    w.h.ep[0] = NULL;
    rnl_hub *hub = w.h.hub;
    struct test_wires *wires = w.h.wires;
    w.h.hub = NULL; /* freed below, after both */
    w.h.wires = NULL;
    assert_int_equal(test_hub_close(&w.h), 0);
    pthread_join(thread, &status);
    rnl_hub_free(hub);
    test_wires_free(wires);
    assert_int_equal((intptr_t)status, 0);
    assert_int_equal(w.answers, 300);
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
        const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = 3 << 20};
        const struct rnl_piece piece = {test_pattern(i, 0), 3 << 20};
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

static void the_dead_are_not_waited_for(void **state)
{
    struct ring_of_ranks w = {.hops = 0};
    (void)state;
    test_hub_open(&w.h, 4, NULL);
    assert_int_equal(rnl_handler_stream(w.h.ep[1], NOTE, inbox_stream, &w.in), NOTE);
    assert_int_equal(rnl_send(w.h.ep[3], 1, NOTE, "last words", 10), 0);
    assert_int_equal(rnl_send(w.h.ep[0], 3, NOTE, "unheard", 7), 0);
    test_hub_kill(&w.h, 3, RNL_DEATH_SIGNAL, 9);
    assert_int_equal(test_hub_close(&w.h), 0);
    assert_int_equal(w.in.count, 1);
    assert_memory_equal(w.in.buf, "last words", 10);
    inbox_free(&w.in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_that_send_are_waited_for),
        cmocka_unit_test(answers_on_the_way_are_waited_for),
        cmocka_unit_test(queued_posts_are_sent),
        cmocka_unit_test(messages_without_handler_are_dropped_and_told),
        cmocka_unit_test(open_messages_are_given_up),
        cmocka_unit_test(a_message_that_a_suspended_handler_sends_is_the_handlers_to_end),
        cmocka_unit_test(who_closes_first_serves_the_others),
        cmocka_unit_test(the_dead_are_not_waited_for),
        cmocka_unit_test(without_a_job_all_is_given_up_and_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
