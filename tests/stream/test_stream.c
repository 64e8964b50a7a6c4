/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending and taking in: what runnel.h says of rnl_send, rnl_begin, rnl_piece, rnl_end, rnl_flush, rnl_extract,
 * rnl_receive, rnl_here. Two or three endpoints, one thread. */
#include "stream/inbox.h"

enum { NOTE = 1, OTHER = 2 };

struct fixture {
    struct test_hub h;
    rnl_endpoint *a, *b, *c;
    struct inbox in; /* of b and c */
    int echoes;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    test_hub_open(&f->h, 3, NULL);
    f->a = f->h.ep[0];
    f->b = f->h.ep[1];
    f->c = f->h.ep[2];
    for (unsigned i = 0; i < 3; i++)
        TEST_MUST(rnl_handler_stream(f->h.ep[i], NOTE, inbox_stream, &f->in) == NOTE);
    acquaint(&f->h);
    TEST_MUST(f->in.count == 9);
    f->in.count = f->in.started = 0;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int status = test_hub_close(&f->h);
    inbox_free(&f->in);
    free(f);
    return status;
}

/* ---- short messages ---- */

static void the_first_extract_finds_the_first_message(void **state)
{
    (void)state;
    struct test_hub h;
    struct inbox in = {0};
    test_hub_open(&h, 2, NULL);
    assert_int_equal(rnl_handler_stream(h.ep[1], NOTE, inbox_stream, &in), NOTE);
    assert_int_equal(rnl_send(h.ep[0], 1, NOTE, "hello", 5), 0);
    assert_int_equal(rnl_extract(h.ep[1], SIZE_MAX), 5);
    assert_int_equal(test_hub_close(&h), 0);
    inbox_free(&in);
}

static void every_short_length_arrives(void **state)
{
    struct fixture *f = *state;
    for (size_t n = 0; n <= RNL_SHORT_MAX; n++) {
        for (unsigned burst = 1; burst <= 9; burst += 4) {
            unsigned before = f->in.count;
            for (unsigned i = 0; i < burst; i++)
                assert_int_equal(rnl_send(f->a, 1, NOTE, test_pattern(n + i, 0), n), 0);
            assert_int_equal(rnl_extract(f->b, SIZE_MAX), n * burst);
            assert_int_equal(f->in.count, before + burst);
            assert_int_equal(f->in.got[before].n, n);
            assert_int_equal(f->in.got[before].peer, 0);
            assert_memory_equal(f->in.buf, test_pattern(n + burst - 1, 0), n);
            f->in.count = 0;
        }
    }
}

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

static void every_length_arrives_in_any_pieces(void **state)
{
    static const size_t lengths[] = {0,     1,     47,    48,     49,     55,     56,     57,     63,    64,    65,
                                     1000,  4095,  4096,  16383,  16384,  16385,  32767,  32768,  32769, 65535, 65536,
                                     65537, 98304, 99999, 131072, 262143, 262144, 262145, 524287, 524288};
    struct fixture *f = *state;
    static const size_t pieces[] = {1, 7, 64, 1000, 16384, 40000, 1 << 20};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
            size_t n = lengths[l], out = pieces[p], in = pieces[(p + 3) % 7];
            if (n / out > 20000 || n / in > 20000)
                continue;
            rnl_stream *s;
            f->in.piece = in;
            assert_int_equal(open_stream(f->a, 1, NOTE, n, &s), 0);
            for (size_t at = 0; at < n; at += out)
                assert_int_equal(rnl_piece(s, test_pattern(n, at), out < n - at ? out : n - at), 0);
            assert_int_equal(rnl_end(s), 0);
            assert_int_equal(rnl_extract(f->b, SIZE_MAX), n);
            assert_int_equal(f->in.count, 1);
            assert_int_equal(f->in.got[0].n, n);
            assert_memory_equal(f->in.buf, test_pattern(n, 0), n);
            f->in.count = 0;
        }
    }
}

static void fewer_bytes_than_announced_are_fine(void **state)
{
    static const size_t bounds[] = {1, 8, 48, 56, 57, 100, 5000, 70000, 300000, 524288};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        for (unsigned part = 0; part < 4; part++) {
            size_t n = bounds[i] * part / 4;
            rnl_stream *s;
            assert_int_equal(rnl_send(f->a, 1, NOTE, "before", 6), 0); /* an open line before it */
            assert_int_equal(open_stream(f->a, 1, NOTE, bounds[i], &s), 0);
            assert_int_equal(rnl_piece(s, test_pattern(i, 0), n), 0);
            assert_int_equal(rnl_end(s), 0);
            assert_int_equal(rnl_send(f->a, 1, NOTE, "after", 5), 0);
            drain(f->b);
            assert_int_equal(f->in.count, 3);
            assert_int_equal(f->in.got[0].n, 6);
            assert_int_equal(f->in.got[1].n, n);
            assert_int_equal(f->in.got[2].n, 5);
            f->in.count = 0;
        }
    }
}

