/* SPDX-License-Identifier: BSD-3-Clause
 *
 * readmit.c - a peer that is dead is taken back. Nothing of the earlier connection is kept but what the program still
 * holds (kept messages): the next one has lanes, credit, streams, nonces and a link of its own, so nothing that is
 * still on its way can be taken for something of it. Which process is the peer now is the job's word (env.h, RETURN);
 * one of which the job said that it is gone is not listened to again. */
#include "endpoint/endpoint.h"
#include "endpoint/remote.h"

#include <stdlib.h>

/* Why its death is not over yet; NULL = it is. */
static const char *unfinished(const struct rnl_endpoint *ep, uint32_t rank)
{
    const struct rnl_peer *p = &ep->peer[rank];
    const struct rnl_conn *conn = p->conn;
    if (p->untold)
        return "its death has not been told yet; extract first";
    if (!conn)
        return NULL;
    if (conn->dying)
        return "what it had sent is still being taken in; extract first";
    if (conn->out[0].state != RNL_STREAM_FREE)
        return "a message to it is still open; end it first";
    for (unsigned lane = 0; lane < 2; lane++)
        if (conn->in[lane].state != RNL_STREAM_FREE)
            return "a handler of a message of it still runs; return from it first";
    return conn->waits ? "a call still waits for room of it; let it return first" : NULL;
}

/* Is there, or may there be, a process to connect to? */
static int check(struct rnl_endpoint *ep, uint32_t rank)
{
    const struct rnl_peer *p = &ep->peer[rank];
    const char *why = unfinished(ep, rank);
    if (why)
        return rnl_fail(RNL_BUSY, "rank %u cannot be taken back yet: %s", rank, why);
    if (p->left)
        return rnl_fail(RNL_ERR_PEER_DEAD,
                        "rank %u cannot be taken back: its process is gone, and the job has not "
                        "started another; rnl_peer tells when it has",
                        rank);
    if (!p->returned && !rnl_remote_away(ep, rank))
        return rnl_fail(RNL_ERR_UNSUPPORTED,
                        "rank %u cannot be taken back: it is on this host and its process is the same, and two "
                        "processes share memory once; start it again",
                        rank);
    return 0;
}

static void bury(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    struct rnl_rx *r = &conn->pair.rx[0];
    uint64_t withheld = r->withheld;
    ep->granted -= r->standing * 64;
    if (ep->unsettled == conn)
        ep->unsettled = NULL;
    if (conn->link)
        rnl_remote_forget(conn);
    rnl_pair_close(&conn->pair); /* zeroes it */
    if (!withheld) {
        rnl_conn_free(conn);
        return;
    }
    r->withheld = withheld;
    conn->next_buried = ep->buried;
    ep->buried = conn;
}

static int readmit(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_peer *p = &ep->peer[rank];
    rnl_ep_news(ep);
    if (p->state != RNL_PEER_DEAD)
        return 0;
    int status = check(ep, rank);
    if (status < 0)
        return status;
    int knocked = p->knocked, same = !p->returned;
    if (p->conn)
        bury(ep, p->conn);
    ep->conn[rank] = &rnl_not_connected;
    ep->wanted -= p->wanted + (p->unparted != 0);
    *p = (struct rnl_peer){.incarnation = p->incarnation, .buried = p->buried, .state = RNL_PEER_NEW, .again = 1};
    ep->c->readmitted++;
    /* The same process may be waiting for a connection that we gave up: it begins anew only if it is asked. */
    struct rnl_conn *conn;
    if (knocked)
        rnl_ep_want(ep, rank);
    else if (same && rnl_ep_accept(ep, rank, &conn) == 0) /* else the next message does it */
        rnl_remote_ring(ep, conn, RNL_ARMED_ROOM);
    return 0;
}

int rnl_readmit(rnl_endpoint *ep, unsigned peer)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    if (peer >= ep->size)
        status = rnl_fail(RNL_ERR_RANK, "there is no rank %u: the job has ranks 0 to %u", peer, ep->size - 1);
    else if (ep->closing)
        status = rnl_fail(RNL_ERR_CLOSED, "rank %u cannot be taken back: this endpoint is being closed", peer);
    else
        status = readmit(ep, peer);
    rnl_ep_leave(ep);
    return status;
}

void rnl_ep_unbury(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    struct rnl_conn **at = &ep->buried;
    while (*at && *at != conn)
        at = &(*at)->next_buried;
    if (!*at || conn->pair.rx[0].withheld)
        return;
    *at = conn->next_buried;
    rnl_conn_free(conn);
}
