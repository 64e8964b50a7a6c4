/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guest.c - see guest.h. */
#include "sim/cluster/arena.h"
#include "sim/cluster/inside.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(MADV_GUARD_INSTALL)
#define MADV_GUARD_INSTALL 102 /* Linux 6.13: a guard that costs no map */
#endif

enum {
    CHARGE_NS = 1000, /* so much is passed at once */
    SPIN_CALLS = 20000000
};

struct rnl_guest *rnl_guest_now;

static void enter(struct rnl_sim_coro *coro);
static void leave(struct rnl_sim_coro *coro);

/* ---- memory ---- */

static void drop(unsigned char *from, const unsigned char *to)
{
    (void)madvise(from, (size_t)(to - from), MADV_DONTNEED);
}

/* All that it may have written reads as zeros again. What it had mapped from elsewhere in the arena goes, too. */
static void wipe(struct rnl_guest *g)
{
    const struct rnl_image *m = g->cluster->image;
    drop(g->slot + RNL_GUEST_GUARD, g->image);
    for (unsigned i = 0; i < m->loads; i++)
        if (m->load[i].write)
            drop(g->image + (m->load[i].at & ~(uint64_t)4095),
                 g->image + ((m->load[i].at + m->load[i].bytes + 4095) & ~(uint64_t)4095));
    drop(g->arena, g->slot + g->cluster->slot_bytes);
}

