/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mirror_in.c - what the peer says becomes what it would have written: lines, bulk bytes, words. */
#include "base/sometimes.h"
#include "endpoint/mirror.h"

/* The big ring and the bulk areas, and a place to note what is in them. 0 = no memory. */
static int reach(struct rnl_mirror *m)
{
    if (m->in[0].here)
        return 1;
    if (RNL_RARELY("no memory for bulk areas") || rnl_pair_reach_theirs(m->pair) < 0)
        return 0;
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        m->in[lane].here =
            (struct rnl_mirror_range *)(void *)(m->pair->far_theirs + RNL_AWAY_BYTES) + lane * RNL_MIRROR_RANGES;
    return 1;
}

/* The same for the ring of this lane. */
static int reach_ring(struct rnl_mirror *m, unsigned lane)
{
    return RNL_LIKELY(m->pair->rx[lane].ring != NULL) ||
           !(RNL_RARELY("no memory for a ring") || rnl_pair_reach_asked(m->pair) < 0);
}

/* ---- bulk bytes that are here ahead of others ---- */

/* Positions as signed distances from the floor, which is less than 2^31 away from all of them. */
static int32_t above(const struct rnl_mirror_in *in, uint32_t low)
{
    return (int32_t)(low - (uint32_t)in->floor);
}

static void remove_range(struct rnl_mirror_in *in, uint32_t i)
{
    in->count--;
    memmove(&in->here[i], &in->here[i + 1], (in->count - i) * sizeof in->here[0]);
}

/* Notes that [from, to) is here. 0 = no place to note it. The last place is for what is lower than all others: that is
 * what the others wait for. */
static int note_here(struct rnl_mirror_in *in, uint64_t from, uint64_t to)
{
    uint32_t i = 0;
    int32_t a = above(in, (uint32_t)from), b = above(in, (uint32_t)to);
    while (i < in->count && above(in, in->here[i].to) < a)
        i++;
    if (i == in->count || above(in, in->here[i].from) > b) { /* touches none */
        if (in->count == RNL_MIRROR_RANGES || (in->count == RNL_MIRROR_RANGES - 1 && i > 0))
            return 0;
        RNL_SOMETIMES(i < in->count, "bytes come behind others that are missing");
        memmove(&in->here[i + 1], &in->here[i], (in->count - i) * sizeof in->here[0]);
        in->here[i] = (struct rnl_mirror_range){(uint32_t)from, (uint32_t)to};
        in->count++;
        return 1;
    }
    if (above(in, in->here[i].from) > a)
        in->here[i].from = (uint32_t)from;
    if (above(in, in->here[i].to) < b)
        in->here[i].to = (uint32_t)to;
    while (i + 1 < in->count && above(in, in->here[i + 1].from) <= above(in, in->here[i].to)) {
        if (above(in, in->here[i + 1].to) > above(in, in->here[i].to))
            in->here[i].to = in->here[i + 1].to;
        RNL_SOMETIMES(1, "what comes closes a gap between bytes");
        remove_range(in, i + 1);
    }
    return 1;
}

static int is_here(const struct rnl_mirror_in *in, uint64_t from, uint64_t to)
{
    int32_t a = above(in, (uint32_t)from), b = above(in, (uint32_t)to);
    if (a < 0) /* said before, as far as a line that is in order can know */
        a = 0;
    for (uint32_t i = 0; i < in->count && a < b; i++)
        if (above(in, in->here[i].from) <= a && above(in, in->here[i].to) > a)
            return above(in, in->here[i].to) >= b;
    return a >= b;
}

/* An extent is announced up to `floor`; the one behind a complete one begins at a multiple of 64. */
static void raise_floor(struct rnl_mirror_in *in, uint64_t floor, uint32_t flags)
{
    if (flags & RNL_EXTENT_CLOSED)
        floor = (floor + 63) & ~(uint64_t)63;
    if (floor <= in->floor)
        return;
    uint32_t keep = 0;
    in->floor = floor;
    for (uint32_t i = 0; i < in->count; i++) {
        if (above(in, in->here[i].to) <= 0)
            continue;
        in->here[keep] = in->here[i];
        if (above(in, in->here[keep].from) < 0)
            in->here[keep].from = (uint32_t)floor;
        keep++;
    }
    in->count = keep;
}

