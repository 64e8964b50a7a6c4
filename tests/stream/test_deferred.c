/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies that are gathered from pieces, and replies that are sent later than their handlers return. */
#include "stream/three.h"
#include "support/seam.h"

#include "runnel/adapter.h"

enum { ASK = 3, ANSWER = 4, MANY = 64, LATER_MAX = 8 };

struct asked { /* what was asked of this process */
    rnl_deferred name[MANY];
    uint32_t number[MANY];
    size_t reply_max[MANY];
    unsigned count, no_room, at_once;
    int defer;
};
struct answers {
    unsigned count;
    uint32_t number[INBOX_MAX];
    rnl_endpoint *ep;
    rnl_deferred also; /* answered inside the handler of a reply; 0 = none */
};

struct question {
    uint32_t number, n; /* length of the reply */
};

static size_t pieces_of(const struct question *q, struct rnl_buffer out[3])
{
    size_t rest = q->n > sizeof *q ? q->n - sizeof *q : 0;
    out[0] = (struct rnl_buffer){q, sizeof *q};
    out[1] = (struct rnl_buffer){test_pattern(q->number, 0), rest / 3};
    out[2] = (struct rnl_buffer){test_pattern(q->number, rest / 3), rest - rest / 3};
    return sizeof *q + rest;
}

static int on_ask(rnl_stream *s, unsigned peer, void *ctx)
{
    struct asked *a = ctx;
    struct question q;
    struct rnl_buffer pieces[3];
    (void)peer;
    TEST_MUST(rnl_receive(s, &q, sizeof q) == 0);
    int status = a->defer ? rnl_defer(s, &a->name[a->count]) : RNL_NO_ROOM;
    if (status == 0) {
        rnl_deferred twice = 7;
        TEST_MUST(rnl_defer(s, &twice) == RNL_ERR_CONTEXT && twice == 7);
        TEST_MUST(rnl_reply(s, ANSWER, "x", 1) == RNL_ERR_CONTEXT);
        a->number[a->count] = q.number;
        a->reply_max[a->count++] = q.n;
        TEST_MUST(a->count < MANY);
        return q.number % 5 == 0 ? RNL_REJECT(3) : RNL_DONE; /* a reject comes too late */
    }
    TEST_MUST(status == RNL_NO_ROOM);
    a->no_room += a->defer;
    a->at_once++;
    pieces_of(&q, pieces);
    TEST_MUST(rnl_reply_pieces(s, ANSWER, pieces, 3) == 0);
    return RNL_DONE;
}

static int on_answer(rnl_stream *s, unsigned peer, void *ctx)
{
    struct answers *a = ctx;
    static unsigned char buf[65536];
    struct question q;
    (void)peer;
    size_t n = rnl_length(s, NULL) - sizeof q;
    TEST_MUST(rnl_receive(s, &q, sizeof q) == 0);
    TEST_MUST(rnl_receive(s, buf, n) == 0);
    TEST_MUST(n == (q.n > sizeof q ? q.n - sizeof q : 0) && memcmp(buf, test_pattern(q.number, 0), n) == 0);
    TEST_MUST(a->count < INBOX_MAX);
    a->number[a->count++] = q.number;
    if (a->also) {
        const struct question other = {.number = 777, .n = sizeof other};
        const struct rnl_buffer piece = {&other, sizeof other};
        TEST_MUST(rnl_answer(a->ep, a->also, ANSWER, &piece, 1) == 0); /* it has its room, so it may */
        a->also = 0;
    }
    return RNL_DONE;
}

/* Asks for a reply of n bytes. Returns 0 or RNL_NO_ROOM. */
static int ask(rnl_endpoint *ep, unsigned peer, uint32_t number, size_t n)
{
    const struct question q = {number, (uint32_t)n};
    const struct rnl_message b = {
        .peer = peer, .handler = ASK, .bound = sizeof q, .answer = n < sizeof q ? sizeof q : n, .flags = RNL_NO_WAIT};
    rnl_stream *s;
    test_wires_settle();
    int status = rnl_begin(ep, &b, &s);
    if (status < 0)
        return status;
    TEST_MUST(rnl_piece(s, &q, sizeof q) == 0);
    TEST_MUST(rnl_end(s) == 0);
    return 0;
}

/* Answers the i-th that is deferred. */
static void answer(rnl_endpoint *ep, struct asked *a, unsigned i)
{
    const struct question q = {a->number[i], (uint32_t)a->reply_max[i]};
    struct rnl_buffer pieces[3];
    pieces_of(&q, pieces);
    assert_int_equal(rnl_answer(ep, a->name[i], ANSWER, pieces, 3), 0);
    a->count--;
    a->name[i] = a->name[a->count];
    a->number[i] = a->number[a->count];
    a->reply_max[i] = a->reply_max[a->count];
}

