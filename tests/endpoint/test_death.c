/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers that die or break the protocol: who learns of it, how, and what becomes of open messages. The dying is done by
 * the hub; a broken peer's hand writes into its shared side. */
#include "stream/inbox.h"

#include <pthread.h>

#include "support/seam.h"

enum { NOTE = 1, HALF = 2 };

struct fixture {
    INBOX_FIXTURE;
    int deaths, death_peer, done, done_status, half_status;
    enum rnl_death_reason reason;
};

static void on_death(void *arg, unsigned peer, enum rnl_death_reason reason)
{
    struct fixture *f = arg;
    f->deaths++;
    f->death_peer = (int)peer;
    f->reason = reason;
}

static void done(void *arg, int status)
{
    struct fixture *f = arg;
    f->done++;
    f->done_status = status;
}

/* Notes what it is told when the second half does not come. */
static int half(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    unsigned char buf[500];
    (void)peer;
    TEST_MUST(rnl_receive(s, buf, 500) == 0);
    memset(buf, 0, sizeof buf);
    f->half_status = rnl_receive(s, buf, 500);
    TEST_MUST(f->half_status < 0);
    TEST_MUST(rnl_receive(s, buf, 1) == f->half_status); /* and for ever */
    return RNL_DONE;
}

static void handlers(rnl_endpoint *ep, void *fixture)
{
    struct fixture *f = fixture;
    TEST_MUST(rnl_handler_stream(ep, NOTE, inbox_stream, &f->in) == NOTE);
    TEST_MUST(rnl_handler_stream(ep, HALF, half, f) == HALF);
}

static int set_up(void **state)
{
    (void)inbox_open(state, sizeof(struct fixture), 3, NULL, handlers);
    struct fixture *f = *state;
    rnl_on_death(f->b, on_death, f);
    return 0;
}

#define tear_down inbox_close

static void kill_a(struct fixture *f)
{
    test_hub_kill(&f->h, 0, RNL_DEATH_SIGNAL, 9);
}

static void a_death_is_told_once_and_explained(void **state)
{
    struct fixture *f = *state;
    struct rnl_message b = {.peer = 0, .handler = NOTE, .bound = 1000};
    rnl_stream *s;
    kill_a(f);
    assert_int_equal(rnl_extract(f->b, 0), 0);
    assert_int_equal(f->deaths, 1);
    assert_int_equal(f->death_peer, 0);
    assert_int_equal(f->reason, RNL_DEATH_SIGNAL);
    drain(f->b);
    assert_int_equal(f->deaths, 1);
    assert_int_equal(rnl_send(f->b, 0, NOTE, "x", 1), RNL_ERR_PEER_DEAD);
    SAYS(RNL_ERR_PEER_DEAD, "rank 0", "signal 9");
    assert_int_equal(rnl_begin(f->b, &b, &s), RNL_ERR_PEER_DEAD);
    assert_int_equal(rnl_post(f->b, &b, NULL, 0, done, f), RNL_ERR_PEER_DEAD);
    assert_int_equal(f->done, 0);
    assert_int_equal(rnl_readmit(f->b, 0), RNL_ERR_PEER_DEAD);
    SAYS(RNL_ERR_PEER_DEAD, "rank 0", "not started another");
    assert_int_equal(rnl_get_counters(f->b)->deaths, 1);
    assert_int_equal(rnl_send(f->b, 2, NOTE, "x", 1), 0); /* the others carry on */
    drain(f->c);
    assert_int_equal(f->in.count, 1);
}

static void who_never_connected_dies_too(void **state)
{
    (void)state;
    struct test_hub h;
    struct fixture f = {.deaths = 0};
    struct rnl_peer_info info;
    test_hub_open(&h, 2, NULL);
    rnl_on_death(h.ep[1], on_death, &f);
    test_hub_kill(&h, 0, RNL_DEATH_EXIT, 3);
    assert_true(rnl_wait(h.ep[1], 1000000000) == 0); /* a death ends a wait */
    assert_int_equal(f.deaths, 1);
    assert_int_equal(f.reason, RNL_DEATH_EXIT);
    assert_int_equal(rnl_peer(h.ep[1], 0, &info), 0);
    assert_int_equal(info.detail, 3);
    assert_int_equal(rnl_send(h.ep[1], 0, NOTE, "x", 1), RNL_ERR_PEER_DEAD);
    SAYS(RNL_ERR_PEER_DEAD, "rank 0", "status 3");
    assert_int_equal(test_hub_close(&h), 0);
}

