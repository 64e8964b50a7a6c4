/* SPDX-License-Identifier: BSD-3-Clause
 *
 * socket.h - a rank's socket: one of the virtual network, whose calls take the rank's time and are steps at which it
 * may crash. What it has when it crashes never leaves. */
#ifndef RNL_CLUSTER_SOCKET_H
#define RNL_CLUSTER_SOCKET_H

#include "transport/socket.h"

struct rnl_guest;

enum { RNL_PORT_FIRST = 7000 }; /* of the first rank of a host */

/* *out is set to NULL when it is closed. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY. */
int rnl_vsocket_open(struct rnl_guest *, struct rnl_socket **out);
/* Its rank is gone: from now on it takes nothing and brings nothing. Its close is still its owner's. */
void rnl_vsocket_kill(struct rnl_socket *);
/* Where that rank is found. */
struct rnl_socket_addr rnl_vsocket_addr(const struct rnl_guest *);
/* ... by the nth address of its host. */
struct rnl_socket_addr rnl_vsocket_nth_addr(const struct rnl_guest *, unsigned nth);

#endif
