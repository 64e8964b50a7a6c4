/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring.c - the slow paths of ring.h: set-up, credit, bulk areas, growth. */
#include "ring/ring.h"

enum { PATIENCE = 64 };

const _Atomic uint32_t rnl_tx_always_armed = 1;

enum { UNITS_MAX = 2 * (RNL_BIG + RNL_BULK_AWAY / 64) /* more than a lane can hold */ };

static struct rnl_line *lane_of(struct rnl_side *side, unsigned lane, uint64_t *wrap)
{
    static const uint32_t lines[RNL_LANES] = {RNL_SMALL0, RNL_SMALL1, RNL_SMALL2};
    *wrap = RNL_WRAP(lines[lane]);
    return lane == 0 ? side->lane0 : lane == 1 ? side->lane1 : side->lane2;
}

void rnl_side_init(struct rnl_side *mine, int senders_fence)
{
    atomic_store_explicit(&mine->senders_fence, senders_fence ? 1 : 0, memory_order_relaxed);
    atomic_store_explicit(&mine->version, RNL_SIDE_VERSION, memory_order_release);
}

void rnl_tx_init(struct rnl_tx *t, struct rnl_side *mine, const struct rnl_side *theirs, unsigned lane, unsigned colour)
{
    memset(t, 0, sizeof *t);
    t->ring = lane_of(mine, lane, &t->wrap);
    t->peer = theirs;
    t->mine = mine;
    t->lane = lane;
    t->armed = &rnl_tx_always_armed;
    t->line0 = colour & (RNL_LINES(t->wrap) - 1);
    t->acked = t->pos = (t->line0 + 1) * 8;
    t->key = RNL_HEAD_KEY_NONE;
    t->quick_handler = t->quick_bytes = UINT64_MAX;
    t->counted = rnl_tx_items(t);
    t->granted = RNL_GRANT_MIN;
    t->bulk_mask = RNL_BULK_BYTES - 1;
    t->stop = t->pos + RNL_LINES(t->wrap) * 8;
}

static void set_tell_pos(struct rnl_rx *r)
{
    uint64_t quarter = RNL_LINES(r->wrap) / 4, grant = r->standing / 4;
    r->tell_pos = ((r->pos >> 3) + (grant < quarter ? grant : quarter)) * 8;
}

void rnl_rx_init(struct rnl_rx *r, struct rnl_side *mine, struct rnl_side *theirs, unsigned lane, unsigned colour)
{
    memset(r, 0, sizeof *r);
    r->ring = lane_of(theirs, lane, &r->wrap);
    r->mine = mine;
    r->theirs = theirs;
    r->lane = lane;
    r->line0 = colour & (RNL_LINES(r->wrap) - 1);
    r->pos = r->next_pos = (r->line0 + 1) * 8;
    r->expect = RNL_TURNED_POS(r->next_pos + 1);
    r->next = rnl_line_of(r->ring, r->wrap, r->pos);
    r->last = rnl_line_of(r->ring, r->wrap, r->pos - 8); /* what it says is not believed before a line was entered */
    r->told_position = 0;                                /* nothing was said */
    r->standing = r->told_grant = RNL_GRANT_MIN;
    r->bulk_mask = RNL_BULK_BYTES - 1;
    set_tell_pos(r);
}

void rnl_tx_move(struct rnl_tx *t, struct rnl_line *ring, uint32_t lines)
{
    t->wrap = RNL_WRAP(lines);
    t->stop = t->pos + lines * 8;
    rnl_tx_at(t, ring);
}

void rnl_tx_at(struct rnl_tx *t, struct rnl_line *ring)
{
    t->ring = ring;
    if (!ring)
        rnl_tx_set_stop(t, 0);
}

void rnl_rx_move(struct rnl_rx *r, struct rnl_line *ring, uint32_t lines)
{
    r->wrap = RNL_WRAP(lines);
    rnl_rx_at(r, ring);
    set_tell_pos(r);
}

