/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring.c - the slow paths of ring.h: set-up, credit, bulk areas and growth. All of it works for a peer that lies:
 * values from the peer are checked or bounded here before they are used. */
#include "ring/ring.h"
#include "base/bug.h"

enum { WANT_EXPIRY = 64 };

const _Atomic uint32_t rnl_tx_always_armed = 1;

enum { UNITS_MAX = 2 * (RNL_CELLS_BIG + RNL_BULK_REMOTE_BYTES / 64) /* units, more than a lane can hold */ };

static struct rnl_cell *lane_of(struct rnl_control_page *page, unsigned lane, uint64_t *wrap)
{
    static const uint32_t cells[RNL_LANES] = {RNL_CELLS_LANE0, RNL_CELLS_LANE1};
    *wrap = RNL_WRAP(cells[lane]);
    return lane == 0 ? page->lane0 : page->lane1;
}

void rnl_control_page_init(struct rnl_control_page *mine, int senders_fence)
{
    atomic_store_explicit(&mine->senders_fence, senders_fence ? 1 : 0, memory_order_relaxed);
    atomic_store_explicit(&mine->version, RNL_CONTROL_PAGE_VERSION, memory_order_release);
}

void rnl_tx_init(struct rnl_tx *t, struct rnl_control_page *mine, const struct rnl_control_page *theirs, unsigned lane,
                 unsigned colour)
{
    memset(t, 0, sizeof *t);
    t->ring = lane_of(mine, lane, &t->wrap);
    t->peer = theirs;
    t->mine = mine;
    t->lane = lane;
    t->armed = &rnl_tx_always_armed;
    t->cell0 = colour & (RNL_CELLS(t->wrap) - 1);
    t->acked = t->pos = (t->cell0 + 1) * 8;
    t->key = RNL_HEADER_KEY_NONE;
    t->fast_handler = t->fast_bytes = UINT64_MAX;
    t->counted = rnl_tx_records(t);
    t->granted = RNL_GRANT_MIN;
    t->bulk_mask = RNL_BULK_BYTES - 1;
    t->reply_area = RNL_BULK_REPLIES_BYTES;
    t->stop = t->pos + RNL_CELLS(t->wrap) * 8;
}

static void set_advertise_pos(struct rnl_rx *r)
{
    uint64_t quarter = RNL_CELLS(r->wrap) / 4, grant = r->outstanding_max / 4;
    r->advertise_pos = ((r->pos >> 3) + (grant < quarter ? grant : quarter)) * 8;
}

void rnl_rx_init(struct rnl_rx *r, struct rnl_control_page *mine, struct rnl_control_page *theirs, unsigned lane,
                 unsigned colour)
{
    memset(r, 0, sizeof *r);
    r->ring = lane_of(theirs, lane, &r->wrap);
    r->mine = mine;
    r->theirs = theirs;
    r->lane = lane;
    r->cell0 = colour & (RNL_CELLS(r->wrap) - 1);
    r->pos = r->next_pos = (r->cell0 + 1) * 8;
    r->expect = RNL_ROTATED_POS(r->next_pos + 1);
    r->next = rnl_cell_of(r->ring, r->wrap, r->pos);
    r->last = rnl_cell_of(r->ring, r->wrap, r->pos - 8); /* its header is not believed before a cell was entered */
    r->advertised_position = 0;                          /* nothing has been advertised */
    r->outstanding_max = r->advertised_grant = RNL_GRANT_MIN;
    r->bulk_mask = RNL_BULK_BYTES - 1;
    set_advertise_pos(r);
}

void rnl_tx_move(struct rnl_tx *t, struct rnl_cell *ring, uint32_t cells)
{
    t->wrap = RNL_WRAP(cells);
    t->stop = t->pos + cells * 8;
    rnl_tx_at(t, ring);
}

void rnl_tx_at(struct rnl_tx *t, struct rnl_cell *ring)
{
    t->ring = ring;
    if (!ring)
        rnl_tx_set_stop(t, 0);
}

void rnl_rx_move(struct rnl_rx *r, struct rnl_cell *ring, uint32_t cells)
{
    r->wrap = RNL_WRAP(cells);
    rnl_rx_at(r, ring);
    set_advertise_pos(r);
}

void rnl_rx_at(struct rnl_rx *r, struct rnl_cell *ring)
{
    static const struct rnl_cell empty; /* never written */
    r->ring = ring;
    r->next = ring ? rnl_cell_of(ring, r->wrap, r->next_pos) : (struct rnl_cell *)(uintptr_t)&empty;
    r->last = ring ? rnl_cell_of(ring, r->wrap, r->next_pos - 8) : r->next;
}

