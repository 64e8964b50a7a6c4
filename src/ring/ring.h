/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring.h - one direction of one lane between two processes that need not trust each other: a ring of cells and a bulk
 * area, both in shared memory, whose layout is drawn in cell.h. It knows no messages, no peers and no clocks. One
 * thread sends, one thread receives.
 *
 * Credit is two counts. Position: a cell is reused when its reader is past it; the position rides on `ack`, and is
 * stored in credit.position once per quarter ring. Grant: units of 64 bytes (a cell, or 64 bytes of bulk area) that the
 * sender may use, absolute, in credit.granted; withheld while the receiver's program keeps a message. RNL_GRANT_MIN
 * units are granted before the receiver has advertised anything.
 *
 * Trust: a shared word is loaded once into a local variable and checked there. Own positions are private. A value that
 * cannot be true makes the function return RNL_RING_BROKEN.
 *
 * Memory orders: payload is stored plainly; the header is stored with release [R1] and loaded with acquire [A1], so the
 * payload is visible when its header is. The credit words (credit.*) are stored with release [R2] and loaded with
 * acquire [A2], so the reader is done with what it gives back. `armed` is relaxed on both sides, and ordered by the
 * receiver's heavy_fence, or by the sender's fence where senders_fence says so [F1]. */
#ifndef RNL_RING_RING_H
#define RNL_RING_RING_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bug.h"
#include "base/env.h"
#include "base/error.h"
#include "ring/cell.h"

/* A cell that was filled before the next one was begun shows that messages stream; the cells after it are then
 * prefetched. Single messages never prefetch, since that would take the cell away from a peer that polls it. */
enum { RNL_STREAMING = 2, RNL_PREFETCH_AHEAD = 2 };
RNL_INLINE void rnl_prefetch_write(const void *p)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    /* On baseline x86-64 the builtin prefetches for reading only. */
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
    __builtin_prefetch(p, 1);
#endif
}

struct rnl_tx {         /* private state of the sender */
    unsigned char *end; /* end of the open cell's last record */
    /* Position after the last record: cell * 8 + n, or the start of the next cell if nothing will be appended and the
     * reader leaves such cells at once. */
    uint64_t pos;
    uint64_t acked; /* position up to which the peer has read */
    rnl_header key; /* key of the open cell; RNL_HEADER_KEY_NONE = none is open */
    /* The fast path: handler and length of `key` while rnl_tx_fast_on holds, and stop - 7. A message of this handler
     * and length may be sent at a position below fast_stop with no other check. When the fast path is off, fast_stop is
     * 0. */
    uint64_t fast_handler, fast_bytes;
    uint64_t fast_stop;
    const _Atomic uint32_t *armed; /* the peer's word, or one that is never 0 while senders must fence */
    uint32_t more;                 /* records that fit in a cell of this key, less 1 */
    uint32_t counted;              /* records that the counters include already, see rnl_tx_records */
    uint32_t extra_records;        /* sum over the cells before the open one of their records less 1 */
    struct rnl_cell *ring;
    uint64_t wrap;                       /* bytes of the ring - 64 */
    uint64_t stop;                       /* start of the first cell that position and grant do not allow */
    const struct rnl_control_page *peer; /* the peer's credit words about this ring */
    /* The fields below are used less often. */
    uint64_t cell0;
    uint64_t bulk_head, bulk_read; /* position reserved up to; position the peer has read up to */
    unsigned char *bulk;           /* NULL = not mapped yet */
    uint64_t bulk_mask;            /* bytes of the area, less 1 */
    bool whole_area;               /* the positions do not wrap early, at the first half MiB */
    uint64_t granted;              /* most units the peer ever granted; a smaller value later is ignored */
    uint64_t credit_returned;      /* units returned (lane 0), or held for later replies (lane 1) */
    uint64_t wanted;               /* value of `credit_wanted` in the own control page (lane 0) */
    uint32_t want_expiry;          /* looks at credit_reclaim after which `wanted` is dropped */
    struct rnl_control_page *mine; /* the own control page */
    unsigned lane;
    /* Lane 1: room that is held for replies which are sent later (rnl_tx_hold). Its units are in credit_returned. */
    uint32_t held_cells;
    uint64_t held_bytes;
    uint64_t reply_area; /* bytes of the bulk area in use for replies; 0 = all of it, since some was held */
};
extern const _Atomic uint32_t rnl_tx_always_armed;

