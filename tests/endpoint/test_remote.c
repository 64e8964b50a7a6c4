/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers of other hosts: when datagrams go out, who is woken, what becomes of silent and of broken peers, and what idle
 * links cost. That messages arrive, whatever the network does, is shown by the tests of streams, which run over it. */
#include "stream/inbox.h"

#include <errno.h>
#include <pthread.h>

#include "endpoint/link.h"
#include "job/job.h"

enum { NOTE = 1, ASKED };
#define MS ((uint64_t)1000000)

struct fixture {
    struct test_hub h;
    struct test_wires *wires;
    rnl_endpoint *a, *b;
    struct inbox in_a, in_b;
};

static void open_on(struct fixture *f, struct test_wires *wires, unsigned size, const struct rnl_remote_options *opt)
{
    memset(f, 0, sizeof *f);
    test_hub_open(&f->h, size, NULL);
    f->wires = wires;
    if (opt)
        test_wires_options(f->wires, opt);
    for (unsigned i = 0; i < size; i++)
        test_wires_attach(f->wires, f->h.ep[i]);
    f->a = f->h.ep[0];
    f->b = f->h.ep[1];
    assert_int_equal(rnl_handler_stream(f->a, NOTE, inbox_stream, &f->in_a), NOTE);
    assert_int_equal(rnl_handler_stream(f->b, NOTE, inbox_stream, &f->in_b), NOTE);
}

/* On a clock of their own: what is due, and when, is the same however long this thread is kept from running. */
static void open_them(struct fixture *f, unsigned size, unsigned per_host, const struct rnl_remote_options *opt)
{
    struct test_wires *wires = test_wires_new(size, "", per_host);
    test_wires_ticks(wires);
    open_on(f, wires, size, opt);
}

static uint64_t now_ns(struct fixture *f)
{
    return test_wires_now_ns(f->wires);
}

static int close_them(struct fixture *f)
{
    test_wires_threads(f->wires);
    int status = test_hub_close(&f->h);
    test_wires_free(f->wires);
    inbox_free(&f->in_a);
    inbox_free(&f->in_b);
    return status;
}

static struct rnl_conn *conn_of(rnl_endpoint *ep, unsigned rank)
{
    return ep->peer[rank].conn;
}

/* ---- when datagrams go out ---- */

static void a_lone_message_leaves_in_its_call_and_others_together(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    unsigned long before = test_wires_sent(f.wires);
    assert_int_equal(rnl_send(f.a, 1, NOTE, "one", 3), 0);
    assert_int_equal(test_wires_sent(f.wires), before + 1);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(rnl_send(f.a, 1, NOTE, "others", 6), 0);
    assert_int_equal(test_wires_sent(f.wires), before + 1); /* the first is under way still */
    assert_int_equal(rnl_flush(f.a), 0);
    assert_int_equal(test_wires_sent(f.wires), before + 2);
    drain(f.b);
    assert_int_equal(f.in_b.count, 21);
    assert_int_equal(close_them(&f), 0);
}

/* To each host one packet, to the network one call. */
static void what_goes_to_many_hosts_leaves_in_one_call(void **state)
{
    enum { HOSTS = 8 };
    struct fixture f;
    (void)state;
    open_them(&f, HOSTS, 1, NULL);
    test_wires_connect(f.wires);
    for (unsigned to = 1; to < HOSTS; to++)
        for (int i = 0; i < 2; i++) /* the first does not wait for the others */
            assert_int_equal(rnl_send(f.a, to, NOTE, "one", 3), 0);
    unsigned long sent = test_wires_sent(f.wires), calls = test_wires_calls(f.wires);
    assert_int_equal(rnl_flush(f.a), 0);
    assert_int_equal(test_wires_sent(f.wires), sent + HOSTS - 1);
    assert_int_equal(test_wires_calls(f.wires), calls + 1);
    for (unsigned to = 2; to < HOSTS; to++)
        assert_int_equal(rnl_handler_stream(f.h.ep[to], NOTE, inbox_stream, &f.in_b), NOTE);
    for (unsigned to = 1; to < HOSTS; to++)
        drain(f.h.ep[to]);
    assert_int_equal(f.in_b.count, 2 * (HOSTS - 1));
    assert_int_equal(close_them(&f), 0);
}

