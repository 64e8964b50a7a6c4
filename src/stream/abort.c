/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abort.c - outgoing messages that will never be complete. fail.c has the incoming ones. Every early end of a
 * message is handled in these two files, so that one promise is kept: nobody takes a part of a message for the
 * whole, and nothing stays open behind it. */
#include "base/bug.h"
#include "stream/stream_internal.h"

/* Announces the abort. Returns 0 if the receiver will learn of it, or never knew of the message; RNL_NO_ROOM if no cell
 * is free for that now. */
static int publish(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s)
{
    struct rnl_tx *t = &conn->channel.tx[0];
    if (s->first) { /* nothing of it was published: return what it reserved, with a gap at the area's end */
        if (s->state != RNL_STREAM_SHORT && s->base)
            rnl_tx_bulk_take(t, s->bulk_was);
        return 0;
    }
    if (!s->base) { /* between two chunks: an empty extent carries the end */
        int status = rnl_stream_open_extent(ep, conn, s, 0);
        if (status < 0)
            return status;
    } else if (RNL_CELL_START(t->pos) >= t->stop) {
        int room = rnl_tx_refresh(t, ep->env, &conn->channel.distance);
        if (room <= 0)
            return room < 0 ? rnl_ep_broken(ep, conn, "a reading position past what was written") : RNL_NO_ROOM;
    }
    s->at = s->base + s->published; /* what was composed after that is discarded */
    rnl_stream_publish_extent(
        ep, conn, s, RNL_EXTENT_LAST | RNL_EXTENT_CLOSED | (RNL_BUG(stream_abort_looks_whole) ? 0 : RNL_EXTENT_ABORT));
    return 0;
}

void rnl_stream_abort(struct rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    struct rnl_conn *conn = s->conn;
    rnl_stream_promote_one(s);
    if (!rnl_stream_composing(s))
        return;
    ep->c->aborted_sent++;
    if (!(conn->shut & RNL_SHUT_DEAD) && publish(ep, conn, s) == RNL_NO_ROOM) {
        s->at = s->end = s->base ? s->base + s->published : NULL; /* leaves nothing for a flush to publish */
        s->state = RNL_STREAM_ABORTING;
        rnl_stream_want_room(ep, conn, 1);
        ep->work.aborting++;
        rnl_ep_set_pending(ep);
        return;
    }
    rnl_stream_closed(s);
}

void rnl_stream_aborted(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    ep->work.aborting--;
    rnl_ep_set_pending(ep);
    rnl_stream_closed(s);
}

unsigned rnl_stream_announce_aborts(struct rnl_endpoint *ep)
{
    unsigned n = 0;
    for (uint32_t i = 0; ep->work.aborting && i < ep->poll.connected; i++) {
        struct rnl_conn *conn = ep->fast.conns[i];
        struct rnl_stream *s = rnl_stream_out(conn);
        if (s->state != RNL_STREAM_ABORTING || (!(conn->shut & RNL_SHUT_DEAD) && publish(ep, conn, s) == RNL_NO_ROOM))
            continue;
        rnl_stream_aborted(ep, s);
        n++;
    }
    return n;
}

/* Calls f for the open messages of one owner to all peers, the dead included. */
static void of_owner(struct rnl_endpoint *ep, const struct rnl_stream *owner, void (*f)(struct rnl_stream *))
{
    rnl_stream_promote(ep);
    for (uint32_t i = 0; i < ep->size; i++) {
        struct rnl_conn *conn = ep->peer[i].conn;
        if (conn && rnl_stream_composing(rnl_stream_out(conn)) && rnl_stream_out(conn)->owner == owner &&
            !conn->post_sending)
            f(rnl_stream_out(conn));
    }
}

static void disown(struct rnl_stream *s)
{
    s->owner = NULL;
}

void rnl_stream_disown(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    of_owner(ep, s, disown);
}

void rnl_stream_abort_of(struct rnl_endpoint *ep, const struct rnl_stream *owner)
{
    of_owner(ep, owner, rnl_stream_abort);
}

static void give_up_forgotten(struct rnl_stream *s)
{
    struct rnl_ep_close *close = &s->ep->close;
    if (!(s->conn->shut & RNL_SHUT_DEAD)) { /* else it was lost with its peer, which is told elsewhere */
        close->left_open++;
        close->left_open_rank = s->conn->rank;
        close->left_open_id = s->handler;
    }
    rnl_stream_abort(s);
}

void rnl_stream_abort_forgotten(struct rnl_endpoint *ep)
{
    of_owner(ep, NULL, give_up_forgotten);
}

int rnl_abort(rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    rnl_stream_promote_one(s);
    if (rnl_stream_composing(s))
        rnl_stream_abort(s);
    else
        status = rnl_fail(RNL_ERR_ARG, "this stream is not open for sending");
    rnl_ep_leave(ep);
    return status;
}
