/* SPDX-License-Identifier: BSD-3-Clause
 *
 * replica_apply.c - applies the frames of a packet: cells, bulk bytes and credit words go where the peer would have
 * written them in shared memory. */
#include "base/sometimes.h"
#include "remote/replica.h"

/* Makes sure of the big ring and the bulk areas, and of a place to note what is in them. Returns 0 if there is no
 * memory. */
static bool map_bulk(struct rnl_replica *m)
{
    if (m->in[0].ranges)
        return true;
    if (RNL_BUGGIFY("no memory for bulk areas") || rnl_channel_map_theirs(m->channel) < 0)
        return false;
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        m->in[lane].ranges = (struct rnl_replica_range *)(void *)(m->channel->bulk_theirs + RNL_REMOTE_REGION_BYTES) +
                             lane * RNL_REPLICA_RANGES;
    return true;
}

/* Makes sure of the ring of this lane. Returns 0 if there is no memory. */
static bool map_ring(struct rnl_replica *m, unsigned lane)
{
    return RNL_LIKELY(m->channel->rx[lane].ring) ||
           !(RNL_BUGGIFY("no memory for a ring") || rnl_channel_map_requests(m->channel) < 0);
}

/* ---- bulk bytes that arrived out of order ---- */

/* Returns a position as signed distance from the floor, which is less than 2^31 away from all of them. */
static int32_t above(const struct rnl_replica_in *in, uint32_t low)
{
    return (int32_t)(low - (uint32_t)in->floor);
}

static void remove_range(struct rnl_replica_in *in, uint32_t i)
{
    in->count--;
    memmove(&in->ranges[i], &in->ranges[i + 1], (in->count - i) * sizeof in->ranges[0]);
}

/* Notes that [from, to) is here. Returns 0 if there is no place to note it. The last place is kept for what is lower
 * than all others, since the others wait for that. */
static bool note_here(struct rnl_replica_in *in, uint64_t from, uint64_t to)
{
    uint32_t i = 0;
    int32_t a = above(in, (uint32_t)from), b = above(in, (uint32_t)to);
    while (i < in->count && above(in, in->ranges[i].to) < a)
        i++;
    if (i == in->count || above(in, in->ranges[i].from) > b) { /* touches none */
        if (in->count == RNL_REPLICA_RANGES || (in->count == RNL_REPLICA_RANGES - 1 && i > 0))
            return false;
        RNL_SOMETIMES(i < in->count, "bytes come behind others that are missing");
        memmove(&in->ranges[i + 1], &in->ranges[i], (in->count - i) * sizeof in->ranges[0]);
        in->ranges[i] = (struct rnl_replica_range){(uint32_t)from, (uint32_t)to};
        in->count++;
        return true;
    }
    if (above(in, in->ranges[i].from) > a)
        in->ranges[i].from = (uint32_t)from;
    if (above(in, in->ranges[i].to) < b)
        in->ranges[i].to = (uint32_t)to;
    while (i + 1 < in->count && above(in, in->ranges[i + 1].from) <= above(in, in->ranges[i].to)) {
        if (above(in, in->ranges[i + 1].to) > above(in, in->ranges[i].to))
            in->ranges[i].to = in->ranges[i + 1].to;
        RNL_SOMETIMES(1, "what comes closes a gap between bytes");
        remove_range(in, i + 1);
    }
    return true;
}

static bool is_here(const struct rnl_replica_in *in, uint64_t from, uint64_t to)
{
    int32_t a = above(in, (uint32_t)from), b = above(in, (uint32_t)to);
    if (a < 0) /* emitted before, as far as a cell that is in order can know */
        a = 0;
    for (uint32_t i = 0; i < in->count && a < b; i++)
        if (above(in, in->ranges[i].from) <= a && above(in, in->ranges[i].to) > a)
            return above(in, in->ranges[i].to) >= b;
    return a >= b;
}

/* Raises the floor: an extent is announced up to `floor`, and after a complete extent the next begins at a multiple of
 * 64. */
static void raise_floor(struct rnl_replica_in *in, uint64_t floor, uint32_t flags)
{
    if (flags & RNL_EXTENT_CLOSED)
        floor = (floor + 63) & ~(uint64_t)63;
    if (floor <= in->floor)
        return;
    uint32_t keep = 0;
    in->floor = floor;
    for (uint32_t i = 0; i < in->count; i++) {
        if (above(in, in->ranges[i].to) <= 0)
            continue;
        in->ranges[keep] = in->ranges[i];
        if (above(in, in->ranges[keep].from) < 0)
            in->ranges[keep].from = (uint32_t)floor;
        keep++;
    }
    in->count = keep;
}

