/* SPDX-License-Identifier: BSD-3-Clause
 *
 * readmit.c - takes a dead peer back. Nothing of the earlier connection remains but messages that the program keeps.
 * The next connection has lanes, credit, streams, nonces and a remote connection of its own, so nothing that is
 * still on its way can be taken for a part of it. The job decides which process is the peer now (env.h,
 * RNL_EVENT_RETURN); a process that the job has reported as gone is never connected to again. */
#include "endpoint/endpoint.h"
#include "endpoint/net.h"

#include <stdlib.h>

const char *rnl_ep_unfinished(const struct rnl_endpoint *ep, uint32_t rank)
{
    const struct rnl_peer *p = &ep->peer[rank];
    const struct rnl_conn *conn = p->conn;
    if (p->report_due)
        return "its death has not been reported yet; extract first";
    if (!conn)
        return NULL;
    if (conn->dying)
        return "what it had sent is still being taken in; extract first";
    if (ep->conn_ops->sends(conn))
        return "a message to it is still open; end it first";
    if (ep->conn_ops->receives(conn))
        return "a handler of one of its messages still runs; return from it first";
    return conn->waits ? "a call still waits for room to it; let it return first" : NULL;
}

/* Checks that there is, or may be, a process to connect to. */
static int check(struct rnl_endpoint *ep, uint32_t rank)
{
    const struct rnl_peer *p = &ep->peer[rank];
    const char *why = rnl_ep_unfinished(ep, rank);
    if (why)
        return rnl_fail(RNL_BUSY, "rank %u cannot be taken back yet: %s", rank, why);
    if (p->process == RNL_PROCESS_GONE)
        return rnl_fail(RNL_ERR_PEER_DEAD,
                        "rank %u cannot be taken back: its process is gone, and the job has not "
                        "started another; rnl_peer tells when it has",
                        rank);
    if (p->process == RNL_PROCESS_SAME && !rnl_ep_is_remote(ep, rank))
        return rnl_fail(RNL_ERR_UNSUPPORTED,
                        "rank %u cannot be taken back: it is on this host and its process is the same, and two "
                        "processes share memory once; start it again",
                        rank);
    return 0;
}

static void retire(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    struct rnl_rx *r = &conn->channel.rx[0];
    uint64_t withheld = r->withheld;
    ep->credit.granted -= r->outstanding_max * 64;
    if (ep->fast.unfenced == conn)
        ep->fast.unfenced = NULL;
    if (conn->remote)
        rnl_remote_forget(conn->remote);
    rnl_channel_close(&conn->channel); /* zeroes it */
    if (!withheld) {
        rnl_conn_free(conn);
        return;
    }
    r->withheld = withheld;
    conn->next_retired = ep->retired;
    ep->retired = conn;
}

void rnl_ep_forget(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_peer *p = &ep->peer[rank];
    if (p->conn)
        retire(ep, p->conn);
    p->conn = NULL;
    ep->fast.conn[rank] = &rnl_not_connected;
    ep->work.joining -= p->disconnect_due;
    (void)rnl_peer_move(ep, rank, RNL_PEER_IS_NEW);
    *p = (struct rnl_peer){.incarnation = p->incarnation, .last_dead = p->last_dead, .rejoined = 1};
}

static int readmit(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_peer *p = &ep->peer[rank];
    rnl_ep_take_events(ep);
    if (!rnl_peer_is_dead(p))
        return 0;
    int status = check(ep, rank);
    if (status < 0)
        return status;
    enum rnl_process process = (enum rnl_process)p->process;
    rnl_ep_forget(ep, rank);
    ep->c->readmitted++;
    /* The same process may wait for a connection that we gave up. It begins anew only when we send to it. */
    struct rnl_conn *conn;
    if (process == RNL_PROCESS_NEXT_CONNECTS)
        rnl_ep_join(ep, rank);
    else if (process == RNL_PROCESS_SAME && rnl_ep_accept(ep, rank, &conn) == 0) /* else the next message connects */
        rnl_ep_net_result(ep, rnl_remote_advertise(conn->remote, true));
    return 0;
}

int rnl_readmit(rnl_endpoint *ep, unsigned peer)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    if (peer >= ep->size)
        status = rnl_fail(RNL_ERR_RANK, "there is no rank %u: the job has ranks 0 to %u", peer, ep->size - 1);
    else if (ep->close.closing)
        status = rnl_fail(RNL_ERR_CLOSED, "rank %u cannot be taken back: this endpoint is being closed", peer);
    else
        status = readmit(ep, peer);
    rnl_ep_leave(ep);
    return status;
}

void rnl_ep_release_retired(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    struct rnl_conn **at = &ep->retired;
    while (*at && *at != conn)
        at = &(*at)->next_retired;
    if (!*at || conn->channel.rx[0].withheld)
        return;
    *at = conn->next_retired;
    rnl_conn_free(conn);
}