struct rnl_rx {            /* private state of the receiver */
    struct rnl_cell *next; /* the cell in which something new begins */
    rnl_header seen; /* header of `last` when all its records had been read: nothing new if it is still the same */
    struct rnl_cell *last;   /* the cell before `next`; records may be appended to it */
    rnl_header expect;       /* rotated header of `next` with one record of the kind that rnl_rx_expect was given */
    uint64_t next_pos;       /* start of `next` */
    uint64_t pos;            /* position read up to: inside `last`, or next_pos once `last` is left */
    uint64_t advertise_pos;  /* entering a cell from here on advertises */
    uint64_t acked_by_peer;  /* last position of the opposite ring that a header carried, see rnl_tx_acked */
    uint32_t wake_check_due; /* 1 = advertised, and nobody has checked yet whether the sender sleeps */
    unsigned lane;
    struct rnl_control_page *mine; /* the own control page, where this ring's credit is advertised */
    struct rnl_cell *ring;
    uint64_t wrap; /* bytes of the ring - 64 */
    /* The fields below are used less often. */
    uint64_t cell0;
    uint64_t outstanding_max;              /* units that the peer may have outstanding */
    uint64_t withheld, advertised_grant;   /* units of kept messages; grant last advertised */
    uint64_t reclaim_requested, reclaimed; /* units reclaimed; units seen to be returned (lane 0) */
    const struct rnl_control_page *theirs; /* the peer's control page */
    uint64_t bulk_next;                    /* lowest position at which the next extent may start */
    uint64_t bulk_read, advertised_bulk;   /* position done with; value last advertised */
    uint64_t advertised_position;          /* position last advertised */
    const unsigned char *bulk;
    uint64_t bulk_mask; /* bytes of the area, less 1 */
};

RNL_INLINE struct rnl_cell *rnl_cell_of(struct rnl_cell *ring, uint64_t wrap, uint64_t pos)
{
    return (struct rnl_cell *)((unsigned char *)ring + ((pos << 3) & wrap)); /* 8 positions, 64 bytes a cell */
}
/* Returns the number of the last cell that was begun. */
RNL_INLINE uint64_t rnl_tx_cell(const struct rnl_tx *t)
{
    return (t->pos - 1) >> 3;
}

/* ---- sending ---- */

/* Returns the number of records so far, counted from an arbitrary start. Only records beyond the first of a cell cost
 * an access to `extra_records`, when the next cell is begun; most cells have one record. */
RNL_INLINE uint32_t rnl_tx_records(const struct rnl_tx *t)
{
    return t->extra_records + (uint32_t)rnl_tx_cell(t) + (uint32_t)(t->pos & 7);
}

/* Turns the fast path on for messages like those of the open cell. stream/ calls it when nothing forbids the fast
 * path. */
RNL_INLINE void rnl_tx_fast_on(struct rnl_tx *t)
{
    t->fast_handler = RNL_HEADER_HANDLER(t->key);
    t->fast_bytes = RNL_HEADER_LEN(t->key);
    t->fast_stop = t->stop - 7;
}
/* Turns the fast path off: something forbids it, or no cell is open. */
RNL_INLINE void rnl_tx_fast_off(struct rnl_tx *t)
{
    if (!t->fast_stop) /* already off: avoiding the stores pays in streams of messages of some hundred bytes */
        return;
    t->fast_handler = t->fast_bytes = UINT64_MAX;
    t->fast_stop = 0;
}
RNL_INLINE void rnl_tx_set_stop(struct rnl_tx *t, uint64_t stop)
{
    t->stop = stop;
    if (t->fast_stop && !RNL_BUG(ring_fast_path_past_its_grant))
        t->fast_stop = stop - 7;
}

