/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - a virtual host: its process is a coroutine on virtual time, over the launcher's part of the virtual cluster
 * (sim/cluster/agent.c) and a socket of the virtual network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "endpoint/net.h"
#include "net/datagram/udp.h"
#include "net/flow/congest.h"
#include "remote/remote.h"
#include "sim/cluster/net.h"
#include "sim/engine/random.h"
#include "stream/stream.h"
#include "support/must.h"
#include "swarm/world.h"

enum {
    PORT = 7000,
    NOW_NS = 20,
    YIELD_NS = 2000,
    RING_NS = 3000,
    SOCKET_TINY = 4 << 10,
    REST_NS = 10000,
    BUDGET_LEAST = 2 * RNL_GRANT_MIN * 64
};

static struct swarm_life *life_of(struct rnl_env *env)
{
    return (struct swarm_life *)(void *)env;
}
static struct swarm_host *host_of(struct rnl_env *env)
{
    return life_of(env)->host;
}

/* Where nobody is taken back the job knows one life of a rank. */
static int knows(const struct swarm_world *w, unsigned life)
{
    return life == 0 || swarm_has(&w->plan, SWARM_READMIT);
}
static int in_job(struct rnl_env *env)
{
    return knows(host_of(env)->w, life_of(env)->number);
}
int swarm_host_in_job(const struct swarm_host *h)
{
    return h->now && knows(h->w, h->now->number);
}

/* ---- time ---- */

static uint64_t tick_now(const struct swarm_host *h)
{
    return rnl_sim_now(h->w->sim) + h->debt_ns * VC_TICKS_PER_NS;
}

static void sleep_until(struct swarm_host *h, uint64_t tick)
{
    uint64_t least = tick_now(h);
    tick = tick > least ? tick : least;
    h->debt_ns = 0;
    (void)rnl_sim_park_until(&h->coro, tick > h->clock.stalled_until ? tick : h->clock.stalled_until);
}

static uint64_t env_now_ns(struct rnl_env *env)
{
    struct swarm_host *h = host_of(env);
    if (rnl_sim_running(h->w->sim) == &h->coro)
        h->debt_ns += NOW_NS;
    return vc_host_ns(&h->clock, tick_now(h));
}

static uint64_t env_random(struct rnl_env *env)
{
    struct swarm_life *l = life_of(env);
    return rnl_sim_random(l->host->w->plan.seed, VC_CHANCE_ENV, (uint64_t)l->host->rank << 32 | l->number, l->drawn++);
}

static uint64_t env_yield(struct rnl_env *env)
{
    struct swarm_host *h = host_of(env);
    sleep_until(h, tick_now(h) + YIELD_NS * VC_TICKS_PER_NS);
    return YIELD_NS;
}

static void env_park(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    struct swarm_host *h = host_of(env);
    if (atomic_load_explicit(word, memory_order_relaxed) != expected)
        return;
    h->sleeps_on = word;
    h->ticket = rnl_sim_ticket(&h->coro);
    sleep_until(h, vc_host_tick(&h->clock, deadline_ns));
    h->sleeps_on = NULL;
}

void swarm_host_ring(struct swarm_host *h)
{
    if (!h->now)
        return;
    atomic_fetch_add_explicit(&h->now->env.bell->word, 1, memory_order_relaxed);
    uint64_t at = rnl_sim_now(h->w->sim) + RING_NS * VC_TICKS_PER_NS;
    if (h->sleeps_on)
        (void)rnl_sim_wake(&h->coro, h->ticket, at > h->clock.stalled_until ? at : h->clock.stalled_until, 1);
}

static void env_wake(struct rnl_env *env, _Atomic uint32_t *word)
{
    (void)env, (void)word; /* nobody shares a host: only the network and the job ring */
}

