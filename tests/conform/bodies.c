/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bodies.c - the promises of transport/contract.h that can be told step by step. */
#include "conform/bodies.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "conform/pipe.h"

static uint32_t mtu_of(struct conform_case *c)
{
    struct rnl_transport *t = conform_sender(c);
    return t->ops->mtu(t, conform_to(c));
}

/* ---- room ---- */

static void no_room(struct conform_case *c)
{
    struct pipe *p = pipe_new(c);
    const uint32_t bytes[] = {8, 300, mtu_of(c)};
    for (unsigned lane = 0; lane < PIPE_LANES; lane++) {
        for (int round = 0; round < 6; round++) {
            uint32_t b = bytes[round % 3];
            uint64_t before = p->lane[lane].sent;
            pipe_saturate(p, lane, b);
            assert_true(p->lane[lane].sent > before);
            pipe_check(p, lane);
            assert_int_equal(pipe_send(p, lane, b), 0); /* polled is not released */
            pipe_release_all(p);
            pipe_await_room(p, lane, mtu_of(c));
            pipe_poll_all(p, lane);
            pipe_release_all(p);
        }
    }
    pipe_free(p);
}

static void full_lane(struct conform_case *c)
{
    struct pipe *p = pipe_new(c);
    const uint32_t bytes[] = {8, 1000};
    for (unsigned full = 0; full < PIPE_LANES; full++) {
        for (int kind = 0; kind < 2; kind++) {
            pipe_saturate(p, full, bytes[kind]);
            for (int i = 0; i < 200; i++) {
                for (unsigned lane = 0; lane < PIPE_LANES; lane++) {
                    if (lane == full)
                        continue;
                    pipe_await_room(p, lane, bytes[i % 2]);
                    pipe_poll_all(p, lane);
                    pipe_release(p, lane, p->lane[lane].polled - p->lane[lane].released);
                }
                assert_int_equal(pipe_send(p, full, bytes[kind]), 0);
            }
            pipe_poll_all(p, full);
            pipe_release_all(p);
        }
    }
    pipe_free(p);
}

static void views_stay(struct conform_case *c)
{
    struct pipe *p = pipe_new(c);
    for (int round = 0; round < 20; round++) {
        for (unsigned lane = 0; lane < PIPE_LANES; lane++) {
            struct pipe_lane *l = &p->lane[lane];
            /* Hold what is there while more arrives; then let go of some and let more arrive. */
            for (int i = 0; i < 60 && pipe_send(p, lane, 1 + (uint32_t)(i * 7 + round * 31) % mtu_of(c)); i++)
                if (i % 3 == 0)
                    pipe_poll(p, 2);
            pipe_poll_all(p, lane);
            pipe_check(p, lane);
            pipe_release(p, lane, (l->polled - l->released) / 2);
            (void)pipe_fill(p, lane, 1 + (uint32_t)round * 13);
            pipe_poll_all(p, lane);
            pipe_check(p, lane);
        }
        pipe_release_all(p);
    }
    pipe_free(p);
}

/* ---- reserve and commit ---- */

/* Rooms of `bytes` each, of which used[] is used; then they all arrive. */
static void commit_some(struct pipe *p, unsigned lane, uint32_t bytes, const uint32_t *used, int n)
{
    struct pipe_lane *l = &p->lane[lane];
    struct rnl_room room[8];
    int got = 0, went = 0;
    for (int tries = 0; got < n; tries++) { /* all at once, as soon as there is room for them */
        const uint32_t none[8] = {0};
        got = p->tx->ops->reserve(p->tx, p->to, lane, bytes, room, n);
        assert_in_range(got, 0, n);
        if (got == n)
            break;
        if (got > 0)
            assert_int_equal(p->tx->ops->commit(p->tx, p->to, lane, room, none, got, conform_now(p->tx)), 0);
        pipe_poll(p, 8);
        pipe_release(p, lane, l->polled - l->released);
        assert_true(tries < 10000);
    }
    for (int i = 0; i < n; i++) {
        memset(room[i].at, 0xee, bytes);
        if (used[i] == 0)
            continue;
        traffic_fill(&l->flow, l->sent, room[i].at, used[i]);
        l->bytes[l->sent++] = used[i];
        went++;
    }
    assert_int_equal(p->tx->ops->commit(p->tx, p->to, lane, room, used, n, conform_now(p->tx)), went);
    conform_flush(p->c, p->tx);
}

