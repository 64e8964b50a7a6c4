/* SPDX-License-Identifier: BSD-3-Clause
 *
 * extent.c - takes in messages whose bytes lie in the bulk area: the cell that announces an extent, cells that
 * announce more of it, and the cell that aborts the message. Everything that a cell holds is loaded once and checked
 * here. A message's handler runs in place when the message is whole, or on a coroutine as it arrives. Where no stack
 * is free, or the handler takes whole messages, the message is reassembled until it is whole. */
#include <stdlib.h>

#include "stream/eager.h"

/* Runs the handler of a message that is whole now, from its extent or from the buffer in which it was reassembled. */
static int run_reassembled(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h)
{
    int quit = 0;
    if (h->stream) { /* if it waited for a stack: its extent is whole now */
        if (s->state == RNL_STREAM_REASSEMBLY)
            ep->work.reassembling--;
        rnl_ep_set_pending(ep);
        return rnl_stream_run(ep, s, h);
    }
    if (s->too_long) {
        rnl_stream_reject_too_long(ep, s);
        quit = rnl_stream_run_whole(ep, s, h, NULL, s->reassembled);
    } else if (s->reassembly)
        quit = rnl_stream_run_whole(ep, s, h, s->reassembly, s->reassembled);
    else
        quit = rnl_stream_run_whole(ep, s, h, s->at, (size_t)(s->end - s->at));
    if (!rnl_ep_forked(ep))
        rnl_stream_free_reassembly(ep, s);
    s->at = s->end;
    return quit;
}

/* Begins to reassemble a message for a handler of whole messages. If it may not stay where it arrives, it is copied as
 * it arrives, until it proves too long. Returns 0 if there is no memory for that, so that the message waits. */
static bool begin_reassembly(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    size_t max = s->bound < RNL_WHOLE_MAX ? (size_t)s->bound : RNL_WHOLE_MAX;
    if (!(s->h.flags & RNL_IN_PLACE && (s->last || s->reserved >= s->bound))) {
        s->reassembly = malloc(max ? max : 1);
        if (!s->reassembly) {
            s->state = RNL_STREAM_FREE;
            rnl_fail(RNL_ERR_NO_MEMORY, "none to collect it, up to %zu bytes", max);
            return false;
        }
        s->reassembly_room = max;
        ep->credit.reassembly_bytes += max;
    }
    s->state = RNL_STREAM_REASSEMBLY;
    rnl_stream_resume(ep, s);
    return true;
}

/* Takes in the first cell of a message in extents. Returns 1 = its handler runs, or will; 0 = blocked; negative =
 * broken. */
static int open_message(struct rnl_endpoint *ep, struct rnl_stream *s, unsigned lane, const struct rnl_extent *e,
                        unsigned id, struct rnl_poll_ctx *t)
{
    struct rnl_conn *conn = s->conn;
    const struct rnl_handler *h = rnl_stream_handler_of(ep, id);
    if (s->state != RNL_STREAM_FREE || e->bound < e->published)
        return rnl_ep_broken(ep, conn, "a message begun inside another, or longer than its bound");
    if (!h)
        return (int)rnl_stream_no_handler(ep, conn, lane, id);
    bool may_be_too_long = h->whole && lane == 0 && e->bound > RNL_WHOLE_MAX; /* then its sender is told */
    int ready = rnl_stream_reply_ready(ep, conn, lane, may_be_too_long && !e->reply_max ? 1 : e->reply_max);
    if (ready <= 0)
        return ready;
    rnl_stream_setup(s, rnl_rx_bulk_at(&conn->channel.rx[s->lane], e->start), e->published, id, e->reply_max);
    s->start = e->start;
    s->reserved = e->reserved;
    s->published = e->published;
    s->closed = (e->flags & RNL_EXTENT_CLOSED) != 0;
    s->last = (e->flags & RNL_EXTENT_LAST) != 0;
    s->reassembly = NULL;
    s->reassembled = 0;
    s->too_long = 0;
    s->h = *h;
    s->bound = s->last ? e->published : e->bound;
    if (h->whole && !begin_reassembly(ep, s))
        return (int)rnl_stream_block(ep, conn, lane, RNL_BLOCKED_MEMORY);
    if (s->last) {
        t->quit |= run_reassembled(ep, s, h);
        s->at = s->end;
        return 1;
    }
    if (h->whole)
        return 1;
    int status = rnl_stream_start(ep, s, h);
    if (status == 0)
        return 1;
    if (e->reserved >= e->bound && lane == 0) { /* it fits: wait until it is whole, then run on our stack */
        s->state = RNL_STREAM_REASSEMBLY;
        ep->work.reassembling++;
        rnl_ep_set_pending(ep);
        ep->c->no_stack++;
        return 1;
    }
    return (int)rnl_stream_block(ep, conn, lane, status == RNL_NO_ROOM ? RNL_BLOCKED_STACK : RNL_BLOCKED_MEMORY);
}

