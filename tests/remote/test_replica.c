/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the frames of a peer may do to the copy of its side, and what not. That honest peers agree whatever the network
 * does is in test_replica_model.c. */
#include "base/env.h"
#include "remote/replica.h"
#include "support/random.h"
#include "support/unit.h"

struct fixture {
    struct rnl_env env;
    struct rnl_channel pair;
    struct rnl_replica replica;
    uint64_t number; /* of the next packet */
    unsigned char at[70000];
    uint32_t bytes;
};

static void open_it(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->env.rank = 1;
    assert_int_equal(rnl_channel_open_remote(&f->pair, &f->env, 0), 0);
    rnl_replica_init(&f->replica, &f->pair);
    f->number = 1;
}

static void close_it(struct fixture *f)
{
    assert_int_equal(rnl_replica_valid(&f->replica), 0);
    rnl_channel_close(&f->pair);
}

static int hear(struct fixture *f)
{
    int status = rnl_replica_apply(&f->replica, f->at, f->bytes, f->number++);
    f->bytes = 0;
    return status;
}

static void add_line(struct fixture *f, unsigned lane, uint64_t line, unsigned n, unsigned before, rnl_header key,
                     const void *payload)
{
    unsigned char *at = f->at + f->bytes;
    rnl_header h = key | (uint16_t)(line * 8 + n) | (rnl_header)before << RNL_REPLICA_BEFORE_SHIFT;
    rnl_frame_put_head(at, RNL_FRAME_CELLS, lane, 1, line);
    at = rnl_frame_put_cell(at + RNL_FRAME_HEADER, h, payload);
    f->bytes = (uint32_t)(at - f->at);
}

static void add_bulk(struct fixture *f, unsigned lane, uint64_t from, uint32_t bytes)
{
    unsigned char *at = f->at + f->bytes;
    rnl_frame_put_head(at, RNL_FRAME_BULK, lane, bytes, from);
    memcpy(at + RNL_FRAME_HEADER, test_pattern(7, 0), bytes);
    f->bytes += RNL_FRAME_HEADER + bytes;
}

/* Number of the first line of a lane. */
static uint64_t first(const struct fixture *f, unsigned lane)
{
    return f->pair.rx[lane].cell0 + 1;
}

static const unsigned char some[RNL_CELL_PAYLOAD] = {1, 2, 3, 4, 5, 6, 7, 8};
#define ITEM rnl_header_key(RNL_CELL_RECORDS, 1, 8)

static void nothing_is_written_where_there_is_no_room(void **state)
{
    struct fixture f;
    (void)state;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        static const unsigned lines[RNL_LANES] = {RNL_CELLS_LANE0, RNL_CELLS_LANE1_REMOTE};
        open_it(&f);
        add_line(&f, lane, first(&f, lane) + lines[lane] - 1, 1, 1, ITEM, some);
        assert_int_equal(hear(&f), 0);
        add_line(&f, lane, first(&f, lane) + lines[lane], 1, 1, ITEM, some);
        assert_int_equal(hear(&f), RNL_ERR_PEER_BROKEN);
        add_line(&f, lane, first(&f, lane) - 1, 1, 0, ITEM, some); /* before the first */
        assert_int_equal(hear(&f), RNL_ERR_PEER_BROKEN);
        uint32_t area = lane == 0 ? RNL_BULK_REMOTE_BYTES : RNL_BULK_BYTES;
        add_bulk(&f, lane, area - 10, 20); /* over the end */
        assert_int_equal(hear(&f), RNL_ERR_PEER_BROKEN);
        add_bulk(&f, lane, area, 20); /* not read yet */
        assert_int_equal(hear(&f), RNL_ERR_PEER_BROKEN);
        add_bulk(&f, lane, area - 20, 20);
        assert_int_equal(hear(&f), 0);
        close_it(&f);
    }
}

static void a_ring_for_answers_is_there_when_it_is_needed(void **state)
{
    struct fixture f;
    int new_cell = 1;
    (void)state;
    open_it(&f);
    struct rnl_tx *t = &f.pair.tx[1];
    assert_true(rnl_tx_refresh(t, NULL, NULL) > 0); /* there would be room, */
    assert_null(rnl_tx_place(t, ITEM, &new_cell));  /* ... and no place yet */
    assert_null(f.pair.rx[1].ring);
    assert_int_equal(rnl_rx_peek(&f.pair.rx[1]), 0);
    add_bulk(&f, 1, 0, 20); /* waits for a line that announces it */
    assert_int_equal(hear(&f), 0);
    assert_null(f.pair.rx[1].ring);
    assert_int_equal(rnl_channel_map_replies(&f.pair), 0);
    assert_non_null(rnl_tx_place(t, ITEM, &new_cell));
    add_line(&f, 1, first(&f, 1), 1, 0, ITEM, some);
    assert_int_equal(hear(&f), 0);
    assert_true(rnl_rx_peek(&f.pair.rx[1]) != 0);
    close_it(&f);
}

