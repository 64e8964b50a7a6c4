/* SPDX-License-Identifier: BSD-3-Clause
 *
 * netlink.c - asks the kernel, one message at a time, and reads what it announces. What comes from another sender than
 * the kernel is thrown away. */
#include "net/socket/netlink.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

enum { ANSWER = 16384, DUMPS = 256 }; /* bytes of one; reads of a dump at most */
static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

struct netlink_ask {
    struct nlmsghdr n;
    union {
        struct ifinfomsg link;
        struct rtmsg route;
        struct ndmsg neighbour;
    } is;
    uint8_t attributes[128];
};

struct answer { /* what a message has behind its fixed part, by type */
    const struct nlmsghdr *n;
    const struct rtattr *at[64];
};

static void ask_for(struct netlink_ask *q, uint16_t type, uint16_t flags, uint32_t fixed)
{
    memset(q, 0, sizeof *q);
    q->n.nlmsg_type = type;
    q->n.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    q->n.nlmsg_len = NLMSG_LENGTH(fixed);
}

static void attribute(struct netlink_ask *q, uint16_t type, const void *value, uint32_t bytes)
{
    struct rtattr *a = (void *)((char *)q + NLMSG_ALIGN(q->n.nlmsg_len));
    a->rta_type = type;
    a->rta_len = (uint16_t)RTA_LENGTH(bytes);
    memcpy(RTA_DATA(a), value, bytes);
    q->n.nlmsg_len = NLMSG_ALIGN(q->n.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static void list_attributes(const struct rtattr *a, int len, const struct rtattr **at, unsigned types)
{
    memset(at, 0, types * sizeof *at);
    for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
        if ((a->rta_type & NLA_TYPE_MASK) < types)
            at[a->rta_type & NLA_TYPE_MASK] = a;
}

static int parse(const struct nlmsghdr *n, uint32_t fixed, struct answer *a)
{
    if (n->nlmsg_len < NLMSG_LENGTH(fixed))
        return -1;
    a->n = n;
    list_attributes((const void *)((const char *)NLMSG_DATA(n) + NLMSG_ALIGN(fixed)),
                    (int)(n->nlmsg_len - NLMSG_LENGTH(fixed)), a->at, 64);
    return 0;
}

static bool get(const struct rtattr *a, void *out, uint32_t bytes)
{
    if (!a || RTA_PAYLOAD(a) < bytes)
        return false;
    memcpy(out, RTA_DATA(a), bytes);
    return true;
}

/* Reads into room of ANSWER bytes. Returns how many, 0 = nothing now, -errno. */
static int read_some(int fd, void *room)
{
    struct sockaddr_nl from;
    socklen_t len = sizeof from;
    ssize_t n = recvfrom(fd, room, ANSWER, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    return from.nl_pid == 0 ? (int)n : 0;
}

/* Reads what is left of an earlier question. */
static void discard(int fd, void *room)
{
    for (int i = 0; i < DUMPS && read_some(fd, room) > 0; i++)
        ;
}

/* Asks for one message. 0, or negative: -errno if that is what the kernel answers. */
static int ask(int fd, struct netlink_ask *q, void *room, uint32_t fixed, struct answer *a)
{
    discard(fd, room);
    if (send(fd, q, q->n.nlmsg_len, MSG_DONTWAIT) < 0)
        return -1;
    const int n = read_some(fd, room);
    const struct nlmsghdr *h = room;
    if (n <= 0 || !NLMSG_OK(h, (uint32_t)n))
        return -1;
    if (h->nlmsg_type == NLMSG_ERROR)
        return h->nlmsg_len < NLMSG_LENGTH(sizeof(struct nlmsgerr)) ? -1
                                                                    : ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
    return parse(h, fixed, a);
}

int rnl_netlink_open(enum rnl_netlink_use use)
{
    struct sockaddr_nl a = {.nl_family = AF_NETLINK};
    if (use != RNL_NETLINK_ASKS)
        a.nl_groups = RTMGRP_LINK;
    if (use == RNL_NETLINK_ALL_CHANGES)
        a.nl_groups |= RTMGRP_NEIGH | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    int error = errno;
    if (fd >= 0)
        close(fd);
    return rnl_fail_errno(RNL_ERR_SYSTEM, error, "the kernel's tables of neighbours cannot be asked (rtnetlink)");
}

/* ---- links ---- */

static bool has_carrier(const struct ifinfomsg *i)
{
    return (i->ifi_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

/* Reads one link into out, if it is the interface or a VLAN on it. */
static bool take_link(const struct answer *a, uint32_t interface, struct rnl_netlink_link *out)
{
    const struct ifinfomsg *i = NLMSG_DATA(a->n);
    const struct rtattr *info[IFLA_INFO_MAX + 1], *vlan[IFLA_VLAN_MAX + 1];
    uint32_t below = 0;
    *out = (struct rnl_netlink_link){.index = (uint32_t)i->ifi_index, .up = has_carrier(i)};
    if (!get(a->at[IFLA_ADDRESS], out->mac, sizeof out->mac) || !get(a->at[IFLA_MTU], &out->mtu, sizeof out->mtu))
        return false;
    if (out->index == interface)
        return true;
    if (!get(a->at[IFLA_LINK], &below, sizeof below) || below != interface || a->at[IFLA_LINK_NETNSID] ||
        !a->at[IFLA_LINKINFO])
        return false;
    list_attributes(RTA_DATA(a->at[IFLA_LINKINFO]), (int)RTA_PAYLOAD(a->at[IFLA_LINKINFO]), info, IFLA_INFO_MAX + 1);
    if (!info[IFLA_INFO_KIND] || !info[IFLA_INFO_DATA] || RTA_PAYLOAD(info[IFLA_INFO_KIND]) < 5 ||
        memcmp(RTA_DATA(info[IFLA_INFO_KIND]), "vlan", 5) != 0)
        return false;
    list_attributes(RTA_DATA(info[IFLA_INFO_DATA]), (int)RTA_PAYLOAD(info[IFLA_INFO_DATA]), vlan, IFLA_VLAN_MAX + 1);
    return get(vlan[IFLA_VLAN_ID], &out->tag, sizeof out->tag);
}

/* Reads a part of a dump. Returns true at its end. */
static bool take_links(const void *room, uint32_t bytes, uint32_t interface, struct rnl_netlink_link *out, int *n)
{
    struct answer a;
    struct rnl_netlink_link l;
    for (const struct nlmsghdr *h = room; NLMSG_OK(h, bytes); h = NLMSG_NEXT(h, bytes)) {
        if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
            return true;
        if (h->nlmsg_type != RTM_NEWLINK || parse(h, sizeof(struct ifinfomsg), &a) < 0 || !take_link(&a, interface, &l))
            continue;
        if (l.tag == 0)
            out[0] = l;
        else if (*n < RNL_NETLINK_LINKS)
            out[(*n)++] = l;
    }
    return false;
}

int rnl_netlink_links(int netlink, uint32_t interface, struct rnl_netlink_link *out)
{
    _Alignas(struct nlmsghdr) char room[ANSWER];
    struct netlink_ask q;
    int n = 1;
    out[0].index = 0;
    discard(netlink, room);
    ask_for(&q, RTM_GETLINK, NLM_F_DUMP, sizeof q.is.link);
    int got = send(netlink, &q, q.n.nlmsg_len, MSG_DONTWAIT) < 0 ? -errno : 1;
    for (int i = 0; i < DUMPS && got > 0; i++)
        if ((got = read_some(netlink, room)) > 0 && take_links(room, (uint32_t)got, interface, out, &n))
            break;
    if (got < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, -got, "the kernel does not list its interfaces");
    return out[0].index ? n : rnl_fail(RNL_ERR_UNREACHABLE, "the interface with number %u is gone", interface);
}

const struct rnl_netlink_link *rnl_netlink_link_find(const struct rnl_netlink_link *l, int n, uint32_t index)
{
    for (int i = 0; i < n && index; i++)
        if (l[i].index == index)
            return &l[i];
    return NULL;
}

/* ---- routes and neighbours ---- */

static bool is_ipv4(const uint8_t ip[16])
{
    return memcmp(ip, mapped, sizeof mapped) == 0;
}

static bool get_ip(const struct rtattr *a, bool v4, uint8_t ip[16])
{
    memcpy(ip, mapped, sizeof mapped);
    return get(a, v4 ? ip + 12 : ip, v4 ? 4 : 16);
}

/* Asks for the route to an address. 0, or negative as `ask`. */
static int ask_route(int netlink, const uint8_t ip[16], uint32_t scope, void *room, struct answer *a)
{
    struct netlink_ask q;
    const bool v4 = is_ipv4(ip);
    ask_for(&q, RTM_GETROUTE, 0, sizeof q.is.route);
    q.is.route.rtm_family = v4 ? AF_INET : AF_INET6;
    q.is.route.rtm_dst_len = v4 ? 32 : 128;
    attribute(&q, RTA_DST, v4 ? ip + 12 : ip, v4 ? 4 : 16);
    if (scope)
        attribute(&q, RTA_OIF, &scope, sizeof scope);
    const int status = ask(netlink, &q, room, sizeof(struct rtmsg), a);
    return status == 0 && a->n->nlmsg_type != RTM_NEWROUTE ? -1 : status;
}

int rnl_netlink_way(int netlink, const uint8_t ip[16], uint32_t scope, struct rnl_netlink_route *out)
{
    _Alignas(struct nlmsghdr) char room[ANSWER];
    struct answer a;
    const bool v4 = is_ipv4(ip);
    const struct rtattr *metrics[RTAX_MAX + 1];
    if (ask_route(netlink, ip, scope, room, &a) < 0)
        return -1;
    const struct rtmsg *r = NLMSG_DATA(a.n);
    memset(out, 0, sizeof *out);
    if (r->rtm_type != RTN_UNICAST || !get(a.at[RTA_OIF], &out->link, sizeof out->link) ||
        !get_ip(a.at[RTA_PREFSRC], v4, out->from) || a.at[RTA_VIA] || a.at[RTA_ENCAP])
        return -1;
    if (!get_ip(a.at[RTA_GATEWAY], v4, out->next))
        memcpy(out->next, ip, 16);
    if (a.at[RTA_METRICS]) {
        list_attributes(RTA_DATA(a.at[RTA_METRICS]), (int)RTA_PAYLOAD(a.at[RTA_METRICS]), metrics, RTAX_MAX + 1);
        (void)get(metrics[RTAX_MTU], &out->mtu, sizeof out->mtu);
    }
    return 0;
}

bool rnl_netlink_is_down(int netlink, const uint8_t ip[16], uint32_t scope)
{
    _Alignas(struct nlmsghdr) char room[ANSWER];
    struct netlink_ask q;
    struct answer a;
    uint32_t link = 0;
    const int status = ask_route(netlink, ip, scope, room, &a);
    if (status < 0)
        return status == -ENETUNREACH || status == -EHOSTUNREACH || status == -ENETDOWN;
    if (!get(a.at[RTA_OIF], &link, sizeof link))
        return false;
    ask_for(&q, RTM_GETLINK, 0, sizeof q.is.link);
    q.is.link.ifi_index = (int)link;
    if (ask(netlink, &q, room, sizeof(struct ifinfomsg), &a) < 0 || a.n->nlmsg_type != RTM_NEWLINK)
        return false;
    return !has_carrier(NLMSG_DATA(a.n));
}

int rnl_netlink_neighbour(int netlink, uint32_t link, const uint8_t ip[16], uint8_t mac[6])
{
    _Alignas(struct nlmsghdr) char room[ANSWER];
    enum { GOOD = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT };
    struct netlink_ask q;
    struct answer a;
    const bool v4 = is_ipv4(ip);
    ask_for(&q, RTM_GETNEIGH, 0, sizeof q.is.neighbour);
    q.is.neighbour.ndm_family = v4 ? AF_INET : AF_INET6;
    q.is.neighbour.ndm_ifindex = (int)link;
    attribute(&q, NDA_DST, v4 ? ip + 12 : ip, v4 ? 4 : 16);
    if (ask(netlink, &q, room, sizeof(struct ndmsg), &a) < 0 || a.n->nlmsg_type != RTM_NEWNEIGH)
        return -1;
    const struct ndmsg *n = NLMSG_DATA(a.n);
    return n->ndm_state & GOOD && get(a.at[NDA_LLADDR], mac, 6) ? 0 : -1;
}

/* ---- changes ---- */

static int change_of(const struct nlmsghdr *h, uint8_t ip[16])
{
    struct answer a;
    switch (h->nlmsg_type) {
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
        if (parse(h, sizeof(struct ndmsg), &a) < 0)
            return 0;
        const struct ndmsg *n = NLMSG_DATA(h);
        return (n->ndm_family == AF_INET || n->ndm_family == AF_INET6) &&
                       get_ip(a.at[NDA_DST], n->ndm_family == AF_INET, ip)
                   ? RNL_NETLINK_CHANGED_NEIGHBOUR
                   : 0;
    case RTM_NEWLINK:
    case RTM_DELLINK:
        return RNL_NETLINK_CHANGED_ALL | RNL_NETLINK_CHANGED_LINKS;
    default:
        return RNL_NETLINK_CHANGED_ALL; /* routes and addresses */
    }
}

int rnl_netlink_change(int changes, uint8_t ip[16])
{
    _Alignas(struct nlmsghdr) char room[ANSWER];
    const int n = read_some(changes, room);
    uint32_t bytes = n > 0 ? (uint32_t)n : 0;
    int found = n == -ENOBUFS ? RNL_NETLINK_CHANGED_ALL | RNL_NETLINK_CHANGED_LINKS : 0, neighbours = 0;
    for (const struct nlmsghdr *h = (const void *)room; NLMSG_OK(h, bytes); h = NLMSG_NEXT(h, bytes)) {
        const int one = change_of(h, ip);
        neighbours += one == RNL_NETLINK_CHANGED_NEIGHBOUR;
        found |= one;
    }
    return neighbours > 1 ? found | RNL_NETLINK_CHANGED_ALL : found; /* there is room to name one */
}