void rnl_rx_at(struct rnl_rx *r, struct rnl_line *ring)
{
    static const struct rnl_line empty; /* is only read */
    r->ring = ring;
    r->next = ring ? rnl_line_of(ring, r->wrap, r->next_pos) : (struct rnl_line *)(uintptr_t)&empty;
    r->last = ring ? rnl_line_of(ring, r->wrap, r->next_pos - 8) : r->next;
}

/* Units used so far, the open line included. */
static uint64_t tx_used(const struct rnl_tx *t)
{
    return rnl_tx_line(t) - t->line0 + t->bulk_head / 64;
}

static uint64_t tx_granted(struct rnl_tx *t)
{
    uint64_t g = atomic_load_explicit(&t->peer->back[t->lane].granted, memory_order_acquire); /* A2 */
    if (g > t->gave + tx_used(t) + UNITS_MAX) /* what is believed must not overflow what is computed from it */
        g = t->gave + tx_used(t) + UNITS_MAX;
    if (g > t->granted)
        t->granted = g;
    return t->granted - t->gave; /* gave never passes what was spare */
}

static void tx_set_stop(struct rnl_tx *t)
{
    uint64_t used = tx_used(t), granted = tx_granted(t);
    uint64_t by_grant = rnl_tx_line(t) + 1 + (granted > used ? granted - used : 0);
    uint64_t by_room = (t->acked >> 3) + RNL_LINES(t->wrap);
    rnl_tx_set_stop(t, t->ring ? (by_grant < by_room ? by_grant : by_room) * 8 : 0);
}

int rnl_tx_refresh(struct rnl_tx *t, struct rnl_env *env, uint8_t *distance)
{
    const struct rnl_back *back = &t->peer->back[t->lane];
    uint64_t p = env ? env->ops->sense_load(env, &back->position, t->acked, distance)
                     : atomic_load_explicit(&back->position, memory_order_acquire); /* A2 */
    if (p > t->acked) {
        if (p > RNL_LINE_START(t->pos))
            return RNL_RING_BROKEN;
        t->acked = p;
    }
    tx_set_stop(t);
    return !t->ring || RNL_LINE_START(t->pos) < t->stop;
}

void rnl_rx_tell(struct rnl_rx *r)
{
    struct rnl_back *back = &r->mine->back[r->lane];
    uint64_t granted = r->standing + r->got_back + ((r->pos >> 3) - r->line0 - 1) + r->bulk_read / 64;
    uint64_t position = r->pos;
    granted = granted > r->withheld ? granted - r->withheld : 0;
    set_tell_pos(r);
    if (granted > r->told_grant) { /* what was told never falls */
        r->told_grant = granted;
        r->told = 1;
        atomic_store_explicit(&back->granted, granted, memory_order_release); /* R2 pairs with A2 */
    }
    if (r->told_bulk != r->bulk_read) {
        r->told_bulk = r->bulk_read;
        r->told = 1;
        atomic_store_explicit(&back->bulk_read, r->bulk_read, memory_order_release); /* R2 */
    }
    if (r->told_position != position) {
        r->told_position = position;
        r->told = 1;
        atomic_store_explicit(&back->position, position, memory_order_release); /* R2 */
    }
}

int rnl_rx_ahead(const struct rnl_rx *r, unsigned lines)
{
    if (RNL_LINES(r->wrap) < 8 * RNL_AHEAD)
        return 1;
    uint64_t pos = r->next_pos + lines * 8;
    rnl_head h = atomic_load_explicit(&rnl_line_of(r->ring, r->wrap, pos)->head, memory_order_relaxed);
    return (uint16_t)((unsigned)h - (unsigned)pos) - 1u < RNL_ITEMS_MAX;
}

void rnl_rx_grant(struct rnl_rx *r, uint64_t standing)
{
    if (standing <= r->standing)
        return;
    r->standing = standing;
    rnl_rx_tell(r);
}

