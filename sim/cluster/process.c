/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.c - see process.h. */
#include "sim/cluster/arena.h"
#include "sim/cluster/cluster_internal.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(MADV_GUARD_INSTALL)
#define MADV_GUARD_INSTALL 102 /* Linux 6.13: a guard that costs no map */
#endif

enum {
    CHARGE_NS = 1000, /* so much is passed at once */
    SPIN_CALLS = 20000000,
    SIGNAL_KILL = 9
};

struct vc_process *vc_process_now;

static void enter(struct rnl_sim_coro *coro);
static void leave(struct rnl_sim_coro *coro);

/* ---- memory ---- */

static void drop(unsigned char *from, const unsigned char *to)
{
    (void)madvise(from, (size_t)(to - from), MADV_DONTNEED);
}

void vc_process_wipe(struct vc_process *vp)
{
    const struct vc_image *m = vp->cluster->image;
    drop(vp->slot + VC_PROCESS_GUARD, vp->image);
    for (unsigned i = 0; i < m->loads; i++)
        if (m->load[i].write)
            drop(vp->image + (m->load[i].at & ~(uint64_t)4095),
                 vp->image + ((m->load[i].at + m->load[i].bytes + 4095) & ~(uint64_t)4095));
    drop(vp->arena, vp->slot + vp->cluster->slot_bytes);
}

