/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair_internal.h - a pair's state, of pair.c, pair_in.c and pair_out.c. All of it is this process's own, and of its
 * forked children; what the peer can write lies in the segment only. */
#ifndef RNL_RPC_PAIR_INTERNAL_H
#define RNL_RPC_PAIR_INTERNAL_H

#include "pair.h"

#include <pthread.h>

#include "base/error.h"

static const uint64_t rnl_rpc_rest_ns = 35000000000u; /* the rest of a record comes within this time, as in libtirpc */

struct rnl_rpc_pair {
    struct rnl_rpc_link link; /* first */
    struct rnl_rpc_segment *segment;
    struct rnl_rpc_ring *out, *in;

    /* writing */
    uint64_t out_cell, out_cell_stop; /* next cell; the first that may not be written yet */
    uint64_t out_bulk, out_bulk_stop; /* the same in bytes of the bulk area */
    unsigned char *part;              /* where the open part begins; NULL = none is open */
    uint32_t part_bytes;              /* wanted of the bulk area for the next part; 0 = a cell is enough */
    unsigned parts;                   /* of the record, handed over */
    uint32_t rung_record, rung_room;  /* the arming that was rung for last */
    pthread_mutex_t writer;           /* who writes a record, if the link is shared */

    /* reading */
    uint64_t in_cell, in_cell_advertised; /* next cell; what the writer knows of */
    uint64_t in_bulk, in_bulk_advertised;
    uint64_t in_part_end; /* position after the part at in_at, if that lies in the bulk area; else 0 */
    uint32_t arming;      /* the last number stored as armed */
    unsigned waits;
    bool fence_each; /* one of the two has no membarrier, so each fences after storing */
    alignas(8) unsigned char copy[RNL_RPC_PAYLOAD_BYTES];
};

static inline struct rnl_rpc_pair *rnl_rpc_pair_of(struct rnl_rpc_link *link)
{
    return (struct rnl_rpc_pair *)(void *)link;
}

/* Rings for a record or for room if the peer is armed for it. */
void rnl_rpc_pair_ring(struct rnl_rpc_pair *, const _Atomic uint32_t *armed, uint32_t *rung);
/* Blocks until ready(p). Returns false if deadline_ns passed or the link broke. */
bool rnl_rpc_pair_wait(struct rnl_rpc_pair *, bool (*ready)(struct rnl_rpc_pair *), uint64_t deadline_ns);

/* pair_in.c */
bool rnl_rpc_pair_here(struct rnl_rpc_pair *);
bool rnl_rpc_pair_peek(struct rnl_rpc_link *, void *to, size_t n);
bool rnl_rpc_pair_next(struct rnl_rpc_link *);
bool rnl_rpc_pair_leave(struct rnl_rpc_link *);

/* pair_out.c */
bool rnl_rpc_pair_has_room(struct rnl_rpc_pair *);
bool rnl_rpc_pair_room(struct rnl_rpc_link *);
bool rnl_rpc_pair_end(struct rnl_rpc_link *);
bool rnl_rpc_pair_drop(struct rnl_rpc_link *);

#endif
