/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment.h - the channel of two endpoints: the rings and bulk areas between them, both directions and all lanes. For
 * peers of one host it lies in a segment that both processes map; for a peer of another host it is private memory that
 * remote/ keeps like the peer's copy.
 *
 *     part        bytes           at              written by
 *     control[0]  4096            0               the lower rank of the two (rnl_meet_ops.sides): its control page
 *     control[1]  4096            4096            the higher rank (a channel to oneself uses control[0] for both)
 *     bulk[0]     64 KiB + 2 MiB  8192            the lower rank: its bulk region, a big ring and a bulk area per lane
 *     bulk[1]     64 KiB + 2 MiB  8192 + bulk[0]  the higher rank
 *
 * All of it is mapped when the channel is opened, so that nothing can fail later and no descriptor has to be kept; an
 * untouched page costs nothing but its address. The control pages of all channels lie together, to share page tables.
 * What the peer writes is mapped read-only where the env can do so. */
#ifndef RNL_RING_SEGMENT_H
#define RNL_RING_SEGMENT_H

#include "base/env.h"
#include "ring/ring.h"

/* Offsets: of a bulk area in a bulk region, and of the parts in the segment. */
#define RNL_BULK_AREA(lane)    ((size_t)RNL_CELLS_BIG * RNL_CELL_BYTES + (size_t)(lane)*RNL_BULK_BYTES)
#define RNL_BULK_REGION_BYTES  RNL_BULK_AREA(RNL_LANES)
#define RNL_SEGMENT_CONTROL(i) ((size_t)(i)*4096)
#define RNL_SEGMENT_BULK(i)    ((size_t)RNL_SEGMENT_HEAD + (size_t)(i)*RNL_BULK_REGION_BYTES)
#define RNL_CHANNEL_BYTES      RNL_SEGMENT_BULK(2)
/* To another host, the larger bulk area of lane 0 lies behind all others. */
#define RNL_REMOTE_BULK_AREA(lane) ((lane) == 0 ? RNL_BULK_REGION_BYTES : RNL_BULK_AREA(lane))
#define RNL_REMOTE_REGION_BYTES    (RNL_BULK_REGION_BYTES + RNL_BULK_REMOTE_BYTES)
enum {
    /* Bytes of a remote channel that remote/ uses: where `mine` would have lane 1, and behind bulk_theirs. */
    RNL_CHANNEL_PRIVATE = 1016,
    RNL_CHANNEL_TRAILER_BYTES = 4096,
};
static_assert(RNL_SEGMENT_CONTROL(2) == RNL_SEGMENT_HEAD, "control pages are what is mapped side by side");
static_assert(RNL_CHANNEL_PRIVATE + sizeof(void *) <= sizeof((struct rnl_control_page *)0)->lane1,
              "lane 1 to another host lies elsewhere");

struct rnl_credit_copy { /* copy of the credit words of a control page */
    uint64_t credit[RNL_LANES][3], credit_reclaim, credit_returned, credit_wanted, credit_max;
};

struct rnl_channel {
    struct rnl_tx tx[RNL_LANES];
    struct rnl_rx rx[RNL_LANES];
    struct rnl_control_page *mine, *theirs;
    unsigned char *bulk_mine, *bulk_theirs;
    void *own; /* remote: RNL_CHANNEL_PRIVATE bytes, then the address of the memory they lie in */
    struct rnl_env *env;
    uint32_t rank; /* of the peer */
    int segment;
    uint8_t my_index, their_index;
    uint8_t distance;      /* verdict of env's distance sensor: RNL_NEAR or RNL_FAR */
    uint8_t senders_fence; /* 1 = fence before reading armed: the peer needs it, or has not joined yet */
    uint8_t joined;        /* the peer has opened the segment */
    uint8_t is_remote;     /* the peer is on another host: all memory is private, and remote/ fills the peer's half */
    uint8_t big_tx, big_rx;
    uint32_t arming; /* RNL_ARMED_STEP * number of armings */
    uint32_t rung;   /* the peer's arming for which its bell has been rung */
};

/* Opens or joins the segment shared with `rank` and sets up all lanes. The peer need not be in a call, nor have joined
 * yet. Waits at most wait_ns for the agent: RNL_NO_ROOM = the agent has been asked, try again after its event. Returns
 * 0 or a negative rnl_status. On failure *p is zeroed, and a later call may succeed. */
