/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rings: lines and items, position, telling, growth, numbers that come round, values that cannot be true. */
#include "ring/pair.h"
#include "support/unit.h"

enum { ANY_COLOUR = 5 };

static int set_up(void **state)
{
    struct ring_pair *p = malloc(sizeof *p);
    if (!p)
        return -1;
    ring_pair_init(p, ANY_COLOUR, 9);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    ring_pair_free(*state);
    free(*state);
    return 0;
}

static void both_are_valid(struct ring_pair *p)
{
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        assert_int_equal(rnl_tx_valid(&p->a.tx[lane]), 0);
        assert_int_equal(rnl_rx_valid(&p->b.rx[lane]), 0);
    }
}

static rnl_header items(unsigned handler, unsigned len)
{
    return rnl_header_key(RNL_CELL_RECORDS, handler, len);
}

/* ---- lines and items ---- */

static void a_line_of_which_all_is_read_is_left_alone(void **state)
{
    struct ring_pair *p = *state;
    uint64_t x = 1;
    rnl_header h;
    ring_put(&p->a, 0, items(1, 8), &x);
    ring_put(&p->a, 0, items(1, 8), &x);
    assert_int_equal(ring_take(&p->b, 0, &h, &x), 1);
    rnl_rx_advertise(&p->b.rx[0]);
    assert_int_equal(rnl_tx_refresh(&p->a.tx[0], NULL, NULL), 1);
    assert_int_equal(ring_put(&p->a, 0, items(1, 8), &x), 0); /* one of two is read: append */
    assert_int_equal(ring_take(&p->b, 0, &h, &x), 1);
    assert_int_equal(ring_take(&p->b, 0, &h, &x), 1); /* what is appended after a look is found by the next */
    rnl_rx_advertise(&p->b.rx[0]);
    assert_int_equal(rnl_tx_refresh(&p->a.tx[0], NULL, NULL), 1);
    assert_int_equal(ring_put(&p->a, 0, items(1, 8), &x), 1); /* all is read: a fresh line */
    assert_int_equal(ring_take(&p->b, 0, &h, &x), 1);
    assert_int_equal(p->b.rx[0].pos, p->a.tx[0].pos);
    both_are_valid(p);
}

static void a_position_rides_back_on_every_header(void **state)
{
    struct ring_pair *p = *state;
    uint64_t x = 1;
    rnl_header h;
    ring_put(&p->a, 0, items(1, 8), &x);
    ring_take(&p->b, 0, &h, &x);
    ring_put(&p->b, 0, items(2, 8), &x);
    assert_int_equal(ring_told_position(&p->b, 0), 0); /* not by the other way */
    assert_int_equal(ring_take(&p->a, 0, &h, &x), 1);
    assert_int_equal(RNL_HEADER_ACKLANE(h), 0);
    assert_int_equal(rnl_tx_acked(&p->a.tx[0], &p->a.rx[0], RNL_HEADER_ACK(h)), 0);
    assert_int_equal(p->a.tx[0].acked, p->b.rx[0].pos);
    assert_int_equal(ring_put(&p->a, 0, items(1, 8), &x),
                     1); /* a single message after a single message: a fresh line */
    /* of any lane, on any lane */
    int new_cell = 1;
    unsigned char *at = rnl_tx_place(&p->b.tx[1], items(2, 0), &new_cell);
    rnl_tx_publish(&p->b.tx[1], items(2, 0), at, new_cell, p->b.rx[0].pos, 0);
    assert_int_equal(ring_take(&p->a, 1, &h, &x), 1);
    assert_int_equal(RNL_HEADER_ACKLANE(h), 0);
    at = rnl_tx_place(&p->b.tx[0], items(2, 0), &new_cell);
    rnl_tx_publish(&p->b.tx[0], items(2, 0), at, new_cell, p->b.rx[1].pos, 1);
    assert_int_equal(ring_take(&p->a, 0, &h, &x), 1);
    assert_int_equal(RNL_HEADER_ACKLANE(h), 1);
    both_are_valid(p);
}

/* ---- full, telling ---- */

