/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bodies.c - the promises of net/datagram/transport.h, each a short story. Packets are sent again until one is there,
 * so that they hold under faults, too. */
#include "conform/conform.h"

#include <poll.h>

#include "base/error.h"
#include "conform/traffic.h"
#include "support/unit.h"

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
static int try_mark(struct conform_case *c, struct rnl_transport *t, uint32_t to, uint64_t number, uint32_t bytes,
                    bool ecn)
{
    struct rnl_room room;
    int n = t->ops->reserve(t, to, bytes, &room, 1);
    if (n == 0)
        return 0;
    assert_int_equal(n, 1);
    assert_non_null(room.at);
    assert_int_equal((uintptr_t)room.at % 8, 0);
    assert_true(room.bytes >= bytes);
    fill(c, number, room.at, bytes);
    assert_int_equal(t->ops->commit(t, to, &room, &bytes, 1, ecn, conform_now(t)), 1);
    return 1;
}

static int try_send(struct conform_case *c, struct rnl_transport *t, uint32_t to, uint64_t number, uint32_t bytes)
{
    return try_mark(c, t, to, number, bytes, false);
}

static void send_marked(struct conform_case *c, struct rnl_transport *t, uint32_t to, uint64_t number, uint32_t bytes,
                        bool ecn)
{
    for (int tries = 0; !try_mark(c, t, to, number, bytes, ecn); tries++) {
        assert_true(tries < TRIES);
        (void)t->ops->flush(t, conform_now(t));
        conform_step(c);
    }
    conform_flush(c, t);
}

static void send_packet(struct conform_case *c, struct rnl_transport *t, uint32_t to, uint64_t number, uint32_t bytes)
{
    send_marked(c, t, to, number, bytes, false);
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
    assert_int_equal(t->ops->reserve(t, conform_to(c), mtu + 1, &room, 1), RNL_ERR_TOO_LONG);
    assert_int_equal(t->ops->reserve(t, conform_to(c), UINT32_MAX, &room, 1), RNL_ERR_TOO_LONG);
    assert_int_equal(t->ops->reserve(t, conform_to(c), 8, &room, 0), RNL_ERR_ARG);
    exchange(c, &number, 1); /* an error costs nothing */
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
        int n = tx->ops->reserve(tx, to, b, room, 1 + (int)traffic_below(&random, BATCH)), went = 0;
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
            assert_int_equal(tx->ops->commit(tx, to, room, used, n, false, conform_now(tx)), went);
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
    assert_int_equal(t->ops->reserve(t, conform_to(c), 20, room, 2), 2);
    assert_int_equal(t->ops->reserve(t, conform_to(c), 20, &other, 1), RNL_BUSY);
    assert_int_equal(t->ops->commit(t, conform_to(c), room, used, 1, false, conform_now(t)), RNL_ERR_ARG);
    assert_int_equal(t->ops->commit(t, conform_to(c), room, (const uint32_t[]){21, 20}, 2, false, conform_now(t)),
                     RNL_ERR_ARG);
    fill(c, number++, room[1].at, 20);
    assert_int_equal(t->ops->commit(t, conform_to(c), room, used, 2, false, conform_now(t)), 1);
    assert_int_equal(t->ops->commit(t, conform_to(c), room, used, 2, false, conform_now(t)), RNL_ERR_ARG);
    exchange(c, &number, 20);
}

static void unknown_peer(struct conform_case *c)
{
    struct rnl_transport *t = conform_sender(c);
    struct rnl_room room;
    struct rnl_addr addr, bad;
    uint64_t number = 0;
    const uint32_t strangers[] = {t->env->size, t->env->size + 7, RNL_PEER_STRANGER};
    assert_int_equal(t->ops->reserve(t, conform_to(c), 8, &room, 1), RNL_ERR_RANK);
    assert_int_equal(t->ops->commit(t, conform_to(c), &room, &(uint32_t){8}, 1, false, 0), RNL_ERR_RANK);
    assert_int_equal(t->ops->remove_peer(t, conform_to(c)), RNL_ERR_RANK);
    assert_int_equal(t->ops->set_active_path(t, conform_to(c), 0), RNL_ERR_RANK);
    assert_int_equal(t->ops->send_on_path(t, conform_to(c), 0, "x", 1, 0), RNL_ERR_RANK);
    assert_int_equal(t->ops->commit_on_path(t, conform_to(c), 0, &room, &(uint32_t){8}, 1, false, 0), RNL_ERR_RANK);
    addr = c->net.addr[conform_from(c)];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(t->ops->add_peer(t, strangers[i], &addr, 1, 1), RNL_ERR_RANK);
        assert_int_equal(t->ops->reserve(t, strangers[i], 8, &room, 1), RNL_ERR_RANK);
    }
    bad = addr;
    bad.len--;
    assert_int_equal(t->ops->add_peer(t, conform_to(c), &bad, 1, 1), RNL_ERR_ARG);
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
    assert_int_equal(a->ops->add_peer(a, 1, &c->net.addr[1], 1, b->env->incarnation), 1);
    addr = c->net.addr[0];
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
            assert_int_equal(b->ops->reply(b, &v, answer, v.bytes + 1, conform_now(b)), RNL_ERR_TOO_LONG);
            fill(c, 7, answer, 99);
            assert_in_range(b->ops->reply(b, &v, answer, 99, conform_now(b)), 0, 1);
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
    assert_int_equal(b->ops->add_peer(b, 0, &addr, 1, a->env->incarnation), 1);
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
        uint64_t kept = 0, most = rnl_transport_holds(rx, bytes), first = number;
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
    uint64_t number = 0;
    conform_connect(c);
    for (int i = 0; i < 10; i++) /* queued, and never to go */
        (void)try_send(c, a, 1, number++, 64);
    assert_int_equal(a->ops->remove_peer(a, 1), 0);
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
    assert_int_equal(a->ops->add_peer(a, 1, &c->net.addr[1], 1, 77), 1);
    assert_int_equal(a->ops->add_peer(a, 1, &c->net.addr[1], 1, 78), RNL_ERR_PEER_DEAD);
    drain(c, c->net.t[1]);
}

