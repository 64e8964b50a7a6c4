/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compose.c - composes messages without waiting: bytes are stored once, into the place from which they travel, and
 * published in time for the receiver to work on them meanwhile.
 */
#include "base/bug.h"
#include "base/copy.h"
#include "stream/stream_internal.h"

/* Returns true if a cell may be used and another is left for the end. */
static bool spare_cell(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_tx *t)
{
    if (RNL_CELL_START(t->pos) + 8 >= t->stop)
        (void)!rnl_tx_refresh(t, ep->env, &conn->channel.distance);
    return RNL_CELL_START(t->pos) + 8 < t->stop;
}

static uint32_t chunk_of(uint64_t bound)
{
    return bound <= RNL_CHUNK_SMALL_BOUND ? RNL_CHUNK_SMALL : RNL_CHUNK;
}

static int64_t put_extent(struct rnl_stream *s, const unsigned char *buf, size_t n)
{
    size_t done = 0, chunk = chunk_of(s->bound);
    uint64_t copies = rnl_stream_copies(s->conn, s->ep->env);
    while (done < n) {
        size_t there = (size_t)(s->at - s->base) - s->published, step = n - done;
        if (there + step > chunk)
            step = chunk > there ? chunk - there : 0;
        rnl_copy_in_by(copies, s->at, buf + done, step);
        s->at += step;
        done += step;
        if (done < n) {
            if (spare_cell(s->ep, s->conn, &s->conn->channel.tx[0]))
                rnl_stream_publish_extent(s->ep, s->conn, s, 0);
            else if (step == 0) { /* no cell for an early publication: go on composing */
                step = n - done;
                rnl_copy_in_by(copies, s->at, buf + done, step);
                s->at += step;
                done = n;
            }
        }
    }
    return (int64_t)done;
}

static int64_t put_chunks(struct rnl_stream *s, const unsigned char *buf, size_t n)
{
    struct rnl_endpoint *ep = s->ep;
    struct rnl_conn *conn = s->conn;
    uint64_t copies = rnl_stream_copies(conn, ep->env);
    size_t done = 0;
    while (done < n) {
        if (s->base && s->at == s->end) {
            struct rnl_tx *t = &conn->channel.tx[0];
            if (RNL_CELL_START(t->pos) >= t->stop && rnl_tx_refresh(t, ep->env, &conn->channel.distance) <= 0)
                break;
            rnl_stream_publish_extent(ep, conn, s, RNL_EXTENT_CLOSED);
            s->before += s->reserved;
            s->base = NULL;
        }
        if (!s->base) {
            uint64_t left = s->bound - s->before;
            int status = rnl_stream_open_chunk(ep, conn, s, left);
            if (status == RNL_NO_ROOM)
                break;
            if (status < 0)
                return status;
        }
        size_t step = (size_t)(s->end - s->at);
        if (step > n - done)
            step = n - done;
        rnl_copy_in_by(copies, s->at, buf + done, step);
        s->at += step;
        done += step;
    }
    return (int64_t)done;
}

static int not_open(void)
{
    return rnl_fail(RNL_ERR_ARG, "this stream is not open for sending: begin a message, and use it until its end");
}

int64_t rnl_stream_put(struct rnl_stream *s, const void *buf, size_t n)
{
    rnl_stream_promote_one(s);
    if (!rnl_stream_composing(s))
        return not_open();
    uint64_t used = s->before + (s->base ? (uint64_t)(s->at - s->base) : 0);
    if (s->conn->shut & RNL_SHUT_DEAD)
        return rnl_ep_gone(s->ep, s->conn->rank);
    if (n > s->bound - used)
        return rnl_fail(RNL_ERR_PAST_END,
                        "a piece of %zu bytes goes past the bound of this message: %llu of %llu are used", n,
                        (unsigned long long)used, (unsigned long long)s->bound);
    switch (s->state) {
    case RNL_STREAM_SHORT:
        rnl_copy_short(s->at, buf, n);
        s->at += n;
        return (int64_t)n;
    case RNL_STREAM_EXTENT:
        return put_extent(s, buf, n);
    default:
        return put_chunks(s, buf, n);
    }
}

/* ---- end, flush ---- */

