/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_pool.c - sockets that are connected to the peers we send to most: the kernel then need not look up the way for
 * each datagram, neither out nor in. They share the port of the first socket, and the kernel gives what a peer sends to
 * the one that is connected to it.
 *
 * Such a socket is not closed for another's sake: what comes between the last look and the close would be lost. It is
 * connected to the next peer instead, and closed when that fails or nothing leaves by it any more: one that is
 * connected to nobody would take what is for the first. Between its bind and its connect, and for what it had queued
 * before, it may bring datagrams of others: who one is from is read from the datagram, until the socket was found empty
 * once. What was on its way into it at that moment is then taken to be from the wrong peer, and dropped above like what
 * got lost. */
#include "transport/udp/kernel_in.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    HOT_SCORE = 8,    /* calls to one address, less those to others of its place in the table */
    IDLE_CALLS = 4096 /* a socket not sent by for so many is free for another peer */
};

static uint32_t place_of(const struct rnl_socket_addr *a)
{
    uint64_t word[3];
    memcpy(word, a, sizeof word);
    return (uint32_t)((word[0] ^ word[1] ^ word[2]) * 0x9e3779b97f4a7c15u >> 59);
}
static_assert(KERNEL_KNOWN == 1 << (64 - 59), "the table has a place for each hash");

static int watch_one(const struct kernel_socket *k, int fd, int on)
{
    struct epoll_event e = {.events = EPOLLIN};
    return epoll_ctl(k->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &e);
}

int rnl_kernel_watch(struct kernel_socket *k, int on)
{
    int status = watch_one(k, k->fd, on);
    for (uint32_t i = 0; i < k->hots && status == 0; i++)
        status = watch_one(k, k->hot[i].fd, on);
    k->watched = on && status == 0;
    if (on && status < 0) { /* the next try adds all */
        (void)watch_one(k, k->fd, 0);
        for (uint32_t i = 0; i < k->hots; i++)
            (void)watch_one(k, k->hot[i].fd, 0);
    }
    return status;
}

static int allow_others(const struct kernel_socket *k, int fd, int yes)
{
    int failed = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) |
                 setsockopt(k->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    for (uint32_t i = 0; i < k->hots; i++)
        failed |= setsockopt(k->hot[i].fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return failed;
}

/* All that have the port have to allow one more while it is bound; nobody else is to have it. */
static int share_port(const struct kernel_socket *k, int fd, const union kernel_name *self, socklen_t len)
{
    int bound = allow_others(k, fd, 1) ? -1 : bind(fd, &self->sa, len);
    (void)allow_others(k, fd, 0);
    return bound;
}

/* One more socket: its place in hot[], or negative. What fails once is not tried again: it is a gain, not a need. */
static int open_hot(struct kernel_socket *k)
{
    union kernel_name self;
    socklen_t len = sizeof self;
    int fd = socket(k->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || getsockname(k->fd, &self.sa, &len) < 0 || rnl_kernel_same_options(k, fd) < 0 ||
        share_port(k, fd, &self, len) < 0 || (k->watched && watch_one(k, fd, 1) < 0)) {
        if (fd >= 0)
            close(fd);
        k->facts.features &= ~(uint32_t)RNL_KERNEL_CONNECT;
        return -1;
    }
    rnl_kernel_bell_spoil(k);
    k->hot[k->hots] = (struct kernel_hot){.fd = fd, .merges = !!(k->facts.features & RNL_KERNEL_MERGE)};
    return (int)k->hots++;
}

/* The one that was not used for longest, if that is long; negative. */
static int idle_one(const struct kernel_socket *k)
{
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < k->hots; i++)
        if (k->calls - k->hot[i].used > k->calls - k->hot[oldest].used)
            oldest = i;
    return k->calls - k->hot[oldest].used > IDLE_CALLS ? (int)oldest : -1;
}

/* Closed, and the last takes its place. What it had is lost like what its interface dropped. */
static void dissolve(struct kernel_socket *k, uint32_t i)
{
    rnl_kernel_bell_let_go(k, k->hot[i].fd);
    uint32_t last = --k->hots;
    close(k->hot[i].fd);
    k->hot[i] = k->hot[last];
    for (int n = 0; n < KERNEL_KNOWN; n++) {
        if (k->known[n].hot == i + 1)
            k->known[n].hot = 0;
        else if (k->known[n].hot == last + 1)
            k->known[n].hot = (uint8_t)(i + 1);
    }
}

/* The source address and the family of the first connect stay those of all later ones, unless the socket is let go in
 * between; its port is its own. */
static int connect_anew(int fd, const union kernel_name *name, socklen_t len)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    return connect(fd, &nobody, sizeof nobody) < 0 ? -1 : connect(fd, &name->sa, len);
}

static void make_hot(struct kernel_socket *k, struct kernel_known *known)
{
    union kernel_name name;
    socklen_t len = rnl_kernel_name_of(k->family, &known->addr, &name);
    known->score = 0;
    if (len == 0)
        return;
    int i = k->hots < KERNEL_HOT ? open_hot(k) : idle_one(k);
    if (i < 0)
        return;
    struct kernel_hot *h = &k->hot[i];
    if (connect_anew(h->fd, &name, len) < 0) { /* who is sent to has no way today */
        dissolve(k, (uint32_t)i);
        return;
    }
    for (int n = 0; n < KERNEL_KNOWN; n++)
        if (k->known[n].hot == i + 1)
            k->known[n].hot = 0;
    known->hot = (uint8_t)(i + 1);
    h->used = k->calls;
    h->vain = 0;
    h->sure = 0;
    h->peer = known->addr;
    k->facts.connects++;
}

void rnl_kernel_way_lost(struct kernel_socket *k, int fd)
{
    for (uint32_t i = 0; i < k->hots; i++)
        if (k->hot[i].fd == fd) {
            dissolve(k, i);
            return;
        }
}

int rnl_kernel_way(struct kernel_socket *k, const struct rnl_socket_addr *to)
{
    if (!(k->facts.features & RNL_KERNEL_CONNECT))
        return -1;
    struct kernel_known *known = &k->known[place_of(to)];
    k->calls++;
    if (!rnl_socket_addr_equal(&known->addr, to)) {
        if (known->score > 0) {
            known->score--;
        } else if (!known->hot || k->calls - k->hot[known->hot - 1].used > IDLE_CALLS) {
            known->addr = *to;
            known->hot = 0; /* the socket goes on to receive, until it is needed */
        }
        return -1;
    }
    if (!known->hot && ++known->score >= HOT_SCORE)
        make_hot(k, known);
    if (!known->hot)
        return -1;
    struct kernel_hot *h = &k->hot[known->hot - 1];
    h->used = k->calls;
    return h->fd;
}

void rnl_kernel_pool_end(struct kernel_socket *k)
{
    rnl_kernel_bell_end(k);
    for (uint32_t i = 0; i < k->hots; i++)
        close(k->hot[i].fd);
    if (k->epoll >= 0)
        close(k->epoll);
}
