/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mirror_out.c - packing what was written into `mine`, and what got lost of it. Everything is read from our own memory:
 * a line or a bulk byte that was shown does not change before the peer has read it. */
#include "base/sometimes.h"
#include "endpoint/mirror.h"

enum {
    BULK_LEAST = 64, /* bytes, else the rest of a packet is left empty */
    FEW_BYTES = 250, /* all words, or some lines */
    PRESSING = 8,    /* this part of ring, grant or area, and its sender is told at once that it is free */
    ANSWERS_LEFT = 4 /* ... of the ring of answers all but this: who has read them asks again, mostly, and says so then.
                        A reader's word of the ring lags by less than a quarter (ring.c), so who fills it is told */
};

struct packing { /* one packet */
    unsigned char *start, *at, *end;
    struct rnl_flow_note *notes;
    unsigned count;
};

RNL_INLINE struct rnl_line *slot_of(const struct rnl_mirror *m, unsigned lane, uint64_t line)
{
    return rnl_mirror_slot(m->pair->mine, m->pair->far_mine, m->pair->tx[1].ring, lane, m->grow_sent, line);
}

/* The header of a line of ours; 0: all of it is read, and its slot has another line now. */
RNL_INLINE rnl_head head_of(const struct rnl_mirror *m, unsigned lane, uint64_t line)
{
    rnl_head h = atomic_load_explicit(&slot_of(m, lane, line)->head, memory_order_relaxed); /* we wrote it */
    return RNL_HEAD_POS(h) >> 3 == (line & 0x1fff) && RNL_HEAD_N(h) ? h : 0;
}

/* Words stand in a side in the order of their numbers, in two stretches. */
RNL_INLINE uint64_t word(const struct rnl_mirror *m, unsigned which)
{
    const char *at = (const char *)m->pair->mine;
    at += which < RNL_WORD_ASKED_BACK ? offsetof(struct rnl_side, back) + 8 * which
                                      : offsetof(struct rnl_side, asked_back) + 8 * (which - RNL_WORD_ASKED_BACK);
    return atomic_load_explicit((const _Atomic uint64_t *)(const void *)at, memory_order_relaxed); /* ours */
}
static_assert(sizeof(struct rnl_back) == 8 * 3 && offsetof(struct rnl_back, granted) == 8 * RNL_WORD_GRANTED &&
                  offsetof(struct rnl_back, bulk_read) == 8 * RNL_WORD_BULK_READ,
              "the first stretch");
static_assert(offsetof(struct rnl_side, gave_back) == offsetof(struct rnl_side, asked_back) + 8 &&
                  offsetof(struct rnl_side, wants) == offsetof(struct rnl_side, asked_back) + 16 &&
                  offsetof(struct rnl_side, most) == offsetof(struct rnl_side, asked_back) + 24,
              "the second");

void rnl_mirror_init(struct rnl_mirror *m, struct rnl_pair *pair)
{
    memset(m, 0, sizeof *m);
    m->pair = pair;
    m->grow_sent = m->grow_came = UINT64_MAX;
    m->settled = pair->tx[0].acked;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        m->out[lane].sent = pair->tx[lane].line0 << 3;
        m->in[lane].shown = pair->rx[lane].line0 << 3;
    }
}

void rnl_mirror_wake(struct rnl_mirror *m, struct rnl_pair *pair, const struct rnl_mirror_rest *rest)
{
    memset(m, 0, sizeof *m);
    m->pair = pair;
    /* All lines to come are in the rings of today. */
    m->grow_sent = pair->big_tx ? (pair->tx[0].pos - 1) >> 3 : UINT64_MAX;
    m->grow_came = pair->big_rx ? (pair->rx[0].pos >> 3) - 1 : UINT64_MAX;
    m->grow_known = pair->big_tx;
    m->settled = pair->tx[0].acked; /* all was */
    m->wants_from = rest->wants_from;
    m->most_from = rest->most_from;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        const struct rnl_tx *t = &pair->tx[lane];
        m->out[lane].sent = t->pos & 7 ? t->pos : rnl_tx_line(t) << 3;
        m->out[lane].bulk_sent = t->bulk_head;
        m->in[lane].shown = rest->shown[lane];
        m->in[lane].highest = rest->shown[lane] >> 3;
        m->in[lane].floor = pair->rx[lane].bulk_next;
    }
    for (unsigned i = 0; i < RNL_WORDS; i++)
        m->said[i] = word(m, i);
}

