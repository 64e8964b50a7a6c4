/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hub.c - a job inside one process: the env of endpoints that belong to threads, and of a process that nobody launched
 * (size 1).
 *
 * Promises what the agent promises, by the same waves and events, so that the core above cannot tell them apart; but a
 * segment lies at one address for both sides, which is what lets the thread sanitizer see races in it. Everything here
 * is under one lock except the bells, the news words and the descriptors, which are atomic: none of it is on a hot
 * path. */
#include "base/bell.h"
#include "base/error.h"
#include "job/job.h"
#include "job/proto.h"
#include "job/status.h"
#include "job/waitfd.h"
#include "job/waves.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* Events that a rank has room for from the start; a connect and a death for each of a few peers, and a close, can then
 * not be lost for want of memory. */
enum { EVENTS_FIRST = 64 };

struct hub_segment { /* of the pair (low, high); side 1 is high, a rank alone with itself is side 0 */
    void *base;
    size_t bytes;
    uint8_t opened[2], settled[2], closed[2];
};

struct hub_rank {
    _Alignas(128) _Atomic uint32_t news; /* polled by its owner: nothing else in its line */
    _Alignas(128) enum rnl_rank_state state;
    struct rnl_waitfd wait; /* its owner's, over fd */
    _Atomic int fd; /* -1 until asked for; stays until the hub goes, so that a late raise cannot hit another file */
    uint8_t lost;   /* no memory for an event: this rank can only be told that the job is gone */
    int32_t why, detail;
    struct rnl_event *events; /* ring of room, [first, first + waiting) are waiting */
    uint32_t first, waiting, room;
};

struct rnl_hub {
    pthread_mutex_t lock;
    pid_t owner;
    uint32_t size;
    uint8_t close_done;
    struct rnl_waves *waves;
    struct rnl_bell *bells;
    struct hub_segment **pair; /* [low * size + high] */
    struct hub_rank *rank;
};

struct hub_env {
    struct rnl_env env; /* first */
    struct rnl_hub *hub;
    uint8_t owns_hub;
};

static struct rnl_hub *hub_of(struct rnl_env *env)
{
    return ((struct hub_env *)(void *)env)->hub;
}

/* ---- news ---- */

