/* SPDX-License-Identifier: BSD-3-Clause
 *
 * eager.c - messages of some hundred or thousand bytes for which everything is at hand: one extent, composed whole
 * and announced by one cell. eager.h takes them in. Each function does all of its step, or nothing, for the general
 * path to do. */
#include "stream/stream_internal.h"

enum { MEMCPY_MAX = 2047 /* longer pieces get the copy for bulk data */ };

/* Returns 1 if there is room as far as is known without asking the peer. */
static int has_room(const struct rnl_tx *t, uint64_t end)
{
    uint64_t cell = rnl_tx_cell(t), used = cell - t->cell0 + t->bulk_head / 64;
    return end - t->bulk_read <= t->bulk_mask && RNL_CELL_START(t->pos) < t->stop &&
           used + 1 + (end - t->bulk_head) / 64 <= t->granted - t->credit_returned;
}

static void take_room(struct rnl_tx *t, uint64_t end)
{
    uint64_t cell = rnl_tx_cell(t), used = cell - t->cell0 + end / 64;
    uint64_t by_grant = cell + 1 + (t->granted - t->credit_returned - used),
             by_room = (t->acked >> 3) + RNL_CELLS(t->wrap);
    t->bulk_head = end;
    rnl_tx_set_stop(t, (by_grant < by_room ? by_grant : by_room) * 8);
}

struct rnl_stream *rnl_stream_begin_eager(struct rnl_endpoint *ep, unsigned long peer, unsigned long handler,
                                          size_t bound)
{
    if (peer >= ep->fast.ranks || bound > RNL_EAGER || handler > 0xffff || ep->fast.open_short)
        return NULL;
    struct rnl_conn *conn = ep->fast.conn[peer];
    if (conn->shut)
        return NULL;
    struct rnl_tx *t = &conn->channel.tx[0];
    uint64_t start = t->bulk_head, at = start & t->bulk_mask, end = start + ((bound + 63) & ~(size_t)63);
    /* At half the area the positions may wrap (ring.c). */
    if ((at ^ (at + bound)) & (RNL_BULK_BYTES / 2) || !t->bulk || !has_room(t, end))
        return NULL;
    take_room(t, end);
    struct rnl_stream *s = rnl_stream_out(conn);
    s->base = s->at = t->bulk + at;
    s->end = s->base + bound;
    s->before = 0;
    s->state = RNL_STREAM_EXTENT;
    s->handler = (uint16_t)handler;
    s->first = 1;
    s->piece_failed = 0;
    s->reply_max = 0;
    s->bound = bound;
    s->start = s->bulk_was = start;
    s->reserved = (uint32_t)bound;
    s->published = 0;
    s->owner = ep->work.running;
    rnl_conn_shut(conn, RNL_SHUT_STREAM);
    ep->work.open_streams = 1;
    ep->fast.ranks = 0;
    ep->fast.pending_work |= RNL_PENDING_OPEN;
    ep->c->extents_sent++;
    return s;
}

bool rnl_stream_piece_eager(struct rnl_stream *s, const void *buf, size_t n)
{
    if (s->ep->fast.open != RNL_EP_OPEN || s->state != RNL_STREAM_EXTENT || n > (size_t)(s->end - s->at) ||
        s->bound > RNL_EAGER || s->conn->shut != RNL_SHUT_STREAM)
        return false;
    if (n > MEMCPY_MAX)
        rnl_copy_in_by(rnl_stream_copies(s->conn, s->ep->env), s->at, buf, n);
    else if (n > 0) /* buf may be NULL */
        memcpy(s->at, buf, n);
    s->at += n;
    return true;
}

/* Prefetches the lines in which another message of this length will lie, and which the peer read last: they come back
 * while this message is on its way, not when the next one is composed. Lines that the peer may still read are left
 * alone. A far peer's lines of a message that is copied without fetching them are left alone, too: the crossings would
 * take longer than the copy. */
static inline void fetch_back(const struct rnl_tx *t, uint32_t bytes)
{
    uint64_t at = t->bulk_head & t->bulk_mask;
    if (at + bytes > t->bulk_mask || t->bulk_head + bytes - t->bulk_read > t->bulk_mask)
        return;
    for (uint32_t i = 0; i < bytes; i += RNL_CELL_BYTES)
        rnl_prefetch_write(t->bulk + at + i);
}

bool rnl_stream_end_eager(struct rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    struct rnl_conn *conn = s->conn;
    if (ep->fast.open != RNL_EP_OPEN || s->state != RNL_STREAM_EXTENT || s->published || !s->first || s->piece_failed ||
        s->at != s->end || conn->shut != RNL_SHUT_STREAM || ep->work.open_streams != 1)
        return false;
    struct rnl_tx *t = &conn->channel.tx[0];
    rnl_stream_count(ep, t);
    struct rnl_cell *cell = rnl_cell_of(t->ring, t->wrap, RNL_CELL_START(t->pos)); /* it was free at begin */
    /* The fields are set one by one: composed on the stack and copied as a whole, the struct would be read before it is
     * written there. And `bytes` is not loaded from `reserved`: compilers load that together with its neighbour, and
     * such a load waits for every store before it, which go to the peer's core. */
    uint32_t bytes = (uint32_t)(s->end - s->base);
    struct rnl_extent *e = (struct rnl_extent *)(void *)cell->payload;
    e->start = s->start;
    e->reserved = e->published = bytes;
    e->bound = s->bound;
    e->reply_max = s->reply_max;
    e->flags = RNL_EXTENT_FIRST | RNL_EXTENT_LAST | RNL_EXTENT_CLOSED;
    rnl_tx_publish_closed(t, rnl_header_key(RNL_CELL_EXTENT, s->handler, sizeof *e), cell, conn->channel.rx[0].pos);
    ep->c->messages_sent++;
    ep->c->bytes_sent += bytes;
    s->state = RNL_STREAM_FREE;
    conn->shut = 0;
    conn->wants_room = 0; /* a flush may have found no cell for it */
    ep->work.open_streams = 0;
    ep->fast.ranks = ep->size;
    ep->fast.pending_work &= ~RNL_PENDING_OPEN;
    (void)rnl_ep_published(ep, conn, t);
    if (bytes <= MEMCPY_MAX || !(conn->channel.distance & RNL_FAR))
        fetch_back(t, bytes);
    return true;
}
