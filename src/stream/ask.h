/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ask.h - the short path of messages that may be answered: sending one, inlined into the interfaces that ask with each
 * message, and what rnl_reply does for them. As those of stream.h each does all of its step or nothing of it. */
#ifndef RNL_STREAM_ASK_H
#define RNL_STREAM_ASK_H

#include "stream/stream.h"

/* Where a message is composed, between the two calls that send it. */
struct rnl_stream_place {
    unsigned char *at;
    struct rnl_line *line; /* of a request */
    struct rnl_conn *conn;
    rnl_head key;
    int fresh;
};

/* Place for a message of n <= RNL_ASK_MAX bytes that may cause an answer of up to `answer`. */
RNL_INLINE int rnl_stream_ask_place(struct rnl_endpoint *ep, uint32_t peer, unsigned handler, uint32_t answer, size_t n,
                                    struct rnl_stream_place *p)
{
    if (RNL_UNLIKELY(peer >= ep->reach || ep->open_short || ep->in_handler))
        return 0;
    struct rnl_conn *conn = ep->conn[peer];
    if (RNL_UNLIKELY(conn->shut))
        return 0;
    struct rnl_tx *t = &conn->pair.tx[0];
    uint64_t start = RNL_LINE_START(t->pos), ask = answer;  /* a struct rnl_ask */
    if (RNL_UNLIKELY(start >= t->stop || !conn->lane1_hot)) /* the first makes lane 1 hot */
        return 0;
    p->conn = conn;
    p->key = rnl_head_key(RNL_LINE_ASK, handler, (unsigned)(sizeof(struct rnl_ask) + n));
    p->line = rnl_line_of(t->ring, t->wrap, start);
    memcpy(p->line->payload, &ask, sizeof ask);
    p->at = p->line->payload + sizeof ask;
    return 1;
}
RNL_INLINE void rnl_stream_ask_publish(struct rnl_endpoint *ep, const struct rnl_stream_place *p, size_t n)
{
    struct rnl_tx *t = &p->conn->pair.tx[0];
    rnl_stream_count(ep, t);
    rnl_tx_publish_closed(t, p->key, p->line, p->conn->pair.rx[0].pos);
    (void)rnl_ep_published(ep, p->conn, t);
    ep->c->messages_sent++;
    ep->c->bytes_sent += n;
}
/* Both. 1 = it is on its way. */
RNL_INLINE int rnl_stream_ask_short(struct rnl_endpoint *ep, uint32_t peer, unsigned handler, uint32_t answer,
                                    const void *buf, size_t n)
{
    struct rnl_stream_place p;
    if (!rnl_stream_ask_place(ep, peer, handler, answer, n, &p))
        return 0;
    rnl_copy_short(p.at, buf, n);
    rnl_stream_ask_publish(ep, &p, n);
    return 1;
}

/* Place for an answer of n <= RNL_LINE_PAYLOAD bytes to s, whose handler runs. */
RNL_INLINE int rnl_stream_reply_place(struct rnl_stream *s, unsigned handler, size_t n, struct rnl_stream_place *p)
{
    struct rnl_conn *conn = s->conn;
    if (RNL_UNLIKELY(s->state != RNL_STREAM_INLINE || s->lane || s->answered || n > s->answer ||
                     conn->dying | conn->gone || !s->ep->open))
        return 0;
    p->conn = conn;
    p->key = rnl_head_key(RNL_LINE_ITEMS, handler, (unsigned)n);
    p->at = rnl_tx_place(&conn->pair.tx[1], p->key, &p->fresh);
    return p->at != NULL;
}
RNL_INLINE void rnl_stream_reply_publish(struct rnl_stream *s, const struct rnl_stream_place *p, size_t n)
{
    s->answered = 1;
    s->ep->c->replies_sent++;
    if (p->key != p->conn->pair.tx[1].key)
        rnl_stream_count(s->ep, &p->conn->pair.tx[1]);
    rnl_pair_publish(&p->conn->pair, 1, p->key, p->at + n, p->fresh, 0);
}
/* ... and then, which returns 0: */
RNL_INLINE int rnl_stream_reply_announce(struct rnl_stream *s, const struct rnl_stream_place *p)
{
    return rnl_ep_published(s->ep, p->conn, &p->conn->pair.tx[1]);
}

/* As rnl_reply, of two pieces. */
int rnl_stream_reply(struct rnl_stream *s, unsigned handler, const void *head, size_t head_bytes, const void *buf,
                     size_t n);

#endif
