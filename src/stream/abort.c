/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abort.c - messages that will not be complete: one that is going out and is given up, and one that is coming in whose
 * sender gave it up or is gone. Whoever ends a message early comes here, so that the promise is kept in one place:
 * nobody gets half a message for a whole one, and nothing stays open behind it. */
#include "stream/stream.h"

#include <stdlib.h>

/* ---- going out ---- */

/* 0 = the receiver will know, or never knew of it; RNL_NO_ROOM: no line for it now. */
static int publish(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s)
{
    struct rnl_tx *t = &conn->pair.tx[0];
    if (s->first) { /* nothing of it was published: what it reserved goes back, a gap at the area's end included */
        if (s->state != RNL_STREAM_SHORT && s->base)
            rnl_tx_bulk_take(t, s->bulk_was);
        return 0;
    }
    if (!s->base) { /* between two chunks: an empty extent carries the end */
        int status = rnl_stream_open_extent(ep, conn, s, 0);
        if (status < 0)
            return status;
    } else if (RNL_LINE_START(t->pos) >= t->stop) {
        int room = rnl_tx_refresh(t, ep->env, &conn->pair.distance);
        if (room <= 0)
            return room < 0 ? rnl_ep_broken(ep, conn, "a reading position past what was written") : RNL_NO_ROOM;
    }
    s->at = s->base + s->published; /* what was composed after that is nobody's */
    rnl_stream_publish_extent(ep, conn, s, RNL_EXTENT_LAST | RNL_EXTENT_CLOSED | RNL_EXTENT_ABORT);
    return 0;
}

void rnl_stream_abort(struct rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    struct rnl_conn *conn = s->conn;
    rnl_stream_lengthen_one(s);
    if (!rnl_stream_composing(s))
        return;
    ep->c->aborted_sent++;
    if (!(conn->shut & RNL_SHUT_DEAD) && publish(ep, conn, s) == RNL_NO_ROOM) {
        s->at = s->end = s->base ? s->base + s->published : NULL; /* nothing for a flush to publish */
        s->state = RNL_STREAM_ABORTING;
        rnl_stream_want_room(ep, conn, 1);
        ep->aborting++;
        rnl_ep_chores(ep);
        return;
    }
    rnl_stream_closed(s);
}

static void aborted(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    ep->aborting--;
    rnl_ep_chores(ep);
    rnl_stream_closed(s);
}

unsigned rnl_stream_aborts(struct rnl_endpoint *ep)
{
    unsigned n = 0;
    for (uint32_t i = 0; ep->aborting && i < ep->live; i++) {
        struct rnl_conn *conn = ep->hot[i];
        struct rnl_stream *s = &conn->out[0];
        if (s->state != RNL_STREAM_ABORTING || (!(conn->shut & RNL_SHUT_DEAD) && publish(ep, conn, s) == RNL_NO_ROOM))
            continue;
        aborted(ep, s);
        n++;
    }
    return n;
}

/* The open messages of one owner, all peers': also those to the dead. */
static void of_owner(struct rnl_endpoint *ep, const struct rnl_stream *owner, void (*f)(struct rnl_stream *))
{
    rnl_stream_lengthen(ep);
    for (uint32_t i = 0; i < ep->size; i++) {
        struct rnl_conn *conn = ep->peer[i].conn;
        if (conn && rnl_stream_composing(&conn->out[0]) && conn->out[0].owner == owner && !conn->post_sending)
            f(&conn->out[0]);
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

void rnl_stream_abort_all(struct rnl_endpoint *ep)
{
    of_owner(ep, NULL, rnl_stream_abort);
}

int rnl_abort(rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    rnl_stream_lengthen_one(s);
    if (rnl_stream_composing(s))
        rnl_stream_abort(s);
    else
        status = rnl_fail(RNL_ERR_ARG, "this stream is not open for sending");
    rnl_ep_leave(ep);
    return status;
}

/* ---- coming in ---- */

int rnl_stream_lost(const struct rnl_stream *s)
{
    if (s->lost == RNL_ERR_ABORTED)
        return rnl_fail(RNL_ERR_ABORTED,
                        "rank %u gave this message up before it was complete: drop what came of it and return",
                        s->conn->rank);
    if (s->lost == RNL_ERR_JOB)
        return rnl_fail(RNL_ERR_JOB, "the rest of this message never comes: the launcher of this job is gone");
    return rnl_ep_gone(s->ep, s->conn->rank);
}

void rnl_stream_ungather(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    if (!s->gather)
        return;
    free(s->gather);
    s->gather = NULL;
    ep->gather_bytes -= s->gather_room;
}

void rnl_stream_fail(struct rnl_endpoint *ep, struct rnl_stream *s, int why)
{
    if (s->state == RNL_STREAM_SUSPENDED) {
        s->lost = (int8_t)why;
        if (s->drop) {
            rnl_coro_drop(s->coro);
            s->coro = NULL;
            of_owner(ep, s, rnl_stream_abort); /* nobody else would ever end them */
        } else {
            rnl_stream_feed(ep, s); /* resumes it: its receive says why */
            if (rnl_ep_forked(ep))
                return;
        }
    } else if (s->state == RNL_STREAM_GATHER) {
        if (s->h.stream)
            ep->gathering--;
        rnl_ep_chores(ep);
        rnl_stream_ungather(ep, s);
    }
    s->at = s->end = s->base = NULL;
    s->state = RNL_STREAM_FREE;
    ep->c->stacks_in_use = rnl_coro_in_use(ep->coros);
}

void rnl_stream_gone(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    for (unsigned lane = 0; lane < 2; lane++)
        rnl_stream_fail(ep, &conn->in[lane], RNL_ERR_PEER_DEAD);
    if (rnl_ep_forked(ep))
        return;
    if (conn->out[0].state == RNL_STREAM_ABORTING)
        aborted(ep, &conn->out[0]);
    rnl_stream_posts_fail(ep, conn, RNL_ERR_PEER_DEAD); /* an open outgoing stream is its owner's to end */
}
