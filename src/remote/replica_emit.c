/* SPDX-License-Identifier: BSD-3-Clause
 *
 * replica_emit.c - packs what was written into `mine`, and what was lost of it, into frames. Everything is read from
 * private memory: a cell or a bulk byte that is visible does not change before the peer has read it. */
#include "base/sometimes.h"
#include "remote/replica.h"

enum {
    BULK_LEAST = 64, /* bytes; less space than this at the end of a packet stays empty */
    FEW_BYTES = 250, /* bytes for all credit words, or for some cells */
    PRESSING = 8,    /* this part of ring, grant or area is advertised at once when it has become free */
    ANSWERS_LEFT = 4 /* the reply ring is advertised at once when all but this part is free: a process that has read
                      * replies mostly sends requests next, which carry the credit words. A reader's position lags by
                      * less than a quarter of the ring (ring.c), so a sender that fills the ring learns of the room */
};

struct packing { /* one packet */
    unsigned char *start, *at, *end;
    struct rnl_flow_note *notes;
    unsigned count;
};

RNL_INLINE struct rnl_cell *slot_of(const struct rnl_replica *m, unsigned lane, uint64_t line)
{
    return rnl_replica_slot(m->channel->mine, m->channel->bulk_mine, m->channel->tx[1].ring, lane, m->grow_sent, line);
}

/* Returns the header of one of our cells, or 0 if all of it is read and its slot has another cell now. */
RNL_INLINE rnl_header head_of(const struct rnl_replica *m, unsigned lane, uint64_t line)
{
    rnl_header h = atomic_load_explicit(&slot_of(m, lane, line)->header, memory_order_relaxed); /* our own */
    return RNL_HEADER_POS(h) >> 3 == (line & 0x1fff) && RNL_HEADER_N(h) ? h : 0;
}

/* ---- what there is to emit ---- */

/* Finds the next cell to emit, in *line. It was emitted before if records were added. Returns 0 if there is none. */
RNL_INLINE bool next_line(const struct rnl_replica *m, unsigned lane, uint64_t *line)
{
    const struct rnl_tx *t = &m->channel->tx[lane];
    uint64_t sent = m->out[lane].sent, last = rnl_tx_cell(t);
    *line = sent >> 3;
    if (*line == last)
        return (t->pos & 7) > (sent & 7);
    if ((sent & 7) == 0 || RNL_HEADER_N(head_of(m, lane, *line)) <= (sent & 7))
        (*line)++;
    return lane != 0 || *line <= m->grow_sent || m->grow_known || t->acked >> 3 > m->grow_sent;
}

/* Written without a loop, so that the places are constants, since this runs for each packet. */
static bool differ(const struct rnl_replica *m)
{
#define DIFFER(i) (rnl_replica_word(m, i) ^ m->advertised[i])
    return (DIFFER(0) | DIFFER(1) | DIFFER(2) | DIFFER(3) | DIFFER(4) | DIFFER(5) | DIFFER(6) | DIFFER(7) | DIFFER(8) |
            DIFFER(9)) != 0;
#undef DIFFER
}
static_assert(RNL_CREDIT_WORDS == 10, "all of them");

static uint32_t pending_words(const struct rnl_replica *m)
{
    uint32_t which = m->repeat;
    if (RNL_LIKELY(!differ(m)))
        return which;
    for (unsigned i = 0; i < RNL_CREDIT_WORDS; i++)
        which |= (uint32_t)(rnl_replica_word(m, i) != m->advertised[i]) << i;
    return which;
}

/* Returns how much of this lane's ring or grant was read since that was last advertised. */
static uint64_t lines_read(const struct rnl_replica *m, unsigned lane)
{
    unsigned i = 3 * lane + RNL_CREDIT_POSITION;
    return (rnl_replica_word(m, i) - m->advertised[i]) / 8;
}
static uint64_t units_read(const struct rnl_replica *m, unsigned lane)
{
    unsigned i = 3 * lane + RNL_CREDIT_GRANTED;
    return rnl_replica_word(m, i) - m->advertised[i];
}

