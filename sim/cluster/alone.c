/* SPDX-License-Identifier: BSD-3-Clause
 *
 * alone.c - endpoints alone in the virtual cluster: src/meet as it is, with the clock, the sleep and the host of a
 * virtual process, and a daemon (meet/daemon.h) for each virtual host, whose steps are events. What processes of one
 * virtual host say to each other while they are introduced goes over real sockets, and what they share is real memory:
 * all of them are in this process, so what is sent is there at once, and what follows is the same in each run. Only
 * that somebody sleeps, and is woken, is virtual: after each turn of anybody a look finds whose sockets have become
 * readable. Daemons of different hosts talk over streams of the virtual network (stream.c). */
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/stream.h"

#include "base/error.h"
#include "endpoint/endpoint.h"
#include "meet/daemon.h"
#include "meet/meet.h"
#include "net/datagram/udp.h"
#include "sim/engine/random.h"

#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    DAEMON_STARTS_NS = 3000000, /* from starting a daemon until it listens */
    ENTITY_DAEMON = 0x30000000, /* of a daemon's steps: and its host */
    DAEMON_PORT = 640,
    EVENTS = 64
};

/* What an event of the epoll instance is about: the first word of what it points to. */
enum source { SOURCE_ALONE = 1, SOURCE_DAEMON };

struct vc_alone {
    uint32_t source;
    int fd; /* what it sleeps on, which is watched; -1 = it has not slept yet */
    struct rnl_meet_world world;
    struct vc_process *process;
    struct rnl_env *env;
    struct vc_alone *next;
    struct rnl_sim_coro_ticket ticket;
    bool sleeps;
    int number;                /* of its descriptor, which programs cannot wait on; -1 = nobody has asked for it */
    bool raised, watched;      /* that is readable; it wakes all of the process */
    uint64_t until_ns;         /* it is from then on in any case */
    struct rnl_socket *socket; /* below env->datagrams, until that is closed */
};

struct vc_daemon {
    uint32_t source;
    bool starts;
    struct vc_cluster *cluster;
    struct vc_host *host;
    struct rnl_daemon *daemon; /* NULL: none runs */
    struct rnl_sim_event step;
    struct rnl_daemon_net net;
};

struct vc_meet {
    int epoll;
    struct vc_daemon daemon[]; /* by host */
};

static struct vc_alone *alone_of(struct rnl_env *env)
{
    char *world = (char *)rnl_meet_world_of(env);
    return (struct vc_alone *)(void *)(world - offsetof(struct vc_alone, world));
}

static struct vc_process *process_of(struct rnl_env *env)
{
    return alone_of(env)->process;
}

static void look(struct vc_cluster *c);

/* ---- daemons ---- */

static void daemon_name(const struct vc_cluster *c, const struct vc_host *h, char out[40])
{
    (void)c;
    snprintf(out, 40, "virtual-%d-%u", (int)getpid(), h->index);
}

static uint64_t tick_of(const struct vc_daemon *d, uint64_t ns)
{
    const uint64_t tick = vc_host_tick(d->host, ns), stall = d->host->stalled_until;
    return tick < stall ? stall : tick;
}

static void step_at(struct vc_daemon *d, uint64_t tick)
{
    if (tick != RNL_SIM_NEVER && (!rnl_sim_scheduled(&d->step) || rnl_sim_when(d->cluster->sim, &d->step) > tick))
        (void)rnl_sim_at(d->cluster->sim, &d->step, tick);
}

/* Whether the daemon could be made: there may be no descriptors left, and then whoever asks for one is told so. */
static bool start(struct vc_daemon *d)
{
    struct vc_meet *t = d->cluster->meet;
    char name[40];
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = d};
    const struct rnl_daemon_options opt = {
        .name = name, .net = d->cluster->streams ? &d->net : NULL, .port = DAEMON_PORT};
    daemon_name(d->cluster, d->host, name);
    d->starts = false;
    if (rnl_daemon_new(&opt, &d->daemon) < 0) {
        vc_agent_say(d->cluster, "no daemon on host %u: %s", d->host->index, rnl_last_error()->text);
        d->daemon = NULL;
        return false;
    }
    (void)epoll_ctl(t->epoll, EPOLL_CTL_ADD, rnl_daemon_fd(d->daemon), &e);
    return true;
}

