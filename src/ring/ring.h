/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring.h - one direction of one lane between two processes that need not trust each other: a ring of cache lines and a
 * bulk area, both in shared memory. Knows no messages, no peers, no clocks. One thread sends, one receives.
 *
 * A line is 64 bytes. No other place is ever read as a header, so payload cannot imitate one:
 *
 *   bit 0           16              32  34   37      43    48              64      byte 8 .. 63
 *   +---------------+---------------+---+----+-------+-----+---------------+-----------------------------+
 *   | pos           | ack           |al | 0  | len   |kind | handler       | payload: n items of len     |
 *   +---------------+---------------+---+----+-------+-----+---------------+-----------------------------+
 *   pos   low 16 bits of the position after the line's last item: line * 8 + n, with n = 1..7 items published so far.
 *         A line counts only if its number is right and n > 0, so zeroed memory is empty; a line is overwritten before
 *         its number can come round (at most 1,024 of 8,192 lines), so nobody ever clears one. The line stays open: an
 *         item of the same key is appended and n goes up, unless the peer is known to have read all there is: then a
 *         fresh line is used. So a lone message is never delayed, and a burst shares lines.
 *   ack   position to which the sender of this line has read its opposite ring of lane `al`.
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
    RNL_AWAY1 = 64, /* of lane 1 to another host: as many answers go between two words about what was read */
    RNL_SMALL2 = 8,
    RNL_BIG = 1024,
    RNL_BULK_BYTES = 1 << 20,
    RNL_BULK_AWAY = 2 << 20,      /* of lane 0 to a peer of another host: what got lost is waited for in it */
    RNL_BULK_ANSWERS = 160 << 10, /* of lane 1, while its messages are of at most: */
    RNL_BULK_ANSWER = 64 << 10,
    RNL_GRANT_MIN = 128, /* units */
    RNL_AHEAD = 8,       /* lines */
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
/* FIRST: opens a message. LAST: ends it. CLOSED: the extent is `published` bytes long, rounded up to 64; LAST has it.
 * ABORT, with LAST and CLOSED: the message ends here, incomplete, and is dropped. It is never FIRST, since who gives up
 * what was not seen says nothing, publishes no bytes, and is on lane 0. */
enum { RNL_EXTENT_FIRST = 1, RNL_EXTENT_LAST = 2, RNL_EXTENT_CLOSED = 4, RNL_EXTENT_ABORT = 8, RNL_EXTENT_FLAGS = 15 };
struct rnl_extent {
    uint64_t start;     /* position in the bulk area, a multiple of 64 */
    uint32_t reserved;  /* bytes that may follow at start, contiguous */
    uint32_t published; /* bytes of them that are there */
    uint64_t bound;     /* FIRST: of the message */
    uint32_t answer;    /* FIRST */
    uint32_t flags;     /* RNL_EXTENT_... */
};
struct rnl_prefix {
    uint32_t published, flags; /* not FIRST */
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
    _Atomic uint32_t armed;         /* 3712: read by the peer after each publish and tell: 0, or which arming it is * 32
                                       + enum rnl_armed. Whoever has rung for one need not ring for it again,
                                       if it is not COLD */
    _Atomic uint32_t senders_fence; /* 1 = no heavy fence here: fence before you read armed */
    _Atomic uint32_t version;       /* 0 = not opened yet by its writer */
    uint32_t zero1;
    _Atomic uint64_t
        asked_back; /* lane 0, units, absolute: give back so many of what I granted you and you do not use */
    _Atomic uint64_t gave_back; /* ... of your grant I gave back so many */
    _Atomic uint64_t wants;     /* lane 0, units: what I have to send needs so many outstanding; 0 = nothing special */
    _Atomic uint64_t most;      /* lane 0, units: I could never let you have more outstanding */
    unsigned char zero2[336];
};
static_assert(offsetof(struct rnl_side, lane1) == 2048 && offsetof(struct rnl_side, lane2) == 3072, "side.lanes");
static_assert(offsetof(struct rnl_side, back) == 3584 && offsetof(struct rnl_side, armed) == 3712, "side.back");
static_assert(offsetof(struct rnl_side, asked_back) == 3728 && offsetof(struct rnl_side, most) == 3752, "side.credit");
static_assert(sizeof(struct rnl_side) == 4096, "a side is one page");
enum { RNL_SIDE_VERSION = 3 };
enum rnl_armed {
    RNL_ARMED_LINES = 1 /* ring my bell after publishing */,
    RNL_ARMED_ROOM = 2 /* ... after giving room back */,
    RNL_ARMED_FD = 4 /* ... and raise my descriptor */,
    RNL_ARMED_WAKE = 8 /* ... and wake whoever sleeps on the bell */,
    RNL_ARMED_COLD = 16 /* ring at each line: I look at the bell, but at this ring only when it has rung */,
    RNL_ARMED_TURN = 32
};