static void commits_less(struct conform_case *c)
{
    struct pipe *p = pipe_new(c);
    const uint32_t reserved[] = {8, 56, 57, 1400};
    for (unsigned lane = 0; lane < PIPE_LANES; lane++) {
        for (int k = 0; k < 4; k++) {
            uint32_t b = reserved[k];
            const uint32_t nothing[3] = {0, 0, 0}, less[3] = {b - 1, 1, b / 2}, gaps[4] = {0, b, 0, b - 3},
                           end[3] = {b, 0, 0}, begin[3] = {0, 0, b};
            for (int round = 0; round < 200; round++) {
                commit_some(p, lane, b, nothing, 3);
                commit_some(p, lane, b, less, 3);
                commit_some(p, lane, b, nothing, 1);
                commit_some(p, lane, b, gaps, 4);
                commit_some(p, lane, b, end, 3);
                commit_some(p, lane, b, begin, 3);
                pipe_poll_all(p, lane);
                if (round % 3 == 0)
                    pipe_release_all(p);
            }
            pipe_release_all(p);
        }
    }
    pipe_free(p);
}

static void given_back_room_is_room(struct conform_case *c)
{
    struct pipe *p = pipe_new(c);
    const uint32_t none[4] = {0};
    struct rnl_room room[4];
    for (unsigned lane = 0; lane < conform_lanes(c); lane++) {
        for (int i = 0; i < 50000; i++) {
            uint32_t bytes = i % 2 ? mtu_of(c) : 20;
            int got = p->tx->ops->reserve(p->tx, p->to, lane, bytes, room, 4);
            assert_in_range(got, 1, 4);
            assert_int_equal(p->tx->ops->commit(p->tx, p->to, lane, room, none, got, conform_now(p->tx)), 0);
        }
        pipe_poll(p, 1);
        assert_int_equal(p->lane[lane].polled, 0);
    }
    pipe_free(p);
}

static void one_reserve(struct conform_case *c)
{
    struct pipe *p = pipe_new(c);
    struct rnl_room room, other;
    const uint32_t used = 5;
    for (unsigned lane = 0; lane < PIPE_LANES; lane++) {
        assert_int_equal(p->tx->ops->reserve(p->tx, p->to, lane, 5, &room, 1), 1);
        traffic_fill(&p->lane[lane].flow, 0, room.at, 5);
        assert_true(p->tx->ops->reserve(p->tx, p->to, lane, 5, &other, 1) <= 0);
        /* other lanes are not concerned */
        assert_int_equal(p->tx->ops->reserve(p->tx, p->to, (lane + 1) % PIPE_LANES, 5, &other, 1), 1);
        const uint32_t none = 0;
        assert_int_equal(p->tx->ops->commit(p->tx, p->to, (lane + 1) % PIPE_LANES, &other, &none, 1, 0), 0);
        assert_int_equal(p->tx->ops->commit(p->tx, p->to, lane, &room, &used, 1, conform_now(p->tx)), 1);
        p->lane[lane].bytes[p->lane[lane].sent++] = 5;
        conform_flush(c, p->tx);
        pipe_poll_all(p, lane);
    }
    pipe_release_all(p);
    pipe_free(p);
}

/* ---- lengths ---- */