/* ---- the reply watermark ---- */

static void advance_watermark(struct rnl_replica *m)
{
    while (m->claim[0].read && m->in[1].shown >= m->claim[0].answers) {
        if (m->claim[0].read > m->watermark)
            m->watermark = m->claim[0].read;
        m->claim[0] = m->claim[1];
        m->claim[1].read = 0;
    }
}

static void claim(struct rnl_replica *m, uint64_t read, uint64_t answers)
{
    RNL_SOMETIMES(answers > m->in[1].shown, "what was read is said before what was answered");
    if (read <= m->watermark || read <= m->claim[0].read || read <= m->claim[1].read)
        return; /* known */
    m->claim[m->claim[0].read != 0] = (struct rnl_replica_claim){read, answers};
    advance_watermark(m);
}

/* ---- cells ---- */

RNL_INLINE struct rnl_cell *slot_of(const struct rnl_replica *m, unsigned lane, uint64_t line)
{
    return rnl_replica_slot(m->channel->theirs, m->channel->bulk_theirs, m->channel->rx[1].ring, lane, m->grow_came,
                            line);
}

/* Returns the number of cells in the ring of this cell. */
static uint32_t ring_of(const struct rnl_replica *m, unsigned lane, uint64_t line)
{
    if (lane == 0)
        return line > m->grow_came ? RNL_CELLS_BIG : RNL_CELLS_LANE0;
    return RNL_CELLS_LANE1_REMOTE;
}

static bool is_extent(rnl_header h)
{
    return RNL_HEADER_KIND(h) == RNL_CELL_EXTENT && RNL_HEADER_LEN(h) == sizeof(struct rnl_extent);
}
static bool is_prefix(rnl_header h)
{
    return RNL_HEADER_KIND(h) == RNL_CELL_PREFIX && RNL_HEADER_LEN(h) == sizeof(struct rnl_prefix);
}

/* Returns 1 for an extent that no honest peer announces; it is shown, for stream/ to find it. */
static int impossible(const struct rnl_replica *m, unsigned lane, uint64_t start, uint64_t published)
{
    uint64_t end = m->channel->rx[lane].bulk_read + m->channel->rx[lane].bulk_mask + 1;
    return start > end || published > end - start;
}

/* Returns true if the bulk bytes that this cell, the next to be shown, announces are here. Notes the extent that the
 * cell refers to. */
static bool bytes_here(struct rnl_replica *m, unsigned lane, rnl_header h, const struct rnl_cell *slot)
{
    struct rnl_replica_in *in = &m->in[lane];
    if (is_extent(h)) {
        struct rnl_extent e;
        memcpy(&e, slot->payload, sizeof e);
        if (impossible(m, lane, e.start, e.published))
            return true;
        RNL_SOMETIMES(!is_here(in, e.start, e.start + e.published), "an extent waits for its bytes");
        if (!is_here(in, e.start, e.start + e.published))
            return false;
        in->start = e.start;
        in->published = e.published;
        raise_floor(in, e.start + e.published, e.flags);
    } else if (is_prefix(h)) {
        struct rnl_prefix p;
        memcpy(&p, slot->payload, sizeof p);
        if (p.published < in->published || impossible(m, lane, in->start, p.published))
            return true;
        if (!is_here(in, in->start + in->published, in->start + p.published))
            return false;
        in->published = p.published;
        raise_floor(in, in->start + p.published, p.flags);
    }
    return true;
}