/* The open message goes on in that extent. */
static void add_extent(struct rnl_stream *s, const struct rnl_extent *e)
{
    s->before += s->published;
    s->start = e->start;
    s->reserved = e->reserved;
    s->published = e->published;
    s->at = s->base = (unsigned char *)(uintptr_t)rnl_rx_bulk_at(&s->conn->channel.rx[s->lane], e->start);
    s->end = s->at + e->published;
    s->closed = (e->flags & RNL_EXTENT_CLOSED) != 0;
    s->last = (e->flags & RNL_EXTENT_LAST) != 0;
}

/* Feeds the handler of the open message after bytes were added. */
static void feed(struct rnl_endpoint *ep, struct rnl_stream *s, struct rnl_poll_ctx *t)
{
    rnl_stream_resume(ep, s);
    if (rnl_ep_forked(ep))
        return;
    if (s->state == RNL_STREAM_REASSEMBLY && s->last) {
        t->quit |= run_reassembled(ep, s, &s->h);
        s->state = RNL_STREAM_FREE;
        s->at = s->end;
    }
}

static void end_if_last(struct rnl_stream *s)
{
    if (s->last && s->state != RNL_STREAM_SUSPENDED && s->state != RNL_STREAM_RUNNING)
        s->state = RNL_STREAM_FREE;
}

/* Feeds the handler, gives room back, and ends the message if it is complete. */
static void advance(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, struct rnl_poll_ctx *t)
{
    struct rnl_stream *s = rnl_stream_in(conn, lane);
    feed(ep, s, t);
    if (rnl_ep_forked(ep) || conn->gone)
        return;
    /* What was taken can be overwritten; a prefix that waits in place cannot. */
    uint64_t unread = (uint64_t)(s->end - s->at), done = s->start + s->published - unread;
    if (unread == 0 && s->closed)
        done = s->start + ((s->published + 63u) & ~63u);
    else
        done &= ~(uint64_t)63;
    rnl_stream_bulk_done(conn, lane, done);
    end_if_last(s);
}

/* Whether lane 1 has a cell to say that a message was too long, besides what is reserved for the reply of the handler
 * that runs. */
static bool rejection_fits(struct rnl_conn *conn)
{
    const struct rnl_stream *s = rnl_stream_in(conn, 0);
    struct rnl_tx *t = &conn->channel.tx[1];
    uint32_t reply = s->state != RNL_STREAM_FREE && !s->replied ? s->reply_max : 0;
    return rnl_stream_reply_fits(conn, reply > RNL_CELL_PAYLOAD ? reply + RNL_CELL_BYTES : 1) == 1 &&
           (rnl_tx_refresh(t, NULL, NULL), RNL_CELL_START(t->pos) + 8 < t->stop);
}

