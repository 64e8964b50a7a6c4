/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cluster.c - see cluster.h: lays out hosts and ranks, starts them, and ends the job as the launcher would: with the
 * first failure, unless it is to go on. */
#include "sim/cluster/inside.h"
#include "sim/cluster/net.h"
#include "sim/cluster/scenario.h"
#include "sim/cluster/stand.h"

#include "base/error.h"
#include "job/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { STATUS_TIMEOUT = 124, STATUS_SIGNAL = 128, SIGNAL_KILL = 9, START_NS = 1000 };
#define LIMIT_NS ((uint64_t)1000 * 1000000000)

void rnl_cluster_say(struct rnl_cluster *c, const char *format, ...)
{
    char line[700];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (c->opt.say)
        c->opt.say(c->opt.arg, line);
}

struct rnl_sim *rnl_cluster_sim(struct rnl_cluster *c)
{
    return c->sim;
}

struct rnl_net *rnl_cluster_net(struct rnl_cluster *c)
{
    return c->net;
}

/* ---- making ---- */

static void rung(void *arg, uint32_t rank)
{
    struct rnl_cluster *c = arg;
    atomic_fetch_add_explicit(&rnl_vagent_bell(c->agent, rank)->word, 1, memory_order_relaxed);
    rnl_venv_rung(c, rank);
}

static int check(const struct rnl_cluster_options *opt)
{
    if (opt->ranks < 1 || opt->ranks > RNL_CLUSTER_RANKS_MAX)
        return rnl_fail(RNL_ERR_ARG, "a virtual job of %u ranks: it can have 1 to %d", opt->ranks,
                        RNL_CLUSTER_RANKS_MAX);
    return 0;
}

/* What the options say of the network goes before what the scenario says; how many hosts there are, too. */
static int read_scenario(struct rnl_cluster *c)
{
    const struct rnl_cluster_options *opt = &c->opt;
    const char *text = opt->scenario ? opt->scenario : "", *name = opt->scenario_name ? opt->scenario_name : "scenario";
    int status = rnl_scenario_read(text, name, &c->scenario);
    if (status == 0 && opt->faults != NULL) {
        char line[400];
        if (snprintf(line, sizeof line, "fault all %s", opt->faults) >= (int)sizeof line)
            return rnl_fail(RNL_ERR_ARG, "the faults of all links are more than %zu letters", sizeof line);
        status = rnl_scenario_add(c->scenario, line);
    }
    if (status < 0)
        return status;
    uint32_t said = rnl_scenario_hosts(c->scenario);
    if (opt->hosts != 0 && said != 0 && said != opt->hosts)
        return rnl_fail(RNL_ERR_ARG, "%s is for %u hosts, and %u are asked for", name, said, opt->hosts);
    c->opt.hosts = opt->hosts ? opt->hosts : said ? said : 1;
    if (c->opt.hosts > opt->ranks)
        return rnl_fail(RNL_ERR_ARG, "%u virtual hosts for %u rank%s: there can be 1 to as many as ranks", c->opt.hosts,
                        opt->ranks, RNL_S(opt->ranks));
    return rnl_scenario_build(c->scenario, c);
}

/* As large as there are addresses for, since only what is touched costs anything. */
static uint64_t slot_bytes(uint32_t ranks)
{
    uint64_t bytes = RNL_GUEST_SLOT_MAX;
    while (bytes * ranks > RNL_GUEST_SPACE)
        bytes /= 2;
    return bytes;
}