/* Returns the units used so far, the open cell included. */
static uint64_t tx_used(const struct rnl_tx *t)
{
    return rnl_tx_cell(t) - t->cell0 + t->bulk_head / 64;
}

static uint64_t tx_granted(struct rnl_tx *t)
{
    uint64_t g = atomic_load_explicit(&t->peer->credit[t->lane].granted, memory_order_acquire); /* A2 */
    /* A grant that is too large is cut, so that nothing computed from it overflows. */
    if (g > t->credit_returned + tx_used(t) + UNITS_MAX && !RNL_BUG(ring_grant_unchecked))
        g = t->credit_returned + tx_used(t) + UNITS_MAX;
    if (g > t->granted)
        t->granted = g;
    return t->granted - t->credit_returned; /* `credit_returned` never exceeds what was unused */
}

static void tx_set_stop(struct rnl_tx *t)
{
    uint64_t used = tx_used(t), granted = tx_granted(t);
    uint64_t by_grant = rnl_tx_cell(t) + 1 + (granted > used ? granted - used : 0);
    uint64_t by_room = (t->acked >> 3) + RNL_CELLS(t->wrap) - t->held_cells;
    rnl_tx_set_stop(t, t->ring ? (by_grant < by_room ? by_grant : by_room) * 8 : 0);
}

int rnl_tx_refresh(struct rnl_tx *t, struct rnl_env *env, uint8_t *distance)
{
    const struct rnl_credit_words *words = &t->peer->credit[t->lane];
    uint64_t p = env ? env->ops->sense_load(env, &words->position, t->acked, distance)
                     : atomic_load_explicit(&words->position, memory_order_acquire); /* A2 */
    if (p > t->acked) {
        if (p > RNL_CELL_START(t->pos) && !RNL_BUG(ring_position_unchecked))
            return RNL_RING_BROKEN;
        t->acked = p;
    }
    tx_set_stop(t);
    return !t->ring || RNL_CELL_START(t->pos) < t->stop;
}

void rnl_rx_advertise(struct rnl_rx *r)
{
    struct rnl_credit_words *words = &r->mine->credit[r->lane];
    uint64_t granted = r->outstanding_max + r->reclaimed + ((r->pos >> 3) - r->cell0 - 1) + r->bulk_read / 64;
    uint64_t position = r->pos;
    granted = granted > r->withheld ? granted - r->withheld : 0;
    set_advertise_pos(r);
    if (granted > r->advertised_grant) { /* an advertised grant never falls */
        r->advertised_grant = granted;
        r->wake_check_due = 1;
        atomic_store_explicit(&words->granted, granted, memory_order_release); /* R2 pairs with A2 */
    }
    if (r->advertised_bulk != r->bulk_read) {
        r->advertised_bulk = r->bulk_read;
        r->wake_check_due = 1;
        atomic_store_explicit(&words->bulk_read, r->bulk_read, memory_order_release); /* R2 */
    }
    if (r->advertised_position != position) {
        r->advertised_position = position;
        r->wake_check_due = 1;
        atomic_store_explicit(&words->position, position, memory_order_release); /* R2 */
    }
}

bool rnl_rx_ahead(const struct rnl_rx *r, unsigned cells)
{
    if (RNL_CELLS(r->wrap) < 8 * RNL_CELLS_AHEAD)
        return true;
    uint64_t pos = r->next_pos + cells * 8;
    rnl_header h = atomic_load_explicit(&rnl_cell_of(r->ring, r->wrap, pos)->header, memory_order_relaxed);
    return (uint16_t)((unsigned)h - (unsigned)pos) - 1u < RNL_RECORDS_MAX;
}

void rnl_rx_grant(struct rnl_rx *r, uint64_t outstanding_max)
{
    if (outstanding_max <= r->outstanding_max)
        return;
    r->outstanding_max = outstanding_max;
    rnl_rx_advertise(r);
}

void rnl_rx_reclaim(struct rnl_rx *r, uint64_t outstanding_max)
{
    if (r->outstanding_max <= outstanding_max)
        return;
    r->reclaim_requested = r->reclaimed + (r->outstanding_max - outstanding_max);
    atomic_store_explicit(&r->mine->credit_reclaim, r->reclaim_requested, memory_order_release);
}

static void want_nothing(struct rnl_tx *t)
{
    t->wanted = 0;
    atomic_store_explicit(&t->mine->credit_wanted, 0, memory_order_relaxed);
}

