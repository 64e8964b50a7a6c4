/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending: what runnel.h says of rnl_send, rnl_begin, rnl_piece, rnl_end and rnl_flush. */
#include "stream/three.h"

/* ---- short messages ---- */

static void a_short_send_says_what_is_wrong(void **state)
{
    struct fixture *f = *state;
    char buf[64] = "";
    assert_int_equal(rnl_send(f->a, 1, NOTE, buf, RNL_SHORT_MAX + 1), RNL_ERR_TOO_LONG);
    SAYS(RNL_ERR_TOO_LONG, "48", "49", "rnl_begin");
    assert_int_equal(rnl_send(f->a, 3, NOTE, buf, 1), RNL_ERR_RANK);
    SAYS(RNL_ERR_RANK, "rank 3", "0 to 2");
    assert_int_equal(rnl_send(f->a, 4000000000u, NOTE, buf, 1), RNL_ERR_RANK);
    assert_int_equal(rnl_send(f->a, 1, 65536, buf, 1), RNL_ERR_HANDLER);
    SAYS(RNL_ERR_HANDLER, "65536", "65535");
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 0);
    assert_int_equal(f->in.started, 0);
}

/* ---- streams of every length ---- */

static void a_begin_says_what_is_wrong(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s = NULL;
    struct rnl_limits l;
    rnl_get_limits(f->a, &l);
    struct rnl_message b = {.peer = 3, .handler = NOTE, .bound = 8, .flags = RNL_NO_WAIT};
    assert_int_equal(rnl_begin(f->a, &b, &s), RNL_ERR_RANK);
    b.peer = 1, b.handler = 65536;
    assert_int_equal(rnl_begin(f->a, &b, &s), RNL_ERR_HANDLER);
    b.handler = NOTE, b.answer = l.reply_max + 1;
    assert_int_equal(rnl_begin(f->a, &b, &s), RNL_ERR_TOO_LONG);
    SAYS(RNL_ERR_TOO_LONG, "65537", "65536");
    b.answer = 0, b.bound = l.reserve_max + 1;
    assert_int_equal(rnl_begin(f->a, &b, &s), RNL_ERR_TOO_LONG);
    SAYS(RNL_ERR_TOO_LONG, "524289", "524288", "rnl_post");
    b.flags = 5;
    for (b.bound = 8; b.bound <= 3000; b.bound += 2992) {
        assert_int_equal(rnl_begin(f->a, &b, &s), RNL_ERR_ARG);
        SAYS(RNL_ERR_ARG, "0x5", "rnl_begin.flags", "RNL_NO_WAIT");
        assert_int_equal(rnl_post(f->a, &b, NULL, 0, NULL, NULL), RNL_ERR_ARG);
    }
    b.flags = RNL_NO_WAIT;
    assert_null(s);
    b.bound = l.reserve_max;
    assert_int_equal(rnl_begin(f->a, &b, &s), 0);
    assert_int_equal(rnl_end(s), 0);
    drain(f->b);
    assert_int_equal(f->in.count, 1);
}

static void a_piece_past_the_bound_is_refused_and_the_stream_goes_on(void **state)
{
    static const size_t bounds[] = {0, 8, 56, 57, 3000, 300000};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        rnl_stream *s;
        size_t n = bounds[i], half = n / 2;
        f->in.count = 0;
        assert_int_equal(open_stream(f->a, 1, NOTE, n, &s), 0);
        assert_int_equal(rnl_piece(s, test_pattern(1, 0), half), 0);
        assert_int_equal(rnl_piece(s, test_pattern(2, 0), n - half + 1), RNL_ERR_PAST_END);
        assert_int_equal(rnl_piece(s, test_pattern(2, 0), SIZE_MAX), RNL_ERR_PAST_END);
        assert_int_equal(rnl_piece(s, test_pattern(1, half), n - half), 0);
        assert_int_equal(rnl_piece(s, test_pattern(2, 0), 1), RNL_ERR_PAST_END);
        assert_int_equal(rnl_end(s), 0);
        drain(f->b);
        assert_int_equal(f->in.count, 1);
        assert_int_equal(f->in.got[0].n, n);
        assert_memory_equal(f->in.buf, test_pattern(1, 0), n);
    }
}

