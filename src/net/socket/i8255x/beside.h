/* SPDX-License-Identifier: BSD-3-Clause
 *
 * beside.h - a socket over cards beside one of the kernel, as one: addresses whose scope is a wire of the cards go by
 * these, all others by the kernel, and arrivals of both come by one recv. So a peer's addresses of both kinds are paths
 * to it, and a flow that leaves a card that died goes on by another card or by the kernel.
 *
 * Who waits for the descriptor is woken by the interrupt of a card, where vfio passes it on. Through uio cards cannot
 * wake anybody: there a timer does, within NAP_NS, as long as a card works. */
#ifndef RNL_NET_SOCKET_I8255X_BESIDE_H
#define RNL_NET_SOCKET_I8255X_BESIDE_H

#include "net/socket/i8255x/i8255x.h"

/* Both sockets are the new one's from success on. 0, RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM. */
int rnl_i8255x_beside(struct rnl_socket *cards, struct rnl_socket *kernel, struct rnl_socket **out);

/* The socket over cards of such a socket, or NULL: it is of another kind. */
const struct rnl_socket *rnl_i8255x_beside_cards(const struct rnl_socket *s);

#endif
