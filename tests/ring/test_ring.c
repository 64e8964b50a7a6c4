/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rings: lines and items, position, telling, growth, numbers that come round, values that cannot be true. */
#include "ring/pair.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

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

static rnl_head items(unsigned handler, unsigned len)
{
    return rnl_head_key(RNL_LINE_ITEMS, handler, len);
}

/* ---- lines and items ---- */

static void zeroed_memory_is_empty_for_every_colour(void **state)
{
    (void)state;
    for (unsigned colour = 0; colour < 64; colour++) {
        struct ring_pair p;
        ring_pair_init(&p, colour, 0);
        for (unsigned lane = 0; lane < RNL_LANES; lane++) {
            static const unsigned lines[RNL_LANES] = {RNL_SMALL0, RNL_SMALL1, RNL_SMALL2};
            rnl_head h;
            uint64_t got = 0, sent = colour + 1;
            assert_int_equal(rnl_rx_peek(&p.b.rx[lane]), 0);
            assert_int_equal(p.b.rx[lane].pos,
                             (colour % lines[lane] + 1) * 8); /* the first line number is 1 + colour */
            assert_int_equal(ring_put(&p.a, lane, items(3, 8), &sent), 1);
            assert_int_equal(ring_take(&p.b, lane, &h, &got), 1);
            assert_int_equal(got, sent);
        }
        both_are_valid(&p);
        ring_pair_free(&p);
    }
}

static void a_lone_item_is_there_at_once(void **state)
{
    struct ring_pair *p = *state;
    rnl_head h;
    char got[8];
    assert_int_equal(ring_put(&p->a, 0, items(77, 5), "hello"), 1);
    assert_int_equal(ring_take(&p->b, 0, &h, got), 1);
    assert_memory_equal(got, "hello", 5);
    assert_int_equal(RNL_HEAD_HANDLER(h), 77);
    assert_int_equal(RNL_HEAD_LEN(h), 5);
    assert_int_equal(RNL_HEAD_KIND(h), RNL_LINE_ITEMS);
    assert_int_equal(RNL_HEAD_N(h), 1);
    assert_int_equal(ring_take(&p->b, 0, &h, got), 0);
    both_are_valid(p);
}

static void a_burst_of_equal_items_shares_a_line(void **state)
{
    (void)state;
    for (unsigned len = 0; len <= RNL_LINE_PAYLOAD; len++) {
        struct ring_pair p;
        unsigned char bytes[RNL_LINE_PAYLOAD], got[RNL_LINE_PAYLOAD];
        unsigned most = len * RNL_ITEMS_MAX <= RNL_LINE_PAYLOAD ? RNL_ITEMS_MAX : RNL_LINE_PAYLOAD / len;
        rnl_head h;
        ring_pair_init(&p, len, 0);
        for (unsigned i = 0; i < 3 * most; i++) {
            memset(bytes, (int)(i + 1), sizeof bytes);
            assert_int_equal(ring_put(&p.a, 0, items(1, len), bytes), i % most == 0);
            both_are_valid(&p);
        }
        assert_int_equal(rnl_tx_line(&p.a.tx[0]) - p.a.tx[0].line0, 3);
        for (unsigned i = 0; i < 3 * most; i++) {
            memset(bytes, (int)(i + 1), sizeof bytes);
            assert_int_equal(ring_take(&p.b, 0, &h, got), 1);
            assert_memory_equal(got, bytes, len);
            assert_int_equal(rnl_head_full(h), 1);
            both_are_valid(&p);
        }
        assert_int_equal(ring_take(&p.b, 0, &h, got), 0);
        ring_pair_free(&p);
    }
}

static void only_items_of_one_key_share_a_line(void **state)
{
    struct ring_pair *p = *state;
    uint64_t x = 1;
    assert_int_equal(ring_put(&p->a, 0, items(1, 8), &x), 1);
    assert_int_equal(ring_put(&p->a, 0, items(1, 8), &x), 0);
    assert_int_equal(ring_put(&p->a, 0, items(2, 8), &x), 1); /* another handler */
    assert_int_equal(ring_put(&p->a, 0, items(2, 7), &x), 1); /* another length */
    assert_int_equal(ring_put(&p->a, 0, rnl_head_key(RNL_LINE_ASK, 2, 7), &x), 1);
    assert_int_equal(ring_put(&p->a, 0, items(1, 8), &x), 1); /* an earlier line is closed for good */
    rnl_tx_close_line(&p->a.tx[0]);
    assert_int_equal(ring_put(&p->a, 0, items(1, 8), &x), 1);
    both_are_valid(p);
}

