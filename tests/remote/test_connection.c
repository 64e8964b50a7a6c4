/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers of other hosts: when datagrams go out, who is woken, what becomes of silent and of broken peers, and what idle
 * links cost. That messages arrive, whatever the network does, is shown by the tests of streams, which run over it. */
#include "stream/inbox.h"

#include <errno.h>
#include <pthread.h>

#include "endpoint/net.h"
#include "job/job.h"
#include "remote/remote_internal.h"
#include "runnel/meet.h"

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

static int answer_it(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    static const char answer[RNL_CELL_PAYLOAD]; /* one to a line */
    return rnl_reply(s, NOTE, answer, sizeof answer) == 0 ? RNL_DONE : RNL_QUIT;
}

/* n requests arrive together. */
static void ask(struct fixture *f, unsigned n)
{
    const struct rnl_message begin = {.peer = 1, .handler = ASKED, .bound = 3, .answer = RNL_CELL_PAYLOAD};
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
    assert_int_equal(conn_of(f->b, 0)->remote->flow.sent.count, 0);
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

/* Both have to: the one that was silent learns that it was taken for dead. */
static void who_was_silent_can_be_taken_back_with_a_new_connection(void **state)
{
    const struct rnl_remote_options opt = {.silent_ns = 100 * MS};
    struct rnl_message half = {.peer = 1, .handler = NOTE, .bound = 1000};
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
    uint64_t granted = f.a->credit.granted;
    assert_ptr_equal(conn_of(f.a, 1), old);
    assert_int_equal(rnl_readmit(f.a, 1), 0);
    assert_int_equal(f.a->credit.granted, granted); /* not twice */
    assert_int_equal(rnl_send(f.a, 1, NOTE, "new", 3), 0);
    for (unsigned i = 0; i < 1000 && f.b->peer[0].state < RNL_PEER_IS_DYING; i++) {
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
    }
    assert_true(f.b->peer[0].state >= RNL_PEER_IS_DYING);
    while (rnl_readmit(f.b, 0) == RNL_BUSY)
        assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
    for (uint64_t until = now_ns(&f) + 5000 * MS; f.in_b.count < 2 && now_ns(&f) < until;) {
        assert_true(rnl_extract(f.a, SIZE_MAX) >= 0);
        assert_true(rnl_extract(f.b, SIZE_MAX) >= 0);
    }
    assert_int_equal(f.in_b.count, 2);
    assert_memory_equal(f.in_b.buf, "new", 3);
    assert_int_equal(f.a->credit.granted, granted);
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
    (void)rnl_remote_disconnect(conn_of(f.a, 1)->remote, false);
    f.a->peer[1].state = RNL_PEER_IS_DEAD;
    assert_int_equal(wait_for_death(&f, f.b, 0), RNL_DEATH_DISCONNECTED);
    assert_int_equal(rnl_send(f.b, 0, NOTE, "?", 1), RNL_ERR_PEER_DEAD);
    SAYS(RNL_ERR_PEER_DEAD, "rank 0", "took this process for dead");
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
    for (unsigned i = 0; i < 100 && f.a->peer[1].state < RNL_PEER_IS_DYING; i++) {
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
        assert_int_equal(conn_of(f.a, 1)->remote->flow.keys.suite.protect, i);
        assert_int_equal(conn_of(f.b, 0)->remote->flow.keys.suite.protect, i);
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
    assert_int_equal(h.ep[0]->env->facts.weak_random, 0);
    h.ep[0]->env->facts.weak_random = 1; /* as where a filter forbids getrandom */
    assert_int_equal(rnl_ep_net_new(h.ep[0], NULL), RNL_ERR_UNSUPPORTED);
    SAYS(RNL_ERR_UNSUPPORTED, "getrandom", "filter");
    assert_int_equal(test_hub_close(&h), 0);
}

/* Frames that nobody can read. */
static uint32_t fill_with_lies(void *ctx, unsigned char *at, uint32_t room, struct rnl_flow_note *notes,
                               unsigned *count)
{
    (void)ctx;
    assert_true(room >= 16);
    memset(at, 0xee, 16);
    notes[0] = (struct rnl_flow_note){.kind = RNL_FRAME_CREDIT};
    *count = 1;
    return 16;
}

/* a wants a connection and b has it; a has not heard a packet of it yet, and all that b sends are lies. */
static void make_a_liar(struct fixture *f, struct rnl_flow_ops *lies)
{
    struct rnl_conn *conn;
    assert_int_equal(rnl_ep_connect(f->a, 1, &conn), 0);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "?", 1), 0);
    for (uint64_t until = now_ns(f) + 1000 * MS; now_ns(f) < until;) {
        assert_true(rnl_extract(f->a, SIZE_MAX) >= 0);
        rnl_ep_net_receive(f->b);
        if (conn_of(f->b, 0))
            break;
        rnl_ep_net_send(f->b);
    }
    assert_non_null(conn_of(f->b, 0));
    assert_true(conn->remote->has_flow && !conn->remote->established);
    struct rnl_remote_conn *liar = conn_of(f->b, 0)->remote;
    assert_true(liar->established);
    *lies = *liar->flow.ops;
    lies->fill = fill_with_lies;
    liar->flow.ops = lies;
}