static void a_shorter_message_finds_its_place_in_a_ring_of_any_fill(void **state)
{
    (void)state;
    for (unsigned fill = 180; fill < 240; fill++) { /* of 32 lines of 7 messages */
        struct test_hub h;
        struct inbox in = {0};
        rnl_stream *s;
        unsigned sent = 0;
        test_hub_open(&h, 2, NULL);
        assert_int_equal(rnl_handler_stream(h.ep[1], NOTE, inbox_stream, &in), NOTE);
        while (sent < fill && post_card(h.ep[0], 1, NOTE, test_pattern(sent, 0), 8) == 0)
            sent++;
        if (open_stream(h.ep[0], 1, NOTE, 8, &s) == 0) {
            assert_int_equal(rnl_piece(s, "1234", 4), 0);
            assert_int_equal(rnl_end(s), 0);
            sent++;
        }
        drain(h.ep[1]);
        assert_int_equal(in.count, sent);
        assert_int_equal(test_hub_close(&h), 0);
        inbox_free(&in);
    }
}

static void a_begin_says_what_is_wrong(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s = NULL;
    struct rnl_limits l;
    rnl_get_limits(f->a, &l);
    struct rnl_begin b = {.peer = 3, .handler = NOTE, .bound = 8, .flags = RNL_NO_WAIT};
    assert_int_equal(rnl_begin(f->a, &b, &s), RNL_ERR_RANK);
    b.peer = 1, b.handler = 65536;
    assert_int_equal(rnl_begin(f->a, &b, &s), RNL_ERR_HANDLER);
    b.handler = NOTE, b.answer = l.answer_max + 1;
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

static void one_message_per_peer_is_open_at_a_time(void **state)
{
    static const size_t bounds[] = {8, 3000};
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        rnl_stream *s, *t, *u;
        assert_int_equal(open_stream(f->a, 1, NOTE, bounds[i], &s), 0);
        assert_int_equal(open_stream(f->a, 1, NOTE, 8, &t), RNL_BUSY);
        assert_int_equal(open_stream(f->a, 1, NOTE, 3000, &t), RNL_BUSY);
        const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = 8}; /* not even one that may wait */
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

struct watch {
    size_t seen; /* bytes of the open message received */
    int done;
};

static int watcher(rnl_stream *s, unsigned peer, void *ctx)
{
    struct watch *w = ctx;
    char byte;
    (void)peer;
    w->seen = 0;
    while (rnl_receive(s, &byte, 1) == 0)
        w->seen++;
    w->done++;
    return RNL_DONE;
}

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

/* ---- receiving ---- */

static int greedy(rnl_stream *s, unsigned peer, void *ctx)
{
    char *buf = ctx;
    const void *view = NULL;
    (void)peer;
    TEST_MUST(rnl_here(s, &view) == 10 && memcmp(view, "0123456789", 10) == 0);
    TEST_MUST(rnl_receive(s, buf, 11) == RNL_ERR_PAST_END);
    TEST_MUST(buf[0] == 'x' && buf[10] == 'x'); /* nothing copied */
    TEST_MUST(rnl_receive(s, buf, SIZE_MAX) == RNL_ERR_PAST_END);
    TEST_MUST(rnl_receive(s, buf, 4) == 0);
    TEST_MUST(rnl_here(s, &view) == 6 && memcmp(view, "456789", 6) == 0);
    TEST_MUST(rnl_receive(s, buf, 7) == RNL_ERR_PAST_END);
    TEST_MUST(rnl_receive(s, buf + 4, 6) == 0);
    TEST_MUST(rnl_here(s, NULL) == 0);
    TEST_MUST(rnl_receive(s, buf, 0) == 0);
    TEST_MUST(rnl_receive(s, buf, 1) == RNL_ERR_PAST_END);
    return RNL_DONE;
}

static void receiving_past_the_end_copies_nothing(void **state)
{
    struct fixture *f = *state;
    char buf[16], bound[100] = "0123456789";
    rnl_stream *s;
    assert_int_equal(rnl_handler_stream(f->b, OTHER, greedy, buf), OTHER);
    for (unsigned how = 0; how < 3; how++) {
        memset(buf, 'x', sizeof buf);
        if (how == 0)
            assert_int_equal(rnl_send(f->a, 1, OTHER, bound, 10), 0);
        else if (how == 1)
            assert_int_equal(post_card(f->a, 1, OTHER, bound, 10), 0);
        else {
            assert_int_equal(open_stream(f->a, 1, OTHER, sizeof bound, &s), 0);
            assert_int_equal(rnl_piece(s, bound, 10), 0);
            assert_int_equal(rnl_end(s), 0);
        }
        assert_int_equal(rnl_extract(f->b, SIZE_MAX), 10);
        assert_memory_equal(buf, "0123456789", 10);
    }
}

static int lazy(rnl_stream *s, unsigned peer, void *ctx)
{
    unsigned char *buf = ctx;
    (void)peer;
    TEST_MUST(rnl_receive(s, buf, 3) == 0);
    return RNL_DONE;
}

static void what_a_handler_does_not_receive_is_dropped(void **state)
{
    static const size_t lengths[] = {5, 48, 100, 100000, 500000};
    struct fixture *f = *state;
    unsigned char buf[4] = "";
    assert_int_equal(rnl_handler_stream(f->b, OTHER, lazy, buf), OTHER);
    for (unsigned round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            assert_int_equal(post_card(f->a, 1, OTHER, test_pattern(i, 0), lengths[i]), 0);
            assert_int_equal(rnl_send(f->a, 1, NOTE, "next", 4), 0);
            drain(f->b);
            assert_memory_equal(buf, test_pattern(i, 0), 3);
            assert_memory_equal(f->in.buf, "next", 4);
        }
    }
    assert_int_equal(f->in.count, 100);
}

