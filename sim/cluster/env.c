/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env.c - what the library beneath a virtual process is told of the world (base/env.h): the time of its virtual host,
 * chance that follows from the seed, and a launcher that is agent.c. Each question is a step at which the scenario may
 * have the rank crash; giving way and sleeping take virtual time.
 *
 * Ranks of one virtual host share segments; those of others are reached over the virtual network by net/datagram. */
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/net.h"

#include "base/error.h"
#include "endpoint/endpoint.h"
#include "net/datagram/transport.h"
#include "net/datagram/udp.h"
#include "open/open.h"
#include "sim/engine/random.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_NS = 20000 /* to ask the launcher for a segment */ };

struct vc_env {
    struct rnl_env env; /* first */
    struct vc_process *process;
    const _Atomic uint32_t *sleeps_on; /* NULL: awake */
    struct rnl_sim_coro_ticket ticket;
    int fd;                    /* the process's number of its descriptor; -1 = nobody has asked for it */
    uint8_t raised, polls;     /* it is readable; the process sleeps until it is */
    uint64_t fd_until_ns;      /* it is from then on in any case */
    struct rnl_socket *socket; /* below env.datagrams, until that is closed; NULL: none */
};

static struct vc_process *process_of(const struct rnl_env *env)
{
    return ((const struct vc_env *)(const void *)env)->process;
}

/* ---- steps ---- */

/* Neither being made nor being freed. */
static bool endpoint_is_whole(const struct vc_process *vp)
{
    const struct rnl_endpoint *ep = vc_env_endpoint(vp);
    const bool of_job = ep && ep->close.closing != RNL_CLOSED;
    return of_job == (vp->env != NULL) && (of_job || vp->alone) && vc_alone_is_whole(vp);
}

void vc_env_step(struct vc_process *vp)
{
    if (vc_process_now == vp && ++vp->steps >= vp->crash_step && vp->crash_step > 0 && endpoint_is_whole(vp))
        vc_process_crash(vp->cluster, vp, vp->crash_restart_ns);
}

void vc_env_count_step(struct vc_process *vp)
{
    vp->steps += vc_process_now == vp;
}

void vc_env_use(struct vc_process *vp, uint64_t ns)
{
    if (vc_process_now != vp)
        return;
    if (endpoint_is_whole(vp))
        vc_process_charge(vp, ns);
    else
        vp->debt_ns += ns;
}

static struct vc_process *step(const struct rnl_env *env)
{
    vc_env_step(process_of(env));
    return process_of(env);
}

static struct vc_process *count(const struct rnl_env *env)
{
    vc_env_count_step(process_of(env));
    return process_of(env);
}

static struct rnl_membership *members(const struct rnl_env *env)
{
    return vc_agent_members(process_of(env)->cluster->agent);
}

/* ---- time and chance ---- */

static uint64_t vc_env_now_ns(struct rnl_env *env)
{
    struct vc_process *vp = step(env);
    vc_env_use(vp, VC_NOW_NS);
    return vc_process_ns(vp);
}

static uint64_t vc_env_random(struct rnl_env *env)
{
    struct vc_process *vp = step(env);
    return rnl_sim_random(vp->cluster->opt.seed, VC_CHANCE_ENV, (uint64_t)vp->rank << 32 | vp->life, vp->drawn_env++);
}

/* ---- giving way ---- */

static uint64_t vc_env_yield(struct rnl_env *env)
{
    struct vc_process *vp = step(env);
    uint64_t ns = vp->debt_ns + VC_YIELD_NS;
    vc_process_sleep(vp, rnl_sim_now(vp->cluster->sim) + ns * VC_TICKS_PER_NS);
    return ns;
}

static void vc_env_park(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    struct vc_env *v = (struct vc_env *)(void *)env;
    struct vc_process *vp = step(env);
    vc_process_pay(vp);
    if (atomic_load_explicit(word, memory_order_relaxed) != expected)
        return;
    if (vc_alone_watch(vp, &deadline_ns))
        return;
    v->sleeps_on = word;
    v->ticket = rnl_sim_ticket(&vp->coro);
    uint64_t due = vc_host_tick(vp->host, deadline_ns);
    vc_process_sleep(vp, due == RNL_SIM_NEVER ? due : due + vc_host_late(vp->cluster, vp->host));
    v->sleeps_on = NULL;
}

