/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cluster.c - see cluster.h: lays out hosts and ranks, starts them, and ends the job as the launcher would: with the
 * first failure, unless it is to go on. */
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/net.h"
#include "sim/cluster/scenario.h"
#include "sim/cluster/shim.h"

#include "base/error.h"
#include "base/iface.h"
#include "endpoint/endpoint.h"
#include "open/open.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { STATUS_TIMEOUT = 124, STATUS_SIGNAL = 128, SIGNAL_KILL = 9, START_NS = 1000 };
#define LIMIT_NS ((uint64_t)1000 * 1000000000)

void vc_cluster_say(struct vc_cluster *c, const char *format, ...)
{
    char line[700];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (c->opt.say)
        c->opt.say(c->opt.arg, line);
}

struct rnl_sim *vc_cluster_sim(struct vc_cluster *c)
{
    return c->sim;
}

struct vc_net *vc_cluster_net(struct vc_cluster *c)
{
    return c->net;
}

/* ---- making ---- */

static void rung(void *arg, uint32_t rank)
{
    struct vc_cluster *c = arg;
    atomic_fetch_add_explicit(&vc_agent_bell(c->agent, rank)->word, 1, memory_order_relaxed);
    vc_env_rung(c, rank);
}

static int check(const struct vc_cluster_options *opt)
{
    if (opt->ranks < 1 || opt->ranks > VC_RANKS_MAX)
        return rnl_fail(RNL_ERR_ARG, "a virtual job of %u ranks: it can have 1 to %d", opt->ranks, VC_RANKS_MAX);
    return 0;
}

/* What the options say of the network goes before what the scenario says; how many hosts there are, too. */
static int read_scenario(struct vc_cluster *c)
{
    const struct vc_cluster_options *opt = &c->opt;
    const char *text = opt->scenario ? opt->scenario : "", *name = opt->scenario_name ? opt->scenario_name : "scenario";
    int status = vc_scenario_read(text, name, &c->scenario);
    if (status == 0 && opt->faults) {
        char line[400];
        if (snprintf(line, sizeof line, "fault all %s", opt->faults) >= (int)sizeof line)
            return rnl_fail(RNL_ERR_ARG, "the faults of all links are more than %zu letters", sizeof line);
        status = vc_scenario_add(c->scenario, line);
    }
    if (status < 0)
        return status;
    uint32_t said = vc_scenario_hosts(c->scenario);
    if (opt->hosts != 0 && said != 0 && said != opt->hosts)
        return rnl_fail(RNL_ERR_ARG, "%s is for %u hosts, and %u are asked for", name, said, opt->hosts);
    c->opt.hosts = opt->hosts ? opt->hosts : said ? said : 1;
    if (c->opt.hosts > opt->ranks)
        return rnl_fail(RNL_ERR_ARG, "%u virtual hosts for %u rank%s: there can be 1 to as many as ranks", c->opt.hosts,
                        opt->ranks, RNL_S(opt->ranks));
    return vc_scenario_build(c->scenario, c);
}

/* As large as there are addresses for, since only what is touched costs anything. */
static uint64_t slot_bytes(uint32_t ranks)
{
    uint64_t bytes = VC_PROCESS_SLOT_MAX;
    while (bytes * ranks > VC_PROCESS_SPACE)
        bytes /= 2;
    return bytes;
}

static int lay_out(struct vc_cluster *c)
{
    c->slot_bytes = slot_bytes(c->opt.ranks);
    if (c->image->bytes > c->slot_bytes / 2)
        return rnl_fail(RNL_ERR_ARG, "%s needs %zu bytes, and a rank of %u has %llu: start fewer", c->opt.program,
                        c->image->bytes, c->opt.ranks, (unsigned long long)c->slot_bytes / 2);
    c->host = calloc(c->opt.hosts, sizeof *c->host);
    c->process = calloc(c->opt.ranks, sizeof *c->process);
    if (!c->host || !c->process)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u ranks", c->opt.ranks);
    for (uint32_t i = 0; i < c->opt.hosts; i++)
        vc_host_init(&c->host[i], c->opt.seed, i);
    for (uint32_t rank = 0; rank < c->opt.ranks; rank++) {
        int status = vc_process_init(&c->process[rank], c, rank);
        if (status < 0)
            return status;
        struct vc_host *host = &c->host[(uint64_t)rank * c->opt.hosts / c->opt.ranks];
        if (host->ranks++ == 0)
            host->first_rank = rank;
        c->process[rank].host = host;
    }
    return 0;
}