int rnl_stream_take_chunk(struct rnl_endpoint *ep, struct rnl_conn *conn, const struct rnl_extent *e, unsigned id,
                          struct rnl_poll_ctx *t)
{
    struct rnl_stream *s = &conn->bulk->in;
    if (e->flags & RNL_EXTENT_FIRST) {
        int opened = open_message(ep, s, RNL_LANE_BULK, e, id, t);
        if (opened <= 0 || rnl_ep_forked(ep))
            return opened;
    } else {
        if (s->state == RNL_STREAM_FREE || s->last || s->at != s->end)
            return rnl_ep_broken(ep, conn, "a chunk of no message");
        if (e->flags & RNL_EXTENT_ABORT) {
            ep->c->aborted_received++;
            rnl_stream_fail(ep, s, RNL_ERR_ABORTED);
            return 1;
        }
        if (s->before + s->published + e->published > s->bound)
            return rnl_ep_broken(ep, conn, "a message longer than its bound");
        if (s->bound > RNL_WHOLE_MAX && s->h.whole && e->flags & RNL_EXTENT_LAST && !rejection_fits(conn))
            return 0; /* looked at again: replies never wait for long */
        add_extent(s, e);
    }
    ep->c->bytes_received += e->published;
    t->bytes += e->published;
    feed(ep, s, t);
    if (rnl_ep_forked(ep))
        return 1;
    if (s->last)
        ep->c->bulk_received++;
    s->at = s->end; /* a handler that waits has taken all */
    end_if_last(s);
    return 1;
}

/* A message waits for a stack until it is whole OR a stack is free, since its sender may wait for a reply to its first
 * half (tests/model/deadlock.pml, BUG_WHOLE_ONLY). */
unsigned rnl_stream_start_waiting(struct rnl_endpoint *ep, struct rnl_poll_ctx *t)
{
    unsigned started = 0;
    for (uint32_t i = 0; ep->work.reassembling && i < ep->fast.polled; i++) {
        struct rnl_conn *conn = ep->fast.conns[i];
        struct rnl_stream *s = rnl_stream_in(conn, 0);
        if (s->state != RNL_STREAM_REASSEMBLY || !s->h.stream)
            continue;
        if (rnl_stream_start(ep, s, &s->h) < 0) {
            s->state = RNL_STREAM_REASSEMBLY; /* still none */
            break;
        }
        if (rnl_ep_forked(ep))
            break;
        ep->work.reassembling--;
        rnl_ep_set_pending(ep);
        started++;
        advance(ep, conn, 0, t);
        if (!rnl_ep_forked(ep))
            rnl_ep_advertise(ep, conn);
    }
    return started;
}

/* Checks that LAST and BULK imply CLOSED, and ABORT implies LAST (see cell.h). */
static bool flags_valid(unsigned lane, uint32_t flags)
{
    const uint32_t end = RNL_EXTENT_LAST | RNL_EXTENT_CLOSED;
    if (flags & RNL_EXTENT_ABORT && ((flags & end) != end || flags & RNL_EXTENT_FIRST || lane != 0))
        return false;
    if (flags & RNL_EXTENT_BULK && (lane != 0 || !(flags & RNL_EXTENT_CLOSED)))
        return false;
    return !(flags & RNL_EXTENT_LAST) || flags & RNL_EXTENT_CLOSED;
}

/* Takes in the cell h of lane 0, which aborts the open message; the bulk area is done with up to `done`. */
static unsigned take_abort(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_header h, uint64_t done)
{
    struct rnl_rx *r = &conn->channel.rx[0];
    ep->c->aborted_received++;
    rnl_rx_read(r, h, 1);
    rnl_rx_leave(r);
    rnl_stream_bulk_done(conn, 0, done);
    rnl_stream_fail(ep, rnl_stream_in(conn, 0), RNL_ERR_ABORTED);
    return 1;
}

