/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peers.c - makes connections to peers, and declares peers dead or broken. */
#include "base/sometimes.h"
#include "endpoint/endpoint.h"
#include "endpoint/net.h"
#include "endpoint/poll.h"

#include <stdio.h>

#define UNJOINED_REPORT_NS ((uint64_t)1000 * 1000 * 1000)
#define CONNECT_SOON_NS    ((uint64_t)100 * 1000 * 1000) /* the launcher may have to wait for a processor */

/* ---- connections ---- */

static int open_channel(struct rnl_endpoint *ep, struct rnl_conn *conn, uint64_t wait_ns)
{
    int status =
        rnl_ep_is_remote(ep, conn->rank) ? RNL_NO_ROOM : rnl_channel_open(&conn->channel, ep->env, conn->rank, wait_ns);
    if (status != RNL_NO_ROOM)
        return status;
    const int leads = rnl_ep_net_leads(ep, conn->rank); /* a peer that is met may prove to be far */
    if (leads <= 0)
        return leads < 0 ? leads : status;
    status = rnl_channel_open_remote(&conn->channel, ep->env, conn->rank);
    if (status == 0)
        status = rnl_remote_connect(ep->remote, conn->rank, &conn->channel,
                                    ep->env->meet ? 0 : ep->peer[conn->rank].last_dead, &conn->remote);
    if (status < 0)
        rnl_channel_close(&conn->channel);
    return status;
}

static int connect_within(struct rnl_endpoint *ep, uint32_t rank, uint64_t wait_ns, struct rnl_conn **out)
{
    if (rank >= ep->size)
        return rnl_fail(RNL_ERR_RANK, "there is no rank %u: the job has ranks 0 to %u", rank, ep->size - 1);
    struct rnl_peer *p = &ep->peer[rank];
    if (p->left)
        return rnl_fail(RNL_ERR_RANK, "there is no peer %u: this process has left it", rank);
    if (rnl_peer_is_dead(p))
        return rnl_ep_gone(ep, rank);
    if (p->conn) {
        *out = p->conn;
        return p->conn->remote ? rnl_ep_net_activate(ep, p->conn) : 0;
    }
    if (ep->fast.open == RNL_EP_YIELDED && !pthread_equal(ep->wait.owner, pthread_self()))
        return rnl_ep_enter_slow(ep); /* another thread connects, and began after this call had been entered */
    struct rnl_conn *conn = rnl_conn_new();
    if (!conn)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the connection to rank %u (%zu bytes)", rank, sizeof *conn);
    conn->rank = rank;
    rnl_ep_away(ep); /* another thread would take the launcher's answer for one to its own request */
    int status = open_channel(ep, conn, wait_ns);
    rnl_ep_back(ep);
    if (status < 0) {
        rnl_conn_free(conn);
        return status;
    }
    conn->self = rank == ep->rank;
    conn->post_last = &conn->post_first;
    ep->conn_ops->opened(ep, conn);
    uint64_t outstanding_max = rnl_ep_first_grant(ep);
    if (ep->credit.granted + outstanding_max * 64 > ep->credit.budget)
        outstanding_max = RNL_GRANT_MIN;
    ep->credit.granted += outstanding_max * 64;
    atomic_store_explicit(&conn->channel.mine->credit_max, rnl_ep_max_grant(ep), memory_order_relaxed);
    rnl_rx_grant(&conn->channel.rx[0], outstanding_max);
    uint32_t reply_cells =
        conn->channel.is_remote ? RNL_CELLS_LANE1_REMOTE : RNL_CELLS_LANE1; /* ring of the replies to our requests */
    rnl_rx_grant(&conn->channel.rx[1], reply_cells + RNL_BULK_BYTES / 64 + RNL_GRANT_MIN);
    p->conn = conn;
    ep->credit.unjoined_ns = 0;
    ep->fast.conn[rank] = conn;
    bool ended = p->state == RNL_PEER_IS_ENDING;
    (void)rnl_peer_move(ep, rank, RNL_PEER_IS_UP);
    rnl_ep_add_polled(ep, conn);
    ep->c->connects++;
    rnl_ep_advertise(ep, conn); /* the peer may wait for the grant already */
    if (ended)
        rnl_ep_died(ep, rank, p->reason, p->detail);
    *out = conn;
    return 0;
}

int rnl_ep_connect(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out)
{
    return connect_within(ep, rank, ep->send_timeout_ns, out);
}

int rnl_ep_connect_soon(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out)
{
    if (rank >= ep->size)
        return rnl_ep_connect(ep, rank, out); /* it records the error */
    struct rnl_peer *p = &ep->peer[rank];
    int status = connect_within(ep, rank, p->asked_agent ? 0 : CONNECT_SOON_NS, out);
    p->asked_agent = status == RNL_NO_ROOM;
    return status == RNL_NO_ROOM
               ? rnl_fail(RNL_NO_ROOM, "the launcher has not connected rank %u yet; try again later", rank)
               : status;
}

int rnl_ep_accept(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out)
{
    return connect_within(ep, rank, 0, out);
}

/* The peer's connection could not be joined for want of memory or of a descriptor, as rnl_last_error() says. What lacks
 * for a moment is nothing to tell; the program is told when it has lacked for a second, and gives the peer up, which
 * then learns of it, when it has for as long as a peer may be silent. */