static void a_line_of_which_all_is_read_is_left_alone(void **state)
{
    struct ring_pair *p = *state;
    uint64_t x = 1;
    rnl_head h;
    ring_put(&p->a, 0, items(1, 8), &x);
    ring_put(&p->a, 0, items(1, 8), &x);
    assert_int_equal(ring_take(&p->b, 0, &h, &x), 1);
    rnl_rx_tell(&p->b.rx[0]);
    assert_int_equal(rnl_tx_refresh(&p->a.tx[0], NULL, NULL), 1);
    assert_int_equal(ring_put(&p->a, 0, items(1, 8), &x), 0); /* one of two is read: append */
    assert_int_equal(ring_take(&p->b, 0, &h, &x), 1);
    assert_int_equal(ring_take(&p->b, 0, &h, &x), 1); /* what is appended after a look is found by the next */
    rnl_rx_tell(&p->b.rx[0]);
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
    rnl_head h;
    ring_put(&p->a, 0, items(1, 8), &x);
    ring_take(&p->b, 0, &h, &x);
    ring_put(&p->b, 0, items(2, 8), &x);
    assert_int_equal(ring_told_position(&p->b, 0), 0); /* not by the other way */
    assert_int_equal(ring_take(&p->a, 0, &h, &x), 1);
    assert_int_equal(RNL_HEAD_ACKLANE(h), 0);
    assert_int_equal(rnl_tx_acked(&p->a.tx[0], &p->a.rx[0], RNL_HEAD_ACK(h)), 0);
    assert_int_equal(p->a.tx[0].acked, p->b.rx[0].pos);
    assert_int_equal(ring_put(&p->a, 0, items(1, 8), &x), 1); /* a lone message after a lone message: a fresh line */
    /* of any lane, on any lane */
    int fresh = 1;
    unsigned char *at = rnl_tx_place(&p->b.tx[1], items(2, 0), &fresh);
    rnl_tx_publish(&p->b.tx[1], items(2, 0), at, fresh, p->b.rx[0].pos, 0);
    assert_int_equal(ring_take(&p->a, 1, &h, &x), 1);
    assert_int_equal(RNL_HEAD_ACKLANE(h), 0);
    at = rnl_tx_place(&p->b.tx[0], items(2, 0), &fresh);
    rnl_tx_publish(&p->b.tx[0], items(2, 0), at, fresh, p->b.rx[2].pos, 2);
    assert_int_equal(ring_take(&p->a, 0, &h, &x), 1);
    assert_int_equal(RNL_HEAD_ACKLANE(h), 2);
    both_are_valid(p);
}

static void a_line_is_full_for_appending_or_it_is_not(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < RNL_LINE_KINDS; kind++) {
        for (unsigned len = 0; len <= RNL_LINE_PAYLOAD; len++) {
            for (unsigned n = 1; n <= RNL_ITEMS_MAX && n * len <= RNL_LINE_PAYLOAD; n++) {
                rnl_head h = rnl_head_key(kind, 0xffff, len) | n | (rnl_head)2 << 32 | 0xfffffff8u;
                int room = kind == RNL_LINE_ITEMS && n < RNL_ITEMS_MAX && (n + 1) * len <= RNL_LINE_PAYLOAD;
                assert_int_equal(rnl_head_full(h), !room);
                assert_int_equal(RNL_HEAD_N(h), n); /* the fields do not run into each other */
                assert_int_equal(RNL_HEAD_LEN(h), len);
                assert_int_equal(RNL_HEAD_KIND(h), kind);
                assert_int_equal(RNL_HEAD_HANDLER(h), 0xffff);
                assert_int_equal(RNL_HEAD_ACKLANE(h), 2);
                assert_int_equal(RNL_HEAD_ACK(h), 0xffff);
                assert_int_equal(RNL_HEAD_POS(h), 0xfff8 + n);
            }
        }
    }
}

