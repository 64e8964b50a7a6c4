/* SPDX-License-Identifier: BSD-3-Clause
 *
 * eager.h - takes in eager messages, inlined where the poll loop and the general path find them. */
#ifndef RNL_STREAM_EAGER_H
#define RNL_STREAM_EAGER_H

#include "stream/barrier.h"
#include "stream/stream_internal.h"

enum { RNL_EAGER_AHEAD = 1024 };

/* Prefetches bytes of the next message while this one's are copied, but only if that message has been published: else
 * the sender's core would have to fetch the lines back. */
RNL_INLINE void rnl_stream_fetch_next(const struct rnl_rx *r, uint64_t at, uint32_t bytes)
{
    if (!rnl_rx_begun(r, atomic_load_explicit(&r->next->header, memory_order_relaxed)))
        return;
    const unsigned char *p = rnl_rx_bulk_at(r, at);
    for (uint32_t i = 0; i < bytes && i < RNL_EAGER_AHEAD; i += RNL_CELL_BYTES)
        __builtin_prefetch(p + i);
}

/* Runs the handler, in place, of a message that has arrived whole, lies in one extent, and asks for no reply. Returns 0
 * if it is not such a message. */
RNL_INLINE bool rnl_stream_take_eager(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_header h,
                                      const struct rnl_extent *e, struct rnl_poll_ctx *t)
{
    struct rnl_rx *r = &conn->channel.rx[0];
    struct rnl_stream *s = rnl_stream_in(conn, 0);
    unsigned id = RNL_HEADER_HANDLER(h);
    if (e->flags != (RNL_EXTENT_FIRST | RNL_EXTENT_LAST | RNL_EXTENT_CLOSED) || e->reply_max ||
        e->published != e->bound || e->bound > RNL_EAGER || id >= ep->fast.handlers || s->state != RNL_STREAM_FREE ||
        conn->parked)
        return false;
    const struct rnl_handler *entry = &ep->fast.handler[id];
    if (!entry->stream)
        return false;
    uint32_t bytes = e->published;
    uint64_t end = e->start + ((bytes + 63u) & ~63u);
    rnl_rx_consume(r, h); /* before the handler, so that what it sends acknowledges it */
    r->bulk_next = end;
    rnl_stream_setup(s, rnl_rx_bulk_at(r, e->start), bytes, id, 0);
    s->bound = bytes;
    rnl_stream_fetch_next(r, end, bytes);
    uint32_t before = rnl_ep_handler_begins(ep, 0);
    RNL_NO_EXCEPTION();
    int ending = entry->stream(s, conn->rank, entry->ctx);
    if (RNL_UNLIKELY(rnl_ep_forked(ep)))
        return true;
    rnl_ep_handler_ends(ep, 0, before);
    s->state = RNL_STREAM_FREE;
    ep->c->messages_received++;
    ep->c->extents_received++;
    ep->c->bytes_received += bytes;
    t->bytes += bytes;
    if (RNL_UNLIKELY(ending != RNL_DONE))
        t->quit |= rnl_stream_ended(ep, s, ending);
    rnl_ep_extent_taken(ep, conn);
    rnl_rx_bulk_done(r, end);
    return true;
}

#endif
