/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_move.c - datagrams to and from the kernel. Sending is a call for each run: sendmmsg saves too little of what
 * one costs. So is receiving, as long as one comes at a time; a batch is asked for when they follow each other. */
#include "transport/udp/kernel_in.h"
#include "wire/packet.h"

#include <errno.h>
#include <netinet/udp.h>

enum {
    VAIN = 64,         /* looks that brought nothing, and a socket is cold */
    COLD_EVERY = 16,   /* looks at the others to one at it */
    UNWATCHED = 256,   /* looks that bring something without an arm, and the sockets are taken from the descriptor */
    LONE = 16,         /* datagrams one by one, and control data is not asked for any more, ... */
    LONE_MOST = 80,    /* ... but now and then */
    LONG_BYTES = 1000, /* runs are made of longer ones */
    SHORTS = 64        /* shorter ones in a row, and none are expected to be merged */
};

/* ---- sending ---- */

struct control_out {
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(int))];
};

static void add(struct msghdr *m, int level, int type, const void *value, size_t bytes)
{
    struct cmsghdr *c = (struct cmsghdr *)(void *)((char *)m->msg_control + m->msg_controllen);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(c), value, bytes);
    m->msg_controllen += CMSG_SPACE(bytes);
}

struct way { /* where one goes: by which socket, and to which name; none on one that is connected there */
    int fd;
    socklen_t len;
    union kernel_name name;
};

