/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guard.c - what a program must not do is refused, with the place: faults and overflowing stacks, system calls and
 * time-stamp reads of its own, and loops that neither wait nor call. A fault ends the rank, at the same virtual time in
 * each run. A loop without calls is only seen by the real clock: so it ends the run.
 *
 * rdrand, rdpid and cpuid cannot be caught: objdump -d finds them in a program. Some virtual machines take the order to
 * trap time-stamp reads and do not follow it (PVM): there the run says which function of the program has one. */
#include "sim/cluster/cluster_internal.h"

#include "base/error.h"

#include <errno.h>
#include <execinfo.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

enum { ALT_STACK = 256 << 10, FRAMES = 48, TICK_US = 100000, SPIN_MS = 5000, STATUS_SPIN = 128 + SIGXCPU, DEEP = 64 };

extern void __register_frame(void *);
extern void __deregister_frame(void *);

static struct vc_cluster *guarded; /* whose signals they are */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
enum { FAULTS = sizeof faults / sizeof faults[0] };
static struct sigaction fault_before[FAULTS], profile_before;
static stack_t stack_before;
static void *stack;
static volatile sig_atomic_t probing; /* a time-stamp read of our own, which is to be trapped */

/* ---- reports ---- */

static bool in_slot(const struct vc_process *vp, const void *at)
{
    const unsigned char *p = at;
    return p >= vp->slot && p < vp->slot + vp->cluster->slot_bytes;
}

const char *vc_process_place(const struct vc_process *vp, const void *at, char *buf, size_t n)
{
    const struct vc_image *m = vp->cluster->image;
    uint64_t in = 0, offset = (uint64_t)((const unsigned char *)at - vp->image);
    const char *name = in_slot(vp, at) && offset < m->bytes ? vc_image_name(m, offset, &in) : NULL;
    if (name)
        snprintf(buf, n, "%s+0x%llx", name, (unsigned long long)in);
    else if (in_slot(vp, at))
        snprintf(buf, n, "offset 0x%llx of its memory", (unsigned long long)((const unsigned char *)at - vp->slot));
    else
        snprintf(buf, n, "a function that it called");
    return buf;
}

/* The unwinder learns of the process's frames when they are asked for: most ranks never report. */
static void know_frames(struct vc_process *vp)
{
    const struct vc_image *m = vp->cluster->image;
    if (m->eh_frame != 0 && !vp->known_frames) {
        vp->known_frames = 1;
        __register_frame(vp->image + m->eh_frame);
    }
}

void vc_guards_forget(struct vc_process *vp)
{
    if (vp->known_frames)
        __deregister_frame(vp->image + vp->cluster->image->eh_frame);
    vp->known_frames = 0;
}

/* at: where it stands; NULL = where it called what called us. */
static void say_where(struct vc_process *vp, const void *at, const char *what)
{
    struct vc_cluster *c = vp->cluster;
    uint64_t ns = rnl_sim_now(c->sim) / VC_TICKS_PER_NS;
    void *pc[FRAMES];
    char where[DEEP + 64], chain[400] = "";
    size_t have = 0;
    know_frames(vp);
    int n = backtrace(pc, FRAMES), found = !at, told = 0;
    for (int i = 0; i < n && have < sizeof chain - 160; i++) {
        int here = pc[i] == at;
        found = found || here;
        if (!found || (!in_slot(vp, pc[i]) && !here))
            continue;
        int more = snprintf(chain + have, sizeof chain - have, "%s%s", told++ ? " / " : "",
                            vc_process_place(vp, (char *)pc[i] - !here, where, sizeof where));
        have += more > 0 ? (size_t)more : 0;
    }
    if (told == 0) /* it cannot be unwound from there */
        vc_process_place(vp, at, chain, sizeof chain);
    vc_agent_say(c, "rank %u %s at %s, at %llu.%09llu s", vp->rank, what, chain, (unsigned long long)(ns / 1000000000),
                 (unsigned long long)(ns % 1000000000));
}

void vc_guards_report(struct vc_process *vp, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    say_where(vp, NULL, what);
}

/* ---- faults ---- */

/* On the stack of the rank that has failed, from its top. */
static void land(void)
{
    struct vc_process *vp = vc_process_now;
    vc_process_end(vp, VC_END_SIGNAL, vp->fault);
    abort(); /* it has ended */
}

enum { COUNTER_READ = 3 };

static bool reads_counter(const unsigned char *op)
{
    return op[0] == 0x0f && (op[1] == 0x31 || (op[1] == 0x01 && op[2] == 0xf9)); /* rdtsc, rdtscp */
}