static void end_short(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s)
{
    size_t len = (size_t)(s->at - s->base);
    if (RNL_UNLIKELY(len != s->bound)) { /* shorter than announced: the record's place depends on its length */
        struct rnl_tx *t = &conn->channel.tx[0];
        unsigned head = s->reply_max ? sizeof(struct rnl_request_record) : 0;
        unsigned char kept[RNL_CELL_PAYLOAD];
        int new_cell = 1;
        memcpy(kept, s->base - head, len + head);
        s->key = rnl_header_key(s->reply_max ? RNL_CELL_REQUEST : RNL_CELL_RECORDS, s->handler, (unsigned)len + head);
        unsigned char *at = rnl_tx_place(t, s->key, &new_cell); /* begin left a cell for it */
        memcpy(at, kept, len + head);
        s->at = at + head + len;
        s->new_cell = (uint8_t)new_cell;
    }
    rnl_stream_publish(ep, conn, 0, s->key, s->at, s->new_cell, 0);
    if (s->reply_max) {
        ep->c->messages_sent++;
        ep->c->bytes_sent += len;
        rnl_tx_close_other(&conn->channel.tx[0]);
    }
}

int rnl_stream_try_end(struct rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    struct rnl_conn *conn = s->conn;
    rnl_stream_promote_one(s);
    if (!rnl_stream_composing(s))
        return not_open();
    if (conn->shut & RNL_SHUT_DEAD) {
        rnl_stream_closed(s);
        return rnl_ep_gone(ep, conn->rank);
    }
    if (s->piece_failed) {
        rnl_stream_abort(s);
        return rnl_fail(RNL_ERR_ABORTED,
                        "a piece of this message to rank %u failed when a part of it had been taken; it was given up",
                        conn->rank);
    }
    switch (s->state) {
    case RNL_STREAM_SHORT:
        end_short(ep, conn, s);
        break;
    case RNL_STREAM_CHUNKS:
        if (!s->base) { /* nothing composed since the last chunk: an empty extent carries the end */
            int status = rnl_stream_open_extent(ep, conn, s, 0); /* needs a cell, no room */
            if (status < 0)
                return status;
        } else {
            struct rnl_tx *t = &conn->channel.tx[0];
            if (RNL_CELL_START(t->pos) >= t->stop && rnl_tx_refresh(t, ep->env, &conn->channel.distance) <= 0)
                return RNL_NO_ROOM;
        }
        rnl_stream_publish_extent(ep, conn, s, RNL_EXTENT_LAST | RNL_EXTENT_CLOSED);
        break;
    default:
        rnl_stream_publish_extent(ep, conn, s, RNL_EXTENT_LAST | RNL_EXTENT_CLOSED);
        break;
    }
    rnl_stream_closed(s);
    return 0;
}

/* Turns a short message that is half composed into an extent when the program waits, so that its first half can be
 * published. */
static void flush_short(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s)
{
    unsigned char bytes[RNL_CELL_PAYLOAD];
    size_t n = (size_t)(s->at - s->base);
    unsigned char *base = s->base, *at = s->at, *end = s->end;
    memcpy(bytes, s->base, n);
    if (!spare_cell(ep, conn, &conn->channel.tx[0]) || rnl_stream_open_extent(ep, conn, s, (uint32_t)s->bound) < 0) {
        s->base = base, s->at = at, s->end = end; /* no room yet: the next call tries again */
        return;
    }
    if (!spare_cell(ep, conn,
                    &conn->channel.tx[0])) { /* the extent took the last of the grant: its end would find no cell */
        rnl_tx_bulk_take(&conn->channel.tx[0], s->bulk_was);
        s->base = base, s->at = at, s->end = end;
        return;
    }
    s->state = RNL_STREAM_EXTENT;
    memcpy(s->at, bytes, n);
    s->at += n;
    rnl_stream_publish_extent(ep, conn, s, 0);
}

void rnl_stream_flush(struct rnl_endpoint *ep)
{
    rnl_stream_promote(ep);
    for (uint32_t i = 0; ep->work.open_streams && i < ep->poll.connected; i++) {
        struct rnl_conn *conn = ep->fast.conns[i];
        struct rnl_stream *s = rnl_stream_out(conn);
        if (!rnl_stream_composing(s) || conn->shut & RNL_SHUT_DEAD || !s->base || RNL_BUG(stream_flush_forgets))
            continue;
        size_t composed = (size_t)(s->at - s->base);
        if (s->state == RNL_STREAM_SHORT) {
            if (composed)
                flush_short(ep, conn, s);
            rnl_stream_want_room(ep, conn, composed && s->state == RNL_STREAM_SHORT);
        } else {
            if (composed > s->published && spare_cell(ep, conn, &conn->channel.tx[0]))
                rnl_stream_publish_extent(ep, conn, s, 0);
            rnl_stream_want_room(ep, conn, composed > s->published);
        }
    }
}