static void step_came(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    struct vc_cluster *c = rnl_sim_owner(sim);
    struct vc_daemon *d = &c->meet->daemon[event->entity - ENTITY_DAEMON];
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = d};
    if (!d->daemon && (!d->starts || !start(d)))
        return;
    rnl_daemon_step(d->daemon, vc_host_ns(d->host, rnl_sim_now(sim)));
    (void)epoll_ctl(c->meet->epoll, EPOLL_CTL_MOD, rnl_daemon_fd(d->daemon), &e);
    step_at(d, tick_of(d, rnl_daemon_deadline_ns(d->daemon)));
    look(c);
}

void vc_daemon_kill(struct vc_cluster *c, struct vc_host *h)
{
    struct vc_daemon *d = c->meet ? &c->meet->daemon[h->index] : NULL;
    if (!d || !d->daemon)
        return;
    rnl_daemon_free(d->daemon);
    d->daemon = NULL;
    if (c->streams)
        vc_stream_unlisten(c->streams, h->index);
    rnl_sim_cancel(c->sim, &d->step);
    look(c);
}

static int start_daemon(struct rnl_env *env)
{
    const struct vc_process *vp = process_of(env);
    struct vc_daemon *d = &vp->cluster->meet->daemon[vp->host->index];
    if (!d->daemon && !d->starts) {
        d->starts = true;
        step_at(d, rnl_sim_now(vp->cluster->sim) + (uint64_t)DAEMON_STARTS_NS * VC_TICKS_PER_NS);
    }
    return 0;
}

/* ---- who is woken ---- */

static void wake(struct vc_alone *a)
{
    struct vc_cluster *c = a->process->cluster;
    const uint64_t debt = vc_process_now ? vc_process_now->debt_ns : 0;
    for (struct vc_alone *b = a->process->alone; b; b = b->next)
        if (b->sleeps && (b == a || a->watched))
            (void)vc_process_wake(b->process, b->ticket, rnl_sim_now(c->sim) + (debt + VC_WAKE_NS) * VC_TICKS_PER_NS,
                                  1);
    if (a->watched)
        vc_env_rung(c, a->process->rank);
}

static void look(struct vc_cluster *c)
{
    struct epoll_event events[EVENTS];
    int n = c->meet && !c->over ? EVENTS : 0;
    while (n == EVENTS) {
        n = epoll_wait(c->meet->epoll, events, EVENTS, 0);
        for (int i = 0; i < n; i++) {
            struct vc_daemon *d = events[i].data.ptr;
            if (d->source == SOURCE_DAEMON)
                step_at(d, rnl_sim_now(c->sim) + (uint64_t)VC_WAKE_NS * VC_TICKS_PER_NS);
            else if (d->source == SOURCE_ALONE)
                wake(events[i].data.ptr);
            else
                vc_stream_readable(events[i].data.ptr);
        }
    }
}

/* ---- the env ---- */

static uint64_t now_ns(struct rnl_env *env)
{
    struct vc_process *vp = process_of(env);
    vc_env_step(vp);
    vc_env_use(vp, VC_NOW_NS);
    return vc_process_ns(vp);
}

static uint64_t draw(struct rnl_env *env)
{
    struct vc_process *vp = process_of(env);
    vc_env_count_step(vp);
    return rnl_sim_random(vp->cluster->opt.seed, VC_CHANCE_ENV, (uint64_t)vp->rank << 32 | vp->life, vp->drawn_env++);
}

static uint64_t yield(struct rnl_env *env)
{
    struct vc_process *vp = process_of(env);
    vc_env_step(vp);
    const uint64_t ns = vp->debt_ns + VC_YIELD_NS;
    vc_process_sleep(vp, rnl_sim_now(vp->cluster->sim) + ns * VC_TICKS_PER_NS);
    return ns;
}

