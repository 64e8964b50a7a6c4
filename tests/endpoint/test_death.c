/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers that die or break the protocol: who learns of it, how, and what becomes of open messages. The dying is done by
 * the hub; a broken peer's hand writes into its shared side. */
#include "stream/inbox.h"

#include <pthread.h>

#include "endpoint/endpoint.h"

enum { NOTE = 1, HALF = 2, ASK = 3 };

struct fixture {
    struct test_hub h;
    rnl_endpoint *a, *b, *c;
    struct inbox in;
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

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    test_hub_open(&f->h, 3, NULL);
    f->a = f->h.ep[0], f->b = f->h.ep[1], f->c = f->h.ep[2];
    for (unsigned i = 0; i < 3; i++) {
        TEST_MUST(rnl_handler_stream(f->h.ep[i], NOTE, inbox_stream, &f->in) == NOTE);
        TEST_MUST(rnl_handler_stream(f->h.ep[i], HALF, half, f) == HALF);
    }
    rnl_on_death(f->b, on_death, f);
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
    free(f);
    return status;
}

static void kill_a(struct fixture *f)
{
    test_hub_kill(&f->h, 0, RNL_DEATH_SIGNAL, 9);
}

static void a_death_is_told_once_and_explained(void **state)
{
    struct fixture *f = *state;
    struct rnl_begin b = {.peer = 0, .handler = NOTE, .bound = 1000};
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
    const struct rnl_begin b = {.peer = 0, .handler = NOTE, .bound = 3 << 20};
    const struct rnl_piece piece = {test_pattern(1, 0), 3 << 20};
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

static void a_message_for_no_handler_waits_no_more_once_its_sender_is_dead(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(rnl_send(f->a, 1, 77, "x", 1), 0);
    drain(f->b);
    assert_int_equal(rnl_get_counters(f->b)->missing_handler, 77 + 1);
    assert_int_equal(rnl_get_counters(f->b)->missing_handler_rank, 0 + 1);
    kill_a(f);
    drain(f->b);
    assert_int_equal(f->deaths, 1);
    assert_int_equal(rnl_get_counters(f->b)->missing_handler, 0);
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
        uint64_t then = test_now_ns();
        assert_int_equal(pthread_create(&thread, NULL, kill_soon, f), 0);
        while (status == 0) { /* a never takes anything in */
            const struct rnl_begin b = {.peer = 0, .handler = NOTE, .bound = bounds[i]};
            rnl_stream *s;
            status = rnl_begin(f->b, &b, &s);
            if (status == 0) {
                status = rnl_piece(s, test_pattern(1, 0), bounds[i]);
                int ended = rnl_end(s);
                assert_true(status == 0 || ended == RNL_ERR_PEER_DEAD);
                status = ended;
            }
        }
        uint64_t took = test_now_ns() - then;
        pthread_join(thread, NULL);
        assert_int_equal(status, RNL_ERR_PEER_DEAD);
        assert_true(took < 5000000000u);
        assert_int_equal(rnl_get_counters(f->b)->waiting_for_rank, 0);
        assert_int_equal(rnl_get_counters(f->b)->waiting_since_ns, 0);
        drain(f->b);
        assert_int_equal(f->deaths, 1);
    }
}

