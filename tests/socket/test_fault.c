/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_fault.c - faults as text, and the transport that does them, over a transport in memory that the test drives.
 * That a wrapped transport still keeps its contract, the conformance suite shows. */
#include "base/env.h"
#include "net/fault/fault.h"
#include "runnel/runnel.h"
#include "support/unit.h"

/* ---- the text ---- */

static void a_text_comes_back_as_it_was(void **state)
{
    (void)state;
    static const char *const same[] = {
        "",
        "loss=1%",
        "loss=0.0001%",
        "loss=100%,seed=18446744073709551615",
        "burst=0.1%:25%",
        "nth=7,drop=1+2+18446744073709551615",
        "dup=3%,delay=0ns..50us,reorder=1%:1ms",
        "delay=50us,corrupt=0.5%,cut=12.5%,mtu=1200",
        "ce=1%,bleach=2%,in=0,out=1-3,part=0-3+7+9-11,noroom=5%",
        "after=1s,for=250ms",
        "delay=50221022100us", /* more whole units than fit when each is counted in 10^-9 */
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct rnl_fault f;
        char text[RNL_FAULT_TEXT];
        assert_int_equal(rnl_fault_parse(same[i], &f), 0);
        assert_int_equal(rnl_fault_print(&f, text, sizeof text), (int)strlen(same[i]));
        assert_string_equal(text, same[i]);
    }
}