static int heavy_fence(struct rnl_env *env)
{
    (void)env; /* one thread: all see all stores */
    return 0;
}

static uint64_t sense_load(struct rnl_env *env, const _Atomic uint64_t *word, uint64_t last, uint8_t *d)
{
    (void)env, (void)last, (void)d; /* everybody is near */
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void sense_fence(struct rnl_env *env, uint8_t *d)
{
    (void)env, (void)d;
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* When the descriptor becomes readable, a is woken. */
static void arm(struct vc_alone *a, int fd)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = a};
    (void)epoll_ctl(a->process->cluster->meet->epoll, a->fd < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &e);
    a->fd = fd;
}

/* ---- descriptors: what windows wait on besides ---- */

static int fd_of(struct rnl_env *env)
{
    return vc_process_number(process_of(env), &alone_of(env)->number);
}

static int fd_watch(struct rnl_env *env, int number)
{
    return vc_alone_watched(process_of(env), number);
}

static void fd_drain(struct rnl_env *env)
{
    alone_of(env)->raised = false;
    rnl_meet_real_ops.fd_drain(env);
}

static void fd_until(struct rnl_env *env, uint64_t ns)
{
    alone_of(env)->until_ns = ns;
}

static void fd_raise(struct rnl_env *env, uint32_t rank)
{
    if (rank != env->rank) {
        rnl_meet_real_ops.fd_raise(env, rank);
        return;
    }
    alone_of(env)->raised = true;
    wake(alone_of(env));
}

int vc_alone_watched(struct vc_process *vp, int number)
{
    for (struct vc_alone *a = vp->alone; a; a = a->next) {
        if (a->number != number)
            continue;
        a->watched = true;
        return 0;
    }
    return rnl_fail(RNL_ERR_SYSTEM, "descriptor %d of rank %u is none of an endpoint alone", number, vp->rank);
}

/* Gives when it is readable in any case; *fd is what makes it so before. */
static uint64_t due(struct vc_alone *a, int *fd)
{
    uint64_t ns;
    *fd = rnl_meet_looks_at(a->env, &ns);
    return ns < a->until_ns ? ns : a->until_ns;
}

static bool has(struct vc_alone *a)
{
    int fd;
    return a->raised || vc_process_ns(a->process) >= due(a, &fd) || is_readable(fd);
}

static bool others_have(const struct vc_process *vp, const struct vc_alone *self)
{
    for (struct vc_alone *a = vp->alone; a; a = a->next)
        if (a != self && a->watched && a->env && has(a))
            return true;
    return false;
}

/* As vc_alone_watch, but without one that sleeps itself, and has looked. */
static bool watch_others(struct vc_process *vp, const struct vc_alone *self, uint64_t *until_ns)
{
    if (others_have(vp, self))
        return true;
    for (struct vc_alone *a = vp->alone; a; a = a->next) {
        int fd;
        if (a == self || !a->watched || !a->env)
            continue;
        const uint64_t ns = due(a, &fd);
        *until_ns = ns < *until_ns ? ns : *until_ns;
        arm(a, fd);
    }
    return false;
}

bool vc_alone_readable(const struct vc_process *vp)
{
    return others_have(vp, NULL);
}

bool vc_alone_watch(struct vc_process *vp, uint64_t *until_ns)
{
    return watch_others(vp, NULL, until_ns);
}

static void sleep_on(struct rnl_env *env, int fd, uint64_t until_ns)
{
    struct vc_alone *a = alone_of(env);
    struct vc_process *vp = a->process;
    vc_env_step(vp);
    vc_process_pay(vp);
    if (is_readable(fd) || watch_others(vp, a, &until_ns))
        return;
    arm(a, fd);
    a->ticket = rnl_sim_ticket(&vp->coro);
    a->sleeps = true;
    vc_process_sleep(vp, vc_host_tick(vp->host, until_ns));
    a->sleeps = false;
}

