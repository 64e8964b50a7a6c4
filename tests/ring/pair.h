/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair.h - two ends of rings over plain memory, for the tests of ring/. a sends what the tests look at; b answers. */
#ifndef RNL_TESTS_RING_PAIR_H
#define RNL_TESTS_RING_PAIR_H

#include "ring/ring.h"

#include <stdlib.h>

struct ring_end {
    struct rnl_control_page *side;
    struct rnl_tx tx[RNL_LANES];
    struct rnl_rx rx[RNL_LANES];
};
struct ring_pair {
    struct ring_end a, b;
    struct rnl_cell *big;
    unsigned char *bulk;
};

static inline void *ring_zeroed(size_t bytes)
{
    void *at = aligned_alloc(4096, bytes);
    if (!at)
        abort();
    return memset(at, 0, bytes);
}

static inline void ring_end_init(struct ring_end *e, struct rnl_control_page *theirs, unsigned tx_colour,
                                 unsigned rx_colour)
{
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        rnl_tx_init(&e->tx[lane], e->side, theirs, lane, tx_colour);
        rnl_rx_init(&e->rx[lane], e->side, theirs, lane, rx_colour);
    }
}

static inline void ring_pair_init(struct ring_pair *p, unsigned a_colour, unsigned b_colour)
{
    memset(p, 0, sizeof *p);
    p->a.side = ring_zeroed(sizeof *p->a.side);
    p->b.side = ring_zeroed(sizeof *p->b.side);
    p->big = ring_zeroed(RNL_CELLS_BIG * sizeof *p->big);
    p->bulk = ring_zeroed(RNL_BULK_BYTES);
    rnl_control_page_init(p->a.side, 0);
    rnl_control_page_init(p->b.side, 0);
    ring_end_init(&p->a, p->b.side, a_colour, b_colour);
    ring_end_init(&p->b, p->a.side, b_colour, a_colour);
    p->a.tx[0].bulk = p->bulk;
    p->b.rx[0].bulk = p->bulk;
}

static inline void ring_pair_free(struct ring_pair *p)
{
    free(p->a.side);
    free(p->b.side);
    free(p->big);
    free(p->bulk);
}

/* Sends one item, quoting `from`'s reading position on the same lane. 1 = went into a fresh line, 0 = appended, -1 =
 * not allowed. */
static inline int ring_put(struct ring_end *from, unsigned lane, rnl_header key, const void *buf)
{
    int new_cell = 1;
    struct rnl_tx *t = &from->tx[lane];
    unsigned char *at = rnl_tx_place(t, key, &new_cell);
    if (!at)
        return -1;
    if (RNL_HEADER_LEN(key))
        memcpy(at, buf, RNL_HEADER_LEN(key));
    rnl_tx_publish(t, key, at + RNL_HEADER_LEN(key), new_cell, from->rx[lane].pos, lane);
    return new_cell;
}

/* Takes one item as the stream layer does: 1 = there was one, its header in *h and its bytes in buf. */
static inline int ring_take(struct ring_end *to, unsigned lane, rnl_header *h, void *buf)
{
    struct rnl_rx *r = &to->rx[lane];
    *h = rnl_rx_peek(r);
    if (!*h)
        return 0;
    unsigned len = RNL_HEADER_LEN(*h), n = rnl_rx_first_unread(r, *h);
    memcpy(buf, rnl_rx_payload(r, *h) + n * len, len);
    rnl_rx_read(r, *h, n + 1);
    if (n + 1 == RNL_HEADER_N(*h) && rnl_header_full(*h))
        rnl_rx_leave(r);
    return 1;
}

static inline uint64_t ring_told_position(const struct ring_end *e, unsigned lane)
{
    return atomic_load_explicit(&e->side->credit[lane].position, memory_order_acquire);
}

static inline uint64_t ring_told_grant(const struct ring_end *e, unsigned lane)
{
    return atomic_load_explicit(&e->side->credit[lane].granted, memory_order_acquire);
}

#endif