#define RNL_HEAD_POS(h)     ((uint16_t)(h))
#define RNL_HEAD_N(h)       ((unsigned)(h)&7u)
#define RNL_HEAD_ACK(h)     ((uint16_t)((h) >> 16))
#define RNL_HEAD_ACKLANE(h) ((unsigned)((h) >> 32) & 3u)
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

#define RNL_HEAD_KEY_NONE 1 /* a key that no line has */

#define RNL_WRAP(lines)     ((uint64_t)((lines)-1) * RNL_LINE_BYTES)
#define RNL_LINES(wrap)     ((wrap) / RNL_LINE_BYTES + 1)
#define RNL_LINE_START(pos) (((pos) + 7) & ~(uint64_t)7) /* where the first line begins that `pos` is not inside of */

struct rnl_tx {         /* private to the sender */
    unsigned char *end; /* of the open line's last item */
    uint64_t pos;       /* after the last item: line * 8 + n, or the next line's start if nothing is to be appended and
                           the reader leaves such lines at once */
    uint64_t acked;     /* peer's position */
    rnl_head key;       /* of the open line; RNL_HEAD_KEY_NONE = none is open */
    uint64_t quick_handler, quick_bytes; /* what key says, while rnl_tx_quick holds: a message of this kind may be sent
                                            with nothing else looked at ... */
    uint64_t quick_stop;                 /* ... at positions before this: stop - 7. Else none can, and it is 0 */
    const _Atomic uint32_t *armed;       /* the peer's word, or one that is never 0 while senders must fence */
    uint32_t more;                       /* items that fit in a line of this key, less 1 */
    uint32_t counted;                    /* items that the counters know, see rnl_tx_items */
    uint32_t items;                      /* items of the lines before the open one, less 1 each */
    struct rnl_line *ring;
    uint64_t wrap;               /* ring bytes - 64 */
    uint64_t stop;               /* start of the first line that position and grant do not allow */
    const struct rnl_side *peer; /* their words about this ring */
    /* colder */
    uint64_t line0;
    uint64_t bulk_head, bulk_read; /* reserved up to here; read by the peer up to here */
    unsigned char *bulk;           /* NULL: not there yet */
    uint64_t bulk_mask;            /* bytes of the area, less 1 */
    uint64_t granted;              /* the most the peer ever granted: what it takes back by itself does not count */
    uint64_t gave;                 /* units given back (lane 0) */
    uint64_t wanted;               /* what we say in wants (lane 0) */
    uint32_t patience;             /* ... for so many more looks at what is asked back */
    struct rnl_side *mine;         /* where we say so */
    unsigned lane;
};
extern const _Atomic uint32_t rnl_tx_always_armed;

struct rnl_rx {            /* private to the receiver */
    struct rnl_line *next; /* the line where something new begins */
    rnl_head seen;         /* last's header when all its items had been read: the same again means nothing new */
    struct rnl_line *last; /* the one before `next`: items may be appended there */
    rnl_head expect;       /* turned: `next` with one item of the kind that stream/ set here, see rnl_rx_expected */
    uint64_t next_pos;     /* start of `next` */
    uint64_t pos;          /* read up to here: inside `last`, or next_pos once that is left */
    uint64_t tell_pos;     /* tell when a line from here on is entered */
    uint64_t quoted;       /* the last position that a header said of the opposite ring; see rnl_tx_acked */
    uint32_t told;         /* we did, and nobody looked yet whether the sender sleeps */
    unsigned lane;
    struct rnl_side *mine; /* where our words about it go */
    struct rnl_line *ring;
    uint64_t wrap; /* ring bytes - 64 */
    /* colder */
    uint64_t line0;
    uint64_t standing;             /* units the peer may have outstanding */
    uint64_t withheld, told_grant; /* units of kept messages; what we last said */
    uint64_t asked, got_back;      /* units: asked back, seen to be given back (lane 0) */
    const struct rnl_side *theirs; /* where they say so */
    uint64_t bulk_next;            /* where the next extent starts at the earliest */
    uint64_t bulk_read, told_bulk; /* done with up to here; what we last said */
    uint64_t told_position;        /* position we last said */
    const unsigned char *bulk;
    uint64_t bulk_mask; /* bytes of the area, less 1 */
};

