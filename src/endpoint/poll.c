/* SPDX-License-Identifier: BSD-3-Clause
 *
 * poll.c - which connections are polled. A connection on which nothing has come for a while is demoted: it is armed,
 * and found again through the bell. So the cost of an extract depends on how many peers send, not on how many are
 * connected.
 *
 * Demotion is the handshake of going to sleep (wait.c) for some rings only: arm, issue a heavy fence, look. A sender
 * that published before the fence is seen by the look. One that publishes after it sees `armed` and rings, for each
 * cell: a sender that rings late may ring for a cell that was taken in before the fence. bell_seen is read before each
 * look at all armed rings, never after it. tests/model/sleep_wake.pml checks this with COLD defined.
 *
 * Connections to other hosts need none of this: net.c itself receives what comes for them, and makes them polled. Where
 * there are many, those that an extract has emptied are idle: nobody looks at them at all.
 *
 *     fast.conns[]   0 ... fast.polled   ... poll.armed_end        ... poll.connected
 *                    polled              armed                     idle: of other hosts
 *
 * The bell is a hint, since every process of the job can write it. A round finds cells that a wrong bell has hidden,
 * and a bell that rings for nothing is ignored until the next round. */
#include "endpoint/poll.h"
#include "endpoint/endpoint.h"
#include "endpoint/net.h"

enum {
    BACKOFF_MIN = 3, /* rounds without a message before a connection is demoted */
    BACKOFF_MAX = 1024,
    SOON = 8, /* the number doubles if it is polled again within SOON times as many rounds */
    DEMOTE_WAIT_MAX =
        64,         /* rounds between two heavy fences, which disturb every process of the job; doubled each time */
    MISSES_MAX = 16 /* looks in one round for a bell that was rung for nothing */
};

static bool is_armed(const struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    return conn->poll_index >= ep->fast.polled;
}

static void place(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t i)
{
    ep->fast.conns[i] = conn;
    conn->poll_index = i;
}

/* Moves conns[from] to the free place `to`, which is not before it. */
static void move(struct rnl_endpoint *ep, uint32_t from, uint32_t to)
{
    if (from != to)
        place(ep, ep->fast.conns[from], to);
}

static void swap(struct rnl_endpoint *ep, uint32_t i, uint32_t k)
{
    struct rnl_conn *other = ep->fast.conns[i];
    place(ep, ep->fast.conns[k], i);
    place(ep, other, k);
}

/* ---- which connections are polled ---- */

/* Begins to compare with the bell. This comes before a look at the armed rings, so that a later ring is seen by the
 * next extract. */
static void listen(struct rnl_endpoint *ep)
{
    const struct rnl_bell *bell = ep->env->bell;
    ep->fast.bell_seen = atomic_load_explicit(&bell->word, memory_order_acquire); /* pairs with rnl_ep_ring_bell */
    ep->fast.bell = &bell->word;
}

void rnl_ep_set_sole(struct rnl_endpoint *ep)
{
    const struct rnl_conn lane1 = {.lane1_polled = 1};
    ep->fast.sole_with_replies =
        ep->fast.polled == 1 && !(ep->fast.conns[0]->exceptional & ~lane1.exceptional) ? ep->fast.conns[0] : NULL;
    ep->fast.sole =
        ep->fast.sole_with_replies && !ep->fast.sole_with_replies->exceptional ? ep->fast.sole_with_replies : NULL;
}

static void mask_bell(struct rnl_endpoint *ep)
{
    atomic_store_explicit(&ep->poll.masked, ep->fast.bell_seen, memory_order_relaxed);
    ep->fast.bell = &ep->poll.masked;
}

void rnl_ep_add_polled(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    uint32_t i = ep->fast.polled++, end = ep->poll.armed_end++;
    conn->backoff = BACKOFF_MIN;
    move(ep, end, ep->poll.connected++);
    move(ep, i, end);
    place(ep, conn, i);
    rnl_ep_set_sole(ep);
    rnl_ep_arm(ep, conn);
    rnl_ep_look_again(ep); /* what the peer sent before that was not announced */
}

