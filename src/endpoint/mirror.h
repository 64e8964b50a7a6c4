/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mirror.h - a pair whose peer lives on another host: both sides of it are private memory, and the mirror keeps the two
 * copies of each side alike by frames (wire/frame.h). What was written into `mine` is said; what the peer says is
 * written into `theirs`, as if the peer had done it. ring/ and stream/ do not know.
 *
 * All that is said is an absolute number with its content, so it may be said twice and in any order. The content stays
 * in ring and bulk area until the peer has read it, so nothing is kept for a second time: what got lost is packed
 * again, with what stands there today.
 *
 * Saying (mirror_out.c): a lane's lines from where it stopped last, each after the bulk bytes that it announces; first
 * what was lost. Hearing (mirror_in.c): payload goes to its place at once, whatever came before it. Headers are shown
 * in order only, and one that announces bulk bytes when these are there. A header that must wait stands in its slot all
 * the same, with its number half a circle off, so that no reader takes it for one:
 *
 *     slot of line   17       18        19        20        21        shown: 17 with 3 items
 *                 +--------+---------+---------+---------+---------+  19 is not here: 20 waits for it
 *                 | shown  | waits   | (3)     | waits   | (5)     |  18 waits for bulk bytes, or for a fourth item
 *                 +--------+---------+---------+---------+---------+  of 17, which `before` speaks of
 *
 * before: how many items the line before has, in bits that a header in memory has as 0 (34 to 36); 0 where they are
 * known to have been read. Without it the reader would go on to a line while an item of the one before is missing.
 *
 * In memory, who sees a word sees all lines that were written before it. Here he does not: words go with the next
 * packet, lines wait for their turn, for what got lost and for their bytes. So nothing about lines follows from a word
 * (requote in peers.c), and a request that is said to be read may have an answer that is not here. So with its words a
 * side says how far it had written lane 1: what was read of lane 0 is settled when lane 1 is shown up to there.
 *
 * What a peer can do with frames is what it could do with shared memory: fill its own ring and area with anything. Here
 * is checked that it stays inside what it was told that it may write. */
#ifndef RNL_ENDPOINT_MIRROR_H
#define RNL_ENDPOINT_MIRROR_H

#include "reliable/sent.h"
#include "transport/shm/pair.h"
#include "wire/frame.h"
#include "wire/packet.h"

enum {
    RNL_MIRROR_LOST = 16,  /* stretches to be said again; more are joined, with what lies between them */
    RNL_MIRROR_RANGES = 64 /* of a bulk area that are here ahead of others; a packet that needs more is not taken */
};

struct rnl_mirror_out { /* of one lane */
    uint64_t sent;      /* line * 8 + n: the last line that was said, with so many items */
    uint64_t bulk_sent; /* bulk bytes are said up to here, those of the next line perhaps among them */
    uint64_t start;     /* of the extent that was announced last */
};
struct rnl_mirror_range {
    uint32_t from, to; /* low halves */
};
struct rnl_mirror_in { /* of one lane */
    uint64_t shown;    /* line * 8 + n: the last line that its reader can see */
    uint64_t start;    /* of the extent that it or one before announces ... */
    uint64_t floor;    /* no line to come needs bulk bytes below this */
    uint64_t highest;  /* number of a line that has come, shown or not */
    uint32_t published;
    uint32_t count;
    struct rnl_mirror_range *here; /* above the floor, ascending, apart from each other; NULL: no bulk area yet */
};
struct rnl_mirror_stretch {
    uint8_t kind, lane; /* LINES, BULK */
    uint64_t from, to;
};
struct rnl_mirror_claim { /* the peer has read lane 0 up to there; its answers to that end on lane 1 here */
    uint64_t read, answers;
};
struct rnl_mirror {
    struct rnl_pair *pair;
    struct rnl_mirror_out out[RNL_LANES];
    struct rnl_mirror_in in[RNL_LANES];
    uint64_t said[RNL_WORDS];
    uint64_t settled;                 /* lane 0 is read up to here, and what was answered to it is shown */
    struct rnl_mirror_claim claim[2]; /* the first and the last of those that are not; read = 0: none */
    uint64_t grow_sent, grow_came;    /* lane 0: number of the GROW line, UINT64_MAX = none */
    uint64_t wants_from, most_from;   /* packets that said them last */
    uint32_t say_again;               /* words that got lost */
    uint32_t lost_count;
    uint8_t grow_known; /* the peer has the GROW line: what lies in the big ring may be said */
    uint8_t first_lane; /* of the next packet */
    uint8_t said_all;   /* the last fill left nothing */
    uint8_t came;       /* for the caller to clear: RNL_MIRROR_LINES, RNL_MIRROR_ROOM */
    struct rnl_mirror_stretch lost[RNL_MIRROR_LOST];
};
static_assert(sizeof(struct rnl_mirror) <= RNL_PAIR_OWN, "a mirror lies beside its pair");
static_assert(sizeof(struct rnl_mirror_range[RNL_LANES][RNL_MIRROR_RANGES]) <= RNL_PAIR_BESIDE, "and what is here");
enum { RNL_MIRROR_LINES = 1 /* a line was shown */, RNL_MIRROR_ROOM = 2 /* a word of the peer's changed */ };

