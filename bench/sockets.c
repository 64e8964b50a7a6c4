/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sockets.c - see sockets.h. */
#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { IP_UDP_BYTES = 28, MOST_SEGMENTS = 64, BUFFER = 4 << 20, LIMIT_MS = 5000, SPIN_MS = 100 };

struct socket_ports { /* of the pair: the processes' ports */
    uint16_t single[2], bulk[2];
};

static int failed(struct bench_process *s, const char *what)
{
    return bench_process_fail(s, "%s: %s", what, strerror(errno));
}

static struct sockaddr_in address(const struct bench_process *s, unsigned rank, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = port};
    inet_pton(AF_INET, s->area->net.address[rank], &a.sin_addr);
    return a;
}

static int bound(struct bench_process *s, int type, unsigned rank, uint16_t *port)
{
    struct sockaddr_in a = address(s, rank, 0);
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), one = 1, bytes = BUFFER;
    if (fd < 0)
        return failed(s, "no socket");
    /* The system may give less, or twice as much: the window below is far from either. TCP finds its own. */
    if (type == SOCK_DGRAM) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    } else {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    if (bind(fd, (void *)&a, sizeof a) || getsockname(fd, (void *)&a, &n)) {
        failed(s, "no port for a socket");
        close(fd);
        return -1;
    }
    *port = a.sin_port;
    return fd;
}

int sockets_bind(struct bench_process *s, unsigned rank, uint16_t *port)
{
    return bound(s, SOCK_DGRAM, rank, port);
}

int sockets_join(struct bench_process *s, int fd, unsigned other, uint16_t port)
{
    struct sockaddr_in a = address(s, other, port);
    return connect(fd, (void *)&a, sizeof a) ? failed(s, "could not connect a socket") : 0;
}

static void meet(struct bench_process *s)
{
    bench_meet(s->pair, &s->meet_count, s->one_core);
}

static int join_tcp(struct bench_process *s, struct sockets *k, const struct socket_ports *b)
{
    if (s->rank == 1) {
        if (listen(k->bulk, 1))
            return failed(s, "could not listen");
        meet(s);
        struct pollfd p = {.fd = k->bulk, .events = POLLIN};
        int fd = poll(&p, 1, LIMIT_MS) == 1 ? accept4(k->bulk, NULL, NULL, SOCK_CLOEXEC) : -1, one = 1;
        if (fd < 0)
            return bench_process_fail(s, "no TCP connection came");
        close(k->bulk);
        k->bulk = fd;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        return 0;
    }
    meet(s);
    return sockets_join(s, k->bulk, 1, b->bulk[1]);
}

int sockets_open(struct bench_process *s, struct sockets *k, bool tcp)
{
    const struct bench_net *net = &s->area->net;
    struct socket_ports *b = (void *)s->pair->board;
    int one = 1, e = bench_net_enter(net, s->rank);
    uint32_t payload = net->mtu > SOCKETS_RUN + IP_UDP_BYTES ? SOCKETS_RUN : (net->mtu - IP_UDP_BYTES) & ~7u;
    uint32_t segments = SOCKETS_RUN / payload;
    *k = (struct sockets){.tcp = tcp, .bulk = -1, .single = -1, .segment = payload};
    k->run = payload * (segments < MOST_SEGMENTS ? segments : MOST_SEGMENTS);
    if (e)
        return bench_process_fail(s, "cannot enter the network namespace %s: %s", net->space[s->rank], strerror(-e));
    if ((k->bulk = bound(s, tcp ? SOCK_STREAM : SOCK_DGRAM, s->rank, &b->bulk[s->rank])) < 0)
        return -1;
    if (tcp)
        return join_tcp(s, k, b);
    if ((k->single = bound(s, SOCK_DGRAM, s->rank, &b->single[s->rank])) < 0)
        return -1;
    meet(s);
    if (sockets_join(s, k->bulk, !s->rank, b->bulk[!s->rank]) ||
        sockets_join(s, k->single, !s->rank, b->single[!s->rank]))
        return -1;
    if (setsockopt(k->bulk, IPPROTO_UDP, UDP_GRO, &one, sizeof one))
        return failed(s, "the kernel does not merge datagrams (UDP_GRO)");
    return 0;
}

void sockets_close(struct sockets *k)
{
    if (k->bulk >= 0)
        close(k->bulk);
    if (k->single >= 0)
        close(k->single);
}

