/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_armed.c - polled and armed connections: one that is idle is armed and no longer polled, and nothing that comes
 * there is lost or late; who dies, breaks the protocol, or calls from several threads meanwhile. The clock of the
 * endpoint under test is the test's, so that rounds are when it says. */
#include "stream/inbox.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "endpoint/poll.h"

enum { ARMED = RNL_ARMED_CELLS | RNL_ARMED_BY_BELL };
enum { NOTE = 1, ASK = 2, ANSWER = 3, SIZE = 9, STILL = 8 /* a peer that nobody has heard of for long */ };
#define MS ((uint64_t)1000000)

struct fixture {
    struct test_hub h;
    rnl_endpoint *a, *busy, *still; /* ranks 0, 1 and STILL */
    struct rnl_conn *conn;          /* of `a` to `still` */
    struct inbox in;
    int deaths;
};

/* ---- the clock, and counted system calls ---- */

static struct {
    const struct rnl_env_ops *was;
    struct rnl_env_ops ops;
    rnl_endpoint *ep;
    uint64_t now_ns, step_ns, parks, wakes, raises, fences;
    uint32_t parked[SIZE]; /* how all were armed in the last park */
    void (*in_park)(void);
} env;

static uint64_t now_ns(struct rnl_env *e)
{
    (void)e;
    return env.now_ns += env.step_ns;
}
static uint32_t armed_of(const struct rnl_conn *conn)
{
    return atomic_load(&conn->channel.mine->armed) & (RNL_ARMED_STEP - 1);
}
static void park(struct rnl_env *e, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    (void)e, (void)word, (void)expected;
    env.parks++;
    for (uint32_t i = 0; i < env.ep->poll.connected; i++)
        env.parked[i] = armed_of(env.ep->fast.conns[i]);
    env.now_ns = deadline_ns;
    if (env.in_park)
        env.in_park();
}
static void count_wake(struct rnl_env *e, _Atomic uint32_t *word)
{
    env.wakes++;
    env.was->wake(e, word);
}
static void count_raise(struct rnl_env *e, uint32_t rank)
{
    env.raises++;
    env.was->fd_raise(e, rank);
}
static int count_fence(struct rnl_env *e)
{
    env.fences++;
    return env.was->heavy_fence(e);
}
static int no_fence(struct rnl_env *e)
{
    (void)e;
    return RNL_ERR_SYSTEM;
}

static void take_env(struct fixture *f)
{
    env.was = f->a->env->ops;
    env.ops = *env.was;
    env.ops.now_ns = now_ns;
    env.ops.park = park;
    env.ops.heavy_fence = count_fence;
    env.ep = f->a;
    env.now_ns = 1;
    env.step_ns = MS;
    env.parks = env.wakes = env.raises = env.fences = 0;
    env.in_park = NULL;
    f->a->env->ops = &env.ops;
}

/* Also of who sends. */
static void count_calls(rnl_endpoint *sender)
{
    static struct rnl_env_ops ops;
    ops = *sender->env->ops;
    ops.wake = count_wake;
    ops.fd_raise = count_raise;
    sender->env->ops = &ops;
}

/* ---- fixture ---- */

static void valid(const rnl_endpoint *ep)
{
    TEST_MUST(ep->fast.polled <= ep->poll.connected && ep->poll.connected <= ep->size);
    TEST_MUST(ep->fast.next_polled == 0 || ep->fast.next_polled < ep->fast.polled);
    for (uint32_t i = 0; i < ep->poll.connected; i++) {
        const struct rnl_conn *conn = ep->fast.conns[i];
        TEST_MUST(conn->poll_index == i && ep->peer[conn->rank].conn == conn && !conn->gone);
        TEST_MUST(i < ep->fast.polled || (armed_of(conn) & ARMED) == ARMED);
        TEST_MUST(i >= ep->fast.polled || !(armed_of(conn) & RNL_ARMED_BY_BELL));
    }
    TEST_MUST(ep->fast.polled == ep->poll.connected || ep->fast.bell == &ep->env->bell->word ||
              ep->fast.bell == &ep->poll.masked);
    TEST_MUST(atomic_load(&ep->poll.masked) == ep->fast.bell_seen || ep->fast.bell != &ep->poll.masked);
}

