/* SPDX-License-Identifier: BSD-3-Clause
 *
 * udp.h - the datagram transport (transport/contract.h) over one socket of transport/socket.h: batches out, batches in,
 * addresses of peers. It neither knows nor checks what packets hold; order, losses, trust and path lengths are
 * reliable/'s. Whose sockets they are, the kernel's or a virtual host's, it cannot tell.
 *
 * Beyond the contract:
 *   - Packets go out at flush, or when no room is left; neighbours of one length to one peer as one run.
 *   - A second reserve before the commit of the first is RNL_BUSY.
 *   - connect takes nothing but the address: the peer hears nothing of it.
 *   - deadline is when to flush again what the host did not take; arrivals have no deadline. */
#ifndef RNL_TRANSPORT_UDP_UDP_H
#define RNL_TRANSPORT_UDP_UDP_H

#include "transport/contract.h"
#include "transport/socket.h"

struct rnl_udp_options { /* 0 = the default */
    uint32_t out_bytes;  /* room for packets that are composed or not gone; at least one run is kept in any case */
    uint32_t in_buffers; /* each holds a datagram or a merged run until its last view is released */
};

/* The counts of a transport, from its beginning. */
struct rnl_udp_counts {
    uint64_t sent, calls;    /* packets; runs */
    uint64_t refused;        /* packets that the host did not take on, for another reason than want of room */
    uint64_t full;           /* how often the host had no room */
    uint64_t received, cut;  /* packets; of them without their end */
    uint64_t from_strangers; /* packets, from addresses that no connected peer has */
};

/* What rnl_addr holds for this transport. */
void rnl_udp_addr_of(const struct rnl_socket_addr *, struct rnl_addr *out);
/* 0, RNL_ERR_ARG. */
int rnl_udp_addr_read(const struct rnl_addr *, struct rnl_socket_addr *out);

/* env stays the caller's and must outlive the transport; the socket is the transport's from success on. options may be
 * NULL. 0, RNL_ERR_NO_MEMORY. */
int rnl_udp_transport_new(struct rnl_env *env, struct rnl_socket *socket, const struct rnl_udp_options *options,
                          struct rnl_transport **out);
void rnl_udp_counts(const struct rnl_transport *, struct rnl_udp_counts *out);

#endif
