/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env.c - what the library beneath a copy is told of the world (base/env.h): the time of its virtual host, chance that
 * follows from the seed, and a launcher that is agent.c. Each question is a step at which the scenario may have the
 * rank crash; giving way and sleeping take virtual time.
 *
 * Ranks of one virtual host share segments; those of others are reached over the virtual network by transport/udp. */
#include "sim/cluster/inside.h"
#include "sim/cluster/net.h"

#include "base/error.h"
#include "job/job.h"
#include "sim/cluster/socket.h"
#include "sim/engine/random.h"
#include "transport/contract.h"
#include "transport/udp/udp.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOW_NS = 20,     /* to look at the clock */
    YIELD_NS = 2000, /* to look in vain and give way. More than wait.c takes for being alone: it soon sleeps instead */
    WAKE_NS = 5000,  /* from ringing a bell until the sleeper runs */
    ASK_NS = 20000   /* to ask the launcher for a segment */
};

struct rnl_venv {
    struct rnl_env env; /* first */
    struct rnl_guest *guest;
    const _Atomic uint32_t *sleeps_on; /* NULL: awake */
    struct rnl_sim_coro_ticket ticket;
    int fd;                    /* the guest's number of its descriptor; -1 = nobody has asked for it */
    uint8_t raised, polls;     /* it is readable; the guest sleeps until it is */
    uint64_t fd_until_ns;      /* it is from then on in any case */
    struct rnl_socket *socket; /* below env.datagrams, until that is closed; NULL: none */
};

static struct rnl_guest *guest_of(const struct rnl_env *env)
{
    return ((const struct rnl_venv *)(const void *)env)->guest;
}

static struct rnl_guest *step(const struct rnl_env *env)
{
    rnl_cluster_step(guest_of(env));
    return guest_of(env);
}

static struct rnl_guest *count(const struct rnl_env *env)
{
    rnl_cluster_count_step(guest_of(env));
    return guest_of(env);
}

static struct rnl_vagent *agent(const struct rnl_env *env)
{
    return guest_of(env)->cluster->agent;
}

/* ---- time and chance ---- */

static uint64_t venv_now_ns(struct rnl_env *env)
{
    struct rnl_guest *g = step(env);
    rnl_cluster_use(g, NOW_NS);
    return rnl_guest_ns(g);
}

static uint64_t venv_random(struct rnl_env *env)
{
    struct rnl_guest *g = step(env);
    return rnl_sim_random(g->cluster->opt.seed, RNL_STREAM_ENV, (uint64_t)g->rank << 32 | g->life, g->drawn_env++);
}

/* ---- giving way ---- */

static uint64_t venv_yield(struct rnl_env *env)
{
    struct rnl_guest *g = step(env);
    uint64_t ns = g->debt_ns + YIELD_NS;
    rnl_guest_sleep(g, rnl_sim_now(g->cluster->sim) + ns * RNL_TICKS_PER_NS);
    return ns;
}

static void venv_park(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    struct rnl_venv *v = (struct rnl_venv *)(void *)env;
    struct rnl_guest *g = step(env);
    rnl_guest_pay(g);
    if (atomic_load_explicit(word, memory_order_relaxed) != expected)
        return;
    v->sleeps_on = word;
    v->ticket = rnl_sim_ticket(&g->coro);
    rnl_guest_sleep(g, rnl_vhost_tick(g->host, deadline_ns));
    v->sleeps_on = NULL;
}

void rnl_venv_rung(struct rnl_cluster *c, uint32_t rank)
{
    struct rnl_guest *g = &c->guest[rank];
    struct rnl_venv *v = g->env;
    uint64_t debt = rnl_guest_now ? rnl_guest_now->debt_ns : 0;
    if (v == NULL)
        return;
    v->raised = 1;
    if (v->sleeps_on != NULL || v->polls)
        (void)rnl_guest_wake(g, v->ticket, rnl_sim_now(c->sim) + (debt + WAKE_NS) * RNL_TICKS_PER_NS, 1);
}

