/* SPDX-License-Identifier: BSD-3-Clause
 *
 * begin.c - opens messages without waiting: finds the place in a cell, or reserves the extent.
 *
 * Clause b of the deadlock rule is kept here: inside a handler a begin reserves the whole bound or returns
 * RNL_NO_ROOM. */
#include "stream/stream_internal.h"

struct rnl_stream *rnl_stream_begin_other(struct rnl_endpoint *ep, unsigned long peer, unsigned long handler,
                                          size_t bound)
{
    if (bound > RNL_CELL_PAYLOAD || handler > 0xffff || peer >= ep->fast.ranks || ep->fast.open_short)
        return NULL;
    struct rnl_conn *conn = ep->fast.conn[peer];
    struct rnl_tx *t = &conn->channel.tx[0];
    struct rnl_stream *s = rnl_stream_out(conn);
    uint64_t start = RNL_CELL_START(t->pos);
    if (conn->shut || start >= t->stop)
        return NULL;
    s->key = rnl_header_key(RNL_CELL_RECORDS, (unsigned)handler, (unsigned)bound);
    if (s->key == t->key && t->pos & 7) {
        rnl_tx_fast_on(t);
        return rnl_stream_begin_short(ep, peer, handler, bound);
    }
    ep->fast.open_short = s;
    ep->fast.short_pos = start | RNL_POS_OTHER;
    ep->fast.short_at = rnl_cell_of(t->ring, t->wrap, start)->payload;
    ep->fast.short_end = ep->fast.short_at + bound;
    return s;
}

static int try_short(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, const struct rnl_message *b)
{
    struct rnl_tx *t = &conn->channel.tx[0];
    unsigned head = b->answer ? sizeof(struct rnl_request_record) : 0, len = (unsigned)b->bound + head;
    int new_cell = 1;
    s->key = rnl_header_key(b->answer ? RNL_CELL_REQUEST : RNL_CELL_RECORDS, b->handler, len);
    unsigned char *at =
        rnl_tx_place(t, s->key, &new_cell); /* a request has a cell of its own: none of its key is open */
    /* A cell must stay free even when this record is appended: if fewer bytes come than announced, the record moves to
     * a cell of its own. */
    if (!at || RNL_CELL_START(t->pos) >= t->stop) {
        int status = rnl_tx_refresh(t, ep->env, &conn->channel.distance);
        if (status <= 0)
            return status < 0 ? rnl_ep_broken(ep, conn, "a reading position past what was written") : RNL_NO_ROOM;
        at = rnl_tx_place(t, s->key, &new_cell);
    }
    if (b->answer) {
        struct rnl_request_record record = {.reply_max = (uint32_t)b->answer};
        memcpy(at, &record, sizeof record);
    }
    s->base = s->at = at + head;
    s->end = s->at + b->bound;
    s->new_cell = (uint8_t)new_cell;
    s->state = RNL_STREAM_SHORT;
    return 0;
}

int rnl_stream_too_long(size_t bound)
{
    return rnl_fail(RNL_ERR_TOO_LONG,
                    "a message of up to %zu bytes cannot be reserved at once: inside a handler, or with RNL_NO_WAIT, "
                    "the limit is %d; send it from the program or queue it with rnl_post",
                    bound, RNL_RESERVE_MAX);
}

bool rnl_stream_is_short(const struct rnl_message *b)
{
    return b->bound <= (b->answer ? RNL_REQUEST_MAX : RNL_CELL_PAYLOAD);
}

int rnl_stream_try_begin(struct rnl_endpoint *ep, struct rnl_conn *conn, const struct rnl_message *b, int no_wait,
                         struct rnl_stream **out)
{
    struct rnl_stream *s = rnl_stream_out(conn);
    int status = 0;
    s->bound = b->bound;
    s->before = 0;
    s->handler = (uint16_t)b->handler;
    s->reply_max = (uint32_t)b->answer;
    s->first = 1;
    s->owner = ep->work.running;
    s->piece_failed = 0;
    if (ep->flags & RNL_SHARED)
        s->thread = pthread_self();
    if (rnl_stream_is_short(b)) {
        status = try_short(ep, conn, s, b);
    } else if (b->bound <= RNL_EXTENT_BOUND || no_wait) {
        if (b->bound > RNL_RESERVE_MAX)
            return rnl_stream_too_long(b->bound);
        status = rnl_stream_open_extent(ep, conn, s, (uint32_t)b->bound);
        if (status == 0)
            s->state = RNL_STREAM_EXTENT;
        if (status == RNL_NO_ROOM && !no_wait && rnl_tx_bulk_piece(&conn->channel.tx[0], RNL_CHUNK, RNL_PIECE_MIN) > 0)
            status = 0; /* the grant is, or will be, smaller than the message: send it in chunks */
    }
    if (status == 0 && s->state == RNL_STREAM_FREE) {
        s->state = RNL_STREAM_CHUNKS;
        s->base = s->at = s->end = NULL;
    }
    if (status < 0)
        return status;
    rnl_conn_shut(conn, RNL_SHUT_STREAM);
    if ((b->answer || b->bound > RNL_WHOLE_MAX) && !conn->lane1_polled) { /* the latter may be rejected as too long */
        conn->lane1_polled = 1;
        rnl_ep_set_sole(ep);
    }
    rnl_stream_opened(ep);
    *out = s;
    return 0;
}

int rnl_stream_check_begin(struct rnl_endpoint *ep, const struct rnl_message *b)
{
    if (rnl_ep_in_reply_handler(ep))
        return rnl_fail(RNL_ERR_CONTEXT, "the handler of a reply must not send; note it and send from the program");
    if (b->handler > 0xffff)
        return rnl_fail(RNL_ERR_HANDLER, "handler %u does not fit in a message header: the largest is 65535",
                        b->handler);
    if (b->answer > RNL_REPLY_MAX)
        return rnl_fail(RNL_ERR_TOO_LONG, "a reply of %zu bytes is too long: the limit is %d", b->answer,
                        RNL_REPLY_MAX);
    if (b->flags & RNL_BULK)
        return rnl_fail(RNL_ERR_ARG, "RNL_BULK is for rnl_post and rnl_post_held: what is begun travels on lane 0");
    if (b->flags & ~(unsigned)RNL_NO_WAIT)
        return rnl_fail(RNL_ERR_ARG, "unknown bits 0x%x in rnl_begin.flags; RNL_NO_WAIT is the only one", b->flags);
    return 0;
}