RNL_INLINE struct rnl_line *rnl_line_of(struct rnl_line *ring, uint64_t wrap, uint64_t pos)
{
    return (struct rnl_line *)((unsigned char *)ring + ((pos << 3) & wrap)); /* 8 positions, 64 bytes a line */
}
/* The last line that was begun. */
RNL_INLINE uint64_t rnl_tx_line(const struct rnl_tx *t)
{
    return (t->pos - 1) >> 3;
}

/* ---- sending ---- */

/* Items so far, from some number on. All but the first of a line cost a look at `items` when the next line is begun;
 * most lines have one. */
RNL_INLINE uint32_t rnl_tx_items(const struct rnl_tx *t)
{
    return t->items + (uint32_t)rnl_tx_line(t) + (uint32_t)(t->pos & 7);
}

/* Messages like those of the open line may go the short way, whose stream/ says that nothing is against it ... */
RNL_INLINE void rnl_tx_quick(struct rnl_tx *t)
{
    t->quick_handler = RNL_HEAD_HANDLER(t->key);
    t->quick_bytes = RNL_HEAD_LEN(t->key);
    t->quick_stop = t->stop - 7;
}
/* ... and no more: something is, or no line is open. */
RNL_INLINE void rnl_tx_slow(struct rnl_tx *t)
{
    if (!t->quick_stop) /* it is so: stores count in streams of messages of some hundred bytes */
        return;
    t->quick_handler = t->quick_bytes = UINT64_MAX;
    t->quick_stop = 0;
}
RNL_INLINE void rnl_tx_set_stop(struct rnl_tx *t, uint64_t stop)
{
    t->stop = stop;
    if (t->quick_stop)
        t->quick_stop = stop - 7;
}

/* Is the next item of this key appended to the open line? A key that a line has means that an item is there. */
RNL_INLINE int rnl_tx_room_in_line(const struct rnl_tx *t)
{
    return t->acked < t->pos && (uint32_t)(t->pos & 7) <= t->more;
}
RNL_INLINE int rnl_tx_appends(const struct rnl_tx *t, rnl_head key)
{
    return key == t->key && rnl_tx_room_in_line(t);
}
/* Place for an item of len bytes; *fresh says that it opens a line. NULL: not allowed now (rnl_tx_refresh, then wait or
 * give up). */
RNL_INLINE unsigned char *rnl_tx_place(const struct rnl_tx *t, rnl_head key, int *fresh)
{
    uint64_t pos = t->pos;
    if (rnl_tx_appends(t, key)) {
        *fresh = 0;
        return t->end;
    }
    pos = RNL_LINE_START(pos);
    if (RNL_UNLIKELY(pos >= t->stop))
        return NULL;
    *fresh = 1;
    return rnl_line_of(t->ring, t->wrap, pos)->payload;
}

