/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_error.c - reads the error queue: what routers, peers and this host report about datagrams that were sent.
 * Without IP_RECVERR there is no queue, and no errors are reported. */
#include "net/socket/kernel_internal.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <unistd.h>

enum { READ_MOST = 64 /* errors read in one call, since others may go on to fill the queue */ };

/* true = a filter rejected the datagram, as opposed to a missing route. */
static bool forbids(const struct sock_extended_err *e)
{
    if (e->ee_origin == SO_EE_ORIGIN_ICMP)
        return e->ee_type == ICMP_DEST_UNREACH &&
               (e->ee_code == ICMP_NET_ANO || e->ee_code == ICMP_HOST_ANO || e->ee_code == ICMP_PKT_FILTERED);
    enum { INGRESS_POLICY = 5, REJECT_ROUTE = 6 };
    return e->ee_origin == SO_EE_ORIGIN_ICMP6 && e->ee_type == ICMP6_DST_UNREACH &&
           (e->ee_code == ICMP6_DST_UNREACH_ADMIN || e->ee_code == INGRESS_POLICY || e->ee_code == REJECT_ROUTE);
}

static uint32_t kind_of(const struct sock_extended_err *e)
{
    if (forbids(e) || e->ee_errno == EPERM)
        return RNL_SOCKET_ERROR_FORBIDDEN;
    switch (e->ee_errno) {
    case ECONNREFUSED:
        return RNL_SOCKET_ERROR_REFUSED;
    case EMSGSIZE:
        return RNL_SOCKET_ERROR_TOO_LONG;
    default:
        return RNL_SOCKET_ERROR_UNREACHABLE;
    }
}

/* 1 = it is an address of this host. Only those can be bound to, and errors are rare enough for a trial. */
static int is_ours(const struct kernel_socket *k, const struct sockaddr *offender)
{
    union kernel_name name;
    struct rnl_socket_addr a;
    if (offender->sa_family != AF_INET && offender->sa_family != AF_INET6)
        return 0;
    memcpy(&name, offender, offender->sa_family == AF_INET ? sizeof name.in : sizeof name.in6);
    rnl_kernel_addr_of(&name, &a);
    if (memcmp(a.ip, k->s.self.ip, sizeof a.ip) == 0)
        return 1;
    int family = rnl_kernel_is_ipv4(&a) ? AF_INET : AF_INET6,
        fd = rnl_kernel_may_open() ? socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0)
        return 0;
    a.port = 0;
    socklen_t len = rnl_kernel_name_of(family, &a, &name);
    int ours = bind(fd, &name.sa, len) == 0;
    (void)close(fd);
    return ours;
}

static void keep(struct kernel_socket *k, const struct rnl_socket_error *e)
{
    if (k->errors == KERNEL_ERRORS) { /* drop the oldest */
        k->error_first++;
        k->errors--;
    }
    k->error[(k->error_first + k->errors++) % KERNEL_ERRORS] = *e;
}

static void take(struct kernel_socket *k, const struct sock_extended_err *e, const union kernel_name *to)
{
    struct rnl_socket_error out = {.kind = kind_of(e), .sys_errno = (int32_t)e->ee_errno};
    rnl_kernel_addr_of(to, &out.to);
    uint32_t heads = UDP_HEAD + (rnl_kernel_is_ipv4(&out.to) ? IPV4_HEAD : IPV6_HEAD);
    if (out.kind == RNL_SOCKET_ERROR_TOO_LONG && e->ee_info > heads)
        out.value = e->ee_info - heads;
    out.from_us = e->ee_origin == SO_EE_ORIGIN_LOCAL || is_ours(k, SO_EE_OFFENDER(e));
    keep(k, &out);
}

int rnl_kernel_take_errors_of(struct kernel_socket *k, int fd)
{
    int taken = 0;
    for (int i = 0; i < READ_MOST; i++) {
        _Alignas(struct cmsghdr) char control[512];
        union kernel_name to = {.sa = {.sa_family = AF_UNSPEC}};
        struct iovec part = {NULL, 0};
        struct msghdr m = {.msg_name = &to,
                           .msg_namelen = sizeof to,
                           .msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof control};
        if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return taken;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
            const struct sock_extended_err *e = (const void *)CMSG_DATA(c);
            int ours = (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
                       (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR);
            if (!ours || (e->ee_origin != SO_EE_ORIGIN_LOCAL && e->ee_origin != SO_EE_ORIGIN_ICMP &&
                          e->ee_origin != SO_EE_ORIGIN_ICMP6))
                continue;
            take(k, e, &to);
            taken++;
        }
    }
    k->error_pending = 1;
    return taken;
}

static int take_errors(struct kernel_socket *k)
{
    k->error_pending = 0;
    int taken = rnl_kernel_take_errors_of(k, k->fd);
    for (uint32_t i = 0; i < k->connected_count; i++)
        taken += rnl_kernel_take_errors_of(k, k->connected[i].fd);
    return taken;
}

int rnl_kernel_error(struct rnl_socket *s, struct rnl_socket_error *out)
{
    struct kernel_socket *k = kernel_of(s);
    if (k->errors == 0 && k->error_pending && take_errors(k) == 0)
        return 0;
    if (k->errors == 0)
        return 0;
    *out = k->error[k->error_first++ % KERNEL_ERRORS];
    k->errors--;
    return 1;
}

bool rnl_kernel_look_at(struct kernel_socket *k, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int errors = 0;
    if (poll(&p, 1, 0) > 0 && p.revents & POLLERR) {
        int pending = 0;
        socklen_t len = sizeof pending;
        errors = rnl_kernel_take_errors_of(k, fd);
        (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &pending, &len);
    }
    return p.revents & POLLIN || errors > 0;
}