/* What was read of the answers may wait for what is asked next, and a ring says only each quarter of it how far it was
 * read: both together are less than a ring. So who is stopped for want of it has always been told, whatever had been
 * said when the ring was begun. */
static void a_ring_of_answers_that_is_read_is_told(void **state)
{
    struct rnl_flow_note notes[RNL_FLOW_NOTES];
    unsigned count;
    (void)state;
    for (unsigned before = 0; before < 2 * RNL_CELLS_LANE1_REMOTE; before++)
        for (unsigned exact = 0; exact < RNL_CELLS_LANE1_REMOTE; exact++) {
            struct fixture f;
            open_it(&f);
            assert_int_equal(rnl_channel_map_replies(&f.pair), 0);
            struct rnl_rx *r = &f.pair.rx[1];
            uint64_t line = first(&f, 1), said = 0;
            rnl_rx_grant(r, RNL_GRANT_FULL);
            for (unsigned i = 0; i < before + RNL_CELLS_LANE1_REMOTE; i++, line++) {
                if (i == before) { /* all that is read is said here, if the program says something */
                    rnl_rx_advertise(r);
                    (void)rnl_replica_emit(&f.replica, f.at, sizeof f.at, notes, &count);
                    said = i;
                }
                add_line(&f, 1, line, 1, i > 0, rnl_header_key(RNL_CELL_REQUEST, 1, 8), some);
                assert_int_equal(hear(&f), 0);
                rnl_header h = rnl_rx_peek(r);
                assert_true(h != 0);
                rnl_rx_read(r, h, 1);
                rnl_rx_leave(r);
                if (i == before + exact)
                    rnl_rx_advertise(r); /* after a run of them */
                if (i < before && rnl_replica_much_read(&f.replica))
                    (void)rnl_replica_emit(&f.replica, f.at, sizeof f.at, notes, &count);
                if (i - said == RNL_CELLS_LANE1_REMOTE / 2)
                    assert_int_equal(rnl_replica_much_read(&f.replica), 0); /* so far it may wait */
            }
            assert_int_equal(rnl_replica_much_read(&f.replica), 1);
            close_it(&f);
        }
}

/* More stretches than can be noted: the packet is not taken; but what the others wait for always is. */
static void stretches_are_bounded_and_the_lowest_is_always_taken(void **state)
{
    struct fixture f;
    (void)state;
    open_it(&f);
    for (uint32_t i = 1; i < RNL_REPLICA_RANGES; i++) {
        add_bulk(&f, 0, i * 1000, 100);
        assert_int_equal(hear(&f), 0);
    }
    add_bulk(&f, 0, 999000, 100);
    assert_int_equal(hear(&f), RNL_NO_ROOM);
    add_bulk(&f, 0, 500, 100); /* below all others */
    assert_int_equal(hear(&f), 0);
    add_bulk(&f, 0, 0, 100);
    assert_int_equal(hear(&f), RNL_NO_ROOM); /* the place for the lowest is in use; what lies between comes first */
    for (uint32_t at = 500; at > 0; at -= 100) {
        add_bulk(&f, 0, at - 100, 100);
        assert_int_equal(hear(&f), 0);
    }
    for (uint32_t at = 600; at < RNL_REPLICA_RANGES * 1000; at += 100) {
        add_bulk(&f, 0, at, 100);
        assert_int_equal(hear(&f), 0);
    }
    assert_int_equal(f.replica.in[0].count, 1);
    close_it(&f);
}

static void words_do_not_fall_but_wishes(void **state)
{
    struct fixture f;
    uint64_t words[RNL_CREDIT_WORDS] = {0};
    const uint32_t which = 1u << RNL_CREDIT_GRANTED | 1u << RNL_CREDIT_WANTED;
    (void)state;
    open_it(&f);
    for (unsigned value = 9; value >= 5; value -= 2) {
        words[RNL_CREDIT_GRANTED] = words[RNL_CREDIT_WANTED] = value;
        f.bytes = rnl_frame_put_credit(f.at, sizeof f.at, which, words, 0);
        assert_int_equal(hear(&f), 0);
        assert_int_equal(atomic_load(&f.pair.theirs->credit[0].granted), 9);
        assert_int_equal(atomic_load(&f.pair.theirs->credit_wanted), value);
    }
    words[RNL_CREDIT_WANTED] = 77; /* an older packet */
    f.bytes = rnl_frame_put_credit(f.at, sizeof f.at, which, words, 0);
    assert_int_equal(rnl_replica_apply(&f.replica, f.at, f.bytes, 1), 0);
    assert_int_equal(atomic_load(&f.pair.theirs->credit_wanted), 5);
    close_it(&f);
}