int rnl_guest_init(struct rnl_guest *g, struct rnl_cluster *c, uint32_t rank)
{
    memset(g, 0, sizeof *g);
    unsigned char *want = (unsigned char *)(uintptr_t)(RNL_GUEST_BASE + rank * c->slot_bytes);
    void *slot = mmap(want, c->slot_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (slot != want) {
        int e = slot == MAP_FAILED ? errno : EEXIST;
        if (slot != MAP_FAILED)
            munmap(slot, c->slot_bytes);
        return rnl_fail_errno(RNL_ERR_SYSTEM, e, "cannot reserve the addresses of rank %u: %llu MiB at %p", rank,
                              (unsigned long long)c->slot_bytes >> 20, (void *)want);
    }
    g->slot = slot;
    g->image = g->slot + RNL_GUEST_STACK_TOP;
    g->arena = g->image + c->image->bytes;
    g->cluster = c;
    g->rank = rank;
    for (unsigned i = 0; i < RNL_GUEST_FDS; i++)
        g->fds[i] = -1;
    if (madvise(g->slot, RNL_GUEST_GUARD, MADV_GUARD_INSTALL) < 0 && mprotect(g->slot, RNL_GUEST_GUARD, PROT_NONE) < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot guard the stack of rank %u", rank);
    rnl_sim_coro_init(&g->coro, c->sim, rank, g->slot + RNL_GUEST_GUARD, RNL_GUEST_STACK_TOP - RNL_GUEST_GUARD);
    rnl_sim_event_init(&g->restart, rnl_cluster_restart, rank);
    g->coro.enter = enter;
    g->coro.leave = leave;
    return rnl_image_map(c->image, g->image);
}

void rnl_guest_fini(struct rnl_guest *g)
{
    if (g->slot != NULL)
        munmap(g->slot, g->cluster->slot_bytes);
    g->slot = NULL;
}

/* ---- what is swapped ---- */

/* As much of it as there is: at each switch. */
static void copy_error(struct rnl_error *to, const struct rnl_error *from)
{
    memcpy(to, from, offsetof(struct rnl_error, text) + strlen(from->text) + 1);
}

static void enter(struct rnl_sim_coro *coro)
{
    struct rnl_guest *g = (struct rnl_guest *)(void *)coro;
    rnl_fm = g->fm;
    rnl_am = g->am;
    /* Our thread's record: programs hold its address. */
    copy_error((struct rnl_error *)(uintptr_t)rnl_last_error(), &g->error);
    rnl_guest_now = g;
    g->cluster->switches++;
    errno = g->sys_errno;
}

static void bury(struct rnl_guest *g);

static void leave(struct rnl_sim_coro *coro)
{
    struct rnl_guest *g = (struct rnl_guest *)(void *)coro;
    g->sys_errno = errno;
    g->fm = rnl_fm;
    g->am = rnl_am;
    copy_error(&g->error, rnl_last_error());
    rnl_guest_now = NULL;
    if (g->ending)
        bury(g);
}

/* ---- lives ---- */

/* main starts at one address whatever compiled this file: so the locals of a program have the same addresses in each
 * build of the simulator. */
static int call_main(struct rnl_guest *g, int argc, char **argv)
{
    int status;
    unsigned char *top = g->image - RNL_GUEST_MAIN, *main = g->image + g->cluster->image->main;
    char **environment = rnl_arena_of(g)->environment;
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
    struct rnl_guest *g = arg;
    const struct rnl_cluster_options *opt = &g->cluster->opt;
    (void)coro;
    char **argv = rnl_arena_alloc(((size_t)opt->argc + 1) * sizeof *argv, 16);
    for (int i = 0; i < opt->argc && argv != NULL; i++)
        if ((argv[i] = rnl_arena_text(opt->argv[i])) == NULL)
            argv = NULL;
    if (argv == NULL) {
        rnl_cluster_say(g->cluster, "rank %u has no memory for its arguments", g->rank);
        rnl_guest_end(g, RNL_END_EXIT, 71);
        return;
    }
    argv[opt->argc] = NULL;
    rnl_arena_of(g)->name = argv[0];
    const struct rnl_image *m = g->cluster->image;
    for (size_t i = 0; i < m->inits; i++)
        ((void (**)(int, char **, char **))(void *)(g->image + m->init))[i](opt->argc, argv,
                                                                            rnl_arena_of(g)->environment);
    rnl_guest_exit(call_main(g, opt->argc, argv));
}

int rnl_guest_start(struct rnl_guest *g, uint64_t at)
{
    struct rnl_sim *sim = g->cluster->sim;
    int status = rnl_sim_coro_start(&g->coro, at, live, g);
    if (status < 0)
        return status;
    g->life++;
    g->state = RNL_GUEST_LIVES;
    g->ending = g->injected = 0;
    g->sys_errno = 0;
    g->fm = (struct rnl_fm)RNL_FM_NEW;
    g->am = (struct rnl_am){0};
    g->error = (struct rnl_error){.status = RNL_OK, .text = "no error"};
    g->debt_ns = g->calls = g->clock_reads = g->drawn = g->drawn_env = 0;
    g->rand_seed = 1;
    g->line[0].n = g->line[1].n = 0;
    g->cluster->living++;
    rnl_image_fill(g->cluster->image, g->image, g->arena);
    rnl_arena_init(g);
    rnl_sim_note(sim, RNL_NOTE_START, g->rank, g->life, at);
    return 0;
}

/* On the simulator's own stack: nothing of it runs any more. */
static void bury(struct rnl_guest *g)
{
    struct rnl_cluster *c = g->cluster;
    g->ending = 0;
    g->state = RNL_GUEST_OVER;
    rnl_sim_note(c->sim, RNL_NOTE_END, g->rank, (uint64_t)g->end, (uint64_t)(int64_t)g->detail);
    rnl_venv_drop(g);
    for (unsigned i = 0; i < RNL_GUEST_FDS; i++) {
        if (g->fds[i] >= 0)
            close(g->fds[i]);
        g->fds[i] = -1;
    }
    rnl_guards_forget(g);
    wipe(g);
    c->living--;
    rnl_cluster_ended(c, g);
}

void rnl_guest_end(struct rnl_guest *g, enum rnl_guest_end end, int detail)
{
    if (g->state != RNL_GUEST_LIVES || g->ending)
        return;
    g->end = (int)end;
    g->detail = detail;
    g->ending = 1;
    rnl_sim_coro_kill(&g->coro); /* does not return if it is the one that runs */
    bury(g);
}

/* ---- time ---- */

uint64_t rnl_guest_ns(const struct rnl_guest *g)
{
    return rnl_vhost_ns(g->host, rnl_sim_now(g->cluster->sim)) + g->debt_ns;
}

uint64_t rnl_guest_sleep(struct rnl_guest *g, uint64_t tick)
{
    uint64_t stall = g->host->stalled_until;
    g->debt_ns = 0;
    g->calls = g->clock_reads = 0;
    if (tick != RNL_SIM_NEVER && tick < stall)
        tick = stall;
    uint64_t got = rnl_sim_park_until(&g->coro, tick);
    if (!g->asked)
        return got;
    rnl_guards_report(g, "has not ended: it is");
    return rnl_sim_park(&g->coro); /* for good */
}

void rnl_guest_pay(struct rnl_guest *g)
{
    uint64_t debt = g->debt_ns, calls = g->calls, reads = g->clock_reads;
    if (debt == 0)
        return;
    rnl_guest_sleep(g, rnl_sim_now(g->cluster->sim) + debt * RNL_TICKS_PER_NS);
    g->calls = calls; /* that was no wait */
    g->clock_reads = reads;
}

void rnl_guest_charge(struct rnl_guest *g, uint64_t ns)
{
    g->debt_ns += ns;
    if (g->debt_ns >= CHARGE_NS)
        rnl_guest_pay(g);
}

int rnl_guest_wake(struct rnl_guest *g, struct rnl_sim_coro_ticket ticket, uint64_t tick, uint64_t value)
{
    uint64_t stall = g->host->stalled_until;
    return rnl_sim_wake(&g->coro, ticket, tick > stall ? tick : stall, value);
}

void rnl_guest_called(struct rnl_guest *g)
{
    uint64_t most = g->cluster->opt.spin_calls ? g->cluster->opt.spin_calls : SPIN_CALLS;
    if (++g->calls <= most)
        return;
    rnl_guards_report(g, "made %llu calls without ever waiting", (unsigned long long)most);
    rnl_guest_end(g, RNL_END_SIGNAL, 24);
}

/* ---- output ---- */

static void put_line(struct rnl_guest *g, int stream)
{
    struct rnl_guest_line *l = &g->line[stream - 1];
    struct rnl_cluster *c = g->cluster;
    if (l->n == 0)
        return;
    rnl_sim_note_bytes(c->sim, RNL_NOTE_OUTPUT, g->rank, (uint64_t)stream, l->text, l->n);
    if (c->opt.output)
        c->opt.output(c->opt.arg, g->rank, stream, l->text, l->n);
    l->n = 0;
}

void rnl_guest_write(struct rnl_guest *g, int stream, const char *bytes, size_t n)
{
    struct rnl_guest_line *l = &g->line[stream - 1];
    for (size_t i = 0; i < n; i++) {
        l->text[l->n++] = bytes[i];
        if (l->n == sizeof l->text || bytes[i] == '\n')
            put_line(g, stream);
    }
}

void rnl_guest_flush(struct rnl_guest *g)
{
    put_line(g, 1);
    put_line(g, 2);
}