bool rnl_replica_much_read(const struct rnl_replica *m)
{
    const struct rnl_rx *r = m->channel->rx;
    const uint32_t both = 1u << RNL_CREDIT_POSITION | 1u << RNL_CREDIT_GRANTED;
    const uint32_t counts = both | 1u << RNL_CREDIT_BULK_READ | both << 3;
    if (pending_words(m) & ~counts) /* another lane, bulk area of replies, credit wanted, lost words */
        return true;
    return lines_read(m, 0) >= RNL_CELLS(r[0].wrap) / PRESSING || units_read(m, 0) >= r[0].outstanding_max / PRESSING ||
           rnl_replica_word(m, RNL_CREDIT_BULK_READ) - m->advertised[RNL_CREDIT_BULK_READ] >=
               RNL_BULK_BYTES / PRESSING ||
           lines_read(m, 1) >= RNL_CELLS(r[1].wrap) * (ANSWERS_LEFT - 1) / ANSWERS_LEFT ||
           units_read(m, 1) >= r[1].outstanding_max / PRESSING;
}

bool rnl_replica_pending(const struct rnl_replica *m)
{
    uint64_t line;
    if (m->lost_count)
        return true;
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        if (next_line(m, lane, &line))
            return true;
    return pending_words(m) != 0;
}

bool rnl_replica_urgent(const struct rnl_replica *m)
{
    const uint32_t of_lane = 1u << RNL_CREDIT_POSITION | 1u << RNL_CREDIT_GRANTED;
    const uint32_t rings = of_lane | of_lane << 3;
    return !m || (pending_words(m) & ~rings) != 0;
}
static_assert(RNL_LANES == 2, "their words");

uint32_t rnl_replica_backlog(const struct rnl_replica *m, uint32_t enough)
{
    uint64_t bytes = 0;
    for (unsigned lane = 0; lane < RNL_LANES && bytes < enough; lane++) {
        const struct rnl_tx *t = &m->channel->tx[lane];
        bytes += (rnl_tx_cell(t) - (m->out[lane].sent >> 3)) * RNL_CELL_BYTES;
        bytes += t->bulk_head - m->out[lane].bulk_sent; /* reserved, perhaps not composed yet */
    }
    return bytes < enough ? (uint32_t)bytes : enough;
}

/* ---- packing ---- */

/* Notes [from, to) of this kind and lane. The note before it grows if nothing lies between, or only the gap between two
 * extents, or if its last cell goes out again. Returns 0 if no note is left. */
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

/* Packs as many bulk bytes of [from, to) as fit into the packet, in one frame. Returns how many. */
static uint32_t put_bulk(struct rnl_replica *m, struct packing *p, unsigned lane, uint64_t from, uint64_t to)
{
    const struct rnl_tx *t = &m->channel->tx[lane];
    uint64_t at = from & t->bulk_mask, left = t->bulk_mask + 1 - at, n = to - from;
    uint32_t fits = room(p) > RNL_FRAME_HEADER ? room(p) - RNL_FRAME_HEADER : 0;
    if (n > left)
        n = left;
    if (n > UINT16_MAX)
        n = UINT16_MAX;
    if (n > fits)
        n = fits < BULK_LEAST ? 0 : fits;
    if (n == 0 || !note(p, RNL_FRAME_BULK, lane, from, from + n))
        return 0;
    rnl_frame_put_head(p->at, RNL_FRAME_BULK, lane, (unsigned)n, from);
    rnl_copy_in(p->at + RNL_FRAME_HEADER, t->bulk + at, n);
    p->at += RNL_FRAME_HEADER + n;
    return (uint32_t)n;
}

/* The frame of cells that is being packed; its head is written at the end. */
struct cell_run {
    unsigned char *head;
    uint64_t first;
    unsigned count;
};

static void end_run(unsigned lane, struct cell_run *r)
{
    if (r->count)
        rnl_frame_put_head(r->head, RNL_FRAME_CELLS, lane, r->count, r->first);
    r->count = 0;
}

