/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_fault.c - faults as text, and the transport that does them, over a transport in memory that the test drives.
 * That a wrapped transport still keeps its contract, the conformance suite shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/env.h"
#include "runnel/runnel.h"
#include "transport/fault/fault.h"

#include <stdlib.h>
#include <string.h>

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

static void one_thing_can_be_said_in_several_ways(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"loss=0.01", "loss=1%"},
                                           {"loss=1.50%", "loss=1.5%"},
                                           {"delay=1000ns", "delay=1us"},
                                           {"delay=1.5ms", "delay=1500us"},
                                           {"delay=2us..2us", "delay=2us"},
                                           {"seed=3,loss=1%", "loss=1%,seed=3"},
                                           {"loss=0%", ""},
                                           {"burst=0:1", "burst=0%:100%"},
                                           {"part=3-3", "part=3"},
                                           {"reorder=1:0.5us", "reorder=100%:500ns"},
                                           {"for=0.000000001s", "for=1ns"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct rnl_fault a, b;
        char text_a[RNL_FAULT_TEXT], text_b[RNL_FAULT_TEXT];
        assert_int_equal(rnl_fault_parse(pairs[i][0], &a), 0);
        assert_int_equal(rnl_fault_parse(pairs[i][1], &b), 0);
        (void)rnl_fault_print(&a, text_a, sizeof text_a);
        (void)rnl_fault_print(&b, text_b, sizeof text_b);
        assert_string_equal(text_a, text_b);
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

static void what_does_not_fit_is_cut_off(void **state)
{
    (void)state;
    struct rnl_fault f;
    char text[8] = "xxxxxxx";
    assert_int_equal(rnl_fault_parse("loss=1%,dup=1%", &f), 0);
    assert_int_equal(rnl_fault_print(&f, text, 6), 14);
    assert_string_equal(text, "loss=");
    assert_int_equal(rnl_fault_print(&f, NULL, 0), 14);
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

static int below_reserve(struct rnl_transport *t, uint32_t peer, unsigned lane, uint32_t bytes, struct rnl_room *room,
                         int n)
{
    struct below *b = (struct below *)(void *)t;
    (void)lane;
    if (peer >= PEERS)
        return RNL_ERR_RANK;
    assert_int_equal(b->rooms, 0);
    for (int i = 0; i < n; i++)
        room[i] = (struct rnl_room){&b->room[i], bytes, 0};
    b->rooms = n;
    return n;
}

static int below_commit(struct rnl_transport *t, uint32_t peer, unsigned lane, const struct rnl_room *room,
                        const uint32_t *used, int n, uint64_t now_ns)
{
    struct below *b = (struct below *)(void *)t;
    int went = 0;
    (void)peer, (void)lane, (void)room, (void)now_ns;
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

static int below_answer(struct rnl_transport *t, const struct rnl_view *v, const void *at, uint32_t bytes,
                        uint64_t now_ns)
{
    struct below *b = (struct below *)(void *)t;
    (void)at, (void)bytes, (void)now_ns;
    assert_true(v->token >> 40 == 1); /* its own view */
    b->answered++;
    return 1;
}

static int below_disconnect(struct rnl_transport *t, uint32_t peer)
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
                                                   .answer = below_answer,
                                                   .disconnect = below_disconnect,
                                                   .close = below_close};

static struct below *below_new(uint32_t caps, const char *faults, struct rnl_transport **t)
{
    struct below *b = calloc(1, sizeof *b);
    struct rnl_fault f;
    assert_non_null(b);
    b->env = (struct rnl_env){.rank = 0, .size = PEERS};
    b->t = (struct rnl_transport){&below_ops, caps, &b->env};
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
    assert_int_equal(rnl_fault_set(t, &f, now_ns), 0);
}

static void the_named_packets_of_each_sender_are_lost(void **state)
{
    (void)state;
    struct rnl_transport *t;
    struct below *b = below_new(0, "drop=2+3", &t);
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

static void delayed_packets_come_by_the_deadline_and_leave_the_buffers_below(void **state)
{
    (void)state;
    struct rnl_transport *t;
    struct below *b = below_new(0, "delay=1us", &t);
    arrive(b, 1, 1);
    assert_int_equal(t->ops->arm(t), 1);
    assert_int_equal(take(t, 100, NULL), -1);
    assert_int_equal(b->released, 1);
    assert_int_equal(t->ops->deadline(t), 1100);
    assert_int_equal(t->ops->arm(t), 0);
    arrive(b, 1, 2);
    assert_int_equal(take(t, 600, NULL), -1);
    assert_int_equal(take(t, 1099, NULL), -1);
    struct rnl_view v, w;
    assert_int_equal(take(t, 1100, &v), 1);
    assert_int_equal(t->ops->deadline(t), 1600);
    /* Switched off while one waits and one is out: it comes when it was to come, others at once. */
    change(t, "", 1200);
    arrive(b, 1, 3);
    assert_int_equal(take(t, 1200, &w), 3);
    assert_int_equal(take(t, 1600, NULL), 2);
    t->ops->release(t, &w, 1);
    t->ops->release(t, &v, 1);
    assert_int_equal(b->released, 3);
    assert_int_equal(t->ops->deadline(t), UINT64_MAX);
    t->ops->close(t);
}

static void faults_can_be_switched_while_it_runs(void **state)
{
    (void)state;
    struct rnl_transport *t;
    struct below *b = below_new(0, "", &t);
    for (int round = 0; round < 3; round++) {
        change(t, "loss=100%", 0);
        arrive(b, 1, 7);
        assert_int_equal(take(t, 0, NULL), -1);
        change(t, "", 0);
        arrive(b, 1, 8);
        assert_int_equal(take(t, 0, NULL), 8);
    }
    change(t, "loss=100%,after=10us,for=5us", 1000);
    static const uint64_t at[] = {1000, 10999, 11000, 15999, 16000, 99000};
    for (int i = 0; i < 6; i++) {
        arrive(b, 1, 9);
        assert_int_equal(take(t, at[i], NULL), i == 2 || i == 3 ? -1 : 9);
    }
    char text[RNL_FAULT_TEXT];
    (void)rnl_fault_print(rnl_fault_get(t), text, sizeof text);
    assert_string_equal(text, "loss=100%,after=10us,for=5us");
    t->ops->close(t);
}

static int goes_out(struct rnl_transport *t, struct below *b, uint32_t peer)
{
    struct rnl_room room[2];
    const uint32_t used[2] = {8, 0};
    int before = b->sent;
    assert_int_equal(t->ops->reserve(t, peer, 0, 8, room, 2), 2);
    assert_int_equal(t->ops->commit(t, peer, 0, room, used, 2, 0), 1); /* whoever sends does not know */
    return b->sent - before;
}

static void walls_stand_in_one_direction_or_both(void **state)
{
    (void)state;
    struct rnl_transport *t;
    struct below *b = below_new(0, "in=1,out=2", &t);
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
    struct below *b = below_new(0, "dup=100%", &t);
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
    struct below *b = below_new(0, "delay=1us", &t);
    struct rnl_view v;
    struct rnl_addr a;
    arrive(b, RNL_PEER_STRANGER, 5);
    arrive(b, 2, 6);
    assert_int_equal(take(t, 0, NULL), -1);
    assert_int_equal(b->released, 1); /* the stranger's is kept */
    assert_int_equal(take(t, 1000, &v), 5);
    assert_int_equal(t->ops->source(t, &v, &a), 0);
    assert_int_equal(a.bytes[0], 0xff);
    assert_int_equal(t->ops->answer(t, &v, "x", 1, 1000), 1);
    assert_int_equal(t->ops->answer(t, &v, "123456789", 9, 1000), RNL_ERR_TOO_LONG);
    assert_int_equal(b->answered, 1);
    t->ops->release(t, &v, 1);
    assert_int_equal(b->released, 2);
    assert_int_equal(take(t, 1000, &v), 6);
    assert_int_equal(t->ops->source(t, &v, &a), 0);
    assert_int_equal(a.bytes[0], 2);
    assert_int_equal(t->ops->answer(t, &v, "x", 1, 1000), 1);
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

static void a_peer_that_is_let_go_leaves_nothing_waiting(void **state)
{
    (void)state;
    struct rnl_transport *t;
    struct below *b = below_new(0, "delay=1us..9us", &t);
    for (uint64_t i = 0; i < 200; i++)
        arrive(b, 1 + i % 3, i);
    assert_int_equal(take(t, 0, NULL), -1);
    assert_int_equal(t->ops->disconnect(t, 2), 0);
    int got = 0;
    struct rnl_view v;
    for (uint64_t now_ns = 0; now_ns <= 9000; now_ns += 10) {
        while (take(t, now_ns, &v) >= 0) {
            assert_int_not_equal(v.peer, 2);
            t->ops->release(t, &v, 1);
            got++;
        }
    }
    assert_int_equal(got, 133); /* 200 less the 67 of rank 2 */
    t->ops->close(t);
}

static void no_room_comes_as_often_as_asked_for(void **state)
{
    (void)state;
    struct rnl_transport *t;
    struct below *b = below_new(0, "noroom=20%", &t);
    int none = 0, fewer = 0;
    struct rnl_room room[8];
    const uint32_t used[8] = {0};
    for (int i = 0; i < 10000; i++) {
        int n = t->ops->reserve(t, 1, 0, 8, room, 8);
        assert_in_range(n, 0, 8);
        none += n == 0;
        fewer += n > 0 && n < 8;
        if (n > 0)
            assert_int_equal(t->ops->commit(t, 1, 0, room, used, n, 0), 0);
    }
    assert_int_equal(b->rooms, 0);
    assert_in_range(none, 180, 320); /* an eighth of the 2000 */
    assert_in_range(none + fewer, 1800, 2200);
    assert_int_equal(t->ops->reserve(t, PEERS, 0, 8, room, 1), RNL_ERR_RANK);
    t->ops->close(t);
}

static void a_reliable_transport_takes_only_what_it_can_have(void **state)
{
    (void)state;
    struct rnl_transport *t;
    struct below *b = below_new(RNL_CAP_RELIABLE | RNL_CAP_LANES, "delay=1us..20us,noroom=1%,after=0ns,seed=4", &t);
    static const char *const not_for_it[] = {"loss=1%", "dup=1%",  "reorder=1%:1us", "in=1",
                                             "ce=1%",   "mtu=100", "nth=3"};
    for (int i = 0; i < 7; i++) {
        struct rnl_fault f;
        assert_int_equal(rnl_fault_parse(not_for_it[i], &f), 0);
        assert_int_equal(rnl_fault_set(t, &f, 0), RNL_ERR_ARG);
        assert_non_null(strstr(rnl_last_error()->text, not_for_it[i]));
        assert_non_null(strstr(rnl_last_error()->text, "delay"));
    }
    /* Whatever the delays, in order. */
    for (uint64_t i = 0; i < 3000; i++)
        arrive(b, 1, i);
    int64_t next = 0;
    for (uint64_t now_ns = 0; next < 3000; now_ns += 100) {
        struct rnl_view v;
        int64_t number;
        while ((number = take(t, now_ns, &v)) >= 0) {
            assert_int_equal(number, next++);
            t->ops->release(t, &v, 1);
        }
        assert_true(now_ns < 1000000);
    }
    assert_int_equal(b->released, 3000);
    t->ops->close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_comes_back_as_it_was),
        cmocka_unit_test(one_thing_can_be_said_in_several_ways),
        cmocka_unit_test(a_wrong_text_says_what_is_wrong_and_what_could_be_there),
        cmocka_unit_test(what_does_not_fit_is_cut_off),
        cmocka_unit_test(the_named_packets_of_each_sender_are_lost),
        cmocka_unit_test(delayed_packets_come_by_the_deadline_and_leave_the_buffers_below),
        cmocka_unit_test(faults_can_be_switched_while_it_runs),
        cmocka_unit_test(walls_stand_in_one_direction_or_both),
        cmocka_unit_test(a_packet_comes_twice_damaged_cut_or_marked),
        cmocka_unit_test(strangers_can_be_answered_while_their_packet_waits),
        cmocka_unit_test(a_peer_that_is_let_go_leaves_nothing_waiting),
        cmocka_unit_test(no_room_comes_as_often_as_asked_for),
        cmocka_unit_test(a_reliable_transport_takes_only_what_it_can_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