unsigned rnl_stream_take_extent(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h,
                                struct rnl_poll_ctx *t)
{
    struct rnl_rx *r = &conn->channel.rx[lane];
    struct rnl_stream *s = rnl_stream_in(conn, lane);
    struct rnl_extent e;
    if (RNL_HEADER_LEN(h) != sizeof e || RNL_HEADER_N(h) != 1)
        goto broken;
    rnl_rx_load(&e, rnl_rx_payload(r, h), sizeof e);
    if (rnl_rx_extent(r, &e) < 0 || !flags_valid(lane, e.flags) || (e.flags & RNL_EXTENT_ABORT && e.published))
        goto broken;
    if (lane == 0 && !conn->self && rnl_stream_take_eager(ep, conn, h, &e, t))
        return 1;
    if (e.flags & RNL_EXTENT_BULK) {
        if (s->state != RNL_STREAM_FREE && (!s->closed || s->at != s->end))
            goto broken;
        int parked = rnl_stream_park(ep, conn, &e, RNL_HEADER_HANDLER(h));
        if (parked < 0)
            return rnl_stream_block(ep, conn, 0, parked == RNL_NO_ROOM ? RNL_BLOCKED_PARKED : RNL_BLOCKED_MEMORY);
        r->bulk_next = e.start + ((e.published + 63u) & ~63u);
        rnl_ep_extent_taken(ep, conn);
        rnl_rx_read(r, h, 1);
        rnl_rx_leave(r);
        return 1;
    }
    if (e.flags & RNL_EXTENT_FIRST) {
        int opened = open_message(ep, s, lane, &e, RNL_HEADER_HANDLER(h), t);
        if (rnl_ep_forked(ep))
            return 1;
        if (opened <= 0)
            return opened < 0;
    } else {
        if (s->state == RNL_STREAM_FREE || !s->closed || s->last || s->at != s->end)
            goto broken;
        if (e.flags & RNL_EXTENT_ABORT) {
            r->bulk_next = e.start;
            return take_abort(ep, conn, h, e.start);
        }
        if (s->before + s->published + e.published > s->bound)
            goto broken;
        add_extent(s, &e);
    }
    r->bulk_next = e.start + (((e.flags & RNL_EXTENT_CLOSED ? e.published : e.reserved) + 63u) & ~63u);
    ep->c->extents_received++;
    rnl_ep_extent_taken(ep, conn);
    ep->c->bytes_received += e.published;
    t->bytes += e.published;
    rnl_rx_read(r, h, 1);
    rnl_rx_leave(&conn->channel.rx[lane]);
    if (!conn->gone)
        advance(ep, conn, lane, t);
    return 1;

broken:
    rnl_ep_broken(ep, conn, "a malformed extent");
    return 1;
}

unsigned rnl_stream_take_prefix(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h,
                                struct rnl_poll_ctx *t)
{
    struct rnl_rx *r = &conn->channel.rx[lane];
    struct rnl_stream *s = rnl_stream_in(conn, lane);
    struct rnl_prefix p;
    if (RNL_HEADER_LEN(h) != sizeof p || RNL_HEADER_N(h) != 1)
        goto broken;
    rnl_rx_load(&p, rnl_rx_payload(r, h), sizeof p);
    if (s->state == RNL_STREAM_FREE || s->closed || s->last || p.published < s->published ||
        p.published > s->reserved || p.flags & ~(uint32_t)RNL_EXTENT_FLAGS ||
        p.flags & (RNL_EXTENT_FIRST | RNL_EXTENT_BULK) || !flags_valid(lane, p.flags) ||
        s->before + p.published > s->bound)
        goto broken;
    if (p.flags & RNL_EXTENT_ABORT) {
        if (p.published != s->published)
            goto broken;
        r->bulk_next = s->start + ((s->published + 63u) & ~63u);
        return take_abort(ep, conn, h, r->bulk_next);
    }
    uint32_t more = p.published - s->published;
    s->published = p.published;
    s->end += more;
    s->closed = (p.flags & RNL_EXTENT_CLOSED) != 0;
    s->last = (p.flags & RNL_EXTENT_LAST) != 0;
    if (s->closed)
        r->bulk_next = s->start + ((s->published + 63u) & ~63u);
    ep->c->bytes_received += more;
    t->bytes += more;
    rnl_rx_read(r, h, 1);
    rnl_rx_leave(&conn->channel.rx[lane]);
    advance(ep, conn, lane, t);
    return 1;

broken:
    rnl_ep_broken(ep, conn, "a malformed prefix");
    return 1;
}