/* What it has to say after that, room in its ring, goes with the answer, or when it looks again. */
static void who_takes_a_message_in_says_its_room_with_the_answer(void **state)
{
    struct fixture f;
    unsigned kept = 0;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    test_wires_threads(f.wires); /* nobody lets the other side run */
    uint64_t until = now_ns(&f) + 20000 * MS;
    for (unsigned i = 0; i < 4 * RNL_SMALL0; i++) {
        const struct rnl_mirror *of_b = conn_of(f.b, 0)->link->mirror;
        assert_int_equal(rnl_send(f.a, 1, NOTE, "ask", 3), 0);
        while (f.in_b.count == i && now_ns(&f) < until)
            assert_true((rnl_extract(f.a, SIZE_MAX) | rnl_extract(f.b, SIZE_MAX)) >= 0);
        kept += rnl_mirror_unsaid(of_b) != 0;
        if (i % 2 == 0)
            assert_int_equal(rnl_send(f.b, 0, NOTE, "answer", 6), 0);
        while (rnl_mirror_unsaid(of_b) && now_ns(&f) < until)
            assert_true((rnl_extract(f.a, 0) | rnl_extract(f.b, SIZE_MAX)) >= 0);
        assert_false(rnl_mirror_unsaid(of_b));
        while (f.in_a.count < (i + 2) / 2 && now_ns(&f) < until)
            assert_true((rnl_extract(f.b, SIZE_MAX) | rnl_extract(f.a, SIZE_MAX)) >= 0);
        assert_int_equal(f.in_a.count, (i + 2) / 2);
    }
    assert_true(kept > 0);
    assert_int_equal(close_them(&f), 0);
}

static void what_piles_up_leaves_by_itself(void **state)
{
    static const char bytes[4000];
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    test_wires_threads(f.wires); /* nobody lets the sender run */
    unsigned long before = test_wires_sent(f.wires);
    for (unsigned i = 0; i < 25; i++)
        assert_int_equal(post_card(f.a, 1, NOTE, bytes, sizeof bytes), 0);
    assert_true(test_wires_sent(f.wires) > before + 1); /* not the lone first one only */
    test_wires_connect(f.wires);
    drain(f.b);
    assert_int_equal(f.in_b.count, 25);
    assert_int_equal(close_them(&f), 0);
}

/* Acknowledgements are taken in by sends, too. */
static void who_only_sends_need_not_extract(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    test_wires_threads(f.wires); /* nobody lets the sender run */
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(rnl_send(f.a, 1, NOTE, "x", 1), 0);
        uint64_t until = now_ns(&f) + 1000 * MS;
        while (f.in_b.count <= i && now_ns(&f) < until)
            assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
        assert_int_equal(f.in_b.count, i + 1);
        for (unsigned k = 0; k < 20; k++) { /* its acknowledgement goes out */
            test_wires_pass(f.wires, MS);
            assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
        }
    }
    assert_int_equal(close_them(&f), 0);
}

/* ... while the window is open, too: else what is under way is not known. */
static void who_sends_much_hears_what_has_come(void **state)
{
    static const char bytes[12000];
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    test_wires_threads(f.wires); /* nobody lets the sender run */
    struct rnl_flow *flow = &conn_of(f.a, 1)->link->flow;
    flow->congest.window = (uint64_t)(1 << 20) << 8;
    for (unsigned i = 0; i < 14; i++)
        assert_int_equal(post_card(f.a, 1, NOTE, bytes, sizeof bytes), 0);
    uint64_t sent = flow->flight;
    assert_true(sent >= 100000);
    for (unsigned k = 0; k < 20; k++) { /* the peer takes them in, and says so */
        assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
        test_wires_pass(f.wires, 5000);
    }
    assert_int_equal(flow->flight, sent);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(post_card(f.a, 1, NOTE, bytes, sizeof bytes), 0);
    assert_true(rnl_flow_may_send(flow, now_ns(&f)));
    assert_true(flow->flight < sent);
    test_wires_connect(f.wires);
    drain(f.b);
    assert_int_equal(close_them(&f), 0);
}

/* Its sender does not wait for that room, and is told of it by the acknowledgement, which goes a little later. */
static void what_has_been_read_is_said_with_its_acknowledgement(void **state)
{
    static const char bytes[100];
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    test_wires_stop(f.wires, 1);
    for (unsigned i = 0; i < 4; i++) { /* the first packets of a key ask for acknowledgements */
        assert_int_equal(rnl_send(f.a, 1, NOTE, "x", 1), 0);
        assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
        test_wires_pass(f.wires, 30000);
    }
    const struct rnl_conn *conn = conn_of(f.a, 1);
    const _Atomic uint64_t *read = &conn->pair.theirs->back[0].bulk_read;
    const struct rnl_begin begin = {.peer = 1, .handler = NOTE, .bound = sizeof bytes};
    rnl_stream *s;
    assert_int_equal(rnl_begin(f.a, &begin, &s), 0);
    assert_int_equal(rnl_piece(s, bytes, sizeof bytes), 0);
    assert_int_equal(rnl_end(s), 0);
    assert_int_equal(rnl_flush(f.a), 0);
    unsigned long before = test_wires_sent(f.wires);
    assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
    assert_int_equal(f.in_b.count, 5);
    assert_int_equal(test_wires_sent(f.wires), before);
    test_wires_pass(f.wires, 30000);
    assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
    assert_int_equal(test_wires_sent(f.wires), before + 1);
    assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
    assert_int_equal(conn->link->flow.sent.count, 0);
    assert_true(atomic_load_explicit(read, memory_order_relaxed) >= sizeof bytes);
    test_wires_stop(f.wires, 0);
    assert_int_equal(close_them(&f), 0);
}

static int answer_it(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    static const char answer[RNL_LINE_PAYLOAD]; /* one to a line */
    return rnl_reply(s, NOTE, answer, sizeof answer) == 0 ? RNL_DONE : RNL_QUIT;
}

