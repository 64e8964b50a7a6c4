/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a program may ask without taking in or sending anything (runnel/adapter.h). */
#include "stream/three.h"
#include "support/seam.h"

#include <poll.h>
#include <stdio.h>

#include <unistd.h>

#include "runnel/adapter.h"

enum { ASK = 3, SIZED = 4 };

/* ---- rnl_length ---- */

struct sized { /* what a handler saw of the length of its message: first, and when it had received `after` bytes */
    size_t first, then, received, after;
    int exact, then_exact, count, status, answer;
};

static int sized(rnl_stream *s, unsigned peer, void *ctx)
{
    struct sized *z = ctx;
    char byte;
    (void)peer;
    z->first = rnl_length(s, &z->exact);
    TEST_MUST(rnl_length(s, NULL) == z->first);
    for (z->received = 0; z->received < z->after && rnl_receive(s, &byte, 1) == 0; z->received++)
        ;
    z->then = rnl_length(s, &z->then_exact);
    while ((z->status = rnl_receive(s, &byte, 1)) == 0)
        z->received++;
    if (z->answer)
        TEST_MUST(rnl_reply(s, SIZED, test_pattern(3, 0), (size_t)z->answer) == 0);
    z->count++;
    return RNL_DONE;
}

static void a_message_has_an_exact_length_when_its_end_is_here(void **state)
{
    static const size_t lengths[] = {0, 1, 8, 48, 56, 57, 64, 1000, 16384, 16385, 100000, 262144};
    struct fixture *f = *state;
    struct sized z = {0};
    assert_int_equal(rnl_handler_stream(f->b, SIZED, sized, &z), SIZED);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t more = 0; more < 2; more++) { /* sent as announced, and shorter */
            const struct rnl_message b = {
                .peer = 1, .handler = SIZED, .bound = lengths[i] + more, .answer = 0, .flags = RNL_NO_WAIT};
            rnl_stream *s;
            test_wires_settle();
            assert_int_equal(rnl_begin(f->a, &b, &s), 0);
            assert_int_equal(rnl_piece(s, test_pattern(i, 0), lengths[i]), 0);
            assert_int_equal(rnl_end(s), 0);
            z = (struct sized){.after = lengths[i]};
            drain(f->b);
            assert_int_equal(z.count, 1);
            assert_int_equal(z.exact, lengths[i] <= 16384);
            assert_int_equal(z.first, z.exact ? lengths[i] : lengths[i] + more);
            assert_int_equal(z.then, lengths[i]);
            assert_int_equal(z.then_exact, 1);
            assert_int_equal(z.received, lengths[i]);
        }
    }
    z = (struct sized){0};
    for (unsigned i = 0; i < 20; i++) /* of several in one cell each knows its own */
        assert_int_equal(rnl_send(f->a, 1, SIZED, test_pattern(i, 0), i % 3), 0);
    for (unsigned i = 0; i < 10 && z.count < 20; i++)
        drain(f->b);
    assert_int_equal(z.count, 20);
    assert_int_equal(z.first, 19 % 3);
}

