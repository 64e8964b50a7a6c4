/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait_calls.c - poll, select and epoll_wait, and their kin, for processes that serve links. They look into the links
 * before they sleep; every so often the other descriptors have their turn, so that no busy client keeps them waiting. A
 * process that serves no link pays one load. The signal mask of ppoll and pselect is in force while they sleep. */
#include "preload.h"
#include "waits.h"

#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>

/* Headers declare these only where they are used. */
int __poll_chk(struct pollfd *fds, nfds_t count, int ms, size_t bytes);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask, size_t bytes);

RNL_RPC_REAL(poll, rnl_rpc_next)
RNL_RPC_REAL(__poll_chk, rnl_rpc_next)
RNL_RPC_REAL(ppoll, rnl_rpc_next)
RNL_RPC_REAL(__ppoll_chk, rnl_rpc_next)
RNL_RPC_REAL(select, rnl_rpc_next)
RNL_RPC_REAL(pselect, rnl_rpc_next)
RNL_RPC_REAL(epoll_create, rnl_rpc_next)
RNL_RPC_REAL(epoll_create1, rnl_rpc_next)
RNL_RPC_REAL(epoll_ctl, rnl_rpc_next)
RNL_RPC_REAL(epoll_wait, rnl_rpc_next)
RNL_RPC_REAL(epoll_pwait, rnl_rpc_next)
#if __GLIBC_PREREQ(2, 35)
RNL_RPC_REAL(epoll_pwait2, rnl_rpc_next)
#endif

static bool any_links(void)
{
    return RNL_UNLIKELY(atomic_load_explicit(&rnl_rpc_servers, memory_order_relaxed) != 0);
}

