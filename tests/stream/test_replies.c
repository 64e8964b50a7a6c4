/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside handlers: rnl_reply, the ending RNL_REJECT, rnl_keep. */
#include "stream/inbox.h"

enum { NOTE = 1, ASK = 2, ANSWER = 3, ANSWER_WHOLE = 4, KEEP = 5, REFUSE = 6 };

struct asked {
    rnl_endpoint *ep;
    size_t n; /* length of the answer */
    unsigned handler;
    int runs;
};

struct refusal {
    int count;
    unsigned peer, handler, reason;
    size_t n;
    unsigned char buf[64];
    rnl_endpoint *ep;
};

struct fixture {
    INBOX_FIXTURE;
    struct asked asked;
    struct refusal back;
    rnl_kept *kept[64];
    unsigned keeps, fail_keeps, receive_first;
    unsigned reason;
};

static int answer(rnl_stream *s, unsigned peer, void *ctx)
{
    struct asked *q = ctx;
    char byte;
    (void)peer;
    while (rnl_receive(s, &byte, 1) == 0)
        ;
    q->runs++;
    TEST_MUST(rnl_reply(s, q->handler, test_pattern(q->n, 0), q->n) == 0);
    return RNL_DONE;
}

static int keep(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    unsigned char skipped[64];
    (void)peer;
    TEST_MUST(f->keeps < 64);
    if (f->receive_first)
        TEST_MUST(rnl_receive(s, skipped, f->receive_first) == 0);
    int status = rnl_keep(s, &f->kept[f->keeps]);
    if (status == RNL_NO_ROOM) {
        f->fail_keeps++;
        return RNL_DONE;
    }
    TEST_MUST(status == 0);
    f->keeps++;
    return RNL_KEEP;
}

static int refuse(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    unsigned char skipped[64];
    (void)peer;
    if (f->receive_first)
        TEST_MUST(rnl_receive(s, skipped, f->receive_first) == 0);
    return RNL_REJECT(f->reason);
}

static void note_refusal(void *arg, unsigned peer, unsigned handler, unsigned reason, const void *buf, size_t n)
{
    struct refusal *r = arg;
    char x = 0;
    TEST_MUST(n <= sizeof r->buf);
    r->count++;
    r->peer = peer, r->handler = handler, r->reason = reason, r->n = n;
    memcpy(r->buf, buf, n);
    TEST_MUST(rnl_send(r->ep, peer, NOTE, &x, 1) == RNL_ERR_CONTEXT); /* must not send */
}

static void handlers(rnl_endpoint *ep, void *fixture)
{
    struct fixture *f = fixture;
    TEST_MUST(rnl_handler_stream(ep, NOTE, inbox_stream, &f->in) == NOTE);
    TEST_MUST(rnl_handler_stream(ep, ASK, answer, &f->asked) == ASK);
    TEST_MUST(rnl_handler_stream(ep, ANSWER, inbox_stream, &f->other) == ANSWER);
    TEST_MUST(rnl_handler_whole(ep, ANSWER_WHOLE, inbox_whole, &f->other, 0) == ANSWER_WHOLE);
    TEST_MUST(rnl_handler_stream(ep, KEEP, keep, f) == KEEP);
    TEST_MUST(rnl_handler_stream(ep, REFUSE, refuse, f) == REFUSE);
}

static int set_up(void **state)
{
    (void)inbox_open(state, sizeof(struct fixture), 3, NULL, handlers);
    struct fixture *f = *state;
    f->asked.handler = ANSWER;
    f->back.ep = f->a;
    rnl_on_rejected(f->a, note_refusal, &f->back);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < f->keeps; i++)
        rnl_kept_free(f->kept[i]);
    return inbox_close(state);
}

static int ask(rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n, size_t bound,
               size_t largest)
{
    const struct rnl_message b = {
        .peer = peer, .handler = handler, .bound = bound, .answer = largest, .flags = RNL_NO_WAIT};
    rnl_stream *s;
    int status = rnl_begin(ep, &b, &s);
    if (status < 0)
        return status;
    TEST_MUST(rnl_piece(s, buf, n) == 0);
    TEST_MUST(rnl_end(s) == 0);
    return 0;
}

/* ---- replies ---- */

static int wrong_replies(rnl_stream *s, unsigned peer, void *ctx)
{
    int *allowed = ctx;
    char buf[101] = "";
    (void)peer;
    if (*allowed) {
        TEST_MUST(rnl_reply(s, ANSWER, buf, 101) == RNL_ERR_TOO_LONG);
        TEST_MUST(strstr(sentence(), "101") && strstr(sentence(), "100"));
        TEST_MUST(rnl_reply(s, 65536, buf, 100) == RNL_ERR_HANDLER);
        TEST_MUST(rnl_reply(s, ANSWER, buf, 100) == 0);
        TEST_MUST(rnl_reply(s, ANSWER, buf, 1) == RNL_ERR_CONTEXT);
    } else {
        TEST_MUST(rnl_reply(s, ANSWER, buf, 0) == RNL_ERR_CONTEXT);
        TEST_MUST(strstr(sentence(), "answer > 0") != NULL);
    }
    return RNL_DONE;
}

static int answer_sends(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    const struct rnl_message b = {.peer = peer, .handler = NOTE, .bound = 8};
    const struct rnl_buffer piece = {"x", 1};
    rnl_stream *t;
    rnl_kept *k;
    TEST_MUST(rnl_send(f->a, peer, NOTE, "x", 1) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_begin(f->a, &b, &t) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_post(f->a, &b, &piece, 1, NULL, NULL) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_reply(s, ANSWER, "x", 1) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_keep(s, &k) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_extract(f->a, 0) == RNL_ERR_CONTEXT);
    f->asked.runs += 100;
    return RNL_DONE;
}

