/* SPDX-License-Identifier: BSD-3-Clause
 *
 * routes.h - which addresses are reached through the queue's interface, and by which headers. What is asked of the
 * kernel's tables is kept until the kernel announces a change. So that its table of neighbours stays true of those who
 * are sent to, one datagram of each second goes by the kernel: that makes it ask whether they are still there. */
#ifndef RNL_NET_SOCKET_XDP_ROUTES_H
#define RNL_NET_SOCKET_XDP_ROUTES_H

#include "net/socket/netlink.h"
#include "net/socket/xdp/frame.h"

enum { RNL_XDP_ROUTES = 1024 };

struct rnl_xdp_route { /* to one address and port */
    struct rnl_socket_addr to;
    struct rnl_xdp_head head;
    uint8_t next[16]; /* the neighbour, mapped if IPv4 */
    const char *why;  /* the kernel sends all of its datagrams; NULL = the ring does */
    uint32_t most;    /* bytes of the longest datagram by the ring; 0 = the kernel sends */
    uint32_t known;   /* the value of rnl_xdp_routes.changes when it was asked */
    uint32_t ask_ms, by_kernel_ms;
    bool used, waits; /* waits: for the neighbour, whose address the kernel finds out meanwhile */
};

struct rnl_xdp_routes {
    int ask, changes_fd;
    uint32_t interface, changes, look_ms, mtu_most;
    uint32_t news;               /* counts what became of the routes */
    struct rnl_socket_addr self; /* as the kernel's socket is bound */
    bool bound_to_all;
    struct rnl_netlink_link link[RNL_NETLINK_LINKS];
    int links;
    struct rnl_xdp_route *route;
};

/* self: the bound address, :: if there is none. mtu_most: bytes of the longest frame. 0, negative status. */
int rnl_xdp_routes_begin(struct rnl_xdp_routes *r, uint32_t interface, const struct rnl_socket_addr *self,
                         uint32_t frame_most);
void rnl_xdp_routes_end(struct rnl_xdp_routes *r);

/* Reads what has changed, at most once a millisecond. `now`: at once. False: the interface is gone. */
bool rnl_xdp_routes_follow(struct rnl_xdp_routes *r, uint32_t now_ms, bool now);
/* The route to an address, for one datagram of so many bytes; NULL: the kernel has to send it. */
const struct rnl_xdp_route *rnl_xdp_routes_find(struct rnl_xdp_routes *r, const struct rnl_socket_addr *to,
                                                uint32_t bytes, uint32_t now_ms);
/* The interface of a frame with this tag, for the scope of a link-local address; 0 = none. */
uint32_t rnl_xdp_routes_scope(const struct rnl_xdp_routes *r, uint16_t tag);

#endif
