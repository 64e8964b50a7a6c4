/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guard.c - what a program must not do is refused, with the place: faults and overflowing stacks, system calls and
 * time-stamp reads of its own, and loops that neither wait nor call. A fault ends the rank, at the same virtual time in
 * each run. A loop without calls is only seen by the real clock: so it ends the run.
 *
 * rdrand, rdpid and cpuid cannot be caught: objdump -d finds them in a program. */
#include "sim/cluster/inside.h"

#include "base/error.h"

#include <errno.h>
#include <execinfo.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
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

static struct rnl_cluster *guarded; /* whose signals they are */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
enum { FAULTS = sizeof faults / sizeof faults[0] };
static struct sigaction fault_before[FAULTS], profile_before;
static stack_t stack_before;
static void *stack;

/* ---- reports ---- */

static int in_slot(const struct rnl_guest *g, const void *at)
{
    const unsigned char *p = at;
    return p >= g->slot && p < g->slot + g->cluster->slot_bytes;
}

const char *rnl_guest_place(const struct rnl_guest *g, const void *at, char *buf, size_t n)
{
    const struct rnl_image *m = g->cluster->image;
    uint64_t in = 0, offset = (uint64_t)((const unsigned char *)at - g->image);
    const char *name = in_slot(g, at) && offset < m->bytes ? rnl_image_name(m, offset, &in) : NULL;
    if (name != NULL)
        snprintf(buf, n, "%s+0x%llx", name, (unsigned long long)in);
    else if (in_slot(g, at))
        snprintf(buf, n, "offset 0x%llx of its memory", (unsigned long long)((const unsigned char *)at - g->slot));
    else
        snprintf(buf, n, "a function that it called");
    return buf;
}

/* The unwinder learns of the copy's frames when they are asked for: most ranks never report. */
static void know_frames(struct rnl_guest *g)
{
    const struct rnl_image *m = g->cluster->image;
    if (m->eh_frame != 0 && !g->known_frames) {
        g->known_frames = 1;
        __register_frame(g->image + m->eh_frame);
    }
}

void rnl_guards_forget(struct rnl_guest *g)
{
    if (g->known_frames)
        __deregister_frame(g->image + g->cluster->image->eh_frame);
    g->known_frames = 0;
}

/* at: where it stands; NULL = where it called what called us. */
static void say_where(struct rnl_guest *g, const void *at, const char *what)
{
    struct rnl_cluster *c = g->cluster;
    uint64_t ns = rnl_sim_now(c->sim) / RNL_TICKS_PER_NS;
    void *pc[FRAMES];
    char where[DEEP + 64], chain[400] = "";
    size_t have = 0;
    know_frames(g);
    int n = backtrace(pc, FRAMES), found = at == NULL, told = 0;
    for (int i = 0; i < n && have < sizeof chain - 160; i++) {
        int here = pc[i] == at;
        found = found || here;
        if (!found || (!in_slot(g, pc[i]) && !here))
            continue;
        int more = snprintf(chain + have, sizeof chain - have, "%s%s", told++ ? " / " : "",
                            rnl_guest_place(g, (char *)pc[i] - !here, where, sizeof where));
        have += more > 0 ? (size_t)more : 0;
    }
    if (told == 0) /* it cannot be unwound from there */
        rnl_guest_place(g, at, chain, sizeof chain);
    rnl_cluster_say(c, "rank %u %s at %s, at %llu.%09llu s", g->rank, what, chain,
                    (unsigned long long)(ns / 1000000000), (unsigned long long)(ns % 1000000000));
}

void rnl_guards_report(struct rnl_guest *g, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    say_where(g, NULL, what);
}

/* ---- faults ---- */

/* On the stack of the rank that has failed, from its top. */
static void land(void)
{
    struct rnl_guest *g = rnl_guest_now;
    rnl_guest_end(g, RNL_END_SIGNAL, g->fault);
    abort(); /* it has ended */
}

static int reads_counter(const unsigned char *op)
{
    return op[0] == 0x0f && (op[1] == 0x31 || (op[1] == 0x01 && op[2] == 0xf9)); /* rdtsc, rdtscp */
}

static void describe(const struct rnl_guest *g, int number, const siginfo_t *info, const unsigned char *ip, char *what,
                     size_t n)
{
    const unsigned char *at = info->si_addr;
    if (number == SIGSYS)
        snprintf(what, n, "made system call %d by itself, which no virtual machine has,", info->si_syscall);
    else if (number == SIGSEGV && in_slot(g, ip) && reads_counter(ip))
        snprintf(what, n, "read the processor's time-stamp counter, which is not virtual,");
    else if (number == SIGSEGV && at >= g->slot && at < g->slot + RNL_GUEST_GUARD)
        snprintf(what, n, "has overflown its stack of 8 MiB");
    else
        snprintf(what, n, "was ended by signal %d (%s, address %p)", number, strsignal(number), info->si_addr);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    struct rnl_guest *g = rnl_guest_now;
    char what[160];
    if (g == NULL || guarded == NULL) { /* our own: let it happen */
        signal(number, SIG_DFL);
        return;
    }
    const unsigned char *ip = (const unsigned char *)u->uc_mcontext.gregs[REG_RIP];
    describe(g, number, info, ip, what, sizeof what);
    say_where(g, ip, what);
    g->fault = number;
    u->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)land;
    u->uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)(g->image - RNL_GUEST_MAIN - 8);
}

/* ---- loops ---- */

/* Says where and ends the run: what the clock of this machine decides must not be followed by anything. */
static void on_tick(int number, siginfo_t *info, void *context)
{
    static uint64_t last;
    static uint32_t ms;
    struct rnl_guest *g = rnl_guest_now;
    (void)number, (void)info;
    if (g == NULL || guarded == NULL || guarded->switches != last) {
        last = guarded ? guarded->switches : 0;
        ms = 0;
        return;
    }
    ms += TICK_US / 1000;
    const void *ip = (const void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    uint32_t most = guarded->opt.spin_ms ? guarded->opt.spin_ms : SPIN_MS;
    if (ms < most || (!in_slot(g, ip) && ms < 4 * most)) /* rather in its own code: that says more */
        return;
    char what[64];
    snprintf(what, sizeof what, "did not wait for %u ms of processor time", ms);
    say_where(g, ip, what);
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
    static_assert((RNL_GUEST_BASE & UINT32_MAX) == 0 && (RNL_GUEST_SPACE & UINT32_MAX) == 0, "high words are compared");
    const uint32_t low = (uint32_t)(RNL_GUEST_BASE >> 32), high = (uint32_t)((RNL_GUEST_BASE + RNL_GUEST_SPACE) >> 32);
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

int rnl_guards_on(struct rnl_cluster *c)
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
    return 0;
}

void rnl_guards_off(struct rnl_cluster *c)
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