/* n requests arrive together. */
static void ask(struct fixture *f, unsigned n)
{
    const struct rnl_begin begin = {.peer = 1, .handler = ASKED, .bound = 3, .answer = RNL_LINE_PAYLOAD};
    rnl_stream *s;
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(rnl_begin(f->a, &begin, &s), 0);
        assert_int_equal(rnl_piece(s, "ask", 3), 0);
        assert_int_equal(rnl_end(s), 0);
    }
    assert_int_equal(rnl_flush(f->a), 0);
}

/* The first packets of a key ask for acknowledgements: not those to come. */
static void open_to_ask(struct fixture *f)
{
    open_them(f, 2, 1, NULL);
    assert_int_equal(rnl_handler_stream(f->b, ASKED, answer_it, NULL), ASKED);
    test_wires_connect(f->wires);
    test_wires_stop(f->wires, 1);
    for (unsigned i = 0; i < 6; i++) {
        ask(f, 1);
        assert_true(rnl_extract(f->b, SIZE_MAX) >= 0);
        test_wires_pass(f->wires, 30000);
        assert_true((rnl_extract(f->a, SIZE_MAX) | rnl_extract(f->a, SIZE_MAX)) >= 0);
        test_wires_pass(f->wires, 30000);
        assert_true((rnl_extract(f->a, SIZE_MAX) | rnl_extract(f->b, SIZE_MAX)) >= 0);
    }
    assert_int_equal(f->in_a.count, 6);
    assert_int_equal(conn_of(f->b, 0)->link->flow.sent.count, 0);
}

/* The first of them is alone in flight, but others follow at once. */
static void what_an_extract_is_answered_goes_together(void **state)
{
    enum { ASKS = 8 };
    struct fixture f;
    (void)state;
    open_to_ask(&f);
    ask(&f, ASKS);
    unsigned long before = test_wires_sent(f.wires);
    assert_true(rnl_extract(f.b, SIZE_MAX) > 0);
    assert_int_equal(test_wires_sent(f.wires), before + 1);
    assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
    assert_int_equal(f.in_a.count, 6 + ASKS);
    test_wires_stop(f.wires, 0);
    assert_int_equal(close_them(&f), 0);
}

/* A turn at the end of an extract is held at the time of what it took in, but handlers have read the clock since. */
static void no_turn_is_held_at_an_earlier_time_than_the_last(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    assert_int_equal(rnl_send(f.b, 0, NOTE, "one", 3), 0);
    drain(f.a);
    struct rnl_remote *r = f.a->remote;
    uint64_t received = r->received_ns;
    assert_true(received > 0);
    assert_int_equal(rnl_send(f.a, 1, NOTE, "two", 3), 0); /* alone: it goes at once */
    uint64_t last = r->sent_ns;
    assert_true(last > received && r->received_ns == received);
    rnl_remote_mark(conn_of(f.a, 1)->link, RNL_LINK_PRESSES);
    rnl_remote_send_after(f.a);
    assert_null(r->first);
    assert_int_equal(r->sent_ns, last);
    assert_int_equal(close_them(&f), 0);
}

static void ranks_of_one_host_use_no_network(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, 4, 2, NULL);
    assert_int_equal(rnl_send(f.a, 1, NOTE, "near", 4), 0);
    assert_true(rnl_extract(f.b, SIZE_MAX) == 4);
    assert_int_equal(test_wires_sent(f.wires), 0);
    assert_int_equal(rnl_handler_stream(f.h.ep[2], NOTE, inbox_stream, &f.in_a), NOTE);
    assert_int_equal(rnl_send(f.a, 2, NOTE, "far", 3), 0);
    for (unsigned i = 0; f.in_a.count == 0 && i < 1000; i++) {
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f.h.ep[2], SIZE_MAX) >= 0);
    }
    assert_int_equal(f.in_a.count, 1);
    assert_int_equal(close_them(&f), 0);
}

/* Beside peers of this host the network is asked seldom, if nothing comes of it; and often again when something does.
 */
static void who_talks_to_this_host_is_not_kept_by_the_network(void **state)
{
    struct fixture f;
    unsigned extracts = 0;
    (void)state;
    open_them(&f, 4, 2, NULL);
    assert_int_equal(rnl_handler_stream(f.h.ep[2], NOTE, inbox_stream, &f.in_b), NOTE);
    assert_int_equal(rnl_send(f.a, 2, NOTE, "far", 3), 0);
    while (f.in_b.count == 0) {
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f.h.ep[2], SIZE_MAX) >= 0);
    }
    for (unsigned i = 0; i < 3000; i++) {
        assert_int_equal(rnl_send(f.a, 1, NOTE, "near", 4), 0);
        while (rnl_extract(f.b, SIZE_MAX) == 0)
            ;
        f.in_b.count = 0;
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
    }
    unsigned long looks = test_wires_looks(f.wires);
    for (unsigned i = 0; i < 20000; i++)
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
    assert_true(test_wires_looks(f.wires) < looks + 1000);
    assert_int_equal(rnl_send(f.h.ep[2], 0, NOTE, "far", 3), 0);
    for (; f.in_a.count == 0 && extracts < 10000; extracts++) {
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f.h.ep[2], SIZE_MAX) >= 0);
    }
    assert_int_equal(f.in_a.count, 1);
    assert_int_equal(close_them(&f), 0);
}