static void fetch(const void *at, size_t bytes)
{
    for (size_t i = 0; at && i < bytes; i += RNL_CELL_BYTES)
        __builtin_prefetch((const char *)at + i);
}

/* A rank that runs next finds its stack, its endpoint and its packets in the caches. */
static void fetch_next(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    enum { FRAMES = 1024 };
    const struct rnl_sim_coro *coro = rnl_sim_coro_of(event);
    const struct vc_cluster *c = rnl_sim_owner(sim);
    if (!coro) {
        if (c->net)
            vc_net_fetch(event);
        return;
    }
    const struct vc_process *vp = (const struct vc_process *)(const void *)coro;
    fetch(coro->context.inside, FRAMES);
    const struct rnl_endpoint *ep = vc_env_endpoint(vp);
    fetch(ep, sizeof *ep);
}

int vc_cluster_new(const struct vc_cluster_options *opt, struct vc_cluster **out)
{
    int status = check(opt);
    if (status < 0)
        return status;
    struct vc_cluster *c = calloc(1, sizeof *c);
    if (!c)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a virtual cluster");
    c->opt = *opt;
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* a touched page of a slot is to cost a page */
    status = rnl_sim_new(opt->seed, &c->sim);
    if (status == 0)
        status = read_scenario(c);
    if (status == 0)
        status = vc_image_open(opt->program, vc_shim_bind, &c->image);
    if (status == 0)
        status = vc_agent_new(opt->ranks, rung, c, &c->agent);
    if (status == 0)
        status = lay_out(c);
    if (status < 0) {
        vc_cluster_free(c);
        return status;
    }
    rnl_sim_set_owner(c->sim, c);
    rnl_sim_set_tie(c->sim, rnl_sim_tie_by_seed);
    rnl_sim_set_ahead(c->sim, fetch_next);
    rnl_sim_note(c->sim, VC_NOTE_JOB, opt->ranks, opt->seed, c->opt.hosts);
    *out = c;
    return 0;
}

void vc_cluster_free(struct vc_cluster *c)
{
    if (!c)
        return;
    for (uint32_t rank = 0; c->process && rank < c->opt.ranks; rank++)
        vc_process_fini(&c->process[rank]);
    vc_agent_free(c->agent);
    vc_net_free(c->net);
    vc_scenario_free(c->scenario);
    vc_image_close(c->image);
    rnl_sim_free(c->sim);
    free(c->process);
    free(c->host);
    free(c);
}

/* ---- ends ---- */

static int status_of(const struct vc_process *vp)
{
    return vp->end == VC_END_SIGNAL ? STATUS_SIGNAL + vp->detail : vp->detail;
}

static void end_job(struct vc_cluster *c)
{
    if (c->over)
        return;
    c->over = 1;
    for (uint32_t rank = 0; rank < c->opt.ranks; rank++)
        vc_process_end(&c->process[rank], VC_END_SIGNAL, SIGNAL_KILL);
    rnl_sim_stop(c->sim);
}

static void failed(struct vc_cluster *c, int status)
{
    if (!c->failed)
        c->status = status;
    c->failed = 1;
}

void vc_cluster_ended(struct vc_cluster *c, struct vc_process *vp)
{
    int status = status_of(vp);
    if (c->over)
        return;
    if (vp->injected && c->opt.verbose)
        vc_cluster_say(c, "rank %u crashed, as the scenario wants", vp->rank);
    if (status != 0 && !(vp->injected && c->opt.keep_going)) {
        if (!c->failed && vp->end == VC_END_EXIT)
            vc_cluster_say(c, "rank %u exited with status %d", vp->rank, vp->detail);
        else if (!c->failed)
            vc_cluster_say(c, "rank %u was killed by signal %d (%s)", vp->rank, vp->detail, strsignal(vp->detail));
        failed(c, status);
        if (!c->opt.keep_going)
            end_job(c);
    }
    if (c->living == 0 && c->starting == 0)
        end_job(c);
}

void vc_cluster_crash(struct vc_cluster *c, struct vc_process *vp, uint64_t restart_ns)
{
    if (vp->state != VC_PROCESS_LIVES || vp->ending)
        return;
    rnl_sim_note(c->sim, VC_NOTE_CRASH, vp->rank, vp->life, vp->steps);
    vp->injected = 1;
    vp->crash_step = 0;
    if (restart_ns != UINT64_MAX &&
        rnl_sim_at(c->sim, &vp->restart, rnl_sim_now(c->sim) + restart_ns * VC_TICKS_PER_NS) == 0)
        c->starting++;
    vc_process_end(vp, VC_END_SIGNAL, SIGNAL_KILL);
}

