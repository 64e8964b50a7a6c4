/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel.h - net/socket/socket.h over UDP sockets of Linux. Features that this kernel lacks are not used;
 * rnl_kernel_socket_facts says which are.
 *
 * There is one bound descriptor, of the family of its address: an IPv4 socket for an IPv4 address, an IPv6 socket for
 * any other. The unspecified address :: takes both families, IPv4 in its mapped form, where the host has IPv6, and IPv4
 * alone elsewhere. Two sockets for the two families would be two calls to find that nothing has arrived.
 *
 * Errors of earlier datagrams are looked for once a send, a recv or an arm has met a sign of one, so that `error` costs
 * no system call otherwise. */
#ifndef RNL_NET_SOCKET_KERNEL_H
#define RNL_NET_SOCKET_KERNEL_H

#include "net/socket/socket.h"

enum rnl_kernel_feature {
    RNL_KERNEL_SEGMENT = 1, /* UDP_SEGMENT: runs go out in one call */
    RNL_KERNEL_MERGE = 2,   /* UDP_GRO: runs come in merged */
    RNL_KERNEL_ECN = 4,     /* the ECN bits of arrivals can be read, and those of datagrams sent can be set */
    RNL_KERNEL_ERRORS = 8,  /* IP_RECVERR: an error says which address it is about, and who reports it */
    RNL_KERNEL_PROBE = 16,  /* IP_PMTUDISC_PROBE: datagrams are never fragmented, whatever the kernel believes */
    RNL_KERNEL_IPV4 = 32,
    RNL_KERNEL_IPV6 = 64,
    RNL_KERNEL_CONNECT = 128, /* peers that are sent to often have connected sockets on the same port */
    RNL_KERNEL_BELL = 256     /* io_uring sets a word when something arrives; known once `bell` was called */
};

enum {
    RNL_KERNEL_RECEIVE_BYTES = 4 << 20, /* of the receive buffer that is asked for; the host gives what it allows */
    /* Descriptors that a program must still be able to open after a socket has opened one that is a gain and no need
     * (the connected sockets, their epoll, the ring). So a program near its limit is slower, and does not fail. */
    RNL_KERNEL_SPARE = 16
};

struct rnl_kernel_options { /* 0 = the default */
    uint32_t receive_bytes; /* of the receive buffer to ask for, by default RNL_KERNEL_RECEIVE_BYTES */
    uint32_t without;       /* RNL_KERNEL_SEGMENT .. PROBE, CONNECT, BELL: features that are not to be used */
    /* Returns how long a datagram claims to be, 0 = it does not say. If set, datagrams that arrive one at a time are
     * received by recvfrom, which is quicker than recvmsg, and a merged run is cut by the claim of its first datagram,
     * as far as a run of ours can be so. Where the kernel says how a run has to be cut, only that counts. */
    uint32_t (*claims)(const void *at, uint32_t bytes);
};

struct rnl_kernel_facts {
    uint32_t features; /* RNL_KERNEL_*: those in use */
    uint32_t receive_asked,
        receive_bytes;      /* of its receive buffer: requested, and as the kernel counts it, about twice as much */
    uint32_t connects;      /* how often a socket was connected to a peer */
    uint32_t rings, unrung; /* signals of its doorbell; times that something had arrived without a signal */
};

/* Opens a socket bound to `addr`, whose port may be 0, which takes a free one. options may be NULL. 0, RNL_ERR_ARG (not
 * an address of this host, or its port is taken), RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM. */
int rnl_kernel_socket_open(const struct rnl_socket_addr *addr, const struct rnl_kernel_options *options,
                           struct rnl_socket **out);
/* Does the same with a descriptor that somebody else has bound; it belongs to the socket if the call succeeds. 0,
 * RNL_ERR_ARG (no UDP socket, or one that is not bound), RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM. */
int rnl_kernel_socket_adopt(int fd, const struct rnl_kernel_options *options, struct rnl_socket **out);
void rnl_kernel_socket_facts(const struct rnl_socket *, struct rnl_kernel_facts *out);

#endif