int rnl_channel_open(struct rnl_channel *p, struct rnl_env *env, uint32_t rank, uint64_t wait_ns);
/* Opens a channel to a peer of another host, in private memory. `theirs` reads as if the peer had opened it and were
 * always armed for cells and for room, so that whatever is written is announced and can be passed on. The control pages
 * lie on the heap, so that many channels share pages; the bulk regions are not there (NULL, bulk areas too) until they
 * are asked for. Returns 0 or RNL_ERR_NO_MEMORY. */
int rnl_channel_open_remote(struct rnl_channel *p, struct rnl_env *env, uint32_t rank);
/* Map the bulk region of this process, or that of the peer with RNL_CHANNEL_TRAILER_BYTES zeroed bytes behind it,
 * unless that was done before. Return 0 or RNL_ERR_NO_MEMORY. */
int rnl_channel_map_mine(struct rnl_channel *p);
int rnl_channel_map_theirs(struct rnl_channel *p);
/* Allocate a ring of lane 1, for replies to be sent or to be received, which most channels never need. Until then tx[1]
 * has a NULL ring and takes nothing, and rx[1] finds nothing. Return 0 or RNL_ERR_NO_MEMORY. */
int rnl_channel_map_replies(struct rnl_channel *p);
int rnl_channel_map_requests(struct rnl_channel *p);
/* Hibernates a remote channel: gives its memory back. Nothing may be unread or open in it, so that its credit words and
 * private positions are all there is. The credit words are copied to words[0] (mine) and words[1] (theirs). */
void rnl_channel_hibernate(struct rnl_channel *p, struct rnl_credit_copy words[2]);
/* Makes a hibernated channel as it was. Returns 0 or RNL_ERR_NO_MEMORY. */
int rnl_channel_resume(struct rnl_channel *p, const struct rnl_credit_copy words[2]);
/* Unmaps everything. A zeroed channel is allowed. */
void rnl_channel_close(struct rnl_channel *p);
/* Returns 1 if the peer has opened the segment with a known version, and then knows whether senders must fence; 0 = not
 * yet; or RNL_ERR_PEER_BROKEN. Call it again later, for whether senders must fence can change. */
int rnl_channel_joined(struct rnl_channel *p);

/* Lane 0, when the small ring is full: publishes a GROW cell and moves to the big ring. Returns 0; RNL_NO_ROOM = no
 * cell is free, or no memory. */
int rnl_channel_grow_tx(struct rnl_channel *p);
/* Follows the peer to the big ring, after a GROW cell was read and left. A second one is RNL_ERR_PEER_BROKEN. */
int rnl_channel_grow_rx(struct rnl_channel *p);

/* Arms this process for `what`, bits of enum rnl_armed; 0 disarms it. A heavy fence and a look at the rings must follow
 * [F1]. */
RNL_INLINE void rnl_channel_arm(struct rnl_channel *p, uint32_t what)
{
    if (what)
        what |= p->arming += RNL_ARMED_STEP; /* a new arming, for which each peer rings again */
    atomic_store_explicit(&p->mine->armed, what, memory_order_relaxed);
}
/* Returns how the peer is armed, if it is armed for any of `what` and its bell has not been rung for that arming; else
 * 0. Call it after publishing or advertising. An RNL_ARMED_BY_BELL peer's bell is rung for each cell, since the peer
 * may have taken what it was rung for before it armed so; but the peer is not woken twice. */
RNL_INLINE uint32_t rnl_channel_must_ring(struct rnl_channel *p, uint32_t what)
{
    uint32_t armed = rnl_tx_armed(&p->tx[0], UINT32_MAX);
    if (!(armed & what))
        return 0;
    if (armed == p->rung)
        return armed & RNL_ARMED_BY_BELL;
    p->rung = armed;
    return armed;
}

/* Publishes on lane `lane`, with a header that acknowledges the peer's ring of `acklane` as far as it is read. */
RNL_INLINE void rnl_channel_publish(struct rnl_channel *p, unsigned lane, rnl_header key, unsigned char *end,
                                    int new_cell, unsigned acklane)
{
    rnl_tx_publish(&p->tx[lane], key, end, new_cell, p->rx[acklane].pos, acklane);
}

#endif
