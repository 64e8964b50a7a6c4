/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fail.c - incoming messages that will never be complete, since their sender has aborted them or is gone, and what else
 * waits for a peer that is gone.
 */
#include "stream/stream_internal.h"

#include <stdlib.h>

void rnl_stream_free_reassembly(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    if (!s->reassembly)
        return;
    free(s->reassembly);
    s->reassembly = NULL;
    ep->credit.reassembly_bytes -= s->reassembly_room;
}

void rnl_stream_fail(struct rnl_endpoint *ep, struct rnl_stream *s, int why)
{
    if (s->state == RNL_STREAM_SUSPENDED) {
        s->lost = (int8_t)why;
        if (s->drop) {
            rnl_coro_drop(s->coro);
            s->coro = NULL;
            rnl_stream_abort_of(ep, s); /* nobody else would ever end them */
        } else {
            rnl_stream_resume(ep, s); /* resumes it: its receive returns the reason */
            if (rnl_ep_forked(ep))
                return;
        }
    } else if (s->state == RNL_STREAM_REASSEMBLY) {
        if (s->h.stream)
            ep->work.reassembling--;
        rnl_ep_set_pending(ep);
        rnl_stream_free_reassembly(ep, s);
    }
    s->at = s->end = s->base = NULL;
    s->state = RNL_STREAM_FREE;
    rnl_stream_count_stacks(ep);
}

void rnl_stream_fail_bulk(struct rnl_endpoint *ep, struct rnl_conn *conn, int why)
{
    if (!conn->bulk)
        return;
    conn->parked = 0;
    conn->blocked[RNL_LANE_BULK] = RNL_BLOCKED_NOT;
    rnl_ep_set_sole(ep);
    rnl_stream_fail(ep, &conn->bulk->in, why);
}

void rnl_stream_gone(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    for (unsigned lane = 0; lane < 2; lane++)
        rnl_stream_fail(ep, rnl_stream_in(conn, lane), RNL_ERR_PEER_DEAD);
    if (!rnl_ep_forked(ep))
        rnl_stream_fail_bulk(ep, conn, RNL_ERR_PEER_DEAD);
    if (rnl_ep_forked(ep))
        return;
    if (rnl_stream_out(conn)->state == RNL_STREAM_ABORTING)
        rnl_stream_aborted(ep, rnl_stream_out(conn));
    rnl_stream_forget_deferred(ep, conn);
    rnl_stream_fail_posts(ep, conn, RNL_ERR_PEER_DEAD); /* the owner has to end an open outgoing stream */
}
