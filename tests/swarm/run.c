/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.c - one schedule from its beginning to its end: builds the network, starts the programs, lets happen what the
 * plan says, and asks the oracle when all is over. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/cluster/net.h"
#include "support/must.h"
#include "swarm/world.h"

enum { LOOK_NS = 1000 * 1000, EVENT_ENTITY = 0x20000000, GROUP_AWAY = 2 };
#define SECOND_NS ((uint64_t)1000 * 1000 * 1000)
/* After the network has healed. Probes to a silent peer get further apart, and programs may be silent themselves. */
#define BOUND_NS  (60 * SECOND_NS)
#define OTHERS_NS (5 * SECOND_NS / 2)

static struct swarm_world *world; /* one at a time in a process */
static struct swarm_result *result_of;

void swarm_wrong(const char *format, ...)
{
    va_list args;
    int n = snprintf(result_of->why, sizeof result_of->why,
                     "at %llu us: ", (unsigned long long)(rnl_sim_now(world->sim) / VC_TICKS_PER_NS / 1000));
    va_start(args, format);
    vsnprintf(result_of->why + n, sizeof result_of->why - (size_t)n, format, args);
    va_end(args);
    _exit(1);
}

/* ---- what happens ---- */

static void narrow(struct swarm_world *w, uint32_t host, uint32_t mtu)
{
    for (uint32_t i = 0; i < vc_net_links(w->net); i++) {
        uint32_t from, to;
        vc_net_link_ends(w->net, i, &from, &to);
        if (to != host && from != host)
            continue;
        struct vc_net_link_config c = *vc_net_link_get(w->net, i);
        c.mtu = mtu;
        c.silent = 1;
        vc_net_link_set(w->net, i, &c);
    }
}

static void link_up(struct swarm_world *w, uint32_t host, int up)
{
    for (uint32_t i = 0; i < vc_net_links(w->net); i++) {
        uint32_t from, to;
        vc_net_link_ends(w->net, i, &from, &to);
        if (to == host || from == host)
            vc_net_link_up(w->net, i, up);
    }
}

static void set_faults(struct swarm_world *w, const struct rnl_fault *f)
{
    for (uint32_t i = 0; i < vc_net_links(w->net); i++)
        TEST_MUST(vc_net_link_fault(w->net, i, f) == 0);
}

static void heal(struct swarm_world *w)
{
    static const struct rnl_fault none;
    const struct swarm_plan *p = &w->plan;
    set_faults(w, &none);
    for (unsigned i = 0; i < p->hosts; i++) {
        vc_net_host_group(w->net, i, w->host[i].away ? GROUP_AWAY + i : 0);
        link_up(w, i, 1);
    }
    for (unsigned i = 0; i < p->events; i++)
        if (p->event[i].kind == SWARM_BLOCKED)
            (void)vc_net_block(w->net, p->event[i].host, p->event[i].other, 0);
    for (unsigned i = 0; i < p->hosts; i++)
        for (unsigned nth = 0; nth < p->addresses; nth++)
            if (!(w->host[i].lost_addresses >> nth & 1))
                vc_net_address_up(w->net, i, nth, 1, 1);
}

/* What is dead for ever stays so, in the direction that it is. */
static void address(struct swarm_world *w, const struct swarm_event *e, int over)
{
    struct swarm_host *h = &w->host[e->host];
    uint32_t nth = e->other & 3;
    if (h->lost_addresses >> nth & 1)
        return;
    if (e->kind == SWARM_ADDRESS_DOWN && e->for_ns)
        h->lost_addresses |= (uint8_t)(1u << nth);
    int in = !(e->other & 4), out = !(e->other & 8);
    if (e->kind == SWARM_ADDRESS_UP || (over && !e->for_ns))
        in = out = 1;
    vc_net_address_up(w->net, h->rank, nth, in, out);
}

static void dies(struct swarm_world *w, const struct swarm_event *e)
{
    struct swarm_host *h = &w->host[e->host];
    if (w->closed || h->ended || !swarm_host_in_job(h))
        return;
    swarm_ended(w->oracle, h->rank);
    swarm_host_kill(h);
    if (e->other)
        vc_net_host_up(w->net, h->rank, 0);
}

static void told(struct swarm_world *w, struct swarm_host *h)
{
    if (h->known_dead || w->closed || !h->life[0] || swarm_host_in_job(h))
        return;
    h->known_dead = 1;
    swarm_job_tells(w->oracle, h->rank);
    vc_agent_gone(w->agent, h->rank, RNL_DEATH_SIGNAL, 9);
}

