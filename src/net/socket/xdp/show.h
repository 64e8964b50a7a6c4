/* SPDX-License-Identifier: BSD-3-Clause
 *
 * show.h - tells `runnel info --pid` whether datagrams go by the rings, and of each destination that goes by the kernel
 * why it does. */
#ifndef RNL_NET_SOCKET_XDP_SHOW_H
#define RNL_NET_SOCKET_XDP_SHOW_H

#include "base/notes.h"
#include "net/socket/xdp/routes.h"
#include "net/socket/xdp/xdp.h"

/* Where there is no memory for it, what was shown before stays. */
void rnl_xdp_show(struct rnl_notes **notes, const struct rnl_xdp_facts *f, const struct rnl_xdp_routes *r);

#endif