/* ---- sleeping ---- */

static _Atomic int woken;

static void *send_now_and_then(void *arg)
{
    struct fixture *f = arg;
    for (unsigned i = 0; i < 600 && !atomic_load_explicit(&woken, memory_order_acquire); i++) {
        test_sleep_ms(30);
        TEST_MUST(rnl_send(f->a, 1, NOTE, &i, sizeof i) == 0);
        for (unsigned k = 0; k < 5; k++)
            TEST_MUST(rnl_wait(f->a, MS / 10) == RNL_TIMED_OUT);
    }
    return NULL;
}

/* Who has to share its processor yields for long before it sleeps: there may be more than ten. */
static void a_sleeper_is_woken_by_datagrams(void **state)
{
    struct fixture f;
    pthread_t thread;
    (void)state;
    open_on(&f, test_wires_new(2, "", 1), 2, NULL);
    uint64_t slept = rnl_get_counters(f.b)->sleeps;
    assert_int_equal(pthread_create(&thread, NULL, send_now_and_then, &f), 0);
    while (f.in_b.count < 10 || rnl_get_counters(f.b)->sleeps == slept)
        assert_true(rnl_wait(f.b, 10000 * (int64_t)MS) >= 4);
    atomic_store_explicit(&woken, 1, memory_order_release);
    pthread_join(thread, NULL);
    assert_int_equal(close_them(&f), 0);
}

/* ---- ends ---- */

static int wait_for_death(struct fixture *f, rnl_endpoint *ep, unsigned rank)
{
    struct rnl_peer_info info = {0};
    uint64_t until = now_ns(f) + 5000 * MS;
    while (now_ns(f) < until) {
        (void)!rnl_wait(ep, 5 * (int64_t)MS);
        assert_int_equal(rnl_peer(ep, rank, &info), 0);
        if (info.state == RNL_PEER_DEAD)
            return (int)info.reason;
    }
    return RNL_DEATH_NONE;
}

static unsigned parted;

static int part_later(struct rnl_env *env, uint32_t rank, int why)
{
    assert_int_equal(env->rank, 0);
    assert_int_equal(rank, 1);
    assert_int_equal(why, RNL_DEATH_SILENT);
    return parted++ == 0 ? RNL_NO_ROOM : 0;
}

static void who_is_silent_is_dead_after_the_bound(void **state)
{
    const struct rnl_remote_options opt = {.silent_ns = 200 * MS};
    struct rnl_env_ops ops;
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, &opt);
    ops = *f.a->env->ops;
    ops.part = part_later;
    f.a->env->ops = &ops;
    parted = 0;
    test_wires_connect(f.wires);
    for (uint64_t until = now_ns(&f) + 400 * MS; now_ns(&f) < until;) /* nothing is owed: no death */
        assert_int_equal(rnl_wait(f.a, 20 * (int64_t)MS), RNL_TIMED_OUT);
    test_wires_threads(f.wires);
    assert_int_equal(rnl_send(f.a, 1, NOTE, "?", 1), 0);
    assert_int_equal(wait_for_death(&f, f.a, 1), RNL_DEATH_SILENT);
    assert_int_equal(rnl_send(f.a, 1, NOTE, "?", 1), RNL_ERR_PEER_DEAD);
    SAYS(RNL_ERR_PEER_DEAD, "rank 1", "heard");
    for (unsigned i = 0; i < 1000; i++)
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
    assert_int_equal(parted, 2); /* the job hears of it, once there is room */
    f.h.dead[1] = 1;
    rnl_hub_kill(f.h.hub, 1, RNL_DEATH_SIGNAL, 9);
    assert_int_equal(close_them(&f), 0);
}

