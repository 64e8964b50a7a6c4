/* SPDX-License-Identifier: BSD-3-Clause
 *
 * thread.c - threads, mutexes and conditions. A thread that waits for a condition takes messages in, or sleeps while
 * another one does. While the process has one thread, mutexes are only counted: an upcall that may want one waits in
 * the queue. */
#include "api/panda/session.h"

#include <sched.h>
#include <stdlib.h>

struct pan_mutex {
    pthread_mutex_t mutex;
};
struct pan_cond {
    struct pan_mutex *mutex;
    struct rnl_pan_waiter *first, **last;
};

pan_mutex_p pan_mutex_create(void)
{
    struct pan_mutex *m = malloc(sizeof *m);
    if (m)
        pthread_mutex_init(&m->mutex, NULL);
    else
        (void)rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a mutex");
    return m;
}

void pan_mutex_clear(pan_mutex_p m)
{
    if (m)
        pthread_mutex_destroy(&m->mutex);
    free(m);
}

static void count_held(uint32_t by)
{
    struct rnl_panda *p = rnl_panda_process.session;
    if (p && !p->threaded)
        p->held += by;
}

void pan_mutex_lock(pan_mutex_p m)
{
    pthread_mutex_lock(&m->mutex);
    count_held(1);
}

int pan_mutex_trylock(pan_mutex_p m)
{
    if (pthread_mutex_trylock(&m->mutex) != 0)
        return 0;
    count_held(1);
    return 1;
}

void pan_mutex_unlock(pan_mutex_p m)
{
    count_held(UINT32_MAX);
    pthread_mutex_unlock(&m->mutex);
}

/* ---- conditions ---- */

pan_cond_p pan_cond_create(pan_mutex_p m)
{
    struct pan_cond *c = malloc(sizeof *c);
    if (!c) {
        (void)rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a condition");
        return NULL;
    }
    *c = (struct pan_cond){.mutex = m, .first = NULL, .last = &c->first};
    return c;
}

void pan_cond_clear(pan_cond_p c)
{
    free(c);
}

static void unqueue(struct pan_cond *c, const struct rnl_pan_waiter *w)
{
    for (struct rnl_pan_waiter **at = &c->first; *at; at = &(*at)->queued)
        if (*at == w) {
            *at = w->queued;
            if (!*at)
                c->last = at;
            return;
        }
}

static int wait_for(struct pan_cond *c, const char *function, int64_t timeout_ns)
{
    struct rnl_panda *p = rnl_pan_enter(function);
    if (!p)
        return rnl_last_error()->status;
    struct rnl_pan_waiter w = {.queued = NULL};
    int status = rnl_pan_may_wait(p, function);
    if (status == 0) {
        uint64_t deadline = timeout_ns < 0 ? UINT64_MAX : p->ep->env->ops->now_ns(p->ep->env) + (uint64_t)timeout_ns;
        *c->last = &w;
        c->last = &w.queued;
        pan_mutex_unlock(c->mutex);
        status = rnl_pan_block(p, &w, deadline);
        if (status < 0)
            unqueue(c, &w);
        rnl_pan_unlock(p);
        pan_mutex_lock(c->mutex);
        return status;
    }
    rnl_pan_unlock(p);
    return status;
}

int pan_cond_wait(pan_cond_p c)
{
    return wait_for(c, "pan_cond_wait", -1);
}

int pan_cond_timedwait(pan_cond_p c, int64_t timeout_ns)
{
    return wait_for(c, "pan_cond_timedwait", timeout_ns < 0 ? 0 : timeout_ns);
}

static void signal_first(struct rnl_panda *p, struct pan_cond *c)
{
    struct rnl_pan_waiter *w = c->first;
    if (!w)
        return;
    c->first = w->queued;
    if (!c->first)
        c->last = &c->first;
    rnl_pan_complete(p, w);
}

void pan_cond_signal(pan_cond_p c)
{
    struct rnl_panda *p = rnl_pan_enter("pan_cond_signal");
    if (!p)
        return;
    signal_first(p, c);
    rnl_pan_unlock(p);
}

void pan_cond_broadcast(pan_cond_p c)
{
    struct rnl_panda *p = rnl_pan_enter("pan_cond_broadcast");
    if (!p)
        return;
    while (c->first)
        signal_first(p, c);
    rnl_pan_unlock(p);
}

void pan_thread_yield(void)
{
    sched_yield();
}