int vc_process_init(struct vc_process *vp, struct vc_cluster *c, uint32_t rank)
{
    memset(vp, 0, sizeof *vp);
    unsigned char *want = (unsigned char *)(uintptr_t)(VC_PROCESS_BASE + rank * c->slot_bytes);
    void *slot = mmap(want, c->slot_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (slot != want) {
        int e = slot == MAP_FAILED ? errno : EEXIST;
        if (slot != MAP_FAILED)
            munmap(slot, c->slot_bytes);
        return rnl_fail_errno(RNL_ERR_SYSTEM, e, "cannot reserve the addresses of rank %u: %llu MiB at %p", rank,
                              (unsigned long long)c->slot_bytes >> 20, (void *)want);
    }
    vp->slot = slot;
    vp->image = vp->slot + VC_PROCESS_STACK_TOP;
    vp->arena = vp->image + c->image->bytes;
    vp->cluster = c;
    vp->rank = rank;
    for (unsigned i = 0; i < VC_PROCESS_FDS; i++)
        vp->fds[i] = -1;
    if (madvise(vp->slot, VC_PROCESS_GUARD, MADV_GUARD_INSTALL) < 0 &&
        mprotect(vp->slot, VC_PROCESS_GUARD, PROT_NONE) < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot guard the stack of rank %u", rank);
    vp->ifaces = malloc(vc_ifaces_bytes() + 1);
    if (!vp->ifaces)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the interfaces' state of rank %u", rank);
    rnl_sim_coro_init(&vp->coro, c->sim, rank, vp->slot + VC_PROCESS_GUARD, VC_PROCESS_STACK_TOP - VC_PROCESS_GUARD);
    vp->coro.enter = enter;
    vp->coro.leave = leave;
    return vc_image_map(c->image, vp->image);
}

void vc_process_fini(struct vc_process *vp)
{
    if (vp->slot)
        munmap(vp->slot, vp->cluster->slot_bytes);
    vp->slot = NULL;
    free(vp->ifaces);
    vp->ifaces = NULL;
}

/* ---- what is swapped ---- */

/* As much of it as there is: at each switch. */
static void copy_error(struct rnl_error *to, const struct rnl_error *from)
{
    memcpy(to, from, offsetof(struct rnl_error, text) + strlen(from->text) + 1);
}

static void enter(struct rnl_sim_coro *coro)
{
    struct vc_process *vp = (struct vc_process *)(void *)coro;
    vc_ifaces_enter(vp->ifaces);
    /* Our thread's record: programs hold its address. */
    copy_error((struct rnl_error *)(uintptr_t)rnl_last_error(), &vp->error);
    vc_process_now = vp;
    vp->cluster->switches++;
    errno = vp->sys_errno;
}

static void leave(struct rnl_sim_coro *coro)
{
    struct vc_process *vp = (struct vc_process *)(void *)coro;
    vp->sys_errno = errno;
    vc_ifaces_leave(vp->ifaces);
    copy_error(&vp->error, rnl_last_error());
    vc_process_now = NULL;
    if (vp->ending)
        vp->cluster->reaps(vp);
    if (vp->cluster->looks)
        vp->cluster->looks(vp->cluster);
}

/* ---- its end ---- */

void vc_process_end(struct vc_process *vp, enum vc_process_end end, int detail)
{
    if (vp->state != VC_PROCESS_LIVES || vp->ending)
        return;
    vp->end = (int)end;
    vp->detail = detail;
    vp->ending = 1;
    rnl_sim_coro_kill(&vp->coro); /* does not return if it is the one that runs */
    vp->cluster->reaps(vp);
}

void vc_process_crash(struct vc_cluster *c, struct vc_process *vp, uint64_t restart_ns)
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

/* ---- time ---- */

int32_t vc_process_pid(const struct vc_process *vp)
{
    return (int32_t)(VC_PROCESS_PID + vp->rank + (vp->life - 1) * vp->cluster->opt.ranks);
}

uint64_t vc_process_ns(const struct vc_process *vp)
{
    return vc_host_ns(vp->host, rnl_sim_now(vp->cluster->sim)) + vp->debt_ns;
}

uint64_t vc_process_sleep(struct vc_process *vp, uint64_t tick)
{
    uint64_t stall = vp->host->stalled_until;
    vp->debt_ns = 0;
    vp->calls = vp->clock_reads = 0;
    if (tick != RNL_SIM_NEVER && tick < stall)
        tick = stall;
    uint64_t got = rnl_sim_park_until(&vp->coro, tick);
    if (!vp->asked)
        return got;
    vc_guards_report(vp, "has not ended: it is");
    return rnl_sim_park(&vp->coro); /* for good */
}

void vc_process_pay(struct vc_process *vp)
{
    uint64_t debt = vp->debt_ns, calls = vp->calls, reads = vp->clock_reads;
    if (debt == 0)
        return;
    vc_process_sleep(vp, rnl_sim_now(vp->cluster->sim) + debt * VC_TICKS_PER_NS);
    vp->calls = calls; /* that was no wait */
    vp->clock_reads = reads;
}

void vc_process_charge(struct vc_process *vp, uint64_t ns)
{
    vp->debt_ns += ns;
    if (vp->debt_ns >= CHARGE_NS)
        vc_process_pay(vp);
}

int vc_process_wake(struct vc_process *vp, struct rnl_sim_coro_ticket ticket, uint64_t tick, uint64_t value)
{
    uint64_t stall = vp->host->stalled_until;
    return rnl_sim_wake(&vp->coro, ticket, tick > stall ? tick : stall, value);
}

void vc_process_called(struct vc_process *vp)
{
    uint64_t most = vp->cluster->opt.spin_calls ? vp->cluster->opt.spin_calls : SPIN_CALLS;
    if (++vp->calls <= most)
        return;
    vc_guards_report(vp, "made %llu calls without ever waiting", (unsigned long long)most);
    vc_process_end(vp, VC_END_SIGNAL, 24);
}

/* ---- output ---- */

static void put_line(struct vc_process *vp, int stream)
{
    struct vc_process_line *l = &vp->line[stream - 1];
    struct vc_cluster *c = vp->cluster;
    if (l->n == 0)
        return;
    rnl_sim_note_bytes(c->sim, VC_NOTE_OUTPUT, vp->rank, (uint64_t)stream, l->text, l->n);
    if (c->opt.output)
        c->opt.output(c->opt.arg, vp->rank, stream, l->text, l->n);
    l->n = 0;
}

void vc_process_write(struct vc_process *vp, int stream, const char *bytes, size_t n)
{
    struct vc_process_line *l = &vp->line[stream - 1];
    for (size_t i = 0; i < n; i++) {
        l->text[l->n++] = bytes[i];
        if (l->n == sizeof l->text || bytes[i] == '\n')
            put_line(vp, stream);
    }
}

void vc_process_flush(struct vc_process *vp)
{
    put_line(vp, 1);
    put_line(vp, 2);
}
