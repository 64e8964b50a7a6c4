/* SPDX-License-Identifier: BSD-3-Clause
 *
 * datagram.c - what a transport that may lose packets promises all the same. Packets are sent again until one is there,
 * so that the bodies hold under faults, too. */
#include "conform/bodies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "conform/traffic.h"

enum { TRIES = 3000, BATCH = 8, HELD = 24 };

/* What packet `number` of `bytes` holds: its number first, if that fits. */
static struct traffic_flow flow_of(struct conform_case *c)
{
    return (struct traffic_flow){.seed = c->seed, .from = conform_from(c), .to = conform_to(c), .least = 8};
}

static void fill(struct conform_case *c, uint64_t number, void *at, uint32_t bytes)
{
    struct traffic_flow f = flow_of(c);
    if (bytes < 8)
        memset(at, (int)bytes, bytes);
    else
        traffic_fill(&f, number, at, bytes);
}

/* The number of a packet, which is as it was sent; UINT64_MAX for those below 8 bytes. */
static uint64_t check(struct conform_case *c, const struct rnl_view *v, uint64_t sent)
{
    static const unsigned char same[8][8] = {"",         "\1",         "\2\2",         "\3\3\3",
                                             "\4\4\4\4", "\5\5\5\5\5", "\6\6\6\6\6\6", "\7\7\7\7\7\7\7"};
    struct traffic_flow f = flow_of(c);
    uint64_t number = UINT64_MAX;
    assert_int_equal(v->lane, 0);
    assert_int_equal(v->flags & RNL_VIEW_CUT, 0);
    assert_true(v->bytes > 0);
    if (v->bytes < 8) {
        assert_memory_equal(v->at, same[v->bytes], v->bytes);
        return number;
    }
    memcpy(&number, v->at, sizeof number);
    assert_true(number < sent); /* none is invented */
    assert_int_equal(traffic_check(&f, number, v->at, v->bytes), 0);
    return number;
}

/* 1, or 0 = no room. */
static int try_send(struct conform_case *c, struct rnl_transport *t, uint32_t to, uint64_t number, uint32_t bytes)
{
    struct rnl_room room;
    int n = t->ops->reserve(t, to, 0, bytes, &room, 1);
    if (n == 0)
        return 0;
    assert_int_equal(n, 1);
    assert_non_null(room.at);
    assert_int_equal((uintptr_t)room.at % 8, 0);
    assert_true(room.bytes >= bytes);
    fill(c, number, room.at, bytes);
    assert_int_equal(t->ops->commit(t, to, 0, &room, &bytes, 1, conform_now(t)), 1);
    return 1;
}

static void send_packet(struct conform_case *c, struct rnl_transport *t, uint32_t to, uint64_t number, uint32_t bytes)
{
    for (int tries = 0; !try_send(c, t, to, number, bytes); tries++) {
        assert_true(tries < TRIES);
        (void)t->ops->flush(t, conform_now(t));
        conform_step(c);
    }
    conform_flush(c, t);
}

static uint32_t mtu_of(struct conform_case *c)
{
    struct rnl_transport *t = conform_sender(c);
    return t->ops->mtu(t, conform_to(c));
}

/* Takes in and lets go of all that is on its way. */
static void drain(struct conform_case *c, struct rnl_transport *t)
{
    struct rnl_view v[BATCH];
    for (int quiet = 0; quiet < 100; quiet++) {
        conform_step(c);
        int got = t->ops->poll(t, v, BATCH, conform_now(t));
        t->ops->release(t, v, got);
        quiet = got ? 0 : quiet;
    }
}

