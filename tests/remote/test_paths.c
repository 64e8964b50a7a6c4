/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers that have several addresses, of which one dies while messages are under way: nothing is lost, nothing comes
 * twice, and nobody is taken for dead. Strangers can bring no such move about. */
#include "stream/inbox.h"

#include "endpoint/net.h"
#include "job/job.h"
#include "remote/remote_internal.h"

enum { NOTE = 1, LONGEST = 3000, NOBODY = 9 };
#define MS ((uint64_t)1000000)

struct side {
    struct fixture *f;
    rnl_endpoint *ep;
    unsigned sent, came, wrong;
    uint64_t thinks_ns; /* in each handler, while the other side goes on */
};
struct fixture {
    struct test_hub h;
    struct test_wires *wires;
    struct side side[2];
    uint64_t longest_ns; /* that neither side got anything */
};

/* The k-th message of a rank: its number, and bytes that follow from it. */
static size_t size_of(unsigned k)
{
    return 8 + (k * 97u) % (k % 50 == 0 ? LONGEST - 8 : 60);
}

static int take(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct side *s = ctx;
    uint64_t k;
    TEST_MUST(n >= sizeof k);
    memcpy(&k, buf, sizeof k);
    s->wrong += k != s->came || n != size_of(s->came) ||
                memcmp((const char *)buf + sizeof k, test_pattern(k, 0), n - sizeof k) != 0;
    s->came++;
    if (s->thinks_ns) {
        test_wires_pass(s->f->wires, s->thinks_ns);
        TEST_MUST(rnl_extract(s->f->side[peer].ep, SIZE_MAX) >= 0);
    }
    return RNL_DONE;
}

static void send_next(struct side *s)
{
    unsigned char buf[LONGEST];
    uint64_t k = s->sent;
    size_t n = size_of(s->sent);
    memcpy(buf, &k, sizeof k);
    memcpy(buf + sizeof k, test_pattern(k, 0), n - sizeof k);
    const struct rnl_message b = {.peer = s == &s->f->side[0], .handler = NOTE, .bound = n, .flags = RNL_NO_WAIT};
    rnl_stream *stream;
    int status = rnl_begin(s->ep, &b, &stream);
    if (status == RNL_NO_ROOM)
        return;
    assert_int_equal(status, 0);
    assert_int_equal(rnl_piece(stream, buf, n), 0);
    assert_int_equal(rnl_end(stream), 0);
    s->sent++;
}

static void open_them(struct fixture *f, const char *faults, unsigned addresses, uint64_t silent_ns)
{
    const struct rnl_remote_options opt = {.silent_ns = silent_ns, .open_ns = silent_ns};
    memset(f, 0, sizeof *f);
    f->wires = test_wires_new(2, faults, 1);
    test_wires_ticks(f->wires);
    test_wires_options(f->wires, &opt);
    test_wires_addresses(f->wires, addresses);
    test_hub_open(&f->h, 2, NULL);
    for (unsigned i = 0; i < 2; i++) {
        f->side[i] = (struct side){.f = f, .ep = f->h.ep[i]};
        test_wires_attach(f->wires, f->h.ep[i]);
        assert_int_equal(rnl_handler_whole(f->h.ep[i], NOTE, take, &f->side[i], 0), NOTE);
    }
}

static void close_them(struct fixture *f)
{
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(f->side[i].wrong, 0);
    assert_int_equal(test_hub_close(&f->h), 0);
    test_wires_free(f->wires);
}

/* Each side sends until it has sent so many, and gets what the other sends, within `ms` of the clock. */
static void talk(struct fixture *f, unsigned a, unsigned b, uint64_t ms)
{
    const unsigned all[2] = {a, b};
    uint64_t until = test_wires_now_ns(f->wires) + ms * MS, last = test_wires_now_ns(f->wires);
    unsigned came = f->side[0].came + f->side[1].came;
    while (f->side[0].came < b || f->side[1].came < a) {
        uint64_t now = test_wires_now_ns(f->wires);
        if (now > until)
            fail_msg("%u of %u and %u of %u messages have come", f->side[1].came, a, f->side[0].came, b);
        for (unsigned i = 0; i < 2; i++) {
            if (f->side[i].sent < all[i])
                send_next(&f->side[i]);
            assert_true(rnl_extract(f->side[i].ep, SIZE_MAX) >= 0);
        }
        if (f->side[0].came + f->side[1].came != came) {
            came = f->side[0].came + f->side[1].came;
            last = now;
        }
        if (now - last > f->longest_ns)
            f->longest_ns = now - last;
        test_wires_pass(f->wires, 20000);
    }
}

