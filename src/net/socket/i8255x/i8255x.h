/* SPDX-License-Identifier: BSD-3-Clause
 *
 * i8255x.h - net/socket/socket.h over cards of Intel's 8255x family that this process drives itself: the UFXP of the
 * AMUDP paper. A datagram is a UDP datagram of IPv6 in one frame, written and checked by net/socket/xdp/frame.h.
 *
 * A card's address is the link-local one of its hardware address (fe80:: and its EUI-64), so a peer's hardware address
 * is in its address and nobody has to be asked for it. Its scope is the number of its wire. A socket has one port for
 * all of its cards, and a datagram goes by the card of the wire that its address names: the addresses of a peer with
 * several cards are its paths (net/flow/paths.h), which is how a flow leaves a card that died.
 *
 * It is polled, and has a descriptor to sleep on (has_fd) where vfio passes on the interrupts of all of its cards. */
#ifndef RNL_NET_SOCKET_I8255X_I8255X_H
#define RNL_NET_SOCKET_I8255X_I8255X_H

#include "net/socket/i8255x/grant.h"
#include "net/socket/socket.h"

/* Opens a socket on n cards. `port` is the same for all ranks that are to meet. The grants' descriptors device,
 * registers and memory are the socket's from success on; where there are more in them, they stay the caller's.
 * 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM (a card does not work), RNL_ERR_UNSUPPORTED. */
int rnl_i8255x_socket_new(const struct rnl_i8255x_grant *cards, uint32_t n, uint16_t port, struct rnl_socket **out);

/* The address of the card with this hardware address. */
void rnl_i8255x_address_of(const uint8_t mac[6], uint32_t wire, uint16_t port, struct rnl_socket_addr *out);
/* The address of a card; that of the first is rnl_socket.self. */
void rnl_i8255x_socket_address(const struct rnl_socket *s, uint32_t card, struct rnl_socket_addr *out);

struct rnl_i8255x_facts { /* of one card */
    bool gone, link_up;
    uint64_t sent, received, refused; /* frames; refused: came and were no datagrams for us */
    uint64_t rx_restarts, tx_restarts;
};
/* False: the socket has no card of this number, from 0. */
bool rnl_i8255x_socket_facts(const struct rnl_socket *s, uint32_t card, struct rnl_i8255x_facts *out);

#endif