void rnl_ep_remove_polled(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    ep->poll.moved += rnl_ep_positions(conn);
    uint32_t hole = --ep->fast.polled, end = --ep->poll.armed_end;
    place(ep, ep->fast.conns[hole], conn->poll_index);
    move(ep, end, hole);
    move(ep, --ep->poll.connected, end);
    if (ep->fast.next_polled >= ep->fast.polled)
        ep->fast.next_polled = 0;
    rnl_ep_set_sole(ep);
}

void rnl_ep_promote(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    if (!is_armed(ep, conn))
        return;
    if (conn->poll_index >= ep->poll.armed_end) { /* it was idle */
        swap(ep, conn->poll_index, ep->poll.armed_end++);
        swap(ep, conn->poll_index, ep->fast.polled++);
        rnl_ep_set_sole(ep);
        return;
    }
    swap(ep, conn->poll_index, ep->fast.polled++);
    rnl_ep_set_sole(ep);
    ep->c->warmed++;
    conn->misses = 0;
    if (ep->poll.rounds - conn->armed_round > (uint32_t)conn->backoff * SOON)
        conn->backoff = BACKOFF_MIN;
    else if (conn->backoff < BACKOFF_MAX)
        conn->backoff *= 2;
    rnl_ep_arm(ep, conn);
    if (ep->fast.polled == ep->poll.armed_end)
        mask_bell(ep);
}

bool rnl_ep_has_cells(struct rnl_conn *conn)
{
    if (!conn->blocked[0] && rnl_rx_peek(&conn->channel.rx[0]))
        return true;
    if (conn->parked && !conn->blocked[RNL_LANE_BULK])
        return true;
    return conn->lane1_polled && !conn->blocked[1] && rnl_rx_peek(&conn->channel.rx[1]) != 0;
}

void rnl_ep_look_at_heads(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->poll.connected; i++)
        for (unsigned lane = 0; lane < RNL_HEADS; lane++)
            if (ep->fast.conns[i]->blocked[lane] == RNL_BLOCKED_HANDLER)
                ep->fast.conns[i]->blocked[lane] = RNL_BLOCKED_NOT;
    rnl_ep_set_sole(ep);
}

uint32_t rnl_ep_look_armed(struct rnl_endpoint *ep)
{
    uint32_t before = ep->fast.polled;
    if (before == ep->poll.armed_end)
        return 0;
    listen(ep);
    for (uint32_t i = before; i < ep->poll.armed_end; i++)
        if (rnl_ep_has_cells(ep->fast.conns[i]))
            rnl_ep_promote(ep, ep->fast.conns[i]); /* what takes its place has been looked at */
    return ep->fast.polled - before;
}

void rnl_ep_check_bell_slow(struct rnl_endpoint *ep)
{
    uint32_t found = rnl_ep_look_armed(ep);
    if (ep->wait.fd_armed || ep->wait.asleep)
        return; /* it may have been for a polled ring, which is announced now, too */
    ep->poll.misses = found ? 0 : ep->poll.misses + 1;
    if (ep->poll.misses >= MISSES_MAX)
        mask_bell(ep);
}

/* ---- rounds ---- */

/* Returns true if nothing of conn is under way that an extract has to look after. */
static bool needs_no_look(const struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    const struct rnl_conn lane1 = {.lane1_polled = 1};
    return !(conn->exceptional & ~lane1.exceptional) && !conn->dying && !ep->conn_ops->receives(conn);
}

/* Returns true if conn has been without messages for long enough, and may be armed. */
static bool may_demote(const struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    return conn->misses >= conn->backoff && !conn->remote && !conn->post_first && !conn->bulk_posts &&
           !conn->wants_room && needs_no_look(ep, conn);
}