static void who_breaks_the_protocol_with_its_first_packet_is_told(void **state)
{
    struct rnl_flow_ops lies;
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_threads(f.wires);
    make_a_liar(&f, &lies);
    rnl_ep_net_send(f.b);
    assert_int_equal(wait_for_death(&f, f.a, 1), RNL_DEATH_BROKEN);
    assert_int_equal(wait_for_death(&f, f.b, 0), RNL_DEATH_DISCONNECTED);
    assert_int_equal(close_them(&f), 0);
}

static int loses_all(void *arg, unsigned from, unsigned to, unsigned way, unsigned char *at, uint32_t bytes)
{
    const unsigned *whose = arg;
    (void)to, (void)way, (void)at, (void)bytes;
    return from != *whose;
}

static uint64_t always_lives(struct rnl_env *env, uint32_t rank)
{
    (void)rank;
    return env->ops->now_ns(env);
}

/* Its agent answers for the peer, so its silence would never end. */
static void an_end_of_which_nothing_arrived_is_told_again(void **state)
{
    struct rnl_flow_ops lies;
    struct rnl_env_ops ops;
    struct fixture f;
    unsigned whose = 0;
    (void)state;
    open_them(&f, 2, 1, NULL);
    test_wires_threads(f.wires);
    ops = *f.b->env->ops;
    ops.liveness = always_lives;
    f.b->env->ops = &ops;
    make_a_liar(&f, &lies);
    rnl_ep_net_send(f.b);
    test_wires_tapped(f.wires, loses_all, &whose);
    assert_int_equal(wait_for_death(&f, f.a, 1), RNL_DEATH_BROKEN);
    for (uint64_t until = now_ns(&f) + 20000 * MS; now_ns(&f) < until;) { /* until a says no more */
        (void)!rnl_wait(f.a, 5 * (int64_t)MS);
        (void)!rnl_wait(f.b, 5 * (int64_t)MS);
    }
    assert_true(conn_of(f.a, 1)->remote->flow.state >= RNL_FLOW_CLOSED);
    test_wires_tapped(f.wires, NULL, NULL);
    struct rnl_peer_info info = {0};
    for (uint64_t until = now_ns(&f) + 60000 * MS; info.state != RNL_PEER_DEAD && now_ns(&f) < until;) {
        (void)!rnl_wait(f.a, 5 * (int64_t)MS);
        (void)!rnl_wait(f.b, 5 * (int64_t)MS);
        assert_int_equal(rnl_peer(f.b, 0, &info), 0);
    }
    assert_int_equal(info.state, RNL_PEER_DEAD);
    assert_int_equal(close_them(&f), 0);
}

/* ---- idle ---- */

static int rests(rnl_endpoint *ep, unsigned rank)
{
    const struct rnl_conn *conn = conn_of(ep, rank);
    return (conn->shut & RNL_SHUT_HIBERNATED) && !conn->remote->replica && !conn->channel.mine;
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
    assert_true(sizeof(struct rnl_conn) + sizeof(struct rnl_remote_conn) <= 4000);
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

static int leave(struct rnl_env *env, uint32_t rank, uint64_t *incarnation)
{
    (void)env, (void)rank, (void)incarnation;
    return 0;
}

static void release(struct rnl_env *env, uint32_t rank)
{
    (void)env, (void)rank;
}

static void sides(struct rnl_env *env, uint32_t rank, uint32_t *mine, uint32_t *theirs)
{
    *mine = env->rank;
    *theirs = rank;
}

static void look(struct rnl_env *env)
{
    (void)env;
}

static void who_rested_can_be_left(void **state)
{
    static const struct rnl_meet_ops meet = {.leave = leave, .release = release, .sides = sides, .look = look};
    const struct rnl_remote_options opt = {.rest_ns = 2 * MS};
    struct fixture f;
    (void)state;
    open_them(&f, 2, 1, &opt);
    test_wires_connect(f.wires);
    become_idle(&f);
    f.a->env->meet = &meet;
    if (CAN_FAIL) {
        memory_fails = 1;
        assert_int_equal(rnl_leave(f.a, 1), RNL_ERR_NO_MEMORY);
        memory_fails = 0;
        assert_true(rests(f.a, 1));
    }
    assert_int_equal(rnl_leave(f.a, 1), 0);
    for (int i = 0; i < 20; i++) {
        assert_true(rnl_wait(f.a, MS) >= RNL_TIMED_OUT);
        assert_true(rnl_wait(f.b, MS) >= RNL_TIMED_OUT);
    }
    assert_null(f.a->peer[1].conn);
    f.a->env->meet = NULL;
    (void)!close_them(&f); /* the two have parted */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_message_leaves_in_its_call_and_others_together),
        cmocka_unit_test(what_goes_to_many_hosts_leaves_in_one_call),
        cmocka_unit_test(what_an_extract_is_answered_goes_together),
        cmocka_unit_test(who_was_silent_can_be_taken_back_with_a_new_connection),
        cmocka_unit_test(who_ends_the_connection_is_dead_for_its_peer),
        cmocka_unit_test(why_no_connection_came_about_is_said),
        cmocka_unit_test(the_environment_says_how_packets_are_protected),
        cmocka_unit_test(without_random_numbers_no_packets_are_sent),
        cmocka_unit_test(who_breaks_the_protocol_with_its_first_packet_is_told),
        cmocka_unit_test(an_end_of_which_nothing_arrived_is_told_again),
        cmocka_unit_test(an_idle_link_sends_nothing_and_gives_its_memory_back),
        cmocka_unit_test(who_rested_goes_on_where_it_was),
        cmocka_unit_test(who_rested_can_be_left),
        cmocka_unit_test(who_cannot_wake_a_connection_counts_it_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