/* Both have to: the one that was silent learns that it was taken for dead. */
static void who_was_silent_can_be_taken_back_with_a_new_connection(void **state)
{
    const struct rnl_remote_options opt = {.silent_ns = 100 * MS};
    struct rnl_begin half = {.peer = 1, .handler = NOTE, .bound = 1000};
    struct fixture f;
    rnl_stream *s;
    (void)state;
    open_them(&f, 2, 1, &opt);
    test_wires_connect(f.wires);
    assert_int_equal(rnl_readmit(f.a, 1), 0); /* it is not dead */
    assert_int_equal(rnl_readmit(f.a, 2), RNL_ERR_RANK);
    struct rnl_conn *old = conn_of(f.a, 1);
    assert_int_equal(rnl_send(f.a, 1, NOTE, "?", 1), 0);
    assert_int_equal(rnl_begin(f.a, &half, &s), 0);
    assert_int_equal(wait_for_death(&f, f.a, 1), RNL_DEATH_SILENT);
    assert_true(rnl_extract(f.a, SIZE_MAX) >= 0); /* it is told */
    assert_int_equal(rnl_readmit(f.a, 1), RNL_BUSY);
    SAYS(RNL_BUSY, "rank 1", "open");
    assert_int_equal(rnl_end(s), RNL_ERR_PEER_DEAD);
    uint64_t granted = f.a->granted;
    assert_ptr_equal(conn_of(f.a, 1), old);
    assert_int_equal(rnl_readmit(f.a, 1), 0);
    assert_int_equal(f.a->granted, granted); /* not twice */
    assert_int_equal(rnl_send(f.a, 1, NOTE, "new", 3), 0);
    for (unsigned i = 0; i < 1000 && f.b->peer[0].state != RNL_PEER_DEAD; i++) {
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
    }
    assert_int_equal(f.b->peer[0].state, RNL_PEER_DEAD);
    while (rnl_readmit(f.b, 0) == RNL_BUSY)
        assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
    for (uint64_t until = now_ns(&f) + 5000 * MS; f.in_b.count < 2 && now_ns(&f) < until;) {
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
    }
    assert_int_equal(f.in_b.count, 2);
    assert_memory_equal(f.in_b.buf, "new", 3);
    assert_int_equal(f.a->granted, granted);
    assert_int_equal(rnl_get_counters(f.a)->readmitted, 1);
    assert_int_equal(close_them(&f), 0);
}

/* One that left alone, or took us for dead, says so. */
static void who_ends_the_connection_is_dead_for_its_peer(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    rnl_remote_part(conn_of(f.a, 1), 0);
    f.a->peer[1].state = RNL_PEER_DEAD;
    assert_int_equal(wait_for_death(&f, f.b, 0), RNL_DEATH_PARTED);
    assert_int_equal(rnl_send(f.b, 0, NOTE, "?", 1), RNL_ERR_PEER_DEAD);
    SAYS(RNL_ERR_PEER_DEAD, "rank 0", "took this process for dead");
    assert_int_equal(close_them(&f), 0);
}

static void who_never_answers_is_dead_after_the_bound(void **state)
{
    const struct rnl_remote_options opt = {.open_ns = 100 * MS};
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, &opt);
    assert_int_equal(rnl_send(f.a, 1, NOTE, "?", 1), 0);
    assert_int_equal(wait_for_death(&f, f.a, 1), RNL_DEATH_SILENT);
    f.h.dead[1] = 1;
    rnl_hub_kill(f.h.hub, 1, RNL_DEATH_SIGNAL, 9);
    assert_int_equal(close_them(&f), 0);
}

/* Whoever asks for the peer learns what the handshake found out. */
static void why_no_connection_came_about_is_said(void **state)
{
    const struct rnl_remote_options opt = {.open_ns = 100 * MS};
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, &opt);
    f.b->remote->hs.config.protect = RNL_PROTECT_ENCRYPT; /* as RNL_PROTECT says there */
    assert_int_equal(rnl_send(f.a, 1, NOTE, "?", 1), 0);
    for (unsigned i = 0; i < 100 && f.a->peer[1].state != RNL_PEER_DEAD; i++) {
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
    }
    assert_int_equal(rnl_send(f.a, 1, NOTE, "?", 1), RNL_ERR_PEER_DEAD);
    SAYS(RNL_ERR_PEER_DEAD, "rank 1 was set to have its packets encrypted", "same setting");
    f.h.dead[1] = 1;
    rnl_hub_kill(f.h.hub, 1, RNL_DEATH_SIGNAL, 9);
    assert_int_equal(close_them(&f), 0);
}

static void the_environment_says_how_packets_are_protected(void **state)
{
    static const char *const name[] = {"authenticate", "encrypt", "nothing-measure-only"};
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct fixture f;
        setenv("RNL_PROTECT", name[i], 1);
        open_them(&f, 2, 1, NULL);
        unsetenv("RNL_PROTECT");
        test_wires_connect(f.wires);
        assert_int_equal(conn_of(f.a, 1)->link->flow.keys.suite.protect, i);
        assert_int_equal(conn_of(f.b, 0)->link->flow.keys.suite.protect, i);
        assert_int_equal(rnl_get_counters(f.a)->protection, i + 1);
        assert_int_equal(rnl_send(f.a, 1, NOTE, "one", 3), 0);
        drain(f.b);
        assert_int_equal(f.in_b.count, 1);
        assert_int_equal(close_them(&f), 0);
    }
    rnl_endpoint *ep;
    setenv("RNL_PROTECT", "none", 1);
    assert_int_equal(rnl_open(&ep, NULL), RNL_ERR_ARG);
    unsetenv("RNL_PROTECT");
    SAYS(RNL_ERR_ARG, "'none'", "nothing-measure-only");
}

