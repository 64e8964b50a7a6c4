/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring.h - one direction of one lane between two processes that need not trust each other: a ring of cache lines and a
 * bulk area, both in shared memory. Knows no messages, no peers, no clocks. One thread sends, one receives.
 *
 * A line is 64 bytes. No other place is ever read as a header, so payload cannot imitate one:
 *
 *   bit 0           16              32  34   37      43    48              64      byte 8 .. 63
 *   +---------------+---------------+---+----+-------+-----+---------------+-----------------------------+
 *   | seq           | ack           |al | n  | len   |kind | handler       | payload: n items of len     |
 *   +---------------+---------------+---+----+-------+-----+---------------+-----------------------------+
 *   seq   low 16 bits of the line number. A line counts only if seq is right and n > 0, so zeroed memory is empty; a
 *         line is overwritten before its seq can come round (at most 1,024 lines), so nobody ever clears one.
 *   ack   position (line * 8 + items) to which the sender of this line has read its opposite ring of lane `al`.
 *   n     items published so far, 1..7. The line stays open: an item of the same key is appended and n goes up, unless
 *         the peer is known to have read all there is: then a fresh line is used. So a lone message is never delayed,
 *         and a burst shares lines.
 *   len   bytes of each item, n * len <= 56.
 *
 * The first line number is 1 + colour, else the first headers of many rings share one cache set.
 *
 * Credit is two counts. Position: a line is reused when its last reader is past it; rides back on `ack`, else in
 * back.position once per quarter ring. Grant: units of 64 bytes (a line, or 64 bytes of bulk area) the sender may use,
 * absolute, in back.granted; withheld while the receiver's program keeps a message. RNL_GRANT_MIN units are granted
 * before the receiver has said anything.
 *
 * Trust: a shared word is loaded once into a register and checked there. Own positions are private. A value that cannot
 * be true makes the function return RNL_RING_BROKEN.
 *
 * Orders: payload plain; header store-release [R1], load-acquire [A1]: payload is there when its header is. back.*
 * store-release [R2], load-acquire [A2]: the reader is done with what it gives back. armed: relaxed both sides, ordered
 * by the receiver's heavy_fence, or by the sender's fence where senders_fence says so [F1]. */
#ifndef RNL_RING_RING_H
#define RNL_RING_RING_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"

enum {
    RNL_LINE_BYTES = 64,
    RNL_LINE_PAYLOAD = 56,
    RNL_ITEMS_MAX = 7,
    RNL_LANES = 3,
    RNL_SMALL0 = 32, /* lines of the first rings: together less than a page */
    RNL_SMALL1 = 16,
    RNL_SMALL2 = 8,
    RNL_BIG = 1024,
    RNL_BULK_BYTES = 1 << 20,
    RNL_GRANT_MIN = 128, /* units */
    RNL_RING_BROKEN = RNL_ERR_PEER_BROKEN
};

enum rnl_line_kind {
    RNL_LINE_ITEMS = 0, /* n whole messages of len bytes, no answer */
    RNL_LINE_ASK,       /* one whole message; payload begins with struct rnl_ask */
    RNL_LINE_EXTENT,  /* bytes in the bulk area; payload is struct rnl_extent, and on lane 1 the original handler rides
                         in `handler` */
    RNL_LINE_PREFIX,  /* more of the open extent is there; payload is struct rnl_prefix */
    RNL_LINE_REFUSED, /* lane 1: a message comes back; payload is struct rnl_refused, then the message's first bytes */
    RNL_LINE_GROW,    /* the next line is in the big ring */
    RNL_LINE_KINDS
};