static void what_the_dead_had_sent_is_delivered_first(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(rnl_send(f->a, 1, NOTE, test_pattern(i, 0), 20), 0);
    assert_int_equal(post_card(f->a, 1, NOTE, test_pattern(1, 0), 100000), 0);
    kill_a(f);
    while (f->deaths == 0)
        assert_true(rnl_extract(f->b, 64) >= 0);
    assert_int_equal(f->in.count, 21);
    assert_int_equal(f->in.got[20].n, 100000);
    assert_memory_equal(f->in.buf, test_pattern(1, 0), 100000);
}

static void a_suspended_handler_is_told(void **state)
{
    struct fixture *f = *state;
    rnl_stream *s;
    assert_int_equal(open_stream(f->a, 1, HALF, 1000, &s), 0);
    assert_int_equal(rnl_piece(s, test_pattern(1, 0), 700), 0);
    assert_int_equal(rnl_flush(f->a), 0);
    drain(f->b);
    assert_int_equal(f->half_status, 0);
    assert_int_equal(rnl_get_counters(f->b)->stacks_in_use, 1);
    kill_a(f);
    drain(f->b);
    drain(f->b);
    assert_int_equal(f->half_status, RNL_ERR_PEER_DEAD);
    assert_int_equal(f->deaths, 1);
    assert_int_equal(rnl_get_counters(f->b)->stacks_in_use, 0);
}

static void open_messages_and_posts_to_the_dead_are_lost_and_told(void **state)
{
    static const size_t bounds[] = {8, 40000, 300000};
    struct fixture *f = *state;
    rnl_stream *s[3];
    rnl_endpoint *from[3] = {f->b, f->c, f->b};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(open_stream(from[i], 0, NOTE, bounds[i], &s[i]), 0);
        assert_int_equal(rnl_piece(s[i], "1234", 4), 0);
    }
    const struct rnl_message b = {.peer = 0, .handler = NOTE, .bound = 3 << 20};
    const struct rnl_buffer piece = {test_pattern(1, 0), 3 << 20};
    assert_int_equal(rnl_post(f->b, &b, &piece, 1, done, f), 0);
    assert_int_equal(f->done, 0);
    kill_a(f);
    drain(f->b);
    drain(f->b);
    drain(f->c);
    assert_int_equal(f->done, 1);
    assert_int_equal(f->done_status, RNL_ERR_PEER_DEAD);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rnl_piece(s[i], "1234", 4), RNL_ERR_PEER_DEAD);
        assert_int_equal(rnl_end(s[i]), RNL_ERR_PEER_DEAD); /* it is closed */
        assert_int_equal(rnl_end(s[i]), RNL_ERR_ARG);
    }
    assert_int_equal(rnl_send(f->b, 2, NOTE, "x", 1), 0);
    drain(f->c);
}

static void *kill_soon(void *arg)
{
    test_sleep_ms(100);
    kill_a(arg);
    return NULL;
}

static void who_waits_for_room_of_the_dead_is_released(void **state)
{
    static const size_t bounds[] = {48, 200000, 3 << 20};
    struct fixture *f = *state;
    for (size_t i = 0; i < 3; i++) {
        pthread_t thread;
        int status = 0;
        if (i > 0) {
            void *p = f;
            assert_int_equal(tear_down(&p), 0);
            assert_int_equal(set_up(&p), 0);
            *state = f = p;
        }
        assert_int_equal(pthread_create(&thread, NULL, kill_soon, f), 0);
        while (status == 0) { /* a never takes anything in */
            const struct rnl_message b = {.peer = 0, .handler = NOTE, .bound = bounds[i]};
            rnl_stream *s;
            status = rnl_begin(f->b, &b, &s);
            if (status == 0) {
                status = rnl_piece(s, test_pattern(1, 0), bounds[i]);
                int ended = rnl_end(s);
                assert_true(status == 0 || ended == RNL_ERR_PEER_DEAD);
                status = ended;
            }
        }
        pthread_join(thread, NULL);
        assert_int_equal(status, RNL_ERR_PEER_DEAD);
        assert_int_equal(rnl_get_counters(f->b)->waiting_for_rank, 0);
        assert_int_equal(rnl_get_counters(f->b)->waiting_since_ns, 0);
        drain(f->b);
        assert_int_equal(f->deaths, 1);
    }
}

