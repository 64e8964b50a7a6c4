/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bulk lane: no other message waits for it, each lane keeps its order, and what ends early ends alone. */
#include "stream/inbox.h"

#include "support/seam.h"

#include "runnel/adapter.h"

enum { NOTE = 1, BULK = 2, WHOLE = 3, LATE = 4, SIZED = 5, LONG = 64 << 20 };

struct fixture {
    INBOX_FIXTURE;
    int done, status;
    size_t bytes;   /* of the bulk message that is received now, or was last */
    unsigned whole; /* bulk messages received whole */
    int ended;      /* what their last receive returned */
    unsigned refused;
};

static void done(void *arg, int status)
{
    struct fixture *f = arg;
    f->done++;
    f->status = status;
}

/* Checks the pattern, 64 KiB at a time: the first 8 bytes are the message's length. */
static int takes_bulk(rnl_stream *s, unsigned peer, void *ctx)
{
    static unsigned char buf[3][64 << 10];
    struct fixture *f = ctx;
    uint64_t n;
    if ((f->ended = rnl_receive(s, &n, sizeof n)) < 0)
        return RNL_DONE;
    for (f->bytes = sizeof n; f->bytes < n;) {
        size_t want = n - f->bytes < sizeof buf[0] ? n - f->bytes : sizeof buf[0];
        if ((f->ended = rnl_receive(s, buf[peer], want)) < 0)
            return RNL_DONE;
        for (size_t i = 0; i < want; i++)
            TEST_MUST(buf[peer][i] == (unsigned char)((f->bytes + i) % 251));
        f->bytes += want;
    }
    TEST_MUST(rnl_receive(s, buf[peer], 1) == RNL_ERR_PAST_END);
    f->whole++;
    return RNL_DONE;
}

static void rejected(void *arg, unsigned peer, unsigned handler, unsigned reason, const void *buf, size_t n)
{
    struct fixture *f = arg;
    (void)peer, (void)handler, (void)buf, (void)n;
    f->refused = reason;
}

static void handlers(rnl_endpoint *ep, void *fixture)
{
    struct fixture *f = fixture;
    TEST_MUST(rnl_handler_stream(ep, NOTE, inbox_stream, &f->in) == NOTE);
    TEST_MUST(rnl_handler_stream(ep, BULK, takes_bulk, f) == BULK);
    TEST_MUST(rnl_handler_whole(ep, WHOLE, inbox_whole, &f->other, 0) == WHOLE);
    TEST_MUST(rnl_handler_stream(ep, SIZED, inbox_sized, &f->other) == SIZED);
    rnl_on_rejected(ep, rejected, f);
}

static int set_up(void **state)
{
    return inbox_open(state, sizeof(struct fixture), 3, NULL, handlers);
}

static int set_up_one_stack(void **state)
{
    const struct rnl_options opt = {.size = sizeof opt, .stacks = 1};
    return inbox_open(state, sizeof(struct fixture), 3, &opt, handlers);
}

static int set_up_small(void **state)
{
    const struct rnl_options opt = {.size = sizeof opt, .receive_budget = 64 << 10};
    return inbox_open(state, sizeof(struct fixture), 3, &opt, handlers);
}

static int tear_down(void **state)
{
    return inbox_close(state);
}

/* n bytes for takes_bulk; the same memory each time. */
static const unsigned char *bulk_bytes(uint64_t n)
{
    static unsigned char *all;
    if (!all) {
        all = malloc(LONG);
        TEST_MUST(all != NULL);
        for (size_t i = 0; i < LONG; i++)
            all[i] = (unsigned char)(i % 251);
    }
    memcpy(all, &n, sizeof n);
    return all;
}

static int post(struct fixture *f, rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n,
                rnl_posted **out)
{
    const struct rnl_message b = {.peer = peer, .handler = handler, .bound = n, .flags = RNL_BULK};
    const struct rnl_buffer piece[2] = {{buf, n / 3}, {(const char *)buf + n / 3, n - n / 3}};
    rnl_posted *posted;
    return rnl_post_held(ep, &b, piece, 2, done, f, out ? out : &posted);
}