/* The peer has read lane 0 up to here, and written lane 1 up to there. */
static void hear_read(struct fixture *f, uint64_t read, uint64_t answers)
{
    uint64_t words[RNL_CREDIT_WORDS] = {0};
    words[RNL_CREDIT_POSITION] = read;
    f->bytes = rnl_frame_put_credit(f->at, sizeof f->at, 1u << RNL_CREDIT_POSITION, words, answers);
    assert_int_equal(hear(f), 0);
}

static void what_was_read_is_settled_when_its_answers_are_here(void **state)
{
    struct fixture f;
    struct rnl_replica_remainder rest;
    struct rnl_flow_note notes[RNL_FLOW_NOTES];
    unsigned count;
    (void)state;
    open_it(&f);
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        rnl_rx_advertise(&f.pair.rx[lane]);
    (void)rnl_replica_emit(&f.replica, f.at, sizeof f.at, notes, &count);
    uint64_t start = f.pair.tx[0].acked, line = first(&f, 1);
    assert_int_equal(rnl_replica_watermark(&f.replica), start);
    hear_read(&f, start + 1, (line - 1) * 8); /* it has answered nothing */
    assert_int_equal(rnl_replica_watermark(&f.replica), start + 1);
    assert_true(rnl_replica_can_hibernate(&f.replica, &rest));
    hear_read(&f, start + 5, line * 8 + 2);
    assert_int_equal(rnl_replica_watermark(&f.replica), start + 1);
    assert_int_equal(atomic_load(&f.pair.theirs->credit[0].position), start + 5); /* there is room all the same */
    assert_false(rnl_replica_can_hibernate(&f.replica, &rest));
    hear_read(&f, start + 3, line * 8 + 1); /* late */
    hear_read(&f, start + 9, (line + 2) * 8 + 1);
    hear_read(&f, start + 17, (line + 3) * 8 + 1);
    add_line(&f, 1, line, 1, 0, ITEM, some);
    assert_int_equal(hear(&f), 0);
    assert_int_equal(rnl_replica_watermark(&f.replica), start + 1);
    add_line(&f, 1, line, 2, 0, ITEM, some);
    assert_int_equal(hear(&f), 0);
    assert_int_equal(rnl_replica_watermark(&f.replica), start + 5);
    add_line(&f, 1, line + 1, 1, 2, ITEM, some);
    add_line(&f, 1, line + 3, 1, 1, ITEM, some);
    assert_int_equal(hear(&f), 0);
    assert_int_equal(rnl_replica_watermark(&f.replica), start + 5);
    add_line(&f, 1, line + 2, 1, 1, ITEM, some); /* and the one behind it is shown with it */
    assert_int_equal(hear(&f), 0);
    assert_int_equal(rnl_replica_watermark(&f.replica), start + 17);
    assert_false(f.replica.claim[0].read || f.replica.claim[1].read);
    close_it(&f);
}

static void who_holds_what_came_too_early_does_not_rest(void **state)
{
    struct fixture f;
    struct rnl_flow_note notes[RNL_FLOW_NOTES];
    unsigned count;
    struct rnl_replica_remainder rest;
    (void)state;
    open_it(&f);
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        rnl_rx_advertise(&f.pair.rx[lane]);
    assert_false(rnl_replica_can_hibernate(&f.replica, &rest)); /* something is pending */
    assert_true(rnl_replica_emit(&f.replica, f.at, sizeof f.at, notes, &count) > 0);
    assert_true(rnl_replica_can_hibernate(&f.replica, &rest));
    add_line(&f, 0, first(&f, 0) + 1, 1, 1, ITEM, some);
    assert_int_equal(hear(&f), 0);
    assert_false(rnl_replica_can_hibernate(&f.replica, &rest));
    close_it(&f);
}