/* ---- full, telling ---- */

static void a_full_ring_says_so_until_lines_are_given_back(void **state)
{
    static const unsigned lines[RNL_LANES] = {RNL_SMALL0, RNL_SMALL1, RNL_SMALL2};
    struct ring_pair *p = *state;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_tx *t = &p->a.tx[lane];
        unsigned char big[40] = {1};
        uint64_t x = 0;
        rnl_head h;
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
        assert_int_equal(p->b.rx[lane].told, 0);
        assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 0);
        assert_int_equal(ring_take(&p->b, lane, &h, big), 1);
        assert_int_equal(p->b.rx[lane].told, 1); /* somebody must look whether the sender sleeps */
        assert_int_equal(ring_told_position(&p->b, lane), p->b.rx[lane].pos);
        assert_int_equal(rnl_tx_refresh(t, NULL, NULL), 1);
        for (unsigned i = 0; i < lines[lane] / 4; i++)
            assert_int_equal(ring_put(&p->a, lane, items(1, 40), big), 1);
        assert_int_equal(ring_put(&p->a, lane, items(1, 40), big), -1);
        both_are_valid(p);
        /* an open line takes more although no fresh one may be used */
        while (ring_take(&p->b, lane, &h, big))
            ;
        rnl_rx_tell(&p->b.rx[lane]);
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

static void lanes_do_not_share_room(void **state)
{
    struct ring_pair *p = *state;
    unsigned char big[40] = {1};
    rnl_head h;
    while (ring_put(&p->a, 0, items(1, 40), big) == 1)
        ;
    assert_int_equal(ring_put(&p->a, 1, items(1, 40), big), 1);
    assert_int_equal(ring_put(&p->a, 2, items(1, 40), big), 1);
    assert_int_equal(ring_take(&p->b, 1, &h, big), 1);
    assert_int_equal(ring_take(&p->b, 2, &h, big), 1);
    both_are_valid(p);
}

static void a_done_line_is_left_only_when_the_next_one_is_there(void **state)
{
    struct ring_pair *p = *state;
    uint64_t x = 1, start = p->b.rx[0].pos;
    rnl_head h;
    ring_put(&p->a, 0, items(1, 8), &x);
    assert_int_equal(ring_take(&p->b, 0, &h, &x), 1);
    assert_int_equal(rnl_rx_peek(&p->b.rx[0]), 0);
    assert_int_equal(p->b.rx[0].pos, start + 1); /* more may be appended here */
    ring_put(&p->a, 0, items(1, 8), &x);
    assert_int_not_equal(rnl_rx_peek(&p->b.rx[0]), 0);
    assert_int_equal(p->b.rx[0].pos, start + 1);
    ring_put(&p->a, 0, items(2, 8), &x); /* before that one is read */
    assert_int_equal(ring_take(&p->b, 0, &h, &x), 1);
    assert_int_equal(RNL_HEAD_HANDLER(h), 1);
    assert_int_equal(ring_take(&p->b, 0, &h, &x), 1);
    assert_int_equal(RNL_HEAD_HANDLER(h), 2);
    assert_int_equal(p->b.rx[0].pos, start + 9);
    both_are_valid(p);
}

/* ---- growth ---- */

static void grow(struct ring_pair *p)
{
    struct rnl_tx *t = &p->a.tx[0];
    assert_int_equal(ring_put(&p->a, 0, rnl_head_key(RNL_LINE_GROW, 0, 0), NULL), 1);
    rnl_tx_grow(t, p->big);
}