static void describe(const struct vc_process *vp, int number, const siginfo_t *info, const unsigned char *ip,
                     char *what, size_t n)
{
    const unsigned char *at = info->si_addr;
    if (number == SIGSYS)
        snprintf(what, n, "made system call %d by itself, which no virtual machine has,", info->si_syscall);
    else if (number == SIGSEGV && in_slot(vp, ip) && reads_counter(ip))
        snprintf(what, n, "read the processor's time-stamp counter, which is not virtual,");
    else if (number == SIGSEGV && at >= vp->slot && at < vp->slot + VC_PROCESS_GUARD)
        snprintf(what, n, "has overflown its stack of 8 MiB");
    else
        snprintf(what, n, "was ended by signal %d (%s, address %p)", number, strsignal(number), info->si_addr);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    struct vc_process *vp = vc_process_now;
    char what[160];
    if (probing) {
        probing = 0;
        u->uc_mcontext.gregs[REG_RIP] += 2; /* behind rdtsc */
        return;
    }
    if (!vp || !guarded) { /* our own: let it happen */
        signal(number, SIG_DFL);
        return;
    }
    const unsigned char *ip = (const unsigned char *)u->uc_mcontext.gregs[REG_RIP];
    describe(vp, number, info, ip, what, sizeof what);
    say_where(vp, ip, what);
    vp->fault = number;
    u->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)land;
    u->uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)(vp->image - VC_PROCESS_MAIN - 8);
}

/* ---- loops ---- */

/* Says where and ends the run: what the clock of this machine decides must not be followed by anything. */
static void on_tick(int number, siginfo_t *info, void *context)
{
    static uint64_t last;
    static uint32_t ms;
    struct vc_process *vp = vc_process_now;
    (void)number, (void)info;
    if (!vp || !guarded || guarded->switches != last) {
        last = guarded ? guarded->switches : 0;
        ms = 0;
        return;
    }
    ms += TICK_US / 1000;
    const void *ip = (const void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    uint32_t most = guarded->opt.spin_ms ? guarded->opt.spin_ms : SPIN_MS;
    if (ms < most || (!in_slot(vp, ip) && ms < 4 * most)) /* rather in its own code: that says more */
        return;
    char what[64];
    snprintf(what, sizeof what, "did not wait for %u ms of processor time", ms);
    say_where(vp, ip, what);
    _exit(STATUS_SPIN);
}

/* ---- on and off ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined(SANITIZED)
#define SANITIZED 0
#endif

/* For the life of this process: code within the slots makes no system calls. Where the kernel refuses, it is not
 * guarded against. */
static void filter_calls(void)
{
    static int done;
    static_assert((VC_PROCESS_BASE & UINT32_MAX) == 0 && (VC_PROCESS_SPACE & UINT32_MAX) == 0,
                  "high words are compared");
    const uint32_t low = (uint32_t)(VC_PROCESS_BASE >> 32),
                   high = (uint32_t)((VC_PROCESS_BASE + VC_PROCESS_SPACE) >> 32);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, low, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, high, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
    if (!done && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        done = 1;
}

static void count_time(int on)
{
    const struct itimerval every = {.it_interval = {.tv_usec = on ? TICK_US : 0},
                                    .it_value = {.tv_usec = on ? TICK_US : 0}};
    setitimer(ITIMER_PROF, &every, NULL);
    if (!SANITIZED && !guarded->opt.no_guards) /* sanitizers read it themselves */
        prctl(PR_SET_TSC, on ? PR_TSC_SIGSEGV : PR_TSC_ENABLE, 0, 0, 0);
}

static bool counter_is_trapped(void)
{
    probing = 1;
    __asm__ volatile("rdtsc" : : : "eax", "edx");
    bool trapped = !probing;
    probing = 0;
    return trapped;
}

/* Bytes that only look like the instruction are named as well: to read a little too much does no harm. */
static void say_counter_reads(struct vc_cluster *c)
{
    const struct vc_image *m = c->image;
    for (unsigned i = 0; i < m->loads; i++) {
        const struct vc_image_load *l = &m->load[i];
        for (uint64_t k = 0; l->execute && k + COUNTER_READ <= l->file_bytes; k++) {
            uint64_t in = 0;
            if (!reads_counter(m->file + l->file_at + k))
                continue;
            const char *name = vc_image_name(m, l->at + k, &in);
            vc_agent_say(c,
                         "this machine does not trap reads of the time-stamp counter, which is not virtual, and "
                         "%s+0x%llx of the program seems to be one",
                         name ? name : "offset 0", (unsigned long long)(name ? in : l->at + k));
            return;
        }
    }
}

int vc_guards_on(struct vc_cluster *c)
{
    void *warm[4];
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    stack = mmap(NULL, ALT_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) {
        stack = NULL;
        return rnl_fail_errno(RNL_ERR_NO_MEMORY, errno, "no memory for a stack of signals");
    }
    const stack_t own = {.ss_sp = stack, .ss_size = ALT_STACK}; /* never that of a rank */
    sigaltstack(&own, &stack_before);
    (void)backtrace(warm, 4); /* loads what it needs before it is needed in a signal */
    guarded = c;
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], &action, &fault_before[i]);
    action.sa_sigaction = on_tick;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaction(SIGPROF, &action, &profile_before);
    if (!c->opt.no_guards)
        filter_calls();
    count_time(1);
    if (!SANITIZED && !c->opt.no_guards && !counter_is_trapped())
        say_counter_reads(c);
    return 0;
}

void vc_guards_off(struct vc_cluster *c)
{
    if (guarded != c)
        return;
    count_time(0);
    sigaction(SIGPROF, &profile_before, NULL);
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], &fault_before[i], NULL);
    guarded = NULL;
    sigaltstack(&stack_before, NULL);
    munmap(stack, ALT_STACK);
    stack = NULL;
}