static void flow(struct fixture *f, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        drain(f->b);
        drain(f->a);
    }
}

/* The receiver takes in one packet at a time. */
static void a_short_message_comes_at_once_while_a_long_post_is_half_sent(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(post(f, f->a, 1, BULK, bulk_bytes(LONG), LONG, NULL), 0);
    for (unsigned i = 0; i < 40; i++) {
        uint64_t number = i;
        assert_true(rnl_extract(f->a, 0) >= 0); /* the ring, or the area, or the grant is full of it */
        assert_int_equal(f->done, 0);
        assert_int_equal(post_card(f->a, 1, NOTE, &number, sizeof number), 0);
        assert_true(rnl_extract(f->b, 1) >= 0);
        assert_true(rnl_extract(f->b, 1) >= 0); /* one of the two is the bulk lane's */
        assert_int_equal(f->in.count, i + 1);
        assert_int_equal(f->in.got[i].first, i);
    }
    assert_true(f->bytes > 0 && f->bytes < LONG / 2); /* it goes on all the same */
    for (unsigned i = 0; i < 4000 && f->done == 0; i++)
        flow(f, 1);
    flow(f, 2);
    assert_int_equal(f->done, 1);
    assert_int_equal(f->whole, 1);
    assert_int_equal(f->bytes, LONG);
    assert_int_equal(rnl_get_counters(f->a)->bulk_sent, 1);
    assert_int_equal(rnl_get_counters(f->b)->bulk_received, 1);
}

/* A call that may wait does not have to, and the program's own stream goes beside it. */
static void streams_and_requests_go_beside_a_half_sent_post(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s;
    assert_int_equal(post(f, f->a, 1, BULK, bulk_bytes(LONG), LONG, NULL), 0);
    drain(f->b);
    assert_int_equal(rnl_extract(f->a, 0), 0);
    assert_int_equal(open_stream(f->a, 1, NOTE, 200000, &s), 0);
    size_t at = 0;
    for (unsigned i = 0; i < 20; i++, at += 10000) {
        assert_int_equal(rnl_piece(s, test_pattern(1, at), 10000), 0);
        assert_true(rnl_extract(f->a, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f->b, 1 + i * 1000) >= 0);
    }
    assert_int_equal(rnl_end(s), 0);
    flow(f, 3);
    assert_int_equal(f->in.count, 1);
    assert_int_equal(f->in.got[0].n, 200000);
    assert_memory_equal(f->in.buf, test_pattern(1, 0), 200000);
    for (unsigned i = 0; i < 4000 && f->done == 0; i++)
        flow(f, 1);
    flow(f, 2);
    assert_int_equal(f->whole, 1);
}

/* What lane 0 has read behind a parked chunk does not free the chunk. */
static void what_is_parked_is_not_overwritten(void **state)
{
    struct fixture *f = *state;
    unsigned sent = 0;
    assert_int_equal(post(f, f->a, 1, BULK, bulk_bytes(LONG), LONG, NULL), 0);
    for (unsigned i = 0; i < 400; i++) {
        assert_true(rnl_extract(f->a, 0) >= 0);
        sent += post_card(f->a, 1, NOTE, test_pattern(i, 0), 9000) == 0;
        assert_true(rnl_extract(f->b, 1) >= 0 && rnl_extract(f->b, 1) >= 0);
    }
    for (unsigned i = 0; i < 4000 && f->done == 0; i++)
        flow(f, 1);
    flow(f, 2);
    assert_int_equal(f->whole, 1); /* its handler has looked at each byte */
    assert_int_equal(f->in.count, sent);
}