/* How many items of len bytes one line takes, less 1. */
RNL_INLINE uint32_t rnl_tx_more(unsigned len)
{
    static const uint8_t more[RNL_LINE_PAYLOAD + 1] = {6, 6, 6, 6, 6, 6, 6, 6, 6, 5, 4, 4, 3, 3, 3,
                                                       2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    return more[len];
}

/* The header of a line whose last item ends at `end`: items are not longer than a line, and empty ones lie behind the
 * header. */
RNL_INLINE struct rnl_line *rnl_line_before(unsigned char *end)
{
    return (struct rnl_line *)((uintptr_t)(end - 1) & ~(uintptr_t)(RNL_LINE_BYTES - 1));
}
/* Publish what was composed in `line` at the place rnl_tx_place gave for this key; quoting our reading position `ack`
 * of lane `acklane`. Few stores: the rate is bound by how many fit in the store buffer while a line is fetched, most
 * where the peer is far. `pos`: of the item before it in this line, or its start. */
RNL_INLINE void rnl_tx_publish_in(struct rnl_tx *t, rnl_head key, struct rnl_line *line, unsigned char *end,
                                  uint64_t pos, uint64_t ack, unsigned acklane)
{
    rnl_head h = key | (rnl_head)((uint32_t)(uint16_t)ack << 16) | (rnl_head)acklane << 32;
    pos++;
    t->pos = pos;
    t->end = end;
    /* R1 pairs with A1 in rnl_rx_peek: payload before header. */
    atomic_store_explicit(&line->head, h | (uint16_t)pos, memory_order_release);
}
/* ... and ends at `end`. */
RNL_INLINE void rnl_tx_publish_at(struct rnl_tx *t, rnl_head key, unsigned char *end, uint64_t pos, uint64_t ack,
                                  unsigned acklane)
{
    rnl_tx_publish_in(t, key, rnl_line_before(end), end, pos, ack, acklane);
}
/* A line is begun: returns its start. */
RNL_INLINE uint64_t rnl_tx_begin_line(struct rnl_tx *t)
{
    uint64_t pos = t->pos + 7;
    if (pos & 7) { /* not after one item */
        uint32_t n = t->pos & 7;
        pos &= ~(uint64_t)7;
        if (n >= RNL_STREAMING)
            rnl_prefetch_write(rnl_line_of(t->ring, t->wrap, pos + RNL_PREFETCH_AHEAD * 8));
        t->items += n - 1;
    }
    return pos;
}
/* It was not: nothing was published in it. */
RNL_INLINE void rnl_tx_unbegin_line(struct rnl_tx *t)
{
    t->items -= (uint32_t)(t->pos & 7) - 1;
}
RNL_INLINE void rnl_tx_publish_same(struct rnl_tx *t, rnl_head key, unsigned char *end, int fresh, uint64_t ack,
                                    unsigned acklane) /* the key of the last line */
{
    rnl_tx_publish_at(t, key, end, fresh ? rnl_tx_begin_line(t) : t->pos, ack, acklane);
}
RNL_INLINE void rnl_tx_publish(struct rnl_tx *t, rnl_head key, unsigned char *end, int fresh, uint64_t ack,
                               unsigned acklane)
{
    if (RNL_UNLIKELY(key != t->key)) { /* then the line is a fresh one; stream/ has counted the earlier items */
        rnl_tx_slow(t);
        t->counted = rnl_tx_items(t);
        t->key = key;
        t->more = rnl_tx_more(RNL_HEAD_LEN(key));
    }
    rnl_tx_publish_same(t, key, end, fresh, ack, acklane);
}
/* How much of a lane's bulk area is used before it turns. Answers are at most 64 KiB, and come of requests that are
 * under way: more memory for them makes nothing faster, and it is what each peer that answers at length costs. What is
 * skipped has to fit beside what follows, and beside what the reader has not said yet that it has read. */
static_assert(2 * RNL_BULK_ANSWER + RNL_BULK_ANSWERS / 8 <= RNL_BULK_ANSWERS, "turning never waits for ever");
RNL_INLINE uint64_t rnl_bulk_area(const struct rnl_tx *t, uint32_t bytes)
{
    return t->lane == 1 && bytes <= RNL_BULK_ANSWER ? RNL_BULK_ANSWERS : t->bulk_mask + 1;
}
/* Is there a line, and room for `bytes` in the bulk area, as far as is known without looking at the peer's words? */
RNL_INLINE int rnl_tx_surely(const struct rnl_tx *t, uint32_t bytes)
{
    uint64_t used = rnl_tx_line(t) - t->line0 + t->bulk_head / 64, end = t->bulk_head + bytes;
    return (t->bulk || bytes <= RNL_LINE_PAYLOAD) && bytes <= RNL_BULK_BYTES / 8 && RNL_LINE_START(t->pos) < t->stop &&
           end - t->bulk_read <= RNL_BULK_BYTES / 2 &&
           (t->bulk_head & t->bulk_mask) + bytes <= rnl_bulk_area(t, bytes) &&
           used + 2 + bytes / 64 <= t->granted - t->gave;
}
/* Nothing is appended to the open line any more. Its items still count. */
RNL_INLINE void rnl_tx_close_line(struct rnl_tx *t)
{
    t->key = RNL_HEAD_KEY_NONE;
    rnl_tx_slow(t);
}
/* The line just published is of a kind that the reader leaves at once. */
RNL_INLINE void rnl_tx_close_other(struct rnl_tx *t)
{
    t->pos = RNL_LINE_START(t->pos);
    rnl_tx_close_line(t);
}
/* Publish and close_other in one, of the line `line` at RNL_LINE_START(t->pos); stream/ has counted the earlier items.
 */
RNL_INLINE void rnl_tx_publish_closed(struct rnl_tx *t, rnl_head key, struct rnl_line *line, uint64_t ack)
{
    uint64_t pos = rnl_tx_begin_line(t);
    t->pos = pos + 8;
    if (t->key != RNL_HEAD_KEY_NONE)
        rnl_tx_close_line(t);
    /* R1 pairs with A1 in rnl_rx_peek: payload before header. */
    atomic_store_explicit(&line->head, key | (rnl_head)((uint32_t)(uint16_t)ack << 16) | (uint16_t)(pos + 1),
                          memory_order_release);
}

/* F1: not 0 = the peer does not look by itself: ring its bell. After each publish (what = RNL_ARMED_LINES) or tell
 * (RNL_ARMED_ROOM). */
RNL_INLINE uint32_t rnl_tx_armed(const struct rnl_tx *t, uint32_t what)
{
    atomic_signal_fence(memory_order_seq_cst);
    return atomic_load_explicit(&t->peer->armed, memory_order_relaxed) & what;
}

/* What a header of r says about the opposite ring: the low half of a position, which stands for the lowest one not
 * before what earlier headers of r said. So however long a header lay unread, and however far the peer has come since,
 * no more is believed than it meant. A lane's headers speak of one lane only. */
RNL_INLINE int rnl_tx_acked(struct rnl_tx *t, struct rnl_rx *r, unsigned ack16)
{
    uint64_t position = r->quoted + (uint16_t)(ack16 - (unsigned)r->quoted);
    r->quoted = position;
    if (RNL_LIKELY(position > t->acked)) {
        if (position > t->pos && position > RNL_LINE_START(t->pos)) /* most often the first says it */
            return RNL_RING_BROKEN;
        t->acked = position;
    }
    return 0;
}

/* ---- receiving ---- */

/* Say how far we are. What is new is noted in `told`: the sender may be asleep for want of it, somebody must look. */
void rnl_rx_tell(struct rnl_rx *r);
/* Something was read that the sender has not been told. */
RNL_INLINE int rnl_rx_untold(const struct rnl_rx *r)
{
    return r->bulk_read != r->told_bulk || r->pos != r->told_position;
}
/* Does header h of `next` say that this line is there? 1..7 = its items, else 0. */
RNL_INLINE unsigned rnl_rx_begun(const struct rnl_rx *r, rnl_head h)
{
    unsigned n = (uint16_t)((unsigned)h - (unsigned)r->next_pos);
    return n < 8 ? n : 0;
}
/* A header with its position on top, where it may be added to, and its ack at the bottom. */
RNL_INLINE rnl_head rnl_head_turned(rnl_head h)
{
    return h >> 16 | h << 48;
}
#define RNL_TURNED_POS(pos) ((rnl_head)(pos) << 48)
enum { RNL_NOT_EXPECTED = 0x10000 };
/* Is h, of `next`, a line with one item of the kind that is expected? Its ack; else more than that can be. */
RNL_INLINE uint64_t rnl_rx_expected(const struct rnl_rx *r, rnl_head h)
{
    return rnl_head_turned(h) ^ r->expect;
}
/* Lines like h's are from now on. */
RNL_INLINE void rnl_rx_expect(struct rnl_rx *r, rnl_head h)
{
    r->expect = RNL_TURNED_POS(r->next_pos + 1) | (rnl_head_turned(h) & (rnl_head)UINT32_MAX << 16);
}
/* A header that holds items not yet read, else 0. What is in `last` goes first; that is looked at after `next`, since
 * an append precedes the move to the next line. */
RNL_INLINE rnl_head rnl_rx_peek(const struct rnl_rx *r)
{
    rnl_head next = atomic_load_explicit(&r->next->head, memory_order_acquire); /* A1 */
    rnl_head last = atomic_load_explicit(&r->last->head, memory_order_acquire); /* A1 */
    if (RNL_UNLIKELY(last != r->seen)) {
        unsigned appended = (uint16_t)((unsigned)last - (unsigned)r->pos), n = r->pos & 7;
        if (n && appended - 1u < 7u - n)
            return last;
    }
    return rnl_rx_begun(r, next) ? next : 0;
}
/* Now and then, to a peer of this host: with nothing left unread, headers to come say at least what is known already,
 * for what it said before it is seen before it. A quote that is more than 2^16 behind would be of no use any more:
 * `behind` says at how much it is brought up. */
enum { RNL_QUOTE_BEHIND = 0x8000 };
RNL_INLINE void rnl_rx_requote(struct rnl_rx *r, const struct rnl_tx *t, uint64_t behind)
{
    if (t->acked > r->quoted + behind && rnl_rx_peek(r) == 0)
        r->quoted = t->acked;
}
/* Of a header that rnl_rx_peek returned: items of its line that have been read, and where its payload is. */
RNL_INLINE unsigned rnl_rx_from(const struct rnl_rx *r, rnl_head h)
{
    return rnl_rx_begun(r, h) ? 0 : r->pos & 7;
}
RNL_INLINE const unsigned char *rnl_rx_payload(const struct rnl_rx *r, rnl_head h)
{
    return rnl_rx_begun(r, h) ? r->next->payload : r->last->payload;
}
/* `next` is entered: n of its items are read; the sender may have to be told. Where it began. */
RNL_INLINE uint64_t rnl_rx_step(struct rnl_rx *r, unsigned n)
{
    uint64_t start = r->next_pos;
    r->last = r->next;
    r->pos = start + n;
    r->next_pos = start + 8;
    r->expect += RNL_TURNED_POS(8);
    r->next = rnl_line_of(r->ring, r->wrap, start + 8);
    return start;
}
/* ... and is told. */
RNL_INLINE void rnl_rx_enter(struct rnl_rx *r, unsigned n)
{
    if (RNL_UNLIKELY(rnl_rx_step(r, n) >= r->tell_pos))
        rnl_rx_tell(r);
}
/* The items up to the n-th of h's line are read, as far as the sender may know; the payload is not done with. */
RNL_INLINE void rnl_rx_read(struct rnl_rx *r, rnl_head h, unsigned n)
{
    if (rnl_rx_begun(r, h))
        rnl_rx_enter(r, n);
    else
        r->pos = (r->pos & ~(uint64_t)7) + n;
    if (n == RNL_HEAD_N(h))
        r->seen = h;
}
/* The line last entered is done with, payload included. */
RNL_INLINE void rnl_rx_leave(struct rnl_rx *r)
{
    r->pos = r->next_pos;
    if (RNL_UNLIKELY(r->pos >= r->tell_pos))
        rnl_rx_tell(r);
}
/* The line whose header h is, which begins at `next`, is entered and left at once: all of it has been loaded. */
RNL_INLINE void rnl_rx_pass(struct rnl_rx *r, rnl_head h)
{
    uint64_t pos = r->next_pos + 8;
    r->last = r->next;
    r->seen = h;
    r->pos = r->next_pos = pos;
    r->expect += RNL_TURNED_POS(8);
    r->next = rnl_line_of(r->ring, r->wrap, pos);
    if (RNL_UNLIKELY(pos >= r->tell_pos))
        rnl_rx_tell(r);
}
/* Nothing more will be appended to this line: it is full, or of a kind that is never appended to. */
RNL_INLINE int rnl_head_full(rnl_head h)
{
    unsigned n = RNL_HEAD_N(h);
    return RNL_HEAD_KIND(h) != RNL_LINE_ITEMS || n == RNL_ITEMS_MAX || (n + 1) * RNL_HEAD_LEN(h) > RNL_LINE_PAYLOAD;
}

/* Loads `bytes` (a multiple of 8, at least 8) that lie at the start of a line's payload, each word once, so that what
 * is checked is what is used: a plain copy could be taken apart, or its source read again. */
RNL_INLINE void rnl_rx_load(void *to, const unsigned char *payload, size_t bytes)
{
    const _Atomic uint64_t *from = (const _Atomic uint64_t *)(const void *)payload;
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t word = atomic_load_explicit(&from[i], memory_order_relaxed); /* A1 came before */
        memcpy((unsigned char *)to + i * 8, &word, 8);
    }
}