static void a_grown_ring_keeps_the_order_and_holds_1024_lines(void **state)
{
    struct ring_pair *p = *state;
    uint64_t sent = 0, got = 0, x;
    rnl_head h;
    rnl_rx_grant(&p->b.rx[0], 4096);
    while (sent < 20) {
        x = sent++;
        assert_int_equal(ring_put(&p->a, 0, items((unsigned)x, 8), &x), 1);
    }
    grow(p);
    both_are_valid(p);
    /* 20 lines and GROW are unread in the small ring; the big one takes what makes a ringful of unread lines */
    while (ring_put(&p->a, 0, items((unsigned)sent, 8), &sent) == 1)
        sent++;
    assert_int_equal(sent, RNL_BIG - 1);
    both_are_valid(p);
    while (got < sent && ring_take(&p->b, 0, &h, &x)) {
        if (RNL_HEAD_KIND(h) == RNL_LINE_GROW) { /* a full line: it has been left */
            rnl_rx_grow(&p->b.rx[0], p->big);
            both_are_valid(p);
            continue;
        }
        assert_int_equal(x, got);
        assert_int_equal(RNL_HEAD_HANDLER(h), got & 0xffff);
        got++;
    }
    assert_int_equal(got, sent);
    assert_int_equal(p->b.rx[0].wrap, RNL_WRAP(RNL_BIG));
    rnl_rx_tell(&p->b.rx[0]);
    assert_int_equal(rnl_tx_refresh(&p->a.tx[0], NULL, NULL), 1);
    for (got = 0; ring_put(&p->a, 0, items((unsigned)got, 8), &got) == 1; got++)
        ;
    assert_int_equal(got, RNL_BIG - 1); /* the line read last is still open */
    both_are_valid(p);
}

/* ---- numbers come round ---- */

static void run_round(struct ring_pair *p, uint64_t lines, unsigned burst)
{
    struct rnl_tx *t = &p->a.tx[0];
    uint64_t sent = 0, got = 0, end = rnl_tx_line(t) + lines;
    rnl_head h;
    while (rnl_tx_line(t) < end) {
        for (unsigned i = 0; i < burst; i++) {
            int put = ring_put(&p->a, 0, items((unsigned)(sent / 5), 8), &sent);
            if (put < 0)
                break;
            sent++;
        }
        uint64_t x;
        for (unsigned i = 0; i < burst && ring_take(&p->b, 0, &h, &x); i++) {
            assert_int_equal(x, got);
            got++;
        }
        if (sent % 3 == 0) { /* now this way, now that */
            x = 0;
            if (ring_put(&p->b, 0, items(1, 0), &x) >= 0 && ring_take(&p->a, 0, &h, &x))
                assert_int_equal(rnl_tx_acked(t, &p->a.rx[0], RNL_HEAD_ACK(h)), 0);
        }
        assert_true(rnl_tx_refresh(t, NULL, NULL) >= 0);
        rnl_rx_tell(&p->a.rx[0]);
        assert_true(rnl_tx_refresh(&p->b.tx[0], NULL, NULL) >= 0);
        assert_int_equal(rnl_tx_valid(t), 0);
        assert_int_equal(rnl_rx_valid(&p->b.rx[0]), 0);
    }
    while (got < sent) {
        uint64_t x;
        assert_int_equal(ring_take(&p->b, 0, &h, &x), 1);
        assert_int_equal(x, got++);
    }
    assert_int_equal(rnl_rx_peek(&p->b.rx[0]), 0);
}

static void line_numbers_come_round(void **state)
{
    struct ring_pair *p = *state;
    rnl_head h;
    uint64_t x;
    run_round(p, 150000, 40); /* 8,192 lines */
    rnl_rx_grant(&p->b.rx[0], 5000);
    grow(p);
    while (ring_take(&p->b, 0, &h, &x) && RNL_HEAD_KIND(h) != RNL_LINE_GROW)
        ;
    rnl_rx_grow(&p->b.rx[0], p->big);
    run_round(p, 150000, 1000);
    run_round(p, 150000, 3);
    assert_true(rnl_tx_line(&p->a.tx[0]) > 6 * 65536);
}

/* ---- values that cannot be true ---- */

