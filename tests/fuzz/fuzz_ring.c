/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_ring.c - one side of the rings of a pair, whose other side writes anything at any time: headers, payload, what
 * it has read and granted, what it gives back and wants. Our private halves must keep their invariants after each call,
 * unless the call said broken, and every place that is handed out must lie inside the ring or the bulk area. */
#include "fuzz/input.h"
#include "ring/ring.h"

enum { STEPS = 400 };

struct ours {
    struct rnl_control_page mine, theirs;
    struct rnl_cell big_mine[RNL_CELLS_BIG], big_theirs[RNL_CELLS_BIG];
    struct rnl_tx tx[RNL_LANES];
    struct rnl_rx rx[RNL_LANES];
    unsigned char *bulk; /* ours and theirs: what is in it is not looked at */
    uint8_t grown_tx, grown_rx, broken;
};

static void look_at(struct ours *o)
{
    char text[600];
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        FUZZ_MUST(rnl_tx_valid(&o->tx[lane]) == 0);
        FUZZ_MUST(rnl_rx_valid(&o->rx[lane]) == 0);
    }
    rnl_tx_dump(&o->tx[0], text, sizeof text);
    rnl_rx_dump(&o->rx[0], text, sizeof text);
}

/* ---- what the other side does ---- */

static void lie_in_a_header(struct ours *o, struct fuzz_input *in, unsigned lane)
{
    struct rnl_rx *r = &o->rx[lane];
    int append = fuzz_below(in, 4) == 0;
    struct rnl_cell *line = append ? r->last : r->next;
    uint64_t start = append ? r->pos & ~(uint64_t)7 : r->next_pos;
    rnl_header h = rnl_header_key(fuzz_below(in, RNL_CELL_KINDS + 1), 1, 0);
    h |= rnl_header_key(0, 0, fuzz_below(in, 64));
    h |= (uint16_t)(start + fuzz_below(in, 9));
    h |= (rnl_header)(uint16_t)fuzz_number(in, o->tx[lane].acked) << 16;
    h |= (rnl_header)fuzz_below(in, 4) << 32;
    unsigned flip = fuzz_below(in, 256);
    if (flip < 64)
        h ^= (rnl_header)1 << flip;
    fuzz_bytes(in, line->payload, 8);
    atomic_store_explicit(&line->header, h, memory_order_release);
}

static void lie_in_a_word(struct ours *o, struct fuzz_input *in, unsigned lane)
{
    struct rnl_control_page *t = &o->theirs;
    const struct rnl_tx *tx = &o->tx[lane];
    switch (fuzz_below(in, 7)) {
    case 0:
        atomic_store(&t->credit[lane].position, fuzz_number(in, tx->pos));
        break;
    case 1:
        atomic_store(&t->credit[lane].granted, fuzz_number(in, tx->granted));
        break;
    case 2:
        atomic_store(&t->credit[lane].bulk_read, fuzz_number(in, tx->bulk_head));
        break;
    case 3:
        atomic_store(&t->credit_reclaim, fuzz_number(in, tx->credit_returned));
        break;
    case 4:
        atomic_store(&t->credit_returned, fuzz_number(in, o->rx[0].reclaim_requested));
        break;
    case 5:
        atomic_store(&t->credit_wanted, fuzz_number(in, o->rx[0].outstanding_max));
        break;
    default:
        atomic_store(&t->credit_max, fuzz_number(in, tx->granted));
        break;
    }
}

/* ---- what we do ---- */

static void publish(struct ours *o, unsigned lane, unsigned len, unsigned kind)
{
    int new_cell = 1;
    struct rnl_tx *t = &o->tx[lane];
    rnl_header key = rnl_header_key(kind, 1, len);
    unsigned char *at = rnl_tx_place(t, key, &new_cell);
    if (!at)
        return;
    const unsigned char *ring = (const unsigned char *)t->ring;
    FUZZ_MUST(at >= ring && at + len <= ring + RNL_CELLS(t->wrap) * RNL_CELL_BYTES);
    memset(at, 0x5a, len);
    if (kind == RNL_CELL_EXTENT && lane == 0 && t->pos & 8) { /* every other line: both ways do the same */
        t->counted = rnl_tx_records(t);
        rnl_tx_publish_closed(t, key, rnl_cell_before(at + len), o->rx[lane].pos);
        return;
    }
    rnl_tx_publish(t, key, at + len, new_cell, o->rx[lane].pos, lane);
    if (kind != RNL_CELL_RECORDS)
        rnl_tx_close_other(t);
}

static void grow_tx(struct ours *o)
{
    struct rnl_tx *t = &o->tx[0];
    if (o->grown_tx || RNL_CELL_START(t->pos) >= t->stop)
        return;
    publish(o, 0, 0, RNL_CELL_GROW);
    rnl_tx_grow(t, o->big_mine);
    o->grown_tx = 1;
}

static void send_bulk(struct ours *o, struct fuzz_input *in, unsigned lane)
{
    struct rnl_tx *t = &o->tx[lane];
    uint32_t bytes = 1 + fuzz_below(in, 65536) * 8;
    uint32_t least = 1 + fuzz_below(in, 4096);
    uint64_t start = 0, most = 0;
    if (fuzz_below(in, 2)) {
        int64_t n = rnl_tx_bulk_piece(t, bytes, least);
        FUZZ_MUST(n <= bytes);
        if (n < 0)
            o->broken = 1;
        if (n <= 0)
            return;
        bytes = (uint32_t)n;
        start = t->bulk_head;
    } else {
        int there = rnl_tx_bulk_room(t, bytes, &start);
        if (there < 0)
            o->broken = 1;
        (void)rnl_tx_bulk_never(t, bytes, &most);
        if (there <= 0)
            return;
    }
    uint64_t offset = start & (RNL_BULK_BYTES - 1);
    FUZZ_MUST(offset + bytes <= RNL_BULK_BYTES && start >= t->bulk_head);
    FUZZ_MUST(start + bytes - t->bulk_read <= RNL_BULK_BYTES);
    rnl_tx_bulk_take(t, start + ((bytes + 63) & ~63u));
    publish(o, lane, sizeof(struct rnl_extent), RNL_CELL_EXTENT);
}

