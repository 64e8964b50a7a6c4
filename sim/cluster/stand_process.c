/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stand_process.c - a copy's beginning and end, its environment, and what it is told of the machine. Signals are
 * accepted and never come; threads and children are refused. */
#include "sim/cluster/files.h"
#include "sim/cluster/inside.h"
#include "sim/cluster/stand.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- the end ---- */

_Noreturn static void end(enum rnl_guest_end how, int detail)
{
    rnl_guest_flush(rnl_guest_now);
    for (;;)
        rnl_guest_end(rnl_guest_now, how, detail);
}

static void stand__exit(int status)
{
    end(RNL_END_EXIT, status & 0xff);
}

void rnl_guest_exit(int status)
{
    struct rnl_guest *g = rnl_guest_now;
    struct rnl_arena *a = rnl_arena_now();
    const struct rnl_image *m = g->cluster->image;
    while (a->exits->n > 0 || a->exits->before != NULL) {
        if (a->exits->n == 0) {
            a->exits = a->exits->before;
            continue;
        }
        a->exits->n--;
        a->exits->exit[a->exits->n].fn(a->exits->exit[a->exits->n].arg);
    }
    for (size_t i = m->finis; i > 0; i--)
        ((void (**)(void))(void *)(g->image + m->fini))[i - 1]();
    rnl_files_flush();
    end(RNL_END_EXIT, status & 0xff);
}

static void stand_abort(void)
{
    rnl_guards_report(rnl_guest_now, "called abort");
    end(RNL_END_SIGNAL, SIGABRT);
}

static void stand___assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
    char text[512];
    int n = snprintf(text, sizeof text, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, what);
    rnl_guest_write(rnl_guest_now, 2, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
    stand_abort();
}

static void stand___stack_chk_fail(void)
{
    rnl_guards_report(rnl_guest_now, "wrote past an array on its stack");
    end(RNL_END_SIGNAL, SIGABRT);
}

static void stand___chk_fail(void)
{
    rnl_guards_report(rnl_guest_now, "wrote past the end of an object");
    end(RNL_END_SIGNAL, SIGABRT);
}

static int stand___cxa_atexit(void (*fn)(void *), void *arg, void *dso)
{
    struct rnl_arena *a = rnl_arena_now();
    (void)dso;
    if (a->exits->n == RNL_EXITS_A_BLOCK) {
        struct rnl_exits *more = rnl_arena_alloc(sizeof *more, 16);
        if (more == NULL)
            return -1;
        more->before = a->exits;
        more->n = 0;
        a->exits = more;
    }
    a->exits->exit[a->exits->n].fn = fn;
    a->exits->exit[a->exits->n++].arg = arg;
    return 0;
}

static int stand_atexit(void (*fn)(void))
{
    return stand___cxa_atexit((void (*)(void *))(void (*)(void))fn, NULL, NULL);
}

static void stand___cxa_finalize(void *dso)
{
    (void)dso; /* rnl_guest_exit has called what there is */
}

/* ---- signals ---- */

static void (*stand_signal(int number, void (*handler)(int)))(int)
{
    struct rnl_arena *a = rnl_arena_now();
    if (number <= 0 || number >= RNL_ARENA_SIGNALS || number == SIGKILL || number == SIGSTOP) {
        errno = EINVAL;
        return SIG_ERR;
    }
    void (*before)(int) = a->signal[number];
    a->signal[number] = handler;
    return before;
}

static int stand_sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    struct rnl_arena *a = rnl_arena_now();
    if (number <= 0 || number >= RNL_ARENA_SIGNALS || (new != NULL && (number == SIGKILL || number == SIGSTOP))) {
        errno = EINVAL;
        return -1;
    }
    void (*before)(int) = a->signal[number];
    if (new != NULL)
        a->signal[number] = new->sa_handler;
    if (old != NULL) {
        memset(old, 0, sizeof *old);
        old->sa_handler = before;
    }
    return 0;
}

static int stand_raise(int number)
{
    struct rnl_arena *a = rnl_arena_now();
    void (*handler)(int) = number > 0 && number < RNL_ARENA_SIGNALS ? a->signal[number] : SIG_DFL;
    if (handler == SIG_IGN ||
        ((number == SIGCHLD || number == SIGURG || number == SIGWINCH || number == SIGCONT) && handler == SIG_DFL))
        return 0;
    if (handler == SIG_DFL)
        end(RNL_END_SIGNAL, number);
    handler(number);
    return 0;
}

