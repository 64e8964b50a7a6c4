/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait.c - progress, and who takes messages in where several threads wait: one of them, the poller; the others sleep. A
 * poller that has what it waited for makes another one the poller. */
#include <errno.h>

#include "api/panda/session.h"

/* ---- progress ---- */

int pan_poll(void)
{
    struct rnl_panda *p = rnl_pan_enter("pan_poll");
    if (RNL_UNLIKELY(!p))
        return rnl_last_error()->status;
    int64_t got = p->poller ? 0 : rnl_extract(p->ep, ~(size_t)0); /* the poller takes it in */
    if (RNL_UNLIKELY(p->first))
        rnl_pan_run_queue(p);
    rnl_pan_unlock(p);
    return got < 0 ? (int)got : 0;
}

static uint64_t now_ns(struct rnl_panda *p)
{
    return p->ep->env->ops->now_ns(p->ep->env);
}

/* Upcalls of what a send took in, while nobody waited or a mutex was held, are run before a wait. */
static bool is_due(const struct rnl_panda *p)
{
    return p->first && !p->dispatching && !p->held;
}

int pan_wait(int64_t timeout_ns)
{
    struct rnl_panda *p = rnl_pan_enter("pan_wait");
    if (!p)
        return rnl_last_error()->status;
    int status = rnl_pan_may_wait(p, "pan_wait");
    if (status == 0 && p->threaded) { /* one of them takes messages in */
        struct rnl_pan_waiter w = {.done = false, .queued = p->any};
        p->any = &w;
        status = rnl_pan_block(p, &w, timeout_ns < 0 ? UINT64_MAX : now_ns(p) + (uint64_t)timeout_ns);
        for (struct rnl_pan_waiter **at = &p->any; *at; at = &(*at)->queued)
            if (*at == &w) {
                *at = w.queued;
                break;
            }
    } else if (status == 0) {
        int64_t got = is_due(p) ? 0 : rnl_wait(p->ep, timeout_ns);
        status = got < 0 ? (int)got : 0;
        if (RNL_UNLIKELY(p->first))
            rnl_pan_run_queue(p);
    }
    rnl_pan_unlock(p);
    return status;
}

void pan_sleep(int64_t ns)
{
    struct rnl_panda *p = rnl_pan_enter("pan_sleep");
    if (!p)
        return;
    struct rnl_pan_waiter w = {.done = false};
    if (rnl_pan_may_wait(p, "pan_sleep") == 0)
        (void)rnl_pan_block(p, &w, now_ns(p) + (uint64_t)ns);
    rnl_pan_unlock(p);
}

/* ---- waiting ---- */

/* Makes a thread that sleeps, other than `but`, the poller if there is none. */
static void hand_over(struct rnl_panda *p, const struct rnl_pan_waiter *but)
{
    struct rnl_pan_waiter *w = p->waiters;
    if (w && w == but)
        w = w->next;
    if (p->threaded && !p->poller && w)
        pthread_cond_signal(&w->cond);
}

/* Something was taken in, for which threads wait in pan_wait. */
static void tell_any(struct rnl_panda *p)
{
    while (p->any) {
        struct rnl_pan_waiter *w = p->any;
        p->any = w->queued;
        rnl_pan_complete(p, w);
    }
}

/* Most answers come within so many looks, each of which is several times cheaper than the look of a wait. With threads,
 * a wait gives the lock away, which looks do not. */
enum { LOOKS = 32 };
static int64_t look(struct rnl_panda *p, const struct rnl_pan_waiter *w)
{
    int64_t got = 0;
    for (unsigned i = 0; i < LOOKS && !w->done && got == 0; i++)
        got = rnl_extract(p->ep, ~(size_t)0);
    return got;
}

static int poll_until(struct rnl_panda *p, struct rnl_pan_waiter *w, uint64_t deadline_ns)
{
    int64_t timeout = -1;
    if (deadline_ns != UINT64_MAX) {
        uint64_t now = now_ns(p);
        timeout = now >= deadline_ns ? 0 : (int64_t)(deadline_ns - now);
    }
    if (RNL_UNLIKELY(is_due(p))) {
        hand_over(p, w);
        rnl_pan_run_queue(p);
        tell_any(p);
        return 0;
    }
    p->poller = w;
    if (p->threaded)
        p->poll_thread = pthread_self();
    int64_t got = p->threaded ? 0 : look(p, w);
    if (got == 0 && !w->done)
        got = rnl_wait(p->ep, timeout);
    p->poller = NULL;
    if (RNL_UNLIKELY(p->first)) {
        hand_over(p, w);
        rnl_pan_run_queue(p);
    }
    if (RNL_UNLIKELY(p->any) && got != RNL_TIMED_OUT)
        tell_any(p);
    if (got >= 0 || got == RNL_INTERRUPTED || (got == RNL_TIMED_OUT && timeout != 0))
        return 0;
    return (int)got;
}

static int sleep_until(struct rnl_panda *p, struct rnl_pan_waiter *w, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX) {
        pthread_cond_wait(&w->cond, &p->ep->lock);
        return 0;
    }
    struct timespec t;
    uint64_t now = now_ns(p), rest = deadline_ns > now ? deadline_ns - now : 0;
    clock_gettime(CLOCK_REALTIME, &t);
    rest += (uint64_t)t.tv_nsec;
    t.tv_sec += (time_t)(rest / 1000000000);
    t.tv_nsec = (long)(rest % 1000000000);
    if (pthread_cond_timedwait(&w->cond, &p->ep->lock, &t) == ETIMEDOUT && now_ns(p) >= deadline_ns)
        return rnl_fail(RNL_TIMED_OUT, "the given time has passed");
    return 0;
}

static void unlink_waiter(struct rnl_panda *p, const struct rnl_pan_waiter *w)
{
    struct rnl_pan_waiter **at = &p->waiters;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
}

int rnl_pan_block(struct rnl_panda *p, struct rnl_pan_waiter *w, uint64_t deadline_ns)
{
    int status = 0;
    if (RNL_LIKELY(!p->threaded)) {
        while (!w->done && status == 0)
            status = poll_until(p, w, deadline_ns);
        return w->done ? 0 : status;
    }
    pthread_cond_init(&w->cond, NULL);
    w->next = p->waiters;
    p->waiters = w;
    while (!w->done && status == 0)
        status = p->poller ? sleep_until(p, w, deadline_ns) : poll_until(p, w, deadline_ns);
    unlink_waiter(p, w);
    pthread_cond_destroy(&w->cond);
    hand_over(p, NULL);
    return w->done ? 0 : status;
}

void rnl_pan_complete(struct rnl_panda *p, struct rnl_pan_waiter *w)
{
    w->done = true;
    if (RNL_LIKELY(!p->threaded))
        return;
    if (p->poller != w)
        pthread_cond_signal(&w->cond);
    else if (!pthread_equal(p->poll_thread, pthread_self()))
        rnl_wake(p->ep);
}