static void each_lane_keeps_its_order(void **state)
{
    enum { MESSAGES = 300 };
    struct fixture *f = *state;
    unsigned char *buf[MESSAGES];
    struct test_random r = test_random_of(7, 1);
    unsigned sent = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        uint32_t n = 8 + (uint32_t)test_random_below(&r, test_random_one_in(&r, 3) ? 300000 : 3000);
        buf[i] = malloc(n);
        assert_non_null(buf[i]);
        memset(buf[i], 1, n);
        memcpy(buf[i], &n, sizeof n);
        memcpy(buf[i] + 4, &i, sizeof i);
        assert_int_equal(post(f, f->a, 1, SIZED, buf[i], n, NULL), 0);
        uint64_t number = sent;
        sent += post_card(f->a, 1, NOTE, &number, sizeof number) == 0;
        if (test_random_one_in(&r, 2))
            assert_true(rnl_extract(f->b, test_random_below(&r, 100000)) >= 0);
        if (test_random_one_in(&r, 2))
            assert_true(rnl_extract(f->a, SIZE_MAX) >= 0);
    }
    for (unsigned i = 0; i < 1000 && f->done < MESSAGES; i++)
        flow(f, 1);
    flow(f, 2);
    assert_int_equal(f->other.count, MESSAGES);
    assert_int_equal(f->in.count, sent);
    for (unsigned i = 0; i < sent; i++)
        assert_int_equal(f->in.got[i].first, i);
    for (unsigned i = 0; i < MESSAGES; i++) {
        assert_int_equal(f->other.got[i].first >> 32, i);
        assert_int_equal(f->other.got[i].n, (uint32_t)f->other.got[i].first);
        free(buf[i]);
    }
    assert_int_equal(test_seam_post_bytes(f->a), 0);
}

static void messages_of_all_lengths_come_whole(void **state)
{
    static const size_t lengths[] = {0, 1, 56, 57, 4000, 32768, 32769, 262144, 3 << 20};
    struct fixture *f = *state;
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const size_t n = lengths[i];
        for (unsigned to = 0; to < 2; to++) { /* itself, too */
            f->in.count = f->done = 0;
            assert_int_equal(post(f, f->a, to, NOTE, test_pattern(i, 0), n, NULL), 0);
            for (unsigned k = 0; k < 200 && f->done == 0; k++)
                flow(f, 1);
            flow(f, 2);
            assert_int_equal(f->done, 1);
            assert_int_equal(f->status, 0);
            assert_int_equal(f->in.count, 1);
            assert_int_equal(f->in.got[0].n, n);
            if (n)
                assert_memory_equal(f->in.buf, test_pattern(i, 0), n);
        }
        if (n > 1 << 20)
            break;
        f->other.count = 0;
        assert_int_equal(post(f, f->a, 1, WHOLE, test_pattern(i, 0), n, NULL), 0);
        flow(f, 10);
        assert_int_equal(f->other.count, 1);
        assert_int_equal(f->other.got[0].n, n);
        if (n)
            assert_memory_equal(f->other.buf, test_pattern(i, 0), n);
    }
}

static void whole_handlers_that_cannot_take_it_say_so(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(post(f, f->a, 1, WHOLE, bulk_bytes(3 << 20), 3 << 20, NULL), 0);
    flow(f, 100);
    assert_int_equal(f->done, 1);
    assert_int_equal(f->other.count, 1);
    assert_int_equal(f->other.got[0].n, 3 << 20);
    assert_int_equal(f->refused, RNL_REASON_TOO_LONG);
    assert_int_equal(post(f, f->a, 1, WHOLE, "next", 4, NULL), 0);
    flow(f, 3);
    assert_int_equal(f->other.count, 2);
}

static void a_missing_handler_holds_up_its_lane_alone(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(post(f, f->a, 1, LATE, bulk_bytes(4 << 20), 4 << 20, NULL), 0);
    assert_int_equal(post(f, f->a, 1, NOTE, "behind", 6, NULL), 0);
    flow(f, 3);
    for (unsigned i = 0; i < 2000; i++) { /* more than any ring holds */
        uint64_t number = i;
        assert_int_equal(post_card(f->a, 1, NOTE, &number, sizeof number), 0);
        if (i % 20 == 0)
            flow(f, 1);
    }
    /* Half of grant and area is lane 0's. */
    assert_int_equal(post_card(f->a, 1, NOTE, test_pattern(2, 0), 200000), 0);
    flow(f, 2);
    assert_int_equal(f->in.count, 2001);
    assert_int_equal(f->done, 0);
    assert_int_equal(f->whole, 0);
    assert_int_equal(rnl_handler_stream(f->b, LATE, takes_bulk, f), LATE);
    flow(f, 200);
    assert_int_equal(f->whole, 1);
    assert_int_equal(f->bytes, 4 << 20);
    assert_int_equal(f->in.count, 2002);
    assert_int_equal(f->in.got[2001].n, 6);
}