void rnl_rx_ask_back(struct rnl_rx *r, uint64_t standing)
{
    if (r->standing <= standing)
        return;
    r->asked = r->got_back + (r->standing - standing);
    atomic_store_explicit(&r->mine->asked_back, r->asked, memory_order_release);
}

static void want_nothing(struct rnl_tx *t)
{
    t->wanted = 0;
    atomic_store_explicit(&t->mine->wants, 0, memory_order_relaxed);
}

void rnl_tx_give_back(struct rnl_tx *t)
{
    uint64_t asked = atomic_load_explicit(&t->peer->asked_back, memory_order_acquire);
    if (t->wanted && --t->patience == 0)
        want_nothing(t); /* whoever wanted it has not come back */
    if (t->lane != 0 || asked <= t->gave || t->wanted)
        return;
    uint64_t used = tx_used(t), granted = tx_granted(t),
             spare = granted > used + RNL_GRANT_MIN ? granted - used - RNL_GRANT_MIN : 0;
    uint64_t give = asked - t->gave < spare ? asked - t->gave : spare;
    if (!give)
        return;
    t->gave += give;
    tx_set_stop(t);
    atomic_store_explicit(&t->mine->gave_back, t->gave, memory_order_release);
}

uint64_t rnl_rx_got_back(struct rnl_rx *r)
{
    if (r->asked == r->got_back)
        return 0;
    uint64_t gave = atomic_load_explicit(&r->theirs->gave_back, memory_order_acquire);
    if (gave > r->asked)
        gave = r->asked;
    if (gave <= r->got_back)
        return 0;
    uint64_t units = gave - r->got_back;
    r->got_back = gave;
    r->standing -= units;
    return units;
}

/* What the receiver is done with. 0 or RNL_RING_BROKEN. */
static int bulk_refresh(struct rnl_tx *t)
{
    uint64_t read = atomic_load_explicit(&t->peer->back[t->lane].bulk_read, memory_order_acquire); /* A2 */
    if (read <= t->bulk_read)
        return 0;
    if (read > t->bulk_head || read & 63) /* whole units, or more would be free than there is */
        return RNL_RING_BROKEN;
    t->bulk_read = read;
    return 0;
}

/* An extent at bulk_head, the gap before it included, its line, that of its end and one to spare. */
static uint64_t units_for(const struct rnl_tx *t, uint32_t bytes)
{
    uint64_t offset = t->bulk_head & t->bulk_mask, left = t->bulk_mask + 1 - offset, gap = bytes > left ? left : 0;
    return (gap + bytes + 63) / 64 + 3;
}

/* The grant lacks `units`. What is held meanwhile is not given back, for a while: or two that want the same would never
 * get it. */
static void want(struct rnl_tx *t, uint64_t units)
{
    if (t->lane != 0)
        return;
    t->patience = PATIENCE;
    uint64_t full = rnl_grant_full(t->bulk_mask),
             most = atomic_load_explicit(&t->peer->most,
                                         memory_order_relaxed); /* a hint; what it never gives is no wish */
    if (most && most < full)
        full = most;
    if (units > full)
        units = full;
    if (units <= t->wanted)
        return;
    t->wanted = units;
    atomic_store_explicit(&t->mine->wants, units, memory_order_relaxed); /* a wish: nothing depends on it */
}

int rnl_tx_bulk_never(const struct rnl_tx *t, uint32_t bytes, uint64_t *most)
{
    uint64_t units = atomic_load_explicit(&t->peer->most, memory_order_relaxed);
    if (units == 0 || units_for(t, bytes) <= units)
        return 0;
    *most = units > 3 ? (units - 3) * 64 : 0;
    return 1;
}

/* An extent at `offset` would cross it. */
static int crosses(uint64_t offset, uint32_t bytes, uint64_t border)
{
    return offset <= border && offset + bytes > border;
}

/* Where little is under way, the first half MiB of the area is used again and again: with the other direction's it
 * stays in the cache of its core. Where not much is, the first MiB of a larger one. What is skipped counts as used
 * until the reader is past it, as at the area's end. */