/* 0 or errno. */
static int send_once(const struct kernel_socket *k, const struct rnl_socket_out *o, struct way *w)
{
    struct control_out control;
    struct iovec part = {(void *)(uintptr_t)o->at, o->bytes};
    struct msghdr m = {.msg_name = w->len ? &w->name : NULL, .msg_namelen = w->len, .msg_iov = &part, .msg_iovlen = 1};
    int ecn = k->s.has_ecn ? o->ecn & 3 : 0, runs = o->segment && o->segment < o->bytes;
    if (!ecn && !runs)
        return sendto(w->fd, o->at, o->bytes, MSG_DONTWAIT | MSG_NOSIGNAL, w->len ? &w->name.sa : NULL, w->len) < 0
                   ? errno
                   : 0;
    memset(&control, 0, sizeof control);
    m.msg_control = &control;
    if (runs)
        add(&m, IPPROTO_UDP, UDP_SEGMENT, &o->segment, sizeof o->segment);
    if (ecn && rnl_kernel_is_ipv4(&o->to))
        add(&m, IPPROTO_IP, IP_TOS, &ecn, sizeof ecn);
    else if (ecn)
        add(&m, IPPROTO_IPV6, IPV6_TCLASS, &ecn, sizeof ecn);
    return sendmsg(w->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* Can it be the error of a datagram before? */
static int may_be_old(int error)
{
    return error != EAGAIN && error != ENOBUFS && error != ENOMEM && error != EPERM && error != EINVAL &&
           error != EIO && error != EBADF && error != ENOTSOCK && error != EFAULT;
}

/* The error of this one: 0 or errno. A pending one is returned once and is gone then. */
static int send_one(struct kernel_socket *k, const struct rnl_socket_out *o, struct way *w)
{
    int error = 0;
    for (int tries = 0; tries < KERNEL_TRIES; tries++) {
        error = send_once(k, o, w);
        if (!may_be_old(error) || error == 0)
            break;
        k->told |= error != EINTR;
    }
    return error;
}

/* Datagram by datagram. Once the first has gone the run has: what the host drops of the rest is lost. */
static int send_apart(struct kernel_socket *k, const struct rnl_socket_out *o, struct way *w)
{
    struct rnl_socket_out one = *o;
    one.segment = 0;
    for (uint32_t at = 0; at < o->bytes; at += o->segment) {
        one.at = (const char *)o->at + at;
        one.bytes = o->bytes - at < o->segment ? o->bytes - at : o->segment;
        int error = send_one(k, &one, w);
        if (error)
            return at ? 0 : error;
    }
    return 0;
}

static enum rnl_socket_stop stop_of(int error)
{
    switch (error) {
    case 0:
        return RNL_SOCKET_WENT;
    case EAGAIN:
    case EINTR:
        return RNL_SOCKET_FULL;
    case ENOBUFS:
    case ENOMEM:
        return RNL_SOCKET_NO_BUFFERS;
    case EMSGSIZE:
        return RNL_SOCKET_TOO_LONG;
    case EPERM:
    case EACCES:
        return RNL_SOCKET_FORBIDDEN;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
    case EINVAL: /* bound to an address that does not lead there, like 127.0.0.1 */
        return RNL_SOCKET_UNREACHABLE;
    default:
        return RNL_SOCKET_FAILED;
    }
}

/* 0 or errno. */
static int send_run(struct kernel_socket *k, const struct rnl_socket_out *o, struct way *w)
{
    uint32_t packets = o->segment ? (o->bytes + o->segment - 1) / o->segment : 1;
    if (packets > 1 && k->s.segments_max < 2)
        return send_apart(k, o, w);
    int error = send_one(k, o, w);
    if (packets < 2 || (error != EIO && error != EINVAL))
        return error;
    /* The interface cannot (EIO), or something about this run is not right, which its first datagram tells. */
    if (error == EIO) {
        k->s.segments_max = 1;
        k->facts.features &= ~(uint32_t)RNL_KERNEL_SEGMENT;
    }
    return send_apart(k, o, w);
}

/* By a socket that is connected there, if there is one. It leaves from the address it had when it was connected: once
 * the interface has lost that, the first socket may know another way. 0 or errno. */
static int send_out(struct kernel_socket *k, const struct rnl_socket_out *o)
{
    struct way w;
    w.fd = rnl_kernel_way(k, &o->to);
    w.len = 0;
    if (w.fd >= 0) {
        if (!o->segment && !o->ecn) { /* what most are, with as little ado as there can be */
            if (RNL_LIKELY(send(w.fd, o->at, o->bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0))
                return 0;
            k->told |= may_be_old(errno) && errno != EINTR;
        }
        int error = send_run(k, o, &w);
        if (stop_of(error) != RNL_SOCKET_UNREACHABLE)
            return error;
        rnl_kernel_way_lost(k, w.fd);
    }
    w.fd = k->fd;
    w.len = rnl_kernel_name_of(k->family, &o->to, &w.name);
    return w.len ? send_run(k, o, &w) : EAFNOSUPPORT;
}

int rnl_kernel_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    struct kernel_socket *k = kernel_of(s);
    *result = (struct rnl_socket_result){RNL_SOCKET_WENT, 0};
    for (int i = 0; i < n; i++) {
        int error = send_out(k, &out[i]);
        if (error) {
            *result = (struct rnl_socket_result){stop_of(error), error};
            return i;
        }
    }
    return n;
}

/* ---- receiving ---- */

struct control_in {
    _Alignas(struct cmsghdr) char room[2 * CMSG_SPACE(sizeof(int))];
};

static void read_control(struct msghdr *m, struct rnl_socket_in *in)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        int value = 0;
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            in->ecn = *(const uint8_t *)CMSG_DATA(c) & 3;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            memcpy(&value, CMSG_DATA(c), sizeof value);
            in->ecn = value & 3;
        } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            memcpy(&value, CMSG_DATA(c), sizeof value);
            if (value > 0 && value < UINT16_MAX && (uint32_t)value < in->bytes)
                in->segment = (uint16_t)value;
        }
    }
}

/* What one receive call needs of each. */
struct arrival {
    struct iovec part;
    union kernel_name name;
    struct control_in control;
};

static void expect(const struct kernel_socket *k, struct msghdr *m, struct arrival *a, const struct rnl_socket_in *in)
{
    int controls = k->facts.features & (RNL_KERNEL_ECN | RNL_KERNEL_MERGE);
    a->part = (struct iovec){in->at, in->room};
    *m = (struct msghdr){.msg_name = &a->name,
                         .msg_namelen = sizeof a->name,
                         .msg_iov = &a->part,
                         .msg_iovlen = 1,
                         .msg_control = controls ? &a->control : NULL,
                         .msg_controllen = controls ? sizeof a->control : 0};
}

/* What the kernel does not say about a merged run, its first datagram does. Anybody can claim anything: what is cut
 * becomes no more packets, and no shorter ones, than a run of ours. */
static void cut_as_claimed(const struct kernel_socket *k, struct rnl_socket_in *in)
{
    uint32_t first = k->facts.features & RNL_KERNEL_MERGE ? k->claims(in->at, in->bytes) : 0;
    if (first >= RNL_PACKET_MIN && first < in->bytes && first < UINT16_MAX && in->bytes <= first * KERNEL_RUN)
        in->segment = (uint16_t)first;
}