void vc_env_rung(struct vc_cluster *c, uint32_t rank)
{
    struct vc_process *vp = &c->process[rank];
    struct vc_env *v = vp->env;
    uint64_t debt = vc_process_now ? vc_process_now->debt_ns : 0;
    if (!v)
        return;
    v->raised = 1;
    if (!v->sleeps_on && !v->polls)
        return;
    uint64_t late = vc_host_late(c, vp->host);
    (void)vc_process_wake(vp, v->ticket, rnl_sim_now(c->sim) + (debt + VC_WAKE_NS) * VC_TICKS_PER_NS + late, 1);
}

static void vc_env_wake(struct rnl_env *env, _Atomic uint32_t *word)
{
    const struct vc_cluster *c = step(env)->cluster;
    const char *first = (const char *)vc_agent_bell(c->agent, 0);
    size_t rank = (size_t)((const char *)word - first) / RNL_BELL_BYTES;
    if (rank < c->opt.ranks)
        vc_env_rung(process_of(env)->cluster, (uint32_t)rank);
}

static int vc_env_heavy_fence(struct rnl_env *env)
{
    (void)step(env); /* one thread: all see all stores */
    return 0;
}

static uint64_t vc_env_sense_load(struct rnl_env *env, const _Atomic uint64_t *word, uint64_t last, uint8_t *d)
{
    (void)env, (void)last, (void)d; /* everybody is near */
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void vc_env_sense_fence(struct rnl_env *env, uint8_t *d)
{
    (void)env, (void)d;
}

/* ---- memory ---- */

static int vc_env_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
{
    struct vc_process *vp = count(env);
    const struct vc_cluster *c = vp->cluster;
    (void)wait_ns; /* the launcher answers at once, as time passes for who asks */
    if (rank >= c->opt.ranks || bytes == 0)
        return rnl_fail(RNL_ERR_RANK, "no segment of %zu bytes with rank %u in a job of %u", bytes, rank, c->opt.ranks);
    if (c->process[rank].host != vp->host)
        return rnl_fail(RNL_ERR_UNSUPPORTED, "rank %u is on another virtual host: memory is shared within one", rank);
    if (vc_process_now == vp)
        vp->debt_ns += ASK_NS; /* passed later: nobody knows yet of what it holds */
    return rnl_membership_segment_open(members(env), vp->rank, rank, bytes, segment);
}

static int vc_env_segment_map(struct rnl_env *env, int segment, size_t offset, size_t bytes, int writable, void **at)
{
    (void)writable; /* one mapping serves both sides */
    (void)count(env);
    return rnl_membership_segment_map(members(env), segment, offset, bytes, at);
}

static void vc_env_segment_unmap(struct rnl_env *env, int segment, void *at, size_t bytes)
{
    (void)env, (void)segment, (void)at, (void)bytes; /* the other side may still read it */
}

static void vc_env_segment_mapped(struct rnl_env *env, int segment)
{
    rnl_membership_segment_mapped(members(env), rnl_membership_segment_at(members(env), segment), env->rank);
}

static void vc_env_segment_close(struct rnl_env *env, int segment)
{
    rnl_membership_segment_close(members(env), rnl_membership_segment_at(members(env), segment), env->rank);
}

/* ---- news ---- */

static int vc_env_event(struct rnl_env *env, struct rnl_event *out)
{
    (void)step(env);
    return rnl_membership_event(members(env), env->rank, out);
}

static int vc_env_close_report(struct rnl_env *env, uint64_t wave, uint64_t activity)
{
    (void)step(env);
    return rnl_membership_report(members(env), env->rank, wave, activity);
}

static int vc_env_part(struct rnl_env *env, uint32_t rank, int why)
{
    if (why != RNL_DEATH_BROKEN) /* one that is silent hears nothing */
        return 0;
    (void)step(env);
    return rnl_membership_disconnect(members(env), env->rank, rank);
}

/* ---- event loops: shim_poll.c ---- */

int vc_process_number(struct vc_process *vp, int *number)
{
    for (int fd = 3; *number < 0 && fd < VC_PROCESS_FDS; fd++) {
        if (vp->fds[fd] != -1)
            continue;
        vp->fds[fd] = VC_PROCESS_FD_ENDPOINT;
        *number = fd;
    }
    return *number >= 0 ? *number
                        : rnl_fail(RNL_ERR_SYSTEM, "all %d descriptors of rank %u are taken: close some",
                                   VC_PROCESS_FDS, vp->rank);
}

static int vc_env_fd(struct rnl_env *env)
{
    return vc_process_number(step(env), &((struct vc_env *)(void *)env)->fd);
}

static int vc_env_fd_watch(struct rnl_env *env, int fd)
{
    return vc_alone_watched(step(env), fd);
}

static void vc_env_fd_drain(struct rnl_env *env)
{
    ((struct vc_env *)(void *)step(env)->env)->raised = 0;
}

static void vc_env_fd_until(struct rnl_env *env, uint64_t ns)
{
    ((struct vc_env *)(void *)step(env)->env)->fd_until_ns = ns;
}

static void vc_env_fd_raise(struct rnl_env *env, uint32_t rank)
{
    struct vc_cluster *c = step(env)->cluster;
    if (rank < c->opt.ranks)
        vc_env_rung(c, rank);
}

bool vc_env_readable(const struct vc_process *vp)
{
    return !vp->env || vp->env->raised || vc_process_ns(vp) >= vp->env->fd_until_ns || vc_alone_readable(vp);
}

void vc_env_poll(struct vc_process *vp, uint64_t until_ns)
{
    struct vc_env *v = vp->env;
    vc_process_pay(vp);
    if (v && v->fd >= 0 && vc_env_readable(vp))
        return;
    if (vc_alone_watch(vp, &until_ns))
        return;
    if (v) {
        until_ns = v->fd >= 0 && v->fd_until_ns < until_ns ? v->fd_until_ns : until_ns;
        v->polls = 1;
        v->ticket = rnl_sim_ticket(&vp->coro);
    }
    vc_process_sleep(vp, vc_host_tick(vp->host, until_ns));
    if (vp->env)
        vp->env->polls = 0;
}

/* ---- life ---- */

static struct rnl_bell *vc_env_bell_of(struct rnl_env *env, uint32_t rank)
{
    return vc_agent_bell(process_of(env)->cluster->agent, rank);
}

static bool nth_place(struct rnl_env *env, uint32_t rank, unsigned nth, struct rnl_rank_address *out)
{
    const struct vc_process *vp = process_of(env), *other = &vp->cluster->process[rank];
    const struct rnl_socket_addr at = vc_socket_nth_addr(other, nth);
    struct rnl_addr addr;
    if (other->host == vp->host)
        return false;
    rnl_udp_addr_of(&at, &addr);
    *out = (struct rnl_rank_address){.incarnation = rnl_membership_incarnation(members(env), vp->rank, rank),
                                     .addr_bytes = addr.len};
    memcpy(out->addr, addr.bytes, addr.len);
    return true;
}

/* 1 = it is on another host, and found there. */
static int vc_env_place(struct rnl_env *env, uint32_t rank, struct rnl_rank_address *out)
{
    return nth_place(env, rank, 0, out);
}

static int vc_env_way(struct rnl_env *env, uint32_t rank, unsigned n, struct rnl_rank_address *out)
{
    return n + 1 < vc_net_addresses(process_of(env)->cluster->net) && nth_place(env, rank, n + 1, out);
}

static int32_t vc_env_pid_of(struct rnl_env *env, uint32_t rank)
{
    return vc_process_pid(&process_of(env)->cluster->process[rank]);
}

static uint32_t vc_env_host_of(struct rnl_env *env, uint32_t rank)
{
    return process_of(env)->cluster->process[rank].host->index;
}

static void vc_env_close(struct rnl_env *env)
{
    struct vc_env *v = (struct vc_env *)(void *)env;
    struct vc_process *vp = process_of(env);
    if (v->socket) /* no endpoint had its transport */
        env->datagrams->ops->close(env->datagrams);
    vc_agent_gone(vp->cluster->agent, env->rank, RNL_DEATH_EXIT, 0);
    if (v->fd >= 0)
        vp->fds[v->fd] = -1;
    vp->env = NULL;
    free(env);
}

static const struct rnl_env_ops vc_env_ops = {
    .size = sizeof vc_env_ops,
    .now_ns = vc_env_now_ns,
    .random = vc_env_random,
    .yield = vc_env_yield,
    .park = vc_env_park,
    .wake = vc_env_wake,
    .heavy_fence = vc_env_heavy_fence,
    .sense_load = vc_env_sense_load,
    .sense_fence = vc_env_sense_fence,
    .segment_open = vc_env_segment_open,
    .segment_map = vc_env_segment_map,
    .segment_unmap = vc_env_segment_unmap,
    .segment_mapped = vc_env_segment_mapped,
    .segment_close = vc_env_segment_close,
    .event = vc_env_event,
    .close_report = vc_env_close_report,
    .disconnect = vc_env_part,
    .fd = vc_env_fd,
    .fd_watch = vc_env_fd_watch,
    .fd_drain = vc_env_fd_drain,
    .fd_until = vc_env_fd_until,
    .fd_raise = vc_env_fd_raise,
    .close = vc_env_close,
    .pid_of = vc_env_pid_of,
    .rank_address = vc_env_place,
    .alternate_address = vc_env_way,
    .host_of = vc_env_host_of,
};

/* The way to other hosts, and the key of the job, which nobody else knows. */
static int open_datagrams(struct vc_env *v)
{
    struct vc_cluster *c = v->process->cluster;
    int status = vc_socket_open(v->process, &v->socket);
    if (status < 0)
        return status;
    status = rnl_udp_transport_new(&v->env, v->socket, NULL, &v->env.datagrams);
    if (status < 0)
        v->socket->ops->close(v->socket);
    for (uint64_t i = 0; i < sizeof v->env.job_key / 8; i++) {
        uint64_t word = htole64(rnl_sim_random(c->opt.seed, VC_CHANCE_ENV, UINT64_MAX, i));
        memcpy(v->env.job_key + 8 * i, &word, 8);
    }
    return status;
}

/* rnl_open_virtual: for the rank that runs. */
int vc_env_open(const struct rnl_options *opt, struct rnl_env **out)
{
    struct vc_process *vp = vc_process_now;
    if (opt && opt->flags & RNL_ALONE)
        return vc_alone_open(vp, opt, out);
    struct vc_env *v = calloc(1, sizeof *v);
    if (!v)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to join a job");
    struct vc_cluster *c = vp->cluster;
    uint64_t incarnation = 1 + vp->rank + (uint64_t)(vp->life - 1) * c->opt.ranks;
    int again = opt && (opt->flags & RNL_RESTARTED) != 0;
    struct rnl_membership *m = vc_agent_members(c->agent);
    int status =
        again ? rnl_membership_rejoin(m, vp->rank, incarnation) : rnl_membership_join(m, vp->rank, incarnation);
    if (status < 0) {
        free(v);
        return status;
    }
    v->process = vp;
    v->fd = -1;
    v->fd_until_ns = UINT64_MAX;
    v->env.ops = &vc_env_ops;
    v->env.rank = vp->rank;
    v->env.size = c->opt.ranks;
    v->env.incarnation = incarnation;
    v->env.event_seq = vc_agent_news(c->agent, vp->rank);
    v->env.bell = vc_agent_bell(c->agent, vp->rank);
    v->env.bell_of = vc_env_bell_of;
    v->env.congest_algorithm = vp->host->algorithm;
    snprintf(v->env.host, sizeof v->env.host, "host%u", vp->host->index);
    v->env.facts = (struct rnl_env_facts){
        .cpus = vp->host->ranks,
        .local_endpoints = c->opt.ranks,
        .page_bytes = 4096,
        .have_membarrier = 1,
        .keep_going = c->opt.keep_going,
        .launched = 1,
        .is_virtual = 1,
    };
    vp->env = v;
    status = c->opt.hosts > 1 ? open_datagrams(v) : 0;
    if (status < 0)
        vc_env_close(&v->env);
    else
        *out = &v->env;
    return status;
}

struct rnl_endpoint *vc_env_endpoint(const struct vc_process *vp)
{
    return vp->env ? vp->env->env.endpoint : NULL;
}

/* An endpoint that was still being made is lost. */
void vc_env_drop(struct vc_process *vp)
{
    struct rnl_endpoint *ep = vc_env_endpoint(vp);
    vc_alone_drop(vp);
    if (ep)
        vc_ifaces_abandon(vp->ifaces, ep);
    vc_agent_gone(vp->cluster->agent, vp->rank, vp->end == VC_END_SIGNAL ? RNL_DEATH_SIGNAL : RNL_DEATH_EXIT,
                  vp->detail);
    if (!vp->env)
        return;
    if (vp->env->socket)
        vc_socket_kill(vp->env->socket); /* no farewell from a process that was killed */
    if (ep)
        rnl_ep_free(ep);
    else
        vc_env_close(&vp->env->env);
}
