/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two mirrored pairs over a channel that loses, repeats and reorders packets, and that takes some for lost which are
 * not: whatever one end writes into its rings and bulk areas is read at the other once, in order, with its bytes, and
 * once nothing is lost any more both copies are alike. */
#include "remote/replica.h"

#include <stdio.h>

#include "base/env.h"
#include "support/model.h"
#include "support/unit.h"

enum op_kind {
    OP_ITEMS,   /* end, lane, len, count */
    OP_OTHER,   /* end, lane, len: a line of a kind of its own */
    OP_EXTENT,  /* end, lane, reserved, published */
    OP_PREFIX,  /* end, bytes, ends */
    OP_GROW,    /* end */
    OP_READ,    /* end, count */
    OP_TELL,    /* end */
    OP_WORDS,   /* end, value */
    OP_FILL,    /* end and how, room */
    OP_DELIVER, /* end, which, keep a copy */
    OP_DROP,    /* end, which */
    OP_FATE,    /* end, which, thought lost */
    OP_REST,    /* end: if it may, it rests and wakes */
    OP_KINDS
};
static const char *const op_names[OP_KINDS] = {"items", "other", "extent",  "prefix", "grow", "read", "tell",
                                               "words", "fill",  "deliver", "drop",   "fate", "rest"};

enum { LOG = 1 << 13, TELLS = 1 << 12, PACKETS = 2048, PACKET_MAX = 9000, UNDERWAY = 64 };

struct logged { /* a thing that was written into a ring */
    rnl_header key;
    unsigned char payload[RNL_CELL_PAYLOAD];
    uint64_t from, bytes, id; /* bulk bytes that it announces: test_pattern(id, 0) */
};
struct packet {
    uint32_t bytes;
    unsigned count;
    uint8_t came, watermark; /* came: taken in at the other end */
    uint8_t further;         /* it goes by a further flow */
    struct rnl_flow_note note[RNL_FLOW_NOTES];
    unsigned char at[PACKET_MAX];
};
struct told { /* how far it had read lane 0, and written lane 1 before that */
    uint64_t read, answers;
};
struct end {
    struct rnl_env env;
    struct rnl_channel pair;
    struct rnl_replica replica;
    struct logged *log[RNL_LANES];               /* what it wrote */
    uint32_t logged[RNL_LANES], read[RNL_LANES]; /* ... and the other end has read */
    struct packet *packet;                       /* by number */
    uint32_t packets, open;                      /* open: all before are settled */
    uint32_t under_way[UNDERWAY], under;         /* numbers of those in the channel */
    int extent, reads_extent;                    /* lane 0: one is open, at its writer, at its reader */
    uint64_t start, id;
    uint32_t reserved, published;
    uint64_t answers;  /* line * 8 + items of the last of lane 1 */
    struct told *told; /* in turn; the other end has settled `settled` of them */
    uint32_t tells, watermark;
    struct rnl_replica_stretch own[2]; /* of further flows */
};
struct world {
    struct end end[2];
    uint64_t next_id;
    struct test_why *why;
};
#define BAD(...) test_why(w->why, __VA_ARGS__)

static unsigned char *bulk_at(struct end *e, unsigned lane, uint64_t at)
{
    return e->pair.tx[lane].bulk + (at & e->pair.tx[lane].bulk_mask);
}

/* ---- writing ---- */

static int put(struct world *w, struct end *e, unsigned lane, rnl_header key, const struct logged *l)
{
    struct rnl_tx *t = &e->pair.tx[lane];
    int new_cell = 1;
    if (lane == 1 && !t->ring && rnl_channel_map_replies(&e->pair) < 0)
        return 0;
    if (e->logged[lane] == LOG || (RNL_CELL_START(t->pos) >= t->stop && rnl_tx_refresh(t, NULL, NULL) <= 0))
        return 0;
    (void)w;
    unsigned char *at = rnl_tx_place(t, key, &new_cell);
    if (!at)
        return 0;
    memcpy(at, l->payload, RNL_HEADER_LEN(key));
    rnl_channel_publish(&e->pair, lane, key, at + RNL_HEADER_LEN(key), new_cell, lane);
    if (lane == 1)
        e->answers = rnl_tx_cell(t) * 8 + RNL_HEADER_N(t->ring[rnl_tx_cell(t) & (RNL_CELLS_LANE1_REMOTE - 1)].header);
    if (RNL_HEADER_KIND(key) != RNL_CELL_RECORDS)
        rnl_tx_close_other(t);
    e->log[lane][e->logged[lane]] = *l;
    e->log[lane][e->logged[lane]++].key = key;
    return 1;
}

