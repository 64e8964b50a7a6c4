/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Posted messages: queued where a send would wait, in order with streams, within a budget. */
#include "stream/inbox.h"

#include "endpoint/endpoint.h"

enum { NOTE = 1, WHOLE = 2, POSTER = 3 };

struct fixture {
    struct test_hub h;
    rnl_endpoint *a, *b, *c;
    struct inbox in;
    int done, status;
    unsigned order[64]; /* of the done calls */
    int repost;
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

static void done_card(void *arg, int status)
{
    struct card *c = arg;
    TEST_MUST(status == 0 && c->runs == 0);
    c->runs++;
    c->f->order[c->f->done++] = c->number;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    test_hub_open(&f->h, 3, NULL);
    f->a = f->h.ep[0], f->b = f->h.ep[1], f->c = f->h.ep[2];
    for (unsigned i = 0; i < 3; i++) {
        TEST_MUST(rnl_handler_stream(f->h.ep[i], NOTE, inbox_stream, &f->in) == NOTE);
        TEST_MUST(rnl_handler_whole(f->h.ep[i], WHOLE, inbox_whole, &f->in, 0) == WHOLE);
    }
    acquaint(&f->h);
    f->in.count = 0;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int status = test_hub_close(&f->h);
    inbox_free(&f->in);
    free(f->buf);
    free(f);
    return status;
}

static int post(rnl_endpoint *ep, unsigned peer, const void *buf, size_t n, void (*f)(void *, int), void *arg)
{
    const struct rnl_begin b = {.peer = peer, .handler = NOTE, .bound = n};
    const struct rnl_piece piece = {buf, n};
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

static void pieces_are_gathered(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {0, 3, 100, 0, 70000, 1, 300000, 5};
    struct rnl_piece piece[8];
    size_t n = 0;
    for (unsigned i = 0; i < 8; i++) {
        piece[i] = (struct rnl_piece){test_pattern(3, n), sizes[i]};
        n += sizes[i];
    }
    const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = n + 1000};
    assert_int_equal(rnl_post(f->a, &b, piece, 8, done, f), 0);
    memset(piece, 0, sizeof piece); /* the list itself is copied */
    flow(f, 50);
    assert_int_equal(f->in.count, 1);
    assert_int_equal(f->in.got[0].n, n);
    assert_memory_equal(f->in.buf, test_pattern(3, 0), n);
    assert_int_equal(f->done, 1);
    assert_int_equal(rnl_post(f->a, &b, NULL, 0, done, f), 0); /* no pieces: an empty message */
    flow(f, 2);
    assert_int_equal(f->in.got[1].n, 0);
}

static void posts_queue_and_keep_their_order(void **state)
{
    struct fixture *f = *state;
    enum { POSTS = 40 };
    static struct card card[POSTS];
    static size_t n[POSTS];
    struct test_random r = test_random_of(4, 4);
    for (unsigned i = 0; i < POSTS; i++) {
        card[i] = (struct card){f, i, 0};
        n[i] = 8 + test_random_size(&r, 600000, NULL, 0);
        assert_int_equal(post(f->a, 1, test_pattern(i, 0), n[i], done_card, &card[i]), 0);
    }
    assert_true(rnl_get_counters(f->a)->posts_queued > 10);
    assert_int_equal(post_card(f->a, 1, NOTE, "late", 4), RNL_NO_ROOM); /* behind the queue, or not at all */
    assert_int_equal(post_card(f->a, 2, NOTE, "aside", 5), 0);
    flow(f, 200);
    assert_int_equal(f->done, POSTS);
    assert_int_equal(f->in.count, POSTS);
    for (unsigned i = 0; i < POSTS; i++) {
        uint64_t first;
        memcpy(&first, test_pattern(i, 0), 8);
        assert_int_equal(f->order[i], i);
        assert_int_equal(f->in.got[i].n, n[i]);
        assert_int_equal(f->in.got[i].first, first);
    }
    drain(f->c);
}

static void a_post_behind_an_open_stream_waits_for_its_end(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s;
    assert_int_equal(open_stream(f->a, 1, NOTE, 8, &s), 0);
    assert_int_equal(rnl_piece(s, "first", 5), 0);
    assert_int_equal(post(f->a, 1, "second", 6, done, f), 0);
    assert_int_equal(post(f->a, 1, "third", 5, done, f), 0);
    flow(f, 3);
    assert_int_equal(f->done, 0);
    assert_int_equal(f->in.count, 0);
    assert_int_equal(rnl_end(s), 0);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "fourth", 6), 0); /* waits until the queue is gone */
    assert_int_equal(f->done, 2);
    flow(f, 3);
    assert_int_equal(f->in.count, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_memory_equal(&f->in.got[i].first, i == 0 ? "first" : i == 1 ? "second" : i == 2 ? "third" : "fourth", 5);
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
    struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = 10};
    const struct rnl_piece piece[2] = {{"12345", 5}, {"123456", 6}};
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
    const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = 200};
    const struct rnl_piece piece[3] = {{test_pattern(1, 0), 100}, {"", SIZE_MAX - 50}, {"", 51}};
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
    for (queued = 0; queued < 1000000 && post(f->a, 0, "", 0, done, f) == 0; queued++)
        ;
    assert_in_range(queued, 1000, 500000);
    while (f->a->posts | f->a->calls) {
        f->in.count = 0;
        assert_true(rnl_extract(f->a, SIZE_MAX) >= 0);
    }
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