struct pair {
    struct asked asked;
    struct answers answers;
};
static void registered(struct fixture *f, struct pair *p)
{
    memset(p, 0, sizeof *p);
    p->asked.defer = 1;
    p->answers.ep = f->a;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(rnl_handler_stream(f->h.ep[i], ASK, on_ask, &p->asked), ASK);
        assert_int_equal(rnl_handler_stream(f->h.ep[i], ANSWER, on_answer, &p->answers), ANSWER);
    }
}

/* ---- cases ---- */

static void a_reply_is_gathered_from_pieces(void **state)
{
    static const size_t lengths[] = {8, 9, 40, 56, 57, 64, 1000, 65536};
    struct fixture *f = *state;
    struct pair p;
    registered(f, &p);
    p.asked.defer = 0;
    for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_int_equal(ask(f->a, 1, i, lengths[i]), 0);
        drain(f->b);
        drain(f->a);
        assert_int_equal(p.answers.count, i + 1);
        assert_int_equal(p.answers.number[i], i);
    }
    assert_int_equal(rnl_get_counters(f->b)->replies_sent, sizeof lengths / sizeof *lengths);
}

static void deferred_replies_are_sent_in_any_order_each_once(void **state)
{
    struct fixture *f = *state;
    struct pair p;
    registered(f, &p);
    for (uint32_t i = 0; i < LATER_MAX; i++)
        assert_int_equal(ask(f->a, 1, i + 1, i % 2 ? 20 : 2000), 0);
    drain(f->b);
    drain(f->a);
    assert_int_equal(p.asked.count, LATER_MAX);
    assert_int_equal(p.answers.count, 0);
    rnl_deferred last = p.asked.name[7];
    answer(f->b, &p.asked, 2); /* the last one takes its place here */
    answer(f->b, &p.asked, 2);
    drain(f->a);
    assert_int_equal(p.answers.count, 2);
    assert_int_equal(p.answers.number[0], 3);
    assert_int_equal(p.answers.number[1], 8);
    assert_int_equal(rnl_answer(f->b, last, ANSWER, NULL, 0), RNL_ERR_ARG); /* once */
    SAYS(RNL_ERR_ARG, "once");
    assert_int_equal(rnl_answer(f->b, 0, ANSWER, NULL, 0), RNL_ERR_ARG);
    assert_int_equal(rnl_answer(f->b, UINT64_MAX, ANSWER, NULL, 0), RNL_ERR_ARG);
    assert_int_equal(ask(f->a, 1, 9, 20), 0); /* a new one has a new name */
    drain(f->b);
    assert_int_equal(rnl_answer(f->b, last, ANSWER, NULL, 0), RNL_ERR_ARG);
    while (p.asked.count)
        answer(f->b, &p.asked, 0);
    drain(f->a);
    assert_int_equal(p.answers.count, 9);
}

static void what_is_wrong_with_an_answer_costs_nothing(void **state)
{
    struct fixture *f = *state;
    struct pair p;
    char buf[101] = "";
    const struct rnl_buffer pieces[] = {{buf, 60}, {buf, 41}}, endless[] = {{buf, SIZE_MAX - 5}, {buf, 60}};
    registered(f, &p);
    assert_int_equal(ask(f->a, 1, 1, 100), 0);
    drain(f->b);
    assert_int_equal(rnl_answer(f->b, p.asked.name[0], ANSWER, pieces, 2), RNL_ERR_TOO_LONG);
    SAYS(RNL_ERR_TOO_LONG, "101", "100");
    assert_int_equal(rnl_answer(f->b, p.asked.name[0], ANSWER, endless, 2), RNL_ERR_TOO_LONG);
    assert_int_equal(rnl_answer(f->b, p.asked.name[0], 65536, pieces, 1), RNL_ERR_HANDLER);
    answer(f->b, &p.asked, 0);
    drain(f->a);
    assert_int_equal(p.answers.count, 1);
}

/* Above the bound a handler is told, replies at once, and whoever asks goes on. */
static void what_can_be_deferred_is_bounded_and_the_rest_goes_on(void **state)
{
    static const size_t lengths[] = {20, 65536};
    struct fixture *f = *state;
    for (unsigned k = 0; k < 2; k++) {
        struct pair p;
        registered(f, &p);
        for (uint32_t i = 0; i < 60; i++) {
            for (unsigned tries = 0; ask(f->a, 1, i, lengths[k]) == RNL_NO_ROOM; tries++) {
                assert_true(tries < 100);
                drain(f->b);
                drain(f->a);
            }
            drain(f->b);
            drain(f->a);
        }
        unsigned held = p.asked.count;
        assert_in_range(held, 7, 32);
        assert_int_equal(p.asked.no_room, 60 - held); /* none waited */
        assert_int_equal(p.answers.count, 60 - held);
        assert_int_equal(ask(f->c, 1, 99, 20), 0); /* each peer has its own bound */
        drain(f->b);
        assert_int_equal(p.asked.count, held + 1);
        while (p.asked.count)
            answer(f->b, &p.asked, 0);
        drain(f->a);
        drain(f->c);
        assert_int_equal(p.answers.count, 61);
        assert_int_equal(test_seam_deferred_bytes(f->b, 0), 0);
    }
}