static void items(struct world *w, struct end *e, unsigned lane, unsigned len, unsigned count)
{
    if (lane == 0 && e->extent)
        return;
    for (; count > 0; count--) {
        struct logged l = {0};
        memcpy(l.payload, test_pattern(w->next_id++, 0), len);
        if (!put(w, e, lane, rnl_header_key(RNL_CELL_RECORDS, 3 + lane, len), &l))
            return;
    }
}

static void extent(struct world *w, struct end *e, unsigned lane, uint32_t reserved, uint32_t published)
{
    struct rnl_tx *t = &e->pair.tx[lane];
    uint64_t start;
    if ((lane == 0 && e->extent) || rnl_tx_refresh(t, NULL, NULL) <= 0 || rnl_channel_map_mine(&e->pair) < 0 ||
        rnl_tx_bulk_room(t, reserved, &start) <= 0)
        return;
    if (lane != 0 || published > reserved)
        published = reserved;
    int whole = published == reserved;
    struct logged l = {.from = start, .bytes = published, .id = w->next_id++};
    struct rnl_extent x = {.start = start,
                           .reserved = reserved,
                           .published = published,
                           .bound = reserved,
                           .flags = RNL_EXTENT_FIRST | (whole ? RNL_EXTENT_LAST | RNL_EXTENT_CLOSED : 0)};
    memcpy(l.payload, &x, sizeof x);
    rnl_tx_bulk_take(t, start + ((reserved + 63u) & ~63u));
    memcpy(bulk_at(e, lane, start), test_pattern(l.id, 0), published);
    if (!put(w, e, lane, rnl_header_key(RNL_CELL_EXTENT, 9, sizeof x), &l))
        rnl_tx_bulk_take(t, start);
    else if (!whole)
        e->extent = 1, e->start = start, e->reserved = reserved, e->published = published, e->id = l.id;
}

static void prefix(struct world *w, struct end *e, uint32_t bytes, int ends)
{
    struct rnl_tx *t = &e->pair.tx[0];
    if (!e->extent)
        return;
    if (bytes > e->reserved - e->published)
        bytes = e->reserved - e->published;
    struct logged l = {.from = e->start + e->published, .bytes = bytes, .id = w->next_id++};
    struct rnl_prefix x = {.published = e->published + bytes, .flags = ends ? RNL_EXTENT_LAST | RNL_EXTENT_CLOSED : 0};
    memcpy(l.payload, &x, sizeof x);
    memcpy(bulk_at(e, 0, l.from), test_pattern(l.id, 0), bytes);
    if (!put(w, e, 0, rnl_header_key(RNL_CELL_PREFIX, 9, sizeof x), &l))
        return;
    e->published += bytes;
    if (ends) {
        rnl_tx_bulk_take(t, e->start + ((e->published + 63u) & ~63u));
        e->extent = 0;
    }
}

static void grow(struct world *w, struct end *e)
{
    struct logged l = {0};
    if (e->pair.big_tx || e->extent || e->logged[0] == LOG)
        return;
    (void)w;
    if (rnl_channel_grow_tx(&e->pair) == 0) {
        l.key = rnl_header_key(RNL_CELL_GROW, 0, 0);
        e->log[0][e->logged[0]++] = l;
    }
}

/* ---- reading: e reads what `from` wrote ---- */