/* Posts queued behind which nobody waits, and lines that must not be taken in: the peer is dying for long. */
static void who_sends_behind_posts_to_the_dead_is_released(void **state)
{
    (void)state;
    pthread_t thread;
    struct fixture f = {.done = 0};
    const struct rnl_options opt = {.flags = RNL_NO_RUN_IN_SEND};
    const struct rnl_begin b = {.peer = 0, .handler = NOTE, .bound = 3 << 20};
    const struct rnl_piece piece = {test_pattern(1, 0), 3 << 20};
    test_hub_open(&f.h, 2, &opt);
    assert_int_equal(rnl_handler_stream(f.h.ep[1], NOTE, inbox_stream, &f.in), NOTE);
    assert_int_equal(rnl_send(f.h.ep[0], 1, NOTE, "unread", 6), 0);
    assert_int_equal(rnl_post(f.h.ep[1], &b, &piece, 1, done, &f), 0);
    assert_int_equal(pthread_create(&thread, NULL, kill_soon, &f), 0);
    assert_int_equal(rnl_send(f.h.ep[1], 0, NOTE, "x", 1), RNL_ERR_PEER_DEAD);
    pthread_join(thread, NULL);
    drain(f.h.ep[1]);
    drain(f.h.ep[1]);
    assert_int_equal(f.done, 1);
    assert_int_equal(f.done_status, RNL_ERR_PEER_DEAD);
    assert_int_equal(f.in.count, 1);
    assert_int_equal(test_hub_close(&f.h), 0);
    inbox_free(&f.in);
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
    for (unsigned round = 0; round < 2; round++) {
        test_hub_open(&h, 5, NULL);
        struct mourner m = {.ep = h.ep[0]};
        rnl_on_death(h.ep[0], mourns, &m);
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(rnl_handler_stream(h.ep[i], NOTE, inbox_stream, &in), NOTE);
        if (round == 0) { /* all are polled, and the last is the next to be */
            acquaint(&h);
            unsigned last = h.ep[0]->hot[3]->rank;
            assert_int_equal(rnl_send(h.ep[last], 0, NOTE, "x", 1), 0);
            assert_int_equal(rnl_extract(h.ep[0], 1), 1);
            assert_int_equal(h.ep[0]->turn, 4);
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

static struct rnl_conn *conn_to(rnl_endpoint *ep, unsigned peer)
{
    return ep->peer[peer].conn;
}

enum sin {
    ITEMS_TOO_LONG,
    UNKNOWN_KIND,
    ACK_AHEAD,
    POSITION_AHEAD,
    BULK_AHEAD,
    EXTENT_OUTSIDE,
    EXTENT_SHORT_LINE,
    PREFIX_WITHOUT_EXTENT,
    PREFIX_TOO_LONG,
    MESSAGE_INSIDE_MESSAGE,
    ANSWER_TOO_LONG,
    REFUSED_ON_LANE_0,
    ASK_TOO_SHORT,
    LONGER_THAN_BOUND,
    ABORT_AT_ONCE,
    ABORT_NOT_LAST,
    ABORT_WITH_BYTES,
    ABORT_WITHOUT_MESSAGE,
    SINS
};

static void put_line(struct rnl_conn *conn, unsigned kind, unsigned handler, unsigned len, unsigned n,
                     const void *payload, size_t bytes, uint64_t ack)
{
    struct rnl_tx *t = &conn->pair.tx[0];
    uint64_t start = RNL_LINE_START(t->pos);
    struct rnl_line *at = rnl_line_of(t->ring, t->wrap, start);
    memcpy(at->payload, payload, bytes);
    t->pos = start + 8;
    t->key = RNL_HEAD_KEY_NONE;
    atomic_store_explicit(&at->head,
                          (uint16_t)(start + n) | (rnl_head)(uint16_t)ack << 16 | rnl_head_key(kind, handler, len),
                          memory_order_release);
}

static void commit_sin(struct fixture *f, enum sin what)
{
    struct rnl_conn *conn = conn_to(f->a, 1);
    const struct rnl_tx *t = &conn->pair.tx[0];
    uint64_t ack = conn->pair.rx[0].pos;
    unsigned char zero[56] = {0};
    struct rnl_extent e = {
        .start = t->bulk_head, .reserved = 1000, .published = 500, .bound = 1000, .flags = RNL_EXTENT_FIRST};
    struct rnl_prefix p = {.published = 400};
    struct rnl_ask ask = {.answer = 65537};
    switch (what) {
    case ITEMS_TOO_LONG:
        put_line(conn, RNL_LINE_ITEMS, NOTE, 20, 3, zero, sizeof zero, ack);
        break;
    case UNKNOWN_KIND:
        put_line(conn, 29, NOTE, 8, 1, zero, 8, ack);
        break;
    case ACK_AHEAD:
        put_line(conn, RNL_LINE_ITEMS, NOTE, 8, 1, zero, 8, ack + 100);
        break;
    case POSITION_AHEAD:
        atomic_store(&conn->pair.mine->back[0].position, ack + 100000);
        break;
    case BULK_AHEAD:
        atomic_store(&conn->pair.mine->back[0].bulk_read, (uint64_t)1 << 40);
        break;
    case EXTENT_OUTSIDE:
        e.reserved = RNL_BULK_BYTES + 64;
        put_line(conn, RNL_LINE_EXTENT, NOTE, sizeof e, 1, &e, sizeof e, ack);
        break;
    case EXTENT_SHORT_LINE:
        put_line(conn, RNL_LINE_EXTENT, NOTE, sizeof e - 8, 1, &e, sizeof e - 8, ack);
        break;
    case PREFIX_WITHOUT_EXTENT:
        put_line(conn, RNL_LINE_PREFIX, NOTE, sizeof p, 1, &p, sizeof p, ack);
        break;
    case PREFIX_TOO_LONG:
        put_line(conn, RNL_LINE_EXTENT, HALF, sizeof e, 1, &e, sizeof e, ack);
        p.published = 1001;
        put_line(conn, RNL_LINE_PREFIX, HALF, sizeof p, 1, &p, sizeof p, ack);
        break;
    case MESSAGE_INSIDE_MESSAGE:
        put_line(conn, RNL_LINE_EXTENT, HALF, sizeof e, 1, &e, sizeof e, ack);
        put_line(conn, RNL_LINE_ITEMS, NOTE, 8, 1, zero, 8, ack);
        break;
    case ANSWER_TOO_LONG:
        put_line(conn, RNL_LINE_ASK, NOTE, sizeof ask, 1, &ask, sizeof ask, ack);
        break;
    case REFUSED_ON_LANE_0:
        put_line(conn, RNL_LINE_REFUSED, NOTE, 8, 1, zero, 8, ack);
        break;
    case ASK_TOO_SHORT:
        put_line(conn, RNL_LINE_ASK, NOTE, 4, 1, zero, 8, ack);
        break;
    case ABORT_AT_ONCE:
        e.flags = RNL_EXTENT_FLAGS;
        e.published = 0;
        put_line(conn, RNL_LINE_EXTENT, NOTE, sizeof e, 1, &e, sizeof e, ack);
        break;
    case ABORT_NOT_LAST:
    case ABORT_WITH_BYTES:
        put_line(conn, RNL_LINE_EXTENT, HALF, sizeof e, 1, &e, sizeof e, ack);
        p.flags = RNL_EXTENT_ABORT | RNL_EXTENT_CLOSED | (what == ABORT_NOT_LAST ? 0 : RNL_EXTENT_LAST);
        p.published = what == ABORT_NOT_LAST ? 500 : 501;
        put_line(conn, RNL_LINE_PREFIX, HALF, sizeof p, 1, &p, sizeof p, ack);
        break;
    case ABORT_WITHOUT_MESSAGE:
        e.flags = RNL_EXTENT_FLAGS & ~RNL_EXTENT_FIRST;
        e.published = 0;
        put_line(conn, RNL_LINE_EXTENT, NOTE, sizeof e, 1, &e, sizeof e, ack);
        break;
    default:
        e.bound = 499;
        put_line(conn, RNL_LINE_EXTENT, NOTE, sizeof e, 1, &e, sizeof e, ack);
        break;
    }
}

static void who_breaks_the_protocol_is_dead_for_us(void **state)
{
    struct fixture *f = *state;
    for (int what = 0; what < SINS; what++) {
        if (what > 0) {
            void *p = f;
            TEST_MUST(tear_down(&p) == 0);
            assert_int_equal(set_up(&p), 0);
            *state = f = p;
        }
        commit_sin(f, (enum sin)what);
        for (unsigned i = 0; i < 3; i++)
            drain(f->b);
        if (what == POSITION_AHEAD || what == BULK_AHEAD) { /* found by who needs room */
            struct rnl_tx *t = &conn_to(f->b, 0)->pair.tx[0];
            int status;
            while ((status = post_card(f->b, 0, NOTE, test_pattern(0, 0), what == BULK_AHEAD ? 500000 : 56)) == 0)
                if (what == BULK_AHEAD) /* all lines are read, so that it is the area that fills up */
                    atomic_store(&conn_to(f->a, 1)->pair.mine->back[0].position, RNL_LINE_START(t->pos));
            if (status != RNL_ERR_PEER_BROKEN)
                fail_msg("sin %d: status %d", what, status);
            drain(f->b);
        }
        if (f->deaths != 1 || f->reason != RNL_DEATH_BROKEN)
            fail_msg("sin %d: %d deaths, reason %d", what, f->deaths, (int)f->reason);
        assert_int_equal(rnl_send(f->b, 0, NOTE, "x", 1), RNL_ERR_PEER_BROKEN);
        SAYS(RNL_ERR_PEER_BROKEN, "rank 0", "protocol");
        assert_int_equal(f->in.count, 0);
        assert_int_equal(rnl_get_counters(f->b)->broken, 1);
        assert_int_equal(rnl_get_counters(f->b)->stacks_in_use, 0);
        if (what == PREFIX_TOO_LONG || what == MESSAGE_INSIDE_MESSAGE || what == ABORT_NOT_LAST ||
            what == ABORT_WITH_BYTES)
            assert_true(f->half_status == RNL_ERR_PEER_BROKEN || f->half_status == RNL_ERR_PEER_DEAD);
        assert_int_equal(rnl_send(f->c, 1, NOTE, "x", 1), 0);
        drain(f->b);
        assert_int_equal(f->in.count, 1);
        kill_a(f); /* so that the others can close */
    }
}

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
    commit_sin(f, UNKNOWN_KIND);
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_death_is_told_once_and_explained),
        cmocka_unit_test(who_never_connected_dies_too),
        TEST(what_the_dead_had_sent_is_delivered_first),
        TEST(a_suspended_handler_is_told),
        TEST(open_messages_and_posts_to_the_dead_are_lost_and_told),
        TEST(a_message_for_no_handler_waits_no_more_once_its_sender_is_dead),
        TEST(who_waits_for_room_of_the_dead_is_released),
        cmocka_unit_test(who_sends_behind_posts_to_the_dead_is_released),
        cmocka_unit_test(on_death_is_told_when_nothing_is_under_way),
        TEST(who_breaks_the_protocol_is_dead_for_us),
        TEST(who_breaks_the_protocol_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
