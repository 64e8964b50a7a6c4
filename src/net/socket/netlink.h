/* SPDX-License-Identifier: BSD-3-Clause
 *
 * netlink.h - what the kernel knows of links, routes and neighbours, asked by rtnetlink, and its word of each change.
 * None of it takes a privilege, and no call waits: the kernel answers within the call that asks. */
#ifndef RNL_NET_SOCKET_NETLINK_H
#define RNL_NET_SOCKET_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

enum { RNL_NETLINK_LINKS = 16 }; /* an interface and the VLANs on it */

struct rnl_netlink_link {
    uint32_t index, mtu;
    uint16_t tag; /* of the VLAN; 0 = the interface itself */
    uint8_t mac[6];
    bool up; /* administratively, and with a carrier */
};
/* Lists the interface, which comes first, and its VLANs. Returns how many, RNL_ERR_UNREACHABLE (the interface is gone),
 * RNL_ERR_SYSTEM. */
int rnl_netlink_links(int netlink, uint32_t interface, struct rnl_netlink_link *out);
const struct rnl_netlink_link *rnl_netlink_link_find(const struct rnl_netlink_link *l, int n, uint32_t index);

struct rnl_netlink_route {      /* to an address */
    uint32_t link, mtu;         /* mtu: of the route, 0 = that of the link */
    uint8_t from[16], next[16]; /* our address, mapped if IPv4; the neighbour: a gateway, or the address itself */
};
/* scope: the interface of a link-local address, or 0. 0, or negative without a record: there is no such way, or it is
 * none of a plain unicast route. */
int rnl_netlink_way(int netlink, const uint8_t ip[16], uint32_t scope, struct rnl_netlink_route *out);
/* The hardware address of a neighbour, where the kernel has one that is not known to be wrong. 0, or negative without a
 * record. */
int rnl_netlink_neighbour(int netlink, uint32_t link, const uint8_t ip[16], uint8_t mac[6]);

/* Whether datagrams to this address leave by an interface that is down or has no carrier, or have no route. False where
 * that cannot be told. */
bool rnl_netlink_is_down(int netlink, const uint8_t ip[16], uint32_t scope);

/* What a socket is opened for: to ask by, or to be told of changes, of links alone or of all that is here. Negative: a
 * status. */
enum rnl_netlink_use { RNL_NETLINK_ASKS, RNL_NETLINK_LINK_CHANGES, RNL_NETLINK_ALL_CHANGES };
int rnl_netlink_open(enum rnl_netlink_use use);

enum { RNL_NETLINK_CHANGED_NEIGHBOUR = 1, RNL_NETLINK_CHANGED_ALL = 2, RNL_NETLINK_CHANGED_LINKS = 4 };
/* Reads the next change: 0 = none, else bits of the above. NEIGHBOUR: the one with this address. */
int rnl_netlink_change(int changes, uint8_t ip[16]);

#endif