static uint64_t limit_of(const struct timespec *t)
{
    if (!t)
        return UINT64_MAX;
    if (t->tv_sec > INT_MAX)
        return UINT64_MAX;
    return t->tv_sec < 0 ? 0 : (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* What one of the calls waits for: how to ask the kernel, and how to report members of the set besides what it said. */
struct wait {
    struct rnl_rpc_set set;
    uint64_t limit_ns;
    int (*ask)(struct wait *, const struct timespec *, const sigset_t *);
    int (*report)(struct wait *, bool alone); /* alone: nothing else is ready */
    const sigset_t *mask;
    void *what; /* of ask and report */
    int asked;  /* what `ask` has returned */
};

static const struct timespec no_time = {0, 0};

static int ask_and_report(struct wait *w, const struct timespec *t)
{
    rnl_rpc_watch_end(); /* whoever has the processor meanwhile may destroy what is in the set */
    w->asked = w->ask(w, t, w->mask);
    return w->asked;
}

/* The set has at least one member, and is being watched; the watch ends here. */
static int wait_for(struct wait *w)
{
    struct rnl_rpc_spinner spinner = {0};
    enum rnl_rpc_found found;
    while ((found = rnl_rpc_set_spin(&w->set, &spinner, w->limit_ns)) == RNL_RPC_OTHERS)
        if ((w->asked = w->ask(w, &no_time, NULL)) != 0) {
            rnl_rpc_watch_end();
            return w->asked;
        }
    if (found == RNL_RPC_FOUND) {
        int n = w->report(w, true);
        rnl_rpc_watch_end();
        return n;
    }
    bool sure;
    if (rnl_rpc_set_arm(&w->set, &sure)) {
        w->asked = w->ask(w, &no_time, w->mask);
        int n = w->asked < 0 ? w->asked : w->report(w, false);
        rnl_rpc_watch_end();
        return n;
    }
    /* The time spent looking counts. */
    uint64_t spent = spinner.looked_ns - spinner.began_ns;
    uint64_t left = w->limit_ns == UINT64_MAX ? UINT64_MAX : spent < w->limit_ns ? w->limit_ns - spent : 0;
    struct timespec t = timespec_of(left);
    if (sure)
        return ask_and_report(w, left == UINT64_MAX ? NULL : &t);
    for (uint64_t part = RNL_RPC_UNSURE_MS * 1000000u;; left -= left == UINT64_MAX ? 0 : part) {
        t = timespec_of(left < part ? left : part);
        w->asked = w->ask(w, &t, w->mask);
        if (w->asked != 0 || left <= part || rnl_rpc_set_look(&w->set)) {
            int n = w->asked < 0 ? w->asked : w->report(w, false);
            rnl_rpc_watch_end();
            return n;
        }
    }
}

/* ---- poll ---- */

enum { READABLE = POLLIN | POLLRDNORM };

struct poll_wait {
    struct pollfd *fds;
    nfds_t count;
};

static int ask_poll(struct wait *w, const struct timespec *t, const sigset_t *mask)
{
    struct poll_wait *p = w->what;
    return real_ppoll()(p->fds, p->count, t, mask);
}

static int report_poll(struct wait *w, bool alone)
{
    struct poll_wait *p = w->what;
    int n = w->asked;
    if (alone) {
        for (nfds_t i = 0; i < p->count; i++)
            p->fds[i].revents = 0;
        n = 0;
    }
    for (unsigned i = 0; i < w->set.count; i++) {
        struct pollfd *fd = &p->fds[w->set.of[i].index];
        if (!w->set.of[i].ready)
            continue;
        n += fd->revents == 0;
        fd->revents |= (short)(fd->events & READABLE);
    }
    return n;
}

/* Returns false if no descriptor is ours. */
static bool wait_poll(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask, int *result)
{
    struct poll_wait p = {fds, count};
    struct wait w;
    w.set.count = 0;
    rnl_rpc_watch_begin();
    for (nfds_t i = 0; i < count; i++) {
        struct rnl_rpc_server *s = fds[i].events & READABLE ? rnl_rpc_server_of(fds[i].fd) : NULL;
        if (s)
            rnl_rpc_set_add(&w.set, s, i);
    }
    if (w.set.count == 0) {
        rnl_rpc_watch_end();
        return false;
    }
    w.limit_ns = limit_of(limit);
    w.ask = ask_poll;
    w.report = report_poll;
    w.mask = mask;
    w.what = &p;
    w.asked = 0;
    *result = wait_for(&w);
    return true;
}

static bool wait_poll_ms(struct pollfd *fds, nfds_t count, int ms, int *result)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    return wait_poll(fds, count, ms < 0 ? NULL : &t, NULL, result);
}

RNL_RPC_INTERPOSED int poll(struct pollfd *fds, nfds_t count, int ms)
{
    int result;
    if (any_links() && wait_poll_ms(fds, count, ms, &result))
        return result;
    return real_poll()(fds, count, ms);
}

RNL_RPC_INTERPOSED int __poll_chk(struct pollfd *fds, nfds_t count, int ms, size_t bytes)
{
    int result;
    if (any_links() && bytes / sizeof *fds >= count && wait_poll_ms(fds, count, ms, &result))
        return result;
    return real___poll_chk()(fds, count, ms, bytes);
}

RNL_RPC_INTERPOSED int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask)
{
    int result;
    if (any_links() && wait_poll(fds, count, limit, mask, &result))
        return result;
    return real_ppoll()(fds, count, limit, mask);
}

RNL_RPC_INTERPOSED int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask,
                                   size_t bytes)
{
    int result;
    if (any_links() && bytes / sizeof *fds >= count && wait_poll(fds, count, limit, mask, &result))
        return result;
    return real___ppoll_chk()(fds, count, limit, mask, bytes);
}

/* ---- select ---- */

struct select_wait {
    int count;
    fd_set *set[3];  /* the caller's: readable, writable, exceptional */
    fd_set asked[3]; /* what he asked for */
};

