/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lockstep.h - endpoints of a hub whose programs are coroutines of ONE thread. Wherever the library would give the
 * processor away or sleep, a seeded scheduler picks who goes on; time is virtual. So blocking sends, waits and closes
 * run here too, the same way each time.
 *
 * A program that sleeps is resumed when its bell is rung, when its time is up, and now and then for no reason.
 * Everybody asleep with no time set is a lost wake-up or a deadlock, and so is a long while in which nothing happens.
 */
#ifndef RNL_TESTS_SUPPORT_LOCKSTEP_H
#define RNL_TESTS_SUPPORT_LOCKSTEP_H

#include "base/coro.h"
#include "base/env.h"
#include "support/hub.h"
#include "support/random.h"

enum { LOCKSTEP_MAX = 8 };

struct lockstep;
typedef void lockstep_program(struct lockstep *l, unsigned rank);

struct lockstep_rank {
    struct rnl_coro *coro;
    int started, ended;
    int asleep; /* in park */
    _Atomic uint32_t *word;
    uint32_t expected;
    uint64_t until_ns;
    int timed; /* the program set a time: set it around rnl_wait with a timeout */
};

struct lockstep {
    struct test_hub h;
    unsigned size, running; /* running: rank whose program is */
    uint64_t now_ns, steps;
    struct test_random chance, secrets;
    struct rnl_coro_pool *pool;
    struct rnl_env_ops ops;
    struct lockstep_rank rank[LOCKSTEP_MAX];
    lockstep_program *program;
    void *arg;
    uint64_t done; /* what has been achieved: the programs count it up */
    const char *wrong;
};

/* Opens `size` endpoints with opt[rank]. */
void lockstep_open(struct lockstep *l, unsigned size, const struct rnl_options *opt, uint64_t seed);
/* Runs program(l, rank) for all ranks until all have returned; they must have closed their endpoints. 0, or 1 and
 * l->wrong. */
int lockstep_run(struct lockstep *l, lockstep_program *program);
/* Of the running program: somebody else's turn. */
void lockstep_yield(struct lockstep *l);
void lockstep_close(struct lockstep *l);

#endif