static struct rnl_remote_conn *link_of(struct fixture *f, unsigned rank)
{
    return f->side[rank].ep->peer[!rank].conn->remote;
}

static uint64_t moved(struct fixture *f, unsigned rank)
{
    return f->side[rank].ep->c->peers_moved;
}

/* Both call now and then for so many ms, and send nothing. */
static void look_for(struct fixture *f, uint64_t ms)
{
    for (uint64_t until = test_wires_now_ns(f->wires) + ms * MS; test_wires_now_ns(f->wires) < until;) {
        for (unsigned i = 0; i < 2; i++)
            assert_true(rnl_extract(f->side[i].ep, SIZE_MAX) >= 0);
        test_wires_pass(f->wires, MS);
    }
}

static void look(struct fixture *f, unsigned rank)
{
    assert_true(rnl_extract(f->side[rank].ep, SIZE_MAX) >= 0);
    assert_true(rnl_extract(f->side[rank].ep, SIZE_MAX) >= 0);
}

static void both_dead_at(struct fixture *f, unsigned way, int works)
{
    test_wires_address(f->wires, 0, way, works, works);
    test_wires_address(f->wires, 1, way, works, works);
}

/* ---- one address dies ---- */

static void dies_under(const char *faults)
{
    struct fixture f;
    open_them(&f, faults, 2, 0);
    talk(&f, 500, 500, 60000);
    assert_int_equal(moved(&f, 0) + moved(&f, 1), 0);
    both_dead_at(&f, 0, 0);
    f.longest_ns = 0;
    talk(&f, 1000, 1000, 60000);
    assert_true(moved(&f, 0) >= 1 && moved(&f, 1) >= 1);
    assert_true(f.longest_ns < (faults[0] ? 2000 : 100) * MS);
    uint64_t once = moved(&f, 0) + moved(&f, 1);
    talk(&f, 1500, 1500, 60000); /* it stays there, though the first works again */
    both_dead_at(&f, 0, 1);
    talk(&f, 2000, 2000, 60000);
    assert_int_equal(moved(&f, 0) + moved(&f, 1), once);
    both_dead_at(&f, 1, 0); /* and back */
    talk(&f, 2500, 2500, 60000);
    assert_true(moved(&f, 0) + moved(&f, 1) >= once + 2);
    close_them(&f);
}

static void the_other_address_is_used_when_one_dies_and_back(void **state)
{
    (void)state;
    dies_under("");
}

/* A card that has no link is left at once, without a wait for timeouts, and the peer follows. */
static void a_card_without_a_link_is_left_at_once(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, "", 2, 0);
    talk(&f, 500, 500, 60000);
    test_wires_link(f.wires, 0, 0, 0);
    test_wires_address(f.wires, 0, 0, 0, 0);
    f.longest_ns = 0;
    talk(&f, 1000, 600, 60000);
    assert_int_equal(moved(&f, 0), 1);
    assert_int_equal(moved(&f, 1), 1);
    assert_true(f.longest_ns < 30 * MS);
    test_wires_link(f.wires, 0, 0, 1);
    test_wires_address(f.wires, 0, 0, 1, 1);
    talk(&f, 2000, 1000, 60000);
    assert_int_equal(moved(&f, 0) + moved(&f, 1), 2);
    close_them(&f);
}

/* The peer's timeouts are long, since its machine was busy. It asks as soon as what comes has another way. */
static void who_hears_from_elsewhere_does_not_wait_for_timeouts(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, "", 2, 0);
    talk(&f, 500, 500, 60000);
    link_of(&f, 1)->flow.rtt.smoothed_ns = link_of(&f, 1)->flow.rtt.variance_ns = 300 * MS;
    test_wires_link(f.wires, 0, 0, 0);
    test_wires_address(f.wires, 0, 0, 0, 0);
    uint64_t until = test_wires_now_ns(f.wires) + 100 * MS;
    for (unsigned k = 501; moved(&f, 1) == 0; k++) {
        assert_true(test_wires_now_ns(f.wires) < until);
        if (f.side[0].sent < k)
            send_next(&f.side[0]);
        look_for(&f, 1);
    }
    talk(&f, 1000, 600, 60000);
    assert_int_equal(moved(&f, 0) + moved(&f, 1), 2);
    close_them(&f);
}

