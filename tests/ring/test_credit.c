/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rings: grants (units that may be used) and bulk areas (where they lie). */
#include "ring/pair.h"
#include "support/unit.h"

enum { UNIT = 64, AREA = RNL_BULK_BYTES };

static int set_up(void **state)
{
    struct ring_pair *p = malloc(sizeof *p);
    if (!p)
        return -1;
    ring_pair_init(p, 0, 0);
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
    assert_int_equal(rnl_tx_valid(&p->a.tx[0]), 0);
    assert_int_equal(rnl_rx_valid(&p->b.rx[0]), 0);
}

static void use_big_ring(struct ring_pair *p)
{
    rnl_header h;
    char nothing[RNL_CELL_PAYLOAD];
    assert_int_equal(ring_put(&p->a, 0, rnl_header_key(RNL_CELL_GROW, 0, 0), NULL), 1);
    rnl_tx_grow(&p->a.tx[0], p->big);
    assert_int_equal(ring_take(&p->b, 0, &h, nothing), 1);
    rnl_rx_grow(&p->b.rx[0], p->big);
    rnl_rx_advertise(&p->b.rx[0]);
    assert_int_equal(rnl_tx_refresh(&p->a.tx[0], NULL, NULL), 1);
}

static int put_line(struct ring_pair *p)
{
    unsigned char bytes[40] = {0};
    return ring_put(&p->a, 0, rnl_header_key(RNL_CELL_RECORDS, 1, 40), bytes);
}

static unsigned put_lines(struct ring_pair *p, unsigned most)
{
    unsigned n = 0;
    while (n < most && put_line(p) == 1)
        n++;
    return n;
}

static unsigned take_lines(struct ring_pair *p, unsigned most)
{
    unsigned char bytes[RNL_CELL_PAYLOAD];
    unsigned n = 0;
    rnl_header h;
    while (n < most && ring_take(&p->b, 0, &h, bytes))
        n++;
    return n;
}

static void tell(struct ring_pair *p)
{
    rnl_rx_advertise(&p->b.rx[0]);
    assert_true(rnl_tx_refresh(&p->a.tx[0], NULL, NULL) >= 0);
    both_are_valid(p);
}

/* ---- grants ---- */

static void a_minimum_is_granted_before_anything_is_said(void **state)
{
    struct ring_pair *p = *state;
    use_big_ring(p);
    assert_int_equal(put_lines(p, 5000), RNL_GRANT_MIN); /* the receiver has read one, GROW, and said so */
    both_are_valid(p);
    assert_int_equal(put_line(p), -1);
    assert_int_equal(rnl_tx_refresh(&p->a.tx[0], NULL, NULL), 0);
}

static void a_quarter_of_a_small_grant_is_told_too(void **state)
{
    struct ring_pair *p = *state;
    use_big_ring(p);
    put_lines(p, 5000);
    uint64_t before = ring_told_grant(&p->b, 0);
    assert_int_equal(take_lines(p, RNL_GRANT_MIN / 4 - 1), RNL_GRANT_MIN / 4 - 1);
    assert_int_equal(ring_told_grant(&p->b, 0), before);
    assert_int_equal(take_lines(p, 1), 1);
    assert_int_equal(ring_told_grant(&p->b, 0), before + RNL_GRANT_MIN / 4);
    both_are_valid(p);
}

static void a_grant_that_falls_is_not_believed(void **state)
{
    struct ring_pair *p = *state;
    struct rnl_tx *t = &p->a.tx[0];
    use_big_ring(p);
    rnl_rx_grant(&p->b.rx[0], 600);
    assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 1);
    assert_int_equal(put_lines(p, 300), 300);
    uint64_t start, stop = t->stop;
    atomic_store(&p->b.side->credit[0].granted, 0);
    assert_int_equal(rnl_tx_bulk_room(t, 1000, &start), 1);
    rnl_tx_bulk_take(t, start + 1024);
    assert_int_equal(rnl_tx_valid(t), 0);
    assert_true(t->stop >= stop - 16 * 8 && t->stop > RNL_CELL_START(t->pos));
    atomic_store(&p->b.side->credit[0].granted, UINT64_MAX); /* ours to lose: no more than the room */
    assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 1);
    assert_int_equal(put_lines(p, 5000), RNL_CELLS_BIG - 300);
    assert_int_equal(rnl_tx_valid(t), 0);
}

