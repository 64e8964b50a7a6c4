/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waitfd.c - the descriptor of waitfd.h: an epoll instance over a datagram socket, a timerfd and other descriptors. */
#include "job/waitfd.h"

#include "base/bug.h"
#include "base/env.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

enum { NAME_BYTES = 6 }; /* of an abstract socket that the kernel names: a zero and five digits */

static int open_socket(struct rnl_waitfd *w)
{
    if (w->socket < 0)
        w->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return w->socket;
}

/* Returns 1 + the value of the name that the kernel chose, or 0. */
static uint32_t bind_socket(int fd)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t n = sizeof at;
    if (bind(fd, (struct sockaddr *)&at, sizeof at.sun_family) < 0 || getsockname(fd, (struct sockaddr *)&at, &n) < 0)
        return 0;
    return n == offsetof(struct sockaddr_un, sun_path) + NAME_BYTES ? 1 + (uint32_t)strtoul(at.sun_path + 1, NULL, 16)
                                                                    : 0;
}

int rnl_waitfd_new(struct rnl_waitfd *w, struct rnl_bell *own)
{
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    uint32_t name = open_socket(w) < 0 ? 0 : bind_socket(w->socket);
    int status = RNL_ERR_SYSTEM;
    if (w->epoll < 0 || w->timer < 0 || name == 0)
        (void)rnl_fail_errno(status, errno, "cannot make a descriptor to wait on: raise their limit (ulimit -n)");
    else
        status = rnl_waitfd_watch(w, w->timer);
    if (status == 0)
        status = rnl_waitfd_watch(w, w->socket);
    if (status < 0)
        rnl_waitfd_free(w);
    else
        atomic_store_explicit(&own->waitfd, name, memory_order_release); /* pairs with the load in rnl_waitfd_raise */
    return status;
}

int rnl_waitfd_watch(const struct rnl_waitfd *w, int fd)
{
    struct epoll_event e = {.events = EPOLLIN};
    if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e) == 0 || errno == EEXIST)
        return 0;
    return rnl_fail_errno(RNL_ERR_SYSTEM, errno,
                          "cannot add a descriptor to the one to wait on: raise their limit (ulimit -n)");
}

void rnl_waitfd_raise(struct rnl_waitfd *from, const struct rnl_bell *of)
{
    uint32_t name = atomic_load_explicit(&of->waitfd, memory_order_acquire);
    if (name == 0 || open_socket(from) < 0)
        return;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    for (int i = 0; i < NAME_BYTES - 1; i++) /* by hand: this may run in a signal handler */
        at.sun_path[1 + i] = "0123456789abcdef"[(name - 1) >> 4 * (NAME_BYTES - 2 - i) & 0xf];
    const int wait = RNL_BUG(raise_may_block) ? 0 : MSG_DONTWAIT; /* a socket that is full is readable already */
    while (sendto(from->socket, "", 1, wait | MSG_NOSIGNAL, (struct sockaddr *)&at,
                  offsetof(struct sockaddr_un, sun_path) + NAME_BYTES) < 0 &&
           errno == EINTR)
        ;
}

void rnl_waitfd_announce(struct rnl_waitfd *from, _Atomic uint32_t *news, struct rnl_bell *bell)
{
    /* Pairs with the owner's relaxed polling: the event itself is fetched under a lock or from a socket, or its flag is
     * loaded with acquire. */
    atomic_fetch_add_explicit(news, 1, memory_order_release);
    rnl_waitfd_raise(from, bell); /* before the bell: a rank that sees it change must find the descriptor readable */
    atomic_fetch_add_explicit(&bell->word, 1, memory_order_release); /* pairs with the load before park */
    rnl_host_wake(NULL, &bell->word);
}

void rnl_waitfd_drain(const struct rnl_waitfd *w)
{
    char byte;
    enum { DATAGRAMS = 64 }; /* more than the kernel queues by default; others stay queued */
    for (int i = 0; w->epoll >= 0 && i < DATAGRAMS; i++) /* without room for descriptors, which the kernel drops */
        if (recv(w->socket, &byte, sizeof byte, MSG_DONTWAIT) < 0 && errno != EINTR)
            return;
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
    timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &t, NULL); /* also clears an earlier expiry */
}

void rnl_waitfd_free(struct rnl_waitfd *w)
{
    const int fds[] = {w->epoll, w->timer, w->socket};
    for (unsigned i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    *w = RNL_WAITFD_NONE;
}
