/* SPDX-License-Identifier: BSD-3-Clause
 *
 * replica.h - the copy of a channel whose peer is on another host. Both control pages of the pair are private memory,
 * and the replica keeps the two copies of each alike by frames (net/wire/frame.h): what this process wrote into `mine`
 * is emitted, and what the peer emits is applied to `theirs`, as if the peer had written it there. ring/ and stream/ do
 * not know the difference.
 *
 * Every frame carries absolute positions together with their content, so it may be emitted twice and applied in any
 * order. The content stays in the ring and the bulk area until the peer has read it. Nothing is kept for
 * retransmission: what was lost is packed again with what stands in its place at that time.
 *
 * Emitting (replica_emit.c) takes a lane's cells from where the last packet stopped, each behind the bulk bytes that it
 * announces, after everything that was lost. Applying (replica_apply.c) puts payload into its place at once, whatever
 * is missing before it. Headers become visible in order only, and a header that announces bulk bytes only when these
 * have arrived. A header that must wait stands in its slot all the same, with its number half a circle off, so that no
 * reader takes it for a valid one:
 *
 *     slot of cell   17       18        19        20        21        shown: 17 with 3 records
 *                 +--------+---------+---------+---------+---------+  19 is not here: 20 waits for it
 *                 | shown  | waits   | (3)     | waits   | (5)     |  18 waits for bulk bytes, or for a fourth record
 *                 +--------+---------+---------+---------+---------+  of 17, which `before` counts
 *
 * `before` is the number of records of the cell before, in bits that are 0 in a header in memory (34 to 36). It is 0
 * where these records are known to have been read. Without it the reader would go on to a cell while a record of the
 * cell before it is missing.
 *
 * In shared memory, whoever sees a credit word also sees all cells that were written before it. Here that does not
 * hold: credit words travel with the next packet, while cells wait for their turn, for retransmission and for their
 * bytes. So nothing about cells follows from a credit word (requote in endpoint/credit.c), and a request that is
 * reported as read may have a reply that has not arrived. Therefore a process states with its credit words how far it
 * had written lane 1: what was read of lane 0 counts for the reply watermark when lane 1 is visible up to there.
 *
 * Trust: with frames a peer can do what it could do with shared memory, which is to fill its own ring and area with
 * anything. Applying checks that it stays inside the places that were advertised to it as free. net/wire/frame.c
 * decodes; stream/ checks what the content means. */
#ifndef RNL_REMOTE_REPLICA_H
#define RNL_REMOTE_REPLICA_H

#include "net/flow/sent.h"
#include "net/wire/frame.h"
#include "net/wire/packet.h"
#include "ring/segment.h"

enum {
    RNL_REPLICA_LOST = 16,  /* stretches to be emitted again; further ones are joined, with what lies between them */
    RNL_REPLICA_RANGES = 64 /* ranges of a bulk area that arrived out of order; a packet that needs more is not taken */
};

struct rnl_replica_out { /* of one lane */
    uint64_t sent;       /* cell * 8 + n: the last cell that was emitted, with n records */
    uint64_t bulk_sent;  /* bulk bytes are emitted up to here, perhaps with bytes of the next cell */
    uint64_t start;      /* start of the extent that was announced last */
};
struct rnl_replica_range {
    uint32_t from, to; /* low halves of positions */
};
struct rnl_replica_in { /* of one lane */
    uint64_t shown;     /* cell * 8 + n: the last cell that its reader can see, with n records */
    uint64_t start;     /* start of the extent that the last shown cell, or one before it, announces */
    uint64_t floor;     /* no cell to come needs bulk bytes below this position */
    uint64_t highest;   /* highest number of a cell that has come, shown or not */
    uint32_t published;
    uint32_t count;
    struct rnl_replica_range *ranges; /* above the floor, ascending, apart from each other; NULL: no bulk area yet */
};
struct rnl_replica_stretch {
    uint8_t kind, lane; /* RNL_FRAME_CELLS or RNL_FRAME_BULK; the lane */
    uint64_t from, to;
};
struct rnl_replica_claim { /* the peer has read lane 0 up to `read`; its replies to that end at `answers` on lane 1 */
    uint64_t read, answers;
};
struct rnl_replica {
    struct rnl_channel *channel;
    struct rnl_replica_out out[RNL_LANES];
    struct rnl_replica_in in[RNL_LANES];
    uint64_t advertised[RNL_CREDIT_WORDS];
    uint64_t watermark;                /* lane 0 is read up to here, and all replies to that are shown */
    struct rnl_replica_claim claim[2]; /* the first and the last claim that is not met; read = 0: none */
    uint64_t grow_sent, grow_came;     /* lane 0: number of the GROW cell, UINT64_MAX = none */
    uint64_t wants_from, most_from;    /* numbers of the last packets with credit_wanted and credit_max */
    uint32_t repeat;                   /* bits of credit words that were lost and are to be advertised again */
    uint32_t lost_count;
    uint8_t grow_known;  /* the peer has the GROW cell: what lies in the big ring may be emitted */
    uint8_t first_lane;  /* lane with which the next packet begins */
    uint8_t emitted_all; /* the last packet left nothing to emit */
    uint8_t arrived;     /* RNL_REPLICA_LINES, RNL_REPLICA_ROOM; the caller clears it */
    struct rnl_replica_stretch lost[RNL_REPLICA_LOST];
};
static_assert(sizeof(struct rnl_replica) <= RNL_CHANNEL_PRIVATE, "a replica lies beside its pair");
static_assert(sizeof(struct rnl_replica_range[RNL_LANES][RNL_REPLICA_RANGES]) <= RNL_CHANNEL_TRAILER_BYTES,
              "and the ranges that arrived");