static int stand_getpid(void)
{
    const struct rnl_guest *g = rnl_guest_now;
    return (int)(RNL_GUEST_PID + g->rank + (g->life - 1) * g->cluster->opt.ranks);
}

static int stand_getppid(void)
{
    return 1;
}

static int stand_kill(int pid, int number)
{
    if (pid == stand_getpid())
        return number == 0 ? 0 : stand_raise(number);
    errno = ESRCH;
    return -1;
}

static int stand_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    (void)how, (void)set; /* none ever comes */
    if (old != NULL)
        sigemptyset(old);
    return 0;
}

/* ---- what is not to be had ---- */

static int stand_pthread_create(void)
{
    return EAGAIN; /* no processor for another thread */
}

static int stand_fork(void)
{
    errno = EAGAIN;
    return -1;
}

static int stand_pthread_nothing(void)
{
    return 0; /* locks, for one thread */
}

static unsigned long stand_pthread_self(void)
{
    return 1;
}

/* ---- the environment ---- */

static char *stand_getenv(const char *name)
{
    (void)name; /* that of the simulator is no part of the run */
    return NULL;
}

static unsigned long stand_getauxval(unsigned long type)
{
    (void)type; /* hides the kernel's clock page */
    return 0;
}

static long stand_sysconf(int name)
{
    switch (name) {
    case _SC_PAGESIZE:
        return 4096;
    case _SC_NPROCESSORS_ONLN:
    case _SC_NPROCESSORS_CONF:
        return rnl_guest_now->host->ranks;
    case _SC_CLK_TCK:
        return 100;
    case _SC_OPEN_MAX:
        return RNL_GUEST_FDS;
    default:
        errno = EINVAL;
        return -1;
    }
}

static int stand_getpagesize(void)
{
    return 4096;
}

static int stand_gethostname(char *to, size_t n)
{
    int have = snprintf(to, n, "host%u", rnl_guest_now->host->index);
    if (have >= 0 && (size_t)have < n)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

static int stand_getrusage(int who, struct rusage *out)
{
    uint64_t us = rnl_guest_ns(rnl_guest_now) / 1000;
    (void)who;
    memset(out, 0, sizeof *out);
    out->ru_utime.tv_sec = (time_t)(us / 1000000);
    out->ru_utime.tv_usec = (suseconds_t)(us % 1000000);
    return 0;
}

static unsigned stand_zero(void)
{
    return 0; /* getuid and the like */
}

const struct rnl_stand rnl_stand_process[] = {
    RNL_STAND_AS(exit, rnl_guest_exit),
    RNL_STAND(_exit),
    RNL_STAND_AS(_Exit, stand__exit),
    RNL_STAND_AS(quick_exit, stand__exit),
    RNL_STAND(abort),
    RNL_STAND(__assert_fail),
    RNL_STAND(__stack_chk_fail),
    RNL_STAND(__chk_fail),
    RNL_STAND(__cxa_atexit),
    RNL_STAND(atexit),
    RNL_STAND(__cxa_finalize),
    RNL_STAND(signal),
    RNL_STAND(sigaction),
    RNL_STAND(raise),
    RNL_STAND(getpid),
    RNL_STAND(getppid),
    RNL_STAND(kill),
    RNL_STAND(sigprocmask),
    RNL_STAND_AS(pthread_sigmask, stand_sigprocmask),
    RNL_STAND(pthread_create),
    RNL_STAND(fork),
    RNL_STAND_AS(vfork, stand_fork),
    RNL_STAND_AS(pthread_mutex_init, stand_pthread_nothing),
    RNL_STAND_AS(pthread_mutex_destroy, stand_pthread_nothing),
    RNL_STAND_AS(pthread_mutex_lock, stand_pthread_nothing),
    RNL_STAND_AS(pthread_mutex_unlock, stand_pthread_nothing),
    RNL_STAND(pthread_self),
    RNL_STAND(getenv),
    RNL_STAND_AS(secure_getenv, stand_getenv),
    RNL_STAND(getauxval),
    RNL_STAND(sysconf),
    RNL_STAND(getpagesize),
    RNL_STAND(gethostname),
    RNL_STAND(getrusage),
    RNL_STAND_AS(getuid, stand_zero),
    RNL_STAND_AS(geteuid, stand_zero),
    RNL_STAND_AS(getgid, stand_zero),
    RNL_STAND_AS(getegid, stand_zero),
    RNL_STAND_END,
};