/* Sends one of that length, again and again, until it is there. */
static void exchange(struct conform_case *c, uint64_t *number, uint32_t bytes)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    for (int tries = 0; tries < TRIES; tries++) {
        struct rnl_view v;
        if (tries % 20 == 0)
            send_packet(c, tx, conform_to(c), (*number)++, bytes);
        conform_step(c);
        while (rx->ops->poll(rx, &v, 1, conform_now(rx)) == 1) {
            uint32_t got = v.bytes;
            assert_int_equal(v.peer, conform_from(c));
            (void)check(c, &v, *number);
            rx->ops->release(rx, &v, 1);
            if (got == bytes)
                return;
        }
    }
    fail_msg("no packet of %u bytes arrives", bytes);
}

/* ---- bodies ---- */

static void lengths(struct conform_case *c)
{
    struct rnl_transport *t = conform_sender(c);
    struct rnl_room room;
    uint64_t number = 0;
    conform_connect(c);
    uint32_t mtu = mtu_of(c);
    assert_true(mtu >= 64);
    for (uint32_t bytes = 1; bytes <= 300 && bytes <= mtu; bytes++)
        exchange(c, &number, bytes);
    for (uint32_t bytes = mtu - 20; bytes <= mtu; bytes++)
        exchange(c, &number, bytes);
    assert_int_equal(t->ops->reserve(t, conform_to(c), 0, mtu + 1, &room, 1), RNL_ERR_TOO_LONG);
    assert_int_equal(t->ops->reserve(t, conform_to(c), 0, UINT32_MAX, &room, 1), RNL_ERR_TOO_LONG);
    assert_int_equal(t->ops->reserve(t, conform_to(c), 1, 8, &room, 1), RNL_ERR_ARG); /* lane 0 only */
    exchange(c, &number, 1);                                                          /* an error costs nothing */
}

static void views_stay(struct conform_case *c)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    struct rnl_view held[HELD];
    uint64_t sent = 0, random = c->seed;
    int holds = 0;
    conform_connect(c);
    for (int turn = 0; turn < CONFORM_COUNT(20000); turn++) {
        uint32_t bytes = 8 + traffic_below(&random, traffic_below(&random, 8) ? 200 : mtu_of(c) - 8);
        if (try_send(c, tx, conform_to(c), sent, bytes))
            sent++;
        if (turn % 3 == 0)
            (void)tx->ops->flush(tx, conform_now(tx));
        if (turn % 5 == 0)
            conform_step(c);
        if (holds < HELD) {
            int got = rx->ops->poll(rx, held + holds, HELD - holds, conform_now(rx));
            assert_in_range(got, 0, HELD - holds);
            for (int i = 0; i < got; i++)
                (void)check(c, &held[holds + i], sent);
            holds += got;
        }
        if (holds > HELD / 2) { /* any of them, after another look */
            int k = (int)traffic_below(&random, (uint32_t)holds);
            (void)check(c, &held[k], sent);
            rx->ops->release(rx, &held[k], 1);
            held[k] = held[--holds];
        }
    }
    for (int i = 0; i < holds; i++)
        (void)check(c, &held[i], sent);
    assert_true(holds > 0);
    rx->ops->release(rx, held, holds);
    drain(c, rx);
}

static void commits_less(struct conform_case *c)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    const uint32_t to = conform_to(c), reserved[] = {8, 63, 64, 1001};
    uint64_t sent = 0, seen = 0, random = c->seed;
    conform_connect(c);
    for (int turn = 0; turn < CONFORM_COUNT(4000); turn++) {
        struct rnl_room room[BATCH];
        struct rnl_view v[BATCH];
        uint32_t used[BATCH], b = reserved[turn % 4];
        int n = tx->ops->reserve(tx, to, 0, b, room, 1 + (int)traffic_below(&random, BATCH)), went = 0;
        assert_in_range(n, 0, BATCH);
        for (int i = 0; i < n; i++) {
            /* Whole ones mostly: those are what runs are made of. */
            uint32_t kind = traffic_below(&random, 6);
            used[i] = kind == 0 ? 0 : kind == 1 ? 8 + traffic_below(&random, b - 7) : b;
            memset(room[i].at, 0xee, b);
            if (used[i] == 0)
                continue;
            fill(c, sent++, room[i].at, used[i]);
            went++;
        }
        if (n > 0)
            assert_int_equal(tx->ops->commit(tx, to, 0, room, used, n, conform_now(tx)), went);
        if (traffic_below(&random, 3) == 0)
            (void)tx->ops->flush(tx, conform_now(tx));
        conform_step(c);
        int got = rx->ops->poll(rx, v, BATCH, conform_now(rx));
        for (int i = 0; i < got; i++)
            seen += check(c, &v[i], sent) != UINT64_MAX;
        rx->ops->release(rx, v, got);
    }
    assert_true(seen > sent / 4); /* whatever is lost on purpose, not most of it */
    drain(c, rx);
}

