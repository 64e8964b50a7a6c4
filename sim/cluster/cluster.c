/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cluster.c - see cluster.h: lays out hosts and ranks, starts them, and ends the job as the launcher would: with the
 * first failure, unless it is to go on. */
#include "sim/cluster/arena.h"
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/net.h"
#include "sim/cluster/scenario.h"
#include "sim/cluster/shim.h"

#include "base/error.h"
#include "base/iface.h"
#include "endpoint/endpoint.h"
#include "open/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static rnl_sim_fn restart;
static void reap(struct vc_process *);

enum { STATUS_TIMEOUT = 124, STATUS_SIGNAL = 128, SIGNAL_KILL = 9, START_NS = 1000 };
#define LIMIT_NS ((uint64_t)1000 * 1000000000)

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
        rnl_sim_event_init(&c->process[rank].restart, restart, rank);
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
    c->reaps = reap;
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
    vc_alone_free(c);
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

static void ended(struct vc_cluster *c, struct vc_process *vp)
{
    int status = status_of(vp);
    if (c->over)
        return;
    if (vp->injected && c->opt.verbose)
        vc_agent_say(c, "rank %u crashed, as the scenario wants", vp->rank);
    if (status != 0 && !(vp->injected && c->opt.keep_going)) {
        if (!c->failed && vp->end == VC_END_EXIT)
            vc_agent_say(c, "rank %u exited with status %d", vp->rank, vp->detail);
        else if (!c->failed)
            vc_agent_say(c, "rank %u was killed by signal %d (%s)", vp->rank, vp->detail, strsignal(vp->detail));
        failed(c, status);
        if (!c->opt.keep_going)
            end_job(c);
    }
    if (c->living == 0 && c->starting == 0)
        end_job(c);
}

/* ---- a rank's life ---- */

/* main starts at one address whatever compiled this file: so the locals of a program have the same addresses in each
 * build of the simulator. */
static int call_main(struct vc_process *vp, int argc, char **argv)
{
    int status;
    unsigned char *top = vp->image - VC_PROCESS_MAIN, *main = vp->image + vp->cluster->image->main;
    char **environment = vc_arena_of(vp)->environment;
    __asm__ volatile("mov %%rsp, %%rbx\n\t"
                     "mov %[top], %%rsp\n\t"
                     "call *%[main]\n\t"
                     "mov %%rbx, %%rsp"
                     : "=a"(status), "+D"(argc), "+S"(argv), "+d"(environment)
                     : [top] "r"(top), [main] "r"(main)
                     : "rbx", "rcx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
                       "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return status;
}

static void live(struct rnl_sim_coro *coro, void *arg)
{
    struct vc_process *vp = arg;
    const struct vc_cluster_options *opt = &vp->cluster->opt;
    (void)coro;
    char **argv = vc_arena_alloc(((size_t)opt->argc + 1) * sizeof *argv, 16);
    for (int i = 0; i < opt->argc && argv; i++)
        if (!(argv[i] = vc_arena_text(opt->argv[i])))
            argv = NULL;
    if (!argv) {
        vc_agent_say(vp->cluster, "rank %u has no memory for its arguments", vp->rank);
        vc_process_end(vp, VC_END_EXIT, 71);
        return;
    }
    argv[opt->argc] = NULL;
    vc_arena_of(vp)->name = argv[0];
    const struct vc_image *m = vp->cluster->image;
    for (size_t i = 0; i < m->inits; i++)
        ((void (**)(int, char **, char **))(void *)(vp->image + m->init))[i](opt->argc, argv,
                                                                             vc_arena_of(vp)->environment);
    vc_process_exit(call_main(vp, opt->argc, argv));
}

static int start(struct vc_process *vp, uint64_t at)
{
    struct rnl_sim *sim = vp->cluster->sim;
    int status = rnl_sim_coro_start(&vp->coro, at, live, vp);
    if (status < 0)
        return status;
    vp->life++;
    vp->state = VC_PROCESS_LIVES;
    vp->ending = vp->injected = 0;
    vp->sys_errno = 0;
    vc_ifaces_reset(vp->ifaces);
    vp->error = (struct rnl_error){.status = RNL_OK, .text = "no error"};
    vp->debt_ns = vp->calls = vp->clock_reads = vp->drawn = vp->drawn_env = 0;
    vp->rand_seed = 1;
    vp->line[0].n = vp->line[1].n = 0;
    vp->cluster->living++;
    vc_image_fill(vp->cluster->image, vp->image, vp->arena);
    vc_arena_init(vp);
    rnl_sim_note(sim, VC_NOTE_START, vp->rank, vp->life, at);
    return 0;
}

/* On the simulator's own stack: nothing of it runs any more. */
static void reap(struct vc_process *vp)
{
    struct vc_cluster *c = vp->cluster;
    vp->ending = 0;
    vp->state = VC_PROCESS_OVER;
    rnl_sim_note(c->sim, VC_NOTE_END, vp->rank, (uint64_t)vp->end, (uint64_t)(int64_t)vp->detail);
    vc_env_drop(vp);
    for (unsigned i = 0; i < VC_PROCESS_FDS; i++) {
        if (vp->fds[i] >= 0)
            close(vp->fds[i]);
        vp->fds[i] = -1;
    }
    vc_guards_forget(vp);
    vc_process_wipe(vp);
    c->living--;
    if (c->looks)
        c->looks(c);
    ended(c, vp);
}

static void restart(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    struct vc_cluster *c = rnl_sim_owner(sim);
    struct vc_process *vp = &c->process[event->entity];
    c->starting--;
    if (c->opt.verbose)
        vc_agent_say(c, "rank %u starts again", vp->rank);
    uint64_t now = rnl_sim_now(sim), stall = vp->host->stalled_until;
    if (start(vp, now > stall ? now : stall) < 0)
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
        vc_agent_say(c, "%u more ranks have not ended", living - TOLD);
}

void vc_cluster_run(struct vc_cluster *c, struct vc_cluster_result *out)
{
    uint64_t limit_ns = c->opt.limit_ns ? c->opt.limit_ns : LIMIT_NS;
    rnl_open_virtual = vc_env_open;
    rnl_iface_host = &iface_host;
    vc_alone_draws(c, true);
    int status = vc_guards_on(c);
    for (uint32_t rank = 0; rank < c->opt.ranks && status == 0; rank++)
        status = start(&c->process[rank], (uint64_t)rank * START_NS * VC_TICKS_PER_NS);
    if (status == 0)
        status = vc_scenario_start(c->scenario, c);
    if (status == 0) {
        (void)rnl_sim_run(c->sim, limit_ns * VC_TICKS_PER_NS);
        if (!c->over) {
            vc_agent_say(c, "no end after %llu.%03llu s of virtual time", (unsigned long long)(limit_ns / 1000000000),
                         (unsigned long long)(limit_ns / 1000000 % 1000));
            ask_where(c, limit_ns * VC_TICKS_PER_NS + 1);
            failed(c, STATUS_TIMEOUT);
        }
    } else {
        vc_agent_say(c, "%s", rnl_last_error()->text);
        failed(c, STATUS_SIGNAL - 1);
    }
    end_job(c);
    vc_guards_off(c);
    rnl_open_virtual = NULL;
    rnl_iface_host = NULL;
    vc_alone_draws(c, false);
    *out = (struct vc_cluster_result){.status = c->status,
                                      .hash = rnl_sim_hash(c->sim),
                                      .events = rnl_sim_events(c->sim),
                                      .switches = c->switches,
                                      .ns = rnl_sim_now(c->sim) / VC_TICKS_PER_NS};
}
