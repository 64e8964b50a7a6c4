/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_shm.c - the random traffic of the conformance suite over shared memory between processes, where a segment is a
 * file that is mapped apart by each and partly read-only: runnel run -n N conform-job_shm [SEED]. Alone: a job of one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/bell.h"
#include "conform/traffic.h"
#include "job/job.h"
#include "transport/shm/shm.h"

/* Leaves together with the others: reports as often as it is asked. */
static void leave(struct rnl_env *env)
{
    uint64_t wave = 0;
    int asked = 1;
    for (;;) {
        struct rnl_event e;
        uint32_t word = atomic_load(&env->bell->word);
        if (asked && env->ops->close_report(env, wave, 1) < 0)
            return;
        asked = 0;
        if (!env->ops->event(env, &e)) {
            env->ops->park(env, &env->bell->word, word, env->ops->now_ns(env) + 100000000);
            continue;
        }
        if (e.kind == RNL_EVENT_CLOSE_ASK) {
            wave = e.wave;
            asked = 1;
        }
        if (e.kind == RNL_EVENT_CLOSE_DONE || e.kind == RNL_EVENT_JOB_GONE)
            return;
    }
}

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, rnl_last_error()->text);
    return 1;
}

int main(int argc, char **argv)
{
    const struct traffic_options all = {.packets = CONFORM_COUNT(6000), .lanes = 7, .pause = 1};
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    struct rnl_env *env;
    struct rnl_transport *t;
    if (rnl_job_env(NULL, &env) < 0)
        return fail("cannot join");
    if (env->size > CONFORM_PLACES) {
        fprintf(stderr, "at most %d ranks\n", CONFORM_PLACES);
        return 64;
    }
    if (rnl_shm_transport_new(env, &t) < 0)
        return fail("no transport");
    for (uint32_t rank = 0; rank < env->size; rank++)
        if ((env->size == 1 || rank != env->rank) && t->ops->connect(t, rank, NULL, 0) < 0)
            return fail("cannot connect");
    int status = traffic_run_place(t, seed, &all) < 0;
    if (status == 0)
        leave(env);
    t->ops->close(t);
    env->ops->close(env);
    return status;
}
