/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lockstep.c - the scheduler, and the calls of env that lead to it. */
#include "support/lockstep.h"

#include <stdio.h>
#include <string.h>

#include "endpoint/endpoint.h"
#include "support/wires.h"

enum { STACK = 256 << 10, LONG = 200000, TURN_NS = 1000, CALL_NS = 100, LONG_AWAY_NS = 5000 };

static struct lockstep *current; /* one at a time: one thread */

static uint64_t virtual_now_ns(struct rnl_env *env)
{
    (void)env;
    return current->now_ns += CALL_NS;
}

static uint64_t virtual_random(struct rnl_env *env)
{
    (void)env;
    return test_random_next(&current->secrets);
}

static uint64_t virtual_yield(struct rnl_env *env)
{
    (void)env;
    lockstep_yield(current);
    return LONG_AWAY_NS; /* the wait policy learns not to spin */
}

static void virtual_park(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    struct lockstep_rank *r = &current->rank[current->running];
    (void)env;
    if (atomic_load(word) != expected)
        return;
    r->word = word;
    r->expected = expected;
    r->until_ns = deadline_ns;
    r->asleep = 1;
    lockstep_yield(current);
    r->asleep = 0;
}

static int no_fence(struct rnl_env *env)
{
    (void)env;
    return 0;
}

static uint64_t sense_load(struct rnl_env *env, const _Atomic uint64_t *word, uint64_t last, uint8_t *d)
{
    (void)env, (void)last, (void)d;
    return atomic_load_explicit(word, memory_order_acquire);
}

static void sense_fence(struct rnl_env *env, uint8_t *d)
{
    (void)env, (void)d;
}

void lockstep_open(struct lockstep *l, unsigned size, const struct rnl_options *opt, uint64_t seed)
{
    memset(l, 0, sizeof *l);
    TEST_MUST(size <= LOCKSTEP_MAX);
    l->size = size;
    l->now_ns = 1000000;
    l->chance = test_random_of(seed, 77);
    l->secrets = test_random_of(seed, 78);
    TEST_MUST(rnl_hub_new(size, &l->h.hub) == 0);
    l->h.size = size;
    l->h.wires = test_wires_wanted(size);
    current = l; /* the clock */
    for (unsigned i = 0; i < size; i++) {
        struct rnl_options o = opt[i];
        o.size = sizeof o;
        o.hub = l->h.hub;
        o.hub_rank = i;
        TEST_MUST(rnl_open(&l->h.ep[i], &o) == 0);
        struct rnl_env *env = l->h.ep[i]->env;
        if (i == 0) {
            l->ops = *env->ops;
            l->ops.now_ns = virtual_now_ns;
            l->ops.random = virtual_random;
            l->ops.yield = virtual_yield;
            l->ops.park = virtual_park;
            l->ops.heavy_fence = no_fence;
            l->ops.sense_load = sense_load;
            l->ops.sense_fence = sense_fence;
        }
        env->ops = &l->ops;
        l->h.ep[i]->wait.spin = 1;
        if (l->h.wires)
            test_wires_attach(l->h.wires, l->h.ep[i]);
    }
    TEST_MUST(rnl_coro_pool_new(size, STACK, &l->pool) == 0);
}

static void program(struct rnl_coro *self, void *arg)
{
    struct lockstep *l = arg;
    unsigned rank = l->running;
    l->rank[rank].coro = self;
    l->program(l, rank);
    l->rank[rank].ended = 1;
}

void lockstep_yield(struct lockstep *l)
{
    rnl_coro_yield(l->rank[l->running].coro);
}

/* Packets have their times. */
static int timed(const struct lockstep *l, const struct lockstep_rank *r)
{
    return r->timed || (l->h.wires && r->asleep);
}

static int may_run(const struct lockstep *l, const struct lockstep_rank *r)
{
    if (r->ended)
        return 0;
    return !r->asleep || atomic_load(r->word) != r->expected || (timed(l, r) && l->now_ns >= r->until_ns);
}

/* Nobody can go on: the time of the first who set one comes. 0 = nobody did. */
static int pass_time(struct lockstep *l)
{
    uint64_t first = UINT64_MAX;
    for (unsigned i = 0; i < l->size; i++) {
        const struct lockstep_rank *r = &l->rank[i];
        if (!r->ended && timed(l, r) && r->until_ns < first)
            first = r->until_ns;
    }
    if (first == UINT64_MAX)
        return 0;
    if (first > l->now_ns)
        l->now_ns = first;
    return 1;
}

static int pick(struct lockstep *l, unsigned *rank)
{
    unsigned able[LOCKSTEP_MAX], n = 0, alive = 0;
    int lightly = test_random_one_in(&l->chance, 64); /* sleepers may wake for no reason */
    for (unsigned i = 0; i < l->size; i++) {
        alive += !l->rank[i].ended;
        if (may_run(l, &l->rank[i]) || (lightly && !l->rank[i].ended))
            able[n++] = i;
    }
    if (alive == 0)
        return 0;
    if (n == 0)
        return pass_time(l) ? pick(l, rank) : -1;
    *rank = able[test_random_below(&l->chance, n)];
    return 1;
}

int lockstep_run(struct lockstep *l, lockstep_program *body)
{
    uint64_t done = l->done, since = 0;
    l->program = body;
    for (;;) {
        unsigned rank;
        int picked = pick(l, &rank);
        if (picked == 0)
            return 0;
        if (picked < 0) {
            l->wrong = "all are asleep: a lost wake-up, or a deadlock";
            return 1;
        }
        struct lockstep_rank *r = &l->rank[rank];
        l->running = rank;
        l->now_ns += TURN_NS;
        l->steps++;
        if (!r->started) {
            r->started = 1;
            TEST_MUST(rnl_coro_start(l->pool, program, l, &r->coro) == 0);
        } else {
            (void)rnl_coro_resume(r->coro);
        }
        if (l->done != done) {
            done = l->done;
            since = l->steps;
        } else if (l->steps - since > LONG) {
            l->wrong = "nothing happens any more: a deadlock";
            return 1;
        }
    }
}

void lockstep_close(struct lockstep *l)
{
    rnl_coro_pool_free(l->pool);
    rnl_hub_free(l->h.hub);
    test_wires_free(l->h.wires);
    current = NULL;
}