/* Neither by their cells alone. */
static void many_empty_messages_leave_room_for_others(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(post(f, f->a, 1, LATE, "", 0, NULL), 0);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(post_card(f->a, 1, NOTE, &i, sizeof i), 0);
        drain(f->a);
        drain(f->b);
    }
    assert_int_equal(f->in.count, 100);
    assert_int_equal(rnl_handler_stream(f->b, LATE, inbox_stream, &f->other), LATE);
    flow(f, 50);
    assert_int_equal(f->other.count, 100);
    assert_int_equal(f->done, 100);
}

/* With one stack for all, lane 0's handler has it. */
static void a_handler_that_holds_the_last_stack_does_not_hold_up_bulk(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s;
    assert_int_equal(open_stream(f->a, 1, NOTE, 400000, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(3, 0), 100000), 0);
    flow(f, 2); /* its handler waits for more */
    assert_int_equal(f->in.started, 1);
    /* Nothing goes between an extent and more of it, so from another peer. */
    assert_int_equal(post(f, f->c, 1, BULK, bulk_bytes(4 << 20), 4 << 20, NULL), 0);
    for (unsigned i = 0; i < 200; i++) {
        flow(f, 1);
        drain(f->c);
    }
    assert_int_equal(f->whole, 1);
    assert_int_equal(rnl_get_counters(f->b)->no_stack, 0);
    assert_int_equal(rnl_piece(s, test_pattern(3, 100000), 300000), 0);
    assert_int_equal(rnl_end(s), 0);
    flow(f, 5);
    assert_int_equal(f->in.count, 1);
    assert_int_equal(rnl_get_counters(f->b)->stacks_in_use, 0);
}

static void a_small_grant_is_shared(void **state)
{
    struct fixture *f = *state;
    size_t taken = 0;
    assert_int_equal(post(f, f->a, 1, BULK, bulk_bytes(4 << 20), 4 << 20, NULL), 0);
    for (unsigned i = 0; i < 3000 && f->done == 0; i++) {
        taken += post_card(f->a, 1, NOTE, test_pattern(1, 0), 1000) == 0;
        assert_true(rnl_extract(f->b, 3000) >= 0);
        assert_true(rnl_extract(f->a, SIZE_MAX) >= 0);
    }
    flow(f, 500);
    assert_int_equal(f->whole, 1);
    assert_true(taken > 100);
    assert_int_equal(f->in.count, taken);
}

static struct rnl_room_info room(rnl_endpoint *ep, unsigned peer)
{
    struct rnl_room_info r = {.size = sizeof r};
    test_wires_settle();
    assert_int_equal(rnl_room(ep, peer, &r), 0);
    return r;
}

/* A post of what is told to fit is sent by its call, and one of a byte more waits. Returns the bits of what was in the
 * way at times. */