/* ---- what is settled ---- */

static void settle(struct rnl_mirror *m)
{
    while (m->claim[0].read && m->in[1].shown >= m->claim[0].answers) {
        if (m->claim[0].read > m->settled)
            m->settled = m->claim[0].read;
        m->claim[0] = m->claim[1];
        m->claim[1].read = 0;
    }
}

static void claim(struct rnl_mirror *m, uint64_t read, uint64_t answers)
{
    RNL_SOMETIMES(answers > m->in[1].shown, "what was read is said before what was answered");
    if (read <= m->settled || read <= m->claim[0].read || read <= m->claim[1].read)
        return; /* said before */
    m->claim[m->claim[0].read != 0] = (struct rnl_mirror_claim){read, answers};
    settle(m);
}

/* ---- lines ---- */

RNL_INLINE struct rnl_line *slot_of(const struct rnl_mirror *m, unsigned lane, uint64_t line)
{
    return rnl_mirror_slot(m->pair->theirs, m->pair->far_theirs, m->pair->rx[1].ring, lane, m->grow_came, line);
}

/* Lines that the ring of this line has. */
static uint32_t ring_of(const struct rnl_mirror *m, unsigned lane, uint64_t line)
{
    if (lane == 0)
        return line > m->grow_came ? RNL_BIG : RNL_SMALL0;
    return lane == 1 ? RNL_AWAY1 : RNL_SMALL2;
}

static int is_extent(rnl_head h)
{
    return RNL_HEAD_KIND(h) == RNL_LINE_EXTENT && RNL_HEAD_LEN(h) == sizeof(struct rnl_extent);
}
static int is_prefix(rnl_head h)
{
    return RNL_HEAD_KIND(h) == RNL_LINE_PREFIX && RNL_HEAD_LEN(h) == sizeof(struct rnl_prefix);
}

/* An extent that no honest peer announces: stream/ shall see it. */
static int impossible(const struct rnl_mirror *m, unsigned lane, uint64_t start, uint64_t published)
{
    uint64_t end = m->pair->rx[lane].bulk_read + m->pair->rx[lane].bulk_mask + 1;
    return start > end || published > end - start;
}

/* The bulk bytes that this line, the next to be shown, announces are here. Notes the extent it speaks of. */
static int bytes_here(struct rnl_mirror *m, unsigned lane, rnl_head h, const struct rnl_line *slot)
{
    struct rnl_mirror_in *in = &m->in[lane];
    if (is_extent(h)) {
        struct rnl_extent e;
        memcpy(&e, slot->payload, sizeof e);
        if (impossible(m, lane, e.start, e.published))
            return 1;
        RNL_SOMETIMES(!is_here(in, e.start, e.start + e.published), "an extent waits for its bytes");
        if (!is_here(in, e.start, e.start + e.published))
            return 0;
        in->start = e.start;
        in->published = e.published;
        raise_floor(in, e.start + e.published, e.flags);
    } else if (is_prefix(h)) {
        struct rnl_prefix p;
        memcpy(&p, slot->payload, sizeof p);
        if (p.published < in->published || impossible(m, lane, in->start, p.published))
            return 1;
        if (!is_here(in, in->start + in->published, in->start + p.published))
            return 0;
        in->published = p.published;
        raise_floor(in, in->start + p.published, p.flags);
    }
    return 1;
}

