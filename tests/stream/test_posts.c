/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Posted messages: queued where a send would wait, in order with streams, within a budget. */
#include "stream/inbox.h"

#include "support/seam.h"

#include "runnel/adapter.h"

enum { NOTE = 1, WHOLE = 2, POSTER = 3 };

struct fixture {
    INBOX_FIXTURE;
    int done, status;
    unsigned order[64]; /* of the done calls */
    unsigned char *buf;
};

struct card { /* the argument of one post */
    struct fixture *f;
    unsigned number;
    int runs;
};

static void done(void *arg, int status)
{
    struct fixture *f = arg;
    f->done++;
    f->status = status;
}

static void handlers(rnl_endpoint *ep, void *fixture)
{
    struct fixture *f = fixture;
    TEST_MUST(rnl_handler_stream(ep, NOTE, inbox_stream, &f->in) == NOTE);
    TEST_MUST(rnl_handler_whole(ep, WHOLE, inbox_whole, &f->in, 0) == WHOLE);
}

static int set_up(void **state)
{
    return inbox_open(state, sizeof(struct fixture), 3, NULL, handlers);
}

static int tear_down(void **state)
{
    unsigned char *buf = ((struct fixture *)*state)->buf;
    const int status = inbox_close(state);
    free(buf);
    return status;
}

static int post(rnl_endpoint *ep, unsigned peer, const void *buf, size_t n, void (*f)(void *, int), void *arg)
{
    const struct rnl_message b = {.peer = peer, .handler = NOTE, .bound = n};
    const struct rnl_buffer piece = {buf, n};
    return rnl_post(ep, &b, &piece, 1, f, arg);
}

static void flow(struct fixture *f, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        drain(f->b);
        drain(f->a);
    }
}

static void a_post_with_room_is_sent_at_once_and_done_at_the_next_extract(void **state)
{
    static const size_t lengths[] = {0, 1, 56, 57, 4000, 262144};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        unsigned char *buf = malloc(lengths[i] + 1);
        assert_non_null(buf);
        memcpy(buf, test_pattern(i, 0), lengths[i]);
        assert_int_equal(post(f->a, 1, buf, lengths[i], done, f), 0);
        assert_int_equal(f->done, i);
        assert_int_equal(rnl_extract(f->a, 0), 0);
        memset(buf, 0, lengths[i]); /* ours again */
        free(buf);
        assert_int_equal(f->done, i + 1);
        assert_int_equal(f->status, 0);
        drain(f->b);
        assert_int_equal(f->in.count, i + 1);
        assert_memory_equal(f->in.buf, test_pattern(i, 0), lengths[i]);
    }
    assert_int_equal(rnl_get_counters(f->a)->posts_queued, 0);
    assert_int_equal(post(f->a, 1, "x", 1, NULL, NULL), 0); /* who does not want to know */
    drain(f->b);
}

static void a_half_sent_post_is_no_open_message_of_the_programs(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s;
    assert_int_equal(post(f->a, 1, test_pattern(1, 0), 3 << 20, done, f), 0);
    assert_int_equal(f->done, 0);
    assert_int_equal(open_stream(f->a, 1, NOTE, 8, &s), RNL_NO_ROOM); /* not RNL_BUSY: the program has none open */
    assert_int_equal(post(f->a, 1, "behind", 6, done, f), 0);
    flow(f, 100);
    assert_int_equal(f->done, 2);
    assert_int_equal(f->in.count, 2);
    assert_int_equal(f->in.got[0].n, 3 << 20);
    assert_int_equal(f->in.got[1].n, 6);
}

static void the_queue_has_a_budget(void **state)
{
    struct fixture *f = *state;
    struct rnl_limits l;
    rnl_get_limits(f->a, &l);
    size_t n = 3 << 20, sent = 0;
    int status;
    while ((status = post(f->a, 1, test_pattern(1, 0), n, done, f)) == 0) {
        sent++;
        assert_true(sent < 100);
    }
    assert_int_equal(status, RNL_NO_ROOM);
    assert_true(sent * n <= l.post_budget && (sent + 1) * n > l.post_budget);
    assert_int_equal(f->done, 0);
    f->in.count = 0;
    while (f->in.count < 1)
        flow(f, 1);
    assert_int_equal(post(f->a, 1, test_pattern(1, 0), n, done, f), 0); /* room again */
    flow(f, 500);
    assert_int_equal(f->in.count, sent + 1);
    assert_int_equal(f->done, sent + 1); /* the refused one is not done */
}