static int take_one(struct world *w, struct end *e, struct end *from, unsigned lane, rnl_header h)
{
    struct rnl_rx *r = &e->pair.rx[lane];
    unsigned len = RNL_HEADER_LEN(h), i = rnl_rx_first_unread(r, h);
    if (e->read[lane] == from->logged[lane])
        return BAD("something to read that nobody wrote");
    const struct logged *l = &from->log[lane][e->read[lane]++];
    if ((h & RNL_HEADER_KEY_MASK) != l->key)
        return BAD("lane %u, thing %u: header %llx, not %llx", lane, e->read[lane] - 1, (unsigned long long)h,
                   (unsigned long long)l->key);
    if (memcmp(rnl_rx_payload(r, h) + i * len, l->payload, len) != 0)
        return BAD("lane %u, thing %u: wrong bytes in its line", lane, e->read[lane] - 1);
    if (l->bytes && memcmp(rnl_rx_bulk_at(r, l->from), test_pattern(l->id, 0), l->bytes) != 0)
        return BAD("lane %u, thing %u: %llu wrong bytes in bulk from %llu on", lane, e->read[lane] - 1,
                   (unsigned long long)l->bytes, (unsigned long long)l->from);
    if (rnl_tx_acked(&e->pair.tx[RNL_HEADER_ACKLANE(h)], r, RNL_HEADER_ACK(h)) < 0)
        return BAD("a reading position past what was written");
    rnl_rx_read(r, h, i + 1);
    if (i + 1 == RNL_HEADER_N(h) && rnl_header_full(h))
        rnl_rx_leave(r);
    if (RNL_HEADER_KIND(h) == RNL_CELL_GROW && rnl_channel_grow_rx(&e->pair) < 0)
        return BAD("a second growth");
    uint64_t closed = 0;
    if (RNL_HEADER_KIND(h) == RNL_CELL_EXTENT) {
        struct rnl_extent x;
        memcpy(&x, l->payload, sizeof x);
        if (rnl_rx_extent(r, &x) < 0)
            return BAD("an extent where none can be");
        closed = x.flags & RNL_EXTENT_CLOSED;
        e->reads_extent |= lane == 0 && !closed;
        r->bulk_next = x.start + (((closed ? x.published : x.reserved) + 63u) & ~63u);
    } else if (RNL_HEADER_KIND(h) == RNL_CELL_PREFIX) {
        struct rnl_prefix x;
        memcpy(&x, l->payload, sizeof x);
        closed = x.flags & RNL_EXTENT_CLOSED;
        e->reads_extent &= !closed;
        if (closed)
            r->bulk_next = (l->from + l->bytes + 63u) & ~(uint64_t)63;
    }
    uint64_t done = l->from + l->bytes;
    if (l->bytes || closed)
        rnl_rx_bulk_done(r, closed ? (done + 63) & ~(uint64_t)63 : done & ~(uint64_t)63);
    return 0;
}

static int take(struct world *w, struct end *e, struct end *from, unsigned count)
{
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        for (unsigned i = 0; i < count; i++) {
            rnl_header h = rnl_rx_peek(&e->pair.rx[lane]);
            if (!h)
                break;
            if (take_one(w, e, from, lane, h))
                return 1;
        }
    return 0;
}

static void tell(struct end *e)
{
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        rnl_rx_advertise(&e->pair.rx[lane]);
}

/* ---- the channel, and who watches it ---- */

/* How a packet is filled: by the one flow that there is, or by one of several. */
enum { ALL = 0, RISING, FALLING, STRETCH, OTHER_STRETCH, WAYS };

static int fill(struct world *w, struct end *e, uint32_t room, unsigned how, uint32_t most)
{
    if (e->packets == PACKETS || e->under == UNDERWAY)
        return 0;
    struct packet *p = &e->packet[e->packets];
    memset(p->at, 0xee, sizeof p->at);
    p->further = how == RISING || how >= STRETCH;
    switch (how) {
    case ALL:
        p->bytes = rnl_replica_emit(&e->replica, p->at, room, p->note, &p->count);
        break;
    case RISING:
        p->bytes = rnl_replica_emit_rising(&e->replica, p->at, room, p->note, &p->count);
        break;
    case FALLING:
        p->bytes = rnl_replica_emit_falling(&e->replica, p->at, room, p->note, &p->count);
        break;
    default:
        p->bytes = rnl_replica_emit_stretch(&e->replica, &e->own[how - STRETCH], most, p->at, room, p->note, &p->count);
    }
    if (p->bytes > room || (p->bytes < PACKET_MAX && p->at[p->bytes] != 0xee))
        return BAD("%u bytes in a packet of %u", p->bytes, room);
    if (p->bytes == 0 && p->count)
        return BAD("notes of nothing");
    if (p->bytes)
        e->under_way[e->under++] = e->packets++;
    return 0;
}