static int poster(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    char byte;
    (void)peer;
    TEST_MUST(post(f->b, 0, f->buf, 3 << 20, done, f) == 0);
    TEST_MUST(post(f->b, 0, test_pattern(2, 0), 40, done, f) == 0);
    while (rnl_receive(s, &byte, 1) == 0)
        ;
    return RNL_DONE;
}

static void a_handler_posts_what_it_cannot_send(void **state)
{
    struct fixture *f = *state;
    f->buf = malloc(3 << 20);
    assert_non_null(f->buf);
    memcpy(f->buf, test_pattern(8, 0), 3 << 20);
    assert_int_equal(rnl_handler_stream(f->b, POSTER, poster, f), POSTER);
    assert_int_equal(rnl_send(f->a, 1, POSTER, "x", 1), 0);
    drain(f->b);
    assert_int_equal(f->done, 0);
    flow(f, 100);
    assert_int_equal(f->done, 2);
    assert_int_equal(f->in.count, 2);
    assert_int_equal(f->in.got[0].n, 3 << 20);
    assert_int_equal(f->in.got[1].n, 40);
}

static void done_again(void *arg, int status)
{
    struct fixture *f = arg;
    TEST_MUST(status == 0);
    f->done++;
    if (f->repost-- > 0)
        TEST_MUST(post(f->a, 1, f->buf, f->repost & 1 ? 700000 : 30, done_again, f) == 0);
}

static void done_may_post_again(void **state)
{
    struct fixture *f = *state;
    f->buf = malloc(700000);
    assert_non_null(f->buf);
    memcpy(f->buf, test_pattern(8, 0), 700000);
    f->repost = 20;
    assert_int_equal(post(f->a, 1, f->buf, 700000, done_again, f), 0);
    flow(f, 300);
    assert_int_equal(f->done, 21);
    assert_int_equal(f->in.count, 21);
}

static void a_long_post_may_allow_an_answer(void **state)
{
    struct fixture *f = *state;
    const struct rnl_begin b = {.peer = 1, .handler = WHOLE, .bound = 600000, .answer = 100};
    const struct rnl_piece piece = {test_pattern(1, 0), 600000};
    assert_int_equal(rnl_post(f->a, &b, &piece, 1, done, f), 0);
    assert_int_equal(rnl_post(f->a, &b, &piece, 1, done, f), 0);
    flow(f, 100);
    assert_int_equal(f->in.count, 2);
    assert_int_equal(f->done, 2);
    assert_memory_equal(f->in.buf, test_pattern(1, 0), 600000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_post_with_room_is_sent_at_once_and_done_at_the_next_extract),
        TEST(pieces_are_gathered),
        TEST(posts_queue_and_keep_their_order),
        TEST(a_post_behind_an_open_stream_waits_for_its_end),
        TEST(a_half_sent_post_is_no_open_message_of_the_programs),
        TEST(the_queue_has_a_budget),
        TEST(a_post_says_what_is_wrong),
        TEST(lengths_that_overflow_are_past_the_end),
        TEST(small_posts_use_up_the_budget_too),
        TEST(done_is_neither_called_inside_a_post_nor_inside_itself),
        TEST(a_handler_posts_what_it_cannot_send),
        TEST(done_may_post_again),
        TEST(a_long_post_may_allow_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
