/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_address.c - what the other files of the kernel's sockets build on: addresses as the kernel has them, and the
 * options of a descriptor. */
#include "base/bug.h"
#include "net/socket/kernel_internal.h"

#include <fcntl.h>
#include <sys/resource.h>

/* ---- addresses ---- */

const uint8_t rnl_kernel_mapped[12] = {[10] = 0xff, [11] = 0xff};

bool rnl_kernel_is_ipv4(const struct rnl_socket_addr *a)
{
    return memcmp(a->ip, rnl_kernel_mapped, sizeof rnl_kernel_mapped) == 0;
}

socklen_t rnl_kernel_name_of(int family, const struct rnl_socket_addr *a, union kernel_name *out)
{
    if (family == AF_INET6) {
        memset(&out->in6, 0, sizeof out->in6);
        out->in6.sin6_family = AF_INET6;
        out->in6.sin6_port = htons(a->port);
        out->in6.sin6_scope_id = a->scope;
        memcpy(&out->in6.sin6_addr, a->ip, sizeof a->ip);
        return sizeof out->in6;
    }
    if (!rnl_kernel_is_ipv4(a))
        return 0;
    memset(&out->in, 0, sizeof out->in);
    out->in.sin_family = AF_INET;
    out->in.sin_port = htons(a->port);
    memcpy(&out->in.sin_addr, a->ip + sizeof rnl_kernel_mapped, sizeof out->in.sin_addr);
    return sizeof out->in;
}

void rnl_kernel_addr_of(const union kernel_name *name, struct rnl_socket_addr *out)
{
    memset(out, 0, sizeof *out);
    if (name->sa.sa_family == AF_INET6) {
        memcpy(out->ip, &name->in6.sin6_addr, sizeof out->ip);
        out->scope = IN6_IS_ADDR_LINKLOCAL(&name->in6.sin6_addr) ? name->in6.sin6_scope_id : 0;
        out->port = ntohs(name->in6.sin6_port);
    } else if (name->sa.sa_family == AF_INET) {
        memcpy(out->ip, rnl_kernel_mapped, sizeof rnl_kernel_mapped);
        memcpy(out->ip + sizeof rnl_kernel_mapped, &name->in.sin_addr, sizeof name->in.sin_addr);
        out->port = ntohs(name->in.sin_port);
    }
}

/* ---- options ---- */

int rnl_kernel_set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value);
}

int rnl_kernel_set_ip(const struct kernel_socket *k, int fd, int v4, int value4, int v6, int value6)
{
    int failed = 0;
    if (k->facts.features & RNL_KERNEL_IPV4)
        failed |= rnl_kernel_set(fd, IPPROTO_IP, v4, value4);
    if (k->facts.features & RNL_KERNEL_IPV6)
        failed |= rnl_kernel_set(fd, IPPROTO_IPV6, v6, value6);
    return failed;
}

bool rnl_kernel_may_open(void)
{
    struct rlimit l;
    uint32_t unused = 0;
    if (RNL_BUG(net_last_descriptor))
        return true;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return false;
    for (rlim_t fd = 0; fd < l.rlim_cur && fd < INT32_MAX && unused <= RNL_KERNEL_SPARE; fd++)
        unused += fcntl((int)fd, F_GETFD) < 0;
    return unused > RNL_KERNEL_SPARE;
}