static void one_reserve(struct conform_case *c)
{
    struct rnl_transport *t = conform_sender(c);
    struct rnl_room room[2], other;
    const uint32_t used[2] = {0, 20};
    uint64_t number = 0;
    conform_connect(c);
    assert_int_equal(t->ops->reserve(t, conform_to(c), 0, 20, room, 2), 2);
    assert_int_equal(t->ops->reserve(t, conform_to(c), 0, 20, &other, 1), RNL_BUSY);
    assert_int_equal(t->ops->commit(t, conform_to(c), 0, room, used, 1, conform_now(t)), RNL_ERR_ARG);
    assert_int_equal(t->ops->commit(t, conform_to(c), 0, room, (const uint32_t[]){21, 20}, 2, conform_now(t)),
                     RNL_ERR_ARG);
    fill(c, number++, room[1].at, 20);
    assert_int_equal(t->ops->commit(t, conform_to(c), 0, room, used, 2, conform_now(t)), 1);
    assert_int_equal(t->ops->commit(t, conform_to(c), 0, room, used, 2, conform_now(t)), RNL_ERR_ARG);
    exchange(c, &number, 20);
}

static void unknown_peer(struct conform_case *c)
{
    struct rnl_transport *t = conform_sender(c);
    struct rnl_room room;
    struct rnl_addr addr, bad;
    uint64_t number = 0;
    const uint32_t strangers[] = {t->env->size, t->env->size + 7, RNL_PEER_STRANGER};
    assert_int_equal(t->ops->reserve(t, conform_to(c), 0, 8, &room, 1), RNL_ERR_RANK);
    assert_int_equal(t->ops->commit(t, conform_to(c), 0, &room, &(uint32_t){8}, 1, 0), RNL_ERR_RANK);
    assert_int_equal(t->ops->disconnect(t, conform_to(c)), RNL_ERR_RANK);
    assert_int_equal(t->ops->mark(t, conform_to(c), 1), RNL_ERR_RANK);
    assert_int_equal(t->ops->address(t, &addr), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(t->ops->connect(t, strangers[i], &addr, 1), RNL_ERR_RANK);
        assert_int_equal(t->ops->reserve(t, strangers[i], 0, 8, &room, 1), RNL_ERR_RANK);
    }
    bad = addr;
    bad.len--;
    assert_int_equal(t->ops->connect(t, conform_to(c), &bad, 1), RNL_ERR_ARG);
    conform_connect(c);
    conform_connect(c); /* idempotent */
    exchange(c, &number, 100);
}