int rnl_mirror_can_rest(const struct rnl_mirror *m, struct rnl_mirror_rest *rest)
{
    if (rnl_mirror_unsaid(m) || m->claim[0].read || m->settled < m->pair->tx[0].acked)
        return 0;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_tx *t = &m->pair->tx[lane];
        const struct rnl_rx *r = &m->pair->rx[lane];
        const struct rnl_mirror_in *in = &m->in[lane];
        /* Read by the peer; what there was to read is read, and told; nothing waits; a line and its grant are free. */
        if (rnl_tx_line(t) != t->line0 && (rnl_tx_refresh(t, NULL, NULL) < 0 || t->acked < t->pos))
            return 0;
        if ((t->ring && RNL_LINE_START(t->pos) >= t->stop) || t->wanted)
            return 0;
        if (rnl_rx_peek(r) || rnl_rx_untold(r) || r->withheld || in->highest > in->shown >> 3 || in->count)
            return 0;
        rest->shown[lane] = in->shown;
    }
    rest->wants_from = m->wants_from;
    rest->most_from = m->most_from;
    return 1;
}

/* ---- what there is to say ---- */

/* The next line to say: *line. It was said before if items were added. 0 = none. */
RNL_INLINE int next_line(const struct rnl_mirror *m, unsigned lane, uint64_t *line)
{
    const struct rnl_tx *t = &m->pair->tx[lane];
    uint64_t sent = m->out[lane].sent, last = rnl_tx_line(t);
    *line = sent >> 3;
    if (*line == last)
        return (t->pos & 7) > (sent & 7);
    if ((sent & 7) == 0 || RNL_HEAD_N(head_of(m, lane, *line)) <= (sent & 7))
        (*line)++;
    return lane != 0 || *line <= m->grow_sent || m->grow_known || t->acked >> 3 > m->grow_sent;
}

/* Looked at for each packet: no loop, so that their places are constants. */
static int differ(const struct rnl_mirror *m)
{
#define DIFFER(i) (word(m, i) ^ m->said[i])
    return (DIFFER(0) | DIFFER(1) | DIFFER(2) | DIFFER(3) | DIFFER(4) | DIFFER(5) | DIFFER(6) | DIFFER(7) | DIFFER(8) |
            DIFFER(9) | DIFFER(10) | DIFFER(11) | DIFFER(12)) != 0;
#undef DIFFER
}
static_assert(RNL_WORDS == 13, "all of them");

static uint32_t unsaid_words(const struct rnl_mirror *m)
{
    uint32_t which = m->say_again;
    if (RNL_LIKELY(!differ(m)))
        return which;
    for (unsigned i = 0; i < RNL_WORDS; i++)
        which |= (uint32_t)(word(m, i) != m->said[i]) << i;
    return which;
}

/* What was read since it was said, of that lane's ring and grant. */
static uint64_t lines_read(const struct rnl_mirror *m, unsigned lane)
{
    unsigned i = 3 * lane + RNL_WORD_POSITION;
    return (word(m, i) - m->said[i]) / 8;
}
static uint64_t units_read(const struct rnl_mirror *m, unsigned lane)
{
    unsigned i = 3 * lane + RNL_WORD_GRANTED;
    return word(m, i) - m->said[i];
}

int rnl_mirror_much_read(const struct rnl_mirror *m)
{
    const struct rnl_rx *r = m->pair->rx;
    const uint32_t both = 1u << RNL_WORD_POSITION | 1u << RNL_WORD_GRANTED;
    const uint32_t counts = both | 1u << RNL_WORD_BULK_READ | both << 3;
    if (unsaid_words(m) & ~counts) /* another lane, bulk answers, wishes, what got lost */
        return 1;
    return lines_read(m, 0) >= RNL_LINES(r[0].wrap) / PRESSING || units_read(m, 0) >= r[0].standing / PRESSING ||
           word(m, RNL_WORD_BULK_READ) - m->said[RNL_WORD_BULK_READ] >= RNL_BULK_BYTES / PRESSING ||
           lines_read(m, 1) >= RNL_LINES(r[1].wrap) * (ANSWERS_LEFT - 1) / ANSWERS_LEFT ||
           units_read(m, 1) >= r[1].standing / PRESSING;
}

