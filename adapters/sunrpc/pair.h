/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair.h - the link between two processes of one host: cells and bulk areas in a segment (segment.h), and a connected
 * Unix socket as doorbell, whose end of file is the news that the peer is gone. */
#ifndef RNL_RPC_PAIR_H
#define RNL_RPC_PAIR_H

#include "link.h"
#include "segment.h"

/* Takes over `segment`, also if it fails; `fd`, the doorbell, stays the caller's. Returns NULL if there is no memory.
 * `peer_barrier`: the peer is registered for membarrier, and will use it. */
struct rnl_rpc_link *rnl_rpc_pair_new(struct rnl_rpc_segment *segment, int fd, bool server, bool peer_barrier);

#endif
