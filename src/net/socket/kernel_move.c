/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_move.c - sends and receives datagrams through the kernel. Each run is sent by a call of its own, since
 * sendmmsg saves too little. Datagrams are received one at a time while they arrive singly, and in batches
 * otherwise. */
#include "net/socket/kernel_internal.h"
#include "net/wire/packet.h"

#include <errno.h>
#include <netinet/udp.h>

enum {
    MISSES_MANY = 64,  /* consecutive misses after which a socket is polled seldom */
    POLL_EVERY = 16,   /* such a socket is polled once in so many calls */
    UNWATCHED = 256,   /* calls with an arrival and without an arm after which sockets no longer wake the descriptor */
    SINGLES = 16,      /* single datagrams without control data after which it is not requested any more, */
    SINGLES_MOST = 80, /* until so many have arrived; then it is requested once */
    LONG_BYTES = 1000, /* the shortest datagrams that runs are usually made of */
    SHORTS = 64        /* consecutive shorter ones after which merging is turned off */
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

struct way { /* the socket that sends a datagram, and the name to send it to; none if the socket is connected there */
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

/* true = it can be the error of an earlier datagram. */
static bool may_be_old(int error)
{
    return error != EAGAIN && error != ENOBUFS && error != ENOMEM && error != EPERM && error != EINVAL &&
           error != EIO && error != EBADF && error != ENOTSOCK && error != EFAULT;
}

/* Returns the error of this datagram or run, 0 or an errno. The error of an earlier one is returned by one call only,
 * so the call is repeated. */
static int send_one(struct kernel_socket *k, const struct rnl_socket_out *o, struct way *w)
{
    int error = 0;
    for (int tries = 0; tries < KERNEL_TRIES; tries++) {
        error = send_once(k, o, w);
        if (!may_be_old(error) || error == 0)
            break;
        k->error_pending |= error != EINTR;
    }
    return error;
}

/* Sends a run as single datagrams. Once the first was sent, the run counts as sent, and what the host drops of the rest
 * is lost. */
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
    case EINVAL: /* the socket is bound to an address without a route to there, like 127.0.0.1 */
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
    /* The interface cannot send runs (EIO), or the run is not valid; then its first datagram gets the error. */
    if (error == EIO) {
        k->s.segments_max = 1;
        k->facts.features &= ~(uint32_t)RNL_KERNEL_SEGMENT;
    }
    return send_apart(k, o, w);
}

/* Sends by a socket that is connected there, if there is one. It sends from the address it had when it was connected;
 * if the interface has lost that address, the first socket may have another route. 0 or errno. */
static int send_out(struct kernel_socket *k, const struct rnl_socket_out *o)
{
    struct way w;
    w.fd = rnl_kernel_peer_socket(k, &o->to);
    w.len = 0;
    if (w.fd >= 0) {
        if (!o->segment && !o->ecn) { /* the fast path of most datagrams */
            if (RNL_LIKELY(send(w.fd, o->at, o->bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0))
                return 0;
            k->error_pending |= may_be_old(errno) && errno != EINTR;
        }
        int error = send_run(k, o, &w);
        if (stop_of(error) != RNL_SOCKET_UNREACHABLE)
            return error;
        rnl_kernel_peer_socket_lost(k, w.fd);
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

/* What a receive call needs for each datagram. */
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

/* Cuts a merged run by the length that its first datagram claims, where the kernel does not report it. The claim is not
 * trusted: it cannot make more packets, or shorter ones, than a run of ours has. */
static void cut_as_claimed(const struct kernel_socket *k, struct rnl_socket_in *in)
{
    uint32_t first = k->facts.features & RNL_KERNEL_MERGE ? k->claims(in->at, in->bytes) : 0;
    if (first >= RNL_PACKET_MIN && first < in->bytes && first < UINT16_MAX && in->bytes <= first * KERNEL_RUN)
        in->segment = (uint16_t)first;
}

/* Fills in what recvmsg returned. `c` is the connected socket that it came from, NULL for the first one. */
static void fill_message(const struct kernel_socket *k, const struct kernel_connected *c, struct msghdr *m,
                         const struct arrival *a, size_t bytes, struct rnl_socket_in *in)
{
    in->bytes = (uint32_t)bytes;
    in->segment = 0;
    in->ecn = RNL_ECN_NOT;
    in->cut = !!(m->msg_flags & MSG_TRUNC);
    rnl_kernel_addr_of(&a->name, &in->from);
    if (m->msg_controllen)
        read_control(m, in);
    if (!in->segment && k->claims && c && !c->merges) /* it may have been merged before UDP_GRO was turned off */
        cut_as_claimed(k, in);
}

/* Fills in what recv or recvfrom returned. The sender is that of `c`, or `name` if `c` is NULL. */
static int fill_plain(struct kernel_socket *k, const struct kernel_connected *c, const union kernel_name *name,
                      ssize_t bytes, struct rnl_socket_in *in)
{
    in->cut = (size_t)bytes > in->room;
    in->bytes = in->cut ? in->room : (uint32_t)bytes;
    in->segment = 0;
    in->ecn = RNL_ECN_NOT;
    if (c)
        in->from = c->peer;
    else
        rnl_kernel_addr_of(name, &in->from);
    cut_as_claimed(k, in); /* on any socket, since control data, which would report a run, was not requested */
    k->singles = in->segment ? 0 : k->singles + 1;
    return 1;
}

/* Receives one datagram without control data. 1, or -1 and errno. `c` is the connected socket, NULL: the first. */
static int recv_plain(struct kernel_socket *k, int fd, const struct kernel_connected *c, struct rnl_socket_in *in)
{
    union kernel_name name;
    socklen_t len = sizeof name;
    int known = c && c->drained;
    ssize_t bytes = known ? recv(fd, in->at, in->room, MSG_DONTWAIT | MSG_TRUNC)
                          : recvfrom(fd, in->at, in->room, MSG_DONTWAIT | MSG_TRUNC, &name.sa, &len);
    return bytes < 0 ? -1 : fill_plain(k, known ? c : NULL, &name, bytes, in);
}

/* Receives up to n datagrams or runs, with control data. Returns how many, or -1 and errno. */
static int recv_once(struct kernel_socket *k, int fd, const struct kernel_connected *c, struct rnl_socket_in *in, int n)
{
    struct mmsghdr m[KERNEL_BATCH];
    struct arrival a[KERNEL_BATCH];
    if (n == 1) {
        expect(k, &m[0].msg_hdr, &a[0], in);
        ssize_t bytes = recvmsg(fd, &m[0].msg_hdr, MSG_DONTWAIT);
        if (bytes < 0)
            return -1;
        fill_message(k, c, &m[0].msg_hdr, &a[0], (size_t)bytes, in);
        k->singles = in->segment || in->ecn != RNL_ECN_NOT ? 0 : k->singles < SINGLES ? k->singles + 1 : SINGLES;
        return 1;
    }
    k->singles = 0;
    for (int i = 0; i < n; i++)
        expect(k, &m[i].msg_hdr, &a[i], &in[i]);
    int got = recvmmsg(fd, m, (unsigned)n, MSG_DONTWAIT, NULL);
    if (got < 0)
        return -1;
    for (int i = 0; i < got; i++)
        fill_message(k, c, &m[i].msg_hdr, &a[i], m[i].msg_len, &in[i]);
    return got;
}

/* Receives up to n, at most a batch; repeats a call that returned an error of an earlier datagram. */
static int recv_some(struct kernel_socket *k, int fd, struct kernel_connected *c, struct rnl_socket_in *in, int n)
{
    for (int tries = 0; tries < KERNEL_TRIES; tries++) {
        int got = n == 1 && k->claims && k->singles >= SINGLES && k->singles < SINGLES_MOST
                      ? recv_plain(k, fd, c, in)
                      : recv_once(k, fd, c, in, n);
        if (got >= 0)
            return got;
        switch (errno) {
        case EAGAIN:
            if (c)
                c->drained = 1;
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
            return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "a UDP socket can no longer be read");
        default:
            k->error_pending = 1;
        }
    }
    return 0;
}

/* Receives one datagram or merged run, or `all` that have arrived. It stops after a run, which is to be read while it
 * is in the cache. */
static int recv_by(struct kernel_socket *k, int fd, struct kernel_connected *c, int all, struct rnl_socket_in *in,
                   int n)
{
    int got = n > 0 ? recv_some(k, fd, c, in, 1) : 0;
    while (all && got > 0 && got < n && !in[got - 1].segment) {
        int want = n - got < KERNEL_BATCH ? n - got : KERNEL_BATCH, more = recv_some(k, fd, c, in + got, want);
        got += more > 0 ? more : 0;
        if (more < want)
            break;
    }
    return got;
}

/* The fast path for a connected socket whose datagrams arrive singly. Errors are left for the next call to find. */
static int recv_fast(struct kernel_socket *k, struct kernel_connected *c, struct rnl_socket_in *in)
{
    ssize_t bytes = recv(c->fd, in->at, in->room, MSG_DONTWAIT | MSG_TRUNC);
    if (bytes >= 0)
        return fill_plain(k, c, NULL, bytes, in);
    if (errno == EAGAIN)
        return 0;
    k->error_pending |= errno != EINTR && errno != ENOMEM && errno != ENOBUFS;
    return recv_by(k, c->fd, c, 0, in, 1);
}

/* A merged run passes the kernel's code once. But with UDP_GRO the kernel reads, for each datagram, a cache line that
 * the sender's processor has written and will write again, which costs 100 to 200 ns between two processors. So UDP_GRO
 * is turned off for a socket that receives only short datagrams, until a long one arrives. */
static void merge_or_not(const struct kernel_socket *k, struct kernel_connected *c, const struct rnl_socket_in *in,
                         int got)
{
    if (!k->claims || !(k->facts.features & RNL_KERNEL_MERGE))
        return;
    for (int i = 0; i < got; i++)
        c->shorts = in[i].bytes >= LONG_BYTES ? 0 : c->shorts + 1;
    uint8_t merges = c->merges ? c->shorts < SHORTS : c->shorts == 0;
    int value = merges;
    if (merges != c->merges && setsockopt(c->fd, IPPROTO_UDP, UDP_GRO, &value, sizeof value) == 0)
        c->merges = merges;
}

/* To find that nothing has arrived costs a call for each socket. So sockets on which nothing has arrived for a while
 * are polled once in POLL_EVERY calls, for which their datagrams may have to wait; but all are polled after an `arm`,
 * and after a call that returned more than one datagram. */
int rnl_kernel_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct kernel_socket *k = kernel_of(s);
    if (RNL_UNLIKELY(k->links != NULL))
        rnl_kernel_follow_links(k, k->armed);
    if (!k->armed && !k->streak && rnl_kernel_bell_is_silent(k))
        return 0;
    int got = 0, all = k->streak, everywhere = all || k->armed || k->distrusts;
    uint32_t active = 0;
    k->polls++;
    for (uint32_t i = 0; i < k->connected_count; i++) {
        struct kernel_connected *c = &k->connected[i];
        int is_active = c->misses < MISSES_MANY;
        active += (uint32_t)is_active;
        if (!is_active && !everywhere && (k->polls + i) % POLL_EVERY)
            continue;
        int quick = !all && c->drained && n > got && k->claims && k->singles >= SINGLES && k->singles < SINGLES_MOST;
        int more = quick ? recv_fast(k, c, in + got) : recv_by(k, c->fd, c, all, in + got, n - got);
        if (more < 0)
            return got ? got : more;
        if (more > 0)
            merge_or_not(k, c, in + got, more);
        c->misses = more ? 0 : c->misses + (n > got);
        got += more;
    }
    if (active == 0 || k->misses < MISSES_MANY || everywhere || k->polls % POLL_EVERY == 0) {
        int more = recv_by(k, k->fd, NULL, all, in + got, n - got);
        if (more < 0)
            return got ? got : more;
        k->misses = more ? 0 : k->misses + (n > got);
        got += more;
    }
    if (got > 0 && k->distrusts) {
        rnl_kernel_bell_invalidate(k);
        k->facts.unrung++;
    }
    k->armed = k->distrusts = 0;
    if (got > 0 && k->watched && ++k->unarmed >= UNWATCHED)
        (void)rnl_kernel_watch(k, 0);
    k->streak = got > 1;
    return got;
}