static int deliver(struct world *w, struct end *to, struct end *from, uint32_t which, int keep)
{
    if (!from->under)
        return 0;
    which %= from->under;
    uint32_t number = from->under_way[which];
    struct packet *p = &from->packet[number];
    if (!keep)
        from->under_way[which] = from->under_way[--from->under];
    if (p->came) /* a flow does not pass on a number twice */
        return 0;
    int status = rnl_replica_apply(&to->replica, p->at, p->bytes, p->further ? 0 : number);
    if (status == RNL_NO_ROOM)
        return 0;
    if (status < 0)
        return BAD("packet %u is called broken", number);
    p->came = 1;
    return 0;
}

static void drop(struct end *e, uint32_t which)
{
    if (e->under)
        e->under_way[which % e->under] = e->under_way[e->under - 1], e->under--;
}

static int in_channel(const struct end *e, uint32_t number)
{
    for (uint32_t i = 0; i < e->under; i++)
        if (e->under_way[i] == number)
            return 1;
    return 0;
}

/* Decides on an open packet of e's: acked if it came, lost if it is gone; `early`: lost, whatever is true. */
static void settle(struct end *e, uint32_t which, int early)
{
    while (e->open < e->packets && e->packet[e->open].watermark)
        e->open++;
    if (e->open == e->packets)
        return;
    uint32_t number = e->open + which % (e->packets - e->open);
    struct packet *p = &e->packet[number];
    int lost = early || (!p->came && !in_channel(e, number));
    if (p->watermark || (!lost && !p->came))
        return;
    p->watermark = 1;
    for (unsigned i = 0; i < p->count; i++)
        lost ? rnl_replica_lost(&e->replica, &p->note[i]) : rnl_replica_acked(&e->replica, &p->note[i]);
}

static int rest(struct world *w, struct end *e)
{
    struct rnl_credit_copy words[2];
    struct rnl_replica_remainder rest_of;
    for (uint32_t i = e->open; i < e->packets; i++)
        if (!e->packet[i].watermark)
            return 0; /* a flow would wait for its fate */
    if (rnl_replica_wants(&e->replica, &e->own[0]) || rnl_replica_wants(&e->replica, &e->own[1]))
        return 0;
    if (e->extent || e->reads_extent || !rnl_replica_can_hibernate(&e->replica, &rest_of))
        return 0;
    rnl_channel_hibernate(&e->pair, words);
    memset(&e->replica, 0xdd, sizeof e->replica);
    if (rnl_channel_resume(&e->pair, words) < 0)
        return BAD("it does not wake");
    rnl_replica_activate(&e->replica, &e->pair, &rest_of);
    if (rnl_replica_pending(&e->replica))
        return BAD("it woke with something to say");
    return 0;
}

/* ---- runs ---- */

static void note_told(struct end *e)
{
    uint64_t read = e->pair.mine->credit[0].position;
    uint64_t before = e->tells ? e->told[e->tells - 1].read : (e->pair.rx[0].cell0 + 1) * 8;
    if (e->tells < TELLS && read > before)
        e->told[e->tells++] = (struct told){read, e->answers};
}

static int check(struct world *w, const struct test_op *op)
{
    for (unsigned i = 0; i < 2; i++)
        note_told(&w->end[i]);
    for (unsigned i = 0; i < 2; i++) {
        struct end *e = &w->end[i];
        int bad = rnl_replica_valid(&e->replica);
        for (unsigned lane = 0; lane < RNL_LANES && !bad; lane++) {
            bad = rnl_tx_valid(&e->pair.tx[lane]) * 100 + rnl_rx_valid(&e->pair.rx[lane]) * 10000;
            if (bad && op->kind == OP_WORDS)
                bad = 0;
        }
        if (bad)
            return BAD("invariant %d of end %u after %s", bad, i, op_names[op->kind]);
        struct end *reader = &w->end[!i];
        for (; reader->watermark < reader->tells; reader->watermark++) {
            const struct told *t = &reader->told[reader->watermark];
            if (t->read > e->replica.watermark)
                break;
            if (t->answers > e->replica.in[1].shown)
                return BAD("end %u takes %llu for settled, and an answer is not here", i, (unsigned long long)t->read);
        }
    }
    return 0;
}