static int is_armed(const rnl_endpoint *ep, const struct rnl_conn *conn)
{
    return conn->poll_index >= ep->fast.polled;
}

static int answer(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    TEST_MUST(rnl_reply(s, ANSWER, "yes", 3) == 0);
    return RNL_DONE;
}

static void on_death(void *arg, unsigned peer, enum rnl_death_reason reason)
{
    struct fixture *f = arg;
    (void)peer, (void)reason;
    f->deaths++;
}

/* Extracts that find nothing, for so many rounds, since the clock goes on. */
static void look_around(rnl_endpoint *ep, unsigned rounds)
{
    for (uint32_t end = ep->poll.rounds + rounds; ep->poll.rounds != end;) {
        TEST_MUST(rnl_extract(ep, SIZE_MAX) == 0);
        valid(ep);
    }
}

/* Has the peers that are always polled send something, so that others are armed. */
static void stir(struct fixture *f)
{
    unsigned before = f->in.count;
    for (unsigned rank = 0; rank < RNL_POLLED_ALWAYS; rank++)
        TEST_MUST(f->h.dead[rank] || rnl_send(f->h.ep[rank], 0, NOTE, "x", 1) == 0);
    drain(f->a);
    f->in.count = before;
}

/* Returns after how many rounds. */
static unsigned let_be_armed(struct fixture *f)
{
    unsigned rounds = 0;
    if (is_armed(f->a, f->conn))
        return 0;
    look_around(f->a, 1);
    stir(f);
    for (; rounds < 5000 && !is_armed(f->a, f->conn); rounds++)
        look_around(f->a, 1);
    TEST_MUST(is_armed(f->a, f->conn));
    return rounds;
}

static void open_all(struct fixture *f, unsigned size, const struct rnl_options *opt)
{
    test_hub_open(&f->h, size, opt);
    f->a = f->h.ep[0], f->busy = f->h.ep[1], f->still = f->h.ep[STILL];
    for (unsigned i = 0; i < size; i++) {
        TEST_MUST(rnl_handler_stream(f->h.ep[i], NOTE, inbox_stream, &f->in) == NOTE);
        TEST_MUST(rnl_handler_stream(f->h.ep[i], ASK, answer, NULL) == ASK);
        TEST_MUST(rnl_handler_stream(f->h.ep[i], ANSWER, inbox_stream, &f->in) == ANSWER);
    }
    acquaint(&f->h);
    f->in.count = 0;
    f->conn = f->a->peer[STILL].conn;
    rnl_on_death(f->a, on_death, f);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    open_all(f, SIZE, NULL);
    take_env(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    f->a->env->ops = env.was;
    int status = test_hub_close(&f->h);
    inbox_free(&f->in);
    free(f);
    return status;
}

/* As a stranger would that wants to hide what was rung. */
static void take_back(struct fixture *f)
{
    atomic_fetch_sub(&f->a->env->bell->word, 1);
}

/* ---- armed and polled again ---- */

static void what_is_still_is_not_polled(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(f->a->fast.polled, SIZE);
    look_around(f->a, 1);
    assert_int_equal(f->a->fast.polled, SIZE); /* not at once */
    let_be_armed(f);
    assert_int_equal(f->a->fast.polled, RNL_POLLED_ALWAYS);
    assert_int_equal(f->a->poll.connected, SIZE);
    assert_int_equal(env.fences, 1); /* for all of them */
    assert_int_equal(rnl_get_counters(f->a)->cooled, SIZE - RNL_POLLED_ALWAYS);
    look_around(f->a, 200);
    assert_int_equal(env.fences, 1);
    for (uint32_t i = 0; i < SIZE; i++)
        assert_int_equal(armed_of(f->a->fast.conns[i]), i < f->a->fast.polled ? 0 : ARMED);
}

static void an_armed_peer_is_heard_by_the_next_extract(void **state)
{
    struct fixture *f = *state;
    count_calls(f->still);
    for (int i = 0; i < 3; i++) {
        let_be_armed(f);
        uint64_t rung = rnl_get_counters(f->still)->bells_rung;
        for (int k = 0; k < 20; k++) /* a ring each: it may have taken what the first was for */
            assert_int_equal(rnl_send(f->still, 0, NOTE, "12345678", 8), 0);
        assert_int_equal(rnl_get_counters(f->still)->bells_rung, rung + 20);
        assert_int_equal(rnl_send(f->busy, 0, NOTE, "1234", 4), 0);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 164);
        assert_false(is_armed(f->a, f->conn));
        assert_int_equal(rnl_send(f->still, 0, NOTE, "12", 2), 0); /* it is polled now */
        assert_int_equal(rnl_get_counters(f->still)->bells_rung, rung + 20);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 2);
        assert_int_equal(f->in.count, 22 * (i + 1));
    }
    assert_int_equal(env.wakes, 0); /* the receiver was awake: no system call */
    assert_int_equal(env.raises, 0);
}