/* One item more on lane 0, and what is said then: kinds of its frames, as decimal digits. */
static unsigned say_item(struct fixture *f, struct rnl_flow_note *notes, unsigned *count)
{
    int new_cell = 1;
    unsigned kinds = 0;
    struct rnl_frame frame;
    unsigned char *at = rnl_tx_place(&f->pair.tx[0], ITEM, &new_cell);
    memcpy(at, some, 8);
    rnl_channel_publish(&f->pair, 0, ITEM, at + 8, new_cell, 0);
    uint32_t bytes = rnl_replica_emit(&f->replica, f->at, sizeof f->at, notes, count);
    struct rnl_frames reader = rnl_frames_of(f->at, bytes);
    while (rnl_frame_next(&reader, &frame) > 0)
        kinds = kinds * 10 + frame.kind;
    assert_int_equal(f->replica.emitted_all, 1);
    assert_int_equal(rnl_replica_pending(&f->replica), 0);
    return kinds;
}

static void words_go_with_the_next_line(void **state)
{
    struct fixture f;
    struct rnl_flow_note notes[RNL_FLOW_NOTES];
    unsigned count;
    (void)state;
    open_it(&f);
    (void)rnl_replica_emit(&f.replica, f.at, sizeof f.at, notes, &count);
    assert_int_equal(say_item(&f, notes, &count), RNL_FRAME_CELLS);
    assert_int_equal(count, 1);
    assert_int_equal(notes[0].kind, RNL_FRAME_CELLS);
    assert_int_equal(notes[0].to - notes[0].from, 1);
    assert_int_equal(say_item(&f, notes, &count), RNL_FRAME_CELLS); /* the same line, with two items */
    assert_int_equal(notes[0].from, f.replica.out[0].sent >> 3);
    assert_int_equal(f.replica.out[0].sent & 7, 2);
    atomic_store(&f.pair.mine->credit_wanted, 5);
    assert_int_equal(say_item(&f, notes, &count), RNL_FRAME_CREDIT * 10 + RNL_FRAME_CELLS);
    assert_int_equal(count, 2);
    rnl_replica_lost(&f.replica, &notes[0]);
    assert_int_equal(say_item(&f, notes, &count), RNL_FRAME_CREDIT * 10 + RNL_FRAME_CELLS);
    rnl_replica_lost(&f.replica, &notes[1]);
    assert_int_equal(say_item(&f, notes, &count), RNL_FRAME_CELLS);
    close_it(&f);
}

static void whatever_a_peer_says_stays_in_its_bounds(void **state)
{
    static const unsigned kinds[] = {RNL_CELL_RECORDS, RNL_CELL_EXTENT, RNL_CELL_PREFIX, RNL_CELL_GROW, 9};
    unsigned broken = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 3000 / test_slowness(); seed++) {
        struct test_random r = test_random_of(seed, 5);
        struct fixture f;
        open_it(&f);
        for (unsigned i = 0; i < 40; i++) {
            unsigned lane = test_random_below(&r, RNL_LANES);
            uint64_t near = first(&f, lane) + test_random_below(&r, 40) - 2;
            unsigned char payload[RNL_CELL_PAYLOAD];
            const struct rnl_extent e = {.start = (uint64_t)test_random_below(&r, 3 << 20),
                                         .published = test_random_below(&r, 2 << 20),
                                         .reserved = test_random_below(&r, 2 << 20),
                                         .flags = test_random_below(&r, 16)};
            memcpy(payload, &e, sizeof e);
            memset(payload + sizeof e, 3, sizeof payload - sizeof e);
            unsigned kind = kinds[test_random_below(&r, 5)], n = kind ? 1 : 1 + test_random_below(&r, 7);
            unsigned len = kind == RNL_CELL_EXTENT ? 32 : kind == RNL_CELL_GROW ? 0 : 8;
            if (test_random_one_in(&r, 3))
                add_bulk(&f, lane, test_random_below(&r, 2 << 20), 1 + test_random_below(&r, 60000));
            else
                add_line(&f, lane, near, n, test_random_below(&r, 8), rnl_header_key(kind, 1, len), payload);
            if (test_random_one_in(&r, 8))
                f.at[test_random_below(&r, f.bytes)] ^= (unsigned char)(1u << test_random_below(&r, 8));
            broken += hear(&f) == RNL_ERR_PEER_BROKEN;
        }
        close_it(&f);
    }
    assert_true(broken > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_written_where_there_is_no_room),
        cmocka_unit_test(a_ring_for_answers_is_there_when_it_is_needed),
        cmocka_unit_test(a_ring_of_answers_that_is_read_is_told),
        cmocka_unit_test(stretches_are_bounded_and_the_lowest_is_always_taken),
        cmocka_unit_test(words_do_not_fall_but_wishes),
        cmocka_unit_test(what_was_read_is_settled_when_its_answers_are_here),
        cmocka_unit_test(who_holds_what_came_too_early_does_not_rest),
        cmocka_unit_test(words_go_with_the_next_line),
        cmocka_unit_test(whatever_a_peer_says_stays_in_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