static void a_stream_is_refused_after_its_end(void **state)
{
    static const size_t bounds[] = {4, 3000, 300000};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        rnl_stream *s;
        assert_int_equal(open_stream(f->a, 1, NOTE, bounds[i], &s), 0);
        assert_int_equal(rnl_piece(s, test_pattern(1, 0), bounds[i]), 0);
        assert_int_equal(rnl_end(s), 0);
        assert_int_equal(rnl_piece(s, "x", 1), RNL_ERR_ARG);
        SAYS(RNL_ERR_ARG, "not open for sending");
        assert_int_equal(rnl_end(s), RNL_ERR_ARG);
        SAYS(RNL_ERR_ARG, "not open for sending");
        drain(f->b);
    }
    assert_int_equal(f->in.count, 3);
}

static void no_room_outside_handlers_says_to_extract(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s;
    while (open_stream(f->a, 1, NOTE, 30, &s) == 0)
        assert_int_equal(rnl_end(s), 0);
    SAYS(RNL_NO_ROOM, "try again after the next extract");
}

struct watch {
    size_t seen;  /* bytes of the open message received */
    uint32_t sum; /* of them */
    int done;
};

static uint32_t sum_of(uint32_t sum, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum = 31 * sum + bytes[i];
    return sum;
}

static int watcher(rnl_stream *s, unsigned peer, void *ctx)
{
    struct watch *w = ctx;
    unsigned char byte;
    (void)peer;
    w->seen = 0;
    w->sum = 0;
    while (rnl_receive(s, &byte, 1) == 0) {
        w->seen++;
        w->sum = sum_of(w->sum, &byte, 1);
    }
    w->done++;
    return RNL_DONE;
}

enum { SHORTLY = 2000000 }; /* ns */

static void a_send_gives_up_when_its_time_has_passed(void **state)
{
    struct fixture *f = *state;
    unsigned sent = 0;
    uint64_t before = test_now_ns();
    rnl_send_timeout(f->a, SHORTLY);
    while (rnl_send(f->a, 1, NOTE, "x", 1) == 0)
        sent++;
    assert_true(test_now_ns() - before >= SHORTLY);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "x", 1), RNL_TIMED_OUT);
    SAYS(RNL_TIMED_OUT, "no room for a message to rank 1 within the 2000 us");
    assert_int_equal(rnl_send(f->a, 2, NOTE, "x", 1), 0); /* to others there is room */
    drain(f->c);
    drain(f->b);
    assert_int_equal(f->in.count, sent + 1); /* what timed out was not sent */
    assert_int_equal(rnl_send(f->a, 1, NOTE, "x", 1), 0);
    drain(f->b);
    assert_int_equal(f->in.count, sent + 2);
}

static void a_send_behind_queued_messages_gives_up_too(void **state)
{
    struct fixture *f = *state;
    unsigned sent = 1;
    const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 1};
    const struct rnl_buffer piece = {"x", 1};
    rnl_send_timeout(f->a, SHORTLY);
    while (rnl_send(f->a, 1, NOTE, "x", 1) == 0)
        sent++;
    assert_int_equal(rnl_post(f->a, &b, &piece, 1, NULL, NULL), 0);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "x", 1), RNL_TIMED_OUT);
    SAYS(RNL_TIMED_OUT, "queued messages have not left for rank 1");
    drain(f->b);
    rnl_send_timeout(f->a, -1);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "x", 1), 0);
    drain(f->b);
    assert_int_equal(f->in.count, sent + 1);
}