static void lengths(struct conform_case *c)
{
    struct pipe *p = pipe_new(c);
    uint32_t mtu = mtu_of(c);
    struct rnl_room room;
    assert_true(mtu >= 64);
    for (unsigned lane = 0; lane < PIPE_LANES; lane++) {
        for (uint32_t bytes = 1; bytes <= 300 && bytes <= mtu; bytes++)
            pipe_await_room(p, lane, bytes);
        for (uint32_t bytes = mtu - 70; bytes <= mtu; bytes++) {
            pipe_await_room(p, lane, bytes);
            pipe_poll_all(p, lane);
            pipe_release_all(p);
        }
        assert_int_equal(p->tx->ops->reserve(p->tx, p->to, lane, mtu + 1, &room, 1), RNL_ERR_TOO_LONG);
        assert_int_equal(p->tx->ops->reserve(p->tx, p->to, lane, UINT32_MAX, &room, 1), RNL_ERR_TOO_LONG);
        pipe_await_room(p, lane, 1); /* an error costs nothing */
        pipe_poll_all(p, lane);
        pipe_release_all(p);
    }
    pipe_free(p);
}

static void lengths_hold(struct conform_case *c)
{
    /* As lengths, but the receiver lets go only when it must. */
    struct pipe *p = pipe_new(c);
    uint32_t mtu = mtu_of(c);
    for (unsigned lane = 0; lane < PIPE_LANES; lane++) {
        for (uint32_t bytes = 1; bytes <= mtu; bytes += bytes < 130 ? 1 : bytes / 3) {
            if (!pipe_send(p, lane, bytes)) {
                pipe_poll_all(p, lane);
                pipe_release_all(p);
                pipe_await_room(p, lane, bytes);
            }
        }
        pipe_poll_all(p, lane);
    }
    pipe_release_all(p);
    pipe_free(p);
}

/* ---- peers ---- */

static void unknown_peer(struct conform_case *c)
{
    struct rnl_transport *t = conform_sender(c);
    struct rnl_room room;
    struct rnl_addr addr;
    const uint32_t strangers[] = {t->env->size, t->env->size + 7, UINT32_MAX};
    assert_int_equal(t->ops->reserve(t, conform_to(c), 0, 8, &room, 1), RNL_ERR_RANK); /* not connected yet */
    assert_int_equal(t->ops->disconnect(t, conform_to(c)), RNL_ERR_RANK);
    conform_connect(c);
    assert_int_equal(t->ops->address(t, &addr), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(t->ops->connect(t, strangers[i], &addr, 1), RNL_ERR_RANK);
        assert_int_equal(t->ops->reserve(t, strangers[i], 0, 8, &room, 1), RNL_ERR_RANK);
        assert_int_equal(t->ops->disconnect(t, strangers[i]), RNL_ERR_RANK);
    }
    struct pipe *p = pipe_new(c); /* connects again: idempotent */
    pipe_await_room(p, 0, 8);
    pipe_poll_all(p, 0);
    pipe_release_all(p);
    pipe_free(p);
}

static void idempotent(struct conform_case *c)
{
    struct pipe *p = pipe_new(c);
    for (int i = 0; i < 10; i++) {
        for (unsigned lane = 0; lane < PIPE_LANES; lane++) {
            pipe_await_room(p, lane, 8 + (uint32_t)i * 40);
            conform_connect(c); /* with packets on the way */
            pipe_poll_all(p, lane);
            pipe_release_all(p);
        }
    }
    pipe_free(p);
}

static void before_the_peer(struct conform_case *c)
{
    for (uint32_t bytes = 1; bytes <= mtu_of(c); bytes += bytes < 100 ? 33 : bytes / 4) {
        struct pipe *p = pipe_new_alone(c);
        struct rnl_addr addr;
        assert_int_equal(p->rx->ops->address(p->rx, &addr), 0);
        assert_int_equal(p->tx->ops->connect(p->tx, p->to, &addr, p->rx->env->incarnation), 0);
        for (unsigned lane = 0; lane < PIPE_LANES; lane++)
            while (pipe_send_some(p, lane, bytes, 8))
                ;
        conform_connect(c);
        for (unsigned lane = 0; lane < PIPE_LANES; lane++) {
            pipe_poll_all(p, lane);
            pipe_release(p, lane, p->lane[lane].polled);
            pipe_await_room(p, lane, bytes);
            pipe_poll_all(p, lane);
        }
        pipe_release_all(p);
        pipe_free(p);
        conform_renew(c);
    }
}