static size_t set_bytes(int count)
{
    return ((size_t)count + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
}

static int ask_select(struct wait *w, const struct timespec *t, const sigset_t *mask)
{
    struct select_wait *s = w->what;
    for (int i = 0; i < 3; i++)
        if (s->set[i])
            memcpy(s->set[i], &s->asked[i], set_bytes(s->count));
    return real_pselect()(s->count, s->set[0], s->set[1], s->set[2], t, mask);
}

static int report_select(struct wait *w, bool alone)
{
    struct select_wait *s = w->what;
    int n = w->asked;
    if (alone) {
        for (int i = 0; i < 3; i++)
            if (s->set[i])
                memset(s->set[i], 0, set_bytes(s->count));
        n = 0;
    }
    for (unsigned i = 0; i < w->set.count; i++) {
        int fd = (int)w->set.of[i].index;
        if (w->set.of[i].ready && !FD_ISSET(fd, s->set[0])) {
            FD_SET(fd, s->set[0]);
            n++;
        }
    }
    return n;
}

static bool wait_select(int count, fd_set *readable, fd_set *writable, fd_set *exceptional,
                        const struct timespec *limit, const sigset_t *mask, int *result)
{
    struct select_wait s = {.count = count, .set = {readable, writable, exceptional}};
    struct wait w;
    if (!readable || count <= 0 || count > FD_SETSIZE)
        return false;
    w.set.count = 0;
    rnl_rpc_watch_begin();
    for (int i = 0; i < count; i++) {
        struct rnl_rpc_server *server = FD_ISSET(i, readable) ? rnl_rpc_server_of(i) : NULL;
        if (server)
            rnl_rpc_set_add(&w.set, server, (size_t)i);
    }
    if (w.set.count == 0) {
        rnl_rpc_watch_end();
        return false;
    }
    for (int i = 0; i < 3; i++)
        if (s.set[i])
            memcpy(&s.asked[i], s.set[i], set_bytes(count));
    w.limit_ns = limit_of(limit);
    w.ask = ask_select;
    w.report = report_select;
    w.mask = mask;
    w.what = &s;
    w.asked = 0;
    *result = wait_for(&w);
    return true;
}

RNL_RPC_INTERPOSED int select(int count, fd_set *readable, fd_set *writable, fd_set *exceptional, struct timeval *limit)
{
    int result;
    if (any_links()) {
        /* Linux leaves what is left of the time in *limit, on which no portable program relies: it stays as it was. */
        struct timespec t = limit ? (struct timespec){limit->tv_sec, limit->tv_usec * 1000L} : no_time;
        if (wait_select(count, readable, writable, exceptional, limit ? &t : NULL, NULL, &result))
            return result;
    }
    return real_select()(count, readable, writable, exceptional, limit);
}

RNL_RPC_INTERPOSED int pselect(int count, fd_set *readable, fd_set *writable, fd_set *exceptional,
                               const struct timespec *limit, const sigset_t *mask)
{
    int result;
    if (any_links() && wait_select(count, readable, writable, exceptional, limit, mask, &result))
        return result;
    return real_pselect()(count, readable, writable, exceptional, limit, mask);
}

/* ---- epoll ---- */

struct epoll_call {
    int epoll, max;
    bool precise; /* its caller has used epoll_pwait2, so there is one */
    struct epoll_event *events;
};

static int ask_epoll(struct wait *w, const struct timespec *t, const sigset_t *mask)
{
    struct epoll_call *e = w->what;
    int ms = -1;
#if __GLIBC_PREREQ(2, 35)
    if (e->precise)
        return real_epoll_pwait2()(e->epoll, e->events, e->max, t, mask);
#endif
    if (t) {
        uint64_t ns = limit_of(t);
        ms = ns / 1000000 >= INT_MAX ? INT_MAX : (int)((ns + 999999) / 1000000);
    }
    return real_epoll_pwait()(e->epoll, e->events, e->max, ms, mask);
}

static int report_epoll(struct wait *w, bool alone)
{
    struct epoll_call *e = w->what;
    int n = alone ? 0 : w->asked;
    for (unsigned i = 0; i < w->set.count && n < e->max; i++) {
        struct rnl_rpc_server *s = w->set.of[i].server;
        bool said = false;
        for (int k = 0; k < n; k++)
            said |= e->events[k].data.u64 == s->epoll_event.data.u64;
        if (w->set.of[i].ready && !said)
            e->events[n++] = (struct epoll_event){EPOLLIN, s->epoll_event.data};
    }
    return n;
}

static void add_of_epoll(struct rnl_rpc_server *s, void *wait)
{
    struct wait *w = wait;
    struct epoll_call *e = w->what;
    if (s->epoll == e->epoll && atomic_load_explicit(&s->open, memory_order_acquire))
        rnl_rpc_set_add(&w->set, s, 0);
}

static void forget_epoll(struct rnl_rpc_server *s, void *number)
{
    if (s->epoll == *(int *)number) {
        s->epoll = -1;
        s->watched = false;
    }
}

static bool wait_epoll(struct epoll_call *e, const struct timespec *limit, const sigset_t *mask, int *result)
{
    struct wait w;
    w.set.count = 0;
    if (e->max <= 0)
        return false;
    w.what = e;
    rnl_rpc_watch_begin();
    rnl_rpc_server_each(add_of_epoll, &w);
    if (w.set.count == 0) {
        rnl_rpc_watch_end();
        return false;
    }
    w.limit_ns = limit_of(limit);
    w.ask = ask_epoll;
    w.report = report_epoll;
    w.mask = mask;
    w.asked = 0;
    *result = wait_for(&w);
    return true;
}

static bool wait_epoll_ms(int epoll, struct epoll_event *events, int max, int ms, const sigset_t *mask, int *result)
{
    struct epoll_call e = {epoll, max, false, events};
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    return wait_epoll(&e, ms < 0 ? NULL : &t, mask, result);
}

/* Descriptors that are reported once, or to one of several, are left to the kernel: they ring for each record. */
RNL_RPC_INTERPOSED int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    int result = real_epoll_ctl()(epoll, op, fd, event);
    rnl_rpc_watch_begin();
    struct rnl_rpc_server *s = result == 0 ? rnl_rpc_server_at_all(fd) : NULL;
    if (s) {
        bool plain =
            op != EPOLL_CTL_DEL && event->events & EPOLLIN && !(event->events & (EPOLLONESHOT | EPOLLEXCLUSIVE));
        s->epoll = plain ? epoll : -1;
        if (plain)
            s->epoll_event = *event;
        else
            s->watched = false;
    }
    rnl_rpc_watch_end();
    return result;
}