enum { RNL_REPLICA_LINES = 1 /* a cell was shown */, RNL_REPLICA_ROOM = 2 /* a credit word of the peer's changed */ };

/* Makes the replica of a new pair. */
void rnl_replica_init(struct rnl_replica *m, struct rnl_channel *channel);
struct rnl_replica_remainder { /* all that is kept of a replica during hibernation */
    uint64_t shown[RNL_LANES];
    uint64_t wants_from, most_from; /* without these a very late packet would bring back old values */
};
/* Returns true if everything is emitted, applied and read, so that the pair may hibernate (rnl_channel_hibernate) and
 * its replica be freed. `rest` gets all that has to be kept. */
bool rnl_replica_can_hibernate(const struct rnl_replica *m, struct rnl_replica_remainder *rest);
/* Makes the replica of a pair that is active again. */
void rnl_replica_activate(struct rnl_replica *m, struct rnl_channel *channel, const struct rnl_replica_remainder *rest);

/* ---- emitting ---- */

/* Returns true if there is something to emit. */
bool rnl_replica_pending(const struct rnl_replica *m);
/* Returns true if credit words are among it that the peer may wait for. Room in a ring whose room the peer mostly knows
 * does not count. */
bool rnl_replica_urgent(const struct rnl_replica *m);
/* Returns about how many bytes there are to emit, or `enough` if there are more. */
uint32_t rnl_replica_backlog(const struct rnl_replica *m, uint32_t enough);
/* Returns true if the peer may write so much more than it knows, of rings, grants and bulk area, that it may soon wait
 * for credit. Less than that can go with the next packet. */
bool rnl_replica_much_read(const struct rnl_replica *m);
/* Returns how many bytes of the bulk area of lane 0 are to be emitted. */
RNL_INLINE uint64_t rnl_replica_bulk_backlog(const struct rnl_replica *m)
{
    return m->channel->tx[0].bulk_head - m->out[0].bulk_sent;
}
/* Returns true if messages have come on lane 0 that are not read. */
RNL_INLINE bool rnl_replica_unread(const struct rnl_replica *m)
{
    return m->in[0].shown > m->channel->rx[0].pos;
}
/* Composes frames into at[0..room). Returns the bytes used; 0 = nothing to emit, or no room for it. Adds at most
 * RNL_FLOW_NOTES notes. A note's kind is that of its frame; from and to are low halves, of cell numbers or of positions
 * in the bulk area; aux has the bits of the credit words. */
uint32_t rnl_replica_emit(struct rnl_replica *m, unsigned char *at, uint32_t room, struct rnl_flow_note *notes,
                          unsigned *count);
/* The same where a peer is reached by several flows. Packets of two flows have no order, so the credit words that may
 * fall go with one flow alone. The first composes everything but these; the second nothing but these; the third only
 * the bulk bytes of lane 0 and the cells that announce them: first what is left of *own, a stretch that this flow alone
 * emits, then up to `most` bytes more, which it takes as its own. So the bytes that a flow emits are neighbours, and
 * the peer has few gaps to note. */
