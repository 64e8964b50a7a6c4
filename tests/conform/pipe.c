/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pipe.c - see pipe.h. */
#include "conform/pipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRIES = 100000, POLL_MAX = 64 };

struct pipe *pipe_new(struct conform_case *c)
{
    conform_connect(c);
    return pipe_new_alone(c);
}

struct pipe *pipe_new_alone(struct conform_case *c)
{
    struct pipe *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->c = c;
    p->tx = conform_sender(c);
    p->rx = conform_receiver(c);
    p->from = conform_from(c);
    p->to = conform_to(c);
    for (unsigned lane = 0; lane < PIPE_LANES; lane++)
        p->lane[lane].flow = (struct traffic_flow){.seed = c->seed, .from = p->from, .to = p->to, .lane = lane};
    return p;
}

void pipe_free(struct pipe *p)
{
    free(p);
}

int pipe_send(struct pipe *p, unsigned lane, uint32_t bytes)
{
    struct pipe_lane *l = &p->lane[lane];
    struct rnl_room room;
    assert_true(l->sent < PIPE_PACKETS);
    int n = p->tx->ops->reserve(p->tx, p->to, lane, bytes, &room, 1);
    if (n == 0)
        return 0;
    assert_int_equal(n, 1);
    assert_non_null(room.at);
    assert_int_equal((uintptr_t)room.at % 8, 0);
    assert_true(room.bytes >= bytes);
    traffic_fill(&l->flow, l->sent, room.at, bytes);
    assert_int_equal(p->tx->ops->commit(p->tx, p->to, lane, &room, &bytes, 1, conform_now(p->tx)), 1);
    l->bytes[l->sent++] = bytes;
    conform_flush(p->c, p->tx);
    return 1;
}

int pipe_send_some(struct pipe *p, unsigned lane, uint32_t bytes, int n)
{
    struct pipe_lane *l = &p->lane[lane];
    struct rnl_room room[8];
    uint32_t used[8];
    int got = p->tx->ops->reserve(p->tx, p->to, lane, bytes, room, n);
    assert_in_range(got, 0, n);
    if (got == 0)
        return 0;
    for (int i = 0; i < got; i++) {
        traffic_fill(&l->flow, l->sent, room[i].at, bytes);
        used[i] = bytes;
        l->bytes[l->sent++] = bytes;
    }
    assert_int_equal(p->tx->ops->commit(p->tx, p->to, lane, room, used, got, conform_now(p->tx)), got);
    conform_flush(p->c, p->tx);
    return got;
}

uint64_t pipe_fill(struct pipe *p, unsigned lane, uint32_t bytes)
{
    uint64_t before = p->lane[lane].sent;
    int refused = 0;
    while (refused < 3) {
        if (pipe_send(p, lane, bytes))
            refused = 0;
        else
            refused++;
        conform_step(p->c);
    }
    return p->lane[lane].sent - before;
}

void pipe_saturate(struct pipe *p, unsigned lane, uint32_t bytes)
{
    for (int tries = 0; pipe_fill(p, lane, bytes) > 0; tries++) {
        assert_true(tries < 100);
        pipe_poll_all(p, lane);
    }
}

static void check_packet(struct pipe *p, unsigned lane, uint64_t k)
{
    struct pipe_lane *l = &p->lane[lane];
    assert_int_equal(l->view[k].bytes, l->bytes[k]);
    assert_int_equal(traffic_check(&l->flow, k, l->view[k].at, l->bytes[k]), 0);
}

void pipe_poll(struct pipe *p, int n)
{
    struct rnl_view v[POLL_MAX];
    if (n > POLL_MAX)
        n = POLL_MAX;
    conform_step(p->c);
    int got = p->rx->ops->poll(p->rx, v, n, conform_now(p->rx));
    assert_in_range(got, 0, n);
    for (int i = 0; i < got; i++) {
        assert_int_equal(v[i].peer, p->from);
        assert_in_range(v[i].lane, 0, PIPE_LANES - 1);
        struct pipe_lane *l = &p->lane[v[i].lane];
        assert_true(l->polled < l->sent);
        l->view[l->polled] = v[i];
        check_packet(p, v[i].lane, l->polled++);
    }
    if (p->tx != p->rx) { /* acknowledgements of some transports travel here */
        got = p->tx->ops->poll(p->tx, v, 1, conform_now(p->tx));
        assert_int_equal(got, 0);
    }
}

void pipe_poll_all(struct pipe *p, unsigned lane)
{
    for (int tries = 0; p->lane[lane].polled < p->lane[lane].sent; tries++) {
        if (tries == TRIES)
            fail_msg("packet %llu of lane %u does not arrive", (unsigned long long)p->lane[lane].polled, lane);
        pipe_poll(p, POLL_MAX);
    }
}

void pipe_check(struct pipe *p, unsigned lane)
{
    for (uint64_t k = p->lane[lane].released; k < p->lane[lane].polled; k++)
        check_packet(p, lane, k);
}

void pipe_release(struct pipe *p, unsigned lane, uint64_t n)
{
    struct pipe_lane *l = &p->lane[lane];
    assert_true(l->released + n <= l->polled);
    for (uint64_t k = l->released; k < l->released + n; k++)
        check_packet(p, lane, k);
    p->rx->ops->release(p->rx, &l->view[l->released], (int)n);
    l->released += n;
}

void pipe_release_all(struct pipe *p)
{
    for (unsigned lane = 0; lane < PIPE_LANES; lane++)
        pipe_release(p, lane, p->lane[lane].polled - p->lane[lane].released);
}

void pipe_await_room(struct pipe *p, unsigned lane, uint32_t bytes)
{
    for (int tries = 0; !pipe_send(p, lane, bytes); tries++) {
        if (tries == TRIES)
            fail_msg("no room comes back on lane %u", lane);
        pipe_poll(p, POLL_MAX);
        pipe_release(p, lane, p->lane[lane].polled - p->lane[lane].released);
    }
}