static void a_grant_beyond_reason_takes_nothing_back(void **state)
{
    static const uint64_t claims[] = {UINT64_MAX, UINT64_MAX - 5, UINT64_MAX / 8, UINT64_MAX / 64 + 3, 1ull << 32};
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        struct ring_pair *p = *state;
        struct rnl_tx *t = &p->a.tx[0];
        uint64_t start;
        atomic_store(&p->b.side->credit[0].granted, claims[i]);
        assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 1);
        for (unsigned k = 0; k < 20; k++) { /* what could be used stays usable, whatever else is used */
            uint64_t stop = t->stop;
            assert_int_equal(rnl_tx_bulk_room(t, 1000, &start), 1);
            rnl_tx_bulk_take(t, start + 1024);
            assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 1);
            assert_true(t->stop >= stop);
            assert_int_equal(rnl_tx_bulk_piece(t, 32768, 2048), 32768);
            assert_int_equal(rnl_tx_valid(t), 0);
        }
        void *p0 = p;
        assert_int_equal(tear_down(&p0), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void only_what_is_not_in_use_is_given_back(void **state)
{
    struct ring_pair *p = *state;
    struct rnl_tx *t = &p->a.tx[0];
    struct rnl_rx *r = &p->b.rx[0];
    use_big_ring(p);
    rnl_rx_grant(r, 700);
    rnl_tx_refresh(t, NULL, NULL);
    assert_int_equal(put_lines(p, 500), 500);
    rnl_tx_return_credit(t); /* nobody asked */
    assert_int_equal(rnl_rx_reclaimed(r), 0);
    rnl_rx_reclaim(r, 700); /* no less than that */
    rnl_tx_return_credit(t);
    assert_int_equal(rnl_rx_reclaimed(r), 0);
    rnl_rx_reclaim(r, 200);
    assert_int_equal(rnl_rx_reclaimed(r), 0); /* not yet */
    rnl_tx_return_credit(t);
    /* 500 in use, a minimum is kept: 700 - 500 - 128 */
    assert_int_equal(rnl_rx_reclaimed(r), 700 - 500 - RNL_GRANT_MIN);
    assert_int_equal(rnl_rx_reclaimed(r), 0);
    assert_int_equal(r->outstanding_max, 500 + RNL_GRANT_MIN);
    both_are_valid(p);
    assert_int_equal(put_lines(p, 5000), RNL_GRANT_MIN);
    take_lines(p, 5000);
    tell(p);
    rnl_tx_return_credit(t);
    assert_int_equal(rnl_rx_reclaimed(r), 500 + RNL_GRANT_MIN - 200); /* the rest of what was asked */
    assert_int_equal(r->outstanding_max, 200);
    rnl_tx_refresh(t, NULL, NULL);
    assert_int_equal(put_lines(p, 5000), 200);
    both_are_valid(p);
    take_lines(p, 5000);
    tell(p);
    rnl_rx_grant(r, 300); /* and granted again */
    rnl_tx_refresh(t, NULL, NULL);
    assert_int_equal(put_lines(p, 5000), 300);
    both_are_valid(p);
}

static void no_more_comes_back_than_was_asked(void **state)
{
    struct ring_pair *p = *state;
    struct rnl_rx *r = &p->b.rx[0];
    rnl_rx_grant(r, 700);
    rnl_rx_reclaim(r, 600);
    atomic_store(&p->a.side->credit_returned, UINT64_MAX);
    assert_int_equal(rnl_rx_reclaimed(r), 100);
    assert_int_equal(r->outstanding_max, 600);
    atomic_store(&p->a.side->credit_returned, 0); /* nor is it taken back */
    assert_int_equal(rnl_rx_reclaimed(r), 0);
    assert_int_equal(rnl_rx_valid(r), 0);
    /* and who is asked for everything keeps the minimum */
    atomic_store(&p->b.side->credit_reclaim, UINT64_MAX);
    rnl_tx_refresh(&p->a.tx[0], NULL, NULL);
    rnl_tx_return_credit(&p->a.tx[0]);
    assert_int_equal(p->a.tx[0].granted - p->a.tx[0].credit_returned, RNL_GRANT_MIN);
    assert_int_equal(rnl_tx_valid(&p->a.tx[0]), 0);
    rnl_rx_grant(&p->b.rx[1], 900);
    rnl_tx_refresh(&p->a.tx[1], NULL, NULL);
    rnl_tx_return_credit(&p->a.tx[1]); /* lane 0 only */
    assert_int_equal(p->a.tx[1].credit_returned, 0);
}

/* ---- bulk areas ---- */

static void full_grant(struct ring_pair *p)
{
    rnl_rx_grant(&p->b.rx[0], RNL_CELLS_BIG + 2 * AREA / UNIT);
    assert_int_equal(rnl_tx_refresh(&p->a.tx[0], NULL, NULL), 1);
}

/* Reserves, or says no: then nothing has changed. */
static int64_t reserve(struct ring_pair *p, uint32_t bytes)
{
    struct rnl_tx *t = &p->a.tx[0], before = *t;
    uint64_t start = 12345;
    int status = rnl_tx_bulk_room(t, bytes, &start);
    if (status <= 0) {
        assert_int_equal(start, 12345);
        assert_int_equal(t->bulk_head, before.bulk_head);
        return status < 0 ? status : -1;
    }
    assert_int_equal(t->bulk_head, before.bulk_head); /* not yet committed */
    assert_int_equal(start % UNIT, 0);
    assert_true((start & t->bulk_mask) + bytes <= t->bulk_mask + 1); /* contiguous */
    assert_true(start >= before.bulk_head);
    rnl_tx_bulk_take(t, start + (bytes + 63) / 64 * 64);
    assert_int_equal(rnl_tx_valid(t), 0);
    return (int64_t)start;
}

static void done(struct ring_pair *p, uint64_t to)
{
    p->b.rx[0].bulk_next = p->a.tx[0].bulk_head;
    rnl_rx_bulk_done(&p->b.rx[0], to);
    assert_int_equal(rnl_rx_valid(&p->b.rx[0]), 0);
}

static void a_larger_area_turns_early_where_little_is_under_way(void **state)
{
    struct ring_pair *p = *state;
    const uint32_t piece = AREA / 8, large = RNL_BULK_REMOTE_BYTES;
    uint64_t at = 0;
    p->a.tx[0].bulk_mask = p->b.rx[0].bulk_mask = large - 1;
    rnl_rx_grant(&p->b.rx[0], rnl_grant_full(large - 1));
    for (; at < AREA;
         at += piece) { /* more than an eighth of a MiB is under way at half a MiB, half a one at its end */
        assert_int_equal(reserve(p, piece), at);
        if (at >= AREA / 2)
            done(p, at - AREA / 2 + piece);
        rnl_rx_advertise(&p->b.rx[0]);
    }
    assert_int_equal(reserve(p, piece), large); /* the MiB again */
    done(p, large + piece);
    rnl_rx_advertise(&p->b.rx[0]);
    for (at = large + piece; at < large + AREA; at += piece) {
        assert_int_equal(reserve(p, piece), at);
        if (at >= large + AREA / 2)
            done(p, at - AREA / 2);
        rnl_rx_advertise(&p->b.rx[0]);
    }
    assert_int_equal(reserve(p, piece), at); /* more is: on into the rest of it */
    for (at += piece; at < 2 * large; at += piece)
        assert_int_equal(reserve(p, piece), at);
    assert_int_equal(reserve(p, piece), at); /* what was read of its first half */
    both_are_valid(p);
}

static void an_eighth_of_the_area_is_told(void **state)
{
    struct ring_pair *p = *state;
    full_grant(p);
    p->b.rx[0].wake_check_due = 0;
    assert_int_equal(reserve(p, AREA / 2), 0);
    done(p, AREA / 8 - 64);
    assert_int_equal(p->b.rx[0].wake_check_due, 0);
    assert_int_equal(atomic_load(&p->b.side->credit[0].bulk_read), 0);
    done(p, AREA / 8);
    assert_int_equal(p->b.rx[0].wake_check_due, 1);
    assert_int_equal(atomic_load(&p->b.side->credit[0].bulk_read), AREA / 8);
}

static void a_piece_is_as_large_as_room_and_grant_allow(void **state)
{
    struct ring_pair *p = *state;
    struct rnl_tx *t = &p->a.tx[0];
    assert_int_equal(rnl_tx_bulk_piece(t, 1000, 1000), 1000);
    assert_int_equal(rnl_tx_bulk_piece(t, 100000, 1), (RNL_GRANT_MIN - 1) * UNIT); /* by the grant, less a line */
    assert_int_equal(rnl_tx_bulk_piece(t, 100000, RNL_GRANT_MIN * UNIT), 0);
    full_grant(p);
    assert_int_equal(rnl_tx_bulk_piece(t, 100000, 1), 100000);
    assert_int_equal(reserve(p, AREA / 2), 0);
    assert_int_equal(reserve(p, AREA / 2 - 128), AREA / 2);
    assert_int_equal(rnl_tx_bulk_piece(t, 100000, 4096), 128); /* up to the end of the area: no gap */
    assert_int_equal(reserve(p, 128), AREA - 128);
    assert_int_equal(rnl_tx_bulk_piece(t, 100000, 1), 0);
    done(p, AREA / 8 + 64);
    assert_int_equal(rnl_tx_bulk_piece(t, 1 << 20, 1), AREA / 8 + 64); /* by the room: it looks what was read */
    assert_int_equal(rnl_tx_bulk_piece(t, 1 << 20, AREA / 8 + 65), 0);
    assert_int_equal(reserve(p, AREA / 8), AREA);
    assert_int_equal(reserve(p, 64), AREA + AREA / 8);
    atomic_store(&p->b.side->credit[0].bulk_read, t->bulk_head + 64);
    assert_int_equal(rnl_tx_bulk_piece(t, 1 << 20, 1), RNL_RING_BROKEN);
    done(p, t->bulk_head);
    uint32_t to_end = AREA - AREA / 8 - 64;
    assert_int_equal(rnl_tx_bulk_piece(t, AREA, 1), to_end); /* all is read, but an extent must not wrap */
    uint64_t head = t->bulk_head;
    assert_int_equal(reserve(p, to_end / 2 / 64 * 64), head);
}

static void a_bulk_position_that_claims_too_much_is_refused(void **state)
{
    struct ring_pair *p = *state;
    full_grant(p);
    assert_int_equal(reserve(p, AREA / 2), 0);
    assert_int_equal(reserve(p, AREA / 2), AREA / 2);
    atomic_store(&p->b.side->credit[0].bulk_read, AREA + 64);
    assert_int_equal(reserve(p, 1), RNL_RING_BROKEN);
    atomic_store(&p->b.side->credit[0].bulk_read, UINT64_MAX);
    assert_int_equal(reserve(p, 1), RNL_RING_BROKEN);
    atomic_store(&p->b.side->credit[0].bulk_read, 100); /* in the middle of a unit */
    assert_int_equal(reserve(p, 1), RNL_RING_BROKEN);
    assert_int_equal(p->a.tx[0].bulk_read, 0);
    atomic_store(&p->b.side->credit[0].bulk_read, AREA);
    assert_int_equal(reserve(p, 1), AREA);
    atomic_store(&p->b.side->credit[0].bulk_read, 0); /* going back is ignored */
    assert_int_equal(reserve(p, AREA / 2), AREA + 64);
    assert_int_equal(p->a.tx[0].bulk_read, AREA);
}

static void malformed_extents_are_refused(void **state)
{
    struct ring_pair *p = *state;
    struct rnl_rx *r = &p->b.rx[0];
    const struct rnl_extent good[] = {
        {.start = 640, .reserved = 0},
        {.start = 640, .reserved = 1, .published = 1},
        {.start = 640, .reserved = AREA - 640, .published = AREA - 640},
        {.start = AREA, .reserved = AREA},
        {.start = 640 + AREA - 64, .reserved = 1},
        {.start = 704, .reserved = 100, .published = 7, .bound = 100, .reply_max = 9, .flags = RNL_EXTENT_FLAGS},
    };
    const struct rnl_extent bad[] = {
        {.start = 576, .reserved = 64},                    /* over what was announced before */
        {.start = 0, .reserved = 64},                      /* ... */
        {.start = 641, .reserved = 64},                    /* not a whole unit */
        {.start = 672, .reserved = 32},                    /* ... */
        {.start = 640 + AREA, .reserved = 64},             /* an area further */
        {.start = UINT64_MAX - 63, .reserved = 64},        /* ... */
        {.start = 640, .reserved = AREA - 639},            /* past the end of the area */
        {.start = AREA - 64, .reserved = 65},              /* ... */
        {.start = AREA, .reserved = AREA + 1},             /* longer than the area */
        {.start = 640, .reserved = UINT32_MAX},            /* ... */
        {.start = 640, .reserved = 64, .published = 65},   /* more there than reserved */
        {.start = 640, .reserved = 0, .published = 1},     /* ... */
        {.start = 640, .reserved = 64, .flags = 32},       /* unknown flags */
        {.start = 640, .reserved = 64, .flags = 1u << 31}, /* ... */
    };
    r->bulk_next = 640;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(rnl_rx_extent(r, &good[i]), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(rnl_rx_extent(r, &bad[i]), RNL_RING_BROKEN);
    assert_int_equal(r->bulk_next, 640);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_minimum_is_granted_before_anything_is_said),
        TEST(a_quarter_of_a_small_grant_is_told_too),
        TEST(a_grant_that_falls_is_not_believed),
        TEST(a_grant_beyond_reason_takes_nothing_back),
        TEST(only_what_is_not_in_use_is_given_back),
        TEST(no_more_comes_back_than_was_asked),
        TEST(a_larger_area_turns_early_where_little_is_under_way),
        TEST(an_eighth_of_the_area_is_told),
        TEST(a_piece_is_as_large_as_room_and_grant_allow),
        TEST(a_bulk_position_that_claims_too_much_is_refused),
        TEST(malformed_extents_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