/* ---- slow paths ---- */

/* Of a stream: has the sender begun the line that lies so many behind `next`? A ring too short to tell says 1. */
int rnl_rx_ahead(const struct rnl_rx *r, unsigned lines);
/* Our words about lanes we receive, before anybody reads them. */
void rnl_side_init(struct rnl_side *mine, int senders_fence);
/* A fresh lane has its lines elsewhere than in its side, and so many of them, a power of two and more than there. */
void rnl_tx_move(struct rnl_tx *t, struct rnl_line *ring, uint32_t lines);
void rnl_rx_move(struct rnl_rx *r, struct rnl_line *ring, uint32_t lines);
/* The same lines lie at `ring` from now on. NULL: nowhere; then nothing is there to read, and there is no place to
 * write, though rnl_tx_refresh may find that there would be room. */
void rnl_tx_at(struct rnl_tx *t, struct rnl_line *ring);
void rnl_rx_at(struct rnl_rx *r, struct rnl_line *ring);
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

/* What ring and bulk area hold: units. */
enum { RNL_GRANT_FULL = RNL_BIG + RNL_BULK_BYTES / 64 + RNL_GRANT_MIN };
RNL_INLINE uint64_t rnl_grant_full(uint64_t bulk_mask)
{
    return RNL_BIG + (bulk_mask + 1) / 64 + RNL_GRANT_MIN;
}
/* Units that the sender would like to have outstanding, at most what ring and bulk area hold (lane 0). */
RNL_INLINE uint64_t rnl_rx_wants(const struct rnl_rx *r)
{
    uint64_t units = r->lane == 0 ? atomic_load_explicit(&r->theirs->wants, memory_order_relaxed) : 0;
    uint64_t full = rnl_grant_full(r->bulk_mask);
    return units < full ? units : full;
}
/* No grant of the receiver will ever do for `bytes` at once, as things lie in the bulk area now; *most, if it has said
 * so: bytes that would do. */
