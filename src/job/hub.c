/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hub.c - a job inside one process: the env of endpoints that belong to threads, and of a process that no launcher
 * started (size 1). It carries a membership and makes the promises of the agent, but a segment lies at one address for
 * both ranks, so that the thread sanitizer sees races in it. One lock protects everything except doorbells and news
 * words, which are atomic; nothing here is on a fast path. */
#include "base/error.h"
#include "job/job.h"
#include "job/membership.h"
#include "job/proto.h"
#include "job/rank_env.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct hub_news {
    _Alignas(128) _Atomic uint32_t news; /* alone in its cache line, since its owner polls it */
};

struct rnl_hub {
    pthread_mutex_t lock;
    pid_t owner;
    uint32_t size;
    unsigned char key[RNL_ENV_KEY_BYTES]; /* tells it from other hubs */
    struct rnl_membership *members;
    struct rnl_waitfd wait; /* raises the descriptors of ranks */
    struct rnl_bell *bells;
    struct hub_news *rank;
};

struct hub_env {
    struct rnl_rank_env base; /* first */
    struct rnl_hub *hub;
    uint8_t owns_hub;
};

static struct rnl_hub *hub_of(struct rnl_env *env)
{
    return ((struct hub_env *)(void *)env)->hub;
}

/* ---- events ---- */

/* The membership's `notify`; runs under the lock. */
static void hub_notify(void *arg, uint32_t rank)
{
    struct rnl_hub *hub = arg;
    rnl_waitfd_announce(&hub->wait, &hub->rank[rank].news, &hub->bells[rank]);
}

void rnl_hub_kill(struct rnl_hub *hub, uint32_t rank, int why, int detail)
{
    pthread_mutex_lock(&hub->lock);
    if (rank < hub->size) {
        if (rnl_membership_state(hub->members, rank) == RNL_RANK_JOINED)
            rnl_membership_cut_off(hub->members, rank); /* lest its own thread wait for ever */
        rnl_membership_gone(hub->members, rank, why, detail);
    }
    pthread_mutex_unlock(&hub->lock);
}

static int hub_event(struct rnl_env *env, struct rnl_event *out)
{
    struct rnl_hub *hub = hub_of(env);
    if (getpid() != hub->owner)
        return 0;
    pthread_mutex_lock(&hub->lock);
    bool found = rnl_membership_event(hub->members, env->rank, out);
    pthread_mutex_unlock(&hub->lock);
    return found;
}

static int hub_close_report(struct rnl_env *env, uint64_t wave, uint64_t activity)
{
    struct rnl_hub *hub = hub_of(env);
    pthread_mutex_lock(&hub->lock);
    int status = rnl_membership_report(hub->members, env->rank, wave, activity);
    pthread_mutex_unlock(&hub->lock);
    return status;
}

static int hub_disconnect(struct rnl_env *env, uint32_t rank, int why)
{
    struct rnl_hub *hub = hub_of(env);
    if (why != RNL_DEATH_BROKEN) /* threads of one process are never suspected, as they stop together */
        return 0;
    pthread_mutex_lock(&hub->lock);
    int status = rnl_membership_disconnect(hub->members, env->rank, rank);
    pthread_mutex_unlock(&hub->lock);
    return status;
}

/* ---- memory ---- */

static int hub_make(void *arg, struct rnl_segment *s)
{
    (void)arg;
    s->base = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return s->base == MAP_FAILED
               ? rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a segment of %llu bytes", (unsigned long long)s->bytes)
               : 0;
}

static void hub_release(void *arg, const struct rnl_segment *s)
{
    (void)arg;
    munmap(s->base, s->bytes);
}

static int hub_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
{
    struct rnl_hub *hub = hub_of(env);
    (void)wait_ns; /* nothing here waits */
    if (rank >= hub->size || bytes == 0)
        return rnl_fail(RNL_ERR_RANK, "no segment of %zu bytes with rank %u in a job of %u", bytes, rank, hub->size);
    pthread_mutex_lock(&hub->lock);
    int status = rnl_membership_segment_open(hub->members, env->rank, rank, bytes, segment);
    pthread_mutex_unlock(&hub->lock);
    return status;
}

static int hub_segment_map(struct rnl_env *env, int segment, size_t offset, size_t bytes, int writable, void **at)
{
    struct rnl_hub *hub = hub_of(env);
    (void)writable; /* one mapping serves both sides */
    pthread_mutex_lock(&hub->lock);
    int status = rnl_membership_segment_map(hub->members, segment, offset, bytes, at);
    pthread_mutex_unlock(&hub->lock);
    return status;
}

static void hub_segment_unmap(struct rnl_env *env, int segment, void *at, size_t bytes)
{
    (void)env, (void)segment, (void)at, (void)bytes; /* the other side may still read it */
}

static void hub_segment_mapped(struct rnl_env *env, int segment)
{
    struct rnl_hub *hub = hub_of(env);
    pthread_mutex_lock(&hub->lock);
    rnl_membership_segment_mapped(hub->members, rnl_membership_segment_at(hub->members, segment), env->rank);
    pthread_mutex_unlock(&hub->lock);
}