static void lacks_for(struct rnl_endpoint *ep, uint32_t rank, int status)
{
    struct rnl_peer *p = &ep->peer[rank];
    struct rnl_ep_credit *c = &ep->credit;
    uint64_t now = ep->env->ops->now_ns(ep->env);
    ep->c->connects_failed++;
    if (c->unjoined_ns == 0)
        c->unjoined_ns = now;
    if (!c->starved) {
        snprintf(c->starved_text, sizeof c->starved_text, "what rank %u sends cannot be taken in: %.200s", rank,
                 rnl_last_error()->text);
        c->starved_status = (int16_t)status;
    }
    if (now - c->unjoined_ns >= UNJOINED_REPORT_NS && !p->unjoined_reported) {
        p->unjoined_reported = 1;
        c->starved = 1;
        rnl_ep_set_pending(ep);
    }
    if (now - c->unjoined_ns < ep->silence_ns || !rnl_peer_move(ep, rank, RNL_PEER_IS_ENDING))
        return;
    p->reason = RNL_DEATH_NO_MEMORY;
    p->detail = 0;
    rnl_ep_report_broken(ep, rank);
    if (ep->work.joining == 1)
        c->unjoined_ns = 0;
}

/* The peer's first message waits for this, so it is tried until it succeeds or never can. */
static void join(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_conn *conn;
    struct rnl_peer *p = &ep->peer[rank];
    int status = connect_within(ep, rank, 0, &conn);
    if (status == RNL_NO_ROOM)
        return;
    bool again = status == RNL_ERR_SYSTEM || status == RNL_ERR_NO_MEMORY;
    if (again && p->state == RNL_PEER_IS_JOINING)
        lacks_for(ep, rank, status);
    if (p->state == RNL_PEER_IS_ENDING) /* it cannot succeed, and nobody will try again */
        rnl_ep_died(ep, rank, p->reason, p->detail);
    else if (status < 0 && !again)
        (void)rnl_peer_move(ep, rank, RNL_PEER_IS_NEW);
}

void rnl_ep_join(struct rnl_endpoint *ep, uint32_t rank)
{
    if (rnl_peer_move(ep, rank, RNL_PEER_IS_JOINING) || rnl_peer_wants_join(&ep->peer[rank]))
        join(ep, rank);
}

void rnl_ep_report_broken(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_peer *p = &ep->peer[rank];
    ep->work.joining -= p->disconnect_due;
    p->disconnect_due = ep->env->ops->disconnect(ep->env, rank, RNL_DEATH_BROKEN) == RNL_NO_ROOM;
    ep->work.joining += p->disconnect_due;
}

/* ---- deaths ---- */

void rnl_ep_report_death(struct rnl_endpoint *ep, uint32_t rank)
{
    if (rnl_ep_forked(ep))
        return;
    ep->deaths_seen++;
    if (ep->windows)
        ep->window_ops->gone(ep, rank);
    ep->peer[rank].report_due = 1; /* stream/ calls the program, when nothing here is under way */
    ep->work.reports++;
    ep->work.calls++;
    rnl_ep_set_pending(ep);
    if (ep->wait.fd_armed)
        rnl_ep_busy(ep);
}

void rnl_ep_died(struct rnl_endpoint *ep, uint32_t rank, int why, int detail)
{
    struct rnl_peer *p = &ep->peer[rank];
    struct rnl_conn *conn = p->conn;
    if (rnl_peer_is_dead(p))
        return;
    /* A hibernated connection that cannot be activated has nothing under way, and nobody waits for it. */
    bool rings = conn && !(conn->remote && rnl_ep_net_activate(ep, conn) < 0);
    if (!rnl_peer_move(ep, rank, rings ? RNL_PEER_IS_DYING : RNL_PEER_IS_DEAD))
        return; /* it never had a connection, and is not to be joined */
    p->reason = (uint8_t)why;
    p->detail = detail;
    ep->c->deaths++;
    if (conn)
        rnl_conn_shut(conn, RNL_SHUT_DEAD);
    if (rings) {
        rnl_ep_promote(ep, conn); /* what is left in its ring is not announced twice */
        return;
    }
    if (conn) {
        conn->gone = 1;
        rnl_ep_net_result(ep, rnl_remote_disconnect(conn->remote, false));
    }
    rnl_ep_report_death(ep, rank);
}

/* Returns false if the peer is dead or dying already. */
static bool give_up(struct rnl_endpoint *ep, struct rnl_conn *conn, enum rnl_death_reason why)
{
    uint32_t rank = conn->rank;
    bool moved = rnl_peer_move(ep, rank, RNL_PEER_IS_DYING);
    if (moved) {
        ep->peer[rank].reason = (uint8_t)why;
        ep->peer[rank].detail = 0;
        ep->c->deaths++;
        rnl_conn_shut(conn, RNL_SHUT_DEAD);
        rnl_ep_promote(ep, conn);
        if (conn->remote)
            rnl_ep_net_result(ep, rnl_remote_disconnect(conn->remote, true));
        else if (!conn->self)
            rnl_ep_report_broken(ep, rank);
    }
    conn->broken = 1;
    rnl_ep_set_sole(ep);
    return moved;
}

int rnl_ep_broken(struct rnl_endpoint *ep, struct rnl_conn *conn, const char *what)
{
    ep->c->broken += give_up(ep, conn, RNL_DEATH_BROKEN);
    return rnl_fail(RNL_ERR_PEER_BROKEN, "rank %u broke the protocol: %s; it is treated as dead%s", conn->rank, what,
                    rnl_ep_threads_text(ep));
}

void rnl_ep_starved(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    (void)give_up(ep, conn, RNL_DEATH_NO_MEMORY);
}