static int apply(struct world *w, const struct test_op *op)
{
    struct end *e = &w->end[op->arg[0] & 1], *other = &w->end[!(op->arg[0] & 1)];
    switch (op->kind) {
    case OP_ITEMS:
        items(w, e, op->arg[1] % RNL_LANES, op->arg[2] % (RNL_CELL_PAYLOAD + 1), op->arg[3] % 40);
        return 0;
    case OP_OTHER: {
        struct logged l = {0};
        memcpy(l.payload, test_pattern(w->next_id++, 0), RNL_CELL_PAYLOAD);
        if (op->arg[1] % RNL_LANES != 0 || !e->extent)
            put(w, e, op->arg[1] % RNL_LANES, rnl_header_key(RNL_CELL_REQUEST, 5, op->arg[2] % (RNL_CELL_PAYLOAD + 1)),
                &l);
        return 0;
    }
    case OP_EXTENT:
        extent(w, e, op->arg[1] % 2, op->arg[2], op->arg[3]);
        return 0;
    case OP_PREFIX:
        prefix(w, e, op->arg[1], op->arg[2] % 4 == 0);
        return 0;
    case OP_GROW:
        grow(w, e);
        return 0;
    case OP_READ:
        return take(w, e, other, op->arg[1]);
    case OP_TELL:
        tell(e);
        return 0;
    case OP_WORDS:
        atomic_store(&e->pair.mine->credit_wanted, op->arg[1]);
        atomic_store(&e->pair.mine->credit_max, op->arg[1] / 2);
        return 0;
    case OP_FILL:
        return fill(w, e,
                    op->arg[3] == 3               ? 80 + op->arg[1] % 100
                    : op->arg[2] % 4 < op->arg[3] ? PACKET_MAX
                    : op->arg[1] % 8              ? 1380
                                                  : 60 + op->arg[1] % 2000,
                    op->arg[0] >> 1, op->arg[2] * 8);
    case OP_DELIVER:
        return deliver(w, other, e, op->arg[1] % 4 ? 0 : op->arg[1], op->arg[2] % 8 == 1);
    case OP_DROP:
        drop(e, op->arg[1]);
        return 0;
    case OP_REST:
        return rest(w, e);
    default:
        settle(e, op->arg[1] % 4 ? 0 : op->arg[1], op->arg[2] % 32 == 1);
        return 0;
    }
}

static int alike(struct world *w, unsigned i)
{
    const struct end *e = &w->end[i], *other = &w->end[!i];
    const struct rnl_control_page *mine = e->pair.mine, *copy = other->pair.theirs;
    if (memcmp(mine->credit, copy->credit, sizeof mine->credit) != 0 || mine->credit_wanted != copy->credit_wanted ||
        mine->credit_max != copy->credit_max || mine->credit_reclaim != copy->credit_reclaim ||
        mine->credit_returned != copy->credit_returned)
        return BAD("words of end %u are not what the other sees", i);
    if (other->replica.watermark != copy->credit[0].position)
        return BAD("what end %u has read is not settled", i);
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        if (e->logged[lane] != other->read[lane])
            return BAD("end %u, lane %u: %u things written, %u read", i, lane, e->logged[lane], other->read[lane]);
    return 0;
}

/* From now on nothing is lost. */
static int calm(struct world *w)
{
    for (unsigned round = 0; round < 100000; round++) {
        int busy = 0;
        for (unsigned i = 0; i < 2; i++) {
            struct end *e = &w->end[i];
            uint32_t before = e->read[0] + e->read[1], packets = e->packets;
            rnl_replica_give_back(&e->replica, &e->own[0]);
            rnl_replica_give_back(&e->replica, &e->own[1]);
            if (e->packets == PACKETS)
                return 0; /* used up: nothing can be said about the end */
            busy |= e->under != 0;
            if (fill(w, e, 1380, ALL, 0) || deliver(w, &w->end[!i], e, 0, 0) || take(w, e, &w->end[!i], 1000))
                return 1;
            tell(e);
            for (uint32_t k = e->open; k < e->packets; k++)
                settle(e, k - e->open, 0);
            busy |= e->packets != packets || e->read[0] + e->read[1] != before || e->under ||
                    rnl_replica_pending(&e->replica);
            while (e->open < e->packets && e->packet[e->open].watermark)
                e->open++;
            busy |= e->open < e->packets;
        }
        if (!busy)
            return alike(w, 0) || alike(w, 1);
    }
    return BAD("it does not come to rest");
}