static void a_full_ring_says_so_until_lines_are_given_back(void **state)
{
    static const unsigned lines[RNL_LANES] = {RNL_CELLS_LANE0, RNL_CELLS_LANE1};
    struct ring_pair *p = *state;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_tx *t = &p->a.tx[lane];
        unsigned char big[40] = {1};
        uint64_t x = 0;
        rnl_header h;
        for (unsigned i = 0; i < lines[lane]; i++)
            assert_int_equal(ring_put(&p->a, lane, items(1, 40), big), 1);
        assert_int_equal(ring_put(&p->a, lane, items(1, 40), big), -1);
        assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 0);
        assert_int_equal(ring_put(&p->a, lane, items(1, 40), big), -1);
        both_are_valid(p);
        /* a quarter of the ring later it hears of it, not earlier */
        for (unsigned i = 0; i < lines[lane] / 4 - 1; i++)
            assert_int_equal(ring_take(&p->b, lane, &h, big), 1);
        assert_int_equal(ring_told_position(&p->b, lane), 0);
        assert_int_equal(p->b.rx[lane].wake_check_due, 0);
        assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 0);
        assert_int_equal(ring_take(&p->b, lane, &h, big), 1);
        assert_int_equal(p->b.rx[lane].wake_check_due, 1); /* somebody must look whether the sender sleeps */
        assert_int_equal(ring_told_position(&p->b, lane), p->b.rx[lane].pos);
        assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 1);
        for (unsigned i = 0; i < lines[lane] / 4; i++)
            assert_int_equal(ring_put(&p->a, lane, items(1, 40), big), 1);
        assert_int_equal(ring_put(&p->a, lane, items(1, 40), big), -1);
        both_are_valid(p);
        /* an open line takes more although no fresh one may be used */
        while (ring_take(&p->b, lane, &h, big))
            ;
        rnl_rx_advertise(&p->b.rx[lane]);
        assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 1);
        for (unsigned i = 0; i < lines[lane]; i++)
            assert_int_equal(ring_put(&p->a, lane, items(i, 8), &x), 1);
        assert_int_equal(ring_put(&p->a, lane, items(lines[lane], 8), &x), -1);
        for (unsigned i = 0; i < 6; i++)
            assert_int_equal(ring_put(&p->a, lane, items(lines[lane] - 1, 8), &x), 0);
        assert_int_equal(ring_put(&p->a, lane, items(lines[lane] - 1, 8), &x), -1);
        both_are_valid(p);
    }
}

/* ---- values that cannot be true ---- */

static void a_header_that_claims_too_much_is_refused(void **state)
{
    struct ring_pair *p = *state;
    struct rnl_tx *t = &p->a.tx[0];
    uint64_t x = 1;
    for (unsigned i = 0; i < 4; i++)
        ring_put(&p->a, 0, items(i, 8), &x);
    uint64_t acked = t->acked, last = RNL_CELL_START(t->pos);
    const uint64_t past[] = {last + 1, acked + 0x7fff, acked - 8};
    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        struct rnl_rx r = p->a.rx[0];
        r.acked_by_peer = acked;
        assert_int_equal(rnl_tx_acked(t, &r, (uint16_t)past[i]), RNL_RING_BROKEN);
    }
    assert_int_equal(t->acked, acked);
    struct rnl_rx *r = &p->a.rx[0];
    assert_int_equal(rnl_tx_acked(t, r, (uint16_t)(acked + 8)), 0);
    assert_int_equal(t->acked, acked + 8);
    assert_int_equal(rnl_tx_acked(t, r, (uint16_t)(acked + 8)), 0); /* the same header may be seen again */
    assert_int_equal(t->acked, acked + 8);
    assert_int_equal(rnl_tx_acked(t, r, (uint16_t)last), 0); /* all, and the line is left */
    assert_int_equal(t->acked, last);
    both_are_valid(p);
}

static void a_position_that_claims_too_much_is_refused(void **state)
{
    struct ring_pair *p = *state;
    struct rnl_tx *t = &p->a.tx[0];
    _Atomic uint64_t *position = &p->b.side->credit[0].position;
    uint64_t x = 1, acked = t->acked;
    ring_put(&p->a, 0, items(1, 8), &x);
    uint64_t last = RNL_CELL_START(t->pos);
    atomic_store(position, last + 1);
    assert_int_equal(rnl_tx_refresh(t, NULL, NULL), RNL_RING_BROKEN);
    atomic_store(position, UINT64_MAX);
    assert_int_equal(rnl_tx_refresh(t, NULL, NULL), RNL_RING_BROKEN);
    assert_int_equal(t->acked, acked);
    atomic_store(position, last);
    assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 1);
    atomic_store(position, 0); /* going back is ignored */
    assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 1);
    assert_int_equal(t->acked, last);
    both_are_valid(p);
}