static int turns_early(struct rnl_tx *t, uint64_t offset, uint32_t bytes)
{
    uint64_t most = 0; /* under way */
    if (crosses(offset, bytes, RNL_BULK_BYTES / 2) && bytes <= RNL_BULK_BYTES / 8)
        most = RNL_BULK_BYTES / 8;
    else if (crosses(offset, bytes, RNL_BULK_BYTES) && bytes <= RNL_BULK_BYTES / 2)
        most = RNL_BULK_BYTES / 2; /* of the MiB that follows half is free */
    if (most == 0 || bulk_refresh(t) < 0)
        return 0; /* what cannot be is found again when it matters */
    uint64_t skipped = t->bulk_mask + 1 - offset, units = (skipped + bytes) / 64 + 2;
    uint64_t away = t->bulk_head - t->bulk_read;
    return away <= most && away + skipped + ((bytes + 63u) & ~63u) <= t->bulk_mask + 1 &&
           tx_used(t) + units <= tx_granted(t);
}

int rnl_tx_bulk_room(struct rnl_tx *t, uint32_t bytes, uint64_t *start)
{
    uint64_t at = t->bulk_head, offset = at & t->bulk_mask, area = t->bulk_mask + 1;
    if (offset + bytes > rnl_bulk_area(t, bytes) || turns_early(t, offset, bytes))
        at += area - offset;
    uint64_t end = at + ((bytes + 63u) & ~63u);
    if (end - t->bulk_read > area) {
        if (bulk_refresh(t) < 0)
            return RNL_RING_BROKEN;
        if (end - t->bulk_read > area)
            return 0;
    }
    /* The line that announces it is a unit too. */
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

int64_t rnl_tx_bulk_piece(struct rnl_tx *t, uint32_t bytes, uint32_t least)
{
    uint64_t area = t->bulk_mask + 1, to_end = area - (t->bulk_head & t->bulk_mask),
             fits = bytes < to_end ? bytes : to_end;
    uint64_t room = area - (t->bulk_head - t->bulk_read), used = tx_used(t) + 1, granted = tx_granted(t);
    if (room < fits) {
        if (bulk_refresh(t) < 0)
            return RNL_RING_BROKEN;
        room = area - (t->bulk_head - t->bulk_read);
    }
    if (room < fits)
        fits = room;
    uint64_t units = granted > used ? granted - used : 0;
    if (units * 64 < fits) { /* what is on its way is all that the grant allows: twice that would do */
        uint64_t read = (t->acked >> 3) - t->line0 - 1 + t->bulk_read / 64;
        want(t, granted > read ? 2 * (granted - read) : 0);
        fits = units * 64;
    }
    if (least > to_end)
        least = (uint32_t)to_end;
    return fits < least ? 0 : (int64_t)fits;
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
    if (e->reserved > area || offset + e->reserved > area || e->published > e->reserved)
        return RNL_RING_BROKEN;
    if (e->flags & ~(uint32_t)RNL_EXTENT_FLAGS)
        return RNL_RING_BROKEN;
    return 0;
}

void rnl_rx_bulk_done(struct rnl_rx *r, uint64_t to)
{
    if (to > r->bulk_read)
        r->bulk_read = to;
    uint64_t eighth = (r->lane == 1 ? RNL_BULK_ANSWERS : RNL_BULK_BYTES) / 8, grant = r->standing * 64 / 4;
    if (r->bulk_read - r->told_bulk >= (grant < eighth ? grant : eighth))
        rnl_rx_tell(r);
}

void rnl_tx_grow(struct rnl_tx *t, struct rnl_line *big)
{
    t->ring = big;
    t->wrap = RNL_WRAP(RNL_BIG);
    rnl_tx_close_other(t);
    tx_set_stop(t);
}

void rnl_rx_grow(struct rnl_rx *r, struct rnl_line *big)
{
    r->ring = big;
    r->wrap = RNL_WRAP(RNL_BIG);
    r->next = rnl_line_of(big, r->wrap, r->next_pos);
    set_tell_pos(r);
}