static void take_extent(struct ours *o, struct fuzz_input *in, struct rnl_rx *r)
{
    struct rnl_extent e = {.reply_max = 0};
    e.start = fuzz_number(in, r->bulk_next);
    e.reserved = (uint32_t)fuzz_number(in, 4096);
    e.published = (uint32_t)fuzz_number(in, 4096);
    e.flags = fuzz_below(in, 32);
    if (rnl_rx_extent(r, &e) < 0) {
        o->broken = 1;
        return;
    }
    uint64_t offset = e.start & (RNL_BULK_BYTES - 1);
    FUZZ_MUST(offset % 64 == 0 && offset + e.reserved <= RNL_BULK_BYTES && e.published <= e.reserved);
    r->bulk_next = e.start + ((e.reserved + 63u) & ~63u);
    rnl_rx_bulk_done(r, r->bulk_next);
}

static void take(struct ours *o, struct fuzz_input *in, unsigned lane)
{
    struct rnl_rx *r = &o->rx[lane];
    rnl_header h = rnl_rx_peek(r);
    unsigned acklane = RNL_HEADER_ACKLANE(h), n = RNL_HEADER_N(h), len = RNL_HEADER_LEN(h);
    if (!h)
        return;
    const unsigned char *ring = (const unsigned char *)r->ring, *at = rnl_rx_payload(r, h);
    FUZZ_MUST(at > ring && at + RNL_CELL_PAYLOAD <= ring + RNL_CELLS(r->wrap) * RNL_CELL_BYTES);
    FUZZ_MUST(n > 0 && rnl_rx_first_unread(r, h) < n);
    if (acklane >= RNL_LANES || rnl_tx_acked(&o->tx[acklane], r, RNL_HEADER_ACK(h)) < 0 || n * len > RNL_CELL_PAYLOAD) {
        o->broken = 1;
        return;
    }
    switch (RNL_HEADER_KIND(h)) {
    case RNL_CELL_RECORDS:
        rnl_rx_read(r, h, rnl_rx_first_unread(r, h) + 1);
        if (rnl_header_full(h) && (r->pos & 7) == n)
            rnl_rx_leave(r);
        return;
    case RNL_CELL_EXTENT:
        rnl_rx_read(r, h, n);
        rnl_rx_leave(r);
        take_extent(o, in, r);
        return;
    case RNL_CELL_GROW:
        rnl_rx_read(r, h, n);
        rnl_rx_leave(r);
        o->broken |= lane != 0 || o->grown_rx;
        if (!o->broken)
            rnl_rx_grow(r, o->big_theirs);
        o->grown_rx = 1;
        return;
    default:
        o->broken = 1;
    }
}

static void credit(struct ours *o, struct fuzz_input *in, unsigned lane)
{
    uint8_t distance = 0;
    struct rnl_rx *r = &o->rx[lane];
    uint64_t units;
    switch (fuzz_below(in, 6)) {
    case 0:
        if (rnl_tx_refresh(&o->tx[lane], NULL, &distance) < 0)
            o->broken = 1;
        break;
    case 1:
        rnl_tx_return_credit(&o->tx[0]);
        break;
    case 2:
        units = r->reclaim_requested - r->reclaimed;
        FUZZ_MUST(rnl_rx_reclaimed(r) <= units);
        break;
    case 3:
        rnl_rx_reclaim(&o->rx[0], RNL_GRANT_MIN + fuzz_below(in, 4096));
        break;
    case 4:
        FUZZ_MUST(rnl_rx_credit_wanted(r) <= RNL_GRANT_FULL);
        rnl_rx_grant(r, RNL_GRANT_MIN + fuzz_below(in, 65536));
        break;
    default:
        rnl_rx_advertise(r);
        break;
    }
}

static void set_up(struct ours *o, struct fuzz_input *in)
{
    unsigned colours = fuzz_below(in, 256);
    rnl_control_page_init(&o->mine, 0);
    rnl_control_page_init(&o->theirs, 0);
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        rnl_tx_init(&o->tx[lane], &o->mine, &o->theirs, lane, colours & 31);
        rnl_rx_init(&o->rx[lane], &o->mine, &o->theirs, lane, colours >> 3);
        o->tx[lane].bulk = o->bulk;
        o->rx[lane].bulk = o->bulk;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    struct ours *o = aligned_alloc(4096, (sizeof *o + 4095) & ~(size_t)4095);
    FUZZ_MUST(o);
    memset(o, 0, sizeof *o);
    set_up(o, &in);
    for (int i = 0; i < STEPS && fuzz_more(&in) && !o->broken; i++) {
        unsigned what = fuzz_below(&in, 16);
        unsigned lane = fuzz_below(&in, RNL_LANES);
        if (what < 4)
            lie_in_a_header(o, &in, lane);
        else if (what < 7)
            lie_in_a_word(o, &in, lane);
        else if (what < 10)
            take(o, &in, lane);
        else if (what < 12)
            publish(o, lane, fuzz_below(&in, RNL_CELL_PAYLOAD + 1), RNL_CELL_RECORDS);
        else if (what == 12)
            send_bulk(o, &in, lane);
        else if (what == 13 && lane == 0)
            grow_tx(o);
        else
            credit(o, &in, lane);
        if (!o->broken)
            look_at(o);
    }
    free(o);
    return 0;
}
