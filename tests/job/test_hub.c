/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hub: a job of threads, and the job of one. */
#include "base/bell.h"
#include "job/job.h"
#include "open/open.h"

#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/unit.h"

enum { MS = 1000000 };

static struct rnl_env *member(rnl_hub *hub, uint32_t rank)
{
    struct rnl_env *env = NULL;
    const struct rnl_options opt = {.size = sizeof opt, .hub = hub, .hub_rank = rank};
    assert_int_equal(rnl_job_env(&opt, &env), 0);
    assert_int_equal(env->rank, rank);
    return env;
}

static struct rnl_event next(struct rnl_env *env)
{
    struct rnl_event e = {0};
    assert_int_equal(env->ops->event(env, &e), 1);
    return e;
}

static void nothing(struct rnl_env *env)
{
    struct rnl_event e;
    assert_int_equal(env->ops->event(env, &e), 0);
}

static void a_program_without_launcher_is_a_job_of_one(void **state)
{
    (void)state;
    struct rnl_env *env;
    unsetenv("RUNNEL_FD");
    assert_int_equal(rnl_job_env(NULL, &env), 0);
    assert_int_equal(env->rank, 0);
    assert_int_equal(env->size, 1);
    assert_int_not_equal(env->incarnation, 0);
    assert_int_equal(env->facts.launched, 0);
    assert_true(strlen(env->host) > 0);
    assert_ptr_equal(env->bell, env->bell_of(env, 0));
    int segment;
    void *a, *b;
    assert_int_equal(env->ops->segment_open(env, 0, 8192, UINT64_MAX, &segment), 0);
    assert_int_equal(env->ops->segment_map(env, segment, 4096, 4096, 1, &a), 0);
    assert_int_equal(env->ops->segment_map(env, segment, 4096, 4096, 0, &b), 0);
    assert_ptr_equal(a, b);
    assert_int_equal(env->ops->segment_map(env, segment, 4096, 8192, 0, &b), RNL_ERR_ARG);
    env->ops->segment_unmap(env, segment, a, 4096);
    env->ops->segment_close(env, segment);
    nothing(env);
    env->ops->close_report(env, 0, 5);
    struct rnl_event e = next(env);
    assert_int_equal(e.kind, RNL_EVENT_CLOSE_REQUEST);
    assert_int_equal(e.wave, 1);
    env->ops->close_report(env, 1, 5);
    assert_int_equal(next(env).kind, RNL_EVENT_CLOSE_DONE);
    env->ops->close(env);
}

static void both_sides_see_one_memory_at_one_address(void **state)
{
    (void)state;
    rnl_hub *hub;
    assert_int_equal(rnl_hub_new(3, &hub), 0);
    struct rnl_env *a = member(hub, 2), *b = member(hub, 0);
    int sa, sb, again;
    char *ma, *mb;
    uint32_t news = atomic_load(b->event_seq), bell = atomic_load(&b->bell->word);
    assert_int_equal(a->ops->segment_open(a, 0, 1 << 16, UINT64_MAX, &sa), 0);
    assert_int_not_equal(atomic_load(b->event_seq), news);
    assert_int_not_equal(atomic_load(&b->bell->word), bell);
    struct rnl_event e = next(b);
    assert_int_equal(e.kind, RNL_EVENT_CONNECT);
    assert_int_equal(e.rank, 2);
    assert_int_equal(e.incarnation, a->incarnation);
    assert_int_equal(b->ops->segment_open(b, 2, 1 << 12, UINT64_MAX, &sb), RNL_ERR_JOB); /* another size */
    assert_int_equal(b->ops->segment_open(b, 2, 1 << 16, UINT64_MAX, &sb), 0);
    assert_int_equal(b->ops->segment_open(b, 2, 1 << 16, UINT64_MAX, &again), RNL_ERR_JOB);
    nothing(a);
    a->ops->segment_map(a, sa, 0, 1 << 16, 1, (void **)&ma);
    b->ops->segment_map(b, sb, 0, 1 << 16, 1, (void **)&mb);
    assert_ptr_equal(ma, mb);
    for (int i = 0; i < 1 << 16; i++)
        assert_int_equal(ma[i], 0);
    b->ops->segment_close(b, sb); /* not mapped: it was not had */
    assert_int_equal(b->ops->segment_open(b, 2, 1 << 16, UINT64_MAX, &sb), 0);
    a->ops->segment_mapped(a, sa);
    b->ops->segment_mapped(b, sb);
    assert_int_equal(b->ops->segment_open(b, 2, 1 << 16, UINT64_MAX, &again), RNL_ERR_JOB);
    a->ops->segment_close(a, sa); /* the other side may still read */
    a->ops->close(a);
    mb[100] = 1;
    b->ops->segment_close(b, sb);
    b->ops->close(b);
    rnl_hub_free(hub);
}

