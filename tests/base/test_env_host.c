/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_env_host.c - the real host's clock, chance, sleeping and fence. Times are only ever bounded from below. */
#include "base/copy.h"
#include "base/env.h"
#include "support/unit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct rnl_env env;

static int set_up(void **state)
{
    (void)state;
    env.facts.keep_going = env.facts.launched = 77;
    rnl_host_facts(&env.facts);
    return 0;
}

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void facts_are_plausible_and_not_the_jobs(void **state)
{
    (void)state;
    assert_true(env.facts.cpus >= 1);
    assert_int_equal(env.facts.page_bytes, sysconf(_SC_PAGESIZE));
    assert_int_equal(env.facts.wide_copy, rnl_copy_detect());
    assert_true(env.facts.have_membarrier <= 1);
    assert_int_equal(env.facts.keep_going, 77);
    assert_int_equal(env.facts.launched, 77);
    print_message("cpus %u, membarrier %u, time-stamp counter %llu kHz\n", env.facts.cpus, env.facts.have_membarrier,
                  (unsigned long long)env.facts.tsc_khz);
}

static void a_trip_takes_time_and_leaves_nothing_open(void **state)
{
    (void)state;
    int before = dup(0);
    close(before);
    uint64_t began = clock_ns();
    uint32_t trip = rnl_host_round_trip_ns();
    uint64_t took = clock_ns() - began;
    int after = dup(0);
    assert_true(trip > 0 && trip <= took);
    assert_int_equal(before, after);
    close(after);
}

static void chance_does_not_repeat(void **state)
{
    enum { N = 1000 };
    static uint64_t r[N];
    uint64_t ones = 0, zeros = 0;
    (void)state;
    for (int i = 0; i < N; i++) {
        r[i] = rnl_host_random(&env);
        ones |= r[i];
        zeros |= ~r[i];
        for (int k = 0; k < i; k++)
            assert_true(r[i] != r[k]);
    }
    assert_true(ones == UINT64_MAX && zeros == UINT64_MAX);
}

static void a_forked_child_draws_other_numbers(void **state)
{
    uint64_t theirs = 0;
    int p[2];
    (void)state;
    (void)rnl_host_random(&env);
    assert_int_equal(pipe(p), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        uint64_t r = rnl_host_random(&env);
        _exit(write(p[1], &r, sizeof r) != (ssize_t)sizeof r);
    }
    assert_int_equal(read(p[0], &theirs, sizeof theirs), sizeof theirs);
    assert_true(theirs != rnl_host_random(&env));
    waitpid(pid, NULL, 0);
    close(p[0]);
    close(p[1]);
}

static void park_returns_at_once_if_the_word_differs(void **state)
{
    _Atomic uint32_t word = 5;
    (void)state;
    rnl_host_park(&env, &word, 4, UINT64_MAX);
    assert_int_equal(word, 5);
}

static void park_sleeps_until_its_deadline(void **state)
{
    _Atomic uint32_t word = 5;
    (void)state;
    uint64_t start = rnl_host_now_ns(&env), end = start + 30000000;
    struct timespec cpu0, cpu1;
    int returns = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu0);
    for (; rnl_host_now_ns(&env) < end; returns++)
        rnl_host_park(&env, &word, 5, end);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu1);
    int64_t used = (cpu1.tv_sec - cpu0.tv_sec) * 1000000000 + cpu1.tv_nsec - cpu0.tv_nsec;
    assert_true(used < 15000000); /* it may return for no reason, but not for ever */
    assert_true(returns < 1000);
}

/* -- wake -- */

struct sleeper {
    _Atomic uint32_t word;
    _Atomic uint32_t woken;
};

static void sleep_until_changed(struct sleeper *s, uint64_t deadline_ns)
{
    while (atomic_load_explicit(&s->word, memory_order_acquire) == 0 && rnl_host_now_ns(&env) < deadline_ns)
        rnl_host_park(&env, &s->word, 0, deadline_ns);
    atomic_fetch_add_explicit(&s->woken, atomic_load_explicit(&s->word, memory_order_acquire), memory_order_release);
}

static void *sleeper_main(void *arg)
{
    sleep_until_changed(arg, UINT64_MAX);
    return NULL;
}

static void wake_ends_the_sleep_of_every_thread(void **state)
{
    struct sleeper s = {0, 0};
    pthread_t t[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&t[i], NULL, sleeper_main, &s), 0);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    assert_int_equal(s.woken, 0);
    atomic_store_explicit(&s.word, 1, memory_order_release);
    rnl_host_wake(&env, &s.word);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(s.woken, 3);
}