static void who_comes_back_soon_is_armed_later(void **state)
{
    struct fixture *f = *state;
    let_be_armed(f);
    unsigned rounds[6] = {0};
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(rnl_send(f->still, 0, NOTE, "x", 1), 0);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
        rounds[i] = let_be_armed(f);
    }
    assert_true(rounds[5] > 3 * rounds[1]);
    assert_in_range(rounds[5], 100, 200);
    look_around(f->a, 8 * rounds[5] + 10); /* and is forgiven */
    assert_int_equal(rnl_send(f->still, 0, NOTE, "x", 1), 0);
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
    assert_in_range(let_be_armed(f), 3, 8);
}

/* ---- the bell is a hint ---- */

static void a_lost_hint_is_found_by_a_round(void **state)
{
    struct fixture *f = *state;
    let_be_armed(f);
    assert_int_equal(rnl_send(f->still, 0, NOTE, "x", 1), 0);
    take_back(f);
    unsigned extracts = 1;
    while (rnl_extract(f->a, SIZE_MAX) == 0)
        extracts++;
    assert_in_range(extracts, 2, 130);
    assert_int_equal(f->in.count, 1);
}

static void a_lost_hint_is_found_before_sleeping(void **state)
{
    struct fixture *f = *state;
    let_be_armed(f);
    env.step_ns = 0; /* no round */
    assert_int_equal(rnl_send(f->still, 0, NOTE, "12345678", 8), 0);
    take_back(f);
    assert_int_equal(rnl_wait(f->a, 10000 * (int64_t)MS), 8);
    assert_int_equal(env.parks, 0);
}

static void a_bell_that_rings_for_nothing_is_not_listened_to(void **state)
{
    struct fixture *f = *state;
    let_be_armed(f);
    env.step_ns = 0;
    for (unsigned i = 0; i < 60; i++) {
        atomic_fetch_add(&f->a->env->bell->word, 1); /* a stranger */
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
        valid(f->a);
    }
    assert_ptr_equal(f->a->fast.bell, &f->a->poll.masked);
    env.step_ns = MS;
    assert_int_equal(rnl_send(f->still, 0, NOTE, "x", 1), 0);
    unsigned extracts = 1;
    while (rnl_extract(f->a, SIZE_MAX) == 0)
        extracts++;
    assert_in_range(extracts, 1, 130);
    assert_int_equal(f->in.count, 1);
    let_be_armed(f);
    assert_ptr_equal(f->a->fast.bell, &f->a->env->bell->word); /* and again */
    assert_int_equal(rnl_send(f->still, 0, NOTE, "x", 1), 0);
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
}

static void without_a_heavy_fence_senders_fence(void **state)
{
    struct fixture *f = *state;
    env.ops.heavy_fence = no_fence; /* not any more */
    let_be_armed(f);
    assert_int_equal(f->a->env->facts.have_membarrier, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rnl_send(f->still, 0, NOTE, "x", 1), 0);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
        assert_int_equal(f->still->peer[0].conn->channel.senders_fence, 1);
        let_be_armed(f);
    }
}

