/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_pool.c - sockets that are connected to the peers we send to most, so that the kernel looks up neither a route
 * for each datagram sent nor a socket in the slow way for each that arrives. They share the port of the first socket,
 * and the kernel delivers a peer's datagrams to the socket that is connected to it.
 *
 * A socket is not closed to make room for another peer, because what arrives between the last poll and the close would
 * be lost. It is connected to the next peer instead. It is closed when that fails or when it cannot send any more,
 * since an unconnected one would take datagrams that are for the first. A socket may return datagrams of others that
 * were queued before it was connected; so the sender is read from each datagram until the socket was found empty once.
 * A datagram that was just being queued at that moment is taken to be from the wrong peer, and dropped above as
 * lost. */
#include "net/socket/kernel_internal.h"

#include <errno.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    CONNECT_SCORE = 8, /* sends to one address, less those to others with its hash, after which it is connected */
    IDLE_CALLS = 4096  /* sends in which a socket was not used, after which it may be connected to another peer */
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
    for (uint32_t i = 0; i < k->connected_count && status == 0; i++)
        status = watch_one(k, k->connected[i].fd, on);
    k->watched = on && status == 0;
    if (on && status < 0) { /* take all out, so that the next call can add all of them */
        (void)watch_one(k, k->fd, 0);
        for (uint32_t i = 0; i < k->connected_count; i++)
            (void)watch_one(k, k->connected[i].fd, 0);
    }
    return status;
}

static int allow_others(const struct kernel_socket *k, int fd, int yes)
{
    int failed = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) |
                 setsockopt(k->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    for (uint32_t i = 0; i < k->connected_count; i++)
        failed |= setsockopt(k->connected[i].fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return failed;
}

/* Binds one more socket to our port. All sockets that have the port must allow it during the bind, and only then, so
 * that no other process can take the port. */
static int share_port(const struct kernel_socket *k, int fd, const union kernel_name *self, socklen_t len)
{
    int bound = allow_others(k, fd, 1) ? -1 : bind(fd, &self->sa, len);
    (void)allow_others(k, fd, 0);
    return bound;
}

/* Gives a further socket the options of the first. 0, or negative. */
static int same_options(const struct kernel_socket *k, int fd)
{
    uint32_t f = k->facts.features;
    int failed = 0;
    if (k->family == AF_INET6 && f & RNL_KERNEL_IPV4)
        failed |= rnl_kernel_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (f & RNL_KERNEL_MERGE)
        failed |= rnl_kernel_set(fd, IPPROTO_UDP, UDP_GRO, 1);
    if (f & RNL_KERNEL_ECN)
        failed |= rnl_kernel_set_ip(k, fd, IP_RECVTOS, 1, IPV6_RECVTCLASS, 1);
    if (f & RNL_KERNEL_ERRORS)
        failed |= rnl_kernel_set_ip(k, fd, IP_RECVERR, 1, IPV6_RECVERR, 1);
    if (f & RNL_KERNEL_PROBE)
        failed |= rnl_kernel_set_ip(k, fd, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    (void)rnl_kernel_set(fd, SOL_SOCKET, SO_RCVBUF,
                         (int)(k->facts.receive_asked > INT32_MAX ? INT32_MAX : k->facts.receive_asked));
    return failed;
}

/* Opens one more socket. Returns its index in connected[], or negative. If it fails once, connected sockets are given
 * up, since they only make sending faster. */
static int open_connected(struct kernel_socket *k)
{
    union kernel_name self;
    socklen_t len = sizeof self;
    int fd = rnl_kernel_may_open() ? socket(k->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0 || getsockname(k->fd, &self.sa, &len) < 0 || same_options(k, fd) < 0 ||
        share_port(k, fd, &self, len) < 0 || (k->watched && watch_one(k, fd, 1) < 0)) {
        if (fd >= 0)
            close(fd);
        k->facts.features &= ~(uint32_t)RNL_KERNEL_CONNECT;
        return -1;
    }
    rnl_kernel_bell_invalidate(k);
    k->connected[k->connected_count] =
        (struct kernel_connected){.fd = fd, .merges = !!(k->facts.features & RNL_KERNEL_MERGE)};
    return (int)k->connected_count++;
}

/* Returns the index of the socket that was not used for longest, or -1 if all were used lately. */
static int idle_one(const struct kernel_socket *k)
{
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < k->connected_count; i++)
        if (k->calls - k->connected[i].used > k->calls - k->connected[oldest].used)
            oldest = i;
    return k->calls - k->connected[oldest].used > IDLE_CALLS ? (int)oldest : -1;
}

/* Closes a connected socket, whose place the last one takes. What it had queued is lost, as if the network had dropped
 * it. */
static void dissolve(struct kernel_socket *k, uint32_t i)
{
    rnl_kernel_bell_release(k, k->connected[i].fd);
    uint32_t last = --k->connected_count;
    close(k->connected[i].fd);
    k->connected[i] = k->connected[last];
    for (int n = 0; n < KERNEL_KNOWN; n++) {
        if (k->known[n].connected == i + 1)
            k->known[n].connected = 0;
        else if (k->known[n].connected == last + 1)
            k->known[n].connected = (uint8_t)(i + 1);
    }
}

/* Connects a socket to another address. Linux keeps the source address and the family of the first connect unless the
 * socket is disconnected in between; the port stays, since it was bound. */
static int connect_anew(int fd, const union kernel_name *name, socklen_t len)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    return connect(fd, &nobody, sizeof nobody) < 0 ? -1 : connect(fd, &name->sa, len);
}