static void stale_or_foreign_headers_are_not_lines(void **state)
{
    struct ring_pair *p = *state;
    struct rnl_rx *r = &p->b.rx[0];
    struct rnl_cell *at = r->next, *after = at + 1;
    uint64_t start = r->next_pos;
    rnl_header key = items(1, 8);
    atomic_store(&at->header, key | (uint16_t)(start + RNL_CELLS_LANE0 * 8 + 1)); /* another round */
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&at->header, key | (uint16_t)(start - RNL_CELLS_LANE0 * 8 + 1));
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&at->header, key | (uint16_t)start); /* no items */
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&after->header, key | (uint16_t)(start + 9));
    assert_int_equal(rnl_rx_peek(r), 0); /* nor is it left for the next one */
    atomic_store(&after->header, 0);
    atomic_store(&at->header, key | (uint16_t)(start + 2));
    rnl_header h = rnl_rx_peek(r);
    assert_int_equal(h, key | (uint16_t)(start + 2));
    assert_int_equal(rnl_rx_first_unread(r, h), 0);
    rnl_rx_read(r, h, 2);
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&at->header, key | (uint16_t)(start + 1)); /* taken back: nothing is read twice */
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&at->header, key | (uint16_t)(start + 8)); /* another line's number here */
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&at->header, key | (uint16_t)(start + 11));
    assert_int_equal(rnl_rx_peek(r), 0);
    /* a next line without items is none */
    atomic_store(&after->header, key | (uint16_t)(start + 8));
    assert_int_equal(rnl_rx_peek(r), 0);
    assert_int_equal(r->pos, start + 2);
    /* a line that was left takes no more items */
    rnl_rx_leave(r);
    atomic_store(&at->header, key | (uint16_t)(start + 3));
    assert_int_equal(rnl_rx_peek(r), 0);
}

/* ---- the rest of a side ---- */

static int sensed;
static uint64_t sense(struct rnl_env *env, const _Atomic uint64_t *word, uint64_t last, uint8_t *d)
{
    (void)env, (void)last;
    sensed++;
    *d = RNL_FAR;
    return atomic_load_explicit(word, memory_order_acquire);
}

static void a_refresh_asks_through_the_distance_sensor(void **state)
{
    struct ring_pair *p = *state;
    const struct rnl_env_ops ops = {.sense_load = sense};
    struct rnl_env env = {.ops = &ops};
    uint8_t distance = RNL_NEAR;
    sensed = 0;
    assert_int_equal(rnl_tx_refresh(&p->a.tx[0], &env, &distance), 1);
    assert_int_equal(sensed, 1);
    assert_int_equal(distance, RNL_FAR);
}

static void a_side_says_who_must_fence_and_is_versioned(void **state)
{
    (void)state;
    struct rnl_control_page *side = ring_zeroed(sizeof *side);
    assert_int_equal(atomic_load(&side->version), 0); /* not opened yet */
    rnl_control_page_init(side, 1);
    assert_int_equal(atomic_load(&side->version), RNL_CONTROL_PAGE_VERSION);
    assert_int_equal(atomic_load(&side->senders_fence), 1);
    rnl_control_page_init(side, 0);
    assert_int_equal(atomic_load(&side->senders_fence), 0);
    free(side);
}

static void an_armed_receiver_is_seen_by_what_it_waits_for(void **state)
{
    struct ring_pair *p = *state;
    struct rnl_tx *t = &p->a.tx[0];
    assert_int_equal(rnl_tx_armed(t, RNL_ARMED_CELLS | RNL_ARMED_ROOM), 0);
    atomic_store(&p->b.side->armed, RNL_ARMED_CELLS);
    assert_int_not_equal(rnl_tx_armed(t, RNL_ARMED_CELLS), 0);
    assert_int_equal(rnl_tx_armed(t, RNL_ARMED_ROOM), 0);
    atomic_store(&p->b.side->armed, RNL_ARMED_ROOM);
    assert_int_equal(rnl_tx_armed(t, RNL_ARMED_CELLS), 0);
    assert_int_not_equal(rnl_tx_armed(t, RNL_ARMED_ROOM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_line_of_which_all_is_read_is_left_alone),      TEST(a_position_rides_back_on_every_header),
        TEST(a_full_ring_says_so_until_lines_are_given_back), TEST(a_header_that_claims_too_much_is_refused),
        TEST(a_position_that_claims_too_much_is_refused),     TEST(stale_or_foreign_headers_are_not_lines),
        TEST(a_refresh_asks_through_the_distance_sensor),     TEST(a_side_says_who_must_fence_and_is_versioned),
        TEST(an_armed_receiver_is_seen_by_what_it_waits_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
