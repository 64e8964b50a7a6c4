/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.c - opens and binds the UDP sockets of net.h. */
#include "job/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static int bound(int fd, const struct sockaddr *name, socklen_t len, struct rnl_socket_addr *at)
{
    struct sockaddr_in6 got = {.sin6_family = AF_UNSPEC};
    socklen_t n = sizeof got;
    if (bind(fd, name, len) < 0 || getsockname(fd, (struct sockaddr *)&got, &n) < 0)
        return -errno;
    memset(at, 0, sizeof *at);
    if (got.sin6_family == AF_INET6) {
        memcpy(at->ip, &got.sin6_addr, sizeof at->ip);
        at->port = ntohs(got.sin6_port);
    } else {
        struct sockaddr_in in;
        memcpy(&in, &got, sizeof in);
        at->ip[10] = at->ip[11] = 0xff;
        memcpy(at->ip + 12, &in.sin_addr, sizeof in.sin_addr);
        at->port = ntohs(in.sin_port);
    }
    return 0;
}

static int open_one(int family, enum rnl_net_where where, int *fd, struct rnl_socket_addr *at)
{
    const int off = 0;
    const struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                                     .sin6_addr = where == RNL_NET_ANY ? in6addr_any : in6addr_loopback};
    const struct sockaddr_in in = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(where == RNL_NET_ANY ? INADDR_ANY : INADDR_LOOPBACK)};
    int s = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0)
        return -errno;
    int e = 0;
    if (family == AF_INET6 && where == RNL_NET_ANY && setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0)
        e = -errno;
    if (e == 0 && family == AF_INET6)
        e = bound(s, (const struct sockaddr *)&in6, sizeof in6, at);
    else if (e == 0)
        e = bound(s, (const struct sockaddr *)&in, sizeof in, at);
    if (e < 0)
        close(s);
    else
        *fd = s;
    return e;
}

int rnl_net_open(enum rnl_net_where where, uint32_t n, int *fd, struct rnl_socket_addr *at)
{
    for (uint32_t i = 0; i < n; i++) {
        int first = where == RNL_NET_ANY ? AF_INET6 : AF_INET, other = first == AF_INET ? AF_INET6 : AF_INET;
        int e = open_one(first, where, &fd[i], &at[i]);
        if (e == -EAFNOSUPPORT || e == -EADDRNOTAVAIL)
            e = open_one(other, where, &fd[i], &at[i]);
        if (e < 0) {
            rnl_net_close(i, fd);
            return e;
        }
    }
    return 0;
}

void rnl_net_close(uint32_t n, int *fd)
{
    for (uint32_t i = 0; i < n; i++)
        if (fd[i] >= 0) {
            close(fd[i]);
            fd[i] = -1;
        }
}

const char *rnl_net_remedy(int e)
{
    switch (e) {
    case EMFILE:
    case ENFILE:
        return "raise the limit of descriptors (ulimit -n)";
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return "bring the loopback interface up (ip link set lo up)";
    case EADDRINUSE:
        return "all ports are taken: widen net.ipv4.ip_local_port_range";
    case EPERM:
    case EACCES:
        return "allow sockets of UDP in the sandbox that this runs in";
    }
    return "free memory, or start fewer ranks";
}