static void what_timed_out_of_a_message_is_continued_or_given_up(void **state)
{
    enum { PIECE = 8 << 20 };
    const struct rnl_message b = {.peer = 1, .handler = OTHER, .bound = 64 << 20};
    struct fixture *f = *state;
    struct watch w = {0};
    rnl_stream *s;
    int status;
    assert_int_equal(rnl_handler_stream(f->b, OTHER, watcher, &w), OTHER);
    rnl_send_timeout(f->a, SHORTLY);
    assert_int_equal(rnl_begin(f->a, &b, &s), 0);
    size_t sent = 0;
    while ((status = rnl_piece(s, test_pattern(0, 0), 1)) == 0)
        sent++;
    assert_int_equal(status, RNL_TIMED_OUT); /* nothing of it was taken */
    assert_int_equal(rnl_end(s), RNL_TIMED_OUT);
    drain(f->b);
    assert_int_equal(rnl_piece(s, test_pattern(0, 0), 1), 0);
    assert_int_equal(rnl_end(s), 0);
    drain(f->b);
    assert_int_equal(w.seen, sent + 1);
    assert_int_equal(w.done, 1);

    unsigned char *bytes = malloc(PIECE);
    assert_non_null(bytes);
    for (size_t i = 0; i < PIECE; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 24);
    for (int given_up = 0; given_up < 2; given_up++) {
        assert_int_equal(rnl_begin(f->a, &b, &s), 0);
        assert_int_equal(rnl_piece(s, bytes, PIECE), RNL_TIMED_OUT); /* a part of it was taken */
        assert_int_equal(rnl_piece(s, bytes, 1), RNL_ERR_ARG);
        SAYS(RNL_ERR_ARG, "bytes were taken before its time had passed");
        for (status = RNL_TIMED_OUT; !given_up && status == RNL_TIMED_OUT; status = rnl_piece(s, bytes, PIECE))
            drain(f->b);
        assert_int_equal(status, given_up ? RNL_TIMED_OUT : 0);
        drain(f->b);
        assert_int_equal(rnl_end(s), given_up ? RNL_ERR_ABORTED : 0);
        drain(f->b);
        assert_int_equal(w.done, 2 + given_up);
        if (!given_up) {
            assert_int_equal(w.seen, PIECE);
            assert_int_equal(w.sum, sum_of(0, bytes, PIECE));
        }
    }
    free(bytes);
    assert_int_equal(rnl_send(f->a, 1, OTHER, "x", 1), 0);
    drain(f->b);
    assert_int_equal(w.done, 4);
}

static void one_message_per_peer_is_open_at_a_time(void **state)
{
    static const size_t bounds[] = {8, 3000};
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        rnl_stream *s, *t, *u;
        assert_int_equal(open_stream(f->a, 1, NOTE, bounds[i], &s), 0);
        assert_int_equal(open_stream(f->a, 1, NOTE, 8, &t), RNL_BUSY);
        assert_int_equal(open_stream(f->a, 1, NOTE, 3000, &t), RNL_BUSY);
        const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 8}; /* not even one that may wait */
        assert_int_equal(rnl_begin(f->a, &b, &t), RNL_BUSY);
        assert_int_equal(rnl_send(f->a, 1, NOTE, "x", 1), RNL_BUSY);
        assert_int_equal(open_stream(f->a, 2, NOTE, 8, &t), 0); /* to others, yes */
        assert_int_equal(open_stream(f->a, 0, NOTE, 3000, &u), 0);
        assert_int_equal(rnl_piece(s, "12345678", 8), 0);
        assert_int_equal(rnl_piece(t, "abcdefgh", 8), 0);
        assert_int_equal(rnl_piece(u, "ABCDEFGH", 8), 0);
        assert_int_equal(rnl_end(t), 0);
        assert_int_equal(rnl_end(s), 0);
        assert_int_equal(rnl_end(u), 0);
        assert_int_equal(open_stream(f->a, 1, NOTE, 8, &s), 0);
        assert_int_equal(rnl_end(s), 0);
        drain(f->b);
        drain(f->c);
        drain(f->a);
        assert_int_equal(f->in.count, 4);
        f->in.count = 0;
    }
}

/* ---- when bytes become visible ---- */

