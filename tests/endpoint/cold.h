/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cold.h - what the tests of hot and cold connections share. The clock of the endpoint under test is the test's, so
 * that rounds are when it says. */
#ifndef RNL_TESTS_ENDPOINT_COLD_H
#define RNL_TESTS_ENDPOINT_COLD_H

#include "stream/inbox.h"

#include <stdatomic.h>

#include "endpoint/endpoint.h"

enum { COLD = RNL_ARMED_LINES | RNL_ARMED_COLD };
enum { NOTE = 1, ASK = 2, ANSWER = 3, GREET = 4, SIZE = 9, STILL = 8 /* a peer that nobody has heard of for long */ };
#define MS ((uint64_t)1000000)

struct fixture {
    struct test_hub h;
    rnl_endpoint *a, *hot, *cold; /* ranks 0, 1 and STILL */
    struct rnl_conn *conn;        /* of `a` to `cold` */
    struct inbox in;
    int deaths, done, done_status;
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

static inline uint64_t now_ns(struct rnl_env *e)
{
    (void)e;
    return env.now_ns += env.step_ns;
}
static inline uint32_t armed_of(const struct rnl_conn *conn)
{
    return atomic_load(&conn->pair.mine->armed) & (RNL_ARMED_TURN - 1);
}
static inline void park(struct rnl_env *e, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    (void)e, (void)word, (void)expected;
    env.parks++;
    for (uint32_t i = 0; i < env.ep->live; i++)
        env.parked[i] = armed_of(env.ep->hot[i]);
    env.now_ns = deadline_ns;
    if (env.in_park)
        env.in_park();
}
static inline void count_wake(struct rnl_env *e, _Atomic uint32_t *word)
{
    env.wakes++;
    env.was->wake(e, word);
}
static inline void count_raise(struct rnl_env *e, uint32_t rank)
{
    env.raises++;
    env.was->fd_raise(e, rank);
}
static inline int count_fence(struct rnl_env *e)
{
    env.fences++;
    return env.was->heavy_fence(e);
}
static inline int no_fence(struct rnl_env *e)
{
    (void)e;
    return RNL_ERR_SYSTEM;
}

static inline void take_env(struct fixture *f)
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
static inline void count_calls(rnl_endpoint *sender)
{
    static struct rnl_env_ops ops;
    ops = *sender->env->ops;
    ops.wake = count_wake;
    ops.fd_raise = count_raise;
    sender->env->ops = &ops;
}

/* ---- fixture ---- */

static inline void valid(const rnl_endpoint *ep)
{
    TEST_MUST(ep->hot_count <= ep->live && ep->live <= ep->size);
    TEST_MUST(ep->turn == 0 || ep->turn < ep->hot_count);
    for (uint32_t i = 0; i < ep->live; i++) {
        const struct rnl_conn *conn = ep->hot[i];
        TEST_MUST(conn->hot_index == i && ep->peer[conn->rank].conn == conn && !conn->gone);
        TEST_MUST(i < ep->hot_count || (armed_of(conn) & COLD) == COLD);
        TEST_MUST(i >= ep->hot_count || !(armed_of(conn) & RNL_ARMED_COLD));
    }
    TEST_MUST(ep->hot_count == ep->live || ep->bell == &ep->env->bell->word || ep->bell == &ep->deaf);
    TEST_MUST(atomic_load(&ep->deaf) == ep->bell_seen || ep->bell != &ep->deaf);
}

static inline int is_cold(const rnl_endpoint *ep, const struct rnl_conn *conn)
{
    return conn->hot_index >= ep->hot_count;
}

static inline int answer(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    TEST_MUST(rnl_reply(s, ANSWER, "yes", 3) == 0);
    return RNL_DONE;
}

static inline void on_death(void *arg, unsigned peer, enum rnl_death_reason reason)
{
    struct fixture *f = arg;
    (void)peer, (void)reason;
    f->deaths++;
}

static inline void done(void *arg, int status)
{
    struct fixture *f = arg;
    f->done++;
    f->done_status = status;
}

/* Extracts that find nothing, for so many rounds, since the clock goes on. */
static inline void look_around(rnl_endpoint *ep, unsigned rounds)
{
    for (uint32_t end = ep->rounds + rounds; ep->rounds != end;) {
        TEST_MUST(rnl_extract(ep, SIZE_MAX) == 0);
        valid(ep);
    }
}

/* The peers that are not cooled, however still they are, are others. */
static inline void stir(struct fixture *f)
{
    unsigned before = f->in.count;
    for (unsigned rank = 0; rank < RNL_HOT_ALWAYS; rank++)
        TEST_MUST(f->h.dead[rank] || rnl_send(f->h.ep[rank], 0, NOTE, "x", 1) == 0);
    drain(f->a);
    f->in.count = before;
}

/* Returns after how many rounds. */
static inline unsigned let_cool(struct fixture *f)
{
    unsigned rounds = 0;
    if (is_cold(f->a, f->conn))
        return 0;
    look_around(f->a, 1);
    stir(f);
    for (; rounds < 5000 && !is_cold(f->a, f->conn); rounds++)
        look_around(f->a, 1);
    TEST_MUST(is_cold(f->a, f->conn));
    return rounds;
}

static inline void open_all(struct fixture *f, unsigned size, const struct rnl_options *opt)
{
    test_hub_open(&f->h, size, opt);
    f->a = f->h.ep[0], f->hot = f->h.ep[1], f->cold = f->h.ep[STILL];
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

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    open_all(f, SIZE, NULL);
    take_env(f);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    f->a->env->ops = env.was;
    int status = test_hub_close(&f->h);
    inbox_free(&f->in);
    free(f);
    return status;
}

/* As a stranger would that wants to hide what was rung. */
static inline void take_back(struct fixture *f)
{
    atomic_fetch_sub(&f->a->env->bell->word, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
