/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim_process.c - a virtual process's beginning and end, its environment, and what it is told of the machine. Signals
 * are accepted and never come; threads and children are refused. */
#include "sim/cluster/arena.h"
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/shim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- the end ---- */

_Noreturn static void end(enum vc_process_end how, int detail)
{
    vc_process_flush(vc_process_now);
    for (;;)
        vc_process_end(vc_process_now, how, detail);
}

static void shim__exit(int status)
{
    end(VC_END_EXIT, status & 0xff);
}

void vc_process_exit(int status)
{
    struct vc_process *vp = vc_process_now;
    struct vc_arena *a = vc_arena_now();
    const struct vc_image *m = vp->cluster->image;
    while (a->exits->n > 0 || a->exits->before) {
        if (a->exits->n == 0) {
            a->exits = a->exits->before;
            continue;
        }
        a->exits->n--;
        a->exits->exit[a->exits->n].fn(a->exits->exit[a->exits->n].arg);
    }
    for (size_t i = m->finis; i > 0; i--)
        ((void (**)(void))(void *)(vp->image + m->fini))[i - 1]();
    vc_files_flush();
    end(VC_END_EXIT, status & 0xff);
}

static void shim_abort(void)
{
    vc_guards_report(vc_process_now, "called abort");
    end(VC_END_SIGNAL, SIGABRT);
}

static void shim___assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
    char text[512];
    int n = snprintf(text, sizeof text, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, what);
    vc_process_write(vc_process_now, 2, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
    shim_abort();
}

static void shim___stack_chk_fail(void)
{
    vc_guards_report(vc_process_now, "wrote past an array on its stack");
    end(VC_END_SIGNAL, SIGABRT);
}

static void shim___chk_fail(void)
{
    vc_guards_report(vc_process_now, "wrote past the end of an object");
    end(VC_END_SIGNAL, SIGABRT);
}

static int shim___cxa_atexit(void (*fn)(void *), void *arg, void *dso)
{
    struct vc_arena *a = vc_arena_now();
    (void)dso;
    if (a->exits->n == VC_EXITS_A_BLOCK) {
        struct vc_exits *more = vc_arena_alloc(sizeof *more, 16);
        if (!more)
            return -1;
        more->before = a->exits;
        more->n = 0;
        a->exits = more;
    }
    a->exits->exit[a->exits->n].fn = fn;
    a->exits->exit[a->exits->n++].arg = arg;
    return 0;
}

static int shim_atexit(void (*fn)(void))
{
    return shim___cxa_atexit((void (*)(void *))(void (*)(void))fn, NULL, NULL);
}

static void shim___cxa_finalize(void *dso)
{
    (void)dso; /* vc_process_exit has called what there is */
}

/* ---- signals ---- */

static void (*shim_signal(int number, void (*handler)(int)))(int)
{
    struct vc_arena *a = vc_arena_now();
    if (number <= 0 || number >= VC_ARENA_SIGNALS || number == SIGKILL || number == SIGSTOP) {
        errno = EINVAL;
        return SIG_ERR;
    }
    void (*before)(int) = a->signal[number];
    a->signal[number] = handler;
    return before;
}

static int shim_sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    struct vc_arena *a = vc_arena_now();
    if (number <= 0 || number >= VC_ARENA_SIGNALS || (new && (number == SIGKILL || number == SIGSTOP))) {
        errno = EINVAL;
        return -1;
    }
    void (*before)(int) = a->signal[number];
    if (new)
        a->signal[number] = new->sa_handler;
    if (old) {
        memset(old, 0, sizeof *old);
        old->sa_handler = before;
    }
    return 0;
}

static int shim_raise(int number)
{
    struct vc_arena *a = vc_arena_now();
    void (*handler)(int) = number > 0 && number < VC_ARENA_SIGNALS ? a->signal[number] : SIG_DFL;
    if (handler == SIG_IGN ||
        ((number == SIGCHLD || number == SIGURG || number == SIGWINCH || number == SIGCONT) && handler == SIG_DFL))
        return 0;
    if (handler == SIG_DFL)
        end(VC_END_SIGNAL, number);
    handler(number);
    return 0;
}

static int shim_getpid(void)
{
    return vc_process_pid(vc_process_now);
}