int rnl_mirror_unsaid(const struct rnl_mirror *m)
{
    uint64_t line;
    if (m->lost_count)
        return 1;
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        if (next_line(m, lane, &line))
            return 1;
    return unsaid_words(m) != 0;
}

int rnl_mirror_presses(const struct rnl_mirror *m)
{
    const uint32_t of_lane = 1u << RNL_WORD_POSITION | 1u << RNL_WORD_GRANTED;
    const uint32_t rings = of_lane | of_lane << 3 | of_lane << 6;
    return m == NULL || (unsaid_words(m) & ~rings) != 0;
}
static_assert(RNL_LANES == 3, "their words");

uint32_t rnl_mirror_piled(const struct rnl_mirror *m, uint32_t enough)
{
    uint64_t bytes = 0;
    for (unsigned lane = 0; lane < RNL_LANES && bytes < enough; lane++) {
        const struct rnl_tx *t = &m->pair->tx[lane];
        bytes += (rnl_tx_line(t) - (m->out[lane].sent >> 3)) * RNL_LINE_BYTES;
        bytes += t->bulk_head - m->out[lane].bulk_sent; /* reserved, if not composed yet */
    }
    return bytes < enough ? (uint32_t)bytes : enough;
}

/* ---- packing ---- */

/* A note for [from, to) of this kind and lane: the one before it grows if nothing lies between, or only the gap between
 * two extents, or if its last line goes out again. 0 = no note is left. */
static int note(struct packing *p, unsigned kind, unsigned lane, uint64_t from, uint64_t to)
{
    for (unsigned i = 0; i < p->count; i++) {
        struct rnl_flow_note *n = &p->notes[i];
        uint32_t gap = (uint32_t)from - n->to;
        if (n->kind == kind && n->lane == lane && (kind == RNL_FRAME_BULK ? gap < 64 : gap + 1 < 2)) {
            n->to = (uint32_t)to;
            return 1;
        }
    }
    RNL_SOMETIMES(p->count == RNL_FLOW_NOTES, "a packet has no note left");
    if (p->count == RNL_FLOW_NOTES)
        return 0;
    p->notes[p->count++] = (struct rnl_flow_note){
        .kind = (uint8_t)kind, .lane = (uint8_t)lane, .from = (uint32_t)from, .to = (uint32_t)to};
    return 1;
}

RNL_INLINE uint32_t room(const struct packing *p)
{
    return (uint32_t)(p->end - p->at);
}

/* As many bulk bytes of [from, to) as go into the packet, in one frame: how many. */
static uint32_t put_bulk(struct rnl_mirror *m, struct packing *p, unsigned lane, uint64_t from, uint64_t to)
{
    const struct rnl_tx *t = &m->pair->tx[lane];
    uint64_t at = from & t->bulk_mask, left = t->bulk_mask + 1 - at, n = to - from;
    uint32_t fits = room(p) > RNL_FRAME_HEAD ? room(p) - RNL_FRAME_HEAD : 0;
    if (n > left)
        n = left;
    if (n > UINT16_MAX)
        n = UINT16_MAX;
    if (n > fits)
        n = fits < BULK_LEAST ? 0 : fits;
    if (n == 0 || !note(p, RNL_FRAME_BULK, lane, from, from + n))
        return 0;
    rnl_frame_put_head(p->at, RNL_FRAME_BULK, lane, (unsigned)n, from);
    rnl_copy_in(p->at + RNL_FRAME_HEAD, t->bulk + at, n);
    p->at += RNL_FRAME_HEAD + n;
    return (uint32_t)n;
}

/* The frame of lines that is being packed: its head is written at the end. */
struct run {
    unsigned char *head;
    uint64_t first;
    unsigned count;
};

static void end_run(unsigned lane, struct run *r)
{
    if (r->count)
        rnl_frame_put_head(r->head, RNL_FRAME_LINES, lane, r->count, r->first);
    r->count = 0;
}

