/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hot and cold connections: what is still is not polled, and nothing that comes there is lost or late. */
#include "endpoint/cold.h"

#include <poll.h>

/* ---- cooling and coming back ---- */

static void what_is_still_is_not_polled(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(f->a->hot_count, SIZE);
    look_around(f->a, 1);
    assert_int_equal(f->a->hot_count, SIZE); /* not at once */
    let_cool(f);
    assert_int_equal(f->a->hot_count, RNL_HOT_ALWAYS);
    assert_int_equal(f->a->live, SIZE);
    assert_int_equal(env.fences, 1); /* for all of them */
    assert_int_equal(rnl_get_counters(f->a)->cooled, SIZE - RNL_HOT_ALWAYS);
    look_around(f->a, 200);
    assert_int_equal(env.fences, 1);
    for (uint32_t i = 0; i < SIZE; i++)
        assert_int_equal(armed_of(f->a->hot[i]), i < f->a->hot_count ? 0 : COLD);
}

static void what_is_busy_stays_hot(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 100; i++) {
        look_around(f->a, 1);
        for (unsigned rank = 3; rank < SIZE; rank++)
            assert_int_equal(rnl_send(f->h.ep[rank], 0, NOTE, "x", 1), 0);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), SIZE - 3);
    }
    for (unsigned rank = 3; rank < SIZE; rank++)
        assert_false(is_cold(f->a, f->a->peer[rank].conn));
    assert_int_equal(rnl_get_counters(f->a)->warmed, 0);
}

static void a_cold_peer_is_heard_by_the_next_extract(void **state)
{
    struct fixture *f = *state;
    count_calls(f->cold);
    for (int i = 0; i < 3; i++) {
        let_cool(f);
        uint64_t rung = rnl_get_counters(f->cold)->bells_rung;
        for (int k = 0; k < 20; k++) /* a ring each: it may have taken what the first was for */
            assert_int_equal(rnl_send(f->cold, 0, NOTE, "12345678", 8), 0);
        assert_int_equal(rnl_get_counters(f->cold)->bells_rung, rung + 20);
        assert_int_equal(rnl_send(f->hot, 0, NOTE, "1234", 4), 0);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 164);
        assert_false(is_cold(f->a, f->conn));
        assert_int_equal(rnl_send(f->cold, 0, NOTE, "12", 2), 0); /* it is polled now */
        assert_int_equal(rnl_get_counters(f->cold)->bells_rung, rung + 20);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 2);
        assert_int_equal(f->in.count, 22 * (i + 1));
    }
    assert_int_equal(env.wakes, 0); /* the receiver was awake: no system call */
    assert_int_equal(env.raises, 0);
}

static void a_cold_peer_is_heard_in_rnl_wait(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    assert_int_equal(rnl_send(f->cold, 0, NOTE, "12345678", 8), 0);
    assert_int_equal(rnl_wait(f->a, -1), 8);
    assert_int_equal(env.parks, 0);
}

static void who_comes_back_soon_is_cooled_later(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    unsigned rounds[6] = {0};
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(rnl_send(f->cold, 0, NOTE, "x", 1), 0);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
        rounds[i] = let_cool(f);
    }
    assert_true(rounds[5] > 3 * rounds[1]);
    assert_in_range(rounds[5], 100, 200);
    look_around(f->a, 8 * rounds[5] + 10); /* and is forgiven */
    assert_int_equal(rnl_send(f->cold, 0, NOTE, "x", 1), 0);
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
    assert_in_range(let_cool(f), 3, 8);
}

static void answers_come_from_cold_peers(void **state)
{
    struct fixture *f = *state;
    const struct rnl_begin b = {.peer = STILL, .handler = ASK, .answer = 3};
    rnl_stream *s;
    assert_int_equal(rnl_begin(f->a, &b, &s), 0);
    assert_int_equal(rnl_end(s), 0);
    let_cool(f);
    drain(f->cold);
    assert_int_equal(f->in.count, 0);
    (void)!rnl_extract(f->a, SIZE_MAX);
    assert_int_equal(f->in.count, 1);
    assert_false(is_cold(f->a, f->conn));
}

/* ---- the bell is a hint ---- */

static void a_lost_hint_is_found_by_a_round(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    assert_int_equal(rnl_send(f->cold, 0, NOTE, "x", 1), 0);
    take_back(f);
    unsigned extracts = 1;
    while (rnl_extract(f->a, SIZE_MAX) == 0)
        extracts++;
    assert_in_range(extracts, 2, 130);
    assert_int_equal(f->in.count, 1);
}

/* ... also by an endpoint that always finds something else. */
static void a_lost_hint_is_found_by_a_busy_endpoint(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    assert_int_equal(rnl_send(f->cold, 0, NOTE, "12345678", 8), 0);
    take_back(f);
    int64_t got = 0;
    for (unsigned i = 0; got != 9 && i < 2000; i++) {
        assert_int_equal(rnl_send(f->hot, 0, NOTE, "x", 1), 0);
        got = rnl_extract(f->a, SIZE_MAX);
        drain(f->hot); /* acknowledgements */
    }
    assert_int_equal(got, 9);
    f->in.count = 0;
}

static void a_lost_hint_is_found_before_sleeping(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    env.step_ns = 0; /* no round */
    assert_int_equal(rnl_send(f->cold, 0, NOTE, "12345678", 8), 0);
    take_back(f);
    assert_int_equal(rnl_wait(f->a, 10000 * (int64_t)MS), 8);
    assert_int_equal(env.parks, 0);
}