static int32_t pid_of(struct rnl_env *env, const unsigned char name[16])
{
    const struct vc_process *vp = process_of(env);
    const struct vc_cluster *c = vp->cluster;
    for (uint32_t rank = vp->host->first_rank; rank < vp->host->first_rank + vp->host->ranks; rank++)
        for (const struct vc_alone *a = c->process[rank].alone; a; a = a->next)
            if (a->env && memcmp(rnl_meet_name_of(a->env), name, 16) == 0)
                return vc_process_pid(&c->process[rank]);
    return 0;
}

static int resolve(struct rnl_env *env, const char *host, unsigned char ip[16])
{
    const struct vc_cluster *c = process_of(env)->cluster;
    unsigned index;
    int end = 0;
    if (sscanf(host, "host%4u%n", &index, &end) != 1 || host[end] != '\0' || index >= c->opt.hosts)
        return rnl_fail(RNL_ERR_UNREACHABLE, "there is no virtual host %.100s: they are host0 to host%u", host,
                        c->opt.hosts - 1);
    vc_stream_ip(index, ip);
    return 0;
}

/* Something came to its socket: as the kernel would, it wakes who sleeps on it. */
static void ring(void *arg)
{
    struct vc_alone *a = arg;
    atomic_fetch_add_explicit(&a->env->bell->word, 1, memory_order_relaxed);
    a->raised = true;
    wake(a);
}

static int datagrams(struct rnl_env *env, uint16_t *port)
{
    struct vc_alone *a = alone_of(env);
    int status = vc_socket_open_any(a->process, ring, a, port, &a->socket);
    if (status < 0)
        return status;
    status = rnl_udp_transport_new(env, a->socket, NULL, &env->datagrams);
    if (status < 0)
        a->socket->ops->close(a->socket);
    return status;
}

/* ---- life ---- */

static void unlink_alone(struct vc_alone *a)
{
    struct vc_alone **at = &a->process->alone;
    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    free(a);
}

static void close_env(struct rnl_env *env)
{
    struct vc_alone *a = alone_of(env);
    a->env = NULL;
    if (a->number >= 0)
        a->process->fds[a->number] = -1;
    rnl_meet_real_ops.close(env);
    unlink_alone(a);
}

static struct rnl_env_ops ops; /* the same for all */

static void make_ops(void)
{
    ops = rnl_meet_real_ops;
    ops.now_ns = now_ns;
    ops.random = draw;
    ops.yield = yield;
    ops.heavy_fence = heavy_fence;
    ops.sense_load = sense_load;
    ops.sense_fence = sense_fence;
    ops.fd = fd_of;
    ops.fd_watch = fd_watch;
    ops.fd_drain = fd_drain;
    ops.fd_until = fd_until;
    ops.fd_raise = fd_raise;
    ops.park_on = NULL; /* the socket rings */
    ops.close = close_env;
}

static int make_meet(struct vc_cluster *c)
{
    struct vc_meet *t = calloc(1, sizeof *t + c->opt.hosts * sizeof t->daemon[0]);
    int status = t ? 0 : rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the daemons of %u virtual hosts", c->opt.hosts);
    if (status < 0)
        return status;
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (t->epoll < 0)
        status = rnl_fail(RNL_ERR_SYSTEM, "the simulator has no descriptor left: raise their limit (ulimit -n)");
    if (status == 0 && c->opt.hosts > 1)
        status = vc_streams_new(c, t->epoll, look, &c->streams);
    if (status < 0) {
        if (t->epoll >= 0)
            close(t->epoll);
        free(t);
        return status;
    }
    for (uint32_t i = 0; i < c->opt.hosts; i++) {
        struct vc_daemon *d = &t->daemon[i];
        *d = (struct vc_daemon){.source = SOURCE_DAEMON, .cluster = c, .host = &c->host[i]};
        rnl_sim_event_init(&d->step, step_came, ENTITY_DAEMON + i);
        if (c->streams)
            vc_stream_net(c->streams, i, &d->net);
        for (unsigned k = 0; k < sizeof d->net.key; k++) /* the hosts of a cluster have one key */
            d->net.key[k] = (unsigned char)rnl_sim_random(c->opt.seed, VC_CHANCE_KEYS, 1, k);
    }
    make_ops();
    c->meet = t;
    c->looks = look;
    return 0;
}