/* Packs a cell. Returns 0 if there is no room for it. */
static bool put_line(struct rnl_replica *m, struct packing *p, unsigned lane, struct cell_run *r, uint64_t line,
                     rnl_header h)
{
    uint32_t bytes = RNL_FRAME_CELL_HEADER + rnl_cell_used(h);
    if (r->count && r->first + r->count != line)
        end_run(lane, r);
    if (room(p) < bytes + (r->count ? 0 : RNL_FRAME_HEADER))
        return false;
    struct rnl_flow_note *n = r->count && p->count ? &p->notes[p->count - 1] : NULL;
    if (RNL_LIKELY(n && n->kind == RNL_FRAME_CELLS && n->lane == lane && n->to == (uint32_t)line))
        n->to++; /* as note() would do */
    else if (!note(p, RNL_FRAME_CELLS, lane, line, line + 1))
        return false;
    if (!r->count) {
        *r = (struct cell_run){p->at, line, 0};
        p->at += RNL_FRAME_HEADER;
    }
    r->count++;
    rnl_header before = head_of(m, lane, line - 1); /* 0 if it is read */
    h |= (rnl_header)RNL_HEADER_N(before) << RNL_REPLICA_BEFORE_SHIFT;
    p->at = rnl_frame_put_cell(p->at, h, slot_of(m, lane, line)->payload);
    return true;
}

/* Gives the bulk bytes up to *to that the cell announces; what lies before *from was emitted already. */
static void announced(const struct rnl_replica_out *o, const struct rnl_cell *slot, rnl_header h, uint64_t *from,
                      uint64_t *to)
{
    *from = *to = o->bulk_sent;
    if (RNL_HEADER_KIND(h) == RNL_CELL_EXTENT) {
        struct rnl_extent e;
        memcpy(&e, slot->payload, sizeof e);
        if (e.start > *from)
            *from = e.start; /* not the gap between two extents */
        *to = e.start + e.published;
    } else if (RNL_HEADER_KIND(h) == RNL_CELL_PREFIX) {
        struct rnl_prefix x;
        memcpy(&x, slot->payload, sizeof x);
        *to = o->start + x.published;
    }
}

static void emitted_line(struct rnl_replica *m, unsigned lane, uint64_t line, const struct rnl_cell *slot, rnl_header h)
{
    struct rnl_replica_out *o = &m->out[lane];
    if (RNL_HEADER_KIND(h) == RNL_CELL_EXTENT) {
        struct rnl_extent e;
        memcpy(&e, slot->payload, sizeof e);
        o->start = e.start;
    } else if (RNL_HEADER_KIND(h) == RNL_CELL_GROW) {
        m->grow_sent = line;
    }
    o->sent = line * 8 + RNL_HEADER_N(h);
}

/* Packs what is new on one lane. Returns 0 if the packet is full. */
static bool put_new(struct rnl_replica *m, struct packing *p, unsigned lane)
{
    struct rnl_replica_out *o = &m->out[lane];
    struct cell_run r = {0};
    uint64_t line, from, to;
    int full = 0;
    while (!full && next_line(m, lane, &line)) {
        const struct rnl_cell *slot = slot_of(m, lane, line);
        rnl_header h = head_of(m, lane, line);
        announced(o, slot, h, &from, &to);
        if (from < to) {
            end_run(lane, &r);
            o->bulk_sent = from + put_bulk(m, p, lane, from, to);
            full = o->bulk_sent < to && room(p) < RNL_FRAME_HEADER + BULK_LEAST;
            if (o->bulk_sent < to && p->count == RNL_FLOW_NOTES)
                full = 1;
            continue;
        }
        full = !put_line(m, p, lane, &r, line, h);
        if (!full)
            emitted_line(m, lane, line, slot, h);
    }
    end_run(lane, &r);
    return !full;
}

/* ---- what was lost ---- */

static void forget(struct rnl_replica *m, uint32_t i)
{
    m->lost_count--;
    memmove(&m->lost[i], &m->lost[i + 1], (m->lost_count - i) * sizeof m->lost[0]);
}