static void on_signal(int sig)
{
    (void)sig;
}

static void *parker(void *arg)
{
    struct sleeper *s = arg;
    rnl_host_park(&env, &s->word, 0, UINT64_MAX);
    atomic_store_explicit(&s->woken, 1, memory_order_release);
    return NULL;
}

static void a_signal_handler_ends_the_sleep(void **state)
{
    struct sleeper s = {0, 0};
    struct sigaction act = {.sa_handler = on_signal}, old;
    pthread_t t;
    (void)state;
    sigaction(SIGUSR1, &act, &old);
    assert_int_equal(pthread_create(&t, NULL, parker, &s), 0);
    while (!atomic_load_explicit(&s.woken, memory_order_acquire)) {
        pthread_kill(t, SIGUSR1);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    pthread_join(t, NULL);
    sigaction(SIGUSR1, &old, NULL);
}

/* -- the process-wide fence -- */

static void without_membarrier_there_is_no_fence(void **state)
{
    struct rnl_env e = env;
    (void)state;
    e.facts.have_membarrier = 0;
    assert_true(rnl_host_heavy_fence(&e) < 0);
    if (env.facts.have_membarrier)
        assert_int_equal(rnl_host_heavy_fence(&env), 0);
}

enum { ROUNDS = 100000 };
static struct { /* a line each */
    _Alignas(64) _Atomic uint32_t meet[2][16];
    _Alignas(64) _Atomic uint32_t said[2][16]; /* by light, by heavy */
} fence;
static uint32_t light_saw[ROUNDS], heavy_saw[ROUNDS];

static void meet(int me, uint32_t round)
{
    atomic_store_explicit(&fence.meet[me][0], round, memory_order_release);
    for (unsigned i = 0; atomic_load_explicit(&fence.meet[!me][0], memory_order_acquire) < round; i++)
        if (i > 2000)
            sched_yield();
}

static void dawdle(uint32_t turns)
{
    for (volatile uint32_t k = 0; k < turns; k++)
        ;
}

/* Says, then looks, with nothing but a compiler barrier between: as a sender does. */
static void *light_main(void *arg)
{
    (void)arg;
    for (uint32_t r = 1; r <= ROUNDS; r++) {
        meet(0, r);
        dawdle(r * 2654435761u >> 24);
        atomic_store_explicit(&fence.said[0][0], r, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        light_saw[r - 1] = atomic_load_explicit(&fence.said[1][0], memory_order_relaxed);
    }
    return NULL;
}

static void the_fence_orders_both_sides(void **state)
{
    pthread_t t;
    int missed = 0, failed = 0;
    (void)state;
    if (!env.facts.have_membarrier) {
        print_message("skip: no membarrier here\n");
        skip();
    }
    assert_int_equal(pthread_create(&t, NULL, light_main, NULL), 0);
    for (uint32_t r = 1; r <= ROUNDS; r++) {
        meet(1, r);
        dawdle(r * 3266489917u >> 24);
        atomic_store_explicit(&fence.said[1][0], r, memory_order_relaxed);
        bool fenced = rnl_host_heavy_fence(&env) == 0;
        uint32_t saw = atomic_load_explicit(&fence.said[0][0], memory_order_relaxed);
        heavy_saw[r - 1] = fenced ? saw : r; /* where the kernel lacks memory, nothing is promised */
        failed += !fenced;
    }
    pthread_join(t, NULL);
    for (uint32_t r = 1; r <= ROUNDS; r++)
        missed += light_saw[r - 1] < r && heavy_saw[r - 1] < r;
    assert_int_equal(missed, 0);
    assert_true(failed < ROUNDS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_plausible_and_not_the_jobs),
        cmocka_unit_test(a_trip_takes_time_and_leaves_nothing_open),
        cmocka_unit_test(chance_does_not_repeat),
        cmocka_unit_test(a_forked_child_draws_other_numbers),
        cmocka_unit_test(park_returns_at_once_if_the_word_differs),
        cmocka_unit_test(park_sleeps_until_its_deadline),
        cmocka_unit_test(wake_ends_the_sleep_of_every_thread),
        cmocka_unit_test(a_signal_handler_ends_the_sleep),
        cmocka_unit_test(without_membarrier_there_is_no_fence),
        cmocka_unit_test(the_fence_orders_both_sides),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