static void an_open_message_has_its_bound_until_it_is_ended(void **state)
{
    struct fixture *f = *state;
    struct sized z = {.after = 100};
    rnl_stream *s;
    assert_int_equal(rnl_handler_stream(f->b, SIZED, sized, &z), SIZED);
    assert_int_equal(open_stream(f->a, 1, SIZED, 1000, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 100), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    drain(f->b);
    assert_int_equal(z.first, 1000);
    assert_int_equal(z.exact, 0);
    assert_int_equal(z.then, 1000);
    assert_int_equal(z.then_exact, 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 100), 60), 0);
    assert_int_equal(rnl_end(s), 0);
    drain(f->b);
    assert_int_equal(z.count, 1);
    assert_int_equal(z.received, 160);

    z = (struct sized){.after = 200};
    assert_int_equal(open_stream(f->a, 1, SIZED, 1000, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 100), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    drain(f->b);
    assert_int_equal(z.first, 1000);
    assert_int_equal(rnl_piece(s, test_pattern(1, 100), 150), 0);
    assert_int_equal(rnl_end(s), 0);
    drain(f->b);
    assert_int_equal(z.then, 250); /* its end came while the handler was suspended */
    assert_int_equal(z.then_exact, 1);

    z = (struct sized){.after = 1000}; /* no more can come, though it has not been ended */
    assert_int_equal(open_stream(f->a, 1, SIZED, 1000, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 1000), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    drain(f->b);
    assert_int_equal(z.first, 1000);
    assert_int_equal(z.exact, 1);
    assert_int_equal(rnl_end(s), 0);
    drain(f->b);
    assert_int_equal(z.count, 1);
}

static void a_message_in_chunks_has_a_length_too(void **state)
{
    struct fixture *f = *state;
    struct sized z = {.after = (1 << 20) - 77};
    const struct rnl_message b = {.peer = 1, .handler = SIZED, .bound = 1 << 20};
    const struct rnl_buffer piece = {test_pattern(1, 0), (1 << 20) - 77};
    assert_int_equal(rnl_handler_stream(f->b, SIZED, sized, &z), SIZED);
    assert_int_equal(rnl_post(f->a, &b, &piece, 1, NULL, NULL), 0);
    for (unsigned i = 0; i < 200 && z.count == 0; i++) {
        drain(f->b);
        drain(f->a);
    }
    assert_int_equal(z.count, 1);
    assert_int_equal(z.first, 1 << 20);
    assert_int_equal(z.exact, 0);
    assert_int_equal(z.received, (1 << 20) - 77);
}

static void requests_and_replies_have_a_length_without_what_the_library_adds(void **state)
{
    static const size_t lengths[] = {0, 1, 40, 48, 49, 56, 57, 5000};
    struct fixture *f = *state;
    struct sized asked = {0}, answered = {0};
    assert_int_equal(rnl_handler_stream(f->b, ASK, sized, &asked), ASK);
    assert_int_equal(rnl_handler_stream(f->a, SIZED, sized, &answered), SIZED);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const struct rnl_message b = {
            .peer = 1, .handler = ASK, .bound = lengths[i], .answer = 5000, .flags = RNL_NO_WAIT};
        rnl_stream *s;
        asked = (struct sized){.answer = (int)lengths[i]};
        answered = (struct sized){0};
        test_wires_settle();
        assert_int_equal(rnl_begin(f->a, &b, &s), 0);
        assert_int_equal(rnl_piece(s, test_pattern(i, 0), lengths[i]), 0);
        assert_int_equal(rnl_end(s), 0);
        drain(f->b);
        drain(f->a);
        assert_int_equal(asked.first, lengths[i]);
        assert_int_equal(asked.exact, 1);
        assert_int_equal(asked.count, 1);
        assert_int_equal(answered.count, lengths[i] ? 1 : 0);
        assert_int_equal(answered.first, lengths[i]);
    }
}

static void a_message_that_is_given_up_has_no_exact_length(void **state)
{
    struct fixture *f = *state;
    struct sized z = {.after = 500};
    rnl_stream *s;
    assert_int_equal(rnl_handler_stream(f->b, SIZED, sized, &z), SIZED);
    assert_int_equal(open_stream(f->a, 1, SIZED, 1000, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 100), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    drain(f->b);
    assert_int_equal(rnl_abort(s), 0);
    drain(f->b);
    assert_int_equal(z.count, 1);
    assert_int_equal(z.status, RNL_ERR_ABORTED);
    assert_int_equal(z.then, 1000);
    assert_int_equal(z.then_exact, 0);
}

/* ---- rnl_room ---- */

static struct rnl_room_info room(rnl_endpoint *ep, unsigned peer)
{
    struct rnl_room_info r = {.size = sizeof r};
    test_wires_settle();
    assert_int_equal(rnl_room(ep, peer, &r), 0);
    return r;
}

static int try_bound(rnl_endpoint *ep, size_t bound, rnl_stream **s)
{
    const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = bound, .flags = RNL_NO_WAIT};
    return rnl_begin(ep, &b, s);
}