void rnl_tx_return_credit(struct rnl_tx *t)
{
    uint64_t requested = atomic_load_explicit(&t->peer->credit_reclaim, memory_order_acquire);
    if (t->wanted && --t->want_expiry == 0)
        want_nothing(t); /* the message that needed the credit has not come back */
    if (t->lane != 0 || requested <= t->credit_returned || t->wanted)
        return;
    uint64_t used = tx_used(t), granted = tx_granted(t),
             spare = granted > used + RNL_GRANT_MIN ? granted - used - RNL_GRANT_MIN : 0;
    uint64_t units = requested - t->credit_returned < spare ? requested - t->credit_returned : spare;
    if (!units)
        return;
    t->credit_returned += units;
    tx_set_stop(t);
    atomic_store_explicit(&t->mine->credit_returned, t->credit_returned, memory_order_release);
}

uint64_t rnl_rx_reclaimed(struct rnl_rx *r)
{
    if (r->reclaim_requested == r->reclaimed)
        return 0;
    uint64_t returned = atomic_load_explicit(&r->theirs->credit_returned, memory_order_acquire);
    if (returned > r->reclaim_requested && !RNL_BUG(ring_credit_return_unchecked))
        returned = r->reclaim_requested;
    if (returned <= r->reclaimed)
        return 0;
    uint64_t units = returned - r->reclaimed;
    r->reclaimed = returned;
    r->outstanding_max -= units;
    return units;
}

int rnl_tx_bulk_refresh(struct rnl_tx *t)
{
    uint64_t read = atomic_load_explicit(&t->peer->credit[t->lane].bulk_read, memory_order_acquire); /* A2 */
    if (read <= t->bulk_read)
        return 0;
    if (read > t->bulk_head || read & 63) /* only whole units, or more would seem free than there is */
        return RNL_RING_BROKEN;
    t->bulk_read = read;
    return 0;
}

/* Returns the units of an extent at bulk_head: the gap before it, its bytes, its cell, that of its end and one to
 * spare. */
static uint64_t units_for(const struct rnl_tx *t, uint32_t bytes)
{
    uint64_t offset = t->bulk_head & t->bulk_mask, left = t->bulk_mask + 1 - offset, gap = bytes > left ? left : 0;
    return (gap + bytes + 63) / 64 + 3;
}

/* Publishes that the grant lacks `units`. For WANT_EXPIRY looks at credit_reclaim no credit is returned, for two
 * senders that want the same credit would otherwise never get enough. */
static void want(struct rnl_tx *t, uint64_t units)
{
    if (t->lane != 0)
        return;
    t->want_expiry = WANT_EXPIRY;
    uint64_t full = rnl_grant_full(t->bulk_mask),
             max = atomic_load_explicit(&t->peer->credit_max,
                                        memory_order_relaxed); /* a hint: asking for more than it would be useless */
    if (max && max < full)
        full = max;
    if (units > full)
        units = full;
    if (units <= t->wanted)
        return;
    t->wanted = units;
    atomic_store_explicit(&t->mine->credit_wanted, units, memory_order_relaxed); /* a hint: nothing depends on it */
}

bool rnl_tx_bulk_never(const struct rnl_tx *t, uint32_t bytes, uint64_t *max)
{
    uint64_t units = atomic_load_explicit(&t->peer->credit_max, memory_order_relaxed);
    if (units == 0 || units_for(t, bytes) <= units)
        return false;
    *max = units > 3 ? (units - 3) * 64 : 0;
    return true;
}

/* Returns whether an extent at `offset` would cross `boundary`. */
static bool crosses(uint64_t offset, uint32_t bytes, uint64_t boundary)
{
    return offset <= boundary && offset + bytes > boundary;
}

/* Returns whether to begin again at the start of the bulk area before its end. With little outstanding, only the first
 * half MiB is used, which stays in the core's cache together with that of the other direction; with somewhat more, only
 * the first MiB of a larger area. What is skipped counts as used until the reader is past it, as at the end of the
 * area. */
static bool wraps_early(struct rnl_tx *t, uint64_t offset, uint32_t bytes)
{
    uint64_t max = 0; /* most bytes outstanding for which it pays */
    if (!t->whole_area && crosses(offset, bytes, RNL_BULK_BYTES / 2) && bytes <= RNL_BULK_BYTES / 8)
        max = RNL_BULK_BYTES / 8;
    else if (crosses(offset, bytes, RNL_BULK_BYTES) && bytes <= RNL_BULK_BYTES / 2)
        max = RNL_BULK_BYTES / 2; /* then half of the MiB that follows is free */
    if (max == 0 || rnl_tx_bulk_refresh(t) < 0)
        return false; /* a broken position is found again when it matters */
    uint64_t skipped = t->bulk_mask + 1 - offset, units = (skipped + bytes) / 64 + 2;
    uint64_t outstanding = t->bulk_head - t->bulk_read;
    return outstanding <= max && outstanding + skipped + ((bytes + 63u) & ~63u) <= t->bulk_mask + 1 &&
           tx_used(t) + units <= tx_granted(t);
}