static void a_post_says_what_is_wrong(void **state)
{
    struct fixture *f = *state;
    struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 10};
    const struct rnl_buffer piece[2] = {{"12345", 5}, {"123456", 6}};
    assert_int_equal(rnl_post(f->a, &b, piece, 2, done, f), RNL_ERR_PAST_END);
    SAYS(RNL_ERR_PAST_END, "piece 1", "10");
    b.bound = 11, b.peer = 9;
    assert_int_equal(rnl_post(f->a, &b, piece, 2, done, f), RNL_ERR_RANK);
    b.peer = 1, b.handler = 70000;
    assert_int_equal(rnl_post(f->a, &b, piece, 2, done, f), RNL_ERR_HANDLER);
    b.handler = NOTE, b.answer = 65537;
    assert_int_equal(rnl_post(f->a, &b, piece, 2, done, f), RNL_ERR_TOO_LONG);
    assert_int_equal(f->done, 0);
    flow(f, 2);
    assert_int_equal(f->in.count, 0);
}

/* 100 + (SIZE_MAX - 50) + 51 is 100. */
static void lengths_that_overflow_are_past_the_end(void **state)
{
    struct fixture *f = *state;
    const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 200};
    const struct rnl_buffer piece[3] = {{test_pattern(1, 0), 100}, {"", SIZE_MAX - 50}, {"", 51}};
    assert_int_equal(rnl_post(f->a, &b, piece, 3, done, f), RNL_ERR_PAST_END);
    flow(f, 2);
    assert_int_equal(f->done, 0);
    assert_int_equal(f->in.count, 0);
}

static void small_posts_use_up_the_budget_too(void **state)
{
    struct fixture *f = *state;
    unsigned queued = 0;
    rnl_stream *s;
    assert_int_equal(open_stream(f->a, 1, NOTE, 8, &s), 0); /* nothing goes past it */
    while (queued < 1000000 && post(f->a, 1, "", 0, done, f) == 0)
        queued++;
    assert_in_range(queued, 1000, 500000);
    SAYS(RNL_NO_ROOM, "queued");
    assert_int_equal(rnl_abort(s), 0);
    f->in.ending = RNL_DONE;
    while ((unsigned)f->done < queued) {
        f->in.count = 0;
        assert_true(rnl_extract(f->a, 0) >= 0);
        drain(f->b);
    }
    assert_int_equal(post(f->a, 1, "", 0, done, f), 0);
    f->in.count = 0;
    drain(f->b);
    /* and those that were sent and not told yet */
    f->done = 0;
    for (queued = 0; queued < 1000000 && post(f->a, 0, "", 0, done, f) == 0; queued++)
        ;
    assert_in_range(queued, 1000, 500000);
    while ((unsigned)f->done < queued) {
        f->in.count = 0;
        assert_true(rnl_extract(f->a, SIZE_MAX) >= 0);
    }
}

/* ---- held posts, and those that are cancelled ---- */

static void card_done(void *arg, int status)
{
    struct card *c = arg;
    c->runs++;
    c->f->status = status;
    c->f->order[c->f->done++] = c->number;
}

static int post_held(rnl_endpoint *ep, unsigned peer, size_t n, struct card *card, rnl_posted **out)
{
    const struct rnl_message b = {.peer = peer, .handler = NOTE, .bound = n};
    const struct rnl_buffer piece = {test_pattern(card->number, 0), n};
    return rnl_post_held(ep, &b, &piece, 1, card_done, card, out);
}