static void returns(struct swarm_world *w, struct swarm_host *h)
{
    int taken = swarm_has(&w->plan, SWARM_READMIT);
    if (h->now || !h->life[0] || swarm_host_life(h) + 1 == (taken ? SWARM_LIVES : 2) || (taken && w->closed))
        return;
    if (taken)
        told(w, h); /* who starts it again knows */
    if (swarm_host_start(h))
        vc_net_host_up(w->net, h->rank, 1);
}

/* Twice for each: it leaves, and comes back. */
static void leaves(struct swarm_world *w, const struct swarm_event *e, struct rnl_sim_event *event)
{
    struct swarm_host *h = &w->host[e->host];
    h->away = !h->away;
    vc_net_host_group(w->net, h->rank, h->away ? GROUP_AWAY + h->rank : 0);
    if (!h->away)
        return;
    swarm_is_silent(w->oracle, h->rank, e->at_ns, e->for_ns ? e->for_ns : UINT64_MAX, 1);
    if (e->for_ns)
        TEST_MUST(rnl_sim_at(w->sim, event, (e->at_ns + e->for_ns) * VC_TICKS_PER_NS) == 0);
}

static void happens(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    struct swarm_world *w = rnl_sim_owner(sim);
    const struct swarm_event *e = &w->plan.event[event - w->event];
    struct swarm_host *h = &w->host[e->host];
    int over = rnl_sim_now(sim) / VC_TICKS_PER_NS >= w->plan.heal_ns;
    rnl_sim_note(sim, SWARM_NOTE_EVENT, e->host, e->kind, e->other);
    switch (e->kind) {
    case SWARM_HEAL:
        heal(w);
        break;
    case SWARM_APART:
    case SWARM_JOINED:
        if (!h->away)
            vc_net_host_group(w->net, e->host, e->kind == SWARM_APART && !over);
        break;
    case SWARM_LEAVES:
        leaves(w, e, event);
        break;
    case SWARM_FREEZES:
        swarm_is_silent(w->oracle, h->rank, e->at_ns, e->for_ns, 0);
        swarm_host_stall(h, e->for_ns);
        break;
    case SWARM_ADDRESS_DOWN:
    case SWARM_ADDRESS_UP:
        address(w, e, over);
        break;
    case SWARM_BLOCKED:
    case SWARM_FREED:
        (void)vc_net_block(w->net, e->host, e->other, e->kind == SWARM_BLOCKED && !over);
        break;
    case SWARM_DOWN:
    case SWARM_UP:
        link_up(w, e->host, e->kind == SWARM_UP || over);
        break;
    case SWARM_STALLS:
        swarm_host_stall(h, e->for_ns);
        break;
    case SWARM_DIES:
        dies(w, e);
        break;
    case SWARM_TOLD:
        told(w, h);
        break;
    case SWARM_RETURNS:
        returns(w, h);
        break;
    default:
        narrow(w, e->host, e->other);
        break;
    }
}

void swarm_picked(struct swarm_world *w)
{
    uint64_t now = rnl_sim_now(w->sim);
    for (unsigned i = 0; i < w->plan.events; i++)
        if (w->plan.event[i].picked)
            TEST_MUST(rnl_sim_at(w->sim, &w->event[i], now + w->plan.event[i].at_ns * VC_TICKS_PER_NS) == 0);
}

static void look(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    struct swarm_world *w = rnl_sim_owner(sim);
    uint64_t now = rnl_sim_now(sim);
    for (unsigned i = 0; i < w->plan.hosts; i++)
        swarm_check_host(&w->host[i]);
    swarm_check_pairs(w);
    /* More often while much happens, seldom while nothing does. */
    TEST_MUST(rnl_sim_at(sim, event, now + now / 8 + LOOK_NS * VC_TICKS_PER_NS / 8) == 0);
}

static void notify(void *arg, uint32_t rank)
{
    struct swarm_world *w = arg;
    if (swarm_host_in_job(&w->host[rank]))
        swarm_host_ring(&w->host[rank]);
}

/* ---- beginning and end ---- */

