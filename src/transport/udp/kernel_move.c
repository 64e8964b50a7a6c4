/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_move.c - datagrams to and from the kernel. Sending is a call for each run: sendmmsg saves too little of what
 * one costs. Receiving is one call for a batch: that nothing more is there is then found out inside of it. */
#include "transport/udp/kernel_in.h"

#include <errno.h>
#include <netinet/udp.h>

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

/* 0 or errno. */
static int send_once(const struct kernel_socket *k, const struct rnl_socket_out *o, union kernel_name *name,
                     socklen_t name_len)
{
    struct control_out control;
    struct iovec part = {(void *)(uintptr_t)o->at, o->bytes};
    struct msghdr m = {.msg_name = name, .msg_namelen = name_len, .msg_iov = &part, .msg_iovlen = 1};
    int ecn = k->s.has_ecn ? o->ecn & 3 : 0, runs = o->segment && o->segment < o->bytes;
    if (!ecn && !runs)
        return sendto(k->fd, o->at, o->bytes, MSG_DONTWAIT | MSG_NOSIGNAL, &name->sa, name_len) < 0 ? errno : 0;
    memset(&control, 0, sizeof control);
    m.msg_control = &control;
    if (runs)
        add(&m, IPPROTO_UDP, UDP_SEGMENT, &o->segment, sizeof o->segment);
    if (ecn && rnl_kernel_is_ipv4(&o->to))
        add(&m, IPPROTO_IP, IP_TOS, &ecn, sizeof ecn);
    else if (ecn)
        add(&m, IPPROTO_IPV6, IPV6_TCLASS, &ecn, sizeof ecn);
    return sendmsg(k->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* Can it be the error of a datagram before? */
static int may_be_old(int error)
{
    return error != EAGAIN && error != ENOBUFS && error != ENOMEM && error != EPERM && error != EINVAL &&
           error != EIO && error != EBADF && error != ENOTSOCK && error != EFAULT;
}

/* The error of this one: 0 or errno. A pending one is returned once and is gone then. */
static int send_one(struct kernel_socket *k, const struct rnl_socket_out *o, union kernel_name *name, socklen_t len)
{
    int error = 0;
    for (int tries = 0; tries < KERNEL_TRIES; tries++) {
        error = send_once(k, o, name, len);
        if (!may_be_old(error) || error == 0)
            break;
        k->told |= error != EINTR;
    }
    return error;
}

/* Datagram by datagram. Once the first has gone the run has: what the host drops of the rest is lost. */
static int send_apart(struct kernel_socket *k, const struct rnl_socket_out *o, union kernel_name *name, socklen_t len)
{
    struct rnl_socket_out one = *o;
    one.segment = 0;
    for (uint32_t at = 0; at < o->bytes; at += o->segment) {
        one.at = (const char *)o->at + at;
        one.bytes = o->bytes - at < o->segment ? o->bytes - at : o->segment;
        int error = send_one(k, &one, name, len);
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

int rnl_kernel_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    struct kernel_socket *k = kernel_of(s);
    *result = (struct rnl_socket_result){RNL_SOCKET_WENT, 0};
    for (int i = 0; i < n; i++) {
        const struct rnl_socket_out *o = &out[i];
        union kernel_name name;
        socklen_t len = rnl_kernel_name_of(k->family, &o->to, &name);
        uint32_t packets = o->segment ? (o->bytes + o->segment - 1) / o->segment : 1;
        int error = 0;
        if (len == 0)
            error = EAFNOSUPPORT;
        else if (packets > 1 && s->segments_max < 2)
            error = send_apart(k, o, &name, len);
        else
            error = send_one(k, o, &name, len);
        if (packets > 1 && s->segments_max > 1 && (error == EIO || error == EINVAL)) {
            /* The interface cannot (EIO), or something about this run is not right, which its first datagram tells. */
            if (error == EIO) {
                s->segments_max = 1;
                k->facts.features &= ~(uint32_t)RNL_KERNEL_SEGMENT;
            }
            error = send_apart(k, o, &name, len);
        }
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

/* How many, or -errno. */
static int recv_batch(struct kernel_socket *k, struct rnl_socket_in *in, int n)
{
    struct mmsghdr m[KERNEL_BATCH];
    struct iovec part[KERNEL_BATCH];
    union kernel_name name[KERNEL_BATCH];
    struct control_in control[KERNEL_BATCH];
    int controls = k->facts.features & (RNL_KERNEL_ECN | RNL_KERNEL_MERGE);
    for (int i = 0; i < n; i++) {
        part[i] = (struct iovec){in[i].at, in[i].room};
        m[i].msg_hdr = (struct msghdr){.msg_name = &name[i],
                                       .msg_namelen = sizeof name[i],
                                       .msg_iov = &part[i],
                                       .msg_iovlen = 1,
                                       .msg_control = controls ? &control[i] : NULL,
                                       .msg_controllen = controls ? sizeof control[i] : 0};
    }
    int got = recvmmsg(k->fd, m, (unsigned)n, MSG_DONTWAIT, NULL);
    if (got < 0)
        return -errno;
    for (int i = 0; i < got; i++) {
        in[i].bytes = m[i].msg_len;
        in[i].segment = 0;
        in[i].ecn = RNL_ECN_NOT;
        in[i].cut = !!(m[i].msg_hdr.msg_flags & MSG_TRUNC);
        rnl_kernel_addr_of(&name[i], &in[i].from);
        if (controls)
            read_control(&m[i].msg_hdr, &in[i]);
    }
    return got;
}

/* Up to a batch. */
static int recv_some(struct kernel_socket *k, struct rnl_socket_in *in, int n)
{
    for (int tries = 0; tries < KERNEL_TRIES; tries++) {
        int got = recv_batch(k, in, n);
        if (got >= 0)
            return got;
        switch (-got) {
        case EAGAIN:
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

int rnl_kernel_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    int got = 0;
    while (got < n) {
        int want = n - got < KERNEL_BATCH ? n - got : KERNEL_BATCH;
        int more = recv_some(kernel_of(s), in + got, want);
        if (more < 0)
            return got ? got : more;
        got += more;
        if (more < want)
            break;
    }
    return got;
}
