/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env.c - the env of a rank below PMIx or an exchange of its caller, whose job has no agent. Ranks of one host share a
 * memory file (local.h); other hosts are reached by datagrams, at addresses that were probed during the join
 * (join.c). The close is decided by waves, as in membership.h: each wave is one fence over all ranks that carries
 * the activity of each, so all ranks come to the same result from the same numbers.
 *
 * The server handles deaths: mpirun and srun end a job when one of its processes dies. So libpmix stays initialized
 * until the close is over, and a rank that ends earlier makes the server end the job. A rank that finds another of its
 * host dead reports the job as gone, whatever the server was configured to do. A silent rank of another host counts as
 * alive for as long as the server is there. */
#include "base/bug.h"
#include "base/error.h"
#include "base/secret.h"
#include "net/wire/bytes.h"
#include "pmix/pmix_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_BYTES = 48 };

static struct rnl_pmix *pmix_of(struct rnl_env *env)
{
    return (struct rnl_pmix *)(void *)env;
}

/* ---- events ---- */

static void activity_key(uint64_t wave, char out[KEY_BYTES])
{
    snprintf(out, KEY_BYTES, "runnel.wave.%llu", (unsigned long long)wave);
}

static int pmix_close_report(struct rnl_env *env, uint64_t wave, uint64_t activity)
{
    struct rnl_pmix *p = pmix_of(env);
    char key[KEY_BYTES];
    unsigned char bytes[8];
    int status = rnl_rank_env_forked(env);
    if (status < 0 || p->waits || p->done) /* only the first report of a wave is sent */
        return status;
    if (wave != p->wave)
        return rnl_fail(RNL_ERR_JOB, "rank %u reported close wave %llu, which was not asked for", env->rank,
                        (unsigned long long)wave);
    activity_key(wave, key);
    rnl_put64(bytes, activity);
    status = p->via->put(p, key, bytes, sizeof bytes);
    if (status == 0)
        status = rnl_pmix_fence(p);
    p->waits = status == 0;
    return status;
}

/* Decides a wave whose fence is over, by numbers that are the same in every rank. Returns 0 and *out, or -1 if not all
 * ranks took part. */
static int judge_wave(struct rnl_pmix *p, struct rnl_event *out)
{
    uint32_t size = p->local.base.env.size;
    bool quiet = p->before || RNL_BUG(pmix_one_wave);
    uint64_t *now = calloc(size, sizeof *now);
    char key[KEY_BYTES];
    unsigned char bytes[8];
    int status = now && atomic_load(&p->fence_status) == 0 ? 0 : -1;
    activity_key(p->wave, key);
    for (uint32_t i = 0; i < size && status == 0; i++) {
        status = p->via->get(p, i, key, bytes, sizeof bytes);
        if (status == 0)
            now[i] = rnl_get64(bytes);
        quiet = quiet && status == 0 && (!p->before || now[i] == p->before[i]);
    }
    free(p->before);
    p->before = now;
    p->waits = false;
    p->done = quiet && status == 0;
    p->wave += !p->done;
    *out = (struct rnl_event){.kind = p->done ? RNL_EVENT_CLOSE_DONE : RNL_EVENT_CLOSE_REQUEST, .wave = p->wave};
    return status;
}

static int pmix_event(struct rnl_env *env, struct rnl_event *out)
{
    struct rnl_pmix *p = pmix_of(env);
    if (getpid() != p->local.base.owner)
        return 0;
    if (p->waits && atomic_load_explicit(&p->fenced, memory_order_acquire)) {
        if (judge_wave(p, out) == 0)
            return 1;
        atomic_store(&p->lost, true);
    }
    if (p->done)
        return 0; /* after the close an end is no death */
    if (rnl_local_event(env, out))
        return 1;
    if ((p->local.deaths == 0 && !atomic_load(&p->lost)) || p->loss_reported)
        return 0;
    p->loss_reported = true;
    *out = (struct rnl_event){.kind = RNL_EVENT_JOB_GONE};
    return 1;
}

/* ---- other hosts ---- */

static bool nth_place(struct rnl_env *env, uint32_t rank, unsigned n, struct rnl_rank_address *out)
{
    const struct rnl_pmix *p = pmix_of(env);
    const uint32_t h = p->peer[rank].host;
    const struct rnl_pmix_paths *paths = &p->host[h].paths;
    if (h == p->own_host || n >= paths->count)
        return false;
    rnl_rank_address(paths->ip[n], 0, p->peer[rank].port,
                     p->info[h].kernel != 0 && p->info[h].kernel == p->info[p->own_host].kernel, rank + 1, out);
    return true;
}