/* Who was declared dead is not told that he has a connection, when he begins anew. */
/* Keys from numbers that can be guessed would protect nothing. */
static void without_random_numbers_no_packets_are_sent(void **state)
{
    struct test_hub h;
    (void)state;
    test_hub_open(&h, 1, NULL);
    assert_int_equal(h.ep[0]->env->facts.guessable, 0);
    h.ep[0]->env->facts.guessable = 1; /* as where a filter forbids getrandom */
    assert_int_equal(rnl_remote_new(h.ep[0], NULL), RNL_ERR_UNSUPPORTED);
    SAYS(RNL_ERR_UNSUPPORTED, "getrandom", "filter");
    assert_int_equal(test_hub_close(&h), 0);
}

static void the_next_process_of_a_dead_rank_gets_no_answer(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    test_wires_threads(f.wires);
    /* b is another process from now on, with a secret and an incarnation of its own, and wants a connection. */
    struct rnl_link *link = conn_of(f.b, 0)->link;
    f.b->remote->hs.config.incarnation += 1000;
    f.b->remote->hs.config.secret[0] ^= 1;
    rnl_flow_fini(&link->flow);
    link->flows = link->up = 0;
    rnl_hs_peer_init(&f.b->remote->hs, &link->hs, 0, 0);
    rnl_link_want(link, now_ns(&f));
    rnl_remote_due(link, 0);
    for (unsigned i = 0; i < 100 && f.a->peer[1].state != RNL_PEER_DEAD; i++) {
        (void)!rnl_extract(f.b, SIZE_MAX);
        (void)!rnl_extract(f.a, SIZE_MAX);
    }
    for (unsigned i = 0; i < 20; i++) {
        (void)!rnl_extract(f.a, SIZE_MAX);
        (void)!rnl_extract(f.b, SIZE_MAX);
    }
    assert_int_equal(f.a->peer[1].state, RNL_PEER_DEAD);
    assert_false(link->up);
    rnl_hub_kill(f.h.hub, 1, RNL_DEATH_SIGNAL, 9);
    f.h.dead[1] = 1;
    assert_int_equal(close_them(&f), 0);
}

/* A stranger can have UNKNOWN said of packets that are not sent yet, by sending such ones himself before the connection
 * is there, and repeat it when it is. */
static void unknown_of_before_a_connection_does_not_end_it(void **state)
{
    struct fixture f;
    unsigned char said[16][RNL_UNKNOWN_BYTES];
    (void)state;
    open_them(&f, 2, 1, NULL);
    struct rnl_conn *conn;
    assert_int_equal(rnl_ep_connect(f.a, 1, &conn), 0);
    assert_int_equal(rnl_ep_connect(f.b, 0, &conn), 0);
    struct rnl_handshake *hs = &f.b->remote->hs;
    struct rnl_packet p = {.type = RNL_PACKET_DATA, .bytes = RNL_UNKNOWN_BYTES};
    uint32_t few = conn->link->hs.generation % 4095 + 1; /* it stands in every answer of b's */
    p.connection = few << 20;
    for (unsigned i = 0; i < 16; i++) {
        p.number = i + 1;
        assert_int_equal(rnl_hs_unknown(hs, &p, now_ns(&f), said[i], sizeof said[i]), RNL_UNKNOWN_BYTES);
    }
    test_wires_connect(f.wires);
    test_wires_threads(f.wires);
    struct rnl_link *link = conn_of(f.a, 1)->link;
    assert_int_equal(link->flow.connection, p.connection);
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(rnl_send(f.a, 1, NOTE, "x", 1), 0);
        assert_int_equal(rnl_flush(f.a), 0);
        for (unsigned k = 0; k < 16; k++) {
            const struct rnl_view v = {.at = said[k], .bytes = RNL_UNKNOWN_BYTES, .peer = 1};
            rnl_link_unknown(link, &v, now_ns(&f));
        }
    }
    assert_false(link->over);
    /* What it has said of a packet that is under way is believed. */
    unsigned char fresh[RNL_UNKNOWN_BYTES];
    p.number = link->flow.sent.next - 1;
    assert_true(rnl_flow_in_flight(&link->flow, p.number));
    assert_int_equal(rnl_hs_unknown(hs, &p, now_ns(&f) + 100 * MS, fresh, sizeof fresh), RNL_UNKNOWN_BYTES);
    const struct rnl_view v = {.at = fresh, .bytes = sizeof fresh, .peer = 1};
    rnl_link_unknown(link, &v, now_ns(&f));
    assert_true(link->over);
    unsigned long before = test_wires_sent(f.wires);
    for (uint64_t until = now_ns(&f) + 50 * MS; now_ns(&f) < until;)
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
    assert_int_equal(test_wires_sent(f.wires), before); /* and no more is sent there */
    rnl_hub_kill(f.h.hub, 1, RNL_DEATH_SIGNAL, 9);
    f.h.dead[1] = 1;
    assert_int_equal(close_them(&f), 0);
}

/* The round trip to one peer says nothing of the way to another. */
static void near_and_far_peers_have_paths_of_their_own(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, 3, 1, NULL);
    test_wires_connect(f.wires);
    struct rnl_link *near = conn_of(f.a, 1)->link, *far = conn_of(f.a, 2)->link;
    assert_true(near->flow.path != far->flow.path);
    assert_int_equal(close_them(&f), 0);
}