/* 0 = no room for it. */
static int put_line(struct rnl_mirror *m, struct packing *p, unsigned lane, struct run *r, uint64_t line, rnl_head h)
{
    uint32_t bytes = RNL_FRAME_LINE_HEAD + rnl_line_used(h);
    if (r->count && r->first + r->count != line)
        end_run(lane, r);
    if (room(p) < bytes + (r->count ? 0 : RNL_FRAME_HEAD))
        return 0;
    struct rnl_flow_note *n = r->count && p->count ? &p->notes[p->count - 1] : NULL;
    if (RNL_LIKELY(n && n->kind == RNL_FRAME_LINES && n->lane == lane && n->to == (uint32_t)line))
        n->to++; /* what note would do */
    else if (!note(p, RNL_FRAME_LINES, lane, line, line + 1))
        return 0;
    if (!r->count) {
        *r = (struct run){p->at, line, 0};
        p->at += RNL_FRAME_HEAD;
    }
    r->count++;
    rnl_head before = head_of(m, lane, line - 1); /* unless it is read */
    h |= (rnl_head)RNL_HEAD_N(before) << RNL_MIRROR_BEFORE_SHIFT;
    p->at = rnl_frame_put_line(p->at, h, slot_of(m, lane, line)->payload);
    return 1;
}

/* The line announces bulk bytes up to *to: what comes before *from is said already. */
static void announced(const struct rnl_mirror_out *o, const struct rnl_line *slot, rnl_head h, uint64_t *from,
                      uint64_t *to)
{
    *from = *to = o->bulk_sent;
    if (RNL_HEAD_KIND(h) == RNL_LINE_EXTENT) {
        struct rnl_extent e;
        memcpy(&e, slot->payload, sizeof e);
        if (e.start > *from)
            *from = e.start; /* not the gap between two extents */
        *to = e.start + e.published;
    } else if (RNL_HEAD_KIND(h) == RNL_LINE_PREFIX) {
        struct rnl_prefix x;
        memcpy(&x, slot->payload, sizeof x);
        *to = o->start + x.published;
    }
}

static void said_line(struct rnl_mirror *m, unsigned lane, uint64_t line, const struct rnl_line *slot, rnl_head h)
{
    struct rnl_mirror_out *o = &m->out[lane];
    if (RNL_HEAD_KIND(h) == RNL_LINE_EXTENT) {
        struct rnl_extent e;
        memcpy(&e, slot->payload, sizeof e);
        o->start = e.start;
    } else if (RNL_HEAD_KIND(h) == RNL_LINE_GROW) {
        m->grow_sent = line;
    }
    o->sent = line * 8 + RNL_HEAD_N(h);
}

/* What is new on one lane. 0 = the packet is full. */
static int put_new(struct rnl_mirror *m, struct packing *p, unsigned lane)
{
    struct rnl_mirror_out *o = &m->out[lane];
    struct run r = {0};
    uint64_t line, from, to;
    int full = 0;
    while (!full && next_line(m, lane, &line)) {
        const struct rnl_line *slot = slot_of(m, lane, line);
        rnl_head h = head_of(m, lane, line);
        announced(o, slot, h, &from, &to);
        if (from < to) {
            end_run(lane, &r);
            o->bulk_sent = from + put_bulk(m, p, lane, from, to);
            full = o->bulk_sent < to && room(p) < RNL_FRAME_HEAD + BULK_LEAST;
            if (o->bulk_sent < to && p->count == RNL_FLOW_NOTES)
                full = 1;
            continue;
        }
        full = !put_line(m, p, lane, &r, line, h);
        if (!full)
            said_line(m, lane, line, slot, h);
    }
    end_run(lane, &r);
    return !full;
}

/* ---- what was lost ---- */

static void forget(struct rnl_mirror *m, uint32_t i)
{
    m->lost_count--;
    memmove(&m->lost[i], &m->lost[i + 1], (m->lost_count - i) * sizeof m->lost[0]);
}

/* Two stretches of the same kind, the nearest to each other, become one with what lies between. */
static int join_two(struct rnl_mirror *m)
{
    uint64_t best = UINT64_MAX;
    uint32_t a = 0, b = 0;
    for (uint32_t i = 0; i < m->lost_count; i++)
        for (uint32_t k = i + 1; k < m->lost_count; k++) {
            const struct rnl_mirror_stretch *x = &m->lost[i], *y = &m->lost[k];
            uint64_t low = x->from < y->from ? x->to : y->to, high = x->from < y->from ? y->from : x->from;
            uint64_t gap = high > low ? high - low : 0;
            if (x->kind != y->kind || x->lane != y->lane)
                continue;
            gap *= x->kind == RNL_FRAME_LINES ? RNL_LINE_BYTES : 1;
            if (gap < best)
                best = gap, a = i, b = k;
        }
    if (best == UINT64_MAX)
        return 0;
    if (m->lost[b].from < m->lost[a].from)
        m->lost[a].from = m->lost[b].from;
    if (m->lost[b].to > m->lost[a].to)
        m->lost[a].to = m->lost[b].to;
    forget(m, b);
    return 1;
}

