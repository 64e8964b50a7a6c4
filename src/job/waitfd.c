/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waitfd.c - see waitfd.h. An epoll of two descriptors. */
#include "job/waitfd.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

int rnl_waitfd_new(int raise, struct rnl_waitfd *out)
{
    struct epoll_event e = {.events = EPOLLIN};
    struct rnl_waitfd w = {.epoll = epoll_create1(EPOLL_CLOEXEC), .timer = -1};
    if (w.epoll >= 0)
        w.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (w.timer < 0 || epoll_ctl(w.epoll, EPOLL_CTL_ADD, raise, &e) < 0 ||
        epoll_ctl(w.epoll, EPOLL_CTL_ADD, w.timer, &e) < 0) {
        int status = -errno;
        rnl_waitfd_free(&w);
        return status;
    }
    *out = w;
    return 0;
}

int rnl_waitfd_watch(const struct rnl_waitfd *w, int fd)
{
    struct epoll_event e = {.events = EPOLLIN};
    return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e) < 0 && errno != EEXIST ? -errno : 0;
}

void rnl_waitfd_until(const struct rnl_waitfd *w, uint64_t ns)
{
    struct itimerspec t = {.it_value = {0, 0}}; /* zero disarms */
    if (w->timer < 0)
        return;
    if (ns != UINT64_MAX) {
        t.it_value.tv_sec = (time_t)(ns / 1000000000u);
        t.it_value.tv_nsec = (long)(ns % 1000000000u) + (ns == 0);
    }
    timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &t, NULL); /* also forgets that it had run out */
}

void rnl_waitfd_free(struct rnl_waitfd *w)
{
    if (w->epoll >= 0)
        close(w->epoll);
    if (w->timer >= 0)
        close(w->timer);
    *w = RNL_WAITFD_NONE;
}
