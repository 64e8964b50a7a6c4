/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A RNL_SHARED endpoint: any thread may call. Four threads of each of two endpoints send, extract and wait at once;
 * handlers that were suspended are resumed by whichever thread comes. */
#include "stream/inbox.h"

#include <pthread.h>
#include <stdatomic.h>

#include "endpoint/endpoint.h"

enum { NOTE = 1, ASK = 2, ANSWER = 3, THREADS = 4 };

struct shared {
    struct test_hub h;
    _Atomic uint64_t sent[2], bytes_sent[2], answers, asked, finished;
    uint64_t got[2], bytes_got[2]; /* under the endpoint's lock: handlers run inside it */
    _Atomic int working;
    unsigned messages;
};

struct worker {
    pthread_t thread;
    struct shared *w;
    unsigned side, number;
};

static int note(rnl_stream *s, unsigned peer, void *ctx)
{
    struct shared *w = ctx;
    uint64_t id;
    uint32_t n;
    unsigned char buf[2000];
    unsigned side = 1 - peer;
    TEST_MUST(rnl_receive(s, &id, 8) == 0 && rnl_receive(s, &n, 4) == 0);
    for (uint32_t at = 0; at < n;) {
        uint32_t step = n - at < sizeof buf ? n - at : (uint32_t)sizeof buf;
        TEST_MUST(rnl_receive(s, buf, step) == 0);
        TEST_MUST(memcmp(buf, test_pattern(id, at), step) == 0);
        at += step;
    }
    w->got[side]++;
    w->bytes_got[side] += n;
    return RNL_DONE;
}

static int empty(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer, (void)ctx;
    return RNL_DONE;
}

static int answer(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    TEST_MUST(rnl_reply(s, ANSWER, test_pattern(5, 0), 500) == 0);
    return RNL_DONE;
}

static int answered(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct shared *w = ctx;
    (void)peer;
    TEST_MUST(n == 500 && memcmp(buf, test_pattern(5, 0), n) == 0);
    atomic_fetch_add(&w->answers, 1);
    return RNL_DONE;
}

/* RNL_BUSY: another thread has a message to that peer open. */
static void send_one(struct worker *me, rnl_endpoint *ep, uint64_t id, uint32_t n, size_t ask)
{
    const struct rnl_message b = {.peer = 1 - me->side, .handler = ask ? ASK : NOTE, .bound = 12 + n, .answer = ask};
    rnl_stream *s;
    int status;
    while ((status = rnl_begin(ep, &b, &s)) == RNL_BUSY)
        TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0);
    TEST_MUST(status == 0);
    TEST_MUST(rnl_piece(s, &id, 8) == 0 && rnl_piece(s, &n, 4) == 0);
    TEST_MUST(rnl_piece(s, test_pattern(id, 0), n / 2) == 0);
    TEST_MUST(rnl_piece(s, test_pattern(id, n / 2), n - n / 2) == 0);
    TEST_MUST(rnl_end(s) == 0);
}

static void *work(void *arg)
{
    struct worker *me = arg;
    struct shared *w = me->w;
    rnl_endpoint *ep = w->h.ep[me->side];
    struct test_random r = test_random_of(me->number, me->side);
    for (unsigned i = 0; i < w->messages; i++) {
        uint64_t id = test_random_next(&r);
        uint32_t n = (uint32_t)test_random_size(&r, 60000, NULL, 0);
        switch (test_random_below(&r, 8)) {
        case 0:
            TEST_MUST(rnl_extract(ep, n) >= 0);
            break;
        case 1: {
            int64_t status = rnl_wait(ep, 200000);
            TEST_MUST(status >= 0 || status == RNL_TIMED_OUT);
            break;
        }
        case 2:
            send_one(me, ep, id, n, 500);
            atomic_fetch_add(&w->asked, 1);
            break;
        default:
            send_one(me, ep, id, n, 0);
            atomic_fetch_add(&w->sent[me->side], 1);
            atomic_fetch_add(&w->bytes_sent[me->side], n);
            break;
        }
    }
    /* Somebody must go on taking in: the others may wait for room. */
    atomic_fetch_sub(&w->working, 1);
    while (atomic_load(&w->working) > 0) {
        int64_t status = rnl_wait(ep, 1000000);
        TEST_MUST(status >= 0 || status == RNL_TIMED_OUT);
    }
    atomic_fetch_add(&w->finished, 1);
    while (atomic_load(&w->finished) < 2 * THREADS) /* the others may wait for room here */
        TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0);
    return NULL;
}