/* Shows the cells that need not wait any more. Returns 0 or RNL_ERR_PEER_BROKEN. */
static int show(struct rnl_replica *m, unsigned lane)
{
    struct rnl_replica_in *in = &m->in[lane];
    while (m->channel->rx[lane].ring) {
        uint64_t line = (in->shown >> 3) + 1;
        struct rnl_cell *slot = slot_of(m, lane, line);
        rnl_header h = atomic_load_explicit(&slot->header, memory_order_relaxed) ^ RNL_REPLICA_WAITS; /* our own */
        unsigned n = (uint16_t)((unsigned)h - (unsigned)(line * 8)),
                 before = (unsigned)(h >> RNL_REPLICA_BEFORE_SHIFT) & 7, here = in->shown & 7;
        if (n - 1u >= RNL_RECORDS_MAX)
            return 0;
        if (before && before < here)
            return RNL_ERR_PEER_BROKEN;
        RNL_SOMETIMES(before && before > here, "a line waits for an item of the one before");
        if ((before && before > here) || !bytes_here(m, lane, h, slot))
            return 0;
        in->shown = line * 8 + n;
        m->arrived |= RNL_REPLICA_LINES;
        atomic_store_explicit(&slot->header, h & ~RNL_REPLICA_BEFORE, memory_order_release); /* R1 */
    }
    return 0;
}

/* Appends records to the last cell that is shown. */
static int append(struct rnl_replica *m, unsigned lane, const struct rnl_frame_cell *l)
{
    struct rnl_replica_in *in = &m->in[lane];
    struct rnl_cell *slot = slot_of(m, lane, in->shown >> 3);
    rnl_header old = atomic_load_explicit(&slot->header, memory_order_relaxed); /* our own */
    if ((in->shown & 7) == 0 || (old ^ l->head) & RNL_HEADER_KEY_MASK || RNL_HEADER_KIND(old) != RNL_CELL_RECORDS)
        return RNL_ERR_PEER_BROKEN;
    rnl_copy_short(slot->payload, l->payload, l->bytes);
    in->shown = (in->shown & ~(uint64_t)7) + RNL_HEADER_N(l->head);
    m->arrived |= RNL_REPLICA_LINES;
    RNL_SOMETIMES(1, "a line that is shown gets more items");
    atomic_store_explicit(&slot->header, l->head & ~RNL_REPLICA_BEFORE, memory_order_release); /* R1 */
    return 0;
}

/* Notes the gap after the extent that this cell announces, if that is complete: the next extent begins at a multiple of
 * 64. So whole messages that arrive out of order are one range and not many. */
static void join_next(struct rnl_replica *m, unsigned lane, const struct rnl_frame_cell *l)
{
    struct rnl_replica_in *in = &m->in[lane];
    struct rnl_extent e;
    if (!is_extent(l->head))
        return;
    memcpy(&e, l->payload, sizeof e);
    uint64_t end = e.start + e.published;
    if (!(e.flags & RNL_EXTENT_CLOSED) || end % 64 == 0 || impossible(m, lane, e.start, e.published) ||
        end <= in->floor || !is_here(in, e.start, end))
        return;
    (void)note_here(in, end, (end + 63) & ~(uint64_t)63); /* touches what is here */
}

static bool needs_bulk(rnl_header h)
{
    unsigned kind = RNL_HEADER_KIND(h);
    return kind == RNL_CELL_EXTENT || kind == RNL_CELL_PREFIX || kind == RNL_CELL_GROW;
}

static int take_line(struct rnl_replica *m, unsigned lane, uint64_t line, const struct rnl_frame_cell *l)
{
    struct rnl_replica_in *in = &m->in[lane];
    uint64_t shown = in->shown >> 3, read = m->channel->rx[lane].pos >> 3;
    unsigned n = RNL_HEADER_N(l->head);
    RNL_SOMETIMES(line < shown, "a line comes again");
    RNL_SOMETIMES(line > shown + 1, "a line comes ahead of others");
    if (line < shown || (line == shown && n <= (in->shown & 7)))
        return 0; /* known */
    if (!map_ring(m, lane))
        return RNL_NO_ROOM;
    if (line == shown)
        return append(m, lane, l);
    if (line >= read + ring_of(m, lane, line)) /* a place that was not advertised to it as free */
        return RNL_ERR_PEER_BROKEN;
    if (needs_bulk(l->head) && !map_bulk(m))
        return RNL_NO_ROOM;
    if (line > in->highest)
        in->highest = line;
    struct rnl_cell *slot = slot_of(m, lane, line);
    rnl_header waits = l->head ^ RNL_REPLICA_WAITS, old = atomic_load_explicit(&slot->header, memory_order_relaxed);
    if ((uint16_t)old >> 3 == (uint16_t)waits >> 3 && RNL_HEADER_N(old) >= n)
        return 0; /* it waits already */
    rnl_copy_short(slot->payload, l->payload, l->bytes);
    atomic_store_explicit(&slot->header, waits, memory_order_relaxed); /* read by this process alone */
    if (lane == 0 && RNL_HEADER_KIND(l->head) == RNL_CELL_GROW && m->grow_came == UINT64_MAX)
        m->grow_came = line;
    join_next(m, lane, l);
    return 0;
}