static void make_visible(struct fixture *f, unsigned how)
{
    rnl_stream *t;
    switch (how) {
    case 0:
        assert_true(rnl_extract(f->a, SIZE_MAX) >= 0);
        break;
    case 1:
        assert_int_equal(rnl_extract(f->a, 0), 0);
        break;
    case 2:
        assert_int_equal(rnl_wait(f->a, 0), RNL_TIMED_OUT);
        break;
    case 3:
        assert_int_equal(rnl_flush(f->a), 0);
        break;
    default:
        assert_int_equal(open_stream(f->a, 2, NOTE, 8, &t), 0);
        assert_int_equal(rnl_end(t), 0);
        break;
    }
}

static void composed_bytes_are_visible_at_the_next_call(void **state)
{
    static const size_t bounds[] = {9, 48, 56, 57, 3000, 200000};
    struct fixture *f = *state;
    struct watch w = {0};
    assert_int_equal(rnl_handler_stream(f->b, OTHER, watcher, &w), OTHER);
    for (unsigned how = 0; how < 5; how++) {
        for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
            rnl_stream *s;
            w.done = 0;
            assert_int_equal(open_stream(f->a, 1, OTHER, bounds[i], &s), 0);
            for (size_t at = 1; at <= 3; at++) {
                assert_int_equal(rnl_piece(s, "x", 1), 0);
                make_visible(f, how);
                assert_int_equal(rnl_extract(f->b, SIZE_MAX), 1);
                assert_int_equal(w.seen, at);
                assert_int_equal(w.done, 0);
            }
            assert_int_equal(rnl_piece(s, test_pattern(0, 0), bounds[i] - 4), 0);
            assert_int_equal(rnl_end(s), 0);
            drain(f->b);
            assert_int_equal(w.seen, bounds[i] - 1);
            assert_int_equal(w.done, 1);
        }
        drain(f->c);
    }
}

static void a_full_packet_is_visible_without_a_call(void **state)
{
    struct fixture *f = *state;
    struct watch w = {0};
    rnl_stream *s;
    assert_int_equal(rnl_handler_stream(f->b, OTHER, watcher, &w), OTHER);
    assert_int_equal(open_stream(f->a, 1, OTHER, 200000, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(0, 0), 100000), 0);
    assert_true(rnl_extract(f->b, SIZE_MAX) >= 65536);
    assert_true(w.seen >= 65536 && !w.done);
    assert_int_equal(rnl_end(s), 0);
    drain(f->b);
    assert_int_equal(w.seen, 100000);
    assert_int_equal(w.done, 1);
}

/* 64 KiB are composed and taken at the same time in four pieces, not in two, also behind a header. */
static void a_header_makes_no_pieces_longer(void **state)
{
    enum { HEADER = 24, BYTES = (64 << 10) + HEADER, FIRST = 17 << 10 };
    struct fixture *f = *state;
    struct watch w = {0};
    rnl_stream *s;
    assert_int_equal(rnl_handler_stream(f->b, OTHER, watcher, &w), OTHER);
    assert_int_equal(open_stream(f->a, 1, OTHER, BYTES, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(0, 0), HEADER), 0);
    assert_int_equal(rnl_piece(s, test_pattern(0, 0), FIRST), 0);
    assert_true(rnl_extract(f->b, SIZE_MAX) >= 16 << 10);
    assert_true(w.seen >= 16 << 10 && !w.done);
    assert_int_equal(rnl_piece(s, test_pattern(0, 0), BYTES - HEADER - FIRST), 0);
    assert_int_equal(rnl_end(s), 0);
    drain(f->b);
    assert_int_equal(w.seen, BYTES);
    assert_int_equal(w.done, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_short_send_says_what_is_wrong),
        TEST(a_begin_says_what_is_wrong),
        TEST(a_piece_past_the_bound_is_refused_and_the_stream_goes_on),
        TEST(a_stream_is_refused_after_its_end),
        TEST(no_room_outside_handlers_says_to_extract),
        TEST(a_send_gives_up_when_its_time_has_passed),
        TEST(a_send_behind_queued_messages_gives_up_too),
        TEST(what_timed_out_of_a_message_is_continued_or_given_up),
        TEST(one_message_per_peer_is_open_at_a_time),
        TEST(composed_bytes_are_visible_at_the_next_call),
        TEST(a_full_packet_is_visible_without_a_call),
        TEST(a_header_makes_no_pieces_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