static void strangers(struct conform_case *c)
{
    /* 0 knows 1; 1 knows nobody, and answers all the same. */
    struct rnl_transport *a = c->net.t[0], *b = c->net.t[1];
    struct rnl_addr addr, from;
    int answered = 0;
    assert_int_equal(b->ops->address(b, &addr), 0);
    assert_int_equal(a->ops->connect(a, 1, &addr, b->env->incarnation), 0);
    assert_int_equal(a->ops->address(a, &addr), 0);
    for (int tries = 0; !answered; tries++) {
        struct rnl_view v;
        unsigned char answer[1000];
        assert_true(tries < TRIES);
        send_packet(c, a, 1, (uint64_t)tries, 100);
        conform_step(c);
        while (b->ops->poll(b, &v, 1, conform_now(b)) == 1) {
            assert_int_equal(v.peer, RNL_PEER_STRANGER);
            (void)check(c, &v, (uint64_t)tries + 1);
            assert_int_equal(b->ops->source(b, &v, &from), 0);
            assert_int_equal(from.len, addr.len);
            assert_memory_equal(from.bytes, addr.bytes, addr.len);
            /* Never more out than in. */
            assert_int_equal(b->ops->answer(b, &v, answer, v.bytes + 1, conform_now(b)), RNL_ERR_TOO_LONG);
            fill(c, 7, answer, 99);
            assert_in_range(b->ops->answer(b, &v, answer, 99, conform_now(b)), 0, 1);
            memset(answer, 0, sizeof answer);
            b->ops->release(b, &v, 1);
            assert_true(b->ops->source(b, &v, &from) < 0); /* not after its release */
        }
        conform_flush(c, b);
        conform_step(c);
        while (a->ops->poll(a, &v, 1, conform_now(a)) == 1) {
            assert_int_equal(v.peer, 1);
            assert_int_equal(v.bytes, 99);
            assert_int_equal(check(c, &v, 8), 7);
            a->ops->release(a, &v, 1);
            answered = 1;
        }
    }
    /* As soon as it is connected it has a number. */
    uint64_t number = 10000;
    assert_int_equal(b->ops->connect(b, 0, &addr, a->env->incarnation), 0);
    drain(c, b);
    for (int tries = 0;; tries++) {
        struct rnl_view v;
        assert_true(tries < TRIES);
        send_packet(c, a, 1, number++, 64);
        conform_step(c);
        if (b->ops->poll(b, &v, 1, conform_now(b)) == 1) {
            assert_int_equal(v.peer, 0);
            b->ops->release(b, &v, 1);
            return;
        }
    }
}

static void overrun(struct conform_case *c)
{
    /* Far more than any buffer holds, and nobody polls: room never fails to come back, and then all is well. */
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    uint64_t number = 0;
    conform_connect(c);
    for (uint32_t bytes = 64; bytes <= mtu_of(c); bytes += mtu_of(c) - 64) {
        uint64_t kept = 0, most = rx->ops->holds(rx, bytes), first = number;
        struct rnl_view v;
        assert_in_range(most, 1, 1 << 24);
        while (number - first < 3 * most + 500)
            send_packet(c, tx, conform_to(c), number++, bytes);
        for (int i = 0; i < 100; i++)
            conform_step(c);
        for (int quiet = 0; quiet < 100; quiet++) {
            while (rx->ops->poll(rx, &v, 1, conform_now(rx)) == 1) {
                (void)check(c, &v, number);
                rx->ops->release(rx, &v, 1);
                kept++;
                quiet = 0;
            }
            conform_step(c);
        }
        assert_true(kept >= most / 2); /* what was kept, less what is lost on purpose */
        exchange(c, &number, bytes);
    }
}

static void fills_up(struct conform_case *c)
{
    /* Reserve until there is no room, which not every network lets happen; it passes without anybody but the network
     * doing anything. */
    struct rnl_transport *t = conform_sender(c);
    uint64_t number = 0;
    conform_connect(c);
    for (int round = 0; round < 20; round++) {
        int sent = 0;
        while (sent < 2000 && try_send(c, t, conform_to(c), number, mtu_of(c))) {
            number++;
            sent++;
        }
        for (int tries = 0; t->ops->flush(t, conform_now(t)) > 0; tries++) {
            assert_true(t->ops->deadline(t) != UINT64_MAX); /* it says when to come again */
            assert_true(tries < TRIES);
            conform_step(c);
        }
        drain(c, conform_receiver(c));
    }
    assert_true(number > 20);
}