static int take_lines(struct rnl_replica *m, const struct rnl_frame *f)
{
    uint64_t line = rnl_wire_widen(m->in[f->lane].shown >> 3, f->low);
    const unsigned char *at = f->at;
    struct rnl_frame_cell l;
    int all = 0;
    for (unsigned i = 0; i < f->count; i++, line++) {
        at = rnl_frame_cell(at, &l);
        int status = take_line(m, f->lane, line, &l);
        if (status == RNL_NO_ROOM)
            all = RNL_NO_ROOM;
        else if (status < 0)
            return RNL_ERR_PEER_BROKEN;
    }
    int status = show(m, f->lane);
    if (m->claim[0].read)
        advance_watermark(m);
    return status < 0 ? status : all;
}

static int take_bulk(struct rnl_replica *m, const struct rnl_frame *f)
{
    struct rnl_replica_in *in = &m->in[f->lane];
    const struct rnl_rx *r = &m->channel->rx[f->lane];
    uint64_t from = rnl_wire_widen(in->floor, f->low), to = from + f->bytes, area = r->bulk_mask + 1;
    const unsigned char *bytes = f->at;
    RNL_SOMETIMES(to <= in->floor, "bytes come again");
    if (to <= in->floor)
        return 0; /* known */
    if ((from & r->bulk_mask) + f->bytes > area || to > r->bulk_read + area)
        return RNL_ERR_PEER_BROKEN; /* over the end of the area, or where no room was advertised */
    if (from < in->floor) {
        RNL_SOMETIMES(1, "bytes come again, and new ones behind them");
        bytes += in->floor - from;
        from = in->floor;
    }
    if (!map_bulk(m) || RNL_BUGGIFY("no place to note what is here") || !note_here(in, from, to))
        return RNL_NO_ROOM;
    rnl_copy_in(m->channel->bulk_theirs + RNL_REMOTE_BULK_AREA(f->lane) + (from & r->bulk_mask), bytes, to - from);
    int status = show(m, f->lane);
    if (m->claim[0].read)
        advance_watermark(m);
    return status;
}

/* ---- credit words ---- */

static _Atomic uint64_t *word_of(struct rnl_control_page *side, unsigned which)
{
    if (which < RNL_CREDIT_RECLAIM) {
        struct rnl_credit_words *back = &side->credit[which / 3];
        return which % 3 == RNL_CREDIT_POSITION  ? &back->position
               : which % 3 == RNL_CREDIT_GRANTED ? &back->granted
                                                 : &back->bulk_read;
    }
    switch (which) {
    case RNL_CREDIT_RECLAIM:
        return &side->credit_reclaim;
    case RNL_CREDIT_RETURNED:
        return &side->credit_returned;
    case RNL_CREDIT_WANTED:
        return &side->credit_wanted;
    default:
        return &side->credit_max;
    }
}

static void take_words(struct rnl_replica *m, const struct rnl_frame *f, uint64_t number)
{
    uint64_t words[RNL_CREDIT_WORDS];
    rnl_frame_credit(f, words);
    for (unsigned which = f->count; which != 0; which &= which - 1) {
        unsigned i = (unsigned)__builtin_ctz(which);
        _Atomic uint64_t *word = word_of(m->channel->theirs, i);
        uint64_t old = atomic_load_explicit(word, memory_order_relaxed); /* our own */
        uint64_t *newest = i == RNL_CREDIT_WANTED ? &m->wants_from : i == RNL_CREDIT_MAX ? &m->most_from : NULL;
        RNL_SOMETIMES(newest && number < *newest, "a wish comes behind a later one");
        RNL_SOMETIMES(!newest && words[i] < old, "a word comes behind a later one");
        if (newest && number < *newest)
            continue; /* a later packet has advertised it */
        if (newest)
            *newest = number;
        if (newest ? words[i] == old : words[i] <= old)
            continue;
        atomic_store_explicit(word, words[i], memory_order_release); /* R2 */
        m->arrived |= RNL_REPLICA_ROOM;
    }
    if (f->count & 1u << RNL_CREDIT_POSITION)
        claim(m, words[RNL_CREDIT_POSITION], rnl_wire_widen(m->in[1].shown, f->low));
}

