/* SPDX-License-Identifier: BSD-3-Clause
 *
 * routes.c - a table of destinations, by address. */
#include "net/socket/xdp/routes.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"

enum {
    PROBES = 4,          /* places of the table where an address can be */
    BY_KERNEL_MS = 1000, /* one datagram of so much time goes by the kernel */
    ASK_MS = 50,         /* until a neighbour that is not known yet is asked for again without an announcement */
    CHANGES = 64         /* messages that are read in one call */
};
static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

int rnl_xdp_routes_begin(struct rnl_xdp_routes *r, uint32_t interface, const struct rnl_socket_addr *self,
                         uint32_t frame_most)
{
    *r = (struct rnl_xdp_routes){
        .ask = -1, .changes_fd = -1, .interface = interface, .self = *self, .mtu_most = frame_most, .changes = 1};
    r->bound_to_all = memcmp(self->ip, (const uint8_t[16]){0}, 16) == 0 ||
                      memcmp(self->ip, (const uint8_t[16]){[10] = 0xff, 0xff}, 16) == 0;
    r->route = calloc(RNL_XDP_ROUTES, sizeof *r->route);
    if (!r->route)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the routes of an AF_XDP socket");
    r->changes_fd =
        rnl_netlink_open(RNL_NETLINK_ALL_CHANGES); /* before the first question, or a change between is missed */
    r->ask = r->changes_fd < 0 ? r->changes_fd : rnl_netlink_open(RNL_NETLINK_ASKS);
    r->links = r->ask < 0 ? r->ask : rnl_netlink_links(r->ask, interface, r->link);
    if (r->links >= 0)
        return 0;
    int status = r->links;
    rnl_xdp_routes_end(r);
    return status;
}

void rnl_xdp_routes_end(struct rnl_xdp_routes *r)
{
    if (r->ask >= 0)
        close(r->ask);
    if (r->changes_fd >= 0)
        close(r->changes_fd);
    free(r->route);
    r->route = NULL;
    r->ask = r->changes_fd = -1;
}

static void forget_neighbour(struct rnl_xdp_routes *r, const uint8_t ip[16])
{
    for (uint32_t i = 0; i < RNL_XDP_ROUTES; i++)
        if (r->route[i].used && memcmp(r->route[i].next, ip, 16) == 0)
            r->route[i].known = 0;
}

bool rnl_xdp_routes_follow(struct rnl_xdp_routes *r, uint32_t now_ms, bool now)
{
    uint8_t ip[16];
    int all = now ? RNL_NETLINK_CHANGED_ALL | RNL_NETLINK_CHANGED_LINKS : 0;
    if (now_ms == r->look_ms && !now)
        return r->links > 0;
    r->look_ms = now_ms;
    for (int i = 0, what = 1; i < CHANGES && what; i++) {
        what = rnl_netlink_change(r->changes_fd, ip);
        if (what == RNL_NETLINK_CHANGED_NEIGHBOUR)
            forget_neighbour(r, ip);
        all |= what;
    }
    if (all & RNL_NETLINK_CHANGED_ALL)
        r->changes++;
    if (all & RNL_NETLINK_CHANGED_LINKS)
        r->links = rnl_netlink_links(r->ask, r->interface, r->link);
    return r->links > 0;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Asks the kernel about a destination. Returns why it is the kernel that sends there, or NULL. */
static const char *ask(struct rnl_xdp_routes *r, struct rnl_xdp_route *d)
{
    struct rnl_netlink_route way;
    struct rnl_socket_addr from = r->self;
    uint8_t mac[6];
    d->most = 0;
    d->waits = false;
    memset(d->next, 0, sizeof d->next);
    if (rnl_netlink_way(r->ask, d->to.ip, d->to.scope, &way) < 0)
        return "there is no plain route to it";
    const struct rnl_netlink_link *l = rnl_netlink_link_find(r->link, r->links, way.link);
    if (!l)
        return "the route to it leads through another interface";
    if (!l->up || !r->link[0].up)
        return "the interface is down";
    memcpy(d->next, way.next, sizeof d->next);
    if (rnl_netlink_neighbour(r->ask, l->index, way.next, mac) < 0) {
        d->waits = true;
        return "the kernel knows no hardware address of its neighbour";
    }
    if (r->bound_to_all)
        memcpy(from.ip, way.from, sizeof from.ip);
    else if (memcmp(from.ip, mapped, sizeof mapped) == 0 && memcmp(way.from, mapped, sizeof mapped) != 0)
        return "a socket of IPv4 does not reach it";
    rnl_xdp_head_make(&d->head, mac, l->mac, l->tag, &d->to, &from);
    const uint32_t heads = d->head.bytes - (uint32_t)d->head.ip;
    uint32_t mtu = least(l->mtu, r->link[0].mtu);
    mtu = least(way.mtu ? least(mtu, way.mtu) : mtu, r->mtu_most - d->head.ip);
    d->most = mtu > heads ? mtu - heads : 0;
    return NULL;
}

static uint32_t hash_of(const struct rnl_socket_addr *a)
{
    uint64_t word[3], h = 0;
    memcpy(word, a, sizeof word);
    for (int i = 0; i < 3; i++) {
        h = (h ^ word[i]) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 29;
    }
    return (uint32_t)(h ^ h >> 32);
}

static struct rnl_xdp_route *place_of(struct rnl_xdp_routes *r, const struct rnl_socket_addr *to)
{
    const uint32_t first = hash_of(to);
    struct rnl_xdp_route *d = NULL;
    for (uint32_t i = 0; i < PROBES; i++) {
        struct rnl_xdp_route *at = &r->route[(first + i) % RNL_XDP_ROUTES];
        if (at->used && rnl_socket_addr_equal(&at->to, to))
            return at;
        if (!d || (d->used && !at->used))
            d = at;
    }
    *d = (struct rnl_xdp_route){.to = *to, .used = true};
    return d;
}

const struct rnl_xdp_route *rnl_xdp_routes_find(struct rnl_xdp_routes *r, const struct rnl_socket_addr *to,
                                                uint32_t bytes, uint32_t now_ms)
{
    struct rnl_xdp_route *d = place_of(r, to);
    if (d->known != r->changes || (d->waits && now_ms - d->ask_ms >= ASK_MS)) {
        const char *why = ask(r, d);
        r->news += d->known == 0 || why != d->why;
        d->why = why;
        d->known = r->changes;
        d->ask_ms = now_ms;
    }
    if (bytes > d->most)
        return NULL;
    if (now_ms - d->by_kernel_ms >= BY_KERNEL_MS) {
        d->by_kernel_ms = now_ms;
        return NULL;
    }
    return d;
}

uint32_t rnl_xdp_routes_scope(const struct rnl_xdp_routes *r, uint16_t tag)
{
    for (int i = 0; i < r->links; i++)
        if (r->link[i].tag == tag)
            return r->link[i].index;
    return 0;
}
