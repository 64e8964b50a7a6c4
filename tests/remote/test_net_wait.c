/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_net_wait.c - who waits for a datagram sleeps, and is woken by it, by a peer of its own host and by the times of
 * its flows; the same for a program's event loop. Every sleep that a rank goes into is noted. */
#include "support/unit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "endpoint/net.h"
#include "remote/remote_internal.h"
#include "support/hub.h"
#include "support/loop.h"

enum { NOTE = 1, TIMES = 20, LONG_MS = 5000 };
#define LONG_NS ((uint64_t)LONG_MS * 1000000)

static int (*host_park_on)(struct rnl_env *, int, uint64_t);
static rnl_endpoint *sleeper; /* rank 0 */
static struct {
    unsigned parks, woken, late; /* late: nothing woke it for LONG_NS */
    unsigned for_flow;           /* sleeps that are to last until a flow is due */
    unsigned too_long;           /* that are to last longer */
    int no_deadlines;
} seen;

static int park_on(struct rnl_env *env, int fd, uint64_t deadline_ns)
{
    uint64_t now = rnl_host_now_ns(env);
    if (env->rank != 0)
        return host_park_on(env, fd, deadline_ns);
    seen.parks++;
    seen.for_flow += deadline_ns == rnl_remote_deadline(sleeper->remote);
    seen.too_long += deadline_ns > rnl_remote_deadline(sleeper->remote);
    int woken = host_park_on(env, fd, seen.no_deadlines ? now + LONG_NS : deadline_ns);
    seen.woken += woken > 0;
    seen.late += seen.no_deadlines && !woken && rnl_host_now_ns(env) >= now + LONG_NS;
    return woken;
}

static void watch_parks(rnl_endpoint *ep, int no_deadlines)
{
    struct rnl_env_ops *ops = (struct rnl_env_ops *)(uintptr_t)ep->env->ops; /* test_loop_attach's copy */
    host_park_on = ops->park_on;
    ops->park_on = park_on;
    memset(&seen, 0, sizeof seen);
    sleeper = ep;
    seen.no_deadlines = no_deadlines;
}

static unsigned heard_of[3];

static int on_note(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n;
    ((unsigned *)ctx)[peer]++;
    return RNL_DONE;
}

/* Rank 0 waits; 1 reaches it by datagrams, 2 by memory. */
static void open_three(struct test_hub *h)
{
    const struct test_loop opt = {.local = 1 << 0 | 1 << 2};
    unsetenv("RNL_TEST_REMOTE");
    test_hub_open(h, 3, NULL);
    for (unsigned i = 0; i < 3; i++)
        test_loop_attach(h->ep[i], &opt);
    assert_int_equal(rnl_handler_whole(h->ep[0], NOTE, on_note, heard_of, 0), NOTE);
}

struct sender {
    rnl_endpoint *ep;
    _Atomic unsigned heard; /* of its messages: it sends the next one then */
    _Atomic int stop;
};

static unsigned pause_ms = 3;

static void *send_now_and_then(void *arg)
{
    struct sender *s = arg;
    for (unsigned i = 0; i < TIMES; i++) {
        TEST_MUST(rnl_send(s->ep, 0, NOTE, &i, sizeof i) == 0);
        while (atomic_load_explicit(&s->heard, memory_order_relaxed) <= i)
            TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0);
        test_sleep_ms(pause_ms);
    }
    while (!atomic_load_explicit(&s->stop, memory_order_relaxed))
        TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0);
    return NULL;
}

typedef void waits(rnl_endpoint *ep);

static void by_wait(rnl_endpoint *ep)
{
    int64_t status = rnl_wait(ep, -1);
    TEST_MUST(status >= 0);
}