/* Joins the two stretches of one kind and lane that are nearest to each other, with what lies between. */
static bool join_two(struct rnl_replica *m)
{
    uint64_t best = UINT64_MAX;
    uint32_t a = 0, b = 0;
    for (uint32_t i = 0; i < m->lost_count; i++)
        for (uint32_t k = i + 1; k < m->lost_count; k++) {
            const struct rnl_replica_stretch *x = &m->lost[i], *y = &m->lost[k];
            uint64_t low = x->from < y->from ? x->to : y->to, high = x->from < y->from ? y->from : x->from;
            uint64_t gap = high > low ? high - low : 0;
            if (x->kind != y->kind || x->lane != y->lane)
                continue;
            gap *= x->kind == RNL_FRAME_CELLS ? RNL_CELL_BYTES : 1;
            if (gap < best)
                best = gap, a = i, b = k;
        }
    if (best == UINT64_MAX)
        return false;
    if (m->lost[b].from < m->lost[a].from)
        m->lost[a].from = m->lost[b].from;
    if (m->lost[b].to > m->lost[a].to)
        m->lost[a].to = m->lost[b].to;
    forget(m, b);
    return true;
}

static void add_lost(struct rnl_replica *m, unsigned kind, unsigned lane, uint64_t from, uint64_t to)
{
    for (uint32_t i = 0; i < m->lost_count; i++) {
        struct rnl_replica_stretch *x = &m->lost[i];
        if (x->kind != kind || x->lane != lane || from > x->to || to < x->from)
            continue;
        if (from < x->from)
            x->from = from;
        if (to > x->to)
            x->to = to;
        return;
    }
    if (m->lost_count > 1 && RNL_BUGGIFY("stretches are joined although there are places"))
        (void)join_two(m);
    /* There are fewer kinds and lanes together than places, so two stretches can always be joined. */
    if (m->lost_count == RNL_REPLICA_LOST && !join_two(m))
        return;
    m->lost[m->lost_count++] = (struct rnl_replica_stretch){(uint8_t)kind, (uint8_t)lane, from, to};
}
static_assert(RNL_REPLICA_LOST > 2 * RNL_LANES, "two stretches of one kind and lane among them");

/* Reduces a lost stretch to what the peer has not read. Returns 0 if nothing is left. */
static bool still_wanted(const struct rnl_replica *m, struct rnl_replica_stretch *x)
{
    const struct rnl_tx *t = &m->channel->tx[x->lane];
    uint64_t read = x->kind == RNL_FRAME_CELLS ? t->acked >> 3 : t->bulk_read;
    if (x->from < read)
        x->from = read;
    return x->from < x->to;
}

/* Packs the lost cells of a stretch. Returns 0 if the packet is full. */
static bool put_lost_lines(struct rnl_replica *m, struct packing *p, struct rnl_replica_stretch *x)
{
    struct cell_run r = {0};
    for (; x->from < x->to; x->from++) {
        rnl_header h = head_of(m, x->lane, x->from);
        if (h && !put_line(m, p, x->lane, &r, x->from, h))
            break;
        if (h && x->from == m->out[x->lane].sent >> 3) /* with all its records of now */
            m->out[x->lane].sent = x->from * 8 + RNL_HEADER_N(h);
    }
    end_run(x->lane, &r);
    return x->from >= x->to;
}

static bool put_lost_bulk(struct rnl_replica *m, struct packing *p, struct rnl_replica_stretch *x)
{
    while (x->from < x->to) {
        uint32_t n = put_bulk(m, p, x->lane, x->from, x->to);
        if (n == 0)
            return false;
        x->from += n;
    }
    return true;
}

static bool put_lost(struct rnl_replica *m, struct packing *p)
{
    while (m->lost_count) {
        struct rnl_replica_stretch *x = &m->lost[0];
        if (still_wanted(m, x) && !(x->kind == RNL_FRAME_CELLS ? put_lost_lines(m, p, x) : put_lost_bulk(m, p, x)))
            return false;
        forget(m, 0);
    }
    return true;
}

/* Returns the end of lane 1: what has been read until now is replied to up to there. */
static uint64_t answers_end(const struct rnl_replica *m)
{
    uint64_t line = rnl_tx_cell(&m->channel->tx[1]);
    return m->channel->tx[1].ring ? line * 8 + RNL_HEADER_N(head_of(m, 1, line)) : line * 8;
}