/* Whatever was asked and deferred, and whenever the asker reads: each reply is sent at once and arrives. */
static void a_deferred_reply_always_has_its_room(void **state)
{
    struct fixture *f = *state;
    struct pair p;
    struct test_random r = test_random_of(11, 3);
    uint32_t asked = 0;
    registered(f, &p);
    for (unsigned turn = 0; turn < 6000; turn++) {
        unsigned what = test_random_below(&r, 12);
        bool large = turn / 1000 % 2; /* then the bulk area is what lacks, else cells */
        size_t n = 8 + test_random_below(&r, large || test_random_one_in(&r, 3) ? 65529
                                             : test_random_one_in(&r, 2)        ? 3000
                                                                                : 60);
        if (large && test_random_below(&r, 4))
            n = 65536 - n / 8;
        p.asked.defer = test_random_below(&r, 4) > (large ? 1 : 0);
        if (what < 5 && asked < 3000 && ask(f->a, 1, asked, n) == 0)
            asked++;
        else if (what < 8)
            (void)!rnl_extract(f->b, test_random_one_in(&r, 2) ? SIZE_MAX : 1);
        else if (what < 11 && p.asked.count)
            answer(f->b, &p.asked, test_random_below(&r, p.asked.count));
        else if (test_random_one_in(&r, large ? 20 : 3))
            (void)!rnl_extract(f->a, 0);
        if (p.asked.count == 0 && p.answers.count < asked && test_random_one_in(&r, 50))
            drain(f->a);
    }
    for (unsigned i = 0; i < 4000 && p.answers.count < asked; i++) {
        drain(f->b);
        drain(f->a);
        while (p.asked.count)
            answer(f->b, &p.asked, test_random_below(&r, p.asked.count));
    }
    assert_true(asked > 500 && p.asked.at_once > 50);
    assert_int_equal(p.answers.count, asked);
}

static void an_answer_may_be_sent_where_nothing_else_may(void **state)
{
    struct fixture *f = *state;
    struct pair p;
    registered(f, &p);
    assert_int_equal(ask(f->b, 0, 5, 20), 0);
    drain(f->a);
    assert_int_equal(p.asked.count, 1);
    p.answers.also = p.asked.name[0]; /* a has deferred a reply to b, and gets one of b */
    p.asked.count = 0;
    assert_int_equal(ask(f->a, 1, 6, 20), 0);
    p.asked.defer = 0;
    drain(f->b);
    drain(f->a);
    drain(f->b);
    assert_int_equal(p.answers.count, 2);
    assert_int_equal(p.answers.number[1], 777);
}

static void who_asked_and_died_gets_no_answer(void **state)
{
    struct fixture *f = *state;
    struct pair p;
    registered(f, &p);
    assert_int_equal(ask(f->c, 1, 1, 20), 0);
    assert_int_equal(ask(f->a, 1, 2, 20), 0);
    assert_int_equal(ask(f->c, 1, 3, 2000), 0);
    drain(f->b);
    assert_int_equal(p.asked.count, 3);
    test_hub_kill(&f->h, 2, RNL_DEATH_EXIT, 0);
    for (unsigned i = 0; i < 5; i++)
        drain(f->b);
    unsigned dead = 0, alive = 0;
    for (unsigned i = 0; i < 3; i++) {
        const struct question q = {p.asked.number[i], (uint32_t)p.asked.reply_max[i]};
        struct rnl_buffer pieces[3];
        pieces_of(&q, pieces);
        int status = rnl_answer(f->b, p.asked.name[i], ANSWER, pieces, 3);
        dead += status == RNL_ERR_PEER_DEAD;
        alive += status == 0;
        assert_int_equal(rnl_answer(f->b, p.asked.name[i], ANSWER, pieces, 3), RNL_ERR_ARG);
    }
    assert_int_equal(dead, 2);
    assert_int_equal(alive, 1);
    drain(f->a);
    assert_int_equal(p.answers.count, 1);
}

static void what_is_never_answered_does_not_hold_up_the_close(void **state)
{
    struct fixture *f = *state;
    struct pair p;
    registered(f, &p);
    assert_int_equal(ask(f->a, 1, 1, 20), 0);
    assert_int_equal(ask(f->a, 1, 2, 2000), 0);
    drain(f->b);
    assert_int_equal(p.asked.count, 2);
    assert_int_equal(test_hub_close(&f->h), 0);
    test_hub_open(&f->h, 3, NULL); /* for tear_down */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reply_is_gathered_from_pieces),
        TEST(deferred_replies_are_sent_in_any_order_each_once),
        TEST(what_is_wrong_with_an_answer_costs_nothing),
        TEST(what_can_be_deferred_is_bounded_and_the_rest_goes_on),
        TEST(a_deferred_reply_always_has_its_room),
        TEST(an_answer_may_be_sent_where_nothing_else_may),
        TEST(who_asked_and_died_gets_no_answer),
        TEST(what_is_never_answered_does_not_hold_up_the_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