/* What is told to fit fits, and no byte more. Returns the bits of what was in the way at times. */
static uint32_t fill_and_compare(struct fixture *f)
{
    unsigned full = 0, rooms = 0;
    uint32_t lacks = 0;
    struct test_random r = test_random_of(5, 5);
    for (unsigned i = 0; i < 3000; i++) {
        rnl_stream *s;
        struct rnl_room_info info = room(f->a, 1);
        assert_true(info.grant <= info.window);
        if (info.lacks) {
            assert_int_equal(info.bound, 0);
            assert_true(info.lacks == RNL_ROOM_RING || info.lacks == RNL_ROOM_GRANT);
            assert_int_equal(try_bound(f->a, 0, &s), RNL_NO_ROOM);
            lacks |= info.lacks;
            full++;
        } else {
            assert_true(info.messages > 0);
            if (info.bound < (1 << 19)) {
                int status = try_bound(f->a, info.bound + 1, &s);
                assert_true(status == RNL_NO_ROOM || status == RNL_ERR_TOO_LONG);
            }
            assert_int_equal(try_bound(f->a, info.bound, &s), 0);
            assert_int_equal(rnl_abort(s), 0);
            rooms++;
            size_t n = test_random_below(&r, 3) ? test_random_below(&r, 60) : test_random_below(&r, 200000);
            n = n < info.bound ? n : info.bound;
            assert_int_equal(try_bound(f->a, n, &s), 0);
            assert_int_equal(rnl_piece(s, test_pattern(i, 0), n), 0);
            assert_int_equal(rnl_end(s), 0);
        }
        if (test_random_below(&r, 12) == 0 || (info.lacks && test_random_below(&r, 3) == 0)) {
            f->in.count = 0;
            (void)!rnl_extract(f->b, test_random_below(&r, 2) ? SIZE_MAX : test_random_below(&r, 300000));
        }
        if (test_random_below(&r, 5) == 0)
            (void)!rnl_extract(f->a, SIZE_MAX);
    }
    assert_true(full > 20 && rooms > 100);
    f->in.count = 0;
    drain(f->b);
    return lacks;
}

static void what_is_told_to_fit_fits_and_no_more(void **state)
{
    assert_true(fill_and_compare(*state) & RNL_ROOM_RING);
}

static void nor_where_the_grant_is_small(void **state)
{
    const struct rnl_options opt = {.size = sizeof opt, .receive_budget = 3 * 2 * 128 * 64};
    (void)state;
    struct fixture f = {.echoes = 0};
    test_hub_open(&f.h, 3, &opt);
    f.a = f.h.ep[0], f.b = f.h.ep[1], f.c = f.h.ep[2];
    for (unsigned i = 0; i < 3; i++)
        TEST_MUST(rnl_handler_stream(f.h.ep[i], NOTE, inbox_stream, &f.in) == NOTE);
    acquaint(&f.h);
    assert_true(fill_and_compare(&f) & RNL_ROOM_GRANT);
    assert_int_equal(test_hub_close(&f.h), 0);
    inbox_free(&f.in);
}