static void four_threads_share_an_endpoint(void **state)
{
    (void)state;
    struct shared *w = calloc(1, sizeof *w);
    struct worker worker[2 * THREADS];
    const struct rnl_options opt = {.flags = RNL_SHARED};
    assert_non_null(w);
    w->messages = 4000 / test_slowness();
    atomic_store(&w->working, 2 * THREADS);
    test_hub_open(&w->h, 2, &opt);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rnl_handler_stream(w->h.ep[i], NOTE, note, w), NOTE);
        assert_int_equal(rnl_handler_stream(w->h.ep[i], ASK, answer, w), ASK);
        assert_int_equal(rnl_handler_whole(w->h.ep[i], ANSWER, answered, w, 0), ANSWER);
    }
    for (unsigned i = 0; i < 2 * THREADS; i++) {
        worker[i] = (struct worker){.w = w, .side = i & 1, .number = i};
        assert_int_equal(pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
    }
    for (unsigned i = 0; i < 2 * THREADS; i++)
        pthread_join(worker[i].thread, NULL);
    assert_int_equal(test_hub_close(&w->h), 0);
    for (unsigned side = 0; side < 2; side++) {
        assert_int_equal(w->got[1 - side], w->sent[side]);
        assert_int_equal(w->bytes_got[1 - side], w->bytes_sent[side]);
    }
    assert_int_equal(w->answers, w->asked);
    free(w);
}

/* ---- two threads asleep at once: the test's park plays the second ---- */

static struct {
    struct rnl_env_ops ops;
    rnl_endpoint *ep;
    struct rnl_conn *conn;
    int depth;
    uint32_t armed[3]; /* while the first sleeps, while both do, after the second woke */
} two;

static uint32_t armed(void)
{
    return atomic_load(&two.conn->channel.mine->armed) & (RNL_ARMED_STEP - 1);
}

static void sleep_once(struct rnl_idle *w)
{
    TEST_MUST(rnl_ep_enter(two.ep) == 0);
    w->yields = 1000;   /* it has yielded long enough */
    w->polls = 1 << 20; /* and polled */
    TEST_MUST(rnl_ep_idle(two.ep, w) == 0);
    rnl_ep_leave(two.ep);
}

static void park(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    (void)env, (void)word, (void)expected, (void)deadline_ns;
    two.armed[two.depth] = armed();
    if (two.depth++ == 0) {
        struct rnl_idle other = {.deadline_ns = UINT64_MAX};
        sleep_once(&other);
        two.armed[2] = armed();
    }
}

static void who_wakes_leaves_the_others_armed(void **state)
{
    (void)state;
    const struct rnl_options opt = {.flags = RNL_SHARED};
    struct test_hub h;
    test_hub_open(&h, 2, &opt);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rnl_handler_whole(h.ep[i], NOTE, empty, NULL, 0), NOTE);
    acquaint(&h);
    two.ep = h.ep[0];
    two.conn = h.ep[0]->peer[1].conn;
    const struct rnl_env_ops *ops = h.ep[0]->env->ops;
    two.ops = *ops;
    two.ops.park = park;
    h.ep[0]->env->ops = &two.ops;
    while (post_card(h.ep[0], 1, NOTE, test_pattern(0, 0), 56) == 0)
        ;
    struct rnl_idle w = {.deadline_ns = UINT64_MAX, .room = two.conn};
    sleep_once(&w);
    assert_int_equal(two.depth, 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(two.armed[i], RNL_ARMED_CELLS | RNL_ARMED_ROOM | RNL_ARMED_WAKE);
    assert_int_equal(armed(), 0);
    h.ep[0]->env->ops = ops;
    assert_int_equal(test_hub_close(&h), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_threads_share_an_endpoint),
        cmocka_unit_test(who_wakes_leaves_the_others_armed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