static void a_bell_that_rings_for_nothing_is_not_listened_to(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    env.step_ns = 0;
    for (unsigned i = 0; i < 60; i++) {
        atomic_fetch_add(&f->a->env->bell->word, 1); /* a stranger */
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
        valid(f->a);
    }
    assert_ptr_equal(f->a->bell, &f->a->deaf);
    env.step_ns = MS;
    assert_int_equal(rnl_send(f->cold, 0, NOTE, "x", 1), 0);
    unsigned extracts = 1;
    while (rnl_extract(f->a, SIZE_MAX) == 0)
        extracts++;
    assert_in_range(extracts, 1, 130);
    assert_int_equal(f->in.count, 1);
    let_cool(f);
    assert_ptr_equal(f->a->bell, &f->a->env->bell->word); /* and again */
    assert_int_equal(rnl_send(f->cold, 0, NOTE, "x", 1), 0);
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
}

static void without_a_heavy_fence_senders_fence(void **state)
{
    struct fixture *f = *state;
    env.ops.heavy_fence = no_fence; /* not any more */
    let_cool(f);
    assert_int_equal(f->a->env->facts.have_membarrier, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rnl_send(f->cold, 0, NOTE, "x", 1), 0);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
        assert_int_equal(f->cold->peer[0].conn->pair.senders_fence, 1);
        let_cool(f);
    }
}

/* Arrives between two steps of the cooling: what is armed then is looked at once more. */
static rnl_endpoint *late_sender;
static int fence_late(struct rnl_env *e)
{
    rnl_endpoint *sender = late_sender;
    late_sender = NULL;
    if (sender) { /* it does not see yet that it has to ring */
        static const _Atomic uint32_t not_armed;
        struct rnl_tx *t = &sender->peer[0].conn->pair.tx[0];
        const _Atomic uint32_t *armed = t->armed;
        t->armed = &not_armed;
        TEST_MUST(rnl_send(sender, 0, NOTE, "x", 1) == 0);
        t->armed = armed;
    }
    return env.was->heavy_fence(e);
}

static void what_comes_while_it_is_cooled_is_seen(void **state)
{
    struct fixture *f = *state;
    look_around(f->a, 1);
    stir(f);
    late_sender = f->cold;
    env.ops.heavy_fence = fence_late;
    for (unsigned i = 0; i < 64 * 64 && late_sender; i++)
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
    assert_null(late_sender);
    env.step_ns = 0; /* no further round */
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
    assert_int_equal(f->in.count, 1);
}

/* ---- sleep ---- */

static void a_sleeper_is_woken_by_cold_peers_too(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    env.step_ns = 1;
    assert_int_equal(rnl_wait(f->a, 300 * (int64_t)MS), RNL_TIMED_OUT);
    assert_true(env.parks > 0);
    for (uint32_t i = 0; i < SIZE; i++)
        assert_int_equal(env.parked[i], RNL_ARMED_WAKE | (i < f->a->hot_count ? RNL_ARMED_LINES : COLD));
    for (uint32_t i = 0; i < SIZE; i++)
        assert_int_equal(armed_of(f->a->hot[i]), i < f->a->hot_count ? 0 : COLD);
    assert_true(is_cold(f->a, f->conn));
    count_calls(f->cold);
    struct rnl_idle other = {.deadline_ns = UINT64_MAX}; /* as if one slept */
    f->a->asleep = &other;
    rnl_ep_arm_all(f->a);
    assert_int_equal(rnl_send(f->cold, 0, NOTE, "x", 1), 0);
    assert_int_equal(env.wakes, 1);
    f->a->asleep = NULL;
    rnl_ep_arm_all(f->a);
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
}

static int readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, ms);
    TEST_MUST(n >= 0);
    return n && p.revents & POLLIN;
}

static void a_descriptor_tells_of_cold_peers(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    env.ops.now_ns = env.was->now_ns;
    int fd = rnl_fd(f->a);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 100 && readable(fd, 0); k++)
            assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
        assert_false(readable(fd, 0));
        assert_int_equal(rnl_send(i == 1 ? f->hot : f->cold, 0, NOTE, "x", 1), 0);
        assert_true(readable(fd, 1000));
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
    }
}

/* Whoever watches a descriptor is rung by hot peers, too: that must not make it deaf for cold ones. */
static void what_hot_peers_ring_for_is_no_spoiling(void **state)
{
    struct fixture *f = *state;
    let_cool(f);
    env.ops.now_ns = env.was->now_ns;
    int fd = rnl_fd(f->a);
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 100 && readable(fd, 0); k++)
            assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
        assert_int_equal(rnl_send(f->hot, 0, NOTE, "x", 1), 0);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
    }
    assert_true(is_cold(f->a, f->conn));
    assert_int_equal(rnl_send(f->hot, 0, NOTE, "x", 1), 0);
    assert_int_equal(rnl_send(f->cold, 0, NOTE, "y", 1), 0);
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_still_is_not_polled),
        TEST(what_is_busy_stays_hot),
        TEST(a_cold_peer_is_heard_by_the_next_extract),
        TEST(a_cold_peer_is_heard_in_rnl_wait),
        TEST(who_comes_back_soon_is_cooled_later),
        TEST(answers_come_from_cold_peers),
        TEST(a_lost_hint_is_found_by_a_round),
        TEST(a_lost_hint_is_found_by_a_busy_endpoint),
        TEST(a_lost_hint_is_found_before_sleeping),
        TEST(a_bell_that_rings_for_nothing_is_not_listened_to),
        TEST(without_a_heavy_fence_senders_fence),
        TEST(what_comes_while_it_is_cooled_is_seen),
        TEST(a_sleeper_is_woken_by_cold_peers_too),
        TEST(a_descriptor_tells_of_cold_peers),
        TEST(what_hot_peers_ring_for_is_no_spoiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