static int env_heavy_fence(struct rnl_env *env)
{
    (void)env; /* one thread */
    return 0;
}
static uint64_t env_sense_load(struct rnl_env *env, const _Atomic uint64_t *word, uint64_t last, uint8_t *d)
{
    (void)env, (void)last, (void)d;
    return atomic_load_explicit(word, memory_order_relaxed);
}
static void env_sense_fence(struct rnl_env *env, uint8_t *d)
{
    (void)env, (void)d;
}

static struct rnl_membership *members(struct rnl_env *env)
{
    return vc_agent_members(host_of(env)->w->agent);
}

/* ---- memory: a rank shares it with itself only ---- */

static int env_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
{
    (void)wait_ns;
    return rnl_membership_segment_open(members(env), env->rank, rank, bytes, segment);
}
static int env_segment_map(struct rnl_env *env, int segment, size_t offset, size_t bytes, int writable, void **at)
{
    (void)writable;
    return rnl_membership_segment_map(members(env), segment, offset, bytes, at);
}
static void env_segment_unmap(struct rnl_env *env, int segment, void *at, size_t bytes)
{
    (void)env, (void)segment, (void)at, (void)bytes;
}
static void env_segment_settle(struct rnl_env *env, int segment)
{
    rnl_membership_segment_mapped(members(env), rnl_membership_segment_at(members(env), segment), env->rank);
}
static void env_segment_close(struct rnl_env *env, int segment)
{
    rnl_membership_segment_close(members(env), rnl_membership_segment_at(members(env), segment), env->rank);
}

/* ---- the job ---- */

static int env_event(struct rnl_env *env, struct rnl_event *out)
{
    return in_job(env) ? rnl_membership_event(members(env), env->rank, out) : 0;
}
static int env_close_report(struct rnl_env *env, uint64_t wave, uint64_t activity)
{
    struct swarm_host *h = host_of(env);
    if (!in_job(env))
        return 0;
    h->wave = wave;
    return rnl_membership_report(members(env), env->rank, wave, activity);
}
static int env_part(struct rnl_env *env, uint32_t rank, int why)
{
    if (in_job(env) && why == RNL_DEATH_BROKEN)
        rnl_membership_disconnect(members(env), env->rank, rank);
    return 0;
}

static int env_fd(struct rnl_env *env)
{
    (void)env;
    return RNL_ERR_UNSUPPORTED;
}
static void env_fd_drain(struct rnl_env *env)
{
    (void)env;
}
static void env_fd_until(struct rnl_env *env, uint64_t ns)
{
    (void)env, (void)ns;
}
static void env_fd_raise(struct rnl_env *env, uint32_t rank)
{
    (void)env, (void)rank;
}

static void env_close(struct rnl_env *env)
{
    (void)env; /* its host's */
}

static uint64_t incarnation(const struct swarm_host *h, unsigned life)
{
    return 1 + h->rank + (uint64_t)life * h->w->plan.hosts;
}

static int nth_place(struct rnl_env *env, uint32_t rank, unsigned nth, struct rnl_rank_address *out)
{
    const struct swarm_world *w = host_of(env)->w;
    struct rnl_socket_addr a = vc_net_nth_addr(rank, nth, PORT);
    struct rnl_addr addr;
    if (rank == env->rank)
        return 0;
    rnl_udp_addr_of(&a, &addr);
    *out = (struct rnl_rank_address){.addr_bytes = addr.len};
    if (swarm_has(&w->plan, SWARM_READMIT))
        out->incarnation = rnl_membership_incarnation(members(env), env->rank, rank);
    else if (w->plan.knows_lives)
        out->incarnation = incarnation(&w->host[rank], 0);
    memcpy(out->addr, addr.bytes, addr.len);
    return 1;
}

static int env_place(struct rnl_env *env, uint32_t rank, struct rnl_rank_address *out)
{
    return nth_place(env, rank, 0, out);
}