struct rnl_ask {
    uint32_t answer; /* bytes of the largest answer on lane 1 */
    uint32_t zero;
};
enum { RNL_EXTENT_FIRST = 1, RNL_EXTENT_LAST = 2, RNL_EXTENT_CLOSED = 4, RNL_EXTENT_FLAGS = 7 };
struct rnl_extent {
    uint64_t start;     /* position in the bulk area, a multiple of 64 */
    uint32_t reserved;  /* bytes that may follow at start, contiguous */
    uint32_t published; /* bytes of them that are there */
    uint64_t bound;     /* FIRST: of the message */
    uint32_t answer;    /* FIRST */
    uint32_t flags; /* FIRST: opens a message. LAST: ends it. CLOSED: the extent is `published` bytes long, rounded up
                       to 64 */
};
struct rnl_prefix {
    uint32_t published, flags; /* LAST, CLOSED */
};
struct rnl_refused {
    uint32_t reason, bytes; /* bytes that follow here */
};
static_assert(sizeof(struct rnl_ask) == 8 && sizeof(struct rnl_extent) == 32 && sizeof(struct rnl_prefix) == 8 &&
                  sizeof(struct rnl_refused) == 8,
              "line payloads");
enum { RNL_ASK_MAX = RNL_LINE_PAYLOAD - 8 };

typedef uint64_t rnl_head;
struct rnl_line {
    _Alignas(64) _Atomic uint64_t head;
    unsigned char payload[RNL_LINE_PAYLOAD];
};
static_assert(sizeof(struct rnl_line) == RNL_LINE_BYTES && offsetof(struct rnl_line, payload) == 8, "line");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "shared words must be lock-free");

/* What a receiver says about the opposite ring. */
struct rnl_back {
    _Atomic uint64_t position, granted, bulk_read;
};
/* One page: all that one process writes for one peer, apart from big rings and bulk areas. */
struct rnl_side {
    struct rnl_line lane0[RNL_SMALL0], lane1[RNL_SMALL1], lane2[RNL_SMALL2];
    struct rnl_back back[RNL_LANES]; /* 3584: read by the peer when it believes a ring full */
    uint64_t zero0[7];
    _Atomic uint32_t armed;         /* 3712: read by the peer after each publish and tell. enum rnl_armed */
    _Atomic uint32_t senders_fence; /* 1 = no heavy fence here: fence before you read armed */
    _Atomic uint32_t version;       /* 0 = not opened yet by its writer */
    uint32_t zero1;
    _Atomic uint64_t
        asked_back; /* lane 0, units, absolute: give back so many of what I granted you and you do not use */
    _Atomic uint64_t gave_back; /* ... of your grant I gave back so many */
    unsigned char zero2[352];
};
static_assert(offsetof(struct rnl_side, lane1) == 2048 && offsetof(struct rnl_side, lane2) == 3072, "side.lanes");
static_assert(offsetof(struct rnl_side, back) == 3584 && offsetof(struct rnl_side, armed) == 3712, "side.back");
static_assert(sizeof(struct rnl_side) == 4096, "a side is one page");
enum { RNL_SIDE_VERSION = 1 };
enum rnl_armed {
    RNL_ARMED_LINES = 1 /* ring my bell after publishing */,
    RNL_ARMED_ROOM = 2 /* ... after giving room back */
};

#define RNL_HEAD_SEQ(h)     ((uint16_t)(h))
#define RNL_HEAD_ACK(h)     ((uint16_t)((h) >> 16))
#define RNL_HEAD_ACKLANE(h) ((unsigned)((h) >> 32) & 3u)
#define RNL_HEAD_N(h)       ((unsigned)((h) >> 34) & 7u)
#define RNL_HEAD_LEN(h)     ((unsigned)((h) >> 37) & 63u)
#define RNL_HEAD_KIND(h)    ((unsigned)((h) >> 43) & 31u)
#define RNL_HEAD_HANDLER(h) ((unsigned)((h) >> 48))
/* len, kind and handler: what the items of one line share. */
RNL_INLINE rnl_head rnl_head_key(unsigned kind, unsigned handler, unsigned len)
{
    return (rnl_head)len << 37 | (rnl_head)kind << 43 | (rnl_head)handler << 48;
}
#define RNL_HEAD_KEY_MASK (~(rnl_head)0 << 37)

/* A line that filled up before the next was begun says that messages stream: the lines after it are fetched early.
 * Never for lone messages: it would take the line away from a peer that polls it. */
enum { RNL_STREAMING = 2, RNL_PREFETCH_AHEAD = 2 };
RNL_INLINE void rnl_prefetch_write(const void *p)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)p)); /* the builtin fetches for reading on baseline x86-64 */
#else
    __builtin_prefetch(p, 1);
