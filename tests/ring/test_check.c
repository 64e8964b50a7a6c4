/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ring's checkers find each invariant broken, by its number; the dumps say where a ring stands. */
#include "ring/pair.h"

#include <stdio.h>

#include "support/unit.h"

/* A ring in full use: lines read and unread, an open line, bulk area in use and partly read. */
static void set_up(struct ring_pair *p)
{
    uint64_t x = 7, start;
    rnl_header h;
    ring_pair_init(p, 3, 4);
    rnl_rx_grant(&p->b.rx[0], 2000);
    for (unsigned i = 0; i < 12; i++)
        ring_put(&p->a, 0, rnl_header_key(RNL_CELL_RECORDS, i, 8), &x);
    ring_put(&p->a, 0, rnl_header_key(RNL_CELL_RECORDS, 11, 8), &x);
    for (unsigned i = 0; i < 9; i++)
        ring_take(&p->b, 0, &h, &x);
    assert_int_equal(rnl_tx_bulk_room(&p->a.tx[0], 100000, &start), 1);
    rnl_tx_bulk_take(&p->a.tx[0], 100032);
    p->b.rx[0].bulk_next = 100032;
    rnl_rx_bulk_done(&p->b.rx[0], 64000);
    rnl_rx_reclaim(&p->b.rx[0], 1000);
    assert_int_equal(rnl_tx_refresh(&p->a.tx[0], NULL, NULL), 1);
    rnl_tx_return_credit(&p->a.tx[0]);
    assert_true(rnl_rx_reclaimed(&p->b.rx[0]) > 0);
    assert_int_equal(rnl_tx_valid(&p->a.tx[0]), 0);
    assert_int_equal(rnl_rx_valid(&p->b.rx[0]), 0);
}

/* The statement breaks the sender (receiver); the number is found; afterwards all is as it was. */
#define BREAK_TX(number, ...)                      \
    do {                                           \
        struct rnl_tx kept = *t;                   \
        __VA_ARGS__;                               \
        assert_int_equal(rnl_tx_valid(t), number); \
        *t = kept;                                 \
        assert_int_equal(rnl_tx_valid(t), 0);      \
    } while (0)
#define BREAK_RX(number, ...)                      \
    do {                                           \
        struct rnl_rx kept = *r;                   \
        __VA_ARGS__;                               \
        assert_int_equal(rnl_rx_valid(r), number); \
        *r = kept;                                 \
        assert_int_equal(rnl_rx_valid(r), 0);      \
    } while (0)

static void each_invariant_of_a_sender_is_checked(void **state)
{
    (void)state;
    struct ring_pair p;
    set_up(&p);
    struct rnl_tx *t = &p.a.tx[0];
    BREAK_TX(1, t->ring = NULL);
    BREAK_TX(1, t->peer = NULL);
    BREAK_TX(1, t->mine = NULL);
    BREAK_TX(1, t->lane = RNL_LANES);
    BREAK_TX(2, t->wrap = RNL_WRAP(64));
    BREAK_TX(2, t->wrap = RNL_WRAP(RNL_CELLS_LANE0 + 1));
    BREAK_TX(2, t->lane = 1);
    BREAK_TX(3, t->cell0 = RNL_CELLS_LANE0);
    BREAK_TX(3, t->pos = t->cell0 * 8);
    BREAK_TX(4, t->more = 0);
    BREAK_TX(4, t->end++);
    BREAK_TX(4, t->counted = rnl_tx_records(t) + 1);
    rnl_tx_fast_on(t);
    rnl_tx_set_stop(t, t->stop - 8);
    assert_int_equal(rnl_tx_valid(t), 0);
    rnl_tx_set_stop(t, t->stop + 8);
    BREAK_TX(4, t->fast_bytes++);
    BREAK_TX(4, t->fast_handler++);
    rnl_tx_fast_off(t);
    BREAK_TX(4, t->fast_stop = t->stop - 7);
    BREAK_TX(4, t->pos--);
    BREAK_TX(4, t->key ^= (rnl_header)1 << 48);
    BREAK_TX(4, t->key |= 1);
    BREAK_TX(4, t->pos -= 8);
    BREAK_TX(5, t->acked = t->cell0 * 8);
    BREAK_TX(5, t->acked = RNL_CELL_START(t->pos) + 1);
    BREAK_TX(6, rnl_tx_close_other(t); t->pos += RNL_CELLS_LANE0 * 8; t->stop += RNL_CELLS_LANE0 * 8);
    BREAK_TX(7, t->stop = rnl_tx_cell(t) * 8);
    BREAK_TX(7, t->stop++);
    BREAK_TX(7, t->stop = ((t->acked >> 3) + RNL_CELLS_LANE0 + 1) * 8);
    BREAK_TX(8, t->bulk_head++);
    BREAK_TX(8, t->bulk_read = t->bulk_head + 64);
    BREAK_TX(8, t->bulk_head = t->bulk_read + RNL_BULK_BYTES + 64);
    BREAK_TX(9, t->granted = RNL_GRANT_MIN - 1; t->credit_returned = 0);
    BREAK_TX(9, t->credit_returned = t->granted + 1);
    BREAK_TX(9, t->granted = t->credit_returned + 100);
    ring_pair_free(&p);
}