static void build(struct swarm_world *w)
{
    const struct swarm_plan *p = &w->plan;
    const struct vc_net_link_config link = {.bits_per_s = p->link.bits_per_s,
                                            .delay_ns = p->link.delay_ns,
                                            .buffer_bytes = p->link.buffer_bytes,
                                            .mark_bytes = p->link.mark_bytes,
                                            .mtu = p->link.mtu,
                                            .silent = p->link.silent};
    /* Who was silent for these reasons when somebody left was silent before that. */
    const uint32_t others = 1u << SWARM_SILENT | 1u << SWARM_STALL | 1u << SWARM_PARTITION | 1u << SWARM_BLOCK |
                            1u << SWARM_FLAP | 1u << SWARM_LOSS | 1u << SWARM_BURST | 1u << SWARM_CORRUPT |
                            1u << SWARM_CUT | 1u << SWARM_SHALLOW | 1u << SWARM_SOCKET | 1u << SWARM_MTU;
    TEST_MUST(rnl_sim_new(p->seed, &w->sim) == 0);
    rnl_sim_set_owner(w->sim, w);
    rnl_sim_set_tie(w->sim, rnl_sim_tie_by_seed);
    TEST_MUST(vc_net_new(w->sim, p->hosts, 1, &w->net) == 0);
    TEST_MUST(vc_net_set_addresses(w->net, p->addresses ? p->addresses : 1) == 0 &&
              vc_net_star(w->net, p->hosts, &link) == 0 && vc_net_route(w->net) == 0);
    set_faults(w, &p->packets);
    TEST_MUST(vc_agent_new(p->hosts, notify, w, &w->agent) == 0);
    w->oracle = swarm_oracle_new(p->hosts, p->silent_ns - (p->faults & others || p->addresses > 1 ? OTHERS_NS : 0),
                                 p->knows_lives);
    swarm_tap_new(w);
    swarm_rarely(p);
    w->host = calloc(p->hosts, sizeof *w->host);
    w->stacks = mmap(NULL, (size_t)p->hosts * SWARM_STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TEST_MUST(w->host && w->stacks != MAP_FAILED);
    for (unsigned i = 0; i < p->hosts; i++)
        swarm_host_new(w, i);
    for (unsigned i = 0; i < p->hosts; i++)
        TEST_MUST(swarm_host_start(&w->host[i]));
    for (unsigned i = 0; i < p->events; i++) {
        rnl_sim_event_init(&w->event[i], happens, EVENT_ENTITY + i);
        if (p->event[i].picked)
            continue;
        TEST_MUST(rnl_sim_at(w->sim, &w->event[i], p->event[i].at_ns * VC_TICKS_PER_NS) == 0);
    }
    rnl_sim_event_init(&w->look, look, EVENT_ENTITY + SWARM_EVENTS_MAX);
    TEST_MUST(rnl_sim_at(w->sim, &w->look, LOOK_NS * VC_TICKS_PER_NS) == 0);
}

/* Who died after its word for the last wave, before the job knew: all was over by then, and nobody has to be told. */
static void agreements(struct swarm_world *w)
{
    for (unsigned i = 0; i < w->plan.hosts; i++) {
        const struct swarm_host *h = &w->host[i];
        if (w->closed && w->wave > 0 && h->wave == w->wave && !h->known_dead)
            swarm_agreed(w->oracle, i);
    }
}

/* Who has not ended, and where it stands. */
static void hangs(const struct swarm_world *w)
{
    char who[200] = "";
    size_t at = 0;
    for (unsigned i = 0; i < w->plan.hosts; i++)
        if (!w->host[i].ended && at < sizeof who)
            at += (size_t)snprintf(who + at, sizeof who - at, " %u%s", i, w->host[i].closed ? " (in close)" : "");
    swarm_wrong("not over so long after the network has healed: ranks%s", who);
}

void swarm_run(const struct swarm_plan *plan, struct swarm_result *result)
{
    struct swarm_world *w = calloc(1, sizeof *w);
    struct vc_net_counts counts;
    TEST_MUST(w != NULL);
    w->plan = *plan;
    world = w;
    result_of = result;
    build(w);
    (void)rnl_sim_run(w->sim, (plan->heal_ns + BOUND_NS) * VC_TICKS_PER_NS);
    if (w->running)
        hangs(w);
    look(w->sim, &w->look);
    agreements(w);
    result->messages = swarm_oracle_settle(w->oracle);
    swarm_group_settle(w);
    vc_net_counts(w->net, &counts);
    result->packets = counts.sent;
    result->ns = rnl_sim_now(w->sim) / VC_TICKS_PER_NS;
    result->hash = rnl_sim_hash(w->sim);
    result->deaths = w->deaths;
    result->first_death_ns = w->first_death_ns;
    result->picked = w->picked;
    result->first_ns = UINT64_MAX;
    for (unsigned i = 0; i < plan->hosts; i++) {
        uint64_t first = w->host[i].first_ns;
        result->first_ns = first < result->first_ns ? first : result->first_ns;
        result->last_ns = first > result->last_ns ? first : result->last_ns;
    }
    for (unsigned i = 0; i < plan->hosts; i++)
        swarm_host_free(&w->host[i]);
    vc_net_free(w->net);
    swarm_pick_free(w);
    vc_agent_free(w->agent);
    swarm_tap_free(w);
    swarm_oracle_free(w->oracle);
    rnl_sim_free(w->sim);
    munmap(w->stacks, (size_t)plan->hosts * SWARM_STACK);
    free(w->host);
    free(w);
}