static void hub_notify(struct rnl_hub *hub, uint32_t rank)
{
    const uint64_t one = 1;
    struct hub_rank *r = &hub->rank[rank];
    /* Pairs with the owner's relaxed polling: what it announces is fetched under the lock. */
    atomic_fetch_add_explicit(&r->news, 1, memory_order_release);
    /* Before the bell: whoever sees its word change must find the descriptor raised. */
    int fd = atomic_load_explicit(&r->fd, memory_order_acquire); /* pairs with the release in hub_fd */
    while (fd >= 0 && write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
    atomic_fetch_add_explicit(&hub->bells[rank].word, 1, memory_order_release); /* pairs with the load before park */
    rnl_host_wake(NULL, &hub->bells[rank].word);
}

/* Locked. */
static void hub_tell(struct rnl_hub *hub, uint32_t rank, const struct rnl_event *event)
{
    struct hub_rank *r = &hub->rank[rank];
    if (r->state == RNL_RANK_DEAD || r->state == RNL_RANK_LEFT)
        return;
    if (r->waiting == r->room) {
        uint32_t room = 2 * r->room;
        struct rnl_event *events = malloc(room * sizeof *events);
        if (events == NULL) {
            r->lost = 1;
            hub_notify(hub, rank);
            return;
        }
        for (uint32_t i = 0; i < r->waiting; i++)
            events[i] = r->events[(r->first + i) % r->room];
        free(r->events);
        r->events = events;
        r->first = 0;
        r->room = room;
    }
    r->events[(r->first + r->waiting++) % r->room] = *event;
    hub_notify(hub, rank);
}

/* Locked. What the waves demand. */
static void hub_step(struct rnl_hub *hub, enum rnl_waves_step step)
{
    struct rnl_event event = {.kind = RNL_EVENT_CLOSE_ASK, .wave = rnl_waves_now(hub->waves)};
    if (step == RNL_WAVES_DONE) {
        event.kind = RNL_EVENT_CLOSE_DONE;
        hub->close_done = 1;
    } else if (step != RNL_WAVES_ASK) {
        return;
    }
    for (uint32_t i = 0; i < hub->size; i++)
        if (hub->rank[i].state == RNL_RANK_JOINED)
            hub_tell(hub, i, &event);
}

/* Locked. */
static void hub_gone(struct rnl_hub *hub, uint32_t rank, int why, int detail)
{
    struct hub_rank *r = &hub->rank[rank];
    if (r->state == RNL_RANK_DEAD || r->state == RNL_RANK_LEFT)
        return;
    if (hub->close_done) {
        r->state = RNL_RANK_LEFT;
        return;
    }
    r->state = RNL_RANK_DEAD;
    r->why = why;
    r->detail = detail;
    const struct rnl_event event = {
        .kind = RNL_EVENT_DEATH, .rank = rank, .incarnation = rank + 1, .why = why, .detail = detail};
    for (uint32_t i = 0; i < hub->size; i++)
        hub_tell(hub, i, &event);
    hub_step(hub, rnl_waves_gone(hub->waves, rank));
}

void rnl_hub_kill(struct rnl_hub *hub, uint32_t rank, int why, int detail)
{
    const struct rnl_event event = {.kind = RNL_EVENT_JOB_GONE}; /* its own thread is not to wait for ever */
    pthread_mutex_lock(&hub->lock);
    if (rank < hub->size) {
        if (hub->rank[rank].state == RNL_RANK_JOINED)
            hub_tell(hub, rank, &event);
        hub_gone(hub, rank, why, detail);
    }
    pthread_mutex_unlock(&hub->lock);
}

static int hub_event(struct rnl_env *env, struct rnl_event *out)
{
    struct rnl_hub *hub = hub_of(env);
    struct hub_rank *r = &hub->rank[env->rank];
    int found = 0;
    if (getpid() != hub->owner)
        return 0;
    pthread_mutex_lock(&hub->lock);
    if (r->waiting > 0) {
        *out = r->events[r->first];
        r->first = (r->first + 1) % r->room;
        r->waiting--;
        found = 1;
    } else if (r->lost == 1) {
        r->lost = 2;
        memset(out, 0, sizeof *out);
        out->kind = RNL_EVENT_JOB_GONE;
        found = 1;
    }
    pthread_mutex_unlock(&hub->lock);
    return found;
}

static int hub_close_report(struct rnl_env *env, uint64_t wave, uint64_t activity)
{
    struct rnl_hub *hub = hub_of(env);
    pthread_mutex_lock(&hub->lock);
    enum rnl_waves_step step = rnl_waves_report(hub->waves, env->rank, wave, activity);
    hub_step(hub, step);
    pthread_mutex_unlock(&hub->lock);
    return step == RNL_WAVES_WRONG ? rnl_fail(RNL_ERR_JOB, "rank %u reported close wave %llu, which nobody asked for",
                                              env->rank, (unsigned long long)wave)
                                   : 0;
}

static int hub_part(struct rnl_env *env, uint32_t rank, int why)
{
    struct rnl_hub *hub = hub_of(env);
    const struct rnl_event event = {
        .kind = RNL_EVENT_DEATH, .rank = env->rank, .incarnation = env->incarnation, .why = RNL_DEATH_PARTED};
    if (why != RNL_DEATH_BROKEN) /* threads of one process are stopped together */
        return 0;
    pthread_mutex_lock(&hub->lock);
    hub_tell(hub, rank, &event);
    pthread_mutex_unlock(&hub->lock);
    return 0;
}

/* ---- memory ---- */

static int hub_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
{
    struct rnl_hub *hub = hub_of(env);
    (void)wait_ns; /* nothing here waits */
    if (rank >= hub->size || bytes == 0)
        return rnl_fail(RNL_ERR_RANK, "no segment of %zu bytes with rank %u in a job of %u", bytes, rank, hub->size);
    uint32_t low = rank < env->rank ? rank : env->rank, high = rank < env->rank ? env->rank : rank;
    int id = (int)(low * hub->size + high), side = env->rank != low, r = 0;
    pthread_mutex_lock(&hub->lock);
    struct hub_segment *s = hub->pair[id];
    enum rnl_rank_state other = hub->rank[rank].state;
    if (s != NULL && s->opened[side]) {
        r = rnl_fail(RNL_ERR_JOB, "the segment of rank %u has been handed out to this rank before", rank);
    } else if (s != NULL && s->bytes != bytes) {
        r = rnl_fail(RNL_ERR_JOB, "rank %u asked for a segment of %zu bytes, we for one of %zu", rank, s->bytes, bytes);
    } else if (s != NULL) {
        s->opened[side] = 1;
    } else if (other == RNL_RANK_DEAD || other == RNL_RANK_LEFT) {
        r = rnl_fail(RNL_ERR_PEER_DEAD, "rank %u is gone: there is no segment to share with it", rank);
    } else {
        s = calloc(1, sizeof *s);
        void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (s == NULL || base == MAP_FAILED) {
            r = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a segment of %zu bytes with rank %u", bytes, rank);
            if (base != MAP_FAILED)
                munmap(base, bytes);
            free(s);
        } else {
            s->base = base;
            s->bytes = bytes;
            s->opened[side] = 1;
            hub->pair[id] = s;
            if (rank != env->rank) {
                const struct rnl_event event = {
                    .kind = RNL_EVENT_CONNECT, .rank = env->rank, .incarnation = env->incarnation};
                hub_tell(hub, rank, &event);
            }
        }
    }
    pthread_mutex_unlock(&hub->lock);
    if (r == 0)
        *segment = id;
    return r;
}

static int hub_segment_map(struct rnl_env *env, int segment, size_t offset, size_t bytes, int writable, void **at)
{
    struct rnl_hub *hub = hub_of(env);
    (void)writable; /* one mapping serves both sides */
    pthread_mutex_lock(&hub->lock);
    const struct hub_segment *s = hub->pair[segment];
    int good = s != NULL && offset <= s->bytes && bytes <= s->bytes - offset;
    if (good)
        *at = (char *)s->base + offset;
    pthread_mutex_unlock(&hub->lock);
    return good ? 0 : rnl_fail(RNL_ERR_ARG, "%zu bytes at %zu are not within the segment", bytes, offset);
}

static void hub_segment_unmap(struct rnl_env *env, int segment, void *at, size_t bytes)
{
    (void)env, (void)segment, (void)at, (void)bytes; /* the other side may still read it */
}

static void hub_segment_settle(struct rnl_env *env, int segment)
{
    struct rnl_hub *hub = hub_of(env);
    pthread_mutex_lock(&hub->lock);
    hub->pair[segment]->settled[env->rank != (uint32_t)segment / hub->size] = 1;
    pthread_mutex_unlock(&hub->lock);
}

static void hub_segment_close(struct rnl_env *env, int segment)
{
    struct rnl_hub *hub = hub_of(env);
    uint32_t low = (uint32_t)segment / hub->size, high = (uint32_t)segment % hub->size;
    pthread_mutex_lock(&hub->lock);
    struct hub_segment *s = hub->pair[segment];
    if (s->settled[env->rank != low])
        s->closed[env->rank != low] = 1;
    else
        s->opened[env->rank != low] = 0;
    if (s->closed[0] && (s->closed[1] || low == high) && s->base != NULL) {
        munmap(s->base, s->bytes);
        s->base = NULL;
        s->bytes = 0;
    }
    pthread_mutex_unlock(&hub->lock);
}

/* ---- event loops ---- */

static int hub_fd(struct rnl_env *env)
{
    struct rnl_hub *hub = hub_of(env);
    struct hub_rank *r = &hub->rank[env->rank];
    int e = 0;
    pthread_mutex_lock(&hub->lock);
    int fd = atomic_load_explicit(&r->fd, memory_order_relaxed);
    if (fd < 0) {
        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        e = errno;
        if (fd >= 0)
            atomic_store_explicit(&r->fd, fd, memory_order_release); /* pairs with hub_notify, hub_fd_raise */
    }
    if (fd >= 0 && r->wait.epoll < 0)
        e = -rnl_waitfd_new(fd, &r->wait);
    pthread_mutex_unlock(&hub->lock);
    return r->wait.epoll >= 0 ? r->wait.epoll
                              : rnl_fail_errno(RNL_ERR_SYSTEM, e,
                                               "cannot make a descriptor to wait on: raise their limit (ulimit -n)");
}

static int hub_fd_watch(struct rnl_env *env, int fd)
{
    int e = -rnl_waitfd_watch(&hub_of(env)->rank[env->rank].wait, fd);
    return e ? rnl_fail_errno(RNL_ERR_SYSTEM, e, "the descriptor to wait on takes no other one in") : 0;
}

static void hub_fd_drain(struct rnl_env *env)
{
    uint64_t count;
    int fd = atomic_load_explicit(&hub_of(env)->rank[env->rank].fd, memory_order_relaxed); /* our own */
    while (fd >= 0 && read(fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

static void hub_fd_until(struct rnl_env *env, uint64_t ns)
{
    rnl_waitfd_until(&hub_of(env)->rank[env->rank].wait, ns);
}

static void hub_fd_raise(struct rnl_env *env, uint32_t rank)
{
    struct rnl_hub *hub = hub_of(env);
    const uint64_t one = 1;
    if (rank >= hub->size)
        return;
    int fd = atomic_load_explicit(&hub->rank[rank].fd, memory_order_acquire); /* pairs with the release in hub_fd */
    while (fd >= 0 && write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
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
    if (getpid() == hub->owner) { /* a fork's copy of the lock may be held by a thread that is not there */
        pthread_mutex_lock(&hub->lock);
        hub_gone(hub, env->rank, RNL_DEATH_EXIT, 0);
        pthread_mutex_unlock(&hub->lock);
    }
    free(env);
    if (owns)
        rnl_hub_free(hub);
}

static const struct rnl_env_ops hub_ops = {
    .size = sizeof hub_ops,
    .now_ns = rnl_host_now_ns,
    .random = rnl_host_random,
    .yield = rnl_host_yield,
    .park = rnl_host_park,
    .wake = rnl_host_wake,
    .heavy_fence = rnl_host_heavy_fence,
    .sense_load = rnl_host_sense_load,
    .sense_fence = rnl_host_sense_fence,
    .segment_open = hub_segment_open,
    .segment_map = hub_segment_map,
    .segment_unmap = hub_segment_unmap,
    .segment_settle = hub_segment_settle,
    .segment_close = hub_segment_close,
    .event = hub_event,
    .close_report = hub_close_report,
    .part = hub_part,
    .fd = hub_fd,
    .fd_drain = hub_fd_drain,
    .fd_until = hub_fd_until,
    .fd_raise = hub_fd_raise,
    .close = hub_close,
    .park_on = rnl_host_park_on,
    .fd_watch = hub_fd_watch,
};

int rnl_hub_env(struct rnl_hub *hub, uint32_t rank, int owns_hub, struct rnl_env **out)
{
    if (rank >= hub->size)
        return rnl_fail(RNL_ERR_RANK, "no rank %u in a hub of %u: hub_rank goes from 0 to size - 1", rank, hub->size);
    struct hub_env *e = calloc(1, sizeof *e);
    if (e == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to join a hub");
    pthread_mutex_lock(&hub->lock);
    int taken = hub->rank[rank].state != RNL_RANK_STARTING;
    if (!taken) {
        hub->rank[rank].state = RNL_RANK_JOINED;
        rnl_waves_join(hub->waves, rank);
    }
    pthread_mutex_unlock(&hub->lock);
    if (taken) {
        free(e);
        return rnl_fail(RNL_ERR_JOB,
                        "rank %u of this hub has been opened before: each endpoint needs a hub_rank of its own", rank);
    }
    e->hub = hub;
    e->owns_hub = owns_hub != 0;
    e->env.ops = &hub_ops;
    e->env.rank = rank;
    e->env.size = hub->size;
    e->env.incarnation = rank + 1;
    e->env.news = &hub->rank[rank].news;
    e->env.bell = &hub->bells[rank];
    e->env.bell_of = hub_bell_of;
    if (gethostname(e->env.host, sizeof e->env.host) < 0)
        memcpy(e->env.host, "localhost", sizeof "localhost");
    e->env.host[sizeof e->env.host - 1] = '\0';
    rnl_host_facts(&e->env.facts);
    e->env.facts.keep_going = 1;
    *out = &e->env;
    return 0;
}

int rnl_hub_new(unsigned size, struct rnl_hub **out)
{
    if (size < 1 || size > RNL_JOB_RANKS_MAX)
        return rnl_fail(RNL_ERR_ARG, "a hub of %u rank%s: it can have 1 to %d", size, RNL_S(size), RNL_JOB_RANKS_MAX);
    struct rnl_hub *hub = calloc(1, sizeof *hub);
    if (hub == NULL || rnl_waves_new(size, &hub->waves) < 0)
        goto no_memory;
    hub->size = size;
    hub->owner = getpid();
    hub->bells = aligned_alloc(RNL_BELL_BYTES, (size_t)size * RNL_BELL_BYTES);
    hub->rank = aligned_alloc(_Alignof(struct hub_rank), size * sizeof *hub->rank);
    hub->pair = calloc((size_t)size * size, sizeof *hub->pair);
    if (hub->bells == NULL || hub->rank == NULL || hub->pair == NULL)
        goto no_memory;
    memset(hub->bells, 0, (size_t)size * RNL_BELL_BYTES);
    memset(hub->rank, 0, size * sizeof *hub->rank);
    for (uint32_t i = 0; i < size; i++) {
        atomic_init(&hub->rank[i].fd, -1);
        hub->rank[i].wait = RNL_WAITFD_NONE;
    }
    for (uint32_t i = 0; i < hub->size; i++) {
        struct hub_rank *r = &hub->rank[i];
        r->room = size < EVENTS_FIRST / 2 ? 2 * size + 8 : EVENTS_FIRST;
        if ((r->events = malloc(r->room * sizeof *r->events)) == NULL)
            goto no_memory;
    }
    pthread_mutex_init(&hub->lock, NULL);
    *out = hub;
    return 0;
no_memory:
    if (hub != NULL) {
        rnl_waves_free(hub->waves);
        free(hub->bells);
        for (uint32_t i = 0; hub->bells != NULL && hub->rank != NULL && hub->pair != NULL && i < size; i++)
            free(hub->rank[i].events);
        free(hub->rank);
        free(hub->pair);
        free(hub);
    }
    return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a hub of %u rank%s", size, RNL_S(size));
}

void rnl_hub_free(struct rnl_hub *hub)
{
    if (hub == NULL)
        return;
    for (size_t i = 0; i < (size_t)hub->size * hub->size; i++) {
        struct hub_segment *s = hub->pair[i];
        if (s != NULL && s->base != NULL)
            munmap(s->base, s->bytes);
        free(s);
    }
    for (uint32_t i = 0; i < hub->size; i++) {
        int fd = atomic_load_explicit(&hub->rank[i].fd, memory_order_relaxed); /* nobody else is left */
        rnl_waitfd_free(&hub->rank[i].wait);
        if (fd >= 0)
            close(fd);
        free(hub->rank[i].events);
    }
    pthread_mutex_destroy(&hub->lock);
    rnl_waves_free(hub->waves);
    free(hub->bells);
    free(hub->rank);
    free(hub->pair);
    free(hub);
}

uint32_t rnl_hub_size(const struct rnl_hub *hub)
{
    return hub->size;
}