static void open_end(struct end *e, uint32_t rank)
{
    e->env.rank = rank;
    if (rnl_channel_open_remote(&e->pair, &e->env, !rank) < 0 || !(e->packet = calloc(PACKETS, sizeof *e->packet)) ||
        !(e->told = calloc(TELLS, sizeof *e->told)))
        abort();
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        if (!(e->log[lane] = calloc(LOG, sizeof **e->log)))
            abort();
        rnl_rx_grant(&e->pair.rx[lane], RNL_GRANT_FULL);
    }
    rnl_replica_init(&e->replica, &e->pair);
}

static int run(uint64_t seed, const struct test_op *ops, size_t n, struct test_why *why)
{
    struct world *w = calloc(1, sizeof *w);
    int failed = 0;
    (void)seed;
    if (!w)
        abort();
    w->why = why;
    for (unsigned i = 0; i < 2; i++)
        open_end(&w->end[i], i);
    for (size_t i = 0; i < n && !failed; i++)
        failed = apply(w, &ops[i]) || check(w, &ops[i]);
    failed = failed || calm(w);
    for (unsigned i = 0; i < 2; i++) {
        rnl_channel_close(&w->end[i].pair);
        free(w->end[i].packet);
        free(w->end[i].told);
        for (unsigned lane = 0; lane < RNL_LANES; lane++)
            free(w->end[i].log[lane]);
    }
    free(w);
    return failed;
}

static size_t generate(uint64_t seed, struct test_op *ops, size_t max_ops)
{
    struct test_random r = test_random_of(seed, 1);
    size_t n = 1 + test_random_below(&r, (uint32_t)max_ops);
    uint32_t weight[OP_KINDS] = {12, 2, 6, 6, 1, 10, 3, 1, 25, 25, 0, 20, 0}, all = 0;
    static const size_t edges[] = {64, 1300, 4096, 65536};
    weight[OP_DROP] = test_random_one_in(&r, 3) ? 0 : 1 + test_random_below(&r, 12);
    if (test_random_one_in(&r, 3))
        weight[OP_EXTENT] = weight[OP_PREFIX] = 0;
    if (test_random_one_in(&r, 3))
        weight[OP_READ] = 2;
    if (test_random_one_in(&r, 2)) { /* little is under way */
        weight[OP_REST] = 20;
        weight[OP_ITEMS] = weight[OP_EXTENT] = 2;
        weight[OP_FATE] = weight[OP_TELL] = weight[OP_READ] = weight[OP_FILL] = weight[OP_DELIVER] = 40;
    }
    uint32_t small = test_random_below(&r, 4);
    for (unsigned i = 0; i < OP_KINDS; i++)
        all += weight[i];
    for (size_t i = 0; i < n; i++) {
        struct test_op *op = &ops[i];
        uint32_t pick = test_random_below(&r, all);
        *op = (struct test_op){0};
        for (op->kind = 0; pick >= weight[op->kind]; op->kind++)
            pick -= weight[op->kind];
        for (unsigned k = 0; k < 4; k++)
            op->arg[k] = test_random_below(&r, 10000);
        op->arg[0] &= 1;
        if (op->kind == OP_ITEMS && !test_random_one_in(&r, 4))
            op->arg[2] = 8 - seed % 8; /* others are appended to it */
        if (op->kind == OP_FILL)
            op->arg[3] = small;
        if (op->kind == OP_FILL && seed % 2)
            op->arg[0] |= test_random_below(&r, WAYS) << 1;
        if (op->kind == OP_EXTENT || op->kind == OP_PREFIX)
            op->arg[op->kind == OP_EXTENT ? 2 : 1] = (uint32_t)test_random_size(&r, 100000, edges, 4);
        if (op->kind == OP_EXTENT)
            op->arg[3] = (uint32_t)test_random_size(&r, 100000, edges, 4);
        if (op->kind == OP_READ)
            op->arg[1] = test_random_below(&r, 50);
    }
    return n;
}

static void print(const struct test_op *op, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s %u %u %u %u", op_names[op->kind], op->arg[0], op->arg[1], op->arg[2], op->arg[3]);
}

static void both_copies_of_a_side_become_alike_whatever_the_network_does(void **state)
{
    (void)state;
    const struct test_model m = {.name = "replica",
                                 .max_ops = 1000,
                                 .seeds = 2000 / test_slowness(),
                                 .seconds = 15,
                                 .generate = generate,
                                 .run = run,
                                 .print = print};
    assert_int_equal(test_model_check(&m), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_copies_of_a_side_become_alike_whatever_the_network_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