static void connect_known(struct kernel_socket *k, struct kernel_known *known)
{
    union kernel_name name;
    socklen_t len = rnl_kernel_name_of(k->family, &known->addr, &name);
    known->score = 0;
    if (len == 0)
        return;
    int i = k->connected_count < KERNEL_CONNECTED ? open_connected(k) : idle_one(k);
    if (i < 0)
        return;
    struct kernel_connected *c = &k->connected[i];
    if (connect_anew(c->fd, &name, len) < 0) { /* there is no route to this peer now */
        dissolve(k, (uint32_t)i);
        return;
    }
    for (int n = 0; n < KERNEL_KNOWN; n++)
        if (k->known[n].connected == i + 1)
            k->known[n].connected = 0;
    known->connected = (uint8_t)(i + 1);
    c->used = k->calls;
    c->misses = 0;
    c->drained = 0;
    c->peer = known->addr;
    k->facts.connects++;
}

void rnl_kernel_peer_socket_lost(struct kernel_socket *k, int fd)
{
    for (uint32_t i = 0; i < k->connected_count; i++)
        if (k->connected[i].fd == fd) {
            dissolve(k, i);
            return;
        }
}

int rnl_kernel_peer_socket(struct kernel_socket *k, const struct rnl_socket_addr *to)
{
    if (!(k->facts.features & RNL_KERNEL_CONNECT))
        return -1;
    struct kernel_known *known = &k->known[place_of(to)];
    k->calls++;
    if (!rnl_socket_addr_equal(&known->addr, to)) {
        if (known->score > 0) {
            known->score--;
        } else if (!known->connected || k->calls - k->connected[known->connected - 1].used > IDLE_CALLS) {
            known->addr = *to;
            known->connected = 0; /* its socket still receives, until it is connected to another peer */
        }
        return -1;
    }
    if (!known->connected && ++known->score >= CONNECT_SCORE)
        connect_known(k, known);
    if (!known->connected)
        return -1;
    struct kernel_connected *c = &k->connected[known->connected - 1];
    c->used = k->calls;
    return c->fd;
}

void rnl_kernel_pool_end(struct kernel_socket *k)
{
    rnl_kernel_bell_end(k);
    for (uint32_t i = 0; i < k->connected_count; i++)
        close(k->connected[i].fd);
    if (k->epoll >= 0)
        close(k->epoll);
}