/* One that only says so works on: the peer responds by it, so it is not left, and it is not asked again and again. */
static void what_a_card_says_of_its_link_is_a_hint(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, "", 2, 0);
    both_dead_at(&f, 1, 0);
    talk(&f, 100, 100, 60000);
    test_wires_link(f.wires, 0, 0, 0);
    unsigned long sent = test_wires_sent(f.wires);
    look_for(&f, 2000);
    assert_true(test_wires_sent(f.wires) < sent + 16);
    talk(&f, 200, 200, 60000);
    assert_int_equal(moved(&f, 0) + moved(&f, 1), 0);
    close_them(&f);
}

/* What it sends are acknowledgements alone, which nobody acknowledges: it has to ask. Else it is taken for dead. */
static void who_only_acknowledges_moves_too(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, "", 2, 3000 * MS);
    talk(&f, 100, 100, 10000);
    f.side[0].ep->remote->config.keepalive_ns = 500 * MS;
    look_for(&f, 20);
    assert_true(rnl_flow_idle(&link_of(&f, 1)->flow));
    both_dead_at(&f, 0, 0);
    for (uint64_t until = test_wires_now_ns(f.wires) + 2000 * MS; moved(&f, 0) == 0;) {
        assert_true(test_wires_now_ns(f.wires) < until);
        look_for(&f, 1);
    }
    look_for(&f, 50);
    assert_int_equal(moved(&f, 1), 1);
    look_for(&f, 10000);
    assert_int_equal(moved(&f, 0), 1);
    assert_int_equal(moved(&f, 1), 1);
    talk(&f, 200, 200, 10000);
    close_them(&f);
}

/* The only way to the peer dies, and the way from it does not: its packets come as before, and acknowledge nothing. */
static void who_is_heard_and_not_reached_is_dead_in_time(void **state)
{
    struct fixture f;
    struct rnl_peer_info info = {0};
    (void)state;
    open_them(&f, "", 1, 1000 * MS);
    talk(&f, 5, 5, 10000);
    test_wires_address(f.wires, 1, 0, 0, 1);
    const uint64_t since = test_wires_now_ns(f.wires);
    send_next(&f.side[0]);
    while (info.state != RNL_PEER_DEAD && test_wires_now_ns(f.wires) - since < 5000 * MS) {
        if (f.side[1].ep->peer[0].state < RNL_PEER_IS_DYING)
            send_next(&f.side[1]);
        look_for(&f, 5);
        assert_int_equal(rnl_peer(f.side[0].ep, 1, &info), 0);
    }
    assert_int_equal(info.reason, RNL_DEATH_SILENT);
    assert_in_range(test_wires_now_ns(f.wires) - since, 1000 * MS, 1500 * MS); /* as rnl_open(3) promises */
    assert_true(f.side[0].came > 5);
    (void)test_hub_close(&f.h);
    test_wires_free(f.wires);
}

/* The peer sends from its second address for good, since ours is dead for it; what we send to its first arrives. */
static void who_hears_from_elsewhere_asks_seldom(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, "", 2, 0);
    talk(&f, 1, 300, 10000);
    test_wires_address(f.wires, 0, 0, 0, 1);
    talk(&f, 1, 600, 10000);
    assert_int_equal(moved(&f, 1), 1);
    look_for(&f, 300);
    const struct rnl_remote *r = f.side[0].ep->remote;
    uint64_t sent = r->count->sent;
    for (unsigned k = 1; k <= 40; k++) {
        talk(&f, 1, 600 + k, 10000);
        look_for(&f, 300);
    }
    assert_true(r->count->sent <= sent + 12); /* now and then it says how far it has read */
    assert_int_equal(link_of(&f, 0)->paths->set.active, 0);
    /* It finds out when its acknowledgements are lost later on, though no packet comes from yet another address,
     * and though it was answered only just now. */
    const struct rnl_paths *w = &link_of(&f, 0)->paths->set;
    uint64_t asked_ns = w->hint_sent_ns;
    for (unsigned k = 41; w->hint_sent_ns == asked_ns || !rnl_flow_idle(&link_of(&f, 0)->flow); k++) {
        assert_true(k < 80);
        talk(&f, 1, 600 + k, 10000);
        look_for(&f, 100);
    }
    test_wires_address(f.wires, 1, 0, 0, 1);
    send_next(&f.side[1]);
    for (uint64_t until = test_wires_now_ns(f.wires) + 3000 * MS; moved(&f, 0) == 0;) {
        assert_true(test_wires_now_ns(f.wires) < until);
        look_for(&f, 1);
    }
    talk(&f, 100, 2000, 10000);
    assert_int_equal(moved(&f, 0), 1);
    assert_int_equal(moved(&f, 1), 1);
    close_them(&f);
}