static void room_says_what_is_in_the_way(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s;
    struct rnl_room_info info = {.size = 3};
    assert_int_equal(rnl_room(f->a, 1, &info), RNL_ERR_ARG);
    SAYS(RNL_ERR_ARG, "3", "sizeof");
    info.size = sizeof info;
    assert_int_equal(rnl_room(f->a, 3, &info), RNL_ERR_RANK);
    assert_int_equal(room(f->a, 1).lacks, 0);
    assert_int_equal(open_stream(f->a, 1, NOTE, 8, &s), 0); /* on the fast path */
    assert_int_equal(room(f->a, 1).lacks, RNL_ROOM_OPEN);
    assert_int_equal(room(f->a, 2).lacks, 0);
    assert_int_equal(rnl_piece(s, "12345678", 8), 0); /* it is still the same message */
    assert_int_equal(rnl_end(s), 0);
    assert_int_equal(open_stream(f->a, 1, NOTE, 1000, &s), 0);
    assert_int_equal(room(f->a, 1).lacks, RNL_ROOM_OPEN);
    assert_int_equal(rnl_abort(s), 0);
    assert_int_equal(room(f->a, 1).lacks, 0);
    const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 3 << 20};
    const struct rnl_buffer piece = {test_pattern(1, 0), 3 << 20};
    assert_int_equal(rnl_post(f->a, &b, &piece, 1, NULL, NULL), 0);
    assert_true(room(f->a, 1).lacks & RNL_ROOM_QUEUED);
    for (unsigned i = 0; i < 100; i++) {
        drain(f->b);
        drain(f->a);
    }
    assert_int_equal(room(f->a, 1).lacks, 0);
}

struct kept_streams {
    rnl_kept *kept[128];
    unsigned count;
};
static int keeps(rnl_stream *s, unsigned peer, void *ctx)
{
    struct kept_streams *k = ctx;
    (void)peer;
    return rnl_keep(s, &k->kept[k->count]) == 0 ? (k->count++, RNL_KEEP) : RNL_DONE;
}

static void what_the_peer_keeps_shrinks_the_window_and_who_keeps_can_count_it(void **state)
{
    struct fixture *f = *state;
    struct kept_streams k = {.count = 0};
    assert_int_equal(rnl_handler_stream(f->b, SIZED, keeps, &k), SIZED);
    size_t window = room(f->a, 1).window;
    assert_int_equal(room(f->b, 0).kept, 0);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(post_card(f->a, 1, SIZED, test_pattern(1, 0), 64 * 100), 0);
        drain(f->b);
        drain(f->a);
    }
    assert_int_equal(k.count, 4);
    assert_int_equal(room(f->b, 0).kept, 4 * 101 * 64);
    assert_int_equal(room(f->b, 2).kept, 0);
    for (unsigned i = 0; i < 100; i++) { /* what was read is told now and then */
        assert_int_equal(rnl_wait(f->b, 0), RNL_TIMED_OUT);
        drain(f->a);
    }
    assert_int_equal(room(f->a, 1).window, window - 4 * 101 * 64);
    for (unsigned i = 0; i < 4; i++)
        rnl_kept_free(k.kept[i]);
    drain(f->b);
    drain(f->a);
    assert_int_equal(room(f->a, 1).window, window);
    assert_int_equal(room(f->b, 0).kept, 0);
}

/* ---- rnl_look, rnl_arm, RNL_NO_YIELD ---- */

static int look(rnl_endpoint *ep)
{
    test_wires_settle();
    return rnl_look(ep);
}

static void a_look_finds_what_an_extract_would_and_runs_nothing(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s;
    for (unsigned i = 0; i < 10; i++)
        (void)!look(f->b);
    assert_int_equal(look(f->b), 0);
    assert_int_equal(post_card(f->a, 1, NOTE, "x", 1), 0);
    assert_int_equal(look(f->b), 1);
    assert_int_equal(look(f->b), 1); /* it takes nothing in */
    assert_int_equal(f->in.started, 0);
    drain(f->b);
    assert_int_equal(f->in.count, 1);
    assert_int_equal(look(f->b), 0);
    assert_int_equal(look(f->c), 0);
    assert_int_equal(post_card(f->a, 1, NOTE, test_pattern(1, 0), 100000), 0);
    assert_int_equal(look(f->b), 1);
    drain(f->b);
    assert_int_equal(look(f->b), 0);
    assert_int_equal(open_stream(f->a, 1, NOTE, 1000, &s), 0); /* a handler that waits for more is nothing to take in */
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 10), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    drain(f->b);
    assert_int_equal(look(f->b), 0);
    assert_int_equal(rnl_end(s), 0);
    assert_int_equal(look(f->b), 1);
    drain(f->b);
    assert_int_equal(rnl_send(f->a, 1, OTHER, "x", 1), 0); /* nor is one without a handler */
    drain(f->b);
    assert_int_equal(look(f->b), 0);
    assert_int_equal(rnl_handler_stream(f->b, OTHER, inbox_stream, &f->in), OTHER);
    assert_int_equal(look(f->b), 1);
    drain(f->b);
    assert_int_equal(f->in.count, 4);
}