/* A mirror of a new pair. */
void rnl_mirror_init(struct rnl_mirror *m, struct rnl_pair *pair);
struct rnl_mirror_rest { /* what is left of a mirror that rests */
    uint64_t shown[RNL_LANES];
    uint64_t wants_from, most_from; /* else a packet that was very late would bring back what they were */
};
/* Nothing is unsaid, unheard or unread: the pair may rest (rnl_pair_rest), and its mirror be thrown away. `rest` is
 * all there is to remember of it. */
int rnl_mirror_can_rest(const struct rnl_mirror *m, struct rnl_mirror_rest *rest);
/* A mirror of a pair that woke. */
void rnl_mirror_wake(struct rnl_mirror *m, struct rnl_pair *pair, const struct rnl_mirror_rest *rest);

/* ---- saying ---- */

/* There is something to say. */
int rnl_mirror_unsaid(const struct rnl_mirror *m);
/* Words among it that a peer may wait for; that it may write on into a ring, of which it knew most, is not one. */
int rnl_mirror_presses(const struct rnl_mirror *m);
/* Bytes of it, about, up to `enough`: more than that need not be counted. */
uint32_t rnl_mirror_piled(const struct rnl_mirror *m, uint32_t enough);
/* What it may write on into, of rings, grants and area, is so much that it may soon wait for the rest; else that can
 * wait for a packet that goes in any case. */
int rnl_mirror_much_read(const struct rnl_mirror *m);
/* Of the bulk area of lane 0. */
RNL_INLINE uint64_t rnl_mirror_bulk_piled(const struct rnl_mirror *m)
{
    return m->pair->tx[0].bulk_head - m->out[0].bulk_sent;
}
/* Messages on lane 0 that have come and are not read. */
RNL_INLINE int rnl_mirror_unread(const struct rnl_mirror *m)
{
    return m->in[0].shown > m->pair->rx[0].pos;
}
/* Frames into at[0..room): bytes used, 0 = nothing to say, or no room for it. At most RNL_FLOW_NOTES notes: kind is
 * that of the frames; from and to are low halves, of LINES numbers, of BULK positions; aux says which WORDS. */
uint32_t rnl_mirror_fill(struct rnl_mirror *m, unsigned char *at, uint32_t room, struct rnl_flow_note *notes,
                         unsigned *count);
void rnl_mirror_acked(struct rnl_mirror *m, const struct rnl_flow_note *note);
void rnl_mirror_lost(struct rnl_mirror *m, const struct rnl_flow_note *note);

/* ---- hearing ---- */

/* How far the peer has read lane 0 of ours, as rnl_tx has it, and nothing that it answered to that is missing. */
RNL_INLINE uint64_t rnl_mirror_settled(const struct rnl_mirror *m)
{
    return m->settled;
}
/* The frames of a packet that had not come before. 0; RNL_NO_ROOM: not all of them could be taken, it must come again;
 * RNL_ERR_PEER_BROKEN. */
int rnl_mirror_frames(struct rnl_mirror *m, const unsigned char *at, uint32_t bytes, uint64_t number);

/* Invariants; 0, or the number of the one that does not hold. */
int rnl_mirror_valid(const struct rnl_mirror *m);

#define RNL_MIRROR_BEFORE_SHIFT 34
#define RNL_MIRROR_BEFORE       ((rnl_head)7 << RNL_MIRROR_BEFORE_SHIFT)
#define RNL_MIRROR_WAITS        ((rnl_head)0x8000) /* turns a header into one that waits, and back */
static_assert((RNL_MIRROR_BEFORE & RNL_HEAD_KEY_MASK) == 0 && RNL_HEAD_ACKLANE(RNL_MIRROR_BEFORE) == 0,
              "bits that are free");
static_assert(RNL_WIRE_VERSION == 3 && RNL_BULK_AWAY == 2 << 20 && RNL_BULK_BYTES == 1 << 20 && RNL_BIG == 1024 &&
                  RNL_SMALL0 == 32 && RNL_AWAY1 == 64 && RNL_SMALL2 == 8 && RNL_LANES == 3,
              "both sides have to have the same room: what changes here raises the version (runnel-wire(7))");
static_assert(RNL_BIG * 8 < 0x8000, "a line that waits is no line of the ring");

/* The slot of a line in a lane's first ring, or in lane 0's big one behind `grow`. */
RNL_INLINE struct rnl_line *rnl_mirror_slot(struct rnl_side *side, unsigned char *far, struct rnl_line *lane1,
                                            unsigned lane, uint64_t grow, uint64_t line)
{
    if (lane == 0)
        return line > grow ? (struct rnl_line *)(void *)far + (line & (RNL_BIG - 1))
                           : side->lane0 + (line & (RNL_SMALL0 - 1));
    return lane == 1 ? lane1 + (line & (RNL_AWAY1 - 1)) : side->lane2 + (line & (RNL_SMALL2 - 1));
}

#endif