static void marks(struct conform_case *c)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    uint64_t number = 0;
    conform_connect(c);
    for (int on = 0; on < 4; on++) {
        drain(c, rx);
        for (int seen = 0, tries = 0; seen < 20; tries++) {
            struct rnl_view v;
            assert_true(tries < TRIES);
            send_marked(c, tx, conform_to(c), number++, 64, on % 2);
            conform_step(c);
            while (rx->ops->poll(rx, &v, 1, conform_now(rx)) == 1) {
                assert_int_equal(v.flags & RNL_VIEW_ECT, on % 2 ? RNL_VIEW_ECT : 0);
                rx->ops->release(rx, &v, 1);
                seen++;
            }
        }
    }
}

/* ---- reserving ---- */

static void given_back_room_is_room(struct conform_case *c)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    const uint32_t none[4] = {0};
    struct rnl_room room[4];
    struct rnl_view v;
    conform_connect(c);
    for (int i = 0; i < 50000; i++) {
        uint32_t bytes = i % 2 ? mtu_of(c) : 20;
        int got = tx->ops->reserve(tx, conform_to(c), bytes, room, 4);
        assert_in_range(got, 1, 4);
        assert_int_equal(tx->ops->commit(tx, conform_to(c), room, none, got, false, conform_now(tx)), 0);
    }
    conform_flush(c, tx);
    conform_step(c);
    assert_int_equal(rx->ops->poll(rx, &v, 1, conform_now(rx)), 0);
}

static void the_fast_path(struct conform_case *c)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    const uint32_t to = conform_to(c), none = 0;
    struct rnl_room room;
    struct rnl_view v;
    uint64_t number = 0;
    conform_connect(c);
    if (!tx->ops->reserve_one)
        return; /* which a wrapped transport may do without */
    for (int seen = 0, tries = 0; seen < 50; tries++) {
        assert_true(tries < TRIES);
        unsigned char *at = tx->ops->reserve_one(tx, to, 120);
        if (!at) { /* what the host did not take waits for a flush */
            conform_flush(c, tx);
            continue;
        }
        if (tries % 3) { /* a room that is not sent needs not be given back */
            fill(c, number++, at, 100);
            tx->ops->send_one(tx, to, at, 100, conform_now(tx));
        }
        conform_step(c);
        while (rx->ops->poll(rx, &v, 1, conform_now(rx)) == 1) {
            assert_int_equal(v.bytes, 100);
            assert_true(check(c, &v, number) < number);
            rx->ops->release(rx, &v, 1);
            seen++;
        }
    }
    /* Beside a reserve there is no fast path. */
    assert_int_equal(tx->ops->reserve(tx, to, 64, &room, 1), 1);
    assert_null(tx->ops->reserve_one(tx, to, 64));
    assert_int_equal(tx->ops->commit(tx, to, &room, &none, 1, false, conform_now(tx)), 0);
    assert_null(tx->ops->reserve_one(tx, to, mtu_of(c) + 1));
    assert_null(tx->ops->reserve_one(tx, tx->env->size, 64));
    exchange(c, &number, 100);
}

/* ---- ends ---- */

/* Packets on their way, rooms reserved, views held, of short and of long packets. */
static void in_flight(struct conform_case *c)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    struct rnl_room room[4];
    struct rnl_view held[7];
    conform_connect(c);
    for (int i = 0; i < 10; i++)
        (void)try_send(c, tx, conform_to(c), (uint64_t)i, i % 2 ? 900 : 8);
    conform_flush(c, tx);
    conform_step(c);
    assert_in_range(rx->ops->poll(rx, held, 7, conform_now(rx)), 0, 7);
    assert_in_range(tx->ops->reserve(tx, conform_to(c), 900, room, 2), 0, 2);
}