static void add_lost(struct rnl_mirror *m, unsigned kind, unsigned lane, uint64_t from, uint64_t to)
{
    for (uint32_t i = 0; i < m->lost_count; i++) {
        struct rnl_mirror_stretch *x = &m->lost[i];
        if (x->kind != kind || x->lane != lane || from > x->to || to < x->from)
            continue;
        if (from < x->from)
            x->from = from;
        if (to > x->to)
            x->to = to;
        return;
    }
    if (m->lost_count > 1 && RNL_RARELY("stretches are joined although there are places"))
        (void)join_two(m);
    /* Kinds and lanes together are fewer than places: two of them can always be joined. */
    if (m->lost_count == RNL_MIRROR_LOST && !join_two(m))
        return;
    m->lost[m->lost_count++] = (struct rnl_mirror_stretch){(uint8_t)kind, (uint8_t)lane, from, to};
}
static_assert(RNL_MIRROR_LOST > 2 * RNL_LANES, "two stretches of one kind and lane among them");

/* What the peer has not read of a lost stretch. 0 = nothing. */
static int still_wanted(const struct rnl_mirror *m, struct rnl_mirror_stretch *x)
{
    const struct rnl_tx *t = &m->pair->tx[x->lane];
    uint64_t read = x->kind == RNL_FRAME_LINES ? t->acked >> 3 : t->bulk_read;
    if (x->from < read)
        x->from = read;
    return x->from < x->to;
}

/* 0 = the packet is full. */
static int put_lost_lines(struct rnl_mirror *m, struct packing *p, struct rnl_mirror_stretch *x)
{
    struct run r = {0};
    for (; x->from < x->to; x->from++) {
        rnl_head h = head_of(m, x->lane, x->from);
        if (h && !put_line(m, p, x->lane, &r, x->from, h))
            break;
        if (h && x->from == m->out[x->lane].sent >> 3) /* with all its items of today */
            m->out[x->lane].sent = x->from * 8 + RNL_HEAD_N(h);
    }
    end_run(x->lane, &r);
    return x->from >= x->to;
}

static int put_lost_bulk(struct rnl_mirror *m, struct packing *p, struct rnl_mirror_stretch *x)
{
    while (x->from < x->to) {
        uint32_t n = put_bulk(m, p, x->lane, x->from, x->to);
        if (n == 0)
            return 0;
        x->from += n;
    }
    return 1;
}

static int put_lost(struct rnl_mirror *m, struct packing *p)
{
    while (m->lost_count) {
        struct rnl_mirror_stretch *x = &m->lost[0];
        if (still_wanted(m, x) && !(x->kind == RNL_FRAME_LINES ? put_lost_lines(m, p, x) : put_lost_bulk(m, p, x)))
            return 0;
        forget(m, 0);
    }
    return 1;
}

/* Where lane 1 ends: what has been read until now is answered up to there. */
static uint64_t answers_end(const struct rnl_mirror *m)
{
    uint64_t line = rnl_tx_line(&m->pair->tx[1]);
    return m->pair->tx[1].ring ? line * 8 + RNL_HEAD_N(head_of(m, 1, line)) : line * 8;
}

/* 0 = no room for them. */
static int put_words(struct rnl_mirror *m, struct packing *p)
{
    uint32_t which = unsaid_words(m);
    if (which == 0)
        return 1;
    if (room(p) < rnl_frame_words_bytes(which))
        return 0;
    uint64_t words[RNL_WORDS] = {0};
    for (uint32_t left = which; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        words[i] = m->said[i] = word(m, i);
    }
    p->at += rnl_frame_put_words(p->at, room(p), which, words, answers_end(m));
    m->say_again = 0;
    p->notes[p->count++] = (struct rnl_flow_note){.kind = RNL_FRAME_WORDS, .aux = (uint16_t)which};
    return 1;
}