static void who_breaks_the_protocol_is_told(void **state)
{
    struct fixture f;
    int fresh = 1;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    test_wires_threads(f.wires);
    struct rnl_conn *conn = conn_of(f.b, 0);
    rnl_head key = rnl_head_key(RNL_LINE_KINDS, 0, 0);
    unsigned char *at = rnl_tx_place(&conn->pair.tx[0], key, &fresh);
    assert_non_null(at);
    rnl_pair_publish(&conn->pair, 0, key, at, fresh, 0);
    (void)rnl_ep_ring_bell(f.b, conn, RNL_ARMED_LINES);
    assert_int_equal(wait_for_death(&f, f.a, 1), RNL_DEATH_BROKEN);
    assert_int_equal(wait_for_death(&f, f.b, 0), RNL_DEATH_PARTED);
    assert_int_equal(rnl_send(f.a, 1, NOTE, "?", 1), RNL_ERR_PEER_BROKEN);
    assert_int_equal(close_them(&f), 0);
}

static void who_has_forgotten_us_is_dead(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    test_wires_threads(f.wires);
    struct rnl_link *link = conn_of(f.b, 0)->link;
    rnl_flow_fini(&link->flow);
    link->flows = link->up = 0;
    rnl_hs_end(&link->hs, 1);
    assert_int_equal(rnl_send(f.a, 1, NOTE, "?", 1), 0);
    assert_true(rnl_extract(f.b, SIZE_MAX) == 0);
    assert_int_equal(wait_for_death(&f, f.a, 1), RNL_DEATH_SILENT);
    f.h.dead[1] = 1;
    rnl_hub_kill(f.h.hub, 1, RNL_DEATH_SIGNAL, 9);
    assert_int_equal(close_them(&f), 0);
}

static void who_does_not_call_for_a_second_loses_nothing(void **state)
{
    static unsigned char bytes[100000];
    struct fixture f;
    rnl_stream *s;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_connect(f.wires);
    test_wires_threads(f.wires);
    memcpy(bytes, test_pattern(3, 0), sizeof bytes);
    const struct rnl_begin b = {.peer = 1, .handler = NOTE, .bound = sizeof bytes};
    assert_int_equal(rnl_begin(f.a, &b, &s), 0);
    assert_int_equal(rnl_piece(s, bytes, sizeof bytes), 0);
    assert_int_equal(rnl_end(s), 0);
    for (uint64_t until = now_ns(&f) + 1000 * MS; now_ns(&f) < until; test_wires_pass(f.wires, MS / 100))
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
    for (uint64_t until = now_ns(&f) + 5000 * MS; f.in_b.count == 0 && now_ns(&f) < until;) {
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
    }
    assert_int_equal(f.in_b.count, 1);
    assert_memory_equal(f.in_b.buf, bytes, sizeof bytes);
    assert_int_equal(close_them(&f), 0);
}

/* ---- idle ---- */

static int rests(rnl_endpoint *ep, unsigned rank)
{
    const struct rnl_conn *conn = conn_of(ep, rank);
    return (conn->shut & RNL_SHUT_RESTS) && !conn->link->mirror && !conn->pair.mine;
}

/* Memory fails where the test wants it: an allocator of a sanitizer is left alone. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_FAIL 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CAN_FAIL 0
#endif
#endif
#if !defined(CAN_FAIL) && defined(__GLIBC__)
#define CAN_FAIL 1
#elif !defined(CAN_FAIL)
#define CAN_FAIL 0
#endif
static int memory_fails;
#if CAN_FAIL
void *__libc_calloc(size_t n, size_t each);
void *calloc(size_t n, size_t each)
{
    if (memory_fails && n * each > 2000) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(n, each);
}
#endif

static void become_idle(struct fixture *f)
{
    test_wires_settle();
    for (uint64_t until = now_ns(f) + 2000 * MS; now_ns(f) < until && !(rests(f->a, 1) && rests(f->b, 0));) {
        assert_int_equal(rnl_wait(f->a, MS), RNL_TIMED_OUT);
        assert_int_equal(rnl_wait(f->b, MS), RNL_TIMED_OUT);
    }
    assert_true(rests(f->a, 1) && rests(f->b, 0));
}

static void an_idle_link_sends_nothing_and_gives_its_memory_back(void **state)
{
    const struct rnl_remote_options opt = {.rest_ns = 2 * MS};
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, &opt);
    test_wires_connect(f.wires);
    become_idle(&f);
    unsigned long before = test_wires_sent(f.wires);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(rnl_wait(f.a, 5 * (int64_t)MS), RNL_TIMED_OUT);
        assert_int_equal(rnl_wait(f.b, 5 * (int64_t)MS), RNL_TIMED_OUT);
    }
    assert_int_equal(test_wires_sent(f.wires), before);
    assert_true(sizeof(struct rnl_conn) + sizeof(struct rnl_link) <= 4000);
    assert_int_equal(close_them(&f), 0);
}

static void who_rested_goes_on_where_it_was(void **state)
{
    const struct rnl_remote_options opt = {.rest_ns = 2 * MS};
    struct fixture f;
    unsigned sent = 0;
    (void)state;
    open_them(&f, 2, 1, &opt);
    test_wires_connect(f.wires);
    for (unsigned round = 0; round < 12; round++) {
        unsigned count = round % 4 == 3 ? 300 : round % 4; /* the ring grows */
        for (unsigned i = 0; i < count; i++, sent++) {
            uint64_t v = sent;
            unsigned char card[300] = {0};
            memcpy(card, &v, sizeof v);
            while (post_card(f.a, 1, NOTE, card, round % 3 ? 8 : sizeof card) == RNL_NO_ROOM)
                drain(f.b);
            if (test_pattern(v, 0)[0] % 2)
                assert_int_equal(rnl_send(f.b, 0, NOTE, &v, sizeof v), 0);
        }
        drain(f.b);
        drain(f.a);
        assert_int_equal(f.in_b.count, sent);
        become_idle(&f);
    }
    for (unsigned i = 0; i < sent; i++)
        assert_int_equal(f.in_b.got[i].first, i);
    assert_int_equal(close_them(&f), 0);
}