void vc_cluster_stall(struct vc_cluster *c, struct vc_host *h, uint64_t ns)
{
    uint64_t until = rnl_sim_now(c->sim) + ns * VC_TICKS_PER_NS;
    rnl_sim_note(c->sim, VC_NOTE_STALL, h->index, ns, 0);
    if (until <= h->stalled_until)
        return;
    h->stalled_until = until;
    for (uint32_t i = 0; i < h->ranks; i++)
        rnl_sim_delay(&c->process[h->first_rank + i].coro, until);
}

/* Neither being made nor being freed. */
static bool endpoint_is_whole(const struct vc_process *vp)
{
    const struct rnl_endpoint *ep = vc_env_endpoint(vp);
    return ep && ep->close.closing != RNL_CLOSED;
}

void vc_cluster_step(struct vc_process *vp)
{
    if (vc_process_now == vp && ++vp->steps >= vp->crash_step && vp->crash_step > 0 && endpoint_is_whole(vp))
        vc_cluster_crash(vp->cluster, vp, vp->crash_restart_ns);
}

void vc_cluster_count_step(struct vc_process *vp)
{
    vp->steps += vc_process_now == vp;
}

void vc_cluster_use(struct vc_process *vp, uint64_t ns)
{
    if (vc_process_now != vp)
        return;
    if (endpoint_is_whole(vp))
        vc_process_charge(vp, ns);
    else
        vp->debt_ns += ns;
}

void vc_cluster_restart(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    struct vc_cluster *c = rnl_sim_owner(sim);
    struct vc_process *vp = &c->process[event->entity];
    c->starting--;
    if (c->opt.verbose)
        vc_cluster_say(c, "rank %u starts again", vp->rank);
    uint64_t now = rnl_sim_now(sim), stall = vp->host->stalled_until;
    if (vc_process_start(vp, now > stall ? now : stall) < 0)
        end_job(c);
}

/* ---- running ---- */

/* How an interface's default error handler speaks and ends its process. */
static void iface_says(const char *line)
{
    vc_process_write(vc_process_now, 2, line, strlen(line));
}

static const struct rnl_iface_host iface_host = {.say = iface_says, .exit = vc_process_exit};

/* Time is up: where the ranks are that still live, some of them. Each says so itself, on its own stack. */
static void ask_where(struct vc_cluster *c, uint64_t tick)
{
    enum { TOLD = 8 };
    uint32_t living = 0;
    for (uint32_t rank = 0; rank < c->opt.ranks; rank++) {
        struct vc_process *vp = &c->process[rank];
        if (vp->state != VC_PROCESS_LIVES || ++living > TOLD)
            continue;
        vp->asked = 1;
        (void)rnl_sim_wake(&vp->coro, rnl_sim_ticket(&vp->coro), tick, 0);
    }
    (void)rnl_sim_run(c->sim, tick);
    if (living > TOLD)
        vc_cluster_say(c, "%u more ranks have not ended", living - TOLD);
}

void vc_cluster_run(struct vc_cluster *c, struct vc_cluster_result *out)
{
    uint64_t limit_ns = c->opt.limit_ns ? c->opt.limit_ns : LIMIT_NS;
    rnl_open_virtual = vc_env_open;
    rnl_iface_host = &iface_host;
    int status = vc_guards_on(c);
    for (uint32_t rank = 0; rank < c->opt.ranks && status == 0; rank++)
        status = vc_process_start(&c->process[rank], (uint64_t)rank * START_NS * VC_TICKS_PER_NS);
    if (status == 0)
        status = vc_scenario_start(c->scenario, c);
    if (status == 0) {
        (void)rnl_sim_run(c->sim, limit_ns * VC_TICKS_PER_NS);
        if (!c->over) {
            vc_cluster_say(c, "no end after %llu.%03llu s of virtual time", (unsigned long long)(limit_ns / 1000000000),
                           (unsigned long long)(limit_ns / 1000000 % 1000));
            ask_where(c, limit_ns * VC_TICKS_PER_NS + 1);
            failed(c, STATUS_TIMEOUT);
        }
    } else {
        vc_cluster_say(c, "%s", rnl_last_error()->text);
        failed(c, STATUS_SIGNAL - 1);
    }
    end_job(c);
    vc_guards_off(c);
    rnl_open_virtual = NULL;
    rnl_iface_host = NULL;
    *out = (struct vc_cluster_result){.status = c->status,
                                      .hash = rnl_sim_hash(c->sim),
                                      .events = rnl_sim_events(c->sim),
                                      .switches = c->switches,
                                      .ns = rnl_sim_now(c->sim) / VC_TICKS_PER_NS};
}