#endif
}

struct rnl_tx { /* private to the sender */
    struct rnl_line *ring;
    uint64_t line;                 /* the open line, or the last one */
    uint64_t stop;                 /* first line number that position and grant do not allow */
    uint64_t acked;                /* peer's position */
    rnl_head key;                  /* of the open line */
    uint32_t n;                    /* items in it; 0 = closed */
    uint32_t more;                 /* ... 1 less than fit in it */
    unsigned char *at;             /* where the next item goes */
    struct rnl_line *open;         /* &ring[line & mask] */
    const _Atomic uint32_t *armed; /* the peer's word, or one that is never 0 while senders must fence */
    uint32_t mask;
    uint32_t counted;            /* items of the open line that the counters know */
    const struct rnl_side *peer; /* their words about this ring */
    /* colder */
    uint64_t line0;
    uint64_t bulk_head, bulk_read; /* reserved up to here; read by the peer up to here */
    unsigned char *bulk;           /* NULL = not mapped yet */
    uint64_t granted;              /* the most the peer ever granted: what it takes back by itself does not count */
    uint64_t gave;                 /* units given back (lane 0) */
    struct rnl_side *mine;         /* where we say so */
    unsigned lane;
};
extern const _Atomic uint32_t rnl_tx_always_armed;

struct rnl_rx { /* private to the receiver */
    struct rnl_line *ring;
    uint64_t line; /* being read */
    rnl_head seen; /* its header when all its items had been read: the same again means nothing new */
    uint32_t n;    /* items of it that have been read */
    uint32_t mask;
    uint64_t tell_line;    /* tell when line reaches this */
    uint32_t told;         /* we did, and nobody looked yet whether the sender sleeps */
    struct rnl_side *mine; /* where our words about it go */
    /* colder */
    uint64_t line0;
    uint64_t standing;             /* units the peer may have outstanding */
    uint64_t withheld, told_grant; /* units of kept messages; what we last said */
    uint64_t asked, got_back;      /* units: asked back, seen to be given back (lane 0) */
    const struct rnl_side *theirs; /* where they say so */
    uint64_t bulk_next;            /* where the next extent starts at the earliest */
    uint64_t bulk_read, told_bulk; /* done with up to here; what we last said */
    uint64_t told_position;        /* position we last said */
    const unsigned char *bulk;     /* NULL = not mapped yet */
    unsigned lane;
};

RNL_INLINE uint64_t rnl_rx_position(const struct rnl_rx *r)
{
    return r->line * 8 + r->n;
}
RNL_INLINE uint64_t rnl_tx_position(const struct rnl_tx *t)
{
    return t->n ? t->line * 8 + t->n : (t->line + 1) * 8; /* nothing is added to a closed line */
}

/* ---- sending ---- */

/* Place for an item of len bytes; *fresh says that it opens a line. NULL: not allowed now (rnl_tx_refresh, then wait or
 * give up). */
RNL_INLINE unsigned char *rnl_tx_place(struct rnl_tx *t, rnl_head key, unsigned len, int *fresh)
{
    uint32_t n = t->n;
    (void)len; /* is in the key */
    if (key == t->key && n - 1u < t->more && t->acked < t->line * 8 + n) {
        *fresh = 0;
        return t->at;
    }
    if (RNL_UNLIKELY(t->line + 1 >= t->stop))
        return NULL;
    *fresh = 1;
    return t->ring[(t->line + 1) & t->mask].payload;
}