int vc_alone_open(struct vc_process *vp, const struct rnl_options *opt, struct rnl_env **out)
{
    struct vc_cluster *c = vp->cluster;
    int status = c->meet ? 0 : make_meet(c);
    struct vc_alone *a = status == 0 ? calloc(1, sizeof *a) : NULL;
    if (!a)
        return status < 0 ? status : rnl_fail(RNL_ERR_NO_MEMORY, "no memory for an endpoint");
    *a = (struct vc_alone){.source = SOURCE_ALONE, .fd = -1, .number = -1, .until_ns = UINT64_MAX, .process = vp};
    a->world = (struct rnl_meet_world){.ops = &ops,
                                       .facts = {.cpus = vp->host->ranks,
                                                 .local_endpoints = c->opt.ranks,
                                                 .page_bytes = 4096,
                                                 .have_membarrier = 1,
                                                 .is_virtual = 1},
                                       .has_hosts = c->opt.hosts > 1,
                                       .sleep = sleep_on,
                                       .start_daemon = start_daemon,
                                       .pid = pid_of,
                                       .resolve = resolve,
                                       .datagrams = datagrams};
    snprintf(a->world.host, sizeof a->world.host, "host%u", vp->host->index);
    daemon_name(c, vp->host, a->world.daemon);
    memcpy(a->world.host_id, &vp->host->index, sizeof vp->host->index);
    vc_stream_ip(vp->host->index, a->world.ip);
    a->next = vp->alone;
    vp->alone = a;
    status = rnl_meet_env_in(opt, &a->world, &a->env);
    if (status < 0) {
        unlink_alone(a);
        return status;
    }
    *out = a->env;
    return 0;
}

bool vc_alone_is_whole(const struct vc_process *vp)
{
    for (const struct vc_alone *a = vp->alone; a; a = a->next)
        if (!a->env || !a->env->endpoint || a->env->endpoint->close.closing == RNL_CLOSED)
            return false;
    return true;
}

void vc_alone_drop(struct vc_process *vp)
{
    while (vp->alone) {
        struct vc_alone *a = vp->alone;
        struct rnl_env *env = a->env;
        a->world.is_gone = true;
        a->sleeps = false;
        if (a->socket)
            vc_socket_kill(a->socket); /* no farewell from a process that was killed */
        if (!env) {
            unlink_alone(a); /* it was being freed */
        } else if (env->endpoint) {
            vc_ifaces_abandon(vp->ifaces, env->endpoint);
            rnl_ep_free(env->endpoint);
        } else {
            close_env(env);
        }
    }
}

void vc_alone_free(struct vc_cluster *c)
{
    struct vc_meet *t = c->meet;
    c->meet = NULL;
    c->looks = NULL;
    if (!t)
        return;
    for (uint32_t i = 0; i < c->opt.hosts; i++)
        rnl_daemon_free(t->daemon[i].daemon);
    vc_streams_free(c->streams);
    c->streams = NULL;
    close(t->epoll);
    free(t);
}

/* ---- chance ---- */

static struct vc_cluster *draws; /* libsodium asks without saying for whom */

static uint64_t key_word(void)
{
    return rnl_sim_random(draws->opt.seed, VC_CHANCE_KEYS, 0, draws->drawn_keys++);
}

static const char *chance_name(void)
{
    return "seed";
}

static uint32_t chance_word(void)
{
    return (uint32_t)key_word();
}

static void chance_bytes(void *const out, const size_t n)
{
    unsigned char *at = out;
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)key_word();
}

void vc_alone_draws(struct vc_cluster *c, bool on)
{
    static struct randombytes_implementation by_seed = {
        .implementation_name = chance_name, .random = chance_word, .buf = chance_bytes};
    draws = c;
    (void)randombytes_set_implementation(on ? &by_seed : &randombytes_sysrandom_implementation);
}
