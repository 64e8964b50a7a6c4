/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much of an idle process is spent on looking: how often it looks, how long it spins, when it sleeps. Its clock and
 * its sleep are the test's. */
#include "stream/inbox.h"

#include <stdatomic.h>
#include <stdio.h>

#include "endpoint/endpoint.h"

enum { NOTE = 1 };
#define MS ((int64_t)1000000)

struct fixture {
    INBOX_FIXTURE;
};

static int empty(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer, (void)ctx;
    return RNL_DONE;
}

static void handlers(rnl_endpoint *ep, void *fixture)
{
    struct fixture *f = fixture;
    TEST_MUST(rnl_handler_stream(ep, NOTE, inbox_stream, &f->in) == NOTE);
}

static int set_up(void **state)
{
    return inbox_open(state, sizeof(struct fixture), 2, NULL, handlers);
}

#define tear_down inbox_close

static struct {
    struct rnl_env_ops ops;
    uint64_t now_ns, parks, yields, yield_ns;
} idling;

static uint64_t idle_now(struct rnl_env *env)
{
    (void)env;
    return idling.now_ns;
}
static uint64_t idle_yield(struct rnl_env *env)
{
    (void)env;
    idling.yields++;
    return idling.yield_ns;
}
static void idle_park(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    (void)env, (void)word, (void)expected;
    idling.parks++;
    idling.now_ns = deadline_ns;
}

static void idle_env(rnl_endpoint *ep)
{
    idling.ops = *ep->env->ops;
    idling.ops.now_ns = idle_now;
    idling.ops.yield = idle_yield;
    idling.ops.park = idle_park;
    idling.now_ns = 1;
    idling.parks = idling.yields = idling.yield_ns = 0;
    ep->env->ops = &idling.ops;
}

static void between_two_sleeps_is_one_look(void **state)
{
    struct fixture *f = *state;
    if (!f->a->env->facts.have_membarrier) {
        printf("skip: no membarrier, so sleeps are short\n");
        skip();
    }
    const struct rnl_env_ops *ops = f->a->env->ops;
    idle_env(f->a);
    assert_int_equal(rnl_wait(f->a, 10000 * MS), RNL_TIMED_OUT);
    assert_int_equal(idling.parks, 100);
    assert_in_range(idling.yields, 1, 101); /* those before the first sleep */
    f->a->env->ops = ops;
}

static int no_fence(struct rnl_env *env)
{
    (void)env;
    return RNL_ERR_SYSTEM;
}

/* As when a sandbox forbids membarrier after the start: sleeps are short from then on, and senders are told to fence.
 */
static void a_heavy_fence_that_fails_is_done_without(void **state)
{
    struct fixture *f = *state;
    const struct rnl_env_ops *ops = f->a->env->ops;
    f->a->env->facts.have_membarrier = 1;
    f->b->peer[0].conn->channel.senders_fence = 0;
    idle_env(f->a);
    idling.ops.heavy_fence = no_fence;
    assert_int_equal(rnl_wait(f->a, 100 * MS), RNL_TIMED_OUT);
    assert_in_range(idling.parks, 99, 101);
    assert_int_equal(f->a->env->facts.have_membarrier, 0);
    struct rnl_channel *p = &f->b->peer[0].conn->channel;
    rnl_channel_arm(&f->a->peer[1].conn->channel, RNL_ARMED_CELLS);
    assert_int_equal(rnl_send(f->b, 0, NOTE, "x", 1), 0);
    assert_int_equal(p->senders_fence, 1);
    assert_ptr_equal(p->tx[0].armed, &rnl_tx_always_armed);
    f->a->env->ops = ops;
}

/* Short waits look after credit, too: a peer may wait for it. */
static void short_waits_look_after_credit(void **state)
{
    struct fixture *f = *state;
    const struct rnl_env_ops *ops = f->a->env->ops;
    struct rnl_rx *r = &f->a->peer[1].conn->channel.rx[0];
    uint64_t wanted = r->outstanding_max + 1000;
    r->outstanding_max -= 1000; /* as after giving back */
    idle_env(f->a);
    atomic_store(&f->b->peer[0].conn->channel.mine->credit_wanted, wanted - 1000);
    for (int i = 0; i < 3; i++) {
        idling.now_ns += (uint64_t)MS;
        assert_int_equal(rnl_wait(f->a, 0), RNL_TIMED_OUT);
    }
    assert_true(r->outstanding_max >= wanted - 1000);
    f->a->env->ops = ops;
}

/* A yield that was of use, since a message was there at once, makes it spin less; one for nothing, more. */
static void how_long_to_spin_is_learnt(void **state)
{
    struct fixture *f = *state;
    const struct rnl_env_ops *ops = f->a->env->ops;
    idle_env(f->a);
    f->a->wait.spin = 64;
    f->a->fast.empty_polls = f->a->wait.empty_polls_limit = 0;
    for (int i = 0; i < 14; i++) {
        idling.yield_ns = i < 4 ? 300 : 1000; /* too short for the peer to have run at first */
        for (uint64_t yields = idling.yields; idling.yields == yields;)
            assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
        assert_int_equal(rnl_send(f->b, 0, NOTE, "x", 1), 0);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
        if (i == 3) {
            assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
            assert_int_equal(f->a->wait.spin, 1024);
        }
    }
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
    assert_int_equal(f->a->wait.spin, 1);
    idling.yield_ns = 1000;
    for (int i = 0; i < 30000; i++)
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
    assert_int_equal(f->a->wait.spin, 4096);
    f->a->env->ops = ops;
}