static int env_way(struct rnl_env *env, uint32_t rank, unsigned n, struct rnl_rank_address *out)
{
    return n + 1 < host_of(env)->w->plan.addresses && nth_place(env, rank, n + 1, out);
}

static struct rnl_bell *env_bell_of(struct rnl_env *env, uint32_t rank)
{
    return rank == env->rank ? env->bell : NULL;
}

static const struct rnl_env_ops ops = {
    .size = sizeof ops,
    .now_ns = env_now_ns,
    .random = env_random,
    .yield = env_yield,
    .park = env_park,
    .wake = env_wake,
    .heavy_fence = env_heavy_fence,
    .sense_load = env_sense_load,
    .sense_fence = env_sense_fence,
    .segment_open = env_segment_open,
    .segment_map = env_segment_map,
    .segment_unmap = env_segment_unmap,
    .segment_mapped = env_segment_settle,
    .segment_close = env_segment_close,
    .event = env_event,
    .close_report = env_close_report,
    .disconnect = env_part,
    .fd = env_fd,
    .fd_drain = env_fd_drain,
    .fd_until = env_fd_until,
    .fd_raise = env_fd_raise,
    .close = env_close,
    .rank_address = env_place,
    .alternate_address = env_way,
};

/* ---- life ---- */

static void body(struct rnl_sim_coro *coro, void *arg)
{
    struct swarm_host *h = arg;
    (void)coro;
    swarm_program(h);
    h->ended = 1;
    h->w->running--;
    if (h->w->running == 0)
        rnl_sim_stop(h->w->sim);
}

void swarm_host_new(struct swarm_world *w, unsigned rank)
{
    struct swarm_host *h = &w->host[rank];
    *h = (struct swarm_host){.w = w, .rank = rank};
    vc_host_init(&h->clock, w->plan.seed, rank);
    rnl_sim_coro_init(&h->coro, w->sim, rank, w->stacks + (size_t)rank * SWARM_STACK, SWARM_STACK);
}

unsigned swarm_host_life(const struct swarm_host *h)
{
    unsigned lives = 0;
    while (lives < SWARM_LIVES && h->life[lives])
        lives++;
    return lives ? lives - 1 : 0;
}

int swarm_host_start(struct swarm_host *h)
{
    struct swarm_world *w = h->w;
    unsigned number = h->life[0] ? swarm_host_life(h) + 1 : 0;
    TEST_MUST(number < SWARM_LIVES);
    int known = knows(w, number);
    if (known && rnl_membership_rejoin(vc_agent_members(w->agent), h->rank, incarnation(h, number)) < 0)
        return 0;
    struct swarm_life *l =
        aligned_alloc(RNL_BELL_BYTES, (sizeof *l + RNL_BELL_BYTES - 1) & ~(size_t)(RNL_BELL_BYTES - 1));
    TEST_MUST(l != NULL);
    memset(l, 0, sizeof *l);
    l->host = h;
    l->number = number;
    l->env = (struct rnl_env){.ops = &ops,
                              .rank = h->rank,
                              .size = w->plan.hosts,
                              .incarnation = incarnation(h, number),
                              .event_seq = known ? vc_agent_news(w->agent, h->rank) : &l->news,
                              .bell = known ? vc_agent_bell(w->agent, h->rank) : &l->bell,
                              .bell_of = env_bell_of};
    snprintf(l->env.host, sizeof l->env.host, "host%u", h->rank);
    if (w->plan.newreno == SWARM_LAW_NEWRENO || (w->plan.newreno == SWARM_LAW_EVERY_SECOND && h->rank % 2))
        l->env.congest_algorithm = RNL_CONGEST_NEWRENO;
    l->env.stripe = w->plan.stripe;
    l->env.facts =
        (struct rnl_env_facts){.cpus = 1, .page_bytes = 4096, .have_membarrier = 1, .keep_going = 1, .launched = 1};
    h->life[number] = h->now = l;
    h->known_dead = 0;
    swarm_begins(w->oracle, h->rank, number, known);
    h->debt_ns = 0;
    h->sleeps_on = NULL;
    h->keeps = 0;
    h->asked = h->answered = 0;
    h->ended = h->closed = 0;
    h->sending = 0;
    w->running++;
    TEST_MUST(rnl_sim_coro_start(&h->coro, rnl_sim_now(w->sim), body, h) == 0);
    return 1;
}