int rnl_tx_bulk_never(const struct rnl_tx *t, uint32_t bytes, uint64_t *most);

/* bytes (<= RNL_BULK_BYTES / 2) contiguous in the bulk area, not yet committed: *start. 1, 0 = no room now (if it is
 * the grant that lacks, the receiver can see what is wanted), RNL_RING_BROKEN. */
int rnl_tx_bulk_room(struct rnl_tx *t, uint32_t bytes, uint64_t *start);
/* Largest piece, up to `bytes`, that fits now without leaving a gap before it; 0 = none of at least `least`. For
 * messages that may come in many pieces: a grant smaller than the message must not stop it for ever. RNL_RING_BROKEN.
 */
int64_t rnl_tx_bulk_piece(struct rnl_tx *t, uint32_t bytes, uint32_t least);
/* The area is used up to `end` now (reserve, or trim). */
void rnl_tx_bulk_take(struct rnl_tx *t, uint64_t end);
/* Where the bytes of a position lie. */
RNL_INLINE const unsigned char *rnl_rx_bulk_at(const struct rnl_rx *r, uint64_t position)
{
    return r->bulk + (position & r->bulk_mask);
}
/* Checks an EXTENT's place. 0 or RNL_RING_BROKEN. */
int rnl_rx_extent(struct rnl_rx *r, const struct rnl_extent *e);
/* We are done with the bulk area up to `to`. */
void rnl_rx_bulk_done(struct rnl_rx *r, uint64_t to);

/* Move to the big ring; for the sender after it published GROW, for the receiver after it read and left GROW. */
void rnl_tx_grow(struct rnl_tx *t, struct rnl_line *big);
void rnl_rx_grow(struct rnl_rx *r, struct rnl_line *big);

/* Invariants; 0, or the number of the one that does not hold. */
int rnl_tx_valid(const struct rnl_tx *t);
int rnl_rx_valid(const struct rnl_rx *r);
/* Text for people, always terminated. */
void rnl_tx_dump(const struct rnl_tx *t, char *text, size_t bytes);
void rnl_rx_dump(const struct rnl_rx *r, char *text, size_t bytes);

#endif