static void a_place_is_taken_once(void **state)
{
    (void)state;
    rnl_hub *hub;
    struct rnl_env *env;
    assert_int_equal(rnl_hub_new(0, &hub), RNL_ERR_ARG);
    assert_int_equal(rnl_hub_new(100000, &hub), RNL_ERR_ARG);
    assert_int_equal(rnl_hub_new(2, &hub), 0);
    struct rnl_env *a = member(hub, 1);
    assert_int_equal(rnl_hub_env(hub, 1, 0, &env), RNL_ERR_JOB);
    assert_int_equal(rnl_hub_env(hub, 2, 0, &env), RNL_ERR_RANK);
    a->ops->close(a);
    assert_int_equal(rnl_hub_env(hub, 1, 0, &env), RNL_ERR_JOB);
    rnl_hub_free(hub);
    rnl_hub_free(NULL);
}

static void who_leaves_without_finishing_is_dead_to_the_others(void **state)
{
    (void)state;
    rnl_hub *hub;
    assert_int_equal(rnl_hub_new(3, &hub), 0);
    struct rnl_env *a = member(hub, 0), *b = member(hub, 1);
    int fd = b->ops->fd(b), segment;
    assert_true(fd >= 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    a->ops->close(a);
    assert_int_equal(poll(&p, 1, 0), 1);
    b->ops->fd_drain(b);
    assert_int_equal(poll(&p, 1, 0), 0);
    struct rnl_event e = next(b);
    assert_int_equal(e.kind, RNL_EVENT_DEATH);
    assert_int_equal(e.rank, 0);
    assert_int_equal(e.why, RNL_DEATH_EXIT);
    assert_int_equal(b->ops->segment_open(b, 0, 4096, UINT64_MAX, &segment), RNL_ERR_PEER_DEAD);
    /* who joins late is told what happened before */
    struct rnl_env *c = member(hub, 2);
    assert_int_equal(next(c).kind, RNL_EVENT_DEATH);
    c->ops->fd_raise(c, 1);
    assert_int_equal(poll(&p, 1, 0), 1);
    b->ops->fd_drain(b);
    b->ops->fd_raise(b, 1);
    assert_int_equal(poll(&p, 1, 0), 1);
    c->ops->fd_raise(c, 2);        /* has none */
    c->ops->fd_raise(c, 77);       /* is none */
    b->ops->close_report(b, 0, 0); /* waits for rank 2, and then no longer */
    nothing(b);
    rnl_hub_kill(hub, 2, RNL_DEATH_SIGNAL, 9);
    e = next(b);
    assert_int_equal(e.kind, RNL_EVENT_DEATH);
    assert_int_equal(e.why, RNL_DEATH_SIGNAL);
    assert_int_equal(e.detail, 9);
    assert_int_equal(next(b).kind, RNL_EVENT_CLOSE_REQUEST);
    b->ops->close_report(b, 1, 0);
    assert_int_equal(next(b).kind, RNL_EVENT_CLOSE_DONE);
    assert_int_equal(b->ops->close_report(b, 99, 0), RNL_ERR_JOB);
    b->ops->close(b);
    c->ops->close(c);
    rnl_hub_free(hub);
}

/* ---- threads ---- */

enum { THREADS = 6, ROUNDS = 40 };

struct member {
    pthread_t thread;
    rnl_hub *hub;
    uint32_t rank;
    uint64_t activity;
    int done, deaths;
};

/* Connects to everybody, counts in shared memory, dies half-way if its rank is odd, else closes in waves. */
static void *live(void *arg)
{
    struct member *m = arg;
    struct rnl_env *env = member(m->hub, m->rank);
    _Atomic uint64_t *word[THREADS] = {NULL};
    int segment[THREADS], reported = 0;
    uint64_t wave = 0;
    uint32_t seen = 0;
    for (uint32_t to = 0; to < THREADS; to++) {
        void *at;
        if (env->ops->segment_open(env, to, 4096, UINT64_MAX, &segment[to]) < 0)
            continue;
        assert_int_equal(env->ops->segment_map(env, segment[to], 0, 4096, 1, &at), 0);
        env->ops->segment_mapped(env, segment[to]);
        word[to] = at;
    }
    for (int i = 0; i < ROUNDS; i++) {
        for (uint32_t to = 0; to < THREADS; to++)
            if (word[to] != NULL)
                atomic_fetch_add_explicit(word[to], 1, memory_order_relaxed);
        m->activity++;
        env->ops->yield(env);
    }
    while (!m->done && m->rank % 2 == 0) {
        if (!reported) {
            assert_int_equal(env->ops->close_report(env, wave, m->activity), 0);
            reported = 1;
        }
        uint32_t bell = atomic_load(&env->bell->word);
        if (atomic_load_explicit(env->event_seq, memory_order_relaxed) == seen) {
            env->ops->park(env, &env->bell->word, bell, env->ops->now_ns(env) + 500u * MS);
            continue;
        }
        seen = atomic_load_explicit(env->event_seq, memory_order_relaxed);
        struct rnl_event e;
        while (env->ops->event(env, &e)) {
            m->deaths += e.kind == RNL_EVENT_DEATH;
            if (e.kind == RNL_EVENT_CLOSE_REQUEST) {
                wave = e.wave;
                reported = 0;
            }
            m->done |= e.kind == RNL_EVENT_CLOSE_DONE;
        }
    }
    for (uint32_t to = 0; to < THREADS; to++)
        if (word[to] != NULL)
            env->ops->segment_close(env, segment[to]);
    env->ops->close(env);
    return NULL;
}

static void threads_close_together_although_some_die(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        struct member m[THREADS] = {{0}};
        rnl_hub *hub;
        assert_int_equal(rnl_hub_new(THREADS, &hub), 0);
        for (uint32_t i = 0; i < THREADS; i++) {
            m[i].hub = hub;
            m[i].rank = i;
            pthread_create(&m[i].thread, NULL, live, &m[i]);
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            pthread_join(m[i].thread, NULL);
            assert_int_equal(m[i].done, i % 2 == 0);
            if (i % 2 == 0)
                assert_int_equal(m[i].deaths, THREADS / 2);
        }
        rnl_hub_free(hub);
    }
}

static void a_fork_leaves_the_hub_alone(void **state)
{
    (void)state;
    rnl_hub *hub;
    assert_int_equal(rnl_hub_new(2, &hub), 0);
    struct rnl_env *a = member(hub, 0), *b = member(hub, 1);
    pid_t pid = fork();
    if (pid == 0) {
        struct rnl_event e;
        int found = a->ops->event(a, &e);
        a->ops->close(a);
        _exit(found);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    nothing(b);
    a->ops->close(a);
    assert_int_equal(next(b).kind, RNL_EVENT_DEATH);
    b->ops->close(b);
    rnl_hub_free(hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_without_launcher_is_a_job_of_one),
        cmocka_unit_test(both_sides_see_one_memory_at_one_address),
        cmocka_unit_test(a_place_is_taken_once),
        cmocka_unit_test(who_leaves_without_finishing_is_dead_to_the_others),
        cmocka_unit_test(threads_close_together_although_some_die),
        cmocka_unit_test(a_fork_leaves_the_hub_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