/* Arrives between two steps of the arming: what is armed then is looked at once more. */
static rnl_endpoint *late_sender;
static int fence_late(struct rnl_env *e)
{
    rnl_endpoint *sender = late_sender;
    late_sender = NULL;
    if (sender) { /* it does not see yet that it has to ring */
        static const _Atomic uint32_t not_armed;
        struct rnl_tx *t = &sender->peer[0].conn->channel.tx[0];
        const _Atomic uint32_t *armed = t->armed;
        t->armed = &not_armed;
        TEST_MUST(rnl_send(sender, 0, NOTE, "x", 1) == 0);
        t->armed = armed;
    }
    return env.was->heavy_fence(e);
}

static void what_comes_while_it_is_armed_is_seen(void **state)
{
    struct fixture *f = *state;
    look_around(f->a, 1);
    stir(f);
    late_sender = f->still;
    env.ops.heavy_fence = fence_late;
    for (unsigned i = 0; i < 64 * 64 && late_sender; i++)
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
    assert_null(late_sender);
    env.step_ns = 0; /* no further round */
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
    assert_int_equal(f->in.count, 1);
}

/* ---- sleep ---- */

static void a_sleeper_is_woken_by_armed_peers_too(void **state)
{
    struct fixture *f = *state;
    let_be_armed(f);
    env.step_ns = 1;
    assert_int_equal(rnl_wait(f->a, 300 * (int64_t)MS), RNL_TIMED_OUT);
    assert_true(env.parks > 0);
    for (uint32_t i = 0; i < SIZE; i++)
        assert_int_equal(env.parked[i], RNL_ARMED_WAKE | (i < f->a->fast.polled ? RNL_ARMED_CELLS : ARMED));
    for (uint32_t i = 0; i < SIZE; i++)
        assert_int_equal(armed_of(f->a->fast.conns[i]), i < f->a->fast.polled ? 0 : ARMED);
    assert_true(is_armed(f->a, f->conn));
    count_calls(f->still);
    struct rnl_idle other = {.deadline_ns = UINT64_MAX}; /* as if one slept */
    f->a->wait.asleep = &other;
    rnl_ep_arm_all(f->a);
    assert_int_equal(rnl_send(f->still, 0, NOTE, "x", 1), 0);
    assert_int_equal(env.wakes, 1);
    f->a->wait.asleep = NULL;
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

static void a_descriptor_tells_of_armed_peers(void **state)
{
    struct fixture *f = *state;
    let_be_armed(f);
    env.ops.now_ns = env.was->now_ns;
    int fd = rnl_fd(f->a);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 100 && readable(fd, 0); k++)
            assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
        assert_false(readable(fd, 0));
        assert_int_equal(rnl_send(i == 1 ? f->busy : f->still, 0, NOTE, "x", 1), 0);
        assert_true(readable(fd, 1000));
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
    }
}

/* ---- peers that come, go, wait and die ---- */

static void an_armed_peer_that_dies_is_heard_to_the_end(void **state)
{
    struct fixture *f = *state;
    let_be_armed(f);
    assert_int_equal(rnl_send(f->still, 0, NOTE, "x", 1), 0);
    take_back(f);
    test_hub_kill(&f->h, STILL, RNL_DEATH_SIGNAL, 9);
    for (int i = 0; i < 5; i++)
        (void)!rnl_extract(f->a, SIZE_MAX), valid(f->a);
    assert_int_equal(f->in.count, 1);
    assert_int_equal(f->deaths, 1);
    assert_int_equal(f->a->poll.connected, SIZE - 1);
    assert_int_equal(rnl_send(f->a, STILL, NOTE, "x", 1), RNL_ERR_PEER_DEAD);
    test_hub_kill(&f->h, 1, RNL_DEATH_SIGNAL, 9); /* and a polled one, among armed ones */
    look_around(f->a, 2);
    assert_int_equal(f->a->poll.connected, SIZE - 2);
    assert_int_equal(f->deaths, 2);
}