static void ring(void *arg)
{
    swarm_host_ring(arg);
}

void swarm_host_open(struct swarm_host *h)
{
    const struct swarm_plan *p = &h->w->plan;
    struct rnl_env *env = &h->now->env;
    struct rnl_socket *socket;
    struct vc_net_socket_config c = {.port = PORT, .plain = p->plain, .ring = ring, .arg = h};
    struct rnl_options opt = {.size = sizeof opt};
    struct rnl_remote_options links = {.silent_ns = p->silent_ns, .open_ns = p->silent_ns};
    if (swarm_has(p, SWARM_BUDGET))
        opt.receive_budget = (size_t)p->hosts * BUDGET_LEAST;
    if (swarm_has(p, SWARM_STACKS))
        opt.stacks = 1;
    if (swarm_has(p, SWARM_SOCKET))
        c.receive_bytes = SOCKET_TINY << swarm_draw(p->seed, SWARM_STREAM_FAULT + SWARM_SOCKET, h->rank, 0, 4);
    if (swarm_has(p, SWARM_REST))
        links.rest_ns = REST_NS;
    TEST_MUST(rnl_ep_new(env, &opt, &h->ep) == 0);
    rnl_stream_attach(h->ep);
    TEST_MUST(vc_net_socket_open(h->w->net, h->rank, &c, &socket) == 0);
    if (p->picks || p->again)
        socket = swarm_pick_over(h, socket);
    TEST_MUST(rnl_udp_transport_new(env, socket, NULL, &env->datagrams) == 0);
    memset(env->job_key, 0x5a, sizeof env->job_key);
    TEST_MUST(rnl_ep_net_new(h->ep, &links) == 0);
    swarm_adjust(h);
    rnl_ep_set_pending(h->ep);
}

void swarm_host_away(struct swarm_host *h, uint64_t ns)
{
    sleep_until(h, tick_now(h) + ns * VC_TICKS_PER_NS);
}

void swarm_host_closed(struct swarm_host *h)
{
    h->ep = NULL;
    h->closed = 1;
    if (!swarm_host_in_job(h))
        return;
    h->w->closed = 1;
    h->w->wave = h->wave;
    vc_agent_gone(h->w->agent, h->rank, RNL_DEATH_EXIT, 0);
}

void swarm_host_kill(struct swarm_host *h)
{
    rnl_sim_coro_kill(&h->coro);
    h->w->running -= !h->ended;
    h->ended = 1;
    h->sleeps_on = NULL;
    if (h->ep) {
        swarm_check_host(h);
        vc_net_host_up(h->w->net, h->rank, 0); /* what it would say when it leaves in order is not said */
        rnl_ep_free(h->ep);
        vc_net_host_up(h->w->net, h->rank, 1);
    }
    h->ep = NULL;
    h->now = NULL;
    if (h->w->running == 0)
        rnl_sim_stop(h->w->sim);
}

void swarm_host_stall(struct swarm_host *h, uint64_t ns)
{
    uint64_t until = rnl_sim_now(h->w->sim) + ns * VC_TICKS_PER_NS;
    if (until <= h->clock.stalled_until)
        return;
    h->clock.stalled_until = until;
    if (!h->ended)
        rnl_sim_delay(&h->coro, until);
}

void swarm_host_free(struct swarm_host *h)
{
    if (h->ep)
        swarm_host_kill(h);
    for (unsigned i = 0; i < SWARM_LIVES; i++)
        free(h->life[i]);
}
