/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel.c - a kernel socket's features, arming, beginning and end. */
#include "base/bug.h"
#include "net/socket/kernel_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    IP_BYTES = 65535,
    LOOPBACK_MTU = 65536, /* the largest default MTU of any interface */
    MERGED_BYTES = 65536
};

/* ---- options ---- */

static int set(const struct kernel_socket *k, int level, int option, int value)
{
    return rnl_kernel_set(k->fd, level, option, value);
}

static int set_ip(const struct kernel_socket *k, int v4, int value4, int v6, int value6)
{
    return rnl_kernel_set_ip(k, k->fd, v4, value4, v6, value6);
}

/* Turns on the wanted features that this kernel has. */
static void find_features(struct kernel_socket *k, uint32_t without)
{
    uint32_t have = 0;
    if (!(without & RNL_KERNEL_SEGMENT) && set(k, IPPROTO_UDP, UDP_SEGMENT, 0) == 0)
        have |= RNL_KERNEL_SEGMENT;
    if (!(without & RNL_KERNEL_MERGE) && set(k, IPPROTO_UDP, UDP_GRO, 1) == 0)
        have |= RNL_KERNEL_MERGE;
    if (!(without & RNL_KERNEL_ECN) && set_ip(k, IP_RECVTOS, 1, IPV6_RECVTCLASS, 1) == 0)
        have |= RNL_KERNEL_ECN;
    if (!(without & RNL_KERNEL_ERRORS) && set_ip(k, IP_RECVERR, 1, IPV6_RECVERR, 1) == 0)
        have |= RNL_KERNEL_ERRORS;
    if (!(without & RNL_KERNEL_PROBE) &&
        set_ip(k, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE) == 0)
        have |= RNL_KERNEL_PROBE;
    k->epoll = without & RNL_KERNEL_CONNECT || !rnl_kernel_may_open() ? -1 : epoll_create1(EPOLL_CLOEXEC);
    if (k->epoll >= 0 && rnl_kernel_watch(k, 1) < 0) {
        close(k->epoll);
        k->epoll = -1;
    }
    if (k->epoll >= 0)
        have |= RNL_KERNEL_CONNECT;
    k->facts.features |= have;
    k->no_bell = !!(without & RNL_KERNEL_BELL);
}