static void hub_segment_close(struct rnl_env *env, int segment)
{
    struct rnl_hub *hub = hub_of(env);
    pthread_mutex_lock(&hub->lock);
    rnl_membership_segment_close(hub->members, rnl_membership_segment_at(hub->members, segment), env->rank);
    pthread_mutex_unlock(&hub->lock);
}

/* ---- life ---- */

static struct rnl_bell *hub_bell_of(struct rnl_env *env, uint32_t rank)
{
    return &hub_of(env)->bells[rank];
}

static void hub_close(struct rnl_env *env)
{
    struct rnl_hub *hub = hub_of(env);
    int owns = ((struct hub_env *)(void *)env)->owns_hub;
    if (getpid() == hub->owner) { /* in a forked child, a thread that does not exist may hold the lock */
        pthread_mutex_lock(&hub->lock);
        rnl_membership_gone(hub->members, env->rank, RNL_DEATH_EXIT, 0);
        pthread_mutex_unlock(&hub->lock);
    }
    rnl_rank_env_end((struct rnl_rank_env *)(void *)env);
    free(env);
    if (owns)
        rnl_hub_free(hub);
}

static int32_t hub_pid_of(struct rnl_env *env, uint32_t rank)
{
    (void)rank;
    return hub_of(env)->owner;
}

static const struct rnl_env_ops hub_ops = {
    RNL_RANK_ENV_OPS,
    .pid_of = hub_pid_of,
    .segment_open = hub_segment_open,
    .segment_map = hub_segment_map,
    .segment_unmap = hub_segment_unmap,
    .segment_mapped = hub_segment_mapped,
    .segment_close = hub_segment_close,
    .event = hub_event,
    .close_report = hub_close_report,
    .disconnect = hub_disconnect,
    .close = hub_close,
};

int rnl_hub_env(struct rnl_hub *hub, uint32_t rank, int owns_hub, struct rnl_env **out)
{
    if (rank >= hub->size)
        return rnl_fail(RNL_ERR_RANK, "no rank %u in a hub of %u: hub_rank goes from 0 to size - 1", rank, hub->size);
    struct hub_env *e = calloc(1, sizeof *e);
    if (!e)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to join a hub");
    pthread_mutex_lock(&hub->lock);
    bool taken = rnl_membership_state(hub->members, rank) != RNL_RANK_STARTING;
    int status = taken ? RNL_ERR_JOB : rnl_membership_join(hub->members, rank, 0);
    pthread_mutex_unlock(&hub->lock);
    if (status < 0)
        free(e);
    if (taken)
        return rnl_fail(RNL_ERR_JOB,
                        "rank %u of this hub has been opened before: each endpoint needs a hub_rank of its own", rank);
    if (status < 0)
        return status;
    e->hub = hub;
    e->owns_hub = owns_hub != 0;
    rnl_rank_env_init(&e->base, &hub_ops);
    struct rnl_env *env = &e->base.env;
    env->rank = rank;
    env->size = hub->size;
    env->incarnation = rank + 1;
    env->event_seq = &hub->rank[rank].news;
    env->bell = &hub->bells[rank];
    env->bell_of = hub_bell_of;
    env->facts.keep_going = 1;
    memcpy(env->job_key, hub->key, sizeof env->job_key);
    *out = env;
    return 0;
}

int rnl_hub_new(unsigned size, struct rnl_hub **out)
{
    if (size < 1 || size > RNL_JOB_RANKS_MAX)
        return rnl_fail(RNL_ERR_ARG, "a hub of %u rank%s: it can have 1 to %d", size, RNL_S(size), RNL_JOB_RANKS_MAX);
    struct rnl_hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a hub of %u rank%s", size, RNL_S(size));
    const struct rnl_membership_options opt = {.size = size,
                                               .leads = true,
                                               .indexed = true,
                                               .arg = hub,
                                               .notify = hub_notify,
                                               .make = hub_make,
                                               .release = hub_release};
    pthread_mutex_init(&hub->lock, NULL);
    hub->wait = RNL_WAITFD_NONE;
    hub->owner = getpid();
    hub->bells = aligned_alloc(RNL_BELL_BYTES, (size_t)size * RNL_BELL_BYTES);
    hub->rank = aligned_alloc(_Alignof(struct hub_news), size * sizeof *hub->rank);
    if (!hub->bells || !hub->rank || rnl_membership_new(&opt, &hub->members) < 0) {
        rnl_hub_free(hub);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a hub of %u rank%s", size, RNL_S(size));
    }
    hub->size = size;
    for (size_t i = 0; i < sizeof hub->key; i += sizeof(uint64_t)) {
        uint64_t word = rnl_host_random(NULL);
        memcpy(hub->key + i, &word, sizeof word);
    }
    memset(hub->bells, 0, (size_t)size * RNL_BELL_BYTES);
    memset(hub->rank, 0, size * sizeof *hub->rank);
    *out = hub;
    return 0;
}

void rnl_hub_free(struct rnl_hub *hub)
{
    if (!hub)
        return;
    rnl_membership_free(hub->members);
    rnl_waitfd_free(&hub->wait);
    pthread_mutex_destroy(&hub->lock);
    free(hub->bells);
    free(hub->rank);
    free(hub);
}

uint32_t rnl_hub_size(const struct rnl_hub *hub)
{
    return hub->size;
}