/* Packs those of the credit words `may` that have changed. Returns 0 if there is no room for them. */
static bool put_words(struct rnl_replica *m, struct packing *p, uint32_t may)
{
    uint32_t which = pending_words(m) & may;
    if (which == 0)
        return true;
    if (room(p) < rnl_frame_credit_bytes(which))
        return false;
    uint64_t words[RNL_CREDIT_WORDS] = {0};
    for (uint32_t left = which; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        words[i] = m->advertised[i] = rnl_replica_word(m, i);
    }
    p->at += rnl_frame_put_credit(p->at, room(p), which, words, answers_end(m));
    m->repeat &= ~may;
    p->notes[p->count++] = (struct rnl_flow_note){.kind = RNL_FRAME_CREDIT, .aux = (uint16_t)which};
    return true;
}

/* Packs a cell of records on lane 0, where nothing else is to be emitted, as the general path would. Returns 0 if that
 * is not the case. */
static uint32_t fill_one(struct rnl_replica *m, unsigned char *at, uint32_t bytes, struct rnl_flow_note *notes)
{
    uint64_t line, other;
    if (m->repeat || m->lost_count || !next_line(m, 0, &line) || line != rnl_tx_cell(&m->channel->tx[0]) ||
        next_line(m, 1, &other) || differ(m))
        return 0;
    const struct rnl_cell *slot = slot_of(m, 0, line);
    rnl_header h = head_of(m, 0, line);
    uint32_t used = rnl_cell_used(h), all = RNL_FRAME_HEADER + RNL_FRAME_CELL_HEADER + used;
    if (RNL_HEADER_KIND(h) != RNL_CELL_RECORDS || RNL_HEADER_N(h) == 0 ||
        RNL_HEADER_N(h) < (m->channel->tx[0].pos & 7) || all > bytes)
        return 0;
    m->out[0].sent = line * 8 + RNL_HEADER_N(h);
    h |= (rnl_header)RNL_HEADER_N(head_of(m, 0, line - 1)) << RNL_REPLICA_BEFORE_SHIFT;
    rnl_frame_put_head(at, RNL_FRAME_CELLS, 0, 1, line);
    (void)rnl_frame_put_cell(at + RNL_FRAME_HEADER, h, slot->payload);
    notes[0] = (struct rnl_flow_note){.kind = RNL_FRAME_CELLS, .from = (uint32_t)line, .to = (uint32_t)line + 1};
    m->first_lane = (uint8_t)(m->first_lane + 1 == RNL_LANES ? 0 : m->first_lane + 1);
    m->emitted_all = 1;
    return all;
}

static uint32_t emit(struct rnl_replica *m, unsigned char *at, uint32_t bytes, struct rnl_flow_note *notes,
                     unsigned *count, uint32_t may)
{
    if (bytes > FEW_BYTES && RNL_BUGGIFY("little goes into a packet"))
        bytes = FEW_BYTES;
    uint32_t one = RNL_BUGGIFY("one line is packed like many") ? 0 : fill_one(m, at, bytes, notes);
    if (RNL_LIKELY(one)) {
        *count = 1;
        return one;
    }
    struct packing p = {at, at, at + bytes, notes, 0};
    unsigned lane = m->first_lane;
    int words = put_words(m, &p, may), more = put_lost(m, &p);
    for (unsigned i = 0; more && i < RNL_LANES; i++, lane = lane + 1 == RNL_LANES ? 0 : lane + 1)
        more = put_new(m, &p, lane);
    m->first_lane = (uint8_t)(m->first_lane + 1 == RNL_LANES ? 0 : m->first_lane + 1);
    m->emitted_all = (uint8_t)(words && more);
    *count = p.count;
    return (uint32_t)(p.at - p.start);
}

uint32_t rnl_replica_emit(struct rnl_replica *m, unsigned char *at, uint32_t room, struct rnl_flow_note *notes,
                          unsigned *count)
{
    return emit(m, at, room, notes, count, RNL_CREDIT_ALL);
}

/* ---- several flows ---- */

static const uint32_t falling = 1u << RNL_CREDIT_WANTED | 1u << RNL_CREDIT_MAX;