/* How many items of len bytes one line takes, less 1. */
RNL_INLINE uint32_t rnl_tx_more(unsigned len)
{
    static const uint8_t more[RNL_LINE_PAYLOAD + 1] = {6, 6, 6, 6, 6, 6, 6, 6, 6, 5, 4, 4, 3, 3, 3,
                                                       2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    return more[len];
}

/* Publish what was composed at that place, quoting our reading position `ack` of lane `acklane`. Few stores: where the
 * peer is far, the rate is bound by how many fit in the store buffer while a line is fetched. */
RNL_INLINE void rnl_tx_publish(struct rnl_tx *t, rnl_head key, int fresh, uint64_t ack, unsigned acklane)
{
    rnl_head h = key | (rnl_head)(uint16_t)ack << 16 | (rnl_head)acklane << 32;
    if (!fresh) {
        uint32_t n = t->n + 1;
        t->n = n;
        t->at += RNL_HEAD_LEN(key);
        /* R1 pairs with A1 in rnl_rx_head: payload before header. */
        atomic_store_explicit(&t->open->head, h | (uint16_t)t->line | (rnl_head)n << 34, memory_order_release);
        return;
    }
    uint64_t line = t->line + 1;
    struct rnl_line *open = &t->ring[line & t->mask];
    if (t->n >= RNL_STREAMING)
        rnl_prefetch_write(&t->ring[(line + RNL_PREFETCH_AHEAD) & t->mask]);
    t->line = line;
    t->open = open;
    t->n = 1;
    t->key = key;
    t->more = rnl_tx_more(RNL_HEAD_LEN(key));
    t->at = open->payload + RNL_HEAD_LEN(key);
    t->counted = 0;
    atomic_store_explicit(&open->head, h | (uint16_t)line | (rnl_head)1 << 34, memory_order_release); /* R1 */
}

/* F1: not 0 = the peer does not look by itself: ring its bell. After each publish (what = RNL_ARMED_LINES) or tell
 * (RNL_ARMED_ROOM). */
RNL_INLINE uint32_t rnl_tx_armed(const struct rnl_tx *t, uint32_t what)
{
    atomic_signal_fence(memory_order_seq_cst);
    return atomic_load_explicit(&t->peer->armed, memory_order_relaxed) & what;
}

/* What a header of the opposite ring says about this one. */
RNL_INLINE int rnl_tx_acked(struct rnl_tx *t, unsigned ack16)
{
    unsigned d = (uint16_t)(ack16 - (unsigned)t->acked);
    if (d - 1u < 0x7fffu) { /* positions never go back; an older header may be seen again */
        uint64_t to = t->acked + d;
        if (RNL_UNLIKELY(to > (t->line + 1) * 8))
            return RNL_RING_BROKEN;
        t->acked = to;
    }
    return 0;
}

/* ---- receiving ---- */

/* Say how far we are. What is new is noted in `told`: the sender may be asleep for want of it, somebody must look. */
void rnl_rx_tell(struct rnl_rx *r);
/* Something was read that the sender has not been told. */
RNL_INLINE int rnl_rx_untold(const struct rnl_rx *r)
{
    return r->bulk_read != r->told_bulk || rnl_rx_position(r) != r->told_position;
}
/* The line is done with, payload included. */
RNL_INLINE void rnl_rx_leave(struct rnl_rx *r)
{
    r->line++;
    r->n = 0;
    r->seen = 0; /* the same header may come again 65,536 lines on */
    if (RNL_UNLIKELY(r->line >= r->tell_line))
        rnl_rx_tell(r);
}
RNL_INLINE rnl_head rnl_rx_head(const struct rnl_rx *r, uint64_t line)
{
    return atomic_load_explicit(&r->ring[line & r->mask].head, memory_order_acquire); /* A1 */
}
/* Header of the line being read if it holds items not yet read, else 0. Moves over lines that are done. */
RNL_INLINE rnl_head rnl_rx_peek(struct rnl_rx *r)
{
    rnl_head h = rnl_rx_head(r, r->line);
    if (RNL_UNLIKELY(h != r->seen)) {
        if (RNL_HEAD_SEQ(h) != (uint16_t)r->line)
            return 0;
        if (RNL_HEAD_N(h) > r->n)
            return h;
        if (r->n == 0)
            return 0;
    }
    /* All of this line is read: has the sender moved on? An append may precede the move, so look at it again. */
    rnl_head next = rnl_rx_head(r, r->line + 1);
    if (RNL_HEAD_SEQ(next) != (uint16_t)(r->line + 1) || RNL_HEAD_N(next) == 0)
        return 0;
    h = rnl_rx_head(r, r->line);
    if (RNL_UNLIKELY(h != r->seen && RNL_HEAD_SEQ(h) == (uint16_t)r->line && RNL_HEAD_N(h) > r->n))
        return h;
    rnl_rx_leave(r);
    return next;
}
/* After all items of the line were read: has another line come? Does not look for an append to this one. */
RNL_INLINE int rnl_rx_next(const struct rnl_rx *r)
{
    uint64_t line = r->line + (r->n != 0);
    rnl_head h = atomic_load_explicit(&r->ring[line & r->mask].head, memory_order_acquire); /* A1 */
    return RNL_HEAD_SEQ(h) == (uint16_t)line && RNL_HEAD_N(h) != 0;
}
/* Nothing more will be appended to this line: it is full, or of a kind that is never appended to. */
RNL_INLINE int rnl_head_full(rnl_head h)
{
    unsigned n = RNL_HEAD_N(h);
    return RNL_HEAD_KIND(h) != RNL_LINE_ITEMS || n == RNL_ITEMS_MAX || (n + 1) * RNL_HEAD_LEN(h) > RNL_LINE_PAYLOAD;
}

/* ---- slow paths ---- */

/* Our words about lanes we receive, before anybody reads them. */
void rnl_side_init(struct rnl_side *mine, int senders_fence);
void rnl_tx_init(struct rnl_tx *t, struct rnl_side *mine, const struct rnl_side *theirs, unsigned lane,
                 unsigned colour);
void rnl_rx_init(struct rnl_rx *r, struct rnl_side *mine, struct rnl_side *theirs, unsigned lane, unsigned colour);
/* Reads what the peer says (through env's distance sensor) and moves `stop`. 1 = a fresh line may be used now, 0,
 * RNL_RING_BROKEN. */
int rnl_tx_refresh(struct rnl_tx *t, struct rnl_env *env, uint8_t *distance);
/* More units may be outstanding from now on. Fewer only by the sender giving back: */
void rnl_rx_grant(struct rnl_rx *r, uint64_t standing);
/* Ask the sender for what it does not use beyond `standing` (lane 0). */
void rnl_rx_ask_back(struct rnl_rx *r, uint64_t standing);
/* Sender: give back what was asked for and is not in use. Receiver: notice it; returns the units that came back, at
 * most what was asked. */
void rnl_tx_give_back(struct rnl_tx *t);
uint64_t rnl_rx_got_back(struct rnl_rx *r);

/* bytes (<= RNL_BULK_BYTES / 2) contiguous in the bulk area, not yet committed: *start. 1, 0 = no room now,
 * RNL_RING_BROKEN. */
int rnl_tx_bulk_room(struct rnl_tx *t, uint32_t bytes, uint64_t *start);
/* Largest piece, up to `bytes`, that fits now without leaving a gap before it; 0 = none of at least `least`. For
 * messages that may come in many pieces: a grant smaller than the message must not stop it for ever. RNL_RING_BROKEN.
 */
int64_t rnl_tx_bulk_piece(struct rnl_tx *t, uint32_t bytes, uint32_t least);
/* The area is used up to `end` now (reserve, or trim). */
void rnl_tx_bulk_take(struct rnl_tx *t, uint64_t end);
/* Checks an EXTENT's place. 0 or RNL_RING_BROKEN. */
int rnl_rx_extent(struct rnl_rx *r, const struct rnl_extent *e);
/* We are done with the bulk area up to `to`. */
void rnl_rx_bulk_done(struct rnl_rx *r, uint64_t to);

/* Move to the big ring; for the sender after it published GROW, for the receiver after it read GROW. */
void rnl_tx_grow(struct rnl_tx *t, struct rnl_line *big);
void rnl_rx_grow(struct rnl_rx *r, struct rnl_line *big);

/* Invariants; 0, or the number of the one that does not hold. */
int rnl_tx_valid(const struct rnl_tx *t);
int rnl_rx_valid(const struct rnl_rx *r);
/* Text for people, always terminated. */
void rnl_tx_dump(const struct rnl_tx *t, char *text, size_t bytes);
void rnl_rx_dump(const struct rnl_rx *r, char *text, size_t bytes);

#endif
