/* SPDX-License-Identifier: BSD-3-Clause
 *
 * filter.h - what decides in the kernel, for each frame that an interface receives, whether it goes to one of our
 * sockets: a program of some 60 instructions, assembled here and attached to the interface by a link, which ends with
 * its last descriptor. It takes whole UDP datagrams (no options, no fragments) that are sent to this interface's
 * hardware address, on one queue, and to an address and port that were listed. Everything else is the kernel's. */
#ifndef RNL_NET_SOCKET_XDP_FILTER_H
#define RNL_NET_SOCKET_XDP_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct rnl_xdp_filter {
    int program, link, sockets, places; /* descriptors, -1 = none; two maps: sockets by place, places by address */
};

/* frame_most: longer frames are left to the kernel. All of it needs CAP_BPF and CAP_NET_ADMIN. 0, RNL_ERR_SYSTEM. */
int rnl_xdp_filter_make(struct rnl_xdp_filter *f, uint32_t sockets, uint32_t addresses, const uint8_t mac[6],
                        uint32_t frame_most);
/* generic: by the kernel's hook for all interfaces, otherwise by the driver's. 0, or a negative errno without a record,
 * since another way may be tried. */
int rnl_xdp_filter_attach(struct rnl_xdp_filter *f, uint32_t interface, bool generic);
/* Sends what comes on this queue for address and port to `socket`, whose place is `place`. 0, RNL_ERR_SYSTEM. */
int rnl_xdp_filter_add(const struct rnl_xdp_filter *f, uint32_t place, int socket);
int rnl_xdp_filter_address(const struct rnl_xdp_filter *f, const uint8_t ip[16], uint16_t port, uint32_t queue,
                           uint32_t place);
void rnl_xdp_filter_end(struct rnl_xdp_filter *f);

#endif
