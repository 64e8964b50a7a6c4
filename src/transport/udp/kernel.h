/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel.h - transport/socket.h over UDP sockets of Linux. What this kernel lacks is done without; rnl_kernel_facts
 * says what is in use.
 *
 * One descriptor, of the family of its address: an IPv4 socket for an IPv4 address, an IPv6 one for another. The
 * unspecified address :: takes both, IPv4 in its mapped form, where there is IPv6; else IPv4 alone. Two sockets for the
 * two families would be two calls to find that nothing has come.
 *
 * Beyond the table: what the network says about earlier datagrams is looked for once a send, a recv or an arm has met
 * a sign of it, so `error` costs nothing else. */
#ifndef RNL_TRANSPORT_UDP_KERNEL_H
#define RNL_TRANSPORT_UDP_KERNEL_H

#include "transport/socket.h"

enum rnl_kernel_feature {
    RNL_KERNEL_SEGMENT = 1, /* UDP_SEGMENT: runs go out in one call */
    RNL_KERNEL_MERGE = 2,   /* UDP_GRO: runs come in merged */
    RNL_KERNEL_ECN = 4,     /* the two bits of arrivals can be read, those of what goes out set */
    RNL_KERNEL_ERRORS = 8,  /* IP_RECVERR: whom an error is about, and who says so */
    RNL_KERNEL_PROBE = 16,  /* IP_PMTUDISC_PROBE: datagrams are never fragmented on their way, whatever it takes */
    RNL_KERNEL_IPV4 = 32,
    RNL_KERNEL_IPV6 = 64,
    RNL_KERNEL_CONNECT = 128, /* peers that are sent to often have connected sockets on the same port */
    RNL_KERNEL_BELL = 256     /* io_uring says in memory that something came; found out when `bell` is first called */
};

enum { RNL_KERNEL_RECEIVE_BYTES = 4 << 20 }; /* is asked for; the host gives what it allows */

struct rnl_kernel_options { /* 0 = the default */
    uint32_t receive_bytes; /* to ask for, RNL_KERNEL_RECEIVE_BYTES */
    uint32_t without;       /* RNL_KERNEL_SEGMENT .. PROBE, CONNECT, BELL: not to be used, though they are there */
    /* How long a datagram says that it is, 0 = it does not say, if all that come do: then what comes one at a time is
     * asked for by recvfrom, which is quicker than recvmsg, and a merged run is cut by what its first datagram says, as
     * far as a run of ours can be. Where the kernel says how a run is to be cut, that counts alone. */
    uint32_t (*claims)(const void *at, uint32_t bytes);
};

struct rnl_kernel_facts {
    uint32_t features;                     /* RNL_KERNEL_*: what is in use */
    uint32_t receive_asked, receive_bytes; /* of its receive buffer; as the kernel counts, which is about twice that */
    uint32_t connects;                     /* how often a socket was connected to a peer */
    uint32_t rings, unrung;                /* how often its bell was heard; what came without it */
};

/* A socket bound to `addr`; its port may be 0 here: any. options may be NULL. 0, RNL_ERR_ARG (not an address of this
 * host, or its port is taken), RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM. */
int rnl_kernel_socket_open(const struct rnl_socket_addr *addr, const struct rnl_kernel_options *options,
                           struct rnl_socket **out);
/* The same of a socket that was bound before, by somebody who gave it to us; fd is the socket's from success on. 0,
 * RNL_ERR_ARG (no UDP socket, or one that is not bound), RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM. */
int rnl_kernel_socket_adopt(int fd, const struct rnl_kernel_options *options, struct rnl_socket **out);
void rnl_kernel_socket_facts(const struct rnl_socket *, struct rnl_kernel_facts *out);

#endif