static int readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, 0);
    assert_true(n >= 0);
    return n;
}

/* Arms ep, and returns whether its descriptor is not readable then. Between hosts an acknowledgement may come at any
 * time, even between two lines of this function, and what it makes readable is looked at again. */
static bool is_armed(rnl_endpoint *ep, int *fd)
{
    for (unsigned i = 0; i < 10; i++) {
        test_wires_settle();
        if (rnl_arm(ep, fd) == 0 && *fd >= 0 && !readable(*fd))
            return true;
        if (!getenv("RNL_TEST_REMOTE") && i > 0)
            return false;
        drain(ep);
    }
    return false;
}

static void arming_says_whether_something_came_meanwhile(void **state)
{
    struct fixture *f = *state;
    int fd = -1, other = -1;
    assert_true(is_armed(f->b, &fd));
    assert_int_equal(post_card(f->a, 1, NOTE, "x", 1), 0);
    test_wires_settle();
    assert_int_equal(readable(fd), 1);
    assert_int_equal(rnl_arm(f->b, &other), 1); /* it has come */
    assert_int_equal(other, fd);
    assert_int_equal(f->in.started, 0);
    drain(f->b);
    assert_int_equal(f->in.count, 1);
    assert_true(is_armed(f->b, &fd));
}

/* Extracts that find nothing arm nothing, but for rnl_fd. */
static void only_who_asked_for_it_is_armed(void **state)
{
    struct fixture *f = *state;
    int fd = -1;
    if (getenv("RNL_TEST_REMOTE")) {
        puts("skip: bells are for peers of one host");
        skip();
    }
    assert_int_equal(rnl_arm(f->b, &fd), 0);
    drain(f->b);
    assert_int_equal(readable(fd), 0); /* an extract that finds nothing changes nothing */
    assert_int_equal(post_card(f->a, 1, NOTE, "x", 1), 0);
    drain(f->b);
    uint64_t rung = rnl_get_counters(f->a)->bells_rung;
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(post_card(f->a, 1, NOTE, "x", 1), 0);
        drain(f->b);
    }
    assert_int_equal(rnl_get_counters(f->a)->bells_rung, rung);
    assert_int_equal(rnl_fd(f->b), fd);
    for (unsigned i = 0; i < 10; i++) {
        drain(f->b);
        assert_int_equal(post_card(f->a, 1, NOTE, "x", 1), 0);
    }
    assert_true(rnl_get_counters(f->a)->bells_rung > rung);
}

static int arms(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    int fd = -1;
    (void)s, (void)peer;
    TEST_MUST(rnl_arm(f->b, &fd) == RNL_ERR_CONTEXT && fd == -1);
    TEST_MUST(rnl_look(f->b) >= 0);
    f->echoes++;
    return RNL_DONE;
}

static void handlers_look_but_do_not_arm(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(rnl_handler_stream(f->b, OTHER, arms, f), OTHER);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(rnl_send(f->a, 1, OTHER, "x", 1), 0);
    drain(f->b);
    assert_int_equal(f->echoes, 5);
}

static uint64_t yields_of_empty_extracts(uint32_t flags, int looks)
{
    const struct rnl_options opt = {.size = sizeof opt, .flags = flags};
    struct test_hub h;
    test_hub_open(&h, 2, &opt);
    assert_int_equal(rnl_extract(h.ep[0], SIZE_MAX), 0); /* what comes with the start */
    uint64_t before = rnl_get_counters(h.ep[0])->yields;
    for (unsigned i = 0; i < 20000; i++)
        assert_int_equal(looks ? rnl_look(h.ep[0]) : rnl_extract(h.ep[0], SIZE_MAX), 0);
    uint64_t yields = rnl_get_counters(h.ep[0])->yields - before;
    assert_int_equal(test_hub_close(&h), 0);
    return yields;
}