int rnl_tx_bulk_room(struct rnl_tx *t, uint32_t bytes, uint64_t *start)
{
    uint64_t at = t->bulk_head, offset = at & t->bulk_mask, area = t->bulk_mask + 1;
    uint64_t in_use = rnl_bulk_area(t, bytes);
    if (offset + bytes > (in_use ? in_use : area) || (in_use && wraps_early(t, offset, bytes)))
        at += area - offset;
    uint64_t end = at + ((bytes + 63u) & ~63u);
    if (end - t->bulk_read > area) {
        if (rnl_tx_bulk_refresh(t) < 0)
            return RNL_RING_BROKEN;
        if (end - t->bulk_read > area)
            return 0;
    }
    /* The cell that announces the extent is a unit too. */
    uint64_t granted = tx_granted(t);
    if (RNL_UNLIKELY(tx_used(t) + 1 + (end - t->bulk_head) / 64 > granted)) {
        want(t, units_for(t, bytes));
        return 0;
    }
    if (RNL_UNLIKELY(t->wanted != 0))
        want_nothing(t);
    *start = at;
    return 1;
}

int64_t rnl_tx_bulk_piece(struct rnl_tx *t, uint32_t bytes, uint32_t min)
{
    uint64_t area = t->bulk_mask + 1, to_end = area - (t->bulk_head & t->bulk_mask),
             fits = bytes < to_end ? bytes : to_end;
    uint64_t room = area - (t->bulk_head - t->bulk_read), used = tx_used(t) + 1, granted = tx_granted(t);
    if (room < fits) {
        if (rnl_tx_bulk_refresh(t) < 0)
            return RNL_RING_BROKEN;
        room = area - (t->bulk_head - t->bulk_read);
    }
    if (room < fits)
        fits = room;
    uint64_t units = granted > used ? granted - used : 0;
    if (units * 64 < fits) { /* the outstanding bytes use up the grant: ask for twice as much */
        uint64_t read = (t->acked >> 3) - t->cell0 - 1 + t->bulk_read / 64;
        want(t, granted > read ? 2 * (granted - read) : 0);
        fits = units * 64;
    }
    if (min > to_end)
        min = (uint32_t)to_end;
    return fits < min ? 0 : (int64_t)fits;
}

uint32_t rnl_tx_bulk_beside(struct rnl_tx *t, uint32_t bytes, uint32_t min, uint64_t unread, bool ask)
{
    uint64_t area = t->bulk_mask + 1, free = area - (t->bulk_head - t->bulk_read), used = tx_used(t) + 2,
             granted = tx_granted(t), units = granted > used ? granted - used : 0,
             wants = unread + 2 * (((uint64_t)bytes + 63) & ~(uint64_t)63);
    if (units * 64 < wants && units * 64 < free) {
        uint64_t read = (t->acked >> 3) - t->cell0 - 1 + t->bulk_read / 64;
        if (ask)
            want(t, granted > read ? 2 * (granted - read) : 0);
        free = units * 64;
    }
    uint64_t fits = free > unread ? (free - unread) / 2 & ~(uint64_t)63 : 0,
             to_end = area - (t->bulk_head & t->bulk_mask);
    if (fits > bytes)
        fits = bytes;
    if (fits > to_end)
        fits = to_end;
    if (min > to_end)
        min = (uint32_t)to_end;
    return fits < min ? 0 : (uint32_t)fits;
}

/* Returns the bytes of the largest extent. One that fits the end of the area lies there; a longer one begins at the
 * start of the area, and what is skipped counts, too (rnl_tx_bulk_room). */
static uint64_t largest_extent(const struct rnl_tx *t, uint64_t units)
{
    uint64_t area = t->bulk_mask + 1, to_end = area - (t->bulk_head & t->bulk_mask),
             room = area - (t->bulk_head - t->bulk_read), most = units > 0 ? (units - 1) * 64 : 0;
    most = room < most ? room : most;
    if (most > to_end)
        most = most - to_end > to_end ? most - to_end : to_end;
    return most < RNL_BULK_BYTES / 2 ? most : RNL_BULK_BYTES / 2;
}

