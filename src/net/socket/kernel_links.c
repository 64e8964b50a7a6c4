/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_links.c - which interfaces have no link, as the kernel announces it (RTM_NEWLINK): a hint that datagrams to an
 * address do not leave any more. Watched from the first question on, which only they ask whose peers have several
 * addresses. */
#include "net/socket/kernel_internal.h"
#include "net/socket/netlink.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

struct kernel_links {
    int ask, changes; /* sockets of rtnetlink; -1: none could be opened */
    uint64_t look_ns;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void begin(struct kernel_socket *k)
{
    struct epoll_event e = {.events = EPOLLIN};
    struct kernel_links *l = calloc(1, sizeof *l);
    if (!l)
        return;
    l->ask = l->changes = -1;
    k->links = l;
    if (!rnl_kernel_may_open())
        return;
    l->changes = rnl_netlink_open(RNL_NETLINK_LINK_CHANGES);
    l->ask = l->changes < 0 ? -1 : rnl_netlink_open(RNL_NETLINK_ASKS);
    if (k->epoll >= 0 && l->ask >= 0) /* whoever sleeps is woken, and looks */
        (void)epoll_ctl(k->epoll, EPOLL_CTL_ADD, l->changes, &e);
}

bool rnl_kernel_is_down(struct rnl_socket *s, const struct rnl_socket_addr *to)
{
    struct kernel_socket *k = kernel_of(s);
    if (!k->links)
        begin(k);
    return k->links && k->links->ask >= 0 && rnl_netlink_is_down(k->links->ask, to->ip, to->scope);
}

void rnl_kernel_follow_links(struct kernel_socket *k, bool now)
{
    struct kernel_links *l = k->links;
    const uint64_t at_ns = now_ns();
    uint8_t ip[16];
    if (l->ask < 0 || (at_ns == l->look_ns && !now))
        return;
    l->look_ns = at_ns;
    for (int i = 0; i < KERNEL_BATCH && rnl_netlink_change(l->changes, ip); i++)
        k->frames.links++;
}

void rnl_kernel_links_end(struct kernel_socket *k)
{
    if (!k->links)
        return;
    if (k->links->ask >= 0)
        close(k->links->ask);
    if (k->links->changes >= 0)
        close(k->links->changes);
    free(k->links);
    k->links = NULL;
}