/* ---- taking in ---- */

static void a_byte_limit_is_rounded_up_to_a_packet(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(rnl_send(f->a, 1, NOTE, test_pattern(i, 0), 40), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(post_card(f->a, 1, NOTE, test_pattern(i, 0), 1000), 0);
    assert_int_equal(rnl_extract(f->b, 0), 0);
    assert_int_equal(f->in.count, 0);
    assert_int_equal(rnl_extract(f->b, 1), 40);
    assert_int_equal(rnl_extract(f->b, 40), 40);
    assert_int_equal(rnl_extract(f->b, 41), 80);
    assert_int_equal(f->in.count, 4);
    assert_int_equal(rnl_extract(f->b, 41), 1040);
    assert_int_equal(rnl_extract(f->b, 1000), 1000);
    assert_int_equal(rnl_extract(f->b, 0), 0);
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 1000);
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 0);
    assert_int_equal(f->in.count, 8);
}

static void messages_without_payload_are_counted_only(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(rnl_send(f->a, 1, NOTE, NULL, 0), 0);
    uint64_t before = rnl_get_counters(f->b)->messages_received;
    assert_int_equal(rnl_extract(f->b, 1), 0);
    assert_int_equal(rnl_get_counters(f->b)->messages_received, before + 20);
    assert_int_equal(f->in.count, 20);
}

static int echo_to_self(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    unsigned char buf[600];
    size_t n = rnl_here(s, NULL);
    TEST_MUST(rnl_receive(s, buf, n) == 0);
    if (f->echoes)
        TEST_MUST(post_card(f->a, peer, OTHER, buf, n) == 0);
    return RNL_DONE;
}

static void extracts_take_what_was_there(struct fixture *f, size_t length, unsigned there)
{
    const struct rnl_counters *c = rnl_get_counters(f->a);
    int bad = 0;
    f->echoes = 1;
    for (unsigned k = 0; k < there; k++)
        assert_int_equal(post_card(f->a, 0, OTHER, test_pattern(k, 0), length), 0);
    for (unsigned round = 0; round < 5; round++) {
        uint64_t before = c->messages_received;
        bad |= rnl_extract(f->a, SIZE_MAX) != (int64_t)(there * length) || c->messages_received - before != there;
    }
    f->echoes = 0;
    drain(f->a);
    if (bad)
        fail_msg("of %u messages of %zu bytes an extract takes more, or fewer", there, length);
}

static void an_extract_takes_what_was_there_and_no_more(void **state)
{
    static const size_t lengths[] = {0, 8, 30, 56, 100, 600};
    struct fixture *f = *state;
    assert_int_equal(rnl_handler_stream(f->a, OTHER, echo_to_self, f), OTHER);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (unsigned there = 1; there <= 8; there++)
            extracts_take_what_was_there(f, lengths[i], there);
}