/* Where a yield to nobody takes 1400 ns, one of 2000 tells nothing, and one of 3000 that others ran. */
static void a_slow_system_call_is_not_taken_for_others(void **state)
{
    struct fixture *f = *state;
    const struct rnl_env_ops *ops = f->a->env->ops;
    idle_env(f->a);
    f->a->wait.spin = 64;
    f->a->env->facts.yield_ns = 2000; /* a guess, which the first yield corrects */
    f->a->fast.empty_polls = f->a->wait.empty_polls_limit = 0;
    for (int i = 0; i < 24; i++) {
        idling.yield_ns = i == 0 ? 1400 : i < 12 ? 2000 : 3000;
        for (uint64_t yields = idling.yields; idling.yields == yields;)
            assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
        assert_int_equal(rnl_send(f->b, 0, NOTE, "x", 1), 0);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
        if (i == 11) {
            assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
            assert_int_equal(f->a->wait.spin, 4096);
        }
    }
    assert_int_equal(f->a->env->facts.yield_ns, 1400);
    assert_int_equal(f->a->wait.spin, 1);
    f->a->env->ops = ops;
}

/* After a yield that took a time slice of another process, 250 waits sleep without one. */
static void where_a_yield_takes_long_waits_sleep(void **state)
{
    struct fixture *f = *state;
    const struct rnl_env_ops *ops = f->a->env->ops;
    idle_env(f->a);
    f->a->wait.spin = 1;
    idling.yield_ns = 2 * (uint64_t)MS;
    for (unsigned i = 0; i < 251; i++) {
        assert_int_equal(idling.yields, i > 0);
        assert_int_equal(rnl_wait(f->a, MS / 10), RNL_TIMED_OUT);
        assert_in_range(idling.parks, i + 1, 2 * i + 2);
    }
    assert_int_equal(idling.yields, 2);
    f->a->env->ops = ops;
}

static void poll_in_vain(struct fixture *f)
{
    for (unsigned k = 0; k < 1000; k++)
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
}

/* A program that polls goes on without yields for as long as the last one took, as long as this brings something. */
static void where_a_yield_takes_long_polls_keep_the_processor(void **state)
{
    struct fixture *f = *state;
    const struct rnl_env_ops *ops = f->a->env->ops;
    idle_env(f->a);
    f->a->env->facts.cpus = 2;
    f->a->wait.spin = 1;
    f->a->fast.empty_polls = f->a->wait.empty_polls_limit = 0;
    idling.yield_ns = 2 * (uint64_t)MS;
    for (unsigned i = 1; i <= 3; i++) {
        poll_in_vain(f);
        assert_int_equal(idling.yields, i);
        if (i < 3) {
            assert_int_equal(rnl_send(f->b, 0, NOTE, "x", 1), 0);
            assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
        }
        idling.now_ns += (uint64_t)(3 * MS);
    }
    poll_in_vain(f); /* nothing came in the third: eight yields are followed by others at once */
    assert_int_equal(idling.yields, 12);
    f->a->env->facts.cpus = 1; /* a peer may need the processor */
    f->a->wait.stay_until_ns = 0;
    poll_in_vain(f);
    assert_in_range(idling.yields, 300, 1012);
    f->a->env->ops = ops;
}

static unsigned polls_before_a_yield(unsigned size)
{
    struct test_hub h;
    struct rnl_idle w = {.deadline_ns = UINT64_MAX};
    unsigned polls = 0;
    test_hub_open(&h, size, NULL);
    for (unsigned i = 0; i < size; i++)
        TEST_MUST(rnl_handler_stream(h.ep[i], NOTE, empty, NULL) == NOTE);
    acquaint(&h);
    const struct rnl_env_ops *ops = h.ep[0]->env->ops;
    idle_env(h.ep[0]);
    h.ep[0]->wait.spin = 3000;
    for (; idling.yields == 0; polls++)
        assert_int_equal(rnl_ep_idle(h.ep[0], &w), 0);
    h.ep[0]->env->ops = ops;
    assert_int_equal(test_hub_close(&h), 0);
    return polls;
}

static void who_has_many_peers_polls_less_often(void **state)
{
    (void)state;
    assert_int_equal(polls_before_a_yield(2), 3000);
    assert_in_range(polls_before_a_yield(16), 1000, 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(between_two_sleeps_is_one_look),
        TEST(a_heavy_fence_that_fails_is_done_without),
        TEST(short_waits_look_after_credit),
        TEST(how_long_to_spin_is_learnt),
        TEST(a_slow_system_call_is_not_taken_for_others),
        TEST(where_a_yield_takes_long_waits_sleep),
        TEST(where_a_yield_takes_long_polls_keep_the_processor),
        cmocka_unit_test(who_has_many_peers_polls_less_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