/* Returns whether another record of the open cell's key is appended to it: the record fits, and the peer is not known
 * to have read everything. An open cell has at least one record. */
RNL_INLINE bool rnl_tx_room_in_cell(const struct rnl_tx *t)
{
    return t->acked < t->pos && (uint32_t)(t->pos & 7) <= t->more;
}
RNL_INLINE bool rnl_tx_appends(const struct rnl_tx *t, rnl_header key)
{
    return key == t->key && rnl_tx_room_in_cell(t);
}
/* Returns the place for a record of this key, and whether it begins a fresh cell in *fresh. NULL = not allowed now:
 * call rnl_tx_refresh, then wait or give up. */
RNL_INLINE unsigned char *rnl_tx_place(const struct rnl_tx *t, rnl_header key, int *new_cell)
{
    uint64_t pos = t->pos;
    if (rnl_tx_appends(t, key)) {
        *new_cell = 0;
        return t->end;
    }
    pos = RNL_CELL_START(pos);
    if (RNL_UNLIKELY(pos >= t->stop))
        return NULL;
    *new_cell = 1;
    return rnl_cell_of(t->ring, t->wrap, pos)->payload;
}

/* Returns how many records of len bytes fit in one cell, less 1. */
RNL_INLINE uint32_t rnl_tx_more(unsigned len)
{
    static const uint8_t more[RNL_CELL_PAYLOAD + 1] = {6, 6, 6, 6, 6, 6, 6, 6, 6, 5, 4, 4, 3, 3, 3,
                                                       2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    return more[len];
}

/* Returns the cell whose last record ends at `end`: records are not longer than a cell, and empty ones lie behind the
 * header. */
RNL_INLINE struct rnl_cell *rnl_cell_before(unsigned char *end)
{
    return (struct rnl_cell *)((uintptr_t)(end - 1) & ~(uintptr_t)(RNL_CELL_BYTES - 1));
}
/* Publishes the record that was composed in `cell` at the place that rnl_tx_place gave for this key, and carries
 * the own reading position `ack` of lane `acklane`. `pos` is the position of the record before it in this cell, or the
 * cell's start. The function makes few stores: the rate is bound by how many fit in the store buffer while a cell is
 * fetched, most of all where the peer is far. */
RNL_INLINE void rnl_tx_publish_in(struct rnl_tx *t, rnl_header key, struct rnl_cell *cell, unsigned char *end,
                                  uint64_t pos, uint64_t ack, unsigned acklane)
{
    rnl_header h = key | (rnl_header)((uint32_t)(uint16_t)ack << 16) | (rnl_header)acklane << 32;
    pos++;
    t->pos = pos;
    t->end = end;
    /* R1 pairs with A1 in rnl_rx_peek: payload before header. */
    atomic_store_explicit(&cell->header, h | (uint16_t)pos, memory_order_release);
}
/* Publishes as rnl_tx_publish_in does, in the cell whose last record ends at `end`. */
RNL_INLINE void rnl_tx_publish_at(struct rnl_tx *t, rnl_header key, unsigned char *end, uint64_t pos, uint64_t ack,
                                  unsigned acklane)
{
    rnl_tx_publish_in(t, key, rnl_cell_before(end), end, pos, ack, acklane);
}
/* Begins a fresh cell and returns its start. */
RNL_INLINE uint64_t rnl_tx_begin_cell(struct rnl_tx *t)
{
    uint64_t pos = t->pos + 7;
    if (pos & 7) { /* the last cell has not exactly one record */
        uint32_t n = t->pos & 7;
        pos &= ~(uint64_t)7;
        if (n >= RNL_STREAMING)
            rnl_prefetch_write(rnl_cell_of(t->ring, t->wrap, pos + RNL_PREFETCH_AHEAD * 8));
        t->extra_records += n - 1;
    }
    return pos;
}
/* Undoes rnl_tx_begin_cell, when nothing was published in the cell. */
RNL_INLINE void rnl_tx_cancel_cell(struct rnl_tx *t)
{
    t->extra_records -= (uint32_t)(t->pos & 7) - 1;
}
RNL_INLINE void rnl_tx_publish_same(struct rnl_tx *t, rnl_header key, unsigned char *end, int new_cell, uint64_t ack,
                                    unsigned acklane) /* the key of the last cell */
{
    rnl_tx_publish_at(t, key, end, new_cell ? rnl_tx_begin_cell(t) : t->pos, ack, acklane);
}
RNL_INLINE void rnl_tx_publish(struct rnl_tx *t, rnl_header key, unsigned char *end, int new_cell, uint64_t ack,
                               unsigned acklane)
{
    if (RNL_UNLIKELY(key != t->key)) { /* then the cell is a fresh one, and stream/ has counted the earlier records */
        rnl_tx_fast_off(t);
        t->counted = rnl_tx_records(t);
        t->key = key;
        t->more = rnl_tx_more(RNL_HEADER_LEN(key));
    }
    rnl_tx_publish_same(t, key, end, new_cell, ack, acklane);
}
/* How much of a lane's bulk area is used before positions wrap to its start. Replies are at most 64 KiB and answer
 * requests that are outstanding: more memory for them would make nothing faster, and each peer that replies at length
 * costs that much. What is skipped at the end has to fit beside what follows, and beside what the reader has read but
 * not yet advertised. */
static_assert(2 * RNL_BULK_REPLY_MAX + RNL_BULK_REPLIES_BYTES / 8 <= RNL_BULK_REPLIES_BYTES,
              "wrapping never waits for ever");
RNL_INLINE uint64_t rnl_bulk_area(const struct rnl_tx *t, uint32_t bytes)
{
    return t->lane == 1 && bytes <= RNL_BULK_REPLY_MAX ? t->reply_area : t->bulk_mask + 1;
}
/* Returns whether there is a cell, and room for `bytes` in the bulk area, as far as that is known without reading the
 * peer's credit words. */
RNL_INLINE bool rnl_tx_has_credit(const struct rnl_tx *t, uint32_t bytes)
{
    uint64_t used = rnl_tx_cell(t) - t->cell0 + t->bulk_head / 64, end = t->bulk_head + bytes;
    return (t->bulk || bytes <= RNL_CELL_PAYLOAD) && bytes <= RNL_BULK_BYTES / 8 && RNL_CELL_START(t->pos) < t->stop &&
           end - t->bulk_read <= RNL_BULK_BYTES / 2 &&
           (t->bulk_head & t->bulk_mask) + bytes <= rnl_bulk_area(t, bytes) &&
           used + 2 + bytes / 64 <= t->granted - t->credit_returned;
}
/* Closes the open cell: nothing is appended to it any more. Its records still count. */
RNL_INLINE void rnl_tx_close_cell(struct rnl_tx *t)
{
    t->key = RNL_HEADER_KEY_NONE;
    rnl_tx_fast_off(t);
}
/* Closes a cell just published, of a kind that the reader leaves at once. */
RNL_INLINE void rnl_tx_close_other(struct rnl_tx *t)
{
    t->pos = RNL_CELL_START(t->pos);
    rnl_tx_close_cell(t);
}
/* Does rnl_tx_publish and rnl_tx_close_other in one, for the `cell` at RNL_CELL_START(t->pos). stream/ has counted
 * the earlier records. */
RNL_INLINE void rnl_tx_publish_closed(struct rnl_tx *t, rnl_header key, struct rnl_cell *cell, uint64_t ack)
{
    uint64_t pos = rnl_tx_begin_cell(t);
    t->pos = pos + 8;
    if (t->key != RNL_HEADER_KEY_NONE)
        rnl_tx_close_cell(t);
    /* R1 pairs with A1 in rnl_rx_peek: payload before header. */
    atomic_store_explicit(&cell->header, key | (rnl_header)((uint32_t)(uint16_t)ack << 16) | (uint16_t)(pos + 1),
                          memory_order_release);
}

/* Returns the bits of `what` for which the peer is armed; if it is not 0, ring the peer's bell [F1]. Call it after each
 * publish (what = RNL_ARMED_CELLS) and each advertisement (RNL_ARMED_ROOM). */
RNL_INLINE uint32_t rnl_tx_armed(const struct rnl_tx *t, uint32_t what)
{
    atomic_signal_fence(memory_order_seq_cst);
    return atomic_load_explicit(&t->peer->armed, memory_order_relaxed) & what;
}

/* Takes in what a header of r acknowledges of the opposite ring; returns 0 or RNL_RING_BROKEN. The header has the low
 * half of a position, which stands for the lowest such position not before those of r's earlier headers. So however
 * long a header lay unread, and however far the peer has come since, no more is believed than it meant. All headers of
 * a lane speak of the same opposite lane. */
RNL_INLINE int rnl_tx_acked(struct rnl_tx *t, struct rnl_rx *r, unsigned ack16)
{
    uint64_t from = RNL_BUG(ring_ack_wrap) ? t->acked : r->acked_by_peer,
             position = from + (uint16_t)(ack16 - (unsigned)from);
    r->acked_by_peer = position;
    if (RNL_LIKELY(position > t->acked)) {
        /* The first comparison almost always decides. */
        if (position > t->pos && position > RNL_CELL_START(t->pos) && !RNL_BUG(ring_ack_unchecked))
            return RNL_RING_BROKEN;
        t->acked = position;
    }
    return 0;
}

/* ---- receiving ---- */

/* Advertises position, grant and bulk position as far as they are new, and then sets `wake_check_due`: the sender may
 * be asleep for lack of credit, so the caller must see that somebody checks. */
void rnl_rx_advertise(struct rnl_rx *r);
/* Returns whether something was read that has not been advertised. */
RNL_INLINE bool rnl_rx_unadvertised(const struct rnl_rx *r)
{
    return r->bulk_read != r->advertised_bulk || r->pos != r->advertised_position;
}
/* Returns the number of records, 1..7, if h is a header of the cell `next`, else 0. */
RNL_INLINE unsigned rnl_rx_begun(const struct rnl_rx *r, rnl_header h)
{
    unsigned n = (uint16_t)((unsigned)h - (unsigned)r->next_pos);
    return n < 8 ? n : 0;
}
/* Rotates a header so that its position is on top, where it may be added to, and its ack at the bottom. */
RNL_INLINE rnl_header rnl_header_rotated(rnl_header h)
{
    return h >> 16 | h << 48;
}
#define RNL_ROTATED_POS(pos) ((rnl_header)(pos) << 48)
enum { RNL_NOT_EXPECTED = 0x10000 };
/* Returns the ack of h, a header of `next`, if the cell has one record of the expected kind; otherwise a value of at
 * least RNL_NOT_EXPECTED. */
RNL_INLINE uint64_t rnl_rx_expected(const struct rnl_rx *r, rnl_header h)
{
    return rnl_header_rotated(h) ^ r->expect;
}
/* Expects cells like that of h from now on. */
RNL_INLINE void rnl_rx_expect(struct rnl_rx *r, rnl_header h)
{
    r->expect = RNL_ROTATED_POS(r->next_pos + 1) | (rnl_header_rotated(h) & (rnl_header)UINT32_MAX << 16);
}
/* Returns a header that holds records not yet read, or 0. Records in `last` go first; `last` is loaded after `next`,
 * since an append precedes the move to the next cell. */
RNL_INLINE rnl_header rnl_rx_peek(const struct rnl_rx *r)
{
    rnl_header next = atomic_load_explicit(&r->next->header, memory_order_acquire); /* A1 */
    rnl_header last = atomic_load_explicit(&r->last->header, memory_order_acquire); /* A1 */
    if (RNL_UNLIKELY(last != r->seen)) {
        unsigned appended = (uint16_t)((unsigned)last - (unsigned)r->pos), n = r->pos & 7;
        if (n && appended - 1u < 7u - n)
            return last;
    }
    return rnl_rx_begun(r, next) ? next : 0;
}
/* Brings `acked_by_peer` up to what is known already; called now and then, for a peer of this host. With nothing left
 * unread, headers to come carry at least what is known, since what the peer stored before them is visible before them.
 * A position more than 2^16 behind could not be told from a later one; `behind` is the distance from which it is
 * brought up. */
enum { RNL_ACK_LAG_MAX = 0x8000 };
RNL_INLINE void rnl_rx_refresh_ack(struct rnl_rx *r, const struct rnl_tx *t, uint64_t behind)
{
    if (t->acked > r->acked_by_peer + behind && rnl_rx_peek(r) == 0)
        r->acked_by_peer = t->acked;
}
/* For a header that rnl_rx_peek returned: how many records of its cell have been read, and where its payload is. */
RNL_INLINE unsigned rnl_rx_first_unread(const struct rnl_rx *r, rnl_header h)
{
    return rnl_rx_begun(r, h) ? 0 : r->pos & 7;
}
RNL_INLINE const unsigned char *rnl_rx_payload(const struct rnl_rx *r, rnl_header h)
{
    return rnl_rx_begun(r, h) ? r->next->payload : r->last->payload;
}
/* Enters `next`, of which n records are read, and returns its start. The caller may have to advertise. */
RNL_INLINE uint64_t rnl_rx_step(struct rnl_rx *r, unsigned n)
{
    uint64_t start = r->next_pos;
    r->last = r->next;
    r->pos = start + n;
    r->next_pos = start + 8;
    r->expect += RNL_ROTATED_POS(8);
    r->next = rnl_cell_of(r->ring, r->wrap, start + 8);
    return start;
}
/* Enters `next` as rnl_rx_step does, and advertises if that is due. */
RNL_INLINE void rnl_rx_enter(struct rnl_rx *r, unsigned n)
{
    if (RNL_UNLIKELY(rnl_rx_step(r, n) >= r->advertise_pos))
        rnl_rx_advertise(r);
}
/* Counts the records up to the n-th of h's cell as read and enters the cell if it is new. The payload is still in
 * use. */
RNL_INLINE void rnl_rx_read(struct rnl_rx *r, rnl_header h, unsigned n)
{
    if (rnl_rx_begun(r, h))
        rnl_rx_enter(r, n);
    else
        r->pos = (r->pos & ~(uint64_t)7) + n;
    if (n == RNL_HEADER_N(h))
        r->seen = h;
}
/* Leaves the cell last entered, whose payload is done with, too. */
RNL_INLINE void rnl_rx_leave(struct rnl_rx *r)
{
    r->pos = r->next_pos;
    if (RNL_UNLIKELY(r->pos >= r->advertise_pos))
        rnl_rx_advertise(r);
}
/* Enters and leaves `next`, whose header is h, in one step: everything in it has been loaded. */
RNL_INLINE void rnl_rx_consume(struct rnl_rx *r, rnl_header h)
{
    uint64_t pos = r->next_pos + 8;
    r->last = r->next;
    r->seen = h;
    r->pos = r->next_pos = pos;
    r->expect += RNL_ROTATED_POS(8);
    r->next = rnl_cell_of(r->ring, r->wrap, pos);
    if (RNL_UNLIKELY(pos >= r->advertise_pos))
        rnl_rx_advertise(r);
}
/* Returns whether nothing more will be appended to the cell: it is full, or of a kind that is never appended to. */
RNL_INLINE bool rnl_header_full(rnl_header h)
{
    unsigned n = RNL_HEADER_N(h);
    return RNL_HEADER_KIND(h) != RNL_CELL_RECORDS || n == RNL_RECORDS_MAX ||
           (n + 1) * RNL_HEADER_LEN(h) > RNL_CELL_PAYLOAD;
}

/* Loads `bytes` (a multiple of 8, at least 8) from the start of a cell's payload, each word once, so that the values
 * that are checked are those that are used: a compiler may split a plain copy, or read its source again. */
RNL_INLINE void rnl_rx_load(void *to, const unsigned char *payload, size_t bytes)
{
    const _Atomic uint64_t *from = (const _Atomic uint64_t *)(const void *)payload;
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t word = atomic_load_explicit(&from[i], memory_order_relaxed); /* ordered by the A1 before */
        memcpy((unsigned char *)to + i * 8, &word, 8);
    }
}