static void quit_returns_after_that_handler(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(rnl_send(f->a, 1, NOTE, "12345678", 8), 0); /* in one line */
    assert_int_equal(post_card(f->a, 1, NOTE, test_pattern(1, 0), 1000), 0);
    assert_int_equal(rnl_send(f->c, 1, NOTE, "12345678", 8), 0);
    f->in.ending = RNL_QUIT;
    for (unsigned i = 1; i <= 5; i++) {
        assert_true(rnl_extract(f->b, SIZE_MAX) > 0);
        assert_int_equal(f->in.count, i);
    }
    f->in.ending = RNL_DONE;
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 0);
    /* of a handler that was suspended, too */
    rnl_stream *s;
    assert_int_equal(open_stream(f->a, 1, NOTE, 1000, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 500), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 500);
    assert_int_equal(rnl_piece(s, test_pattern(1, 500), 500), 0);
    assert_int_equal(rnl_end(s), 0);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "x", 1), 0);
    f->in.ending = RNL_QUIT;
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 500);
    assert_int_equal(f->in.count, 6);
    assert_int_equal(rnl_extract(f->b, SIZE_MAX), 1);
    f->in.ending = RNL_DONE;
}

static void peers_take_turns_when_the_limit_is_small(void **state)
{
    struct fixture *f = *state;
    unsigned from[3] = {0, 0, 0};
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(rnl_send(f->a, 1, NOTE, "12345678", 8), 0);
        assert_int_equal(rnl_send(f->c, 1, NOTE, "12345678", 8), 0);
    }
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(rnl_extract(f->b, 1), 8);
    for (unsigned i = 0; i < f->in.count; i++)
        from[f->in.got[i].peer]++;
    assert_int_equal(from[0], 4);
    assert_int_equal(from[2], 4);
    drain(f->b);
}

static void messages_of_all_kinds_keep_their_order(void **state)
{
    struct fixture *f = *state;
    struct test_random r = test_random_of(7, 7);
    uint64_t sent = 0, seen = 0;
    for (unsigned round = 0; round < 400; round++) {
        for (;;) {
            size_t n = 8 + test_random_size(&r, 40000, NULL, 0);
            unsigned char *buf = malloc(n);
            assert_non_null(buf);
            memset(buf, 0, n);
            memcpy(buf, &sent, 8);
            int status = n <= RNL_SHORT_MAX ? 0 : 1;
            if (status == 0) { /* rnl_send would wait */
                rnl_stream *s;
                status = open_stream(f->a, 1, NOTE, n, &s);
                if (status == 0) {
                    assert_int_equal(rnl_piece(s, buf, n), 0);
                    assert_int_equal(rnl_end(s), 0);
                }
            } else {
                status = post_card(f->a, 1, NOTE, buf, n);
            }
            free(buf);
            if (status == RNL_NO_ROOM)
                break;
            assert_int_equal(status, 0);
            sent++;
            if (test_random_one_in(&r, 10))
                break;
        }
        assert_true(rnl_extract(f->b, test_random_size(&r, 100000, NULL, 0)) >= 0);
        for (unsigned i = 0; i < f->in.count; i++)
            assert_int_equal(f->in.got[i].first, seen++);
        f->in.count = 0;
    }
    drain(f->b);
    assert_int_equal(seen + f->in.count, sent);
    assert_true(rnl_get_counters(f->a)->no_room > 0);
}

/* A rank that sent to several peers and then waits is looked at when the job hangs. */
static void who_waits_has_counted_what_it_sent(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(rnl_wait(f->a, 0), RNL_TIMED_OUT); /* so is what set_up sent */
    uint64_t before = rnl_get_counters(f->a)->messages_sent;
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(rnl_send(f->a, 1 + i % 2, NOTE, "12345", 5), 0);
    assert_int_equal(rnl_wait(f->a, 0), RNL_TIMED_OUT);
    assert_int_equal(rnl_get_counters(f->a)->messages_sent, before + 6);
    drain(f->b);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_extract_finds_the_first_message),
        TEST(every_short_length_arrives),
        TEST(a_short_send_says_what_is_wrong),
        TEST(every_length_arrives_in_any_pieces),
        TEST(fewer_bytes_than_announced_are_fine),
        cmocka_unit_test(a_shorter_message_finds_its_place_in_a_ring_of_any_fill),
        TEST(a_begin_says_what_is_wrong),
        TEST(a_piece_past_the_bound_is_refused_and_the_stream_goes_on),
        TEST(a_stream_is_refused_after_its_end),
        TEST(no_room_outside_handlers_says_to_extract),
        TEST(one_message_per_peer_is_open_at_a_time),
        TEST(composed_bytes_are_visible_at_the_next_call),
        TEST(a_full_packet_is_visible_without_a_call),
        TEST(receiving_past_the_end_copies_nothing),
        TEST(what_a_handler_does_not_receive_is_dropped),
        TEST(a_byte_limit_is_rounded_up_to_a_packet),
        TEST(messages_without_payload_are_counted_only),
        TEST(an_extract_takes_what_was_there_and_no_more),
        TEST(quit_returns_after_that_handler),
        TEST(peers_take_turns_when_the_limit_is_small),
        TEST(messages_of_all_kinds_keep_their_order),
        TEST(who_waits_has_counted_what_it_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
