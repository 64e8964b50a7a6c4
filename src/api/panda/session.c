/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session.c - Panda's beginning and end, progress, and who takes messages in where several threads wait: one of them,
 * the poller; the others sleep. A poller that has what it waited for makes another one the poller. */
#include "api/panda/session.h"

#include <errno.h>
#include <stdlib.h>

#include "runnel/adapter.h"

struct rnl_panda *rnl_pan_enter(const char *function)
{
    struct rnl_panda *p = rnl_panda_process.session;
    if (RNL_UNLIKELY(!p || rnl_ep_forked(p->ep))) {
        (void)rnl_fail(p ? RNL_ERR_FORKED : RNL_ERR_CLOSED,
                       p ? "%s was called in a forked process" : "%s was called before pan_init", function);
        return NULL;
    }
    rnl_pan_lock(p);
    return p;
}

int rnl_pan_may_wait(struct rnl_panda *p, const char *function)
{
    return RNL_LIKELY(!p->ep->fast.in_handler)
               ? 0
               : rnl_fail(RNL_ERR_CONTEXT, "%s was called in an upcall, which must not wait", function);
}

static void died(struct rnl_ep_watch *watch, uint32_t rank)
{
    struct rnl_panda *p = (struct rnl_panda *)(void *)((char *)watch - offsetof(struct rnl_panda, watch));
    rnl_pan_fail_calls(p, rank, RNL_ERR_PEER_DEAD);
    struct pan_msg *m = p->death && !p->leaving ? rnl_pan_msg_new(p) : NULL;
    if (!m)
        return;
    m->kind = RNL_PAN_OF_DEATH;
    m->sender = rank;
    rnl_pan_upcall(p, m);
}

int pan_init(int *argc, char **argv)
{
    rnl_endpoint *ep;
    (void)argc, (void)argv;
    if (rnl_panda_process.session)
        return rnl_fail(RNL_ERR_CONTEXT, "pan_init was called twice");
    struct rnl_panda *p = calloc(1, sizeof *p);
    if (!p)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for Panda");
    const struct rnl_options options = {.size = sizeof options, .handlers = RNL_PAN_GROUP + 8};
    int status = rnl_open(&ep, &options);
    if (status < 0) {
        free(p);
        return status;
    }
    status = rnl_iface_counters(&rnl_panda_iface, ep->c, &p->count);
    if (status < 0) {
        (void)!rnl_close(ep);
        free(p);
        return status;
    }
    p->ep = ep;
    p->last = &p->first;
    p->watch.died = died;
    p->watch.next = ep->hooks.watches;
    ep->hooks.watches = &p->watch;
    rnl_panda_process.session = p;
    return 0;
}

int pan_start(void)
{
    struct rnl_panda *p = rnl_pan_enter("pan_start");
    if (!p)
        return rnl_last_error()->status;
    if (p->started) {
        rnl_pan_unlock(p);
        return rnl_fail(RNL_ERR_CONTEXT, "pan_start was called twice");
    }
    const struct rnl_handler request = {
        .stream = rnl_pan_take_request, .ctx = p, .flags = rnl_handler_flags(&rnl_panda_iface)};
    const struct rnl_handler reply = {
        .stream = rnl_pan_take_reply, .ctx = p, .flags = rnl_handler_flags(&rnl_panda_iface)};
    int status = rnl_stream_register(p->ep, RNL_PAN_REQUEST, &request);
    if (status >= 0)
        status = rnl_stream_register(p->ep, RNL_PAN_REPLY, &reply);
    if (status >= 0)
        status = rnl_pan_open_group(p);
    p->started = status >= 0;
    rnl_pan_unlock(p);
    return status < 0 ? status : 0;
}

void rnl_pan_free(struct rnl_panda *p)
{
    for (struct pan_msg *m = p->first, *next; m; m = next) {
        next = m->next;
        free(m->own);
        free(m);
    }
    for (struct pan_msg *m = p->free_msgs, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    for (struct pan_upcall *u = p->free_upcalls, *next; u; u = next) {
        next = u->next;
        free(u);
    }
    rnl_notes_free(p->notes);
    free(p->call);
    free(p);
}

int pan_end(void)
{
    struct rnl_panda *p = rnl_pan_enter("pan_end");
    if (!p)
        return rnl_last_error()->status;
    int status = rnl_pan_may_wait(p, "pan_end");
    rnl_pan_unlock(p);
    if (status < 0)
        return status;
    p->leaving = true;
    if (p->threaded) { /* the other threads have ended */
        p->threaded = false;
        rnl_ep_unguard(p->ep);
    }
    rnl_pan_run_queue(p);
    int left = p->group ? rnl_group_leave(p->group, -1) : 0;
    p->group = NULL;
    rnl_endpoint *ep = p->ep;
    status = rnl_close(ep);
    if (status == RNL_ERR_CONTEXT || status == RNL_ERR_FORKED)
        return status;
    rnl_panda_process.session = NULL;
    rnl_pan_free(p);
    return status < 0 ? status : left;
}

int pan_my_pid(void)
{
    const struct rnl_panda *p = rnl_panda_process.session;
    return p ? (int)p->ep->rank : 0;
}

int pan_nr_processes(void)
{
    const struct rnl_panda *p = rnl_panda_process.session;
    return p ? (int)p->ep->size : 1;
}

rnl_endpoint *pan_endpoint(void)
{
    return rnl_panda_process.session ? rnl_panda_process.session->ep : NULL;
}

void pan_on_death(void (*f)(void *arg, int pid), void *arg)
{
    struct rnl_panda *p = rnl_pan_enter("pan_on_death");
    if (!p)
        return;
    p->death = f;
    p->death_arg = arg;
    rnl_pan_unlock(p);
}

int pan_show(const char *text, size_t n)
{
    struct rnl_panda *p = rnl_pan_enter("pan_show");
    if (!p)
        return rnl_last_error()->status;
    int status = rnl_notes_set(&p->notes, text, n);
    rnl_pan_unlock(p);
    return status;
}

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
        int64_t got = rnl_wait(p->ep, timeout_ns);
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

/* Of several threads: gives the work of the poller to one that sleeps, other than `but`. */
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

static int poll_until(struct rnl_panda *p, struct rnl_pan_waiter *w, uint64_t deadline_ns)
{
    int64_t timeout = -1;
    if (deadline_ns != UINT64_MAX) {
        uint64_t now = now_ns(p);
        timeout = now >= deadline_ns ? 0 : (int64_t)(deadline_ns - now);
    }
    p->poller = w;
    if (p->threaded)
        p->poll_thread = pthread_self();
    int64_t got = rnl_wait(p->ep, timeout);
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