uint32_t rnl_replica_emit_rising(struct rnl_replica *m, unsigned char *at, uint32_t room, struct rnl_flow_note *notes,
                                 unsigned *count)
{
    return emit(m, at, room, notes, count, RNL_CREDIT_ALL & ~falling);
}

uint32_t rnl_replica_emit_falling(struct rnl_replica *m, unsigned char *at, uint32_t room, struct rnl_flow_note *notes,
                                  unsigned *count)
{
    struct packing p = {at, at, at + room, notes, 0};
    (void)put_words(m, &p, falling);
    *count = p.count;
    return (uint32_t)(p.at - p.start);
}

/* Takes up to `most` bytes that the next cell announces into *own. Returns how many. */
static uint32_t take_stretch(struct rnl_replica *m, struct rnl_replica_stretch *own, uint64_t from, uint64_t to,
                             uint32_t most)
{
    uint32_t n = to - from < most ? (uint32_t)(to - from) : most;
    *own = (struct rnl_replica_stretch){RNL_FRAME_BULK, 0, from, from + n};
    m->out[0].bulk_sent = from + n;
    return n;
}

uint32_t rnl_replica_emit_stretch(struct rnl_replica *m, struct rnl_replica_stretch *own, uint32_t most,
                                  unsigned char *at, uint32_t bytes, struct rnl_flow_note *notes, unsigned *count)
{
    struct packing p = {at, at, at + bytes, notes, 0};
    struct cell_run r = {0};
    uint64_t line, from, to;
    for (bool full = false; !full;) {
        if (rnl_replica_wants(m, own)) {
            end_run(0, &r);
            full = !put_lost_bulk(m, &p, own);
            continue;
        }
        if (most == 0 || !next_line(m, 0, &line))
            break;
        const struct rnl_cell *slot = slot_of(m, 0, line);
        rnl_header h = head_of(m, 0, line);
        if (RNL_HEADER_KIND(h) != RNL_CELL_EXTENT && RNL_HEADER_KIND(h) != RNL_CELL_PREFIX)
            break;
        announced(&m->out[0], slot, h, &from, &to);
        if (from < to) {
            most -= take_stretch(m, own, from, to, most);
            continue;
        }
        full = !put_line(m, &p, 0, &r, line, h);
        if (!full)
            emitted_line(m, 0, line, slot, h);
    }
    end_run(0, &r);
    *count = p.count;
    return (uint32_t)(p.at - p.start);
}

bool rnl_replica_wants(const struct rnl_replica *m, struct rnl_replica_stretch *own)
{
    return own->from < own->to && still_wanted(m, own);
}

void rnl_replica_give_back(struct rnl_replica *m, struct rnl_replica_stretch *own)
{
    if (rnl_replica_wants(m, own))
        add_lost(m, own->kind, own->lane, own->from, own->to);
    own->to = own->from;
}

/* ---- the fate of packets ---- */

static uint64_t line_of(const struct rnl_replica *m, unsigned lane, uint32_t low)
{
    return rnl_wire_widen(m->out[lane].sent >> 3, low);
}

void rnl_replica_acked(struct rnl_replica *m, const struct rnl_flow_note *note)
{
    if (note->kind == RNL_FRAME_CELLS && note->lane == 0 && !m->grow_known && m->grow_sent != UINT64_MAX &&
        line_of(m, 0, note->from) <= m->grow_sent && line_of(m, 0, note->to) > m->grow_sent)
        m->grow_known = 1;
}

void rnl_replica_lost(struct rnl_replica *m, const struct rnl_flow_note *note)
{
    unsigned lane = note->lane;
    struct rnl_replica_stretch x = {.kind = note->kind, .lane = note->lane};
    switch (note->kind) {
    case RNL_FRAME_CREDIT:
        RNL_SOMETIMES(1, "words got lost");
        m->repeat |= note->aux;
        return;
    case RNL_FRAME_CELLS:
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
    RNL_SOMETIMES(note->kind == RNL_FRAME_CELLS && !still_wanted(m, &x), "what got lost has been read");
    if (still_wanted(m, &x))
        add_lost(m, x.kind, lane, x.from, x.to);
}