/* Applies a packet whose only frame has one cell of records on lane 0, the next to be shown, as take and show would.
 * Returns 0, with nothing changed, if the packet is not like that. */
static bool take_one(struct rnl_replica *m, const unsigned char *at, uint32_t bytes)
{
    struct rnl_replica_in *in = &m->in[0];
    uint64_t line = (in->shown >> 3) + 1;
    if (!m->channel->rx[0].ring || bytes < RNL_FRAME_HEADER + RNL_FRAME_CELL_HEADER ||
        rnl_get64(at) != (RNL_FRAME_CELLS | (uint64_t)1 << 16 | line << 32)) /* kind, lane 0, one cell, its number */
        return false;
    rnl_header h = rnl_get64(at + RNL_FRAME_HEADER);
    unsigned n = RNL_HEADER_N(h), used = rnl_cell_used(h), before = (unsigned)(h >> RNL_REPLICA_BEFORE_SHIFT) & 7;
    if (n == 0 || used > RNL_CELL_PAYLOAD || bytes != RNL_FRAME_HEADER + RNL_FRAME_CELL_HEADER + used ||
        RNL_HEADER_POS(h) >> 3 != (line & 0x1fff) || RNL_HEADER_KIND(h) != RNL_CELL_RECORDS ||
        (before && before != (in->shown & 7)) || in->highest >= line ||
        line >= (m->channel->rx[0].pos >> 3) + ring_of(m, 0, line))
        return false;
    struct rnl_cell *slot = slot_of(m, 0, line);
    in->highest = line;
    in->shown = line * 8 + n;
    m->arrived |= RNL_REPLICA_LINES;
    rnl_copy_short(slot->payload, at + RNL_FRAME_HEADER + RNL_FRAME_CELL_HEADER, used);
    atomic_store_explicit(&slot->header, h & ~RNL_REPLICA_BEFORE, memory_order_release); /* R1 */
    return true;
}

int rnl_replica_apply(struct rnl_replica *m, const unsigned char *at, uint32_t bytes, uint64_t number)
{
    if (RNL_LIKELY(take_one(m, at, bytes)))
        return 0;
    struct rnl_frames reader = rnl_frames_of(at, bytes);
    struct rnl_frame f;
    int status, all = 0;
    while ((status = rnl_frame_next(&reader, &f)) > 0) {
        switch (f.kind) {
        case RNL_FRAME_CELLS:
            status = take_lines(m, &f);
            break;
        case RNL_FRAME_BULK:
            status = take_bulk(m, &f);
            break;
        case RNL_FRAME_CREDIT:
            take_words(m, &f, number);
            status = 0;
            break;
        case RNL_FRAME_CREDIT_REQUEST:
            m->repeat = RNL_CREDIT_ALL;
            status = 0;
            break;
        default: /* PING has no content */
            status = 0;
            break;
        }
        if (status == RNL_NO_ROOM)
            all = RNL_NO_ROOM; /* what can be taken is taken */
        else if (status < 0)
            return status;
    }
    return status < 0 ? status : all;
}

int rnl_replica_valid(const struct rnl_replica *m)
{
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        const struct rnl_tx *t = &m->channel->tx[lane];
        const struct rnl_rx *r = &m->channel->rx[lane];
        const struct rnl_replica_out *o = &m->out[lane];
        const struct rnl_replica_in *in = &m->in[lane];
        if (o->sent >> 3 > rnl_tx_cell(t) || o->bulk_sent > t->bulk_head)
            return 1;
        if (r->pos > RNL_CELL_START(in->shown + 1))
            return 2;
        if (in->count > RNL_REPLICA_RANGES)
            return 3;
        for (uint32_t i = 0; i < in->count; i++)
            if (above(in, in->ranges[i].from) >= above(in, in->ranges[i].to) ||
                above(in, in->ranges[i].from) <= (i ? above(in, in->ranges[i - 1].to) : -1))
                return 4;
    }
    for (uint32_t i = 0; i < m->lost_count; i++)
        if (m->lost[i].from > m->lost[i].to ||
            m->lost[i].to > (m->lost[i].kind == RNL_FRAME_CELLS ? (m->out[m->lost[i].lane].sent >> 3) + 1
                                                                : m->out[m->lost[i].lane].bulk_sent))
            return 5;
    return 0;
}