static void a_wrong_text_says_what_is_wrong_and_what_could_be_there(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {{"loss", "NAME=VALUE"},
                                           {"lost=1%", "no 'lost'; there are: loss, burst"},
                                           {"loss=", "0 to 100%"},
                                           {"loss=2", "0 to 100%"},
                                           {"loss=101%", "0 to 100%"},
                                           {"loss=-1%", "0 to 100%"},
                                           {"loss=1 %", "0 to 100%"},
                                           {"loss=1%%", "0 to 100%"},
                                           {"loss=0.00000000001", "0 to 100%"},
                                           {"loss=1.%", "0 to 100%"},
                                           {"burst=1%", "0.1%:25%"},
                                           {"burst=1%:0%", "above 0"},
                                           {"delay=50", "50us"},
                                           {"delay=50m", "50us"},
                                           {"delay=9us..1us", "50us..200us"},
                                           {"delay=1us...2us", "50us..200us"},
                                           {"delay=0.5ns", "50us"},
                                           {"reorder=1%", "1%:200us"},
                                           {"drop=0", "from 1 on"},
                                           {"drop=1+", "from 1 on"},
                                           {"drop=1+2+3+4+5+6+7+8+9+10+11+12+13+14+15+16+17", "up to 16"},
                                           {"mtu=0", "from 1 on"},
                                           {"in=3-1", "0-3+7"},
                                           {"in=4294967295", "0-3+7"},
                                           {"in=1+2+3+4+5+6+7+8+9", "up to 8"},
                                           {"seed=18446744073709551616", "whole number"},
                                           {"loss=1%,loss=2%", "twice"},
                                           {"loss=1%,", "behind the last comma"},
                                           {",loss=1%", "NAME=VALUE"},
                                           {"loss=1%;dup=1%", "0 to 100%"},
                                           {" loss=1%", "no ' loss'"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct rnl_fault f = {.seed = 77};
        assert_int_equal(rnl_fault_parse(wrong[i][0], &f), RNL_ERR_ARG);
        assert_int_equal(f.seed, 77); /* as it was */
        if (strstr(rnl_last_error()->text, wrong[i][1]) == NULL)
            fail_msg("'%s': '%s' does not say '%s'", wrong[i][0], rnl_last_error()->text, wrong[i][1]);
    }
}

/* ---- the transport ---- */

enum { PACKETS = 4096, PEERS = 4 };

/* A datagram transport that holds what the test puts into it. */
struct below {
    struct rnl_transport t; /* first */
    struct rnl_env env;
    struct {
        uint64_t number;
        uint32_t peer;
        uint16_t flags;
    } packet[PACKETS];
    int packets, polled, released, rooms, sent, answered;
    uint64_t room[64];
};

static int below_poll(struct rnl_transport *t, struct rnl_view *v, int n, uint64_t now_ns)
{
    struct below *b = (struct below *)(void *)t;
    int got = 0;
    (void)now_ns;
    for (; got < n && b->polled < b->packets; got++, b->polled++)
        v[got] = (struct rnl_view){.at = &b->packet[b->polled].number,
                                   .bytes = 8,
                                   .peer = b->packet[b->polled].peer,
                                   .flags = b->packet[b->polled].flags,
                                   .token = (uint64_t)1 << 40 | (uint64_t)b->polled};
    return got;
}

static void below_release(struct rnl_transport *t, const struct rnl_view *v, int n)
{
    (void)v;
    ((struct below *)(void *)t)->released += n;
}

static int below_reserve(struct rnl_transport *t, uint32_t peer, uint32_t bytes, struct rnl_room *room, int n)
{
    struct below *b = (struct below *)(void *)t;
    if (peer >= PEERS)
        return RNL_ERR_RANK;
    assert_int_equal(b->rooms, 0);
    for (int i = 0; i < n; i++)
        room[i] = (struct rnl_room){&b->room[i], bytes, 0};
    b->rooms = n;
    return n;
}

static int below_commit(struct rnl_transport *t, uint32_t peer, const struct rnl_room *room, const uint32_t *used,
                        int n, bool ecn, uint64_t now_ns)
{
    struct below *b = (struct below *)(void *)t;
    int went = 0;
    (void)peer, (void)room, (void)ecn, (void)now_ns;
    assert_int_equal(n, b->rooms);
    for (int i = 0; i < n; i++)
        went += used[i] != 0;
    b->rooms = 0;
    b->sent += went;
    return went;
}

static uint64_t below_deadline(struct rnl_transport *t)
{
    (void)t;
    return UINT64_MAX;
}

static int below_arm(struct rnl_transport *t)
{
    const struct below *b = (const struct below *)(const void *)t;
    return b->polled < b->packets;
}

static int below_source(struct rnl_transport *t, const struct rnl_view *v, struct rnl_addr *out)
{
    (void)t;
    *out = (struct rnl_addr){.len = 4, .bytes = {(uint8_t)v->peer}};
    return 0;
}

static int below_reply(struct rnl_transport *t, const struct rnl_view *v, const void *at, uint32_t bytes,
                       uint64_t now_ns)
{
    struct below *b = (struct below *)(void *)t;
    (void)at, (void)bytes, (void)now_ns;
    assert_true(v->token >> 40 == 1); /* its own view */
    b->answered++;
    return 1;
}

static int below_remove_peer(struct rnl_transport *t, uint32_t peer)
{
    (void)t, (void)peer;
    return 0;
}

static void below_close(struct rnl_transport *t)
{
    free(t);
}

static const struct rnl_transport_ops below_ops = {.size = sizeof below_ops,
                                                   .reserve = below_reserve,
                                                   .commit = below_commit,
                                                   .poll = below_poll,
                                                   .release = below_release,
                                                   .deadline = below_deadline,
                                                   .arm = below_arm,
                                                   .source = below_source,
                                                   .reply = below_reply,
                                                   .remove_peer = below_remove_peer,
                                                   .close = below_close};

static struct below *below_new(const char *faults, struct rnl_transport **t)
{
    struct below *b = calloc(1, sizeof *b);
    struct rnl_fault f;
    assert_non_null(b);
    b->env = (struct rnl_env){.rank = 0, .size = PEERS};
    b->t = (struct rnl_transport){.ops = &below_ops, .env = &b->env, .has_ecn = true};
    assert_int_equal(rnl_fault_parse(faults, &f), 0);
    assert_int_equal(rnl_fault_transport_new(&b->t, &f, 0, t), 0);
    return b;
}

static void arrive(struct below *b, uint32_t peer, uint64_t number)
{
    b->packet[b->packets].number = number;
    b->packet[b->packets].flags = RNL_VIEW_ECT;
    b->packet[b->packets++].peer = peer;
}

/* The next packet's number, or -1. */
static int64_t take(struct rnl_transport *t, uint64_t now_ns, struct rnl_view *v)
{
    struct rnl_view local;
    uint64_t number = 0;
    v = v ? v : &local;
    if (t->ops->poll(t, v, 1, now_ns) == 0)
        return -1;
    memcpy(&number, v->at, v->bytes);
    if (v == &local)
        t->ops->release(t, v, 1);
    return (int64_t)number;
}

static void change(struct rnl_transport *t, const char *faults, uint64_t now_ns)
{
    struct rnl_fault f;
    assert_int_equal(rnl_fault_parse(faults, &f), 0);
    rnl_fault_set(t, &f, now_ns);
}

static void the_named_packets_of_each_sender_are_lost(void **state)
{
    (void)state;
    struct rnl_transport *t;
    struct below *b = below_new("drop=2+3", &t);
    struct rnl_fault_counts c;
    for (uint64_t i = 1; i <= 4; i++)
        for (uint32_t peer = 1; peer <= 2; peer++)
            arrive(b, peer, i * 10 + peer);
    static const int64_t want[] = {11, 12, 41, 42, -1};
    for (int i = 0; i < 5; i++)
        assert_int_equal(take(t, 0, NULL), want[i]);
    assert_int_equal(b->released, 8);
    rnl_fault_counts(t, &c);
    assert_int_equal(c.packets, 8);
    assert_int_equal(c.lost[RNL_FAULT_DROP], 4);
    t->ops->close(t);
}

static int goes_out(struct rnl_transport *t, struct below *b, uint32_t peer)
{
    struct rnl_room room[2];
    const uint32_t used[2] = {8, 0};
    int before = b->sent;
    assert_int_equal(t->ops->reserve(t, peer, 8, room, 2), 2);
    assert_int_equal(t->ops->commit(t, peer, room, used, 2, false, 0), 1); /* whoever sends does not know */
    return b->sent - before;
}

static void walls_stand_in_one_direction_or_both(void **state)
{
    (void)state;
    struct rnl_transport *t;
    struct below *b = below_new("in=1,out=2", &t);
    for (uint32_t peer = 1; peer <= 3; peer++) {
        arrive(b, peer, peer);
        assert_int_equal(take(t, 0, NULL), peer == 1 ? -1 : (int64_t)peer);
        assert_int_equal(goes_out(t, b, peer), peer != 2);
    }
    change(t, "part=0+3", 0); /* we are 0 */
    for (uint32_t peer = 1; peer <= 3; peer++) {
        arrive(b, peer, peer);
        assert_int_equal(take(t, 0, NULL), peer != 3 ? -1 : 3);
        assert_int_equal(goes_out(t, b, peer), peer == 3);
    }
    change(t, "part=1-2", 0);
    for (uint32_t peer = 1; peer <= 3; peer++)
        assert_int_equal(goes_out(t, b, peer), peer == 3);
    t->ops->close(t);
}

static void a_packet_comes_twice_damaged_cut_or_marked(void **state)
{
    (void)state;
    struct rnl_transport *t;
    struct below *b = below_new("dup=100%", &t);
    struct rnl_view v, w;
    arrive(b, 1, 5);
    assert_int_equal(take(t, 0, &v), 5);
    assert_int_equal(take(t, 0, &w), 5);
    assert_ptr_not_equal(v.at, w.at);
    t->ops->release(t, &w, 1);
    assert_int_equal(*(const uint64_t *)v.at, 5);
    t->ops->release(t, &v, 1);
    assert_int_equal(take(t, 0, NULL), -1);
    change(t, "corrupt=100%", 0);
    for (uint64_t i = 0; i < 100; i++) {
        arrive(b, 1, i);
        assert_int_not_equal(take(t, 0, NULL), (int64_t)i);
        assert_int_equal(b->packet[b->packets - 1].number, i); /* not in the memory below */
    }
    change(t, "cut=100%", 0);
    for (int i = 0; i < 100; i++) {
        arrive(b, 1, UINT64_MAX >> 1);
        assert_true(take(t, 0, &v) >= 0);
        assert_in_range(v.bytes, 0, 7);
        t->ops->release(t, &v, 1);
    }
    static const struct {
        const char *faults;
        uint16_t flags;
    } marks[] = {{"ce=100%", RNL_VIEW_CE}, {"bleach=100%", 0}, {"ce=100%,bleach=100%", 0}};
    for (int i = 0; i < 3; i++) {
        change(t, marks[i].faults, 0);
        arrive(b, 1, 1);
        assert_int_equal(take(t, 0, &v), 1);
        assert_int_equal(v.flags, marks[i].flags);
        t->ops->release(t, &v, 1);
    }
    t->ops->close(t);
}

static void strangers_can_be_answered_while_their_packet_waits(void **state)
{
    (void)state;
    struct rnl_transport *t;
    struct below *b = below_new("delay=1us", &t);
    struct rnl_view v;
    struct rnl_addr a;
    arrive(b, RNL_PEER_STRANGER, 5);
    arrive(b, 2, 6);
    assert_int_equal(take(t, 0, NULL), -1);
    assert_int_equal(b->released, 1); /* the stranger's is kept */
    assert_int_equal(take(t, 1000, &v), 5);
    assert_int_equal(t->ops->source(t, &v, &a), 0);
    assert_int_equal(a.bytes[0], 0xff);
    assert_int_equal(t->ops->reply(t, &v, "x", 1, 1000), 1);
    assert_int_equal(t->ops->reply(t, &v, "123456789", 9, 1000), RNL_ERR_TOO_LONG);
    assert_int_equal(b->answered, 1);
    t->ops->release(t, &v, 1);
    assert_int_equal(b->released, 2);
    assert_int_equal(take(t, 1000, &v), 6);
    assert_int_equal(t->ops->source(t, &v, &a), 0);
    assert_int_equal(a.bytes[0], 2);
    assert_int_equal(t->ops->reply(t, &v, "x", 1, 1000), 1);
    assert_int_equal(b->answered, 1); /* by the way of the connected */
    assert_int_equal(b->sent, 1);
    t->ops->release(t, &v, 1);
    /* A flood of them keeps a few views only. */
    for (int i = 0; i < 500; i++)
        arrive(b, RNL_PEER_STRANGER, 1);
    (void)take(t, 1000, NULL);
    assert_true(b->packets - b->released <= 16);
    t->ops->close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_comes_back_as_it_was),
        cmocka_unit_test(a_wrong_text_says_what_is_wrong_and_what_could_be_there),
        cmocka_unit_test(the_named_packets_of_each_sender_are_lost),
        cmocka_unit_test(walls_stand_in_one_direction_or_both),
        cmocka_unit_test(a_packet_comes_twice_damaged_cut_or_marked),
        cmocka_unit_test(strangers_can_be_answered_while_their_packet_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