/* ---- what on_death may do ---- */

struct mourner {
    rnl_endpoint *ep;
    int deaths, sent;
};

static void mourns(void *arg, unsigned peer, enum rnl_death_reason reason)
{
    struct mourner *m = arg;
    struct rnl_peer_info info;
    (void)reason;
    m->deaths++;
    TEST_MUST(rnl_extract(m->ep, SIZE_MAX) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_wait(m->ep, 0) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_close(m->ep) == RNL_ERR_CONTEXT);
    TEST_MUST(rnl_send(m->ep, peer, NOTE, "x", 1) == RNL_ERR_PEER_DEAD);
    TEST_MUST(rnl_peer(m->ep, peer, &info) == 0 && info.state == RNL_PEER_DEAD);
    m->sent += rnl_send(m->ep, 0, NOTE, "x", 1) == 0;
}

static void on_death_is_told_when_nothing_is_under_way(void **state)
{
    (void)state;
    struct test_hub h;
    struct inbox in = {.count = 0};
    struct rnl_peer_info info;
    for (unsigned last = 0; last < 5; last++) {
        test_hub_open(&h, 5, NULL);
        struct mourner m = {.ep = h.ep[0]};
        rnl_on_death(h.ep[0], mourns, &m);
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(rnl_handler_stream(h.ep[i], NOTE, inbox_stream, &in), NOTE);
        if (last > 0) { /* all are polled, and each time another peer is the next to be */
            acquaint(&h);
            assert_int_equal(rnl_send(h.ep[last], 0, NOTE, "x", 1), 0);
            assert_int_equal(rnl_extract(h.ep[0], 1), 1);
        }
        for (unsigned i = 1; i < 5; i++)
            test_hub_kill(&h, i, RNL_DEATH_SIGNAL, 9);
        assert_int_equal(rnl_peer(h.ep[0], 4, &info), 0); /* notices, and tells nobody */
        assert_int_equal(m.deaths, 0);
        for (unsigned i = 0; i < 3; i++)
            assert_true(rnl_extract(h.ep[0], SIZE_MAX) >= 0);
        assert_int_equal(m.deaths, 4);
        assert_int_equal(m.sent, 4);
        drain(h.ep[0]);
        assert_int_equal(test_hub_close(&h), 0);
    }
    inbox_free(&in);
}

/* ---- broken peers ---- */

struct blocked {
    rnl_endpoint *ep;
    int status;
};
static void *send_until_told(void *arg)
{
    struct blocked *b = arg;
    do
        b->status = rnl_send(b->ep, 1, NOTE, "x", 1);
    while (b->status == 0);
    return NULL;
}

/* Whoever broke the protocol, or is held for one that did, is told: it does not wait for room for ever, and all can
 * close. */
static void who_breaks_the_protocol_is_told(void **state)
{
    struct fixture *f = *state;
    struct blocked b = {.ep = f->a};
    pthread_t thread;
    test_seam_break_protocol(f->a, 1); /* what else cannot be true, test_lies.c says cell by cell */
    pthread_create(&thread, NULL, send_until_told, &b);
    for (int i = 0; f->deaths == 0 && i < 1000; i++)
        (void)!rnl_wait(f->b, 1000000);
    assert_int_equal(f->reason, RNL_DEATH_BROKEN);
    pthread_join(thread, NULL);
    assert_int_equal(b.status, RNL_ERR_PEER_DEAD);
    drain(f->a);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "x", 1), RNL_ERR_PEER_DEAD);
    SAYS(RNL_ERR_PEER_DEAD, "rank 1", "ended the connection");
    assert_int_equal(rnl_send(f->a, 2, NOTE, "x", 1), 0); /* alive for everybody else */
    drain(f->c);
    assert_int_equal(f->in.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_death_is_told_once_and_explained),
        cmocka_unit_test(who_never_connected_dies_too),
        TEST(what_the_dead_had_sent_is_delivered_first),
        TEST(a_suspended_handler_is_told),
        TEST(open_messages_and_posts_to_the_dead_are_lost_and_told),
        TEST(who_waits_for_room_of_the_dead_is_released),
        cmocka_unit_test(on_death_is_told_when_nothing_is_under_way),
        TEST(who_breaks_the_protocol_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