/* ---- slow paths ---- */

/* Returns whether the sender of a stream has begun the cell that lies so many behind `next`; always 1 for a ring too
 * short to tell. */
bool rnl_rx_ahead(const struct rnl_rx *r, unsigned cells);
/* Initialises the own control page, before any peer reads it. */
void rnl_control_page_init(struct rnl_control_page *mine, int senders_fence);
/* Gives a fresh lane its cells outside the control page: so many of them, a power of two and more than there. */
void rnl_tx_move(struct rnl_tx *t, struct rnl_cell *ring, uint32_t cells);
void rnl_rx_move(struct rnl_rx *r, struct rnl_cell *ring, uint32_t cells);
/* Says that the same cells lie at `ring` from now on. NULL = nowhere: then there is nothing to read and no place to
 * write, though rnl_tx_refresh may find that there would be room. */
void rnl_tx_at(struct rnl_tx *t, struct rnl_cell *ring);
void rnl_rx_at(struct rnl_rx *r, struct rnl_cell *ring);
void rnl_tx_init(struct rnl_tx *t, struct rnl_control_page *mine, const struct rnl_control_page *theirs, unsigned lane,
                 unsigned colour);
void rnl_rx_init(struct rnl_rx *r, struct rnl_control_page *mine, struct rnl_control_page *theirs, unsigned lane,
                 unsigned colour);
