/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame.h - Ethernet frames with a UDP datagram, pure: the headers in front of what is sent, and the checks of what
 * came. Anybody on the wire writes frames, so rnl_xdp_frame_read believes no length that the frame does not have.
 *
 *     bytes   0        14 (18)               34 (38), 54 (58)      42 (46), 62 (66)
 *             +---------+---------------------+---------------------+-----------------
 *             | Ethernet| IPv4, 20, no options| UDP                 | datagram
 *             | (802.1Q)| IPv6, 40, no further| length and checksum |
 *             +---------+---------------------+---------------------+-----------------
 *
 * The sender writes all fields; the checksum is always there. A frame whose sender left the checksum to a card that
 * never came (a virtual wire) has the sum of the pseudo header in its place, and passes, too. */
#ifndef RNL_NET_SOCKET_XDP_FRAME_H
#define RNL_NET_SOCKET_XDP_FRAME_H

#include "net/socket/socket.h"

enum {
    RNL_XDP_ETHERNET = 14,
    RNL_XDP_TAG = 4, /* bytes of an 802.1Q tag */
    RNL_XDP_HEAD_MOST = RNL_XDP_ETHERNET + RNL_XDP_TAG + 40 + 8,
    RNL_XDP_FRAME_LEAST = 60, /* shorter frames are filled with zeros */
    RNL_XDP_TAG_NONE = 0
};

/* The headers of the datagrams from one address to another, to be copied in front of each. */
struct rnl_xdp_head {
    uint8_t at[RNL_XDP_HEAD_MOST];
    uint8_t bytes, ip; /* ip: where the IP header begins */
    bool v6;
    uint32_t sum;    /* of what the checksum of UDP covers besides lengths and datagram */
    uint32_t ip_sum; /* of the IPv4 header without its length and its ECN bits */
};

/* tag: the VLAN, 1 to 4094, or RNL_XDP_TAG_NONE. Both addresses are IPv4 (mapped) or neither is. */
void rnl_xdp_head_make(struct rnl_xdp_head *h, const uint8_t to_mac[6], const uint8_t from_mac[6], uint16_t tag,
                       const struct rnl_socket_addr *to, const struct rnl_socket_addr *from);
/* Writes a frame: the headers and `bytes` of datagram, which fit into 64 KiB with them; room for at least
 * RNL_XDP_FRAME_LEAST. Returns the length of the frame. */
uint32_t rnl_xdp_frame_write(const struct rnl_xdp_head *h, void *frame, const void *datagram, uint32_t bytes,
                             uint8_t ecn);

struct rnl_xdp_datagram {            /* in a frame that was read */
    struct rnl_socket_addr from, to; /* without scopes */
    uint32_t at, bytes;              /* where in the frame, and how long */
    uint16_t tag;
    uint8_t ecn;
};
/* Returns true and the datagram, or false: the frame is not one with a whole UDP datagram whose checksums are right. */
bool rnl_xdp_frame_read(const void *frame, uint32_t bytes, struct rnl_xdp_datagram *out);

#endif
