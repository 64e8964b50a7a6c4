/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reap.c - what is put off in the life of peers, and done between extracts: joins and reports that could not be made at
 * once, ranks to be given back, and the end of peers of which everything is taken in. */
#include "endpoint/endpoint.h"
#include "endpoint/net.h"
#include "endpoint/poll.h"

void rnl_ep_join_pending(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; ep->work.joining && i < ep->size; i++) {
        if (rnl_peer_wants_join(&ep->peer[i]))
            rnl_ep_join(ep, i);
        if (ep->peer[i].disconnect_due)
            rnl_ep_report_broken(ep, i);
        if (ep->peer[i].left)
            rnl_ep_give_back(ep, i);
    }
}

/* The segment stays mapped until the endpoint is freed, since a handler may be looking into it. */
static void gone(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    (void)rnl_peer_move(ep, conn->rank, RNL_PEER_IS_DEAD);
    conn->gone = 1;
    if (ep->c->missing_handler_rank == (uint64_t)conn->rank + 1)
        ep->c->missing_handler = ep->c->missing_handler_rank = 0;
    rnl_ep_remove_polled(ep, conn);
    if (conn->remote) {
        rnl_ep_net_result(ep, rnl_remote_disconnect(conn->remote, false));
        rnl_remote_retire(conn->remote);
    }
    ep->conn_ops->gone(ep, conn);
}

/* Returns true if an extract would find nothing more of conn. */
static bool nothing_left(struct rnl_conn *conn)
{
    int lane0 = !conn->blocked[0] && rnl_rx_peek(&conn->channel.rx[0]) != 0;
    int lane1 = conn->lane1_polled && !conn->blocked[1] && rnl_rx_peek(&conn->channel.rx[1]) != 0;
    return !lane0 && !lane1 && !(conn->parked && !conn->blocked[RNL_LANE_BULK]);
}

void rnl_ep_reap_dying(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->fast.polled;) {
        struct rnl_conn *conn = ep->fast.conns[i];
        int drained = !conn->remote || rnl_remote_drained(ep->remote);
        if (!conn->dying || !(conn->broken || (drained && nothing_left(conn)))) {
            i++;
            continue;
        }
        gone(ep, conn); /* takes it out of fast.conns */
        if (ep->peer[conn->rank].left)
            rnl_ep_give_back(ep, conn->rank);
        else
            rnl_ep_report_death(ep, conn->rank);
    }
}