static void close_in_flight(struct conform_case *c)
{
    in_flight(c); /* what remains, the fixture closes: the address sanitizer counts */
}

static void close_one_side(struct conform_case *c)
{
    struct rnl_transport *rx = conform_receiver(c);
    struct rnl_view v[BATCH];
    in_flight(c);
    conform_sender(c)->ops->close(conform_sender(c));
    c->net.t[conform_from(c)] = NULL;
    for (int i = 0; i < 50; i++) {
        conform_step(c);
        assert_in_range(rx->ops->poll(rx, v, BATCH, conform_now(rx)), 0, BATCH);
        (void)try_send(c, rx, conform_from(c), (uint64_t)i, 8);
        (void)rx->ops->flush(rx, conform_now(rx));
    }
}

static void removes(struct conform_case *c)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    struct rnl_room room;
    struct rnl_view v[BATCH];
    in_flight(c);
    assert_int_equal(tx->ops->remove_peer(tx, conform_to(c)), 0);
    assert_int_equal(tx->ops->remove_peer(tx, conform_to(c)), RNL_ERR_RANK);
    assert_int_equal(tx->ops->reserve(tx, conform_to(c), 8, &room, 1), RNL_ERR_RANK);
    int got = tx->ops->poll(tx, v, BATCH, conform_now(tx));
    for (int i = 0; i < got; i++) /* what still comes from there comes from nobody */
        assert_int_equal(v[i].peer, RNL_PEER_STRANGER);
    assert_true(got == 0 || rx == tx);
    tx->ops->release(tx, v, got);
    if (rx != tx) {
        got = rx->ops->poll(rx, v, BATCH, conform_now(rx));
        rx->ops->release(rx, v, got);
        assert_int_equal(rx->ops->remove_peer(rx, conform_from(c)), 0);
    }
}

/* ---- waiting ---- */

static int readable(struct conform_case *c, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    conform_step(c);
    return poll(&p, 1, 0) == 1;
}

static int becomes_readable(struct conform_case *c, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    conform_step(c);
    return poll(&p, 1, c->fixture->wakes_ms) == 1;
}

/* Only where nothing is lost: fixtures with faults claim no descriptor. */
static void descriptor(struct conform_case *c)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    struct rnl_view v;
    conform_connect(c);
    int fd = rx->ops->fd(rx);
    assert_true(fd >= 0);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(rx->ops->arm(rx), 0);
        assert_int_equal(rx->ops->arm(rx), 0);
        assert_false(readable(c, fd));
        send_packet(c, tx, conform_to(c), (uint64_t)i, i % 2 ? 8 : 700);
        assert_true(becomes_readable(c, fd));
        assert_true(readable(c, fd));          /* level-triggered */
        assert_int_equal(rx->ops->arm(rx), 1); /* something is here already */
        assert_int_equal(rx->ops->poll(rx, &v, 1, conform_now(rx)), 1);
        assert_int_equal(check(c, &v, (uint64_t)i + 1), i);
        assert_int_equal(rx->ops->arm(rx), 0); /* held, but taken in */
        assert_false(readable(c, fd));
        rx->ops->release(rx, &v, 1);
    }
    assert_int_equal(rx->ops->fd(rx), fd);
}

const struct conform_body conform_bodies[] = {
    {"a packet of any length passes, too long ones are refused", 0, 0, 0, lengths},
    {"a view stays as it is until it is released, in any order", 0, 0, 0, views_stay},
    {"a commit may use less than was reserved", 0, 0, 0, commits_less},
    {"room that is given back is room again", 0, 0, 0, given_back_room_is_room},
    {"one reserve may be outstanding for each peer", 0, 0, 0, one_reserve},
    {"one packet goes at once by the fast path, beside nothing else", 0, 0, 0, the_fast_path},
    {"no room passes by itself", 0, 0, 0, fills_up},
    {"packets that nobody polls are dropped, and nothing worse", 0, 0, 0, overrun},
    {"a rank that is no peer is an error", 0, 0, 0, unknown_peer},
    {"strangers can be replied to without state, never with more", 0, 2, 0, strangers},
    {"marks for congestion travel with the commit that asks for them", CONFORM_ECN, 0, 0, marks},
    {"removing one peer leaves others alone", 0, 3, 0, others_go_on},
    {"removing a peer ends what was in flight", 0, 0, 0, removes},
    {"close lets go of everything in flight", 0, 0, 0, close_in_flight},
    {"the other side outlives a close", 0, 2, 0, close_one_side},
    {"the descriptor tells of arrivals", CONFORM_FD, 0, 0, descriptor},
    {NULL, 0, 0, 0, NULL},
};