/* Requests a receive buffer and reads back its size, since the kernel gives no more than the host's limit. */
static int make_room(struct kernel_socket *k, uint32_t bytes)
{
    int got = 0;
    socklen_t len = sizeof got;
    k->facts.receive_asked = bytes ? bytes : RNL_KERNEL_RECEIVE_BYTES;
    (void)set(k, SOL_SOCKET, SO_RCVBUF, (int)(k->facts.receive_asked > INT32_MAX ? INT32_MAX : k->facts.receive_asked));
    if (getsockopt(k->fd, SOL_SOCKET, SO_RCVBUF, &got, &len) < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the size of a UDP socket's receive buffer cannot be read");
    k->facts.receive_bytes = (uint32_t)got;
    return 0;
}

static void set_limits(struct kernel_socket *k)
{
    uint32_t f = k->facts.features, most = IP_BYTES - IPV4_HEAD - UDP_HEAD;
    if (f & RNL_KERNEL_IPV6 && LOOPBACK_MTU - IPV6_HEAD - UDP_HEAD < most)
        most = LOOPBACK_MTU - IPV6_HEAD - UDP_HEAD;
    k->s.datagram_max = most;
    k->s.segments_max = f & RNL_KERNEL_SEGMENT ? KERNEL_RUN : 1;
    k->s.segment_bytes = most;
    k->s.merged_bytes = f & RNL_KERNEL_MERGE ? MERGED_BYTES : most;
    k->s.receive_bytes = k->facts.receive_bytes;
    k->s.has_ecn = !!(f & RNL_KERNEL_ECN);
    k->s.has_fd = 1;
}

/* ---- waiting ---- */

static int kernel_fd(struct rnl_socket *s)
{
    struct kernel_socket *k = kernel_of(s);
    return k->epoll >= 0 ? k->epoll : k->fd;
}

/* The descriptor is readable while something has arrived, and also while an error is queued, which the caller need not
 * read. So errors are moved out of the queue, and reported as an arrival once. */
static int kernel_arm(struct rnl_socket *s)
{
    struct kernel_socket *k = kernel_of(s);
    struct pollfd any = {.fd = kernel_fd(s), .events = POLLIN};
    int here = 0;
    k->armed = 1;
    k->unarmed = 0;
    if (k->epoll >= 0 && !k->watched && !RNL_BUG(udp_arm_does_not_watch) && rnl_kernel_watch(k, 1) < 0)
        return 1; /* the caller must not sleep, because nothing would wake it */
    if (poll(&any, 1, 0) == 0)
        return 0;
    for (uint32_t i = 0; i < k->connected_count; i++)
        here |= rnl_kernel_look_at(k, k->connected[i].fd);
    here |= rnl_kernel_look_at(k, k->fd);
    k->streak |= (uint8_t)here; /* the next recv polls all sockets */
    return here;
}

/* ---- the beginning and the end ---- */

static void kernel_close(struct rnl_socket *s)
{
    rnl_kernel_links_end(kernel_of(s));
    rnl_kernel_pool_end(kernel_of(s));
    close(kernel_of(s)->fd);
    free(s);
}

static const struct rnl_socket_ops kernel_ops = {
    .size = sizeof kernel_ops,
    .send = rnl_kernel_send,
    .recv = rnl_kernel_recv,
    .error = rnl_kernel_error,
    .arm = kernel_arm,
    .fd = kernel_fd,
    .close = kernel_close,
    .bell = rnl_kernel_bell,
    .is_down = rnl_kernel_is_down,
};

static int open_family(struct kernel_socket *k, int family, uint32_t speaks)
{
    k->family = family;
    k->facts.features = speaks;
    k->fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return k->fd;
}

/* Opens a socket of a family that can have this address. Returns k->fd, or negative. */
static int open_for(struct kernel_socket *k, const struct rnl_socket_addr *addr)
{
    if (rnl_kernel_is_ipv4(addr))
        return open_family(k, AF_INET, RNL_KERNEL_IPV4);
    if (memcmp(addr->ip, (const uint8_t[16]){0}, sizeof addr->ip) != 0)
        return open_family(k, AF_INET6, RNL_KERNEL_IPV6);
    if (open_family(k, AF_INET6, RNL_KERNEL_IPV4 | RNL_KERNEL_IPV6) >= 0) {
        if (set(k, IPPROTO_IPV6, IPV6_V6ONLY, 0) == 0)
            return k->fd;
        close(k->fd);
    } else if (errno != EAFNOSUPPORT) {
        return -1;
    }
    return open_family(k, AF_INET, RNL_KERNEL_IPV4);
}

static int read_self(struct kernel_socket *k)
{
    union kernel_name name;
    socklen_t len = sizeof name;
    if (getsockname(k->fd, &name.sa, &len) < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the address of a UDP socket cannot be read");
    rnl_kernel_addr_of(&name, &k->s.self);
    return 0;
}

static int bind_to(struct kernel_socket *k, const struct rnl_socket_addr *addr)
{
    union kernel_name name;
    struct rnl_socket_addr a = *addr;
    if (k->family == AF_INET && !rnl_kernel_is_ipv4(&a)) /* the address is :: on a host without IPv6 */
        memcpy(a.ip, rnl_kernel_mapped, sizeof rnl_kernel_mapped);
    socklen_t len = rnl_kernel_name_of(k->family, &a, &name);
    if (bind(k->fd, &name.sa, len) < 0) {
        int ours = errno == EADDRNOTAVAIL || errno == EADDRINUSE || errno == EINVAL;
        return rnl_fail_errno(ours ? RNL_ERR_ARG : RNL_ERR_SYSTEM, errno,
                              "a UDP socket cannot be bound to port %u of that address; port 0 takes a free one",
                              addr->port);
    }
    return read_self(k);
}

int rnl_kernel_socket_open(const struct rnl_socket_addr *addr, const struct rnl_kernel_options *options,
                           struct rnl_socket **out)
{
    static const struct rnl_kernel_options none;
    const struct rnl_kernel_options *o = options ? options : &none;
    struct kernel_socket *k = calloc(1, sizeof *k);
    if (!k)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a UDP socket");
    if (open_for(k, addr) < 0) {
        int status = rnl_fail_errno(RNL_ERR_SYSTEM, errno, "a UDP socket cannot be opened");
        free(k);
        return status;
    }
    k->s.ops = &kernel_ops;
    k->s.frames = &k->frames;
    k->claims = o->claims;
    find_features(k, o->without);
    int status = make_room(k, o->receive_bytes);
    if (status == 0)
        status = bind_to(k, addr);
    if (status < 0) {
        kernel_close(&k->s);
        return status;
    }
    set_limits(k);
    *out = &k->s;
    return 0;
}

static int option_of(int fd, int level, int option)
{
    int value = -1;
    socklen_t len = sizeof value;
    return getsockopt(fd, level, option, &value, &len) < 0 ? -1 : value;
}

/* Returns the address families of a descriptor as features; 0 = it is no UDP socket. */
static uint32_t speaks(int fd, int *family)
{
    *family = option_of(fd, SOL_SOCKET, SO_DOMAIN);
    if (option_of(fd, SOL_SOCKET, SO_TYPE) != SOCK_DGRAM || option_of(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_UDP)
        return 0;
    if (*family == AF_INET)
        return RNL_KERNEL_IPV4;
    return *family != AF_INET6 ? 0 : RNL_KERNEL_IPV6 | (option_of(fd, IPPROTO_IPV6, IPV6_V6ONLY) ? 0 : RNL_KERNEL_IPV4);
}

int rnl_kernel_socket_adopt(int fd, const struct rnl_kernel_options *options, struct rnl_socket **out)
{
    static const struct rnl_kernel_options none;
    const struct rnl_kernel_options *o = options ? options : &none;
    int family, flags = fcntl(fd, F_GETFL);
    uint32_t families = speaks(fd, &family);
    if (families == 0 || flags < 0)
        return rnl_fail(RNL_ERR_ARG, "descriptor %d is not a UDP socket", fd);
    struct kernel_socket *k = calloc(1, sizeof *k);
    if (!k)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a UDP socket");
    k->fd = fd;
    k->family = family;
    k->facts.features = families;
    k->s.ops = &kernel_ops;
    k->s.frames = &k->frames;
    k->claims = o->claims;
    find_features(k, o->without);
    int status = make_room(k, o->receive_bytes);
    if (status == 0)
        status = read_self(k);
    if (status == 0 && k->s.self.port == 0)
        status = rnl_fail(RNL_ERR_ARG, "descriptor %d is a UDP socket that is not bound", fd);
    if (status == 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        status = rnl_fail_errno(RNL_ERR_SYSTEM, errno, "a UDP socket cannot be made non-blocking");
    if (status < 0) {
        rnl_kernel_pool_end(k);
        free(k);
        return status;
    }
    set_limits(k);
    *out = &k->s;
    return 0;
}

void rnl_kernel_socket_facts(const struct rnl_socket *s, struct rnl_kernel_facts *out)
{
    *out = ((const struct kernel_socket *)(const void *)s)->facts;
}