/* Shows what waits and need not wait any more. 0 or RNL_ERR_PEER_BROKEN. */
static int show(struct rnl_mirror *m, unsigned lane)
{
    struct rnl_mirror_in *in = &m->in[lane];
    while (m->pair->rx[lane].ring) {
        uint64_t line = (in->shown >> 3) + 1;
        struct rnl_line *slot = slot_of(m, lane, line);
        rnl_head h = atomic_load_explicit(&slot->head, memory_order_relaxed) ^ RNL_MIRROR_WAITS; /* we wrote it */
        unsigned n = (uint16_t)((unsigned)h - (unsigned)(line * 8)),
                 before = (unsigned)(h >> RNL_MIRROR_BEFORE_SHIFT) & 7, here = in->shown & 7;
        if (n - 1u >= RNL_ITEMS_MAX)
            return 0;
        if (before && before < here)
            return RNL_ERR_PEER_BROKEN;
        RNL_SOMETIMES(before && before > here, "a line waits for an item of the one before");
        if ((before && before > here) || !bytes_here(m, lane, h, slot))
            return 0;
        in->shown = line * 8 + n;
        m->came |= RNL_MIRROR_LINES;
        atomic_store_explicit(&slot->head, h & ~RNL_MIRROR_BEFORE, memory_order_release); /* R1 */
    }
    return 0;
}

/* More items of the last line that is shown. */
static int append(struct rnl_mirror *m, unsigned lane, const struct rnl_frame_line *l)
{
    struct rnl_mirror_in *in = &m->in[lane];
    struct rnl_line *slot = slot_of(m, lane, in->shown >> 3);
    rnl_head old = atomic_load_explicit(&slot->head, memory_order_relaxed); /* we wrote it */
    if ((in->shown & 7) == 0 || (old ^ l->head) & RNL_HEAD_KEY_MASK || RNL_HEAD_KIND(old) != RNL_LINE_ITEMS)
        return RNL_ERR_PEER_BROKEN;
    rnl_copy_short(slot->payload, l->payload, l->bytes);
    in->shown = (in->shown & ~(uint64_t)7) + RNL_HEAD_N(l->head);
    m->came |= RNL_MIRROR_LINES;
    RNL_SOMETIMES(1, "a line that is shown gets more items");
    atomic_store_explicit(&slot->head, l->head & ~RNL_MIRROR_BEFORE, memory_order_release); /* R1 */
    return 0;
}

/* The extent that this line announces is complete: the next begins at a multiple of 64, and nothing lies between. So
 * whole messages that came ahead of others are one stretch and not many. */
