/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair.h - the shared segment of two endpoints of one host: where its parts lie, mapping them, and the rings in them.
 *
 *     part         bytes          mapped                       written by
 *     side[0]      4096           at connect                   the lower rank of the pair
 *     side[1]      4096           at connect                   the other (a pair with oneself uses side[0] for both)
 *     big[2]       64 KiB each    when the first ring is full  the direction's sender
 *     bulk[2][3]   1 MiB each     on first use, per lane       the direction's sender
 *
 * Each part is mapped on its own, so that an untouched one costs nothing; what the peer writes is mapped read-only
 * where the env can. */
#ifndef RNL_TRANSPORT_SHM_PAIR_H
#define RNL_TRANSPORT_SHM_PAIR_H

#include "base/env.h"
#include "ring/ring.h"

#define RNL_PAIR_SIDE(i)       ((size_t)(i)*4096)
#define RNL_PAIR_BIG(i)        ((size_t)8192 + (size_t)(i)*RNL_BIG * RNL_LINE_BYTES)
#define RNL_PAIR_BULK(i, lane) (RNL_PAIR_BIG(2) + ((size_t)(i)*RNL_LANES + (lane)) * RNL_BULK_BYTES)
#define RNL_PAIR_BYTES         RNL_PAIR_BULK(2, 0)

struct rnl_pair {
    struct rnl_tx tx[RNL_LANES];
    struct rnl_rx rx[RNL_LANES];
    struct rnl_side *mine, *theirs;
    struct rnl_env *env;
    uint32_t rank; /* the other's */
    int segment;
    uint8_t my_index, their_index;
    uint8_t distance;      /* env's verdict: RNL_NEAR, RNL_FAR */
    uint8_t senders_fence; /* they said so, or have not opened the segment yet */
    uint8_t joined;        /* they have */
    uint8_t big_tx, big_rx;
};

/* Opens (or joins) the segment shared with `rank` and sets up all lanes. The peer need not be in a call, nor have
 * joined yet. 0 or a negative rnl_status; *p is zeroed on failure. */
int rnl_pair_open(struct rnl_pair *p, struct rnl_env *env, uint32_t rank);
/* Unmaps everything. Fine on a zeroed pair. */
void rnl_pair_close(struct rnl_pair *p);
/* The peer has opened the segment, with a version we know, and said whether senders must fence: 1, 0 = not yet,
 * RNL_ERR_PEER_BROKEN. */
int rnl_pair_joined(struct rnl_pair *p);

/* Map a lane's bulk area on first use. 0 or a negative status. */
int rnl_pair_bulk_tx(struct rnl_pair *p, unsigned lane);
int rnl_pair_bulk_rx(struct rnl_pair *p, unsigned lane);
/* Lane 0, small ring full: publishes GROW (a line must be free) and moves to the big ring. 0 or a negative status. */
int rnl_pair_grow_tx(struct rnl_pair *p);
/* After reading and leaving GROW. RNL_ERR_PEER_BROKEN on a second one. */
int rnl_pair_grow_rx(struct rnl_pair *p);

/* Quote for a header on lane `lane`: the position in their ring of `acklane`. */
RNL_INLINE void rnl_pair_publish(struct rnl_pair *p, unsigned lane, rnl_head key, unsigned char *end, int fresh,
                                 unsigned acklane)
{
    rnl_tx_publish(&p->tx[lane], key, end, fresh, p->rx[acklane].pos, acklane);
}

#endif