static void an_armed_peer_that_breaks_the_protocol_is_dead(void **state)
{
    struct fixture *f = *state;
    let_be_armed(f);
    atomic_store(&f->still->peer[0].conn->channel.mine->version, 77);
    f->conn->channel.joined = 0;
    assert_int_equal(rnl_ep_ring_bell(f->a, f->conn, RNL_ARMED_CELLS), 0);
    look_around(f->a, 1);
    assert_int_equal(f->deaths, 1);
    assert_int_equal(f->a->poll.connected, SIZE - 1);
    f->still->peer[0].conn->channel.joined = 1;
}

/* ---- threads ---- */

enum { LETTERS = 300 };
struct crowd {
    rnl_endpoint *shared;
    struct test_hub *h;
    _Atomic unsigned got;
};
static int count(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct crowd *c = ctx;
    (void)buf, (void)n, (void)peer;
    atomic_fetch_add(&c->got, 1);
    return RNL_DONE;
}
struct writer {
    struct crowd *c;
    unsigned rank;
};
static void *write_letters(void *arg)
{
    struct writer *w = arg;
    struct test_random r = test_random_of(11, w->rank);
    for (unsigned i = 0; i < LETTERS; i++) {
        TEST_MUST(rnl_send(w->c->h->ep[w->rank], 0, NOTE, &i, sizeof i) == 0);
        if (test_random_one_in(&r, 8)) /* long enough to be armed, now and then */
            test_sleep_ms(1 + test_random_one_in(&r, 4) * 12);
    }
    return NULL;
}
static void *read_letters(void *arg)
{
    struct crowd *c = arg;
    struct test_random r = test_random_of(12, (uint64_t)(uintptr_t)&r);
    while (atomic_load(&c->got) < LETTERS * (SIZE - 1)) {
        int64_t got = test_random_one_in(&r, 3) ? rnl_wait(c->shared, 20 * (int64_t)MS) : rnl_extract(c->shared, 100);
        TEST_MUST(got >= 0 || got == RNL_TIMED_OUT);
    }
    return NULL;
}

static void threads_share_an_endpoint_with_armed_peers(void **state)
{
    const struct rnl_options opt = {.flags = RNL_SHARED};
    struct test_hub h;
    struct crowd c = {.h = &h};
    struct writer w[SIZE];
    pthread_t writer[SIZE], reader[2];
    (void)state;
    test_hub_open(&h, SIZE, &opt);
    c.shared = h.ep[0];
    for (unsigned i = 0; i < SIZE; i++)
        assert_int_equal(rnl_handler_whole(h.ep[i], NOTE, count, &c, 0), NOTE);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&reader[i], NULL, read_letters, &c), 0);
    for (unsigned i = 1; i < SIZE; i++) {
        w[i] = (struct writer){&c, i};
        assert_int_equal(pthread_create(&writer[i], NULL, write_letters, &w[i]), 0);
    }
    for (unsigned i = 1; i < SIZE; i++)
        pthread_join(writer[i], NULL);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(reader[i], NULL);
    assert_int_equal(atomic_load(&c.got), LETTERS * (SIZE - 1));
    valid(h.ep[0]);
    assert_int_equal(test_hub_close(&h), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_still_is_not_polled),
        TEST(an_armed_peer_is_heard_by_the_next_extract),
        TEST(who_comes_back_soon_is_armed_later),
        TEST(a_lost_hint_is_found_by_a_round),
        TEST(a_lost_hint_is_found_before_sleeping),
        TEST(a_bell_that_rings_for_nothing_is_not_listened_to),
        TEST(without_a_heavy_fence_senders_fence),
        TEST(what_comes_while_it_is_armed_is_seen),
        TEST(a_sleeper_is_woken_by_armed_peers_too),
        TEST(a_descriptor_tells_of_armed_peers),
        TEST(an_armed_peer_that_dies_is_heard_to_the_end),
        TEST(an_armed_peer_that_breaks_the_protocol_is_dead),
        cmocka_unit_test(threads_share_an_endpoint_with_armed_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