static void bytes_that_the_caller_holds_are_not_on_the_budget(void **state)
{
    enum { POSTS = 30, BYTES = 3 << 20 };
    struct fixture *f = *state;
    struct card card[POSTS] = {{0}};
    struct rnl_limits l;
    rnl_posted *posted;
    rnl_get_limits(f->a, &l);
    assert_true((size_t)POSTS * BYTES > 2 * l.post_budget);
    for (unsigned i = 0; i < POSTS; i++) {
        card[i] = (struct card){.f = f, .number = i};
        assert_int_equal(post_held(f->a, 1, BYTES, &card[i], &posted), 0);
    }
    assert_int_equal(post(f->a, 1, test_pattern(1, 0), BYTES, NULL, NULL), 0); /* there is room for others */
    for (unsigned i = 0; i < 100 * POSTS && f->in.count < POSTS + 1; i++)
        flow(f, 1);
    flow(f, 3);
    assert_int_equal(f->in.count, POSTS + 1);
    assert_int_equal(f->done, POSTS);
    for (unsigned i = 0; i < POSTS; i++)
        assert_int_equal(f->order[i], i);
    assert_int_equal(test_seam_post_bytes(f->a), 0);
}

/* But what the library needs for them is. */
static void held_posts_are_limited_too(void **state)
{
    struct fixture *f = *state;
    struct card card = {.f = f};
    rnl_posted *posted;
    rnl_stream *s;
    unsigned queued = 0;
    const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 0};
    assert_int_equal(open_stream(f->a, 1, NOTE, 8, &s), 0); /* nothing goes past it */
    while (queued < 1000000 && rnl_post_held(f->a, &b, NULL, 0, NULL, NULL, &posted) == 0)
        queued++;
    assert_in_range(queued, 1000, 500000);
    SAYS(RNL_NO_ROOM, "queued");
    assert_int_equal(rnl_cancel(posted), 1);                              /* the last one */
    assert_int_equal(post_held(f->a, 1, 0, &card, &posted), RNL_NO_ROOM); /* until it has been told */
    assert_int_equal(rnl_extract(f->a, 0), 0);
    assert_int_equal(post_held(f->a, 1, 0, &card, &posted), 0);
    assert_int_equal(rnl_abort(s), 0);
    while (card.runs == 0) { /* the last */
        f->in.count = 0;
        assert_true(rnl_extract(f->a, 0) >= 0);
        drain(f->b);
    }
}

static void a_post_that_waits_can_be_withdrawn_wherever_it_stands(void **state)
{
    enum { POSTS = 6 };
    struct fixture *f = *state;
    struct card card[POSTS] = {{0}};
    rnl_posted *posted[POSTS];
    rnl_stream *s;
    for (unsigned gone = 0; gone < 64; gone++) { /* bits: which are withdrawn */
        f->done = 0, f->in.count = 0;
        assert_int_equal(open_stream(f->a, 1, NOTE, 8, &s), 0); /* nothing goes past it */
        for (unsigned i = 0; i < POSTS; i++) {
            card[i] = (struct card){.f = f, .number = i};
            assert_int_equal(post_held(f->a, 1, 100 + i, &card[i], &posted[i]), 0);
        }
        for (unsigned i = 0; i < POSTS; i++)
            if (gone >> i & 1)
                assert_int_equal(rnl_cancel(posted[i]), 1);
        assert_int_equal(f->done, 0); /* never inside the call */
        for (unsigned i = 0; i < POSTS; i++)
            if (gone >> i & 1)
                assert_int_equal(rnl_cancel(posted[i]), 0); /* once is enough */
        assert_int_equal(rnl_abort(s), 0);
        flow(f, 4);
        assert_int_equal(f->done, POSTS);
        for (unsigned i = 0; i < POSTS; i++)
            assert_int_equal(card[i].runs, 1);
        unsigned came = 0;
        for (unsigned i = 0; i < POSTS; i++)
            if (!(gone >> i & 1))
                assert_int_equal(f->in.got[came++].n, 100 + i);
        assert_int_equal(f->in.count, came);
        assert_int_equal(test_seam_post_bytes(f->a), 0);
        assert_int_equal(post_held(f->a, 1, 7, &card[0], &posted[0]), 0); /* the queue is whole */
        flow(f, 2);
        assert_int_equal(f->in.got[came].n, 7);
    }
}

static int notes_the_end(rnl_stream *s, unsigned peer, void *ctx)
{
    unsigned char buf[4096];
    int *status = ctx;
    (void)peer;
    while ((*status = rnl_receive(s, buf, sizeof buf)) == 0)
        ;
    return RNL_DONE;
}