/* ---- a peer that knows one address of ours, and so never challenges ---- */

/* Rank 0 has one, rank 1 two. Whatever they send is caught, and arrives as if from there. */
enum { HELD = 64 };
struct relay {
    struct {
        unsigned char at[RNL_PATHS_CHALLENGE_BYTES + 300];
        uint32_t bytes;
    } held[2][HELD];
    unsigned count[2];
    unsigned dead; /* of rank 1's addresses, one bit each: nothing arrives there */
};

/* The connection is made where an answer comes from. */
static void a_connection_begins_at_an_address_that_works(void **state)
{
    struct fixture f;
    (void)state;
    open_them(&f, "", 3, 0);
    both_dead_at(&f, 0, 0);
    both_dead_at(&f, 1, 0);
    talk(&f, 100, 100, 10000);
    assert_int_equal(moved(&f, 0) + moved(&f, 1), 0);
    assert_int_equal(link_of(&f, 0)->paths->set.active, 2);
    assert_int_equal(link_of(&f, 1)->paths->set.active, 2);
    close_them(&f);
}

/* ---- the peer does not have the connection any more ---- */

/* Rank 1 has taken rank 0 for dead, as silent; and the address that rank 0 uses has died. */
static void lose_it(struct fixture *f)
{
    open_them(f, "", 2, 0);
    talk(f, 100, 100, 10000);
    look_for(f, 20);
    both_dead_at(f, 0, 0);
    both_dead_at(f, 1, 0);
    f->side[1].ep->remote->config.dead_ns = 1000 * MS;
    send_next(&f->side[1]);
    for (uint64_t until = test_wires_now_ns(f->wires) + 60000 * MS; link_of(f, 1)->has_flow;) {
        assert_true(test_wires_now_ns(f->wires) < until);
        (void)!rnl_extract(f->side[1].ep, SIZE_MAX);
        test_wires_pass(f->wires, MS);
    }
    both_dead_at(f, 1, 1);
}

static void it_says_so_at_its_other_address(void **state)
{
    struct fixture f;
    struct rnl_peer_info info = {0};
    (void)state;
    lose_it(&f);
    assert_true(link_of(&f, 0)->flow.control > 1000); /* nobody could ask for what it will say before it was asked */
    uint64_t from = test_wires_now_ns(f.wires);
    assert_int_equal(rnl_send(f.side[0].ep, 1, NOTE, "lost", 4), 0);
    while (info.state != RNL_PEER_DEAD && test_wires_now_ns(f.wires) < from + 40000 * MS) {
        (void)!rnl_extract(f.side[0].ep, SIZE_MAX);
        (void)!rnl_extract(f.side[1].ep, SIZE_MAX);
        assert_int_equal(rnl_peer(f.side[0].ep, 1, &info), 0);
        test_wires_pass(f.wires, MS);
    }
    assert_int_equal(info.state, RNL_PEER_DEAD);
    assert_true(test_wires_now_ns(f.wires) - from < 2000 * MS); /* by its silence it takes 30 s */
    assert_int_equal(moved(&f, 0), 0);
    rnl_hub_kill(f.h.hub, 1, RNL_DEATH_SIGNAL, 9);
    f.h.dead[1] = 1;
    (void)!test_hub_close(&f.h);
    test_wires_free(f.wires);
}