static int lay_out(struct rnl_cluster *c)
{
    c->slot_bytes = slot_bytes(c->opt.ranks);
    if (c->image->bytes > c->slot_bytes / 2)
        return rnl_fail(RNL_ERR_ARG, "%s needs %zu bytes, and a rank of %u has %llu: start fewer", c->opt.program,
                        c->image->bytes, c->opt.ranks, (unsigned long long)c->slot_bytes / 2);
    c->host = calloc(c->opt.hosts, sizeof *c->host);
    c->guest = calloc(c->opt.ranks, sizeof *c->guest);
    if (c->host == NULL || c->guest == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u ranks", c->opt.ranks);
    for (uint32_t i = 0; i < c->opt.hosts; i++)
        rnl_vhost_init(&c->host[i], c->opt.seed, i);
    for (uint32_t rank = 0; rank < c->opt.ranks; rank++) {
        int status = rnl_guest_init(&c->guest[rank], c, rank);
        if (status < 0)
            return status;
        struct rnl_vhost *host = &c->host[(uint64_t)rank * c->opt.hosts / c->opt.ranks];
        if (host->ranks++ == 0)
            host->first_rank = rank;
        c->guest[rank].host = host;
    }
    return 0;
}

static void fetch(const void *at, size_t bytes)
{
    for (size_t i = 0; at != NULL && i < bytes; i += RNL_LINE_BYTES)
        __builtin_prefetch((const char *)at + i);
}

/* A rank that runs next finds its stack, its endpoint and its packets in the caches. */
static void fetch_next(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    enum { FRAMES = 1024 };
    const struct rnl_sim_coro *coro = rnl_sim_coro_of(event);
    const struct rnl_cluster *c = rnl_sim_owner(sim);
    if (coro == NULL) {
        if (c->net != NULL)
            rnl_net_fetch(event);
        return;
    }
    const struct rnl_guest *g = (const struct rnl_guest *)(const void *)coro;
    fetch(coro->context.inside, FRAMES);
    const struct rnl_endpoint *ep = g->ep ? g->ep : g->fm.ep;
    fetch(ep, sizeof *ep);
}

int rnl_cluster_new(const struct rnl_cluster_options *opt, struct rnl_cluster **out)
{
    int status = check(opt);
    if (status < 0)
        return status;
    struct rnl_cluster *c = calloc(1, sizeof *c);
    if (c == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a virtual cluster");
    c->opt = *opt;
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* a touched page of a slot is to cost a page */
    status = rnl_sim_new(opt->seed, &c->sim);
    if (status == 0)
        status = read_scenario(c);
    if (status == 0)
        status = rnl_image_open(opt->program, rnl_stand_bind, &c->image);
    if (status == 0)
        status = rnl_vagent_new(opt->ranks, rung, c, &c->agent);
    if (status == 0)
        status = lay_out(c);
    if (status < 0) {
        rnl_cluster_free(c);
        return status;
    }
    rnl_sim_set_owner(c->sim, c);
    rnl_sim_set_tie(c->sim, rnl_sim_tie_by_seed);
    rnl_sim_set_ahead(c->sim, fetch_next);
    rnl_sim_note(c->sim, RNL_NOTE_JOB, opt->ranks, opt->seed, c->opt.hosts);
    *out = c;
    return 0;
}

void rnl_cluster_free(struct rnl_cluster *c)
{
    if (c == NULL)
        return;
    for (uint32_t rank = 0; c->guest != NULL && rank < c->opt.ranks; rank++)
        rnl_guest_fini(&c->guest[rank]);
    rnl_vagent_free(c->agent);
    rnl_net_free(c->net);
    rnl_scenario_free(c->scenario);
    rnl_image_close(c->image);
    rnl_sim_free(c->sim);
    free(c->guest);
    free(c->host);
    free(c);
}

/* ---- ends ---- */

static int status_of(const struct rnl_guest *g)
{
    return g->end == RNL_END_SIGNAL ? STATUS_SIGNAL + g->detail : g->detail;
}

static void end_job(struct rnl_cluster *c)
{
    if (c->over)
        return;
    c->over = 1;
    for (uint32_t rank = 0; rank < c->opt.ranks; rank++)
        rnl_guest_end(&c->guest[rank], RNL_END_SIGNAL, SIGNAL_KILL);
    rnl_sim_stop(c->sim);
}

static void failed(struct rnl_cluster *c, int status)
{
    if (!c->failed)
        c->status = status;
    c->failed = 1;
}

void rnl_cluster_ended(struct rnl_cluster *c, struct rnl_guest *g)
{
    int status = status_of(g);
    if (c->over)
        return;
    if (g->injected && c->opt.verbose)
        rnl_cluster_say(c, "rank %u crashed, as the scenario wants", g->rank);
    if (status != 0 && !(g->injected && c->opt.keep_going)) {
        if (!c->failed && g->end == RNL_END_EXIT)
            rnl_cluster_say(c, "rank %u exited with status %d", g->rank, g->detail);
        else if (!c->failed)
            rnl_cluster_say(c, "rank %u was killed by signal %d (%s)", g->rank, g->detail, strsignal(g->detail));
        failed(c, status);
        if (!c->opt.keep_going)
            end_job(c);
    }
    if (c->living == 0 && c->starting == 0)
        end_job(c);
}

void rnl_cluster_crash(struct rnl_cluster *c, struct rnl_guest *g, uint64_t restart_ns)
{
    if (g->state != RNL_GUEST_LIVES || g->ending)
        return;
    rnl_sim_note(c->sim, RNL_NOTE_CRASH, g->rank, g->life, g->steps);
    g->injected = 1;
    g->crash_step = 0;
    if (restart_ns != UINT64_MAX &&
        rnl_sim_at(c->sim, &g->restart, rnl_sim_now(c->sim) + restart_ns * RNL_TICKS_PER_NS) == 0)
        c->starting++;
    rnl_guest_end(g, RNL_END_SIGNAL, SIGNAL_KILL);
}

void rnl_cluster_stall(struct rnl_cluster *c, struct rnl_vhost *h, uint64_t ns)
{
    uint64_t until = rnl_sim_now(c->sim) + ns * RNL_TICKS_PER_NS;
    rnl_sim_note(c->sim, RNL_NOTE_STALL, h->index, ns, 0);
    if (until <= h->stalled_until)
        return;
    h->stalled_until = until;
    for (uint32_t i = 0; i < h->ranks; i++)
        rnl_sim_delay(&c->guest[h->first_rank + i].coro, until);
}

/* Neither being made nor being freed. */
static int endpoint_is_whole(const struct rnl_guest *g)
{
    const struct rnl_endpoint *ep = g->ep ? g->ep : rnl_fm.ep ? rnl_fm.ep : rnl_am_rank(&rnl_am);
    return ep != NULL && ep->closing != RNL_CLOSED;
}

void rnl_cluster_step(struct rnl_guest *g)
{
    if (rnl_guest_now == g && ++g->steps >= g->crash_step && g->crash_step > 0 && endpoint_is_whole(g))
        rnl_cluster_crash(g->cluster, g, g->crash_restart_ns);
}

void rnl_cluster_count_step(struct rnl_guest *g)
{
    g->steps += rnl_guest_now == g;
}

void rnl_cluster_use(struct rnl_guest *g, uint64_t ns)
{
    if (rnl_guest_now != g)
        return;
    if (endpoint_is_whole(g))
        rnl_guest_charge(g, ns);
    else
        g->debt_ns += ns;
}

void rnl_cluster_restart(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    struct rnl_cluster *c = rnl_sim_owner(sim);
    struct rnl_guest *g = &c->guest[event->entity];
    c->starting--;
    if (c->opt.verbose)
        rnl_cluster_say(c, "rank %u starts again", g->rank);
    uint64_t now = rnl_sim_now(sim), stall = g->host->stalled_until;
    if (rnl_guest_start(g, now > stall ? now : stall) < 0)
        end_job(c);
}

/* ---- running ---- */

/* What FM's default error handler says, and how it ends. */
static void fm_says(const char *line)
{
    rnl_guest_write(rnl_guest_now, 2, line, strlen(line));
}

/* Time is up: where the ranks are that still live, some of them. Each says so itself, on its own stack. */
static void ask_where(struct rnl_cluster *c, uint64_t tick)
{
    enum { TOLD = 8 };
    uint32_t living = 0;
    for (uint32_t rank = 0; rank < c->opt.ranks; rank++) {
        struct rnl_guest *g = &c->guest[rank];
        if (g->state != RNL_GUEST_LIVES || ++living > TOLD)
            continue;
        g->asked = 1;
        (void)rnl_sim_wake(&g->coro, rnl_sim_ticket(&g->coro), tick, 0);
    }
    (void)rnl_sim_run(c->sim, tick);
    if (living > TOLD)
        rnl_cluster_say(c, "%u more ranks have not ended", living - TOLD);
}

void rnl_cluster_run(struct rnl_cluster *c, struct rnl_cluster_result *out)
{
    uint64_t limit_ns = c->opt.limit_ns ? c->opt.limit_ns : LIMIT_NS;
    rnl_job_virtual = rnl_venv_open;
    rnl_fm_says = fm_says;
    rnl_fm_exits = rnl_guest_exit;
    int status = rnl_guards_on(c);
    for (uint32_t rank = 0; rank < c->opt.ranks && status == 0; rank++)
        status = rnl_guest_start(&c->guest[rank], (uint64_t)rank * START_NS * RNL_TICKS_PER_NS);
    if (status == 0)
        status = rnl_scenario_start(c->scenario, c);
    if (status == 0) {
        (void)rnl_sim_run(c->sim, limit_ns * RNL_TICKS_PER_NS);
        if (!c->over) {
            rnl_cluster_say(c, "no end after %llu.%03llu s of virtual time",
                            (unsigned long long)(limit_ns / 1000000000),
                            (unsigned long long)(limit_ns / 1000000 % 1000));
            ask_where(c, limit_ns * RNL_TICKS_PER_NS + 1);
            failed(c, STATUS_TIMEOUT);
        }
    } else {
        rnl_cluster_say(c, "%s", rnl_last_error()->text);
        failed(c, STATUS_SIGNAL - 1);
    }
    end_job(c);
    rnl_guards_off(c);
    rnl_job_virtual = NULL;
    rnl_fm_says = NULL;
    rnl_fm_exits = NULL;
    *out = (struct rnl_cluster_result){.status = c->status,
                                       .hash = rnl_sim_hash(c->sim),
                                       .events = rnl_sim_events(c->sim),
                                       .switches = c->switches,
                                       .ns = rnl_sim_now(c->sim) / RNL_TICKS_PER_NS};
}