static void of_a_half_sent_post_that_is_cancelled_nobody_takes_the_half_for_the_whole(void **state)
{
    struct fixture *f = *state;
    struct card card[2] = {{.f = f, .number = 0}, {.f = f, .number = 1}};
    rnl_posted *posted[2];
    int status = 0;
    size_t n = 3 << 20;
    unsigned char *buf = malloc(n);
    assert_non_null(buf);
    memcpy(buf, test_pattern(5, 0), n);
    const struct rnl_message b = {.peer = 1, .handler = POSTER, .bound = n};
    const struct rnl_buffer piece = {buf, n};
    assert_int_equal(rnl_handler_stream(f->b, POSTER, notes_the_end, &status), POSTER);
    assert_int_equal(rnl_post_held(f->a, &b, &piece, 1, card_done, &card[0], &posted[0]), 0);
    assert_int_equal(post_held(f->a, 1, 10, &card[1], &posted[1]), 0);
    drain(f->b); /* its handler has begun */
    drain(f->a);
    assert_int_equal(rnl_cancel(posted[0]), 1);
    memset(buf, 0xee, n); /* ours again */
    free(buf);
    flow(f, 4);
    assert_int_equal(status, RNL_ERR_ABORTED);
    assert_int_equal(card[0].runs, 1);
    assert_int_equal(card[1].runs, 1);
    assert_int_equal(f->order[0], 0);
    assert_int_equal(f->in.count, 1); /* what was behind it comes */
    assert_int_equal(f->in.got[0].n, 10);
}

static void what_was_sent_is_not_withdrawn(void **state)
{
    struct fixture *f = *state;
    struct card card = {.f = f, .number = 0};
    rnl_posted *posted;
    assert_int_equal(post_held(f->a, 1, 10, &card, &posted), 0);
    assert_int_equal(rnl_cancel(posted), 0);
    assert_int_equal(card.runs, 0);
    flow(f, 2);
    assert_int_equal(card.runs, 1);
    assert_int_equal(f->status, 0);
    assert_int_equal(f->in.count, 1);
}

/* ---- done is called by itself ---- */

struct chain {
    rnl_endpoint *ep;
    int left, depth, deepest, in_post, status;
};

static void link_of_chain(void *arg, int status)
{
    struct chain *c = arg;
    TEST_MUST(status == 0 && !c->in_post);
    if (++c->depth > c->deepest)
        c->deepest = c->depth;
    TEST_MUST(rnl_extract(c->ep, SIZE_MAX) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_wait(c->ep, 0) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_close(c->ep) == RNL_ERR_CONTEXT);
    if (c->left-- > 0) {
        c->in_post = 1;
        TEST_MUST(post(c->ep, 1, "link", 4, link_of_chain, c) == 0);
        c->in_post = 0;
    }
    c->depth--;
}

static void done_is_neither_called_inside_a_post_nor_inside_itself(void **state)
{
    struct fixture *f = *state;
    struct chain c = {.ep = f->a, .left = 1000, .in_post = 1};
    assert_int_equal(post(f->a, 1, "link", 4, link_of_chain, &c), 0);
    c.in_post = 0;
    for (unsigned i = 0; i < 2000 && c.left >= 0; i++) {
        assert_true(rnl_extract(f->a, SIZE_MAX) >= 0);
        if (i % 5 == 0)
            drain(f->b);
    }
    drain(f->b);
    assert_int_equal(c.left, -1);
    assert_int_equal(c.deepest, 1);
    assert_int_equal(f->in.count, 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_post_with_room_is_sent_at_once_and_done_at_the_next_extract),
        TEST(a_half_sent_post_is_no_open_message_of_the_programs),
        TEST(the_queue_has_a_budget),
        TEST(a_post_says_what_is_wrong),
        TEST(lengths_that_overflow_are_past_the_end),
        TEST(small_posts_use_up_the_budget_too),
        TEST(bytes_that_the_caller_holds_are_not_on_the_budget),
        TEST(held_posts_are_limited_too),
        TEST(a_post_that_waits_can_be_withdrawn_wherever_it_stands),
        TEST(of_a_half_sent_post_that_is_cancelled_nobody_takes_the_half_for_the_whole),
        TEST(what_was_sent_is_not_withdrawn),
        TEST(done_is_neither_called_inside_a_post_nor_inside_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