/* hot: NULL, or whose socket it is. */
static void came(const struct kernel_socket *k, const struct kernel_hot *hot, struct msghdr *m, const struct arrival *a,
                 size_t bytes, struct rnl_socket_in *in)
{
    in->bytes = (uint32_t)bytes;
    in->segment = 0;
    in->ecn = RNL_ECN_NOT;
    in->cut = !!(m->msg_flags & MSG_TRUNC);
    rnl_kernel_addr_of(&a->name, &in->from);
    if (m->msg_controllen)
        read_control(m, in);
    if (!in->segment && k->claims && hot && !hot->merges) /* merged before its socket was told not to: nobody says so */
        cut_as_claimed(k, in);
}

/* hot: NULL, or whose peer it is from; else `name` says who. */
static int lone_came(struct kernel_socket *k, const struct kernel_hot *hot, const union kernel_name *name,
                     ssize_t bytes, struct rnl_socket_in *in)
{
    in->cut = (size_t)bytes > in->room;
    in->bytes = in->cut ? in->room : (uint32_t)bytes;
    in->segment = 0;
    in->ecn = RNL_ECN_NOT;
    if (hot)
        in->from = hot->peer;
    else
        rnl_kernel_addr_of(name, &in->from);
    cut_as_claimed(k, in); /* whatever socket: control data would say it, and is not asked for */
    k->lone = in->segment ? 0 : k->lone + 1;
    return 1;
}

/* One or -errno, and nothing of how it came. hot: NULL, or whose fd it is. */
static int recv_lone(struct kernel_socket *k, int fd, const struct kernel_hot *hot, struct rnl_socket_in *in)
{
    union kernel_name name;
    socklen_t len = sizeof name;
    int known = hot && hot->sure;
    ssize_t bytes = known ? recv(fd, in->at, in->room, MSG_DONTWAIT | MSG_TRUNC)
                          : recvfrom(fd, in->at, in->room, MSG_DONTWAIT | MSG_TRUNC, &name.sa, &len);
    return bytes < 0 ? -errno : lone_came(k, known ? hot : NULL, &name, bytes, in);
}

/* How many, or -errno. One alone is asked for with less ado. */
static int recv_once(struct kernel_socket *k, int fd, const struct kernel_hot *hot, struct rnl_socket_in *in, int n)
{
    struct mmsghdr m[KERNEL_BATCH];
    struct arrival a[KERNEL_BATCH];
    if (n == 1) {
        expect(k, &m[0].msg_hdr, &a[0], in);
        ssize_t bytes = recvmsg(fd, &m[0].msg_hdr, MSG_DONTWAIT);
        if (bytes < 0)
            return -errno;
        came(k, hot, &m[0].msg_hdr, &a[0], (size_t)bytes, in);
        k->lone = in->segment || in->ecn != RNL_ECN_NOT ? 0 : k->lone < LONE ? k->lone + 1 : LONE;
        return 1;
    }
    k->lone = 0;
    for (int i = 0; i < n; i++)
        expect(k, &m[i].msg_hdr, &a[i], &in[i]);
    int got = recvmmsg(fd, m, (unsigned)n, MSG_DONTWAIT, NULL);
    if (got < 0)
        return -errno;
    for (int i = 0; i < got; i++)
        came(k, hot, &m[i].msg_hdr, &a[i], m[i].msg_len, &in[i]);
    return got;
}

/* Up to a batch. */
static int recv_some(struct kernel_socket *k, int fd, struct kernel_hot *hot, struct rnl_socket_in *in, int n)
{
    for (int tries = 0; tries < KERNEL_TRIES; tries++) {
        int got = n == 1 && k->claims && k->lone >= LONE && k->lone < LONE_MOST ? recv_lone(k, fd, hot, in)
                                                                                : recv_once(k, fd, hot, in, n);
        if (got >= 0)
            return got;
        switch (-got) {
        case EAGAIN:
            if (hot)
                hot->sure = 1;
            return 0;
        case ENOMEM:
        case ENOBUFS:
            return 0;
        case EINTR:
            break;
        case EBADF:
        case ENOTSOCK:
        case EFAULT:
        case EINVAL:
            return rnl_fail_errno(RNL_ERR_SYSTEM, -got, "a UDP socket can no longer be read");
        default:
            k->told = 1;
        }
    }
    return 0;
}