/* What comes for a connection that rests, while there is no memory to wake it: it is counted, and comes again. */
static void who_cannot_wake_a_connection_counts_it_and_loses_nothing(void **state)
{
    const struct rnl_remote_options opt = {.rest_ns = 2 * MS};
    struct fixture f;
    uint64_t v = 7;
    (void)state;
    if (!CAN_FAIL)
        skip();
    open_them(&f, 2, 1, &opt);
    test_wires_connect(f.wires);
    become_idle(&f);
    memory_fails = 1;
    assert_int_equal(rnl_send(f.a, 1, NOTE, &v, sizeof v), RNL_ERR_NO_MEMORY);
    assert_non_null(strstr(rnl_last_error()->text, "no memory for the connection to rank 1"));
    memory_fails = 0;
    assert_int_equal(rnl_send(f.a, 1, NOTE, &v, sizeof v), 0);
    memory_fails = 1; /* a is awake */
    int bad = 0;
    for (uint64_t until = test_now_ns() + 100 * MS; test_now_ns() < until;)
        bad |= rnl_extract(f.a, SIZE_MAX) < 0 || rnl_extract(f.b, SIZE_MAX) < 0;
    memory_fails = 0;
    assert_false(bad);
    assert_int_equal(f.in_b.count, 0);
    assert_true(f.b->c->connects_failed > 0);
    assert_non_null(strstr(rnl_last_error()->text, "no memory for the connection to rank 0"));
    for (uint64_t until = test_now_ns() + 5000 * MS; f.in_b.count == 0 && test_now_ns() < until;) {
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
    }
    assert_int_equal(f.in_b.count, 1);
    assert_int_equal(f.in_b.got[0].first, 7);
    assert_int_equal(close_them(&f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_message_leaves_in_its_call_and_others_together),
        cmocka_unit_test(what_goes_to_many_hosts_leaves_in_one_call),
        cmocka_unit_test(who_takes_a_message_in_says_its_room_with_the_answer),
        cmocka_unit_test(what_piles_up_leaves_by_itself),
        cmocka_unit_test(who_only_sends_need_not_extract),
        cmocka_unit_test(who_sends_much_hears_what_has_come),
        cmocka_unit_test(what_has_been_read_is_said_with_its_acknowledgement),
        cmocka_unit_test(what_an_extract_is_answered_goes_together),
        cmocka_unit_test(no_turn_is_held_at_an_earlier_time_than_the_last),
        cmocka_unit_test(ranks_of_one_host_use_no_network),
        cmocka_unit_test(who_talks_to_this_host_is_not_kept_by_the_network),
        cmocka_unit_test(a_sleeper_is_woken_by_datagrams),
        cmocka_unit_test(who_is_silent_is_dead_after_the_bound),
        cmocka_unit_test(who_was_silent_can_be_taken_back_with_a_new_connection),
        cmocka_unit_test(who_ends_the_connection_is_dead_for_its_peer),
        cmocka_unit_test(who_never_answers_is_dead_after_the_bound),
        cmocka_unit_test(why_no_connection_came_about_is_said),
        cmocka_unit_test(the_environment_says_how_packets_are_protected),
        cmocka_unit_test(without_random_numbers_no_packets_are_sent),
        cmocka_unit_test(the_next_process_of_a_dead_rank_gets_no_answer),
        cmocka_unit_test(unknown_of_before_a_connection_does_not_end_it),
        cmocka_unit_test(near_and_far_peers_have_paths_of_their_own),
        cmocka_unit_test(who_breaks_the_protocol_is_told),
        cmocka_unit_test(who_has_forgotten_us_is_dead),
        cmocka_unit_test(who_does_not_call_for_a_second_loses_nothing),
        cmocka_unit_test(an_idle_link_sends_nothing_and_gives_its_memory_back),
        cmocka_unit_test(who_rested_goes_on_where_it_was),
        cmocka_unit_test(who_cannot_wake_a_connection_counts_it_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