/* Reads the peer's credit words (the position through env's distance sensor, if env is not NULL) and moves `stop`.
 * Returns 1 if a fresh cell may be used now, else 0, or RNL_RING_BROKEN. */
int rnl_tx_refresh(struct rnl_tx *t, struct rnl_env *env, uint8_t *distance);
/* Raises the units that the peer may have outstanding. They fall only when the sender returns credit. */
void rnl_rx_grant(struct rnl_rx *r, uint64_t outstanding_max);
/* Reclaims from the sender what it does not use beyond `outstanding_max` (lane 0). */
void rnl_rx_reclaim(struct rnl_rx *r, uint64_t outstanding_max);
/* rnl_tx_return_credit, for the sender, returns credit that was reclaimed and is not in use. rnl_rx_reclaimed, for the
 * receiver, notices it and returns the units that came back, at most those reclaimed. */
void rnl_tx_return_credit(struct rnl_tx *t);
uint64_t rnl_rx_reclaimed(struct rnl_rx *r);

/* Units that a ring and a bulk area hold. */
enum { RNL_GRANT_FULL = RNL_CELLS_BIG + RNL_BULK_BYTES / 64 + RNL_GRANT_MIN };
RNL_INLINE uint64_t rnl_grant_full(uint64_t bulk_mask)
{
    return RNL_CELLS_BIG + (bulk_mask + 1) / 64 + RNL_GRANT_MIN;
}
/* Returns the units that the sender would like to have outstanding, at most what ring and bulk area hold (lane 0). */
RNL_INLINE uint64_t rnl_rx_credit_wanted(const struct rnl_rx *r)
{
    uint64_t units = r->lane == 0 ? atomic_load_explicit(&r->theirs->credit_wanted, memory_order_relaxed) : 0;
    uint64_t full = rnl_grant_full(r->bulk_mask);
    return units < full ? units : full;
}
/* Returns true if the receiver can never grant enough for `bytes` at once, given the current position in the bulk area;
 * *most then gets the bytes that it could grant. Returns 0 if it can, or has not said. */
