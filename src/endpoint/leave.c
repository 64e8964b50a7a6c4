/* SPDX-License-Identifier: BSD-3-Clause
 *
 * leave.c - leaves one peer of an endpoint whose peers come and go. The connection ends at once; its rank is given back
 * when no handler, no kept death and no call is left that names it. Until then it is no rank of any peer. What is left
 * of the connection afterwards are kept messages, as after rnl_readmit. */
#include "endpoint/endpoint.h"
#include "endpoint/net.h"
#include "endpoint/poll.h"

void rnl_ep_give_back(struct rnl_endpoint *ep, uint32_t rank)
{
    if (rnl_ep_unfinished(ep, rank))
        return; /* rnl_ep_join_pending tries again */
    ep->work.joining--;
    rnl_ep_forget(ep, rank);
    ep->env->meet->release(ep->env, rank);
}

/* Takes back the calls to the program that are due on behalf of the peer. */
static void withdraw(struct rnl_endpoint *ep, struct rnl_peer *p)
{
    ep->work.reports -= p->report_due;
    ep->work.requests -= p->request_due;
    ep->work.calls -= (uint32_t)p->report_due + p->request_due;
    p->report_due = p->request_due = 0;
}

/* Nothing more is taken in of the connection; rnl_ep_reap_dying ends it. */
static void end(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    if (rnl_peer_move(ep, conn->rank, RNL_PEER_IS_DYING)) {
        rnl_conn_shut(conn, RNL_SHUT_DEAD);
        rnl_ep_promote(ep, conn);
        if (conn->remote)
            rnl_ep_net_result(ep, rnl_remote_disconnect(conn->remote, false));
    }
    conn->broken = 1;
    rnl_ep_set_sole(ep);
}

int rnl_ep_quit(struct rnl_endpoint *ep, uint32_t rank)
{
    uint64_t incarnation = 0;
    if (rank >= ep->size || rank == ep->rank || ep->peer[rank].left)
        return rnl_fail(RNL_ERR_RANK, "there is no peer %u to leave", rank);
    struct rnl_peer *p = &ep->peer[rank];
    if (p->conn && !p->conn->post_sending && ep->conn_ops->sends(p->conn))
        return rnl_fail(RNL_BUSY, "a message to peer %u is open: end or abort it, then leave", rank);
    int status = p->conn && p->conn->remote ? rnl_ep_net_activate(ep, p->conn) : 0; /* it is polled until it is gone */
    if (status == 0)
        status = ep->env->meet->leave(ep->env, rank, &incarnation);
    if (status < 0)
        return status;
    if (incarnation > p->last_dead)
        p->last_dead = incarnation;
    p->left = 1;
    if (ep->windows)
        ep->window_ops->gone(ep, rank);
    ep->work.joining++;
    withdraw(ep, p);
    if (p->state == RNL_PEER_IS_ENDING)
        (void)rnl_peer_move(ep, rank, RNL_PEER_IS_DEAD);
    else if (p->conn && p->state != RNL_PEER_IS_DEAD)
        end(ep, p->conn);
    rnl_ep_give_back(ep, rank);
    rnl_ep_set_pending(ep);
    return 0;
}
