/* SPDX-License-Identifier: BSD-3-Clause
 *
 * xdp.h - net/socket/socket.h over AF_XDP: a UDP socket of the kernel, and beside it rings through which datagrams of
 * the same port leave and arrive without the kernel's network code. What the rings cannot do goes by the UDP socket:
 * other interfaces, neighbours that are not known yet, long runs (segmentation offload is faster there), fragments,
 * datagrams longer than the link takes. So it goes on without rings, too, per destination and in the middle of a job.
 *
 * It needs no privilege: who has one opens the queue (queue.h) and passes two descriptors. */
#ifndef RNL_NET_SOCKET_XDP_XDP_H
#define RNL_NET_SOCKET_XDP_XDP_H

#include "net/socket/socket.h"

struct rnl_xdp_options { /* 0 = the default */
    uint32_t run_most;   /* datagrams of a run that goes by the ring, not by segmentation offload */
    /* The length that a datagram claims, 0 = none: cuts runs that a virtual wire delivers in one frame. */
    uint32_t (*claims)(const void *at, uint32_t bytes);
};

/* `kernel` is a kernel socket (kernel.h) with a port for which the queue was opened; it and the descriptor of the
 * AF_XDP socket belong to the new socket from success on, the memory's stays the caller's. 0, RNL_ERR_ARG,
 * RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM, RNL_ERR_UNREACHABLE (the interface is gone), RNL_ERR_UNSUPPORTED. */
int rnl_xdp_socket_new(struct rnl_socket *kernel, int socket, int memory, const struct rnl_xdp_options *options,
                       struct rnl_socket **out);

struct rnl_xdp_facts {
    uint32_t mode, interface, queue;       /* enum rnl_xdp_mode of area.h */
    uint8_t works;                         /* 0 = everything goes by the kernel; `why` says why */
    struct rnl_socket_frames frames;       /* by the rings */
    uint64_t sent_kernel, received_kernel; /* datagrams and runs by the kernel's socket */
    char why[160];
};
void rnl_xdp_socket_facts(const struct rnl_socket *s, struct rnl_xdp_facts *out);
/* True if a socket is of this kind. */
bool rnl_xdp_socket_is(const struct rnl_socket *s);

#endif