/* Of the ranks in `who`, bits. */
static void hear(struct test_hub *h, waits *wait, unsigned who)
{
    struct sender s[3] = {{0}};
    pthread_t thread[3];
    unsigned want = 0;
    memset(heard_of, 0, sizeof heard_of);
    for (unsigned i = 1; i < 3; i++) {
        s[i].ep = h->ep[i];
        if (who >> i & 1)
            assert_int_equal(pthread_create(&thread[i], NULL, send_now_and_then, &s[i]), 0);
        want += who >> i & 1 ? TIMES : 0;
    }
    while (heard_of[1] + heard_of[2] < want) {
        wait(h->ep[0]);
        TEST_MUST(seen.late == 0);
        for (int i = 1; i < 3; i++)
            atomic_store_explicit(&s[i].heard, heard_of[i], memory_order_relaxed);
    }
    for (unsigned i = 1; i < 3; i++) {
        atomic_store_explicit(&s[i].stop, 1, memory_order_relaxed);
        if (who >> i & 1)
            assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
}

static void a_sleeper_is_woken_by_datagrams_and_by_peers_of_its_host(void **state)
{
    struct test_hub h;
    (void)state;
    open_three(&h);
    watch_parks(h.ep[0], 1);
    for (; seen.parks == 0; pause_ms *= 2) { /* on a busy machine each message may be there before it sleeps */
        hear(&h, by_wait, 1 << 1 | 1 << 2);
        hear(&h, by_wait, 1 << 2);
    }
    print_message("%u sleeps, %u woken\n", seen.parks, seen.woken);
    seen.no_deadlines = 0;
    assert_int_equal(test_hub_close(&h), 0);
}

static void a_sleep_ends_when_a_flow_is_due(void **state)
{
    struct test_hub h;
    unsigned heard[3] = {0};
    uint32_t what = 1;
    (void)state;
    open_three(&h);
    assert_int_equal(rnl_handler_whole(h.ep[1], NOTE, on_note, heard, 0), NOTE);
    assert_int_equal(rnl_send(h.ep[0], 1, NOTE, &what, sizeof what), 0);
    while (heard[0] == 0)
        for (int i = 0; i < 2; i++)
            assert_true(rnl_extract(h.ep[i], SIZE_MAX) >= 0);
    watch_parks(h.ep[0], 0);
    uint64_t probes = h.ep[0]->remote->count->probes;
    assert_int_equal(rnl_send(h.ep[0], 1, NOTE, &what, sizeof what), 0); /* nobody takes it in: probes */
    while (seen.too_long == 0 && (h.ep[0]->remote->count->probes < probes + 6 || seen.for_flow < 2))
        assert_true(rnl_wait(h.ep[0], 1000000000) >= RNL_TIMED_OUT);
    print_message("%u sleeps, %u until a flow is due\n", seen.parks, seen.for_flow);
    assert_int_equal(seen.too_long, 0);
    assert_int_equal(test_hub_close(&h), 0);
}

static _Atomic int agent_says;
static _Atomic int has_agent; /* rank 0 */

static uint64_t liveness(struct rnl_env *env, uint32_t rank)
{
    return (rank == 0 ? has_agent : agent_says) ? rnl_host_now_ns(env) : 0;
}

static enum rnl_peer_state state_of(rnl_endpoint *ep, unsigned rank)
{
    struct rnl_peer_info info;
    assert_int_equal(rnl_peer(ep, rank, &info), 0);
    return info.state;
}

static void who_only_computes_is_answered_for_by_its_agent(void **state)
{
    const struct test_loop opt = {.remote = {.silent_ns = 300000000}}; /* more than a busy machine takes away */
    struct test_hub h;
    unsigned heard[2] = {0};
    uint32_t what = 1;
    (void)state;
    unsetenv("RNL_TEST_REMOTE");
    test_hub_open(&h, 2, NULL);
    for (unsigned i = 0; i < 2; i++) {
        test_loop_attach(h.ep[i], &opt);
        assert_int_equal(rnl_handler_whole(h.ep[i], NOTE, on_note, heard, 0), NOTE);
    }
    ((struct rnl_env_ops *)(uintptr_t)h.ep[0]->env->ops)->liveness = liveness;
    assert_int_equal(rnl_send(h.ep[0], 1, NOTE, &what, sizeof what), 0);
    while (heard[0] == 0)
        for (int i = 0; i < 2; i++)
            assert_true(rnl_extract(h.ep[i], SIZE_MAX) >= 0);
    agent_says = 1;
    assert_int_equal(rnl_send(h.ep[0], 1, NOTE, &what, sizeof what), 0); /* it computes from now on */
    for (uint64_t until = test_now_ns() + 1500000000; test_now_ns() < until;)
        assert_true(rnl_wait(h.ep[0], 20000000) >= RNL_TIMED_OUT);
    assert_int_not_equal(state_of(h.ep[0], 1), RNL_PEER_DEAD); /* suspect it may be: it is silent */
    while (heard[0] < 2)                                       /* it comes back: nothing is lost */
        for (int i = 0; i < 2; i++)
            assert_true(rnl_extract(h.ep[i], SIZE_MAX) >= 0);
    agent_says = 0; /* nobody knows it any more */
    assert_int_equal(rnl_send(h.ep[0], 1, NOTE, &what, sizeof what), 0);
    while (state_of(h.ep[0], 1) != RNL_PEER_DEAD)
        assert_true(rnl_wait(h.ep[0], 20000000) >= RNL_TIMED_OUT);
    test_hub_kill(&h, 1, RNL_DEATH_EXIT, 0);
    (void)!test_hub_close(&h); /* the dead one closes nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleeper_is_woken_by_datagrams_and_by_peers_of_its_host),
        cmocka_unit_test(a_sleep_ends_when_a_flow_is_due),
        cmocka_unit_test(who_only_computes_is_answered_for_by_its_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