/* A process that has just begun answers at all of a peer's addresses, and nowhere else. */
static void a_new_process_says_what_it_does_not_have(void **state)
{
    struct fixture f;
    unsigned char at[RNL_PATHS_CHALLENGE_BYTES] = {0};
    struct rnl_packet p = {.type = RNL_PACKET_PATH, .control = 1, .connection = 77u << 20, .number = 4711};
    (void)state;
    open_them(&f, "", 3, 0);
    assert_true(rnl_packet_encode(at, sizeof at, &p) > 0);
    assert_int_equal(rnl_packet_finish(at, sizeof at - RNL_PACKET_TAG), sizeof at);
    look_for(&f, 10);
    test_wires_stop(f.wires, 1);
    for (unsigned way = 0; way < 3; way++) {
        unsigned long sent = test_wires_sent(f.wires);
        test_wires_forge(f.wires, 0, way, 1, at, sizeof at);
        look(&f, 1);
        assert_int_equal(test_wires_sent(f.wires), sent + 2); /* it, and what is said to it */
    }
    unsigned long sent = test_wires_sent(f.wires);
    test_wires_forge(f.wires, 0, NOBODY, 1, at, sizeof at);
    p.connection |= 7; /* there is no such rank */
    assert_true(rnl_packet_encode(at, sizeof at, &p) > 0);
    assert_int_equal(rnl_packet_finish(at, sizeof at - RNL_PACKET_TAG), sizeof at);
    test_wires_forge(f.wires, 0, 1, 1, at, sizeof at);
    look(&f, 1);
    assert_int_equal(test_wires_sent(f.wires), sent + 2);
    test_wires_stop(f.wires, 0);
    close_them(&f);
}

/* ---- the end ---- */

/* A peer that leaves says so where it was, and then everywhere. */
static void the_end_is_said_at_all_addresses(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        struct fixture f;
        struct rnl_peer_info info;
        open_them(&f, "", 3, 0);
        talk(&f, 100, 100, 10000);
        look_for(&f, 20);
        for (unsigned dead = 0; dead < 3; dead++)
            if (dead != way)
                both_dead_at(&f, dead, 0);
        (void)rnl_ep_broken(f.side[0].ep, f.side[0].ep->peer[1].conn, "what cannot be");
        look_for(&f, 300);
        assert_int_equal(rnl_peer(f.side[1].ep, 0, &info), 0);
        assert_int_equal(info.state, RNL_PEER_DEAD);
        assert_int_equal(info.reason, RNL_DEATH_DISCONNECTED);
        rnl_hub_kill(f.h.hub, 1, RNL_DEATH_SIGNAL, 9);
        f.h.dead[1] = 1;
        assert_int_equal(test_hub_close(&f.h), 0);
        test_wires_free(f.wires);
    }
}

/* ---- strangers ---- */

enum { CAUGHT = 16 };
struct trap {
    unsigned char challenge[CAUGHT][RNL_PATHS_CHALLENGE_BYTES], answer[CAUGHT][RNL_PATHS_CHALLENGE_BYTES];
    unsigned challenges, answers; /* of rank 0's challenges */
    int holds;                    /* none of them arrives by itself */
};

/* All that is about ways; the answers to rank 0 only when the test says so. */
static int catches(void *arg, unsigned from, unsigned to, unsigned way, unsigned char *at, uint32_t bytes)
{
    struct trap *t = arg;
    (void)to;
    if (bytes != RNL_PATHS_CHALLENGE_BYTES || at[0] >> 4 != RNL_PACKET_PATH || way != 1)
        return 1;
    int answer = at[RNL_PACKET_HEAD] == RNL_PATH_RESPONSE;
    if (from == 0 && !answer && t->challenges < CAUGHT)
        memcpy(t->challenge[t->challenges++], at, bytes);
    if (from == 1 && answer && t->answers < CAUGHT)
        memcpy(t->answer[t->answers++], at, bytes);
    return !(t->holds && from == 1);
}

/* Rank 0 has something to say that nobody acknowledges, until so many answers to its challenges were caught. */
static void get_stuck(struct fixture *f, struct trap *t, unsigned answers)
{
    if (f->side[0].sent == f->side[1].came)
        send_next(&f->side[0]);
    for (uint64_t until = test_wires_now_ns(f->wires) + 20000 * MS; t->answers < answers;) {
        assert_true(test_wires_now_ns(f->wires) < until);
        for (unsigned i = 0; i < 2; i++)
            assert_true(rnl_extract(f->side[i].ep, SIZE_MAX) >= 0);
        test_wires_pass(f->wires, 1000000);
    }
}

