/* SPDX-License-Identifier: BSD-3-Clause
 *
 * udp.h - the datagram transport (net/datagram/transport.h) over one socket of net/socket/socket.h: batches out,
 * batches in, addresses of peers. It neither knows nor checks what packets hold, and cannot tell a socket of the kernel
 * from one of a virtual host.
 *
 * Beyond the contract:
 *   - Packets are sent at flush, or when no room is left; neighbours of one length to one address go as one run.
 *   - Adding a peer sends nothing.
 *   - deadline is when to flush again what the host did not take; arrivals have no deadline. */
#ifndef RNL_NET_DATAGRAM_UDP_H
#define RNL_NET_DATAGRAM_UDP_H

#include "net/datagram/transport.h"
#include "net/socket/socket.h"

struct rnl_udp_options { /* 0 = the default */
    uint32_t out_bytes;  /* of the send buffer; it always holds at least one run */
    uint32_t in_buffers; /* receive buffers; each holds a datagram or a merged run until its last view is released */
};

/* The counts of a transport, from its beginning. */
struct rnl_udp_counts {
    uint64_t sent, calls;    /* packets, and the runs that they went in */
    uint64_t refused;        /* packets that the host will never take, for another reason than lack of room */
    uint64_t full;           /* how often the host had no room */
    uint64_t received, cut;  /* packets, and those of them without their end */
    uint64_t from_strangers; /* packets from addresses that no peer has */
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