bool rnl_tx_bulk_never(const struct rnl_tx *t, uint32_t bytes, uint64_t *max);

/* Finds `bytes` (<= RNL_BULK_BYTES / 2) of contiguous bulk area at *start, without taking them. Returns 1; 0 = no room
 * now (if the grant is too small, the receiver can see what is wanted); or RNL_RING_BROKEN. */
int rnl_tx_bulk_room(struct rnl_tx *t, uint32_t bytes, uint64_t *start);
/* Returns the largest piece, up to `bytes`, that fits now without leaving a gap before it; 0 = none of at least
 * `least`; or RNL_RING_BROKEN. For messages that may travel in many pieces: a grant smaller than the message must not
 * stop it for ever. */
int64_t rnl_tx_bulk_piece(struct rnl_tx *t, uint32_t bytes, uint32_t min);
/* Reads how far the receiver is done with the bulk area. Returns 0 or RNL_RING_BROKEN. */
int rnl_tx_bulk_refresh(struct rnl_tx *t);
/* Returns the largest piece, up to `bytes`, for a chunk of the bulk lane, of which `unread` bytes lie in the area: as
 * much of area and grant as the bulk lane has then stays free for everything else. 0 = none of at least `min`. ask: ask
 * the peer for more if the grant is too small. */
uint32_t rnl_tx_bulk_beside(struct rnl_tx *t, uint32_t bytes, uint32_t min, uint64_t unread, bool ask);
/* What may be sent now. */
struct rnl_tx_room {
    uint64_t cells; /* fresh cells */
    uint64_t units; /* of the grant */
    uint64_t bulk;  /* bytes of the largest extent, at most RNL_BULK_BYTES / 2 */
    uint64_t whole; /* units of the grant if the peer had read everything */
};
/* Reads the peer's credit words and tells what may be sent now. Returns 0 or RNL_RING_BROKEN. */
int rnl_tx_look(struct rnl_tx *t, struct rnl_tx_room *out);
/* ---- lane 1: replies that are sent later ----
 *
 * A reply that fits when its request is taken in, by rnl_tx_reply_room, still fits after any number of other replies
 * that were found to fit, in any order, whatever the peer has read meanwhile. What is held stays counted until it is
 * released. At most half the cells and RNL_HELD_BYTES can be held: then a reply of the largest size fits beside it, as
 * soon as the peer has read what was sent. */