/* ---- ends ---- */

/* Packets on the way, rooms reserved, views held, all lanes, both kinds of packet. Asks nothing of what arrives:
 * datagrams may be lost. */
static void in_flight(struct conform_case *c)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    struct rnl_room room[4];
    struct rnl_view held[7];
    conform_connect(c);
    for (unsigned lane = 0; lane < conform_lanes(c); lane++) {
        for (int i = 0; i < 10; i++) {
            const uint32_t bytes = i % 2 ? 900 : 8;
            if (tx->ops->reserve(tx, conform_to(c), lane, bytes, room, 1) < 1)
                continue;
            memset(room[0].at, i, bytes);
            assert_int_equal(tx->ops->commit(tx, conform_to(c), lane, room, &bytes, 1, conform_now(tx)), 1);
        }
        conform_flush(c, tx);
    }
    conform_step(c);
    assert_in_range(rx->ops->poll(rx, held, 7, conform_now(rx)), 0, 7);
    for (unsigned lane = 0; lane < conform_lanes(c); lane++)
        assert_in_range(tx->ops->reserve(tx, conform_to(c), lane, lane == 1 ? 8 : 900, room, 2), 0, 2);
}

static void close_in_flight(struct conform_case *c)
{
    in_flight(c); /* what remains, the fixture closes: the address sanitizer counts */
}

static void close_one_side(struct conform_case *c)
{
    struct rnl_transport *rx = conform_receiver(c);
    struct rnl_view v[8];
    struct rnl_room room;
    in_flight(c);
    conform_sender(c)->ops->close(conform_sender(c));
    c->net.t[conform_from(c)] = NULL;
    for (int i = 0; i < 50; i++) {
        const uint32_t used = 8;
        conform_step(c);
        int got = rx->ops->poll(rx, v, 8, conform_now(rx));
        assert_in_range(got, 0, 8);
        if (rx->ops->reserve(rx, conform_from(c), 0, 8, &room, 1) == 1) {
            memset(room.at, 7, 8);
            (void)rx->ops->commit(rx, conform_from(c), 0, &room, &used, 1, conform_now(rx));
        }
    }
}

static void disconnects(struct conform_case *c)
{
    struct rnl_transport *tx = conform_sender(c), *rx = conform_receiver(c);
    struct rnl_room room;
    struct rnl_view v[8];
    in_flight(c);
    assert_int_equal(tx->ops->disconnect(tx, conform_to(c)), 0);
    assert_int_equal(tx->ops->disconnect(tx, conform_to(c)), RNL_ERR_RANK);
    for (unsigned lane = 0; lane < conform_lanes(c); lane++)
        assert_int_equal(tx->ops->reserve(tx, conform_to(c), lane, 8, &room, 1), RNL_ERR_RANK);
    int got = tx->ops->poll(tx, v, 8, conform_now(tx));
    for (int i = 0; i < got; i++) /* what comes of it now comes from nobody */
        assert_int_equal(v[i].peer, RNL_PEER_STRANGER);
    tx->ops->release(tx, v, got);
    assert_true(got == 0 || (!(tx->caps & RNL_CAP_RELIABLE) && rx == tx));
    if (rx != tx) {
        got = rx->ops->poll(rx, v, 8, conform_now(rx));
        assert_in_range(got, 0, 8);
        rx->ops->release(rx, v, got);
        assert_int_equal(rx->ops->disconnect(rx, conform_from(c)), 0);
    }
}