static uint32_t fill_and_compare(struct fixture *f, unsigned turns)
{
    struct test_random r = test_random_of(5, 5);
    uint32_t lacks = 0, sent = 0;
    rnl_posted *posted;
    for (unsigned i = 0; i < turns; i++) {
        struct rnl_room_info info = room(f->a, 1);
        size_t n = info.bulk_lane;
        lacks |= info.bulk_lane_lacks;
        assert_int_equal(n == 0, info.bulk_lane_lacks != 0);
        if (n && test_random_one_in(&r, 2))
            n = 1 + test_random_below(&r, n); /* else the room is used up */
        else if (!n || (!f->h.wires && test_random_one_in(&r, 3)))
            n++;
        assert_int_equal(post(f, f->a, 1, BULK, bulk_bytes(n), n, &posted), 0);
        const int waited = rnl_cancel(posted);
        if (info.bulk_lane_lacks != RNL_ROOM_QUEUED) /* what is before it may go with it */
            assert_int_equal(waited, n > info.bulk_lane);
        sent += n <= info.bulk_lane;
        (void)!post_card(f->a, 1, NOTE, test_pattern(i, 0), test_random_below(&r, 3000));
        if (test_random_one_in(&r, 4))
            assert_true(rnl_extract(f->b, test_random_below(&r, 300000)) >= 0);
        if (test_random_one_in(&r, 3))
            assert_true(rnl_extract(f->a, SIZE_MAX) >= 0);
        f->in.count = 0;
    }
    flow(f, 10);
    assert_true(sent > turns / 8);
    assert_int_equal(f->done, turns);
    return lacks;
}

static void a_post_that_is_told_to_fit_is_sent_at_once(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(room(f->a, 1).bulk_lane_lacks, 0);
    assert_true(room(f->a, 1).bulk_lane >= 4096);
    const uint32_t lacks = fill_and_compare(f, 2000);
    if (!f->h.wires) /* else what was not yet sent to the other host is in the way before these are */
        assert_int_equal(lacks & ~(uint32_t)RNL_ROOM_GRANT, RNL_ROOM_QUEUED | RNL_ROOM_RING);
    rnl_stream *s;
    assert_int_equal(open_stream(f->a, 1, NOTE, 100000, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 10), 0);
    assert_int_equal(room(f->a, 1).bulk_lane_lacks, RNL_ROOM_OPEN);
    assert_int_equal(room(f->a, 2).bulk_lane_lacks, 0);
    assert_int_equal(rnl_abort(s), 0);
}

static void so_it_is_where_the_grant_is_small(void **state)
{
    assert_true(fill_and_compare(*state, 1000) & RNL_ROOM_GRANT);
}

static void a_half_sent_post_that_is_cancelled_ends_alone(void **state)
{
    struct fixture *f = *state;
    rnl_posted *posted[3];
    for (unsigned when = 0; when < 3; when++) { /* never taken in; half taken in; the ring is full */
        f->done = f->ended = 0, f->in.count = 0;
        assert_int_equal(post(f, f->a, 1, BULK, bulk_bytes(LONG), LONG, &posted[0]), 0);
        assert_int_equal(post(f, f->a, 1, NOTE, "next", 4, &posted[1]), 0);
        assert_int_equal(post(f, f->a, 1, NOTE, "last", 4, &posted[2]), 0);
        if (when > 0)
            flow(f, 3);
        for (unsigned i = 0; when == 2 && i < 100; i++)
            (void)!post_card(f->a, 1, NOTE, "note", 4);
        const unsigned notes = when == 2 ? 100 : 0;
        assert_int_equal(rnl_cancel(posted[1]), 1);
        assert_int_equal(rnl_cancel(posted[0]), 1);
        assert_int_equal(rnl_cancel(posted[0]), 0);
        assert_int_equal(f->done, 0);
        flow(f, 5);
        assert_int_equal(f->done, 3);
        assert_int_equal(f->ended, RNL_ERR_ABORTED);
        assert_in_range(f->in.count, 1, 1 + notes);
        if (when < 2)
            assert_memory_equal(&f->in.got[f->in.count - 1].first, "last", 4);
        assert_int_equal(test_seam_post_bytes(f->a), 0);
        assert_int_equal(rnl_get_counters(f->b)->stacks_in_use, 0);
    }
    assert_int_equal(f->whole, 0);
}