/* A number that is used again is another set: what was added to an earlier one is forgotten. */
RNL_RPC_INTERPOSED int epoll_create1(int flags)
{
    int epoll = real_epoll_create1()(flags);
    rnl_rpc_server_each(forget_epoll, &epoll);
    return epoll;
}

RNL_RPC_INTERPOSED int epoll_create(int size)
{
    int epoll = real_epoll_create()(size);
    rnl_rpc_server_each(forget_epoll, &epoll);
    return epoll;
}

RNL_RPC_INTERPOSED int epoll_wait(int epoll, struct epoll_event *events, int max, int ms)
{
    int result;
    if (any_links() && wait_epoll_ms(epoll, events, max, ms, NULL, &result))
        return result;
    return real_epoll_wait()(epoll, events, max, ms);
}

RNL_RPC_INTERPOSED int epoll_pwait(int epoll, struct epoll_event *events, int max, int ms, const sigset_t *mask)
{
    int result;
    if (any_links() && wait_epoll_ms(epoll, events, max, ms, mask, &result))
        return result;
    return real_epoll_pwait()(epoll, events, max, ms, mask);
}

#if __GLIBC_PREREQ(2, 35)
RNL_RPC_INTERPOSED int epoll_pwait2(int epoll, struct epoll_event *events, int max, const struct timespec *limit,
                                    const sigset_t *mask)
{
    int result;
    struct epoll_call e = {epoll, max, true, events};
    if (any_links() && wait_epoll(&e, limit, mask, &result))
        return result;
    return real_epoll_pwait2()(epoll, events, max, limit, mask);
}
#endif