static void others_go_on(struct conform_case *c)
{
    /* 0 disconnects 1 and goes on with 2. */
    struct rnl_transport *a = c->net.t[0], *b = c->net.t[2];
    struct rnl_room room;
    struct rnl_view v;
    conform_connect(c);
    assert_int_equal(a->ops->disconnect(a, 1), 0);
    for (int i = 0; i < 100; i++) {
        const uint32_t used = 8;
        int got = 0;
        assert_int_equal(a->ops->reserve(a, 2, 0, 8, &room, 1), 1);
        memset(room.at, i, 8);
        assert_int_equal(a->ops->commit(a, 2, 0, &room, &used, 1, conform_now(a)), 1);
        conform_flush(c, a);
        for (int tries = 0; got == 0 && tries < 1000; tries++) {
            conform_step(c);
            got = b->ops->poll(b, &v, 1, conform_now(b));
        }
        assert_int_equal(got, 1);
        assert_int_equal(*(const unsigned char *)v.at, i);
        b->ops->release(b, &v, 1);
    }
}

/* ---- waiting ---- */

static int readable(struct conform_case *c, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    conform_step(c);
    return poll(&p, 1, 0) == 1;
}

static void descriptor(struct conform_case *c)
{
    struct pipe *p = pipe_new(c);
    int fd = p->rx->ops->fd(p->rx);
    assert_true(fd >= 0);
    for (int i = 0; i < 50; i++) {
        unsigned lane = (unsigned)i % conform_lanes(c);
        assert_int_equal(p->rx->ops->arm(p->rx), 0);
        assert_int_equal(p->rx->ops->arm(p->rx), 0);
        assert_false(readable(c, fd));
        pipe_await_room(p, lane, i % 2 ? 8 : 700);
        assert_true(readable(c, fd));
        assert_true(readable(c, fd));                /* level-triggered */
        assert_int_equal(p->rx->ops->arm(p->rx), 1); /* something is here already */
        pipe_poll_all(p, lane);
        assert_int_equal(p->rx->ops->arm(p->rx), 0); /* held, but taken in */
        assert_false(readable(c, fd));
        pipe_release_all(p);
    }
    assert_int_equal(p->rx->ops->fd(p->rx), fd);
    pipe_free(p);
}

const struct conform_body conform_bodies[] = {
    {"no room is 0, loses nothing and passes", RNL_CAP_RELIABLE, 0, 0, 0, 0, no_room},
    {"a full lane stops no other", RNL_CAP_RELIABLE | RNL_CAP_LANES, 0, 0, 0, 0, full_lane},
    {"a view stays as it is until it is released", RNL_CAP_RELIABLE, 0, 0, 0, 0, views_stay},
    {"a commit may use less than was reserved, or nothing", RNL_CAP_RELIABLE, 0, 0, 0, 0, commits_less},
    {"room that is given back is room again", 0, 0, 0, 0, 0, given_back_room_is_room},
    {"one reserve may be outstanding on each lane", RNL_CAP_RELIABLE, 0, 0, 0, 0, one_reserve},
    {"packets of any length pass, too long ones are refused", RNL_CAP_RELIABLE, 0, 0, 0, 0, lengths},
    {"packets of mixed lengths fill their room", RNL_CAP_RELIABLE, 0, 0, 0, 0, lengths_hold},
    {"a peer that is unknown or not connected is an error", RNL_CAP_RELIABLE, 0, 0, 0, 0, unknown_peer},
    {"connecting again changes nothing", RNL_CAP_RELIABLE, 0, 0, 0, 0, idempotent},
    {"packets for a peer that has not connected yet wait for it", RNL_CAP_RELIABLE, 0, 2, 0, 0, before_the_peer},
    {"close lets go of everything in flight", 0, 0, 0, 0, 0, close_in_flight},
    {"the other side outlives a close", 0, 0, 2, 0, 0, close_one_side},
    {"disconnect ends one connection", 0, 0, 0, 0, 0, disconnects},
    {"disconnect leaves other peers alone", RNL_CAP_RELIABLE, 0, 3, 0, 0, others_go_on},
    {"the descriptor tells of arrivals", RNL_CAP_FD, 0, 0, 0, 0, descriptor},
    {NULL, 0, 0, 0, 0, 0, NULL},
};
