/* SPDX-License-Identifier: BSD-3-Clause
 *
 * request.h - the fast path of requests and replies: sending either, inlined into the interfaces whose messages they
 * are. Like the functions of stream.h, each does all of its step, or nothing of it. */
#ifndef RNL_STREAM_REQUEST_H
#define RNL_STREAM_REQUEST_H

#include "stream/stream.h"

/* The place where a message is composed, between the two calls that send it. */
struct rnl_stream_place {
    unsigned char *at;
    struct rnl_cell *cell; /* requests only */
    struct rnl_conn *conn;
    rnl_header key;
    int new_cell;
};

/* Gives the place for a request of n <= RNL_REQUEST_MAX bytes that may cause a reply of up to `answer` bytes. */
RNL_INLINE bool rnl_stream_request_place(struct rnl_endpoint *ep, uint32_t peer, unsigned handler, uint32_t reply_max,
                                         size_t n, struct rnl_stream_place *p)
{
    if (RNL_UNLIKELY(peer >= ep->fast.ranks || ep->fast.open_short || ep->fast.in_handler))
        return false;
    struct rnl_conn *conn = ep->fast.conn[peer];
    if (RNL_UNLIKELY(conn->shut))
        return false;
    struct rnl_tx *t = &conn->channel.tx[0];
    uint64_t start = RNL_CELL_START(t->pos), record = reply_max; /* struct rnl_request_record, as one word */
    if (RNL_UNLIKELY(start >= t->stop || !conn->lane1_polled))   /* the first request makes lane 1 polled */
        return false;
    p->conn = conn;
    p->key = rnl_header_key(RNL_CELL_REQUEST, handler, (unsigned)(sizeof(struct rnl_request_record) + n));
    p->cell = rnl_cell_of(t->ring, t->wrap, start);
    memcpy(p->cell->payload, &record, sizeof record);
    p->at = p->cell->payload + sizeof record;
    return true;
}
RNL_INLINE void rnl_stream_request_publish(struct rnl_endpoint *ep, const struct rnl_stream_place *p, size_t n)
{
    struct rnl_tx *t = &p->conn->channel.tx[0];
    rnl_stream_count(ep, t);
    rnl_tx_publish_closed(t, p->key, p->cell, p->conn->channel.rx[0].pos);
    (void)rnl_ep_published(ep, p->conn, t);
    ep->c->messages_sent++;
    ep->c->bytes_sent += n;
}
/* Composes and publishes a request. Returns true if it was sent. */
RNL_INLINE bool rnl_stream_request_short(struct rnl_endpoint *ep, uint32_t peer, unsigned handler, uint32_t reply_max,
                                         const void *buf, size_t n)
{
    struct rnl_stream_place p;
    if (!rnl_stream_request_place(ep, peer, handler, reply_max, n, &p))
        return false;
    rnl_copy_short(p.at, buf, n);
    rnl_stream_request_publish(ep, &p, n);
    return true;
}

/* Gives the place for a reply of n <= RNL_CELL_PAYLOAD bytes to s, whose handler runs. */
RNL_INLINE bool rnl_stream_reply_place(struct rnl_stream *s, unsigned handler, size_t n, struct rnl_stream_place *p)
{
    struct rnl_conn *conn = s->conn;
    if (RNL_UNLIKELY(s->state != RNL_STREAM_INLINE || s->lane || s->replied || n > s->reply_max ||
                     conn->dying | conn->gone || !s->ep->fast.open))
        return false;
    p->conn = conn;
    p->key = rnl_header_key(RNL_CELL_RECORDS, handler, (unsigned)n);
    p->at = rnl_tx_place(&conn->channel.tx[1], p->key, &p->new_cell);
    return p->at != NULL;
}
RNL_INLINE void rnl_stream_reply_publish(struct rnl_stream *s, const struct rnl_stream_place *p, size_t n)
{
    s->replied = 1;
    s->ep->c->replies_sent++;
    if (p->key != p->conn->channel.tx[1].key)
        rnl_stream_count(s->ep, &p->conn->channel.tx[1]);
    rnl_channel_publish(&p->conn->channel, 1, p->key, p->at + n, p->new_cell, 0);
}
/* Rings the receiver's bell if need be, after rnl_stream_reply_publish(). Returns 0. */
RNL_INLINE int rnl_stream_reply_announce(struct rnl_stream *s, const struct rnl_stream_place *p)
{
    return rnl_ep_published(s->ep, p->conn, &p->conn->channel.tx[1]);
}

/* Replies as rnl_reply does, with a message of two pieces. */
int rnl_stream_reply(struct rnl_stream *s, unsigned handler, const void *head, size_t head_bytes, const void *buf,
                     size_t n);

#endif