/* A line of items on lane 0, and nothing else to say: what the general way makes of it. 0 = it is not so. */
static uint32_t fill_one(struct rnl_mirror *m, unsigned char *at, uint32_t bytes, struct rnl_flow_note *notes)
{
    uint64_t line, other;
    if (m->say_again || m->lost_count || !next_line(m, 0, &line) || line != rnl_tx_line(&m->pair->tx[0]) ||
        next_line(m, 1, &other) || next_line(m, 2, &other) || differ(m))
        return 0;
    const struct rnl_line *slot = slot_of(m, 0, line);
    rnl_head h = head_of(m, 0, line);
    uint32_t used = rnl_line_used(h), all = RNL_FRAME_HEAD + RNL_FRAME_LINE_HEAD + used;
    if (RNL_HEAD_KIND(h) != RNL_LINE_ITEMS || RNL_HEAD_N(h) == 0 || RNL_HEAD_N(h) < (m->pair->tx[0].pos & 7) ||
        all > bytes)
        return 0;
    m->out[0].sent = line * 8 + RNL_HEAD_N(h);
    h |= (rnl_head)RNL_HEAD_N(head_of(m, 0, line - 1)) << RNL_MIRROR_BEFORE_SHIFT;
    rnl_frame_put_head(at, RNL_FRAME_LINES, 0, 1, line);
    (void)rnl_frame_put_line(at + RNL_FRAME_HEAD, h, slot->payload);
    notes[0] = (struct rnl_flow_note){.kind = RNL_FRAME_LINES, .from = (uint32_t)line, .to = (uint32_t)line + 1};
    m->first_lane = (uint8_t)(m->first_lane + 1 == RNL_LANES ? 0 : m->first_lane + 1);
    m->said_all = 1;
    return all;
}

uint32_t rnl_mirror_fill(struct rnl_mirror *m, unsigned char *at, uint32_t bytes, struct rnl_flow_note *notes,
                         unsigned *count)
{
    if (bytes > FEW_BYTES && RNL_RARELY("little goes into a packet"))
        bytes = FEW_BYTES;
    uint32_t one = RNL_RARELY("one line is packed like many") ? 0 : fill_one(m, at, bytes, notes);
    if (RNL_LIKELY(one)) {
        *count = 1;
        return one;
    }
    struct packing p = {at, at, at + bytes, notes, 0};
    unsigned lane = m->first_lane;
    int words = put_words(m, &p), more = put_lost(m, &p);
    for (unsigned i = 0; more && i < RNL_LANES; i++, lane = lane + 1 == RNL_LANES ? 0 : lane + 1)
        more = put_new(m, &p, lane);
    m->first_lane = (uint8_t)(m->first_lane + 1 == RNL_LANES ? 0 : m->first_lane + 1);
    m->said_all = (uint8_t)(words && more);
    *count = p.count;
    return (uint32_t)(p.at - p.start);
}

/* ---- the fate of packets ---- */

static uint64_t line_of(const struct rnl_mirror *m, unsigned lane, uint32_t low)
{
    return rnl_wire_widen(m->out[lane].sent >> 3, low);
}

void rnl_mirror_acked(struct rnl_mirror *m, const struct rnl_flow_note *note)
{
    if (note->kind == RNL_FRAME_LINES && note->lane == 0 && !m->grow_known && m->grow_sent != UINT64_MAX &&
        line_of(m, 0, note->from) <= m->grow_sent && line_of(m, 0, note->to) > m->grow_sent)
        m->grow_known = 1;
}

void rnl_mirror_lost(struct rnl_mirror *m, const struct rnl_flow_note *note)
{
    unsigned lane = note->lane;
    struct rnl_mirror_stretch x = {.kind = note->kind, .lane = note->lane};
    switch (note->kind) {
    case RNL_FRAME_WORDS:
        RNL_SOMETIMES(1, "words got lost");
        m->say_again |= note->aux;
        return;
    case RNL_FRAME_LINES:
        x.from = line_of(m, lane, note->from);
        x.to = line_of(m, lane, note->to);
        break;
    case RNL_FRAME_BULK:
        x.from = rnl_wire_widen(m->out[lane].bulk_sent, note->from);
        x.to = rnl_wire_widen(m->out[lane].bulk_sent, note->to);
        break;
    default:
        return;
    }
    RNL_SOMETIMES(note->kind == RNL_FRAME_LINES && !still_wanted(m, &x), "what got lost has been read");
    if (still_wanted(m, &x))
        add_lost(m, x.kind, lane, x.from, x.to);
}