int rnl_tx_look(struct rnl_tx *t, struct rnl_tx_room *out)
{
    if (rnl_tx_refresh(t, NULL, NULL) < 0 || rnl_tx_bulk_refresh(t) < 0)
        return RNL_RING_BROKEN;
    uint64_t start = RNL_CELL_START(t->pos), used = tx_used(t), granted = tx_granted(t),
             read = (t->acked >> 3) - t->cell0 - 1 + t->bulk_read / 64;
    out->cells = start < t->stop ? (t->stop - start) / 8 : 0;
    out->units = granted > used ? granted - used : 0;
    out->bulk = out->cells ? largest_extent(t, out->units) : 0;
    out->whole = granted > read ? granted - read : 0;
    return 0;
}

static uint64_t rounded(uint32_t bytes)
{
    return bytes > RNL_CELL_PAYLOAD ? (bytes + (uint64_t)63) & ~(uint64_t)63 : 0;
}

int rnl_tx_reply_room(struct rnl_tx *t, uint32_t bytes)
{
    uint64_t start;
    if (rnl_tx_bulk_refresh(t) < 0)
        return RNL_RING_BROKEN;
    if (t->held_bytes == 0 && t->bulk_head == t->bulk_read)
        t->reply_area = RNL_BULK_REPLIES_BYTES;
    if (t->reply_area)
        return rnl_tx_bulk_room(t, bytes, &start);
    /* In whatever order they are sent: either all fit before the end of the area, or what is unread lies so far from
     * its start that all would fit there. Sending one of them leaves one of the two true. */
    uint64_t area = t->bulk_mask + 1, offset = t->bulk_head & t->bulk_mask, unread = t->bulk_head - t->bulk_read,
             all = t->held_bytes + rounded(bytes), gap = 0;
    if (offset + all > area || unread + all > area) {
        gap = area - offset;
        if (offset < unread + all)
            return 0;
    }
    return tx_used(t) + 1 + (gap + rounded(bytes)) / 64 <= tx_granted(t);
}

bool rnl_tx_hold(struct rnl_tx *t, uint32_t bytes)
{
    uint64_t more = rounded(bytes);
    if ((t->held_cells + 1) * 2 > RNL_CELLS(t->wrap) || t->held_bytes + more > RNL_HELD_BYTES)
        return false;
    t->held_cells++;
    t->held_bytes += more;
    t->credit_returned += 1 + more / 64;
    if (more)
        t->reply_area = 0;
    tx_set_stop(t);
    return true;
}

void rnl_tx_release(struct rnl_tx *t, uint32_t bytes)
{
    t->held_cells--;
    t->held_bytes -= rounded(bytes);
    t->credit_returned -= 1 + rounded(bytes) / 64;
    tx_set_stop(t);
}

void rnl_tx_bulk_take(struct rnl_tx *t, uint64_t end)
{
    t->bulk_head = end;
    tx_set_stop(t);
}

int rnl_rx_extent(struct rnl_rx *r, const struct rnl_extent *e)
{
    uint64_t offset = e->start & r->bulk_mask, area = r->bulk_mask + 1;
    if (e->start < r->bulk_next || e->start - r->bulk_next >= area || e->start & 63)
        return RNL_RING_BROKEN;
    if (e->reserved > area || offset + e->reserved > area ||
        (e->published > e->reserved && !RNL_BUG(ring_extent_unchecked)))
        return RNL_RING_BROKEN;
    if (e->flags & ~(uint32_t)RNL_EXTENT_FLAGS)
        return RNL_RING_BROKEN;
    return 0;
}

void rnl_rx_bulk_done(struct rnl_rx *r, uint64_t to)
{
    if (to > r->bulk_read)
        r->bulk_read = to;
    uint64_t eighth = (r->lane == 1 ? RNL_BULK_REPLIES_BYTES : RNL_BULK_BYTES) / 8, grant = r->outstanding_max * 64 / 4;
    if (r->bulk_read - r->advertised_bulk >= (grant < eighth ? grant : eighth))
        rnl_rx_advertise(r);
}

void rnl_tx_grow(struct rnl_tx *t, struct rnl_cell *big)
{
    t->ring = big;
    t->wrap = RNL_WRAP(RNL_CELLS_BIG);
    rnl_tx_close_other(t);
    tx_set_stop(t);
}

void rnl_rx_grow(struct rnl_rx *r, struct rnl_cell *big)
{
    r->ring = big;
    r->wrap = RNL_WRAP(RNL_CELLS_BIG);
    r->next = rnl_cell_of(big, r->wrap, r->next_pos);
    set_advertise_pos(r);
}