uint32_t rnl_replica_emit_rising(struct rnl_replica *m, unsigned char *at, uint32_t room, struct rnl_flow_note *notes,
                                 unsigned *count);
uint32_t rnl_replica_emit_falling(struct rnl_replica *m, unsigned char *at, uint32_t room, struct rnl_flow_note *notes,
                                  unsigned *count);
uint32_t rnl_replica_emit_stretch(struct rnl_replica *m, struct rnl_replica_stretch *own, uint32_t most,
                                  unsigned char *at, uint32_t room, struct rnl_flow_note *notes, unsigned *count);
/* Returns true if bytes of the stretch are to be emitted still. */
bool rnl_replica_wants(const struct rnl_replica *m, struct rnl_replica_stretch *own);
/* Another flow has to emit what is left of the stretch. */
void rnl_replica_give_back(struct rnl_replica *m, struct rnl_replica_stretch *own);
void rnl_replica_acked(struct rnl_replica *m, const struct rnl_flow_note *note);
void rnl_replica_lost(struct rnl_replica *m, const struct rnl_flow_note *note);

/* ---- applying ---- */

/* Returns how far the peer has read lane 0 of ours, where no reply to that is missing. */
RNL_INLINE uint64_t rnl_replica_watermark(const struct rnl_replica *m)
{
    return m->watermark;
}
/* Applies the frames of a packet that had not come before; its number is 0 if it came by a further flow. Returns 0;
 * RNL_NO_ROOM = some frames could not be taken, and the packet must come again; or RNL_ERR_PEER_BROKEN. */
int rnl_replica_apply(struct rnl_replica *m, const unsigned char *at, uint32_t bytes, uint64_t number);

/* Checks the invariants. Returns 0, or the number of the one that does not hold. */
int rnl_replica_valid(const struct rnl_replica *m);

#define RNL_REPLICA_BEFORE_SHIFT 34
#define RNL_REPLICA_BEFORE       ((rnl_header)7 << RNL_REPLICA_BEFORE_SHIFT)
#define RNL_REPLICA_WAITS        ((rnl_header)0x8000) /* XORed into a header: waits, or no longer */
static_assert((RNL_REPLICA_BEFORE & RNL_HEADER_KEY_MASK) == 0 && RNL_HEADER_ACKLANE(RNL_REPLICA_BEFORE) == 0,
              "bits that are free");
static_assert(RNL_WIRE_VERSION == 6 && RNL_BULK_REMOTE_BYTES == 2 << 20 && RNL_BULK_BYTES == 1 << 20 &&
                  RNL_CELLS_BIG == 1024 && RNL_CELLS_LANE0 == 32 && RNL_CELLS_LANE1_REMOTE == 64 && RNL_LANES == 2,
              "both sides have to have the same room: what changes here raises the version (runnel-wire(7))");
static_assert(RNL_CELLS_BIG * 8 < 0x8000, "a line that waits is no line of the ring");

/* Returns a credit word. They lie in a control page in the order of their numbers, in two stretches. */
RNL_INLINE uint64_t rnl_replica_word(const struct rnl_replica *m, unsigned which)
{
    const char *at = (const char *)m->channel->mine;
    at += which < RNL_CREDIT_RECLAIM
              ? offsetof(struct rnl_control_page, credit) + 8 * which
              : offsetof(struct rnl_control_page, credit_reclaim) + 8 * (which - RNL_CREDIT_RECLAIM);
    return atomic_load_explicit((const _Atomic uint64_t *)(const void *)at, memory_order_relaxed); /* our own */
}

/* Returns the slot of a cell in a lane's first ring, or behind `grow` in lane 0's big one. */
RNL_INLINE struct rnl_cell *rnl_replica_slot(struct rnl_control_page *side, unsigned char *far, struct rnl_cell *lane1,
                                             unsigned lane, uint64_t grow, uint64_t line)
{
    if (lane == 0)
        return line > grow ? (struct rnl_cell *)(void *)far + (line & (RNL_CELLS_BIG - 1))
                           : side->lane0 + (line & (RNL_CELLS_LANE0 - 1));
    return lane1 + (line & (RNL_CELLS_LANE1_REMOTE - 1));
}

#endif