static void strangers_move_nobody(void **state)
{
    static struct trap t;
    struct fixture f;
    (void)state;
    memset(&t, 0, sizeof t);
    open_them(&f, "", 3, 0);
    talk(&f, 100, 100, 10000);
    test_wires_tapped(f.wires, catches, &t);
    t.holds = 1;
    both_dead_at(&f, 0, 0);
    both_dead_at(&f, 2, 0);
    get_stuck(&f, &t, 2);
    const struct rnl_remote *r = f.side[0].ep->remote;
    unsigned char forged[RNL_PATHS_CHALLENGE_BYTES];
    uint64_t strays = r->c->strays, refused = r->count->refused, unasked = r->stray_responses;

    /* The true answer, from where nobody lives, and from another address of the peer. */
    test_wires_forge(f.wires, 1, NOBODY, 0, t.answer[0], RNL_PATHS_CHALLENGE_BYTES);
    look(&f, 0);
    assert_int_equal(r->c->strays, strays + 1);
    test_wires_forge(f.wires, 1, 2, 0, t.answer[0], RNL_PATHS_CHALLENGE_BYTES);
    look(&f, 0);
    assert_int_equal(r->stray_responses, unasked + 1);
    /* From the right one: it has been taken in, so it is not taken in again. */
    test_wires_forge(f.wires, 1, 1, 0, t.answer[0], RNL_PATHS_CHALLENGE_BYTES);
    look(&f, 0);
    assert_int_equal(moved(&f, 0), 0);
    /* The other answer, with any bit of it wrong; and its challenge, said back as it was. */
    for (unsigned bit = 0; bit < RNL_PATHS_CHALLENGE_BYTES * 8; bit += bit < 300 ? 1 : 97) {
        memcpy(forged, t.answer[1], sizeof forged);
        forged[bit / 8] ^= (unsigned char)(1 << bit % 8);
        test_wires_forge(f.wires, 1, 1, 0, forged, sizeof forged);
        if (bit % 64 == 0)
            look(&f, 0);
    }
    test_wires_forge(f.wires, 1, 1, 0, t.challenge[1], RNL_PATHS_CHALLENGE_BYTES);
    look(&f, 0);
    assert_true(r->count->refused > refused + 200);
    assert_int_equal(moved(&f, 0), 0);

    /* An old challenge, from elsewhere: it has no answer. */
    test_wires_stop(f.wires, 1);
    look(&f, 1); /* what was due anyway */
    unsigned long sent = test_wires_sent(f.wires);
    unsigned answers = t.answers;
    test_wires_forge(f.wires, 0, NOBODY, 1, t.challenge[0], RNL_PATHS_CHALLENGE_BYTES);
    test_wires_forge(f.wires, 0, 1, 1, t.challenge[0], RNL_PATHS_CHALLENGE_BYTES);
    test_wires_forge(f.wires, 0, 2, 1, t.challenge[0], RNL_PATHS_CHALLENGE_BYTES);
    look(&f, 1);
    assert_int_equal(test_wires_sent(f.wires), sent + 3); /* those three */
    assert_int_equal(t.answers, answers);
    test_wires_stop(f.wires, 0);

    /* And the answer itself, unhurt, from where it was asked for. */
    test_wires_forge(f.wires, 1, 1, 0, t.answer[1], RNL_PATHS_CHALLENGE_BYTES);
    look_for(&f, 2000);
    assert_int_equal(moved(&f, 0), 1);
    assert_int_equal(link_of(&f, 0)->paths->set.active, 1);
    t.holds = 0;
    talk(&f, 200, 200, 10000);
    close_them(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_other_address_is_used_when_one_dies_and_back),
        cmocka_unit_test(a_card_without_a_link_is_left_at_once),
        cmocka_unit_test(who_hears_from_elsewhere_does_not_wait_for_timeouts),
        cmocka_unit_test(what_a_card_says_of_its_link_is_a_hint),
        cmocka_unit_test(who_only_acknowledges_moves_too),
        cmocka_unit_test(who_is_heard_and_not_reached_is_dead_in_time),
        cmocka_unit_test(who_hears_from_elsewhere_asks_seldom),
        cmocka_unit_test(a_connection_begins_at_an_address_that_works),
        cmocka_unit_test(it_says_so_at_its_other_address),
        cmocka_unit_test(a_new_process_says_what_it_does_not_have),
        cmocka_unit_test(the_end_is_said_at_all_addresses),
        cmocka_unit_test(strangers_move_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