static void others_go_on(struct conform_case *c)
{
    struct rnl_transport *a = c->net.t[0], *b = c->net.t[2];
    struct rnl_view v;
    struct rnl_addr addr;
    uint64_t number = 0;
    conform_connect(c);
    for (int i = 0; i < 10; i++) /* queued, and never to go */
        (void)try_send(c, a, 1, number++, 64);
    assert_int_equal(a->ops->disconnect(a, 1), 0);
    for (int i = 0; i < 50; i++) {
        int got = 0;
        for (int tries = 0; got == 0; tries++) {
            assert_true(tries < TRIES);
            send_packet(c, a, 2, number++, 100);
            conform_step(c);
            got = b->ops->poll(b, &v, 1, conform_now(b));
        }
        assert_int_equal(v.peer, 0);
        (void)check(c, &v, number);
        b->ops->release(b, &v, 1);
    }
    /* And another life of rank 1 can have that place. */
    assert_int_equal(c->net.t[1]->ops->address(c->net.t[1], &addr), 0);
    assert_int_equal(a->ops->connect(a, 1, &addr, 77), 0);
    assert_int_equal(a->ops->connect(a, 1, &addr, 78), RNL_ERR_PEER_DEAD);
    drain(c, c->net.t[1]);
}

static void marks(struct conform_case *c)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    uint64_t number = 0;
    conform_connect(c);
    for (int on = 0; on < 4; on++) {
        assert_int_equal(tx->ops->mark(tx, conform_to(c), on % 2), 0);
        drain(c, rx);
        for (int seen = 0, tries = 0; seen < 20; tries++) {
            struct rnl_view v;
            assert_true(tries < TRIES);
            send_packet(c, tx, conform_to(c), number++, 64);
            conform_step(c);
            while (rx->ops->poll(rx, &v, 1, conform_now(rx)) == 1) {
                assert_int_equal(v.flags & RNL_VIEW_ECT, on % 2 ? RNL_VIEW_ECT : 0);
                rx->ops->release(rx, &v, 1);
                seen++;
            }
        }
    }
}

static void no_notice(struct conform_case *c)
{
    /* Nothing happened that one could be told of; asking is fine at any time. */
    struct rnl_transport *t = conform_sender(c);
    struct rnl_notice n;
    assert_int_equal(t->ops->notice(t, &n), 0);
    conform_connect(c);
    uint64_t number = 0;
    exchange(c, &number, 64);
    assert_int_equal(t->ops->notice(t, &n), 0);
}

const struct conform_body conform_datagram_bodies[] = {
    {"a datagram of any length passes, too long ones are refused", 0, RNL_CAP_RELIABLE, 0, 0, 0, lengths},
    {"a datagram stays as it is until it is released, in any order", 0, RNL_CAP_RELIABLE, 0, 0, 0, views_stay},
    {"a commit of datagrams may use less than was reserved", 0, RNL_CAP_RELIABLE, 0, 0, 0, commits_less},
    {"one reserve may be outstanding for each peer", 0, RNL_CAP_RELIABLE, 0, 0, 0, one_reserve},
    {"a peer that is not connected is an error for datagrams, too", 0, RNL_CAP_RELIABLE, 0, 0, 0, unknown_peer},
    {"strangers can be answered without state, never with more", 0, RNL_CAP_RELIABLE, 2, 0, 0, strangers},
    {"datagrams that nobody polls are dropped, and nothing worse", 0, RNL_CAP_RELIABLE, 0, 0, 0, overrun},
    {"no room for datagrams passes by itself", 0, RNL_CAP_RELIABLE, 0, 0, 0, fills_up},
    {"disconnect leaves other peers' datagrams alone", 0, RNL_CAP_RELIABLE, 3, 0, 0, others_go_on},
    {"marks for congestion travel", RNL_CAP_ECN, RNL_CAP_RELIABLE, 0, 0, 0, marks},
    {"notices can be asked for at any time", 0, RNL_CAP_RELIABLE, 0, 0, 0, no_notice},
    {NULL, 0, 0, 0, 0, 0, NULL},
};