static void what_had_come_of_the_dead_is_taken_in_first(void **state)
{
    struct fixture *f = *state;
    rnl_posted *posted;
    assert_int_equal(post(f, f->a, 1, BULK, bulk_bytes(LONG), LONG, &posted), 0);
    assert_true(rnl_extract(f->b, 1) >= 0);
    assert_true(rnl_extract(f->b, 1) >= 0); /* the others are parked */
    const size_t before = f->bytes;
    test_hub_kill(&f->h, 0, RNL_DEATH_SIGNAL, 9);
    for (unsigned i = 0; i < 10; i++)
        drain(f->b);
    assert_int_equal(f->ended, RNL_ERR_PEER_DEAD);
    assert_true(f->bytes > before);
    assert_int_equal(f->whole, 0);
    assert_int_equal(rnl_get_counters(f->b)->stacks_in_use, 0);
    assert_int_equal(rnl_cancel(posted), 1); /* what a dead process had queued is freed with it; here it is ours */
    (void)!rnl_extract(f->a, SIZE_MAX);
}

static void posts_to_the_dead_fail(void **state)
{
    struct fixture *f = *state;
    rnl_posted *posted[2];
    assert_int_equal(post(f, f->a, 1, BULK, bulk_bytes(LONG), LONG, &posted[0]), 0);
    assert_int_equal(post(f, f->a, 1, NOTE, "next", 4, &posted[1]), 0);
    drain(f->b);
    drain(f->a);
    test_hub_kill(&f->h, 1, RNL_DEATH_SIGNAL, 9);
    for (unsigned i = 0; i < 10; i++)
        drain(f->a);
    assert_int_equal(f->done, 2);
    assert_int_equal(f->status, RNL_ERR_PEER_DEAD);
    assert_int_equal(post(f, f->a, 1, NOTE, "next", 4, NULL), RNL_ERR_PEER_DEAD);
    assert_int_equal(test_seam_post_bytes(f->a), 0);
}

static void what_the_lane_does_not_do_is_said(void **state)
{
    struct fixture *f = *state;
    struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 8, .answer = 8, .flags = RNL_BULK};
    rnl_stream *s;
    assert_int_equal(rnl_post(f->a, &b, NULL, 0, done, f), RNL_ERR_ARG);
    SAYS(RNL_ERR_ARG, "reply", "RNL_BULK");
    b.answer = 0;
    assert_int_equal(rnl_begin(f->a, &b, &s), RNL_ERR_ARG);
    SAYS(RNL_ERR_ARG, "RNL_BULK", "rnl_post");
    b.flags = RNL_BULK | 4;
    assert_int_equal(rnl_post(f->a, &b, NULL, 0, done, f), RNL_ERR_ARG);
}

/* tear_down closes all three at once, and checks that they could. */
static void the_close_waits_for_it(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(post(f, f->a, 1, NOTE, bulk_bytes(5 << 20), 5 << 20, NULL), 0);
    assert_int_equal(post(f, f->a, 2, WHOLE, "short", 5, NULL), 0); /* another inbox: each rank closes in a thread */
    assert_int_equal(test_hub_close(&f->h), 0);
    assert_int_equal(f->done, 2);
    assert_int_equal(f->status, 0);
    assert_int_equal(f->in.count, 1);
    assert_int_equal(f->other.count, 1);
    memset(&f->h, 0, sizeof f->h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_short_message_comes_at_once_while_a_long_post_is_half_sent),
        TEST(streams_and_requests_go_beside_a_half_sent_post),
        TEST(what_is_parked_is_not_overwritten),
        TEST(each_lane_keeps_its_order),
        TEST(messages_of_all_lengths_come_whole),
        TEST(whole_handlers_that_cannot_take_it_say_so),
        TEST(a_missing_handler_holds_up_its_lane_alone),
        TEST(many_empty_messages_leave_room_for_others),
        cmocka_unit_test_setup_teardown(a_handler_that_holds_the_last_stack_does_not_hold_up_bulk, set_up_one_stack,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_small_grant_is_shared, set_up_small, tear_down),
        TEST(a_post_that_is_told_to_fit_is_sent_at_once),
        cmocka_unit_test_setup_teardown(so_it_is_where_the_grant_is_small, set_up_small, tear_down),
        TEST(a_half_sent_post_that_is_cancelled_ends_alone),
        TEST(what_had_come_of_the_dead_is_taken_in_first),
        TEST(posts_to_the_dead_fail),
        TEST(what_the_lane_does_not_do_is_said),
        TEST(the_close_waits_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