static int shim_getppid(void)
{
    return 1;
}

static int shim_kill(int pid, int number)
{
    if (pid == shim_getpid())
        return number == 0 ? 0 : shim_raise(number);
    errno = ESRCH;
    return -1;
}

static int shim_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    (void)how, (void)set; /* none ever comes */
    if (old)
        sigemptyset(old);
    return 0;
}

/* ---- what is not to be had ---- */

static int shim_pthread_create(void)
{
    return EAGAIN; /* no processor for another thread */
}

static int shim_fork(void)
{
    errno = EAGAIN;
    return -1;
}

static int shim_pthread_nothing(void)
{
    return 0; /* locks, for one thread */
}

static unsigned long shim_pthread_self(void)
{
    return 1;
}

/* ---- the environment ---- */

static char *shim_getenv(const char *name)
{
    (void)name; /* that of the simulator is no part of the run */
    return NULL;
}

static unsigned long shim_getauxval(unsigned long type)
{
    (void)type; /* hides the kernel's clock page */
    return 0;
}

static long shim_sysconf(int name)
{
    switch (name) {
    case _SC_PAGESIZE:
        return 4096;
    case _SC_NPROCESSORS_ONLN:
    case _SC_NPROCESSORS_CONF:
        return vc_process_now->host->ranks;
    case _SC_CLK_TCK:
        return 100;
    case _SC_OPEN_MAX:
        return VC_PROCESS_FDS;
    default:
        errno = EINVAL;
        return -1;
    }
}

static int shim_getpagesize(void)
{
    return 4096;
}

static int shim_gethostname(char *to, size_t n)
{
    int have = snprintf(to, n, "host%u", vc_process_now->host->index);
    if (have >= 0 && (size_t)have < n)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

static int shim_getrusage(int who, struct rusage *out)
{
    uint64_t us = vc_process_ns(vc_process_now) / 1000;
    (void)who;
    memset(out, 0, sizeof *out);
    out->ru_utime.tv_sec = (time_t)(us / 1000000);
    out->ru_utime.tv_usec = (suseconds_t)(us % 1000000);
    return 0;
}

static unsigned shim_zero(void)
{
    return 0; /* getuid and the like */
}

const struct vc_shim vc_shim_process[] = {
    VC_SHIM_AS(exit, vc_process_exit),
    VC_SHIM(_exit),
    VC_SHIM_AS(_Exit, shim__exit),
    VC_SHIM_AS(quick_exit, shim__exit),
    VC_SHIM(abort),
    VC_SHIM(__assert_fail),
    VC_SHIM(__stack_chk_fail),
    VC_SHIM(__chk_fail),
    VC_SHIM(__cxa_atexit),
    VC_SHIM(atexit),
    VC_SHIM(__cxa_finalize),
    VC_SHIM(signal),
    VC_SHIM(sigaction),
    VC_SHIM(raise),
    VC_SHIM(getpid),
    VC_SHIM(getppid),
    VC_SHIM(kill),
    VC_SHIM(sigprocmask),
    VC_SHIM_AS(pthread_sigmask, shim_sigprocmask),
    VC_SHIM(pthread_create),
    VC_SHIM(fork),
    VC_SHIM_AS(vfork, shim_fork),
    VC_SHIM_AS(pthread_mutex_init, shim_pthread_nothing),
    VC_SHIM_AS(pthread_mutex_destroy, shim_pthread_nothing),
    VC_SHIM_AS(pthread_mutex_lock, shim_pthread_nothing),
    VC_SHIM_AS(pthread_mutex_unlock, shim_pthread_nothing),
    VC_SHIM(pthread_self),
    VC_SHIM(getenv),
    VC_SHIM_AS(secure_getenv, shim_getenv),
    VC_SHIM(getauxval),
    VC_SHIM(sysconf),
    VC_SHIM(getpagesize),
    VC_SHIM(gethostname),
    VC_SHIM(getrusage),
    VC_SHIM_AS(getuid, shim_zero),
    VC_SHIM_AS(geteuid, shim_zero),
    VC_SHIM_AS(getgid, shim_zero),
    VC_SHIM_AS(getegid, shim_zero),
    VC_SHIM_END,
};
