/* SPDX-License-Identifier: BSD-3-Clause
 *
 * create.c - starts and joins threads. With the first one Panda begins to lock. A virtual process has none. */
#include "api/panda/session.h"

#include <limits.h>
#include <stdlib.h>

struct pan_thread {
    pthread_t thread;
    void (*f)(void *arg);
    void *arg;
    bool detached;
};

static _Thread_local struct pan_thread *self;

static void end(void)
{
    if (self && self->detached)
        free(self);
    self = NULL;
}

static void *run(void *arg)
{
    self = arg;
    self->f(self->arg);
    end();
    return NULL;
}

pan_thread_p pan_thread_self(void)
{
    return self;
}

void pan_thread_exit(void)
{
    end();
    pthread_exit(NULL);
}

static pan_thread_p start(struct rnl_panda *p, struct pan_thread *t, size_t stack)
{
    pthread_attr_t a;
    if (!p->threaded) {
        if (p->ep->fast.in_handler || p->held) {
            (void)rnl_fail(RNL_ERR_CONTEXT, "the first thread is made neither in an upcall nor with a mutex held");
            return NULL;
        }
        rnl_ep_guard(p->ep);
        p->threaded = true;
        pthread_mutex_lock(&p->ep->lock); /* the caller unlocks it */
    }
    pthread_attr_init(&a);
    pthread_attr_setdetachstate(&a, t->detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
    if (stack)
        (void)pthread_attr_setstacksize(&a, stack < (size_t)PTHREAD_STACK_MIN ? (size_t)PTHREAD_STACK_MIN : stack);
    int error = pthread_create(&t->thread, &a, run, t);
    pthread_attr_destroy(&a);
    if (error == 0)
        return t;
    (void)rnl_fail_errno(RNL_ERR_SYSTEM, error, "a thread could not be made");
    return NULL;
}

pan_thread_p pan_thread_create(void (*f)(void *arg), void *arg, size_t stack, int prio, int detach)
{
    struct rnl_panda *p = rnl_pan_enter("pan_thread_create");
    (void)prio;
    if (!p)
        return NULL;
    struct pan_thread *t = malloc(sizeof *t), *out = NULL;
    if (t) {
        *t = (struct pan_thread){.f = f, .arg = arg, .detached = detach != 0};
        out = start(p, t, stack);
    } else {
        (void)rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a thread");
    }
    rnl_pan_unlock(p);
    if (!out)
        free(t);
    return out;
}

void pan_thread_join(pan_thread_p t)
{
    if (!t || t->detached)
        return;
    pthread_join(t->thread, NULL);
    free(t);
}