static int pmix_place(struct rnl_env *env, uint32_t rank, struct rnl_rank_address *out)
{
    return nth_place(env, rank, 0, out);
}

static int pmix_alternate(struct rnl_env *env, uint32_t rank, unsigned n, struct rnl_rank_address *out)
{
    return nth_place(env, rank, n + 1, out);
}

static uint32_t pmix_host_of(struct rnl_env *env, uint32_t rank)
{
    return pmix_of(env)->peer[rank].host;
}

/* Attests that every rank lives for as long as the server is there, since the server ends the job when one dies. An
 * exchange says nothing of that: who is silent for long is dead. */
static uint64_t pmix_liveness(struct rnl_env *env, uint32_t rank)
{
    const struct rnl_pmix *p = pmix_of(env);
    (void)rank;
    return !p->via->attests || atomic_load_explicit(&p->lost, memory_order_relaxed) ? 0 : rnl_host_now_ns(env);
}

/* ---- life ---- */

/* Finalizes PMIx only after the close is done: the server counts a process that ends without that as failed, and ends
 * the job. */
static void pmix_close(struct rnl_env *env)
{
    struct rnl_pmix *p = pmix_of(env);
    bool owner = getpid() == p->local.base.owner;
    if (owner && p->done && p->via->leave)
        p->via->leave(p);
    if (owner)
        pthread_mutex_lock(&p->lock);
    p->open = false;
    rnl_local_close(&p->local, p->done);
    free(p->peer);
    free(p->host);
    free(p->info);
    free(p->before);
    p->peer = NULL;
    p->host = NULL;
    p->info = NULL;
    p->before = NULL;
    if (owner)
        pthread_mutex_unlock(&p->lock);
    if (owner && p->via->ended)
        p->via->ended(p);
}

static int32_t pmix_pid_of(struct rnl_env *env, uint32_t rank)
{
    return (int32_t)pmix_of(env)->peer[rank].pid;
}

static const struct rnl_env_ops pmix_ops = {
    RNL_RANK_ENV_OPS,
    .pid_of = pmix_pid_of,
    .segment_open = rnl_local_segment_open,
    .segment_map = rnl_rank_segment_map,
    .segment_unmap = rnl_rank_segment_unmap,
    .segment_mapped = rnl_rank_segment_mapped,
    .segment_close = rnl_rank_segment_close,
    .event = pmix_event,
    .close_report = pmix_close_report,
    .disconnect = rnl_local_disconnect,
    .close = pmix_close,
    .rank_address = pmix_place,
    .liveness = pmix_liveness,
    .alternate_address = pmix_alternate,
    .host_of = pmix_host_of,
};

int rnl_pmix_start(struct rnl_pmix *p, int (*begin)(struct rnl_pmix *, int *udp), struct rnl_env **out)
{
    int udp = -1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    rnl_rank_env_init(&p->local.base, &pmix_ops);
    p->local.base.env.bell_of = rnl_local_bell_of;
    int status = begin(p, &udp);
    if (status == 0 && udp >= 0)
        status = rnl_rank_env_connect(&p->local.base, udp, NULL);
    else if (udp >= 0)
        close(udp);
    if (status < 0) {
        const struct rnl_error why = *rnl_last_error();
        pmix_close(&p->local.base.env);
        return rnl_fail(status, "%s", why.text);
    }
    pthread_mutex_lock(&p->lock);
    p->open = true;
    pthread_mutex_unlock(&p->lock);
    p->local.base.env.incarnation = p->local.base.env.rank + 1;
    p->local.base.env.facts.launched = 1;
    *out = &p->local.base.env;
    return 1;
}

/* ---- fences ---- */

void rnl_pmix_fence_over(struct rnl_pmix *p, int status)
{
    pthread_mutex_lock(&p->lock);
    atomic_store_explicit(&p->fence_status, status, memory_order_relaxed);
    atomic_store_explicit(&p->fenced, true, memory_order_release);
    if (p->open)
        rnl_local_notify(&p->local, p->local.index);
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

int rnl_pmix_fence(struct rnl_pmix *p)
{
    atomic_store_explicit(&p->fenced, false, memory_order_relaxed);
    return p->via->fence(p);
}

int rnl_pmix_fence_wait(struct rnl_pmix *p)
{
    pthread_mutex_lock(&p->lock);
    while (!atomic_load(&p->fenced) && !atomic_load(&p->lost))
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
    int s = atomic_load(&p->lost) ? p->via->lost : atomic_load(&p->fence_status);
    return s == 0 ? 0 : p->via->refused(p, "let its ranks meet", s);
}
