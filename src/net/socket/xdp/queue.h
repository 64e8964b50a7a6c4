/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue.h - opens one queue of an interface for the endpoints of a host: the only part that needs a privilege
 * (CAP_NET_RAW, CAP_BPF, CAP_NET_ADMIN of the initial user namespace). It makes the memory, a socket for each endpoint
 * and the filter, and hands out descriptors; it never reads what endpoints write. */
#ifndef RNL_NET_SOCKET_XDP_QUEUE_H
#define RNL_NET_SOCKET_XDP_QUEUE_H

#include "net/socket/xdp/area.h"

struct rnl_xdp_queue;

/* Opens this queue for `endpoints` UDP sockets of this host, at most RNL_XDP_ENDPOINTS_MAX, whose ports these are.
 * Datagrams to one of them at an address that the interface has now are redirected from now on. The driver's hook is
 * tried first, without a copy, then with one; then the kernel's, which comes first for veth, where it is the faster
 * one. mode: that one only. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM (no privilege, another program is
 * attached, another process has the queue), RNL_ERR_UNSUPPORTED (built without, or a kernel without AF_XDP). */
int rnl_xdp_queue_open(const char *interface, uint32_t queue, enum rnl_xdp_mode mode, const uint16_t *ports,
                       uint32_t endpoints, struct rnl_xdp_queue **out);
/* 0 if this process may open queues, as far as its privileges go; else RNL_ERR_SYSTEM, RNL_ERR_UNSUPPORTED. */
int rnl_xdp_queue_allowed(void);
/* The name of the interface by which this kernel sends to an address: of a VLAN the one below it. `name` has room for
 * IF_NAMESIZE (16) bytes. 0, RNL_ERR_UNREACHABLE (there is no such way, or it is none of Ethernet), RNL_ERR_SYSTEM. */
int rnl_xdp_interface_to(const uint8_t ip[16], char name[16]);
/* The descriptors of one endpoint, for rnl_xdp_socket_new in whichever process: its AF_XDP socket, which is the
 * caller's from now on and can be asked for once, and the memory, which stays the queue's. */
int rnl_xdp_queue_socket(struct rnl_xdp_queue *q, uint32_t endpoint);
int rnl_xdp_queue_memory(const struct rnl_xdp_queue *q);
/* How many further queues the interface puts frames into that come, which the kernel then has. On a virtual wire the
 * kernel's hook counts all frames to the first one. */
uint32_t rnl_xdp_queue_others(const struct rnl_xdp_queue *q);
enum rnl_xdp_mode rnl_xdp_queue_mode(const struct rnl_xdp_queue *q);
/* "generic", "native, copies", "native, zero copy" */
const char *rnl_xdp_mode_text(enum rnl_xdp_mode mode);
/* Detaches the filter: from now on the kernel has all frames. The endpoints' sockets stay as they are. */
void rnl_xdp_queue_close(struct rnl_xdp_queue *q);

#endif
