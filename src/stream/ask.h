/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ask.h - the short path of messages that may be answered: sending one, inlined into the interfaces that ask with each
 * message, and what rnl_reply does for them. As those of stream.h each does all of its step or nothing of it. */
#ifndef RNL_STREAM_ASK_H
#define RNL_STREAM_ASK_H

#include "stream/stream.h"

/* A message of n <= RNL_ASK_MAX bytes that may cause an answer of up to `answer`. 1 = it is on its way. */
RNL_INLINE int rnl_stream_ask_short(struct rnl_endpoint *ep, uint32_t peer, unsigned handler, uint32_t answer,
                                    const void *buf, size_t n)
{
    if (RNL_UNLIKELY(peer >= ep->reach || n > RNL_ASK_MAX || ep->open_short || ep->in_handler))
        return 0;
    struct rnl_conn *conn = ep->conn[peer];
    if (RNL_UNLIKELY(conn->shut))
        return 0;
    struct rnl_tx *t = &conn->pair.tx[0];
    uint64_t start = RNL_LINE_START(t->pos);
    if (RNL_UNLIKELY(start >= t->stop || !conn->lane1_hot)) /* the first makes lane 1 hot */
        return 0;
    struct rnl_ask ask = {.answer = answer};
    rnl_head key = rnl_head_key(RNL_LINE_ASK, handler, (unsigned)(sizeof ask + n));
    unsigned char *at = rnl_line_of(t->ring, t->wrap, start)->payload;
    memcpy(at, &ask, sizeof ask);
    rnl_copy_short(at + sizeof ask, buf, n);
    (void)rnl_stream_publish(ep, conn, 0, key, at + sizeof ask + n, 1, 0);
    rnl_tx_close_other(t);
    ep->c->messages_sent++;
    ep->c->bytes_sent += n;
    return 1;
}

/* As rnl_reply, of two pieces. */
int rnl_stream_reply(struct rnl_stream *s, unsigned handler, const void *head, size_t head_bytes, const void *buf,
                     size_t n);

#endif