static void who_asked_for_it_never_yields_in_an_extract(void **state)
{
    (void)state;
    if (getenv("RNL_TEST_REMOTE")) {
        puts("skip: between hosts a poll of the network is the pause");
        skip();
    }
    assert_true(yields_of_empty_extracts(0, 0) > 0);
    assert_int_equal(yields_of_empty_extracts(RNL_NO_YIELD, 0), 0);
    assert_int_equal(yields_of_empty_extracts(RNL_NO_YIELD | RNL_SHARED, 0), 0);
    assert_int_equal(yields_of_empty_extracts(0, 1), 0);
}

/* ---- rnl_job_id, rnl_peer_place ---- */

static void the_identity_of_a_job_is_the_same_in_all_its_ranks_and_in_no_other_job(void **state)
{
    struct fixture *f = *state;
    unsigned char a[16], b[16], other[16];
    struct test_hub h;
    assert_int_equal(rnl_job_id(f->a, a), 0);
    assert_int_equal(rnl_job_id(f->b, b), 0);
    assert_memory_equal(a, b, 16);
    size_t length;
    const unsigned char *key = test_seam_job_key(f->a, &length);
    for (unsigned i = 0; i <= 12; i++) /* No part of the key is in it. */
        assert_null(memmem(key, length, a + i, 4));
    if (getenv("RNL_TEST_REMOTE")) /* the wires give all the same key */
        return;
    test_hub_open(&h, 2, NULL);
    assert_int_equal(rnl_job_id(h.ep[0], other), 0);
    assert_memory_not_equal(a, other, 16);
    assert_int_equal(test_hub_close(&h), 0);
}

static void peers_are_in_this_process_or_on_another_host(void **state)
{
    struct fixture *f = *state;
    struct rnl_place place = {.size = 3};
    assert_int_equal(rnl_peer_place(f->a, 1, &place), RNL_ERR_ARG);
    SAYS(RNL_ERR_ARG, "3", "sizeof");
    place.size = sizeof place;
    assert_int_equal(rnl_peer_place(f->a, 3, &place), RNL_ERR_RANK);
    for (unsigned i = 0; i < 3; i++) {
        bool here = i == 0 || !getenv("RNL_TEST_REMOTE");
        assert_int_equal(rnl_peer_place(f->a, i, &place), 0);
        assert_int_equal(place.where, here ? RNL_IN_PROCESS : RNL_ON_OTHER_HOST);
        assert_int_equal(place.pid, here ? getpid() : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_message_has_an_exact_length_when_its_end_is_here),
        TEST(an_open_message_has_its_bound_until_it_is_ended),
        TEST(a_message_in_chunks_has_a_length_too),
        TEST(requests_and_replies_have_a_length_without_what_the_library_adds),
        TEST(a_message_that_is_given_up_has_no_exact_length),
        TEST(what_is_told_to_fit_fits_and_no_more),
        cmocka_unit_test(nor_where_the_grant_is_small),
        TEST(room_says_what_is_in_the_way),
        TEST(what_the_peer_keeps_shrinks_the_window_and_who_keeps_can_count_it),
        TEST(a_look_finds_what_an_extract_would_and_runs_nothing),
        TEST(arming_says_whether_something_came_meanwhile),
        TEST(only_who_asked_for_it_is_armed),
        TEST(handlers_look_but_do_not_arm),
        TEST(the_identity_of_a_job_is_the_same_in_all_its_ranks_and_in_no_other_job),
        TEST(peers_are_in_this_process_or_on_another_host),
        cmocka_unit_test(who_asked_for_it_never_yields_in_an_extract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