void rnl_ep_find_idle(struct rnl_endpoint *ep)
{
    for (uint32_t i = ep->fast.polled; i-- > 0;) {
        struct rnl_conn *conn = ep->fast.conns[i];
        if (!conn->remote || !needs_no_look(ep, conn) || rnl_rx_peek(&conn->channel.rx[0]) ||
            rnl_rx_peek(&conn->channel.rx[1]))
            continue;
        swap(ep, i, --ep->fast.polled); /* what takes its place has been looked at */
        swap(ep, ep->fast.polled, --ep->poll.armed_end);
    }
    if (ep->fast.next_polled >= ep->fast.polled)
        ep->fast.next_polled = 0;
    rnl_ep_set_sole(ep);
}

static void count_misses(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->fast.polled; i++) {
        struct rnl_conn *conn = ep->fast.conns[i];
        uint64_t at = conn->channel.rx[0].pos + conn->channel.rx[1].pos;
        conn->misses = at != conn->misses_at ? 0 : conn->misses < UINT16_MAX ? conn->misses + 1 : UINT16_MAX;
        conn->misses_at = at;
    }
}

/* Puts the connections with the fewest misses first. */
static void prefer(struct rnl_endpoint *ep)
{
    for (uint32_t k = 0; k < RNL_POLLED_ALWAYS && k < ep->fast.polled; k++) {
        uint32_t least = k;
        for (uint32_t i = k + 1; i < ep->fast.polled; i++)
            if (ep->fast.conns[i]->misses < ep->fast.conns[least]->misses)
                least = i;
        swap(ep, k, least);
    }
}

static uint32_t demote(struct rnl_endpoint *ep)
{
    uint32_t first = ep->fast.polled, all = first;
    prefer(ep);
    for (uint32_t i = all; i-- > RNL_POLLED_ALWAYS;)
        if (may_demote(ep, ep->fast.conns[i]))
            swap(ep, i, --first); /* what was in that place has been checked */
    if (first == all) {
        ep->poll.demote_wait -= ep->poll.demote_wait > 1;
        return 0;
    }
    ep->poll.demote_next = ep->poll.rounds + ep->poll.demote_wait;
    ep->poll.demote_wait = ep->poll.demote_wait < DEMOTE_WAIT_MAX / 2 ? 2 * ep->poll.demote_wait + 1 : DEMOTE_WAIT_MAX;
    ep->fast.polled = first;
    if (ep->fast.next_polled >= first)
        ep->fast.next_polled = 0;
    rnl_ep_set_sole(ep);
    for (uint32_t i = first; i < all; i++) {
        ep->fast.conns[i]->armed_round = ep->poll.rounds;
        rnl_ep_arm(ep, ep->fast.conns[i]);
    }
    ep->c->cooled += all - first;
    return all - first;
}

uint32_t rnl_ep_demote(struct rnl_endpoint *ep, uint64_t now_ns)
{
    if (ep->poll.armed_end <= RNL_POLLED_ALWAYS && ep->fast.polled == ep->poll.armed_end)
        return 0;
    if (now_ns - ep->poll.round_ns < RNL_ROUND_NS)
        return 0;
    ep->poll.round_ns = now_ns;
    ep->poll.rounds++;
    ep->poll.misses = 0;
    (void)rnl_ep_look_armed(ep);
    count_misses(ep);
    return (int32_t)(ep->poll.rounds - ep->poll.demote_next) >= 0 ? demote(ep) : 0;
}

void rnl_ep_round_due(struct rnl_endpoint *ep)
{
    if (ep->remote)
        rnl_ep_net_soon(ep);
    ep->poll.advertised = 0;
    bool events = atomic_load_explicit(ep->fast.event_seq, memory_order_relaxed) != ep->fast.event_seq_seen;
    bool look = ep->env->facts.must_look && ep->env->ops->now_ns(ep->env) - ep->poll.looked_ns >= RNL_LOOK_NS;
    if (events || look ||
        ((ep->poll.armed_end > RNL_POLLED_ALWAYS || ep->fast.polled < ep->poll.armed_end) &&
         ep->env->ops->now_ns(ep->env) - ep->poll.round_ns >= RNL_ROUND_NS)) {
        ep->poll.round_due = 1;
        rnl_ep_set_pending(ep);
    }
}