static void venv_wake(struct rnl_env *env, _Atomic uint32_t *word)
{
    const struct rnl_cluster *c = step(env)->cluster;
    const char *first = (const char *)rnl_vagent_bell(c->agent, 0);
    size_t rank = (size_t)((const char *)word - first) / RNL_BELL_BYTES;
    if (rank < c->opt.ranks)
        rnl_venv_rung(guest_of(env)->cluster, (uint32_t)rank);
}

static int venv_heavy_fence(struct rnl_env *env)
{
    (void)step(env); /* one thread: all see all stores */
    return 0;
}

static uint64_t venv_sense_load(struct rnl_env *env, const _Atomic uint64_t *word, uint64_t last, uint8_t *d)
{
    (void)env, (void)last, (void)d; /* everybody is near */
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void venv_sense_fence(struct rnl_env *env, uint8_t *d)
{
    (void)env, (void)d;
}

/* ---- memory ---- */

static int venv_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
{
    struct rnl_guest *g = count(env);
    const struct rnl_cluster *c = g->cluster;
    (void)wait_ns; /* the launcher answers at once, as time passes for who asks */
    if (rank >= c->opt.ranks || bytes == 0)
        return rnl_fail(RNL_ERR_RANK, "no segment of %zu bytes with rank %u in a job of %u", bytes, rank, c->opt.ranks);
    if (c->guest[rank].host != g->host)
        return rnl_fail(RNL_ERR_UNSUPPORTED, "rank %u is on another virtual host: memory is shared within one", rank);
    if (rnl_guest_now == g)
        g->debt_ns += ASK_NS; /* passed later: nobody knows yet of what it holds */
    return rnl_vagent_segment_open(c->agent, g->rank, rank, bytes, segment);
}

static int venv_segment_map(struct rnl_env *env, int segment, size_t offset, size_t bytes, int writable, void **at)
{
    (void)writable; /* one mapping serves both sides */
    return rnl_vagent_segment_map(count(env)->cluster->agent, segment, offset, bytes, at);
}

static void venv_segment_unmap(struct rnl_env *env, int segment, void *at, size_t bytes)
{
    (void)env, (void)segment, (void)at, (void)bytes; /* the other side may still read it */
}

static void venv_segment_settle(struct rnl_env *env, int segment)
{
    rnl_vagent_segment_settle(agent(env), env->rank, segment);
}

static void venv_segment_close(struct rnl_env *env, int segment)
{
    rnl_vagent_segment_close(agent(env), env->rank, segment);
}

/* ---- news ---- */

static int venv_event(struct rnl_env *env, struct rnl_event *out)
{
    return rnl_vagent_event(step(env)->cluster->agent, env->rank, out);
}

static int venv_close_report(struct rnl_env *env, uint64_t wave, uint64_t activity)
{
    return rnl_vagent_report(step(env)->cluster->agent, env->rank, wave, activity);
}

static int venv_part(struct rnl_env *env, uint32_t rank, int why)
{
    if (why == RNL_DEATH_BROKEN) /* a virtual host that stands still goes on, and is waited for */
        rnl_vagent_part(step(env)->cluster->agent, env->rank, rank);
    return 0;
}

/* ---- event loops: stand_poll.c ---- */

static int venv_fd(struct rnl_env *env)
{
    struct rnl_venv *v = (struct rnl_venv *)(void *)env;
    struct rnl_guest *g = step(env);
    for (int fd = 3; v->fd < 0 && fd < RNL_GUEST_FDS; fd++) {
        if (g->fds[fd] != -1)
            continue;
        g->fds[fd] = RNL_GUEST_FD_ENDPOINT;
        v->fd = fd;
    }
    return v->fd >= 0 ? v->fd
                      : rnl_fail(RNL_ERR_SYSTEM, "all %d descriptors of rank %u are taken: close some", RNL_GUEST_FDS,
                                 env->rank);
}

static void venv_fd_drain(struct rnl_env *env)
{
    ((struct rnl_venv *)(void *)step(env)->env)->raised = 0;
}

static void venv_fd_until(struct rnl_env *env, uint64_t ns)
{
    ((struct rnl_venv *)(void *)step(env)->env)->fd_until_ns = ns;
}

static void venv_fd_raise(struct rnl_env *env, uint32_t rank)
{
    struct rnl_cluster *c = step(env)->cluster;
    if (rank < c->opt.ranks)
        rnl_venv_rung(c, rank);
}

int rnl_venv_readable(const struct rnl_guest *g)
{
    return g->env == NULL || g->env->raised || rnl_guest_ns(g) >= g->env->fd_until_ns;
}

void rnl_venv_poll(struct rnl_guest *g, uint64_t until_ns)
{
    struct rnl_venv *v = g->env;
    rnl_guest_pay(g);
    if (v != NULL && v->fd >= 0 && rnl_venv_readable(g))
        return;
    if (v != NULL) {
        until_ns = v->fd >= 0 && v->fd_until_ns < until_ns ? v->fd_until_ns : until_ns;
        v->polls = 1;
        v->ticket = rnl_sim_ticket(&g->coro);
    }
    rnl_guest_sleep(g, rnl_vhost_tick(g->host, until_ns));
    if (g->env != NULL)
        g->env->polls = 0;
}

/* ---- life ---- */

static struct rnl_bell *venv_bell_of(struct rnl_env *env, uint32_t rank)
{
    return rnl_vagent_bell(agent(env), rank);
}

static int nth_place(struct rnl_env *env, uint32_t rank, unsigned nth, struct rnl_place *out)
{
    const struct rnl_guest *g = guest_of(env), *other = &g->cluster->guest[rank];
    const struct rnl_socket_addr at = rnl_vsocket_nth_addr(other, nth);
    struct rnl_addr addr;
    if (other->host == g->host)
        return 0;
    rnl_udp_addr_of(&at, &addr);
    *out = (struct rnl_place){.incarnation = rnl_vagent_incarnation(g->cluster->agent, g->rank, rank),
                              .addr_bytes = addr.len};
    memcpy(out->addr, addr.bytes, addr.len);
    return 1;
}

/* 1 = it is on another host, and found there. */
static int venv_place(struct rnl_env *env, uint32_t rank, struct rnl_place *out)
{
    return nth_place(env, rank, 0, out);
}

static int venv_way(struct rnl_env *env, uint32_t rank, unsigned n, struct rnl_place *out)
{
    return n + 1 < rnl_net_addresses(guest_of(env)->cluster->net) && nth_place(env, rank, n + 1, out);
}

static void venv_close(struct rnl_env *env)
{
    struct rnl_venv *v = (struct rnl_venv *)(void *)env;
    struct rnl_guest *g = guest_of(env);
    if (v->socket != NULL) /* no endpoint had its transport */
        env->datagrams->ops->close(env->datagrams);
    rnl_vagent_gone(agent(env), env->rank, RNL_DEATH_EXIT, 0);
    if (v->fd >= 0)
        g->fds[v->fd] = -1;
    g->env = NULL;
    free(env);
}

static const struct rnl_env_ops venv_ops = {
    .size = sizeof venv_ops,
    .now_ns = venv_now_ns,
    .random = venv_random,
    .yield = venv_yield,
    .park = venv_park,
    .wake = venv_wake,
    .heavy_fence = venv_heavy_fence,
    .sense_load = venv_sense_load,
    .sense_fence = venv_sense_fence,
    .segment_open = venv_segment_open,
    .segment_map = venv_segment_map,
    .segment_unmap = venv_segment_unmap,
    .segment_settle = venv_segment_settle,
    .segment_close = venv_segment_close,
    .event = venv_event,
    .close_report = venv_close_report,
    .part = venv_part,
    .fd = venv_fd,
    .fd_drain = venv_fd_drain,
    .fd_until = venv_fd_until,
    .fd_raise = venv_fd_raise,
    .close = venv_close,
    .place = venv_place,
    .way = venv_way,
};

/* The way to other hosts, and the key of the job, which nobody else knows. */
static int open_datagrams(struct rnl_venv *v)
{
    struct rnl_cluster *c = v->guest->cluster;
    int status = rnl_vsocket_open(v->guest, &v->socket);
    if (status < 0)
        return status;
    status = rnl_udp_transport_new(&v->env, v->socket, NULL, &v->env.datagrams);
    if (status < 0)
        v->socket->ops->close(v->socket);
    for (uint64_t i = 0; i < sizeof v->env.job_key / 8; i++) {
        uint64_t word = htole64(rnl_sim_random(c->opt.seed, RNL_STREAM_ENV, UINT64_MAX, i));
        memcpy(v->env.job_key + 8 * i, &word, 8);
    }
    return status;
}

/* rnl_job_virtual: for the rank that runs. */
int rnl_venv_open(const struct rnl_options *opt, struct rnl_env **out)
{
    struct rnl_guest *g = rnl_guest_now;
    struct rnl_venv *v = calloc(1, sizeof *v);
    if (v == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to join a job");
    struct rnl_cluster *c = g->cluster;
    uint64_t incarnation = 1 + g->rank + (uint64_t)(g->life - 1) * c->opt.ranks;
    int again = opt != NULL && (opt->flags & RNL_RESTARTED) != 0;
    int status =
        again ? rnl_vagent_rejoin(c->agent, g->rank, incarnation) : rnl_vagent_join(c->agent, g->rank, incarnation);
    if (status < 0) {
        free(v);
        return status;
    }
    v->guest = g;
    v->fd = -1;
    v->fd_until_ns = UINT64_MAX;
    v->env.ops = &venv_ops;
    v->env.rank = g->rank;
    v->env.size = c->opt.ranks;
    v->env.incarnation = incarnation;
    v->env.news = rnl_vagent_news(c->agent, g->rank);
    v->env.bell = rnl_vagent_bell(c->agent, g->rank);
    v->env.bell_of = venv_bell_of;
    v->env.law = g->host->law;
    snprintf(v->env.host, sizeof v->env.host, "host%u", g->host->index);
    v->env.facts = (struct rnl_env_facts){
        .cpus = g->host->ranks,
        .crowd = c->opt.ranks,
        .page_bytes = 4096,
        .have_membarrier = 1,
        .keep_going = c->opt.keep_going,
        .launched = 1,
    };
    g->env = v;
    status = c->opt.hosts > 1 ? open_datagrams(v) : 0;
    if (status < 0)
        venv_close(&v->env);
    else
        *out = &v->env;
    return status;
}

/* The endpoint is where the native interface left it, or where FM keeps it; one that was still being made is lost. */
void rnl_venv_drop(struct rnl_guest *g)
{
    struct rnl_endpoint *ep = g->ep ? g->ep : g->fm.ep ? g->fm.ep : rnl_am_rank(&g->am);
    if (ep != NULL)
        rnl_am_drop(ep);
    g->am = (struct rnl_am){0};
    g->ep = NULL;
    rnl_vagent_gone(g->cluster->agent, g->rank, g->end == RNL_END_SIGNAL ? RNL_DEATH_SIGNAL : RNL_DEATH_EXIT,
                    g->detail);
    if (g->env == NULL)
        return;
    if (g->env->socket != NULL)
        rnl_vsocket_kill(g->env->socket); /* no farewell from a process that was killed */
    if (ep != NULL)
        rnl_ep_free(ep);
    else
        venv_close(&g->env->env);
}