enum { RNL_HELD_BYTES = RNL_BULK_BYTES / 2 - RNL_BULK_REPLY_MAX };
/* Returns 1 if there is room for a reply of more than RNL_CELL_PAYLOAD bytes besides what is held, 0 if not, or
 * RNL_RING_BROKEN. */
int rnl_tx_reply_room(struct rnl_tx *t, uint32_t bytes);
/* Holds the room of a reply of up to `bytes`, which was found and not used. Returns true, or false if too much is
 * held. */
bool rnl_tx_hold(struct rnl_tx *t, uint32_t bytes);
/* Gives room back that was held for `bytes`, for the reply that is sent next. */
void rnl_tx_release(struct rnl_tx *t, uint32_t bytes);
/* Marks the bulk area as used up to `end` (to reserve it, or to trim a reservation). */
void rnl_tx_bulk_take(struct rnl_tx *t, uint64_t end);
/* Returns the memory of a position in the bulk area. */
RNL_INLINE const unsigned char *rnl_rx_bulk_at(const struct rnl_rx *r, uint64_t position)
{
    return r->bulk + (position & r->bulk_mask);
}
/* Checks the place that an extent names. Returns 0 or RNL_RING_BROKEN. */
int rnl_rx_extent(struct rnl_rx *r, const struct rnl_extent *e);
/* Marks the bulk area as read up to `to`, and advertises when enough has gathered. */
void rnl_rx_bulk_done(struct rnl_rx *r, uint64_t to);

/* Moves to the big ring: the sender after it published a GROW cell, the receiver after it read and left that cell. */
void rnl_tx_grow(struct rnl_tx *t, struct rnl_cell *big);
void rnl_rx_grow(struct rnl_rx *r, struct rnl_cell *big);

/* Checks the invariants that check.c lists. Returns 0, or the number of the one that does not hold. */
int rnl_tx_valid(const struct rnl_tx *t);
int rnl_rx_valid(const struct rnl_rx *r);
/* Writes text for people, always terminated. */
void rnl_tx_dump(const struct rnl_tx *t, char *text, size_t bytes);
void rnl_rx_dump(const struct rnl_rx *r, char *text, size_t bytes);

#endif