int sockets_reset(struct bench_process *s, struct sockets *k, uint64_t window)
{
    uint64_t old;
    k->window = window;
    k->sent = k->heard = k->taken = k->told = k->since_ns = 0;
    while (k->single >= 0 && recv(k->single, &old, sizeof old, MSG_DONTWAIT) >= 0)
        ;
    return s->status;
}

/* Nothing has moved for long: a datagram is lost, or the peer is. */
static int waits(struct bench_process *s, struct sockets *k)
{
    uint64_t now = bench_now_ns();
    if (k->since_ns == 0)
        k->since_ns = now;
    else if (now - k->since_ns > (uint64_t)LIMIT_MS * 1000000u)
        return bench_process_fail(s, "bare sockets moved nothing for %d s: was a datagram dropped?", LIMIT_MS / 1000);
    else if (now - k->since_ns > (uint64_t)SPIN_MS * 1000000u)
        usleep(1000); /* whoever is to send has no processor */
    if (s->one_core)
        sched_yield();
    return 0;
}

static bool again(void)
{
    return errno == EAGAIN || errno == ENOBUFS || errno == EINTR;
}

/* Is there room for n more bytes in flight? */
static bool has_room(struct sockets *k, size_t n)
{
    uint64_t count;
    while (k->sent + n - k->heard > k->window) {
        if (recv(k->single, &count, sizeof count, MSG_DONTWAIT) != sizeof count)
            return false;
        if (count > k->heard && count <= k->sent)
            k->heard = count;
    }
    return true;
}

ssize_t sockets_send(struct bench_process *s, struct sockets *k, const void *from, size_t n)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
    if (n > k->run && !k->tcp)
        n = k->run;
    if (!k->tcp && !has_room(k, n))
        return waits(s, k);
    struct iovec v = {(void *)(uintptr_t)from, n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    if (!k->tcp && n > k->segment) {
        uint16_t segment = (uint16_t)k->segment;
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = IPPROTO_UDP;
        c->cmsg_type = UDP_SEGMENT;
        c->cmsg_len = CMSG_LEN(sizeof segment);
        memcpy(CMSG_DATA(c), &segment, sizeof segment);
    }
    ssize_t went = sendmsg(k->bulk, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (went < 0)
        return again() ? waits(s, k) : failed(s, "a bare socket could not send");
    k->sent += (uint64_t)went;
    k->since_ns = 0;
    return went;
}

ssize_t sockets_receive(struct bench_process *s, struct sockets *k, void *to, size_t room)
{
    ssize_t n = recv(k->bulk, to, room, k->tcp ? MSG_DONTWAIT : MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0)
        return again() ? waits(s, k) : failed(s, "a bare socket could not receive");
    if ((size_t)n > room || (n == 0 && k->tcp))
        return bench_process_fail(s, n ? "datagrams of different messages were merged" : "the other process hung up");
    k->since_ns = 0;
    k->taken += (uint64_t)n;
    if (!k->tcp && k->taken - k->told >= k->window / 4) {
        if (send(k->single, &k->taken, sizeof k->taken, MSG_DONTWAIT) == sizeof k->taken)
            k->told = k->taken;
        else if (!again())
            return failed(s, "a bare socket could not acknowledge");
    }
    return n;
}

int sockets_give(struct bench_process *s, struct sockets *k, const void *from, size_t n)
{
    const char *at = from;
    int fd = k->tcp ? k->bulk : k->single;
    while (n > 0) {
        ssize_t went = send(fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (went < 0 && (!again() || waits(s, k)))
            return failed(s, "a bare socket could not send");
        at += went > 0 ? went : 0;
        n -= went > 0 ? (size_t)went : 0;
    }
    return 0;
}

int sockets_take(struct bench_process *s, struct sockets *k, void *to, size_t n, bool asleep)
{
    char *at = to;
    int fd = k->tcp ? k->bulk : k->single;
    unsigned misses = 0;
    while (n > 0) {
        ssize_t got = recv(fd, at, n, asleep ? 0 : MSG_DONTWAIT);
        if (got < 0 && !again())
            return failed(s, "a bare socket could not receive");
        if (got == 0)
            return bench_process_fail(s, "the other process hung up");
        if (got > 0) {
            at += got;
            n -= (size_t)got;
            k->since_ns = 0;
        } else if ((++misses % 1024 == 0 || s->one_core) && waits(s, k)) {
            return -1;
        }
    }
    return 0;
}