/* One datagram or merged run, or all there are; but of runs one: it is to be read while it is in the cache. */
static int recv_by(struct kernel_socket *k, int fd, struct kernel_hot *hot, int all, struct rnl_socket_in *in, int n)
{
    int got = n > 0 ? recv_some(k, fd, hot, in, 1) : 0;
    while (all && got > 0 && got < n && !in[got - 1].segment) {
        int want = n - got < KERNEL_BATCH ? n - got : KERNEL_BATCH, more = recv_some(k, fd, hot, in + got, want);
        got += more > 0 ? more : 0;
        if (more < want)
            break;
    }
    return got;
}

/* One by one they come, and from the peer alone: the usual call, straight. What went wrong is found by the next. */
static int recv_quick(struct kernel_socket *k, struct kernel_hot *h, struct rnl_socket_in *in)
{
    ssize_t bytes = recv(h->fd, in->at, in->room, MSG_DONTWAIT | MSG_TRUNC);
    if (bytes >= 0)
        return lone_came(k, h, NULL, bytes, in);
    if (errno == EAGAIN)
        return 0;
    k->told |= errno != EINTR && errno != ENOMEM && errno != ENOBUFS;
    return recv_by(k, h->fd, h, 0, in, 1);
}

/* Runs that come in merged are one way through the kernel for all of them. But a socket that takes them reads what its
 * sender's processor wrote beside each datagram, and gives that line back to it: 100 to 200 ns for each, where two
 * processors talk. So one that brings short ones only is told not to, until a long one comes. */
static void merge_or_not(const struct kernel_socket *k, struct kernel_hot *h, const struct rnl_socket_in *in, int got)
{
    if (!k->claims || !(k->facts.features & RNL_KERNEL_MERGE))
        return;
    for (int i = 0; i < got; i++)
        h->shorts = in[i].bytes >= LONG_BYTES ? 0 : h->shorts + 1;
    uint8_t merges = h->merges ? h->shorts < SHORTS : h->shorts == 0;
    int value = merges;
    if (merges != h->merges && setsockopt(h->fd, IPPROTO_UDP, UDP_GRO, &value, sizeof value) == 0)
        h->merges = merges;
}

/* To find that nothing has come costs a call for each socket. So those that brought nothing for a while are looked at
 * now and then only, unless `arm` has seen something, or was the last that was called: in between their datagrams wait
 * for so many calls. */
int rnl_kernel_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct kernel_socket *k = kernel_of(s);
    if (!k->armed && !k->streak && rnl_kernel_bell_quiet(k))
        return 0;
    int got = 0, all = k->streak, everywhere = all || k->armed || k->distrusts;
    uint32_t warm = 0;
    k->looks++;
    for (uint32_t i = 0; i < k->hots; i++) {
        struct kernel_hot *h = &k->hot[i];
        int is_warm = h->vain < VAIN;
        warm += (uint32_t)is_warm;
        if (!is_warm && !everywhere && (k->looks + i) % COLD_EVERY)
            continue;
        int quick = !all && h->sure && n > got && k->claims && k->lone >= LONE && k->lone < LONE_MOST;
        int more = quick ? recv_quick(k, h, in + got) : recv_by(k, h->fd, h, all, in + got, n - got);
        if (more < 0)
            return got ? got : more;
        if (more > 0)
            merge_or_not(k, h, in + got, more);
        h->vain = more ? 0 : h->vain + (n > got);
        got += more;
    }
    if (warm == 0 || k->vain < VAIN || everywhere || k->looks % COLD_EVERY == 0) {
        int more = recv_by(k, k->fd, NULL, all, in + got, n - got);
        if (more < 0)
            return got ? got : more;
        k->vain = more ? 0 : k->vain + (n > got);
        got += more;
    }
    if (got > 0 && k->distrusts) {
        rnl_kernel_bell_spoil(k);
        k->facts.unrung++;
    }
    k->armed = k->distrusts = 0;
    if (got > 0 && k->watched && ++k->unarmed >= UNWATCHED)
        (void)rnl_kernel_watch(k, 0);
    k->streak = got > 1;
    return got;
}
