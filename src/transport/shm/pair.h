/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair.h - the shared segment of two endpoints of one host: where its parts lie, mapping them, and the rings in them.
 *
 *     part       bytes           at             written by
 *     side[0]    4096            0              the lower rank of the pair
 *     side[1]    4096            4096           the other (a pair with oneself uses side[0] for both)
 *     far[0]     64 KiB + 3 MiB  8192           the lower rank: its big ring, then a bulk area per lane
 *     far[1]     64 KiB + 3 MiB  8192 + far[0]  the other's
 *
 * All of it is mapped when the pair is opened, so that nothing can fail later and no descriptor has to be kept; an
 * untouched page costs nothing but its address. The sides of all pairs lie together, to share page tables. What the
 * peer writes is mapped read-only where the env can. */
#ifndef RNL_TRANSPORT_SHM_PAIR_H
#define RNL_TRANSPORT_SHM_PAIR_H

#include "base/env.h"
#include "ring/ring.h"

#define RNL_FAR_BULK(lane) ((size_t)RNL_BIG * RNL_LINE_BYTES + (size_t)(lane)*RNL_BULK_BYTES) /* in a far part */
#define RNL_FAR_BYTES      RNL_FAR_BULK(RNL_LANES)
#define RNL_PAIR_SIDE(i)   ((size_t)(i)*4096)
#define RNL_PAIR_FAR(i)    ((size_t)RNL_SEGMENT_HEAD + (size_t)(i)*RNL_FAR_BYTES)
#define RNL_PAIR_BYTES     RNL_PAIR_FAR(2)
/* Away, the larger area of lane 0 lies behind all others. */
#define RNL_AWAY_BULK(lane) ((lane) == 0 ? RNL_FAR_BYTES : RNL_FAR_BULK(lane))
#define RNL_AWAY_BYTES      (RNL_FAR_BYTES + RNL_BULK_AWAY)
enum {
    RNL_PAIR_OWN = 1016,    /* away: for whoever keeps the copies alike, where `mine` has no lane 1 ... */
    RNL_PAIR_BESIDE = 4096, /* ... and behind far_theirs */
};
static_assert(RNL_PAIR_SIDE(2) == RNL_SEGMENT_HEAD, "sides are what is mapped side by side");
static_assert(RNL_PAIR_OWN + sizeof(void *) <= sizeof((struct rnl_side *)0)->lane1, "away, lane 1 lies elsewhere");

struct rnl_words { /* of a side: what is not in its rings */
    uint64_t back[RNL_LANES][3], asked_back, gave_back, wants, most;
};

struct rnl_pair {
    struct rnl_tx tx[RNL_LANES];
    struct rnl_rx rx[RNL_LANES];
    struct rnl_side *mine, *theirs;
    unsigned char *far_mine, *far_theirs;
    void *own; /* away: RNL_PAIR_OWN bytes, and behind them what memory they lie in */
    struct rnl_env *env;
    uint32_t rank; /* the other's */
    int segment;
    uint8_t my_index, their_index;
    uint8_t distance;      /* env's verdict: RNL_NEAR, RNL_FAR */
    uint8_t senders_fence; /* they said so, or have not opened the segment yet */
    uint8_t joined;        /* they have */
    uint8_t away; /* the peer is on another host: both sides are our own memory, endpoint/mirror.h fills theirs */
    uint8_t big_tx, big_rx;
    uint32_t arming; /* RNL_ARMED_TURN times how often we armed */
    uint32_t rung;   /* the peer's arming that we have rung for */
};

/* Opens (or joins) the segment shared with `rank` and sets up all lanes. The peer need not be in a call, nor have
 * joined yet. Waits at most wait_ns for the watcher: RNL_NO_ROOM = it has been asked, try again after its event. 0 or a
 * negative rnl_status; *p is zeroed on failure, and a later call may succeed. */
int rnl_pair_open(struct rnl_pair *p, struct rnl_env *env, uint32_t rank, uint64_t wait_ns);
/* The same for a peer of another host: private memory, of which `theirs` reads as if the peer had opened it and were
 * always armed, for lines and for room: whatever is written is announced, and can be passed on. The sides lie on the
 * heap, so that many such pairs share pages; what is far is not there (NULL, bulk areas too) before it is asked for. 0
 * or RNL_ERR_NO_MEMORY. */
int rnl_pair_open_away(struct rnl_pair *p, struct rnl_env *env, uint32_t rank);
/* What is far is there from now on, far_theirs with RNL_PAIR_BESIDE bytes behind it that read as zeros. 0 or
 * RNL_ERR_NO_MEMORY. */
int rnl_pair_reach_mine(struct rnl_pair *p);
int rnl_pair_reach_theirs(struct rnl_pair *p);
/* The same for a ring of lane 1, which most pairs never need: until then tx[1] has a NULL ring and takes nothing, and
 * rx[1] finds nothing. */
int rnl_pair_reach_answers(struct rnl_pair *p);
int rnl_pair_reach_asked(struct rnl_pair *p);
/* Gives its memory back; nothing may be unread, or open in it: then its words and private positions are all there is.
 * They are in words[0] (mine) and words[1]. */
void rnl_pair_rest(struct rnl_pair *p, struct rnl_words words[2]);
/* The pair is as it was. 0 or RNL_ERR_NO_MEMORY. */
int rnl_pair_wake(struct rnl_pair *p, const struct rnl_words words[2]);
/* Unmaps everything. Fine on a zeroed pair. */
void rnl_pair_close(struct rnl_pair *p);
/* The peer has opened the segment, with a version we know, and said whether senders must fence: 1, 0 = not yet,
 * RNL_ERR_PEER_BROKEN. May be asked again: that can change. */
int rnl_pair_joined(struct rnl_pair *p);

/* Lane 0, small ring full: publishes GROW and moves to the big ring. 0, or RNL_NO_ROOM: no line is free. */
int rnl_pair_grow_tx(struct rnl_pair *p);
/* After reading and leaving GROW. RNL_ERR_PEER_BROKEN on a second one. */
int rnl_pair_grow_rx(struct rnl_pair *p);

/* what: enum rnl_armed, 0 = disarm. To be followed by a heavy fence and a look (F1). */
RNL_INLINE void rnl_pair_arm(struct rnl_pair *p, uint32_t what)
{
    if (what)
        what |= p->arming += RNL_ARMED_TURN; /* a new one: each peer rings again */
    atomic_store_explicit(&p->mine->armed, what, memory_order_relaxed);
}
/* After publishing or telling: how the peer is armed, if it is for any of `what` and we have not rung for that yet;
 * else 0. To a cold peer each line is rung for, since it may have taken what was rung for before it was cold; but it is
 * not woken twice. */
RNL_INLINE uint32_t rnl_pair_must_ring(struct rnl_pair *p, uint32_t what)
{
    uint32_t armed = rnl_tx_armed(&p->tx[0], UINT32_MAX);
    if (!(armed & what))
        return 0;
    if (armed == p->rung)
        return armed & RNL_ARMED_COLD;
    p->rung = armed;
    return armed;
}

/* Quote for a header on lane `lane`: the position in their ring of `acklane`. */
RNL_INLINE void rnl_pair_publish(struct rnl_pair *p, unsigned lane, rnl_head key, unsigned char *end, int fresh,
                                 unsigned acklane)
{
    rnl_tx_publish(&p->tx[lane], key, end, fresh, p->rx[acklane].pos, acklane);
}

#endif
