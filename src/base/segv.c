/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segv.c - see segv.h. A thread that has overrun its stack has no room for a signal handler there, so each thread that
 * is watched gets another one. The signal handler reads no thread-local variable, since a thread that is not watched
 * may fault inside malloc, and the first use of such a variable may call it: what it needs stands below that stack. */
#include "base/segv.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <ucontext.h>

#if !defined(AT_MINSIGSTKSZ)
#define AT_MINSIGSTKSZ 51
#endif

enum { ROOM_BYTES = 8192 + 16 /* beside what the kernel stores there; the 16 make it a size of our own */ };

struct signal_stack { /* followed by the stack */
    _Alignas(64) struct signal_stack *self;
    void (*f)(const void *address);
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool watching; /* this file handles SIGSEGV */
static size_t stack_bytes;
static _Thread_local bool looked;

static void faulted(int sig, siginfo_t *info, void *context)
{
    const stack_t *at = &((const ucontext_t *)context)->uc_stack;
    const struct signal_stack *own = (const struct signal_stack *)at->ss_sp - 1;
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    if (!(at->ss_flags & SS_DISABLE) && at->ss_size == stack_bytes && info->si_code > 0 && own->self == own)
        own->f(info->si_addr);
    sigaction(sig, &standard, NULL); /* under which the fault happens again */
    if (info->si_code <= 0)
        (void)raise(sig); /* somebody sent it, and it would not come again */
}

/* The thread ends, or has another stack for signals by now. */
static void give_back(void *stack)
{
    struct signal_stack *own = stack;
    const stack_t none = {.ss_flags = SS_DISABLE};
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == own + 1)
        (void)sigaltstack(&none, NULL);
    free(own);
}

static void begin(void)
{
    struct sigaction now, ours = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_bytes = ROOM_BYTES + getauxval(AT_MINSIGSTKSZ) + MINSIGSTKSZ;
    if (sigaction(SIGSEGV, NULL, &now) < 0 || now.sa_flags & SA_SIGINFO || now.sa_handler != SIG_DFL ||
        pthread_key_create(&key, give_back) != 0)
        return;
    watching = sigaction(SIGSEGV, &ours, NULL) == 0;
}

/* A library that is unloaded leaves no function of its own behind. */
__attribute__((destructor)) static void end(void)
{
    struct sigaction now;
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    if (!watching)
        return;
    if (sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == faulted)
        (void)sigaction(SIGSEGV, &standard, NULL);
    (void)pthread_key_delete(key);
}

void rnl_segv_watch(void (*f)(const void *address))
{
    stack_t now;
    if (looked)
        return;
    looked = true;
    pthread_once(&once, begin);
    if (!watching || sigaltstack(NULL, &now) < 0 || !(now.ss_flags & SS_DISABLE))
        return;
    struct signal_stack *own = aligned_alloc(64, (sizeof *own + stack_bytes + 63) / 64 * 64);
    if (!own)
        return;
    *own = (struct signal_stack){.self = own, .f = f};
    const stack_t stack = {.ss_sp = own + 1, .ss_size = stack_bytes};
    if (pthread_setspecific(key, own) != 0 || sigaltstack(&stack, NULL) < 0) {
        (void)pthread_setspecific(key, NULL);
        free(own);
    }
}