static void an_answer_is_one_short_enough_and_allowed_and_sends_nothing(void **state)
{
    struct fixture *f = *state;
    int allowed = 0;
    assert_int_equal(rnl_handler_stream(f->b, ASK, wrong_replies, &allowed), ASK);
    assert_int_equal(rnl_handler_stream(f->a, ANSWER, answer_sends, f), ANSWER);
    assert_int_equal(rnl_send(f->a, 1, ASK, "x", 1), 0);
    drain(f->b);
    allowed = 1;
    assert_int_equal(ask(f->a, 1, ASK, "x", 1, 1, 100), 0);
    assert_int_equal(ask(f->a, 1, ASK, test_pattern(1, 0), 1000, 1000, 100), 0);
    drain(f->b);
    drain(f->a);
    assert_int_equal(f->asked.runs, 200);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "x", 1), 0); /* afterwards it may send again */
    drain(f->b);
    assert_int_equal(f->in.count, 1);
}

static void an_asker_that_does_not_listen_stops_only_itself(void **state)
{
    static const size_t largest[] = {8, 65536};
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        int sent = 0, status;
        f->asked.n = largest[i];
        f->asked.runs = 0;
        f->other.count = 0;
        while ((status = ask(f->a, 1, ASK, "x", 1, 1, largest[i])) == 0) {
            sent++;
            if (sent % 8 == 0)
                drain(f->b);
            assert_true(sent < 3000);
        }
        assert_int_equal(status, RNL_NO_ROOM);
        drain(f->b);
        assert_true(f->asked.runs < sent);
        assert_int_equal(rnl_send(f->c, 1, NOTE, "x", 1), 0);
        drain(f->b);
        assert_int_equal(f->in.count, i + 1);
        for (int k = 0; k < sent; k++) {
            assert_int_equal(rnl_extract(f->a, 0), 0);
            drain(f->b);
        }
        assert_int_equal(f->asked.runs, sent);
        assert_int_equal(rnl_extract(f->a, 0), 0);
        assert_int_equal(f->other.count, sent);
    }
}

/* ---- keeping ---- */

/* How many messages of 10,000 bytes go to b while it does not look, which it does before and after. */
static unsigned capacity(struct fixture *f)
{
    unsigned n = 0;
    for (unsigned i = 0; i < 3; i++) {
        drain(f->b);
        (void)!rnl_wait(f->b, 1000000); /* lets it say what it can say */
    }
    while (post_card(f->a, 1, NOTE, test_pattern(1, 0), 10000) == 0)
        TEST_MUST(++n < 10000);
    drain(f->b);
    return n;
}

static void keeping_withholds_credit_until_it_is_freed_and_the_budget_is_hard(void **state)
{
    const struct rnl_options opt = {.receive_budget = 1 << 20};
    struct fixture *f = calloc(1, sizeof *f);
    struct rnl_limits l;
    (void)state;
    assert_non_null(f);
    test_hub_open(&f->h, 2, &opt);
    f->a = f->h.ep[0], f->b = f->h.ep[1];
    assert_int_equal(rnl_handler_stream(f->b, KEEP, keep, f), KEEP);
    assert_int_equal(rnl_handler_stream(f->b, NOTE, inbox_stream, &f->in), NOTE);
    rnl_get_limits(f->b, &l);
    assert_int_equal(l.receive_budget, opt.receive_budget);
    capacity(f);
    unsigned at_first = capacity(f);
    assert_in_range(at_first, 20, 30); /* the grant is what stops them, not the lines of the ring */
    for (unsigned i = 0; i < at_first / 2; i++) {
        assert_int_equal(post_card(f->a, 1, KEEP, test_pattern(i, 0), 10000), 0);
        drain(f->b);
    }
    assert_int_equal(f->keeps, at_first / 2);
    assert_in_range(capacity(f), at_first - at_first / 2 - 2, at_first - at_first / 2 + 2);
    /* a keep that would go too far is refused; so nothing ever stops for good */
    for (unsigned i = 0; i < 200; i++) {
        if (post_card(f->a, 1, KEEP, test_pattern(i, 0), 10000) == 0)
            drain(f->b);
        (void)!rnl_wait(f->b, 0);
        assert_true(rnl_get_counters(f->b)->kept_bytes <= l.receive_budget / 4);
    }
    assert_true(f->fail_keeps > 0);
    for (unsigned i = 0; i < 3000 && f->in.count < 100; i++) {
        (void)!post_card(f->a, 1, NOTE, test_pattern(1, 0), 1000);
        drain(f->b);
        (void)!rnl_wait(f->b, 0);
    }
    assert_true(f->in.count >= 100);
    for (unsigned i = 0; i < f->keeps; i++) {
        size_t n;
        assert_non_null(rnl_kept_data(f->kept[i], &n, NULL));
        if (i < at_first / 2)
            assert_memory_equal(rnl_kept_data(f->kept[i], &n, NULL), test_pattern(i, 0), n);
    }
    while (f->keeps)
        rnl_kept_free(f->kept[--f->keeps]);
    assert_int_equal(capacity(f), at_first); /* all of it is back */
    assert_int_equal(test_hub_close(&f->h), 0);
    inbox_free(&f->in);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_one_short_enough_and_allowed_and_sends_nothing),
        TEST(an_asker_that_does_not_listen_stops_only_itself),
        cmocka_unit_test(keeping_withholds_credit_until_it_is_freed_and_the_budget_is_hard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