static void a_header_that_claims_too_much_is_refused(void **state)
{
    struct ring_pair *p = *state;
    struct rnl_tx *t = &p->a.tx[0];
    uint64_t x = 1;
    for (unsigned i = 0; i < 4; i++)
        ring_put(&p->a, 0, items(i, 8), &x);
    uint64_t acked = t->acked, last = RNL_LINE_START(t->pos);
    const uint64_t past[] = {last + 1, acked + 0x7fff, acked - 8};
    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        struct rnl_rx r = p->a.rx[0];
        r.quoted = acked;
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
    _Atomic uint64_t *position = &p->b.side->back[0].position;
    uint64_t x = 1, acked = t->acked;
    ring_put(&p->a, 0, items(1, 8), &x);
    uint64_t last = RNL_LINE_START(t->pos);
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
    struct rnl_line *at = r->next, *after = at + 1;
    uint64_t start = r->next_pos;
    rnl_head key = items(1, 8);
    atomic_store(&at->head, key | (uint16_t)(start + RNL_SMALL0 * 8 + 1)); /* another round */
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&at->head, key | (uint16_t)(start - RNL_SMALL0 * 8 + 1));
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&at->head, key | (uint16_t)start); /* no items */
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&after->head, key | (uint16_t)(start + 9));
    assert_int_equal(rnl_rx_peek(r), 0); /* nor is it left for the next one */
    atomic_store(&after->head, 0);
    atomic_store(&at->head, key | (uint16_t)(start + 2));
    rnl_head h = rnl_rx_peek(r);
    assert_int_equal(h, key | (uint16_t)(start + 2));
    assert_int_equal(rnl_rx_from(r, h), 0);
    rnl_rx_read(r, h, 2);
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&at->head, key | (uint16_t)(start + 1)); /* taken back: nothing is read twice */
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&at->head, key | (uint16_t)(start + 8)); /* another line's number here */
    assert_int_equal(rnl_rx_peek(r), 0);
    atomic_store(&at->head, key | (uint16_t)(start + 11));
    assert_int_equal(rnl_rx_peek(r), 0);
    /* a next line without items is none */
    atomic_store(&after->head, key | (uint16_t)(start + 8));
    assert_int_equal(rnl_rx_peek(r), 0);
    assert_int_equal(r->pos, start + 2);
    /* a line that was left takes no more items */
    rnl_rx_leave(r);
    atomic_store(&at->head, key | (uint16_t)(start + 3));
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
    struct rnl_side *side = ring_zeroed(sizeof *side);
    assert_int_equal(atomic_load(&side->version), 0); /* not opened yet */
    rnl_side_init(side, 1);
    assert_int_equal(atomic_load(&side->version), RNL_SIDE_VERSION);
    assert_int_equal(atomic_load(&side->senders_fence), 1);
    rnl_side_init(side, 0);
    assert_int_equal(atomic_load(&side->senders_fence), 0);
    free(side);
}

static void an_armed_receiver_is_seen_by_what_it_waits_for(void **state)
{
    struct ring_pair *p = *state;
    struct rnl_tx *t = &p->a.tx[0];
    assert_int_equal(rnl_tx_armed(t, RNL_ARMED_LINES | RNL_ARMED_ROOM), 0);
    atomic_store(&p->b.side->armed, RNL_ARMED_LINES);
    assert_int_not_equal(rnl_tx_armed(t, RNL_ARMED_LINES), 0);
    assert_int_equal(rnl_tx_armed(t, RNL_ARMED_ROOM), 0);
    atomic_store(&p->b.side->armed, RNL_ARMED_ROOM);
    assert_int_equal(rnl_tx_armed(t, RNL_ARMED_LINES), 0);
    assert_int_not_equal(rnl_tx_armed(t, RNL_ARMED_ROOM), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(zeroed_memory_is_empty_for_every_colour),
        TEST(a_lone_item_is_there_at_once),
        TEST(a_burst_of_equal_items_shares_a_line),
        TEST(only_items_of_one_key_share_a_line),
        TEST(a_line_of_which_all_is_read_is_left_alone),
        TEST(a_position_rides_back_on_every_header),
        TEST(a_line_is_full_for_appending_or_it_is_not),
        TEST(a_full_ring_says_so_until_lines_are_given_back),
        TEST(lanes_do_not_share_room),
        TEST(a_done_line_is_left_only_when_the_next_one_is_there),
        TEST(a_grown_ring_keeps_the_order_and_holds_1024_lines),
        TEST(line_numbers_come_round),
        TEST(a_header_that_claims_too_much_is_refused),
        TEST(a_position_that_claims_too_much_is_refused),
        TEST(stale_or_foreign_headers_are_not_lines),
        TEST(a_refresh_asks_through_the_distance_sensor),
        TEST(a_side_says_who_must_fence_and_is_versioned),
        TEST(an_armed_receiver_is_seen_by_what_it_waits_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