static void join_next(struct rnl_mirror *m, unsigned lane, const struct rnl_frame_line *l)
{
    struct rnl_mirror_in *in = &m->in[lane];
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

static int speaks_of_far(rnl_head h)
{
    unsigned kind = RNL_HEAD_KIND(h);
    return kind == RNL_LINE_EXTENT || kind == RNL_LINE_PREFIX || kind == RNL_LINE_GROW;
}

static int take_line(struct rnl_mirror *m, unsigned lane, uint64_t line, const struct rnl_frame_line *l)
{
    struct rnl_mirror_in *in = &m->in[lane];
    uint64_t shown = in->shown >> 3, read = m->pair->rx[lane].pos >> 3;
    unsigned n = RNL_HEAD_N(l->head);
    RNL_SOMETIMES(line < shown, "a line comes again");
    RNL_SOMETIMES(line > shown + 1, "a line comes ahead of others");
    if (line < shown || (line == shown && n <= (in->shown & 7)))
        return 0; /* known */
    if (!reach_ring(m, lane))
        return RNL_NO_ROOM;
    if (line == shown)
        return append(m, lane, l);
    if (line >= read + ring_of(m, lane, line)) /* a place that it was not told to be free */
        return RNL_ERR_PEER_BROKEN;
    if (speaks_of_far(l->head) && !reach(m))
        return RNL_NO_ROOM;
    if (line > in->highest)
        in->highest = line;
    struct rnl_line *slot = slot_of(m, lane, line);
    rnl_head waits = l->head ^ RNL_MIRROR_WAITS, old = atomic_load_explicit(&slot->head, memory_order_relaxed);
    if ((uint16_t)old >> 3 == (uint16_t)waits >> 3 && RNL_HEAD_N(old) >= n)
        return 0; /* it waits already */
    rnl_copy_short(slot->payload, l->payload, l->bytes);
    atomic_store_explicit(&slot->head, waits, memory_order_relaxed); /* for ourselves */
    if (lane == 0 && RNL_HEAD_KIND(l->head) == RNL_LINE_GROW && m->grow_came == UINT64_MAX)
        m->grow_came = line;
    join_next(m, lane, l);
    return 0;
}

static int take_lines(struct rnl_mirror *m, const struct rnl_frame *f)
{
    uint64_t line = rnl_wire_widen(m->in[f->lane].shown >> 3, f->low);
    const unsigned char *at = f->at;
    struct rnl_frame_line l;
    int all = 0;
    for (unsigned i = 0; i < f->count; i++, line++) {
        at = rnl_frame_line(at, &l);
        int status = take_line(m, f->lane, line, &l);
        if (status == RNL_NO_ROOM)
            all = RNL_NO_ROOM;
        else if (status < 0)
            return RNL_ERR_PEER_BROKEN;
    }
    int status = show(m, f->lane);
    if (m->claim[0].read)
        settle(m);
    return status < 0 ? status : all;
}

static int take_bulk(struct rnl_mirror *m, const struct rnl_frame *f)
{
    struct rnl_mirror_in *in = &m->in[f->lane];
    const struct rnl_rx *r = &m->pair->rx[f->lane];
    uint64_t from = rnl_wire_widen(in->floor, f->low), to = from + f->bytes, area = r->bulk_mask + 1;
    const unsigned char *bytes = f->at;
    RNL_SOMETIMES(to <= in->floor, "bytes come again");
    if (to <= in->floor)
        return 0; /* known */
    if ((from & r->bulk_mask) + f->bytes > area || to > r->bulk_read + area)
        return RNL_ERR_PEER_BROKEN; /* over the end of the area, or where it was not told that there is room */
    if (from < in->floor) {
        RNL_SOMETIMES(1, "bytes come again, and new ones behind them");
        bytes += in->floor - from;
        from = in->floor;
    }
    if (!reach(m) || RNL_RARELY("no place to note what is here") || !note_here(in, from, to))
        return RNL_NO_ROOM;
    rnl_copy_in(m->pair->far_theirs + RNL_AWAY_BULK(f->lane) + (from & r->bulk_mask), bytes, to - from);
    int status = show(m, f->lane);
    if (m->claim[0].read)
        settle(m);
    return status;
}

/* ---- words ---- */

static _Atomic uint64_t *word_of(struct rnl_side *side, unsigned which)
{
    if (which < RNL_WORD_ASKED_BACK) {
        struct rnl_back *back = &side->back[which / 3];
        return which % 3 == RNL_WORD_POSITION  ? &back->position
               : which % 3 == RNL_WORD_GRANTED ? &back->granted
                                               : &back->bulk_read;
    }
    switch (which) {
    case RNL_WORD_ASKED_BACK:
        return &side->asked_back;
    case RNL_WORD_GAVE_BACK:
        return &side->gave_back;
    case RNL_WORD_WANTS:
        return &side->wants;
    default:
        return &side->most;
    }
}

static void take_words(struct rnl_mirror *m, const struct rnl_frame *f, uint64_t number)
{
    uint64_t words[RNL_WORDS];
    rnl_frame_words(f, words);
    for (unsigned which = f->count; which != 0; which &= which - 1) {
        unsigned i = (unsigned)__builtin_ctz(which);
        _Atomic uint64_t *word = word_of(m->pair->theirs, i);
        uint64_t old = atomic_load_explicit(word, memory_order_relaxed); /* we wrote it */
        uint64_t *newest = i == RNL_WORD_WANTS ? &m->wants_from : i == RNL_WORD_MOST ? &m->most_from : NULL;
        RNL_SOMETIMES(newest && number < *newest, "a wish comes behind a later one");
        RNL_SOMETIMES(!newest && words[i] < old, "a word comes behind a later one");
        if (newest && number < *newest)
            continue; /* a later packet has said it */
        if (newest)
            *newest = number;
        if (newest ? words[i] == old : words[i] <= old)
            continue;
        atomic_store_explicit(word, words[i], memory_order_release); /* R2 */
        m->came |= RNL_MIRROR_ROOM;
    }
    if (f->count & 1u << RNL_WORD_POSITION)
        claim(m, words[RNL_WORD_POSITION], rnl_wire_widen(m->in[1].shown, f->low));
}

/* A frame that is all there is, of a line of items on lane 0 that is the next to be shown: it is shown at once, as take
 * and show would do one after the other. 0 = it is none of these, and nothing has changed. */
static int take_one(struct rnl_mirror *m, const unsigned char *at, uint32_t bytes)
{
    struct rnl_mirror_in *in = &m->in[0];
    uint64_t line = (in->shown >> 3) + 1;
    if (!m->pair->rx[0].ring || bytes < RNL_FRAME_HEAD + RNL_FRAME_LINE_HEAD ||
        rnl_get64(at) != (RNL_FRAME_LINES | (uint64_t)1 << 16 | line << 32)) /* kind, lane 0, one line, its number */
        return 0;
    rnl_head h = rnl_get64(at + RNL_FRAME_HEAD);
    unsigned n = RNL_HEAD_N(h), used = rnl_line_used(h), before = (unsigned)(h >> RNL_MIRROR_BEFORE_SHIFT) & 7;
    if (n == 0 || used > RNL_LINE_PAYLOAD || bytes != RNL_FRAME_HEAD + RNL_FRAME_LINE_HEAD + used ||
        RNL_HEAD_POS(h) >> 3 != (line & 0x1fff) || RNL_HEAD_KIND(h) != RNL_LINE_ITEMS ||
        (before && before != (in->shown & 7)) || in->highest >= line ||
        line >= (m->pair->rx[0].pos >> 3) + ring_of(m, 0, line))
        return 0;
    struct rnl_line *slot = slot_of(m, 0, line);
    in->highest = line;
    in->shown = line * 8 + n;
    m->came |= RNL_MIRROR_LINES;
    rnl_copy_short(slot->payload, at + RNL_FRAME_HEAD + RNL_FRAME_LINE_HEAD, used);
    atomic_store_explicit(&slot->head, h & ~RNL_MIRROR_BEFORE, memory_order_release); /* R1 */
    return 1;
}

int rnl_mirror_frames(struct rnl_mirror *m, const unsigned char *at, uint32_t bytes, uint64_t number)
{
    if (RNL_LIKELY(take_one(m, at, bytes)))
        return 0;
    struct rnl_frames reader = rnl_frames_of(at, bytes);
    struct rnl_frame f;
    int status, all = 0;
    while ((status = rnl_frame_next(&reader, &f)) > 0) {
        switch (f.kind) {
        case RNL_FRAME_LINES:
            status = take_lines(m, &f);
            break;
        case RNL_FRAME_BULK:
            status = take_bulk(m, &f);
            break;
        case RNL_FRAME_WORDS:
            take_words(m, &f, number);
            status = 0;
            break;
        case RNL_FRAME_ASK:
            m->say_again = RNL_WORDS_ALL;
            status = 0;
            break;
        default: /* PING: that it came is all */
            status = 0;
            break;
        }
        if (status == RNL_NO_ROOM)
            all = RNL_NO_ROOM; /* what can be taken is */
        else if (status < 0)
            return status;
    }
    return status < 0 ? status : all;
}

int rnl_mirror_valid(const struct rnl_mirror *m)
{
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        const struct rnl_tx *t = &m->pair->tx[lane];
        const struct rnl_rx *r = &m->pair->rx[lane];
        const struct rnl_mirror_out *o = &m->out[lane];
        const struct rnl_mirror_in *in = &m->in[lane];
        if (o->sent >> 3 > rnl_tx_line(t) || o->bulk_sent > t->bulk_head)
            return 1;
        if (r->pos > RNL_LINE_START(in->shown + 1))
            return 2;
        if (in->count > RNL_MIRROR_RANGES)
            return 3;
        for (uint32_t i = 0; i < in->count; i++)
            if (above(in, in->here[i].from) >= above(in, in->here[i].to) ||
                above(in, in->here[i].from) <= (i ? above(in, in->here[i - 1].to) : -1))
                return 4;
    }
    for (uint32_t i = 0; i < m->lost_count; i++)
        if (m->lost[i].from > m->lost[i].to ||
            m->lost[i].to > (m->lost[i].kind == RNL_FRAME_LINES ? (m->out[m->lost[i].lane].sent >> 3) + 1
                                                                : m->out[m->lost[i].lane].bulk_sent))
            return 5;
    return 0;
}