static void each_invariant_of_a_receiver_is_checked(void **state)
{
    (void)state;
    struct ring_pair p;
    set_up(&p);
    struct rnl_rx *r = &p.b.rx[0];
    struct rnl_credit_words *back = &p.b.side->credit[0];
    BREAK_RX(1, r->ring = NULL);
    BREAK_RX(1, r->mine = NULL);
    BREAK_RX(1, r->theirs = NULL);
    BREAK_RX(1, r->lane = RNL_LANES);
    BREAK_RX(2, r->wrap = RNL_WRAP(16));
    BREAK_RX(2, r->lane = 1);
    BREAK_RX(3, r->cell0 = RNL_CELLS_LANE0);
    BREAK_RX(3, r->pos = r->cell0 * 8);
    BREAK_RX(4, r->next_pos += 8);
    BREAK_RX(4, r->next++);
    BREAK_RX(4, r->expect += RNL_ROTATED_POS(1));
    BREAK_RX(5, r->advertise_pos = r->pos);
    BREAK_RX(5, r->advertise_pos = ((r->pos >> 3) + RNL_CELLS_LANE0 / 4 + 1) * 8);
    BREAK_RX(6, r->bulk_next = r->bulk_read - 64);
    BREAK_RX(7, r->advertised_bulk = r->bulk_read + 1);
    BREAK_RX(7, r->bulk_read += RNL_BULK_BYTES; r->bulk_next = r->bulk_read);
    BREAK_RX(8, r->advertised_bulk -= 64);
    BREAK_RX(8, r->advertised_grant++);
    BREAK_RX(9, r->reclaimed = r->reclaim_requested + 1);
    BREAK_RX(10, r->outstanding_max = 10);
    uint64_t position = atomic_load(&back->position);
    atomic_store(&back->position, r->pos + 1);
    assert_int_equal(rnl_rx_valid(r), 8);
    atomic_store(&back->position, position);
    assert_int_equal(rnl_rx_valid(r), 0);
    ring_pair_free(&p);
}

static void dumps_say_where_a_ring_stands_and_fit_any_buffer(void **state)
{
    (void)state;
    struct ring_pair p;
    set_up(&p);
    char text[600], cut[600];
    rnl_tx_dump(&p.a.tx[0], text, sizeof text);
    assert_non_null(strstr(text, "lane 0"));
    assert_non_null(strstr(text, "ring of 32"));
    assert_non_null(strstr(text, "cell 15 with 2 records (kind 0, handler 11, 8 bytes each)"));
    assert_non_null(strstr(text, "bulk 100032"));
    assert_non_null(strstr(text, "check 0"));
    assert_true(strlen(text) + 1 < sizeof text);
    for (size_t n = 1; n < sizeof cut; n++) {
        memset(cut, 'x', sizeof cut);
        rnl_tx_dump(&p.a.tx[0], cut, n);
        assert_non_null(memchr(cut, 0, n));
        assert_int_equal(strncmp(text, cut, n - 1), 0);
    }
    rnl_rx_dump(&p.b.rx[0], text, sizeof text);
    assert_non_null(strstr(text, "read to cell 12.1, more is waiting"));
    assert_non_null(strstr(text, "bulk read 64000, advertised 64000"));
    assert_non_null(strstr(text, "check 0"));
    assert_true(strlen(text) + 1 < sizeof text);
    for (size_t n = 1; n < sizeof cut; n++) {
        memset(cut, 'x', sizeof cut);
        rnl_rx_dump(&p.b.rx[0], cut, n);
        assert_non_null(memchr(cut, 0, n));
    }
    uint64_t x;
    rnl_header h;
    while (ring_take(&p.b, 0, &h, &x))
        ;
    p.b.rx[0].advertise_pos = 0;
    rnl_rx_dump(&p.b.rx[0], text, sizeof text);
    assert_non_null(strstr(text, "nothing more is there"));
    assert_non_null(strstr(text, "check 5"));
    ring_pair_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_invariant_of_a_sender_is_checked),
        cmocka_unit_test(each_invariant_of_a_receiver_is_checked),
        cmocka_unit_test(dumps_say_where_a_ring_stands_and_fit_any_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
