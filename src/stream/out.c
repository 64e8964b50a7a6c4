/* SPDX-License-Identifier: BSD-3-Clause
 *
 * out.c - the life of an open outgoing message: it is promoted from the fast path, reserves bulk area, publishes
 * what it holds, and is closed. Nothing here waits, or calls another file of this folder. */
#include "stream/stream_internal.h"

void rnl_stream_opened(struct rnl_endpoint *ep)
{
    ep->work.open_streams++;
    rnl_ep_set_fast(ep);
}

/* Moves a stream from the fast path to the general path. */
void rnl_stream_promote_one(struct rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    struct rnl_tx *t = &s->conn->channel.tx[0];
    if (ep->fast.open_short != s)
        return;
    ep->fast.open_short = NULL;
    rnl_stream_opened(ep);
    s->at = ep->fast.short_at;
    s->end = ep->fast.short_end;
    s->new_cell = (ep->fast.short_pos & 7) == 0;
    if (!(ep->fast.short_pos & RNL_POS_OTHER)) {
        s->key = t->key;
        if (s->new_cell)
            rnl_tx_cancel_cell(t);
    }
    rnl_conn_shut(s->conn, RNL_SHUT_STREAM);
    s->state = RNL_STREAM_SHORT;
    s->bound = RNL_HEADER_LEN(s->key);
    s->base = s->end - s->bound;
    s->before = 0;
    s->reply_max = 0;
    s->handler = (uint16_t)RNL_HEADER_HANDLER(s->key);
    s->first = 1;
    s->piece_failed = 0;
    s->owner = ep->work.running; /* a handler promotes its stream before it suspends */
}

void rnl_stream_promote(struct rnl_endpoint *ep)
{
    if (ep->fast.open_short)
        rnl_stream_promote_one(ep->fast.open_short);
}

int rnl_stream_open_extent(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, uint32_t bytes)
{
    struct rnl_tx *t = &conn->channel.tx[s->lane];
    uint64_t start;
    int status;
    if (RNL_CELL_START(t->pos) >= t->stop) {
        status = rnl_tx_refresh(t, ep->env, &conn->channel.distance);
        if (status <= 0)
            return status < 0 ? rnl_ep_broken(ep, conn, "a reading position past what was written") : RNL_NO_ROOM;
    }
    if (RNL_UNLIKELY(!t->bulk) && (status = rnl_channel_map_mine(&conn->channel)) < 0)
        return status;
    t->whole_area = rnl_copies_whole_area(rnl_stream_copies(conn, ep->env));
    status = rnl_tx_bulk_room(t, bytes, &start);
    if (status <= 0)
        return status < 0 ? rnl_ep_broken(ep, conn, "a bulk position past what was written") : RNL_NO_ROOM;
    s->bulk_was = t->bulk_head;
    rnl_tx_bulk_take(t, start + ((bytes + 63u) & ~63u));
    s->start = start;
    s->reserved = bytes;
    s->published = 0;
    s->base = s->at = t->bulk + (start & t->bulk_mask);
    s->end = s->base + bytes;
    ep->c->extents_sent++;
    return 0;
}

int rnl_stream_open_chunk(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, uint64_t left)
{
    uint32_t want = left < RNL_CHUNK ? (uint32_t)left : RNL_CHUNK;
    int64_t fits = rnl_tx_bulk_piece(&conn->channel.tx[0], want, want < RNL_PIECE_MIN ? want : RNL_PIECE_MIN);
    if (fits < 0)
        return rnl_ep_broken(ep, conn, "a bulk position past what was written");
    if (fits == 0 && want > 0)
        return RNL_NO_ROOM;
    return rnl_stream_open_extent(ep, conn, s, (uint32_t)fits);
}

void rnl_stream_publish_extent(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, unsigned flags)
{
    struct rnl_tx *t = &conn->channel.tx[s->lane];
    uint32_t published = (uint32_t)(s->at - s->base);
    int new_cell = 1;
    if (s->published == 0 || s->first) {
        struct rnl_extent e = {.start = s->start, .reserved = s->reserved, .published = published, .flags = flags};
        rnl_header key = rnl_header_key(RNL_CELL_EXTENT, s->handler, sizeof e);
        if (s->first) {
            e.bound = s->bound;
            e.reply_max = s->reply_max;
            e.flags |= RNL_EXTENT_FIRST;
        }
        unsigned char *at = rnl_tx_place(t, key, &new_cell);
        memcpy(at, &e, sizeof e);
        rnl_stream_publish(ep, conn, s->lane, key, at + sizeof e, new_cell, 0);
        if (s->first)
            ep->c->messages_sent++;
    } else {
        struct rnl_prefix p = {.published = published, .flags = flags};
        rnl_header key = rnl_header_key(RNL_CELL_PREFIX, s->handler, sizeof p);
        unsigned char *at = rnl_tx_place(t, key, &new_cell);
        memcpy(at, &p, sizeof p);
        rnl_stream_publish(ep, conn, s->lane, key, at + sizeof p, new_cell, 0);
    }
    rnl_tx_close_other(t);
    ep->c->bytes_sent += published - s->published;
    s->first = 0;
    s->published = published;
    if (flags & RNL_EXTENT_CLOSED && published < s->reserved)
        rnl_tx_bulk_take(t, s->start + ((published + 63u) & ~63u)); /* trim: nothing was reserved after it */
}

void rnl_stream_closed(struct rnl_stream *s)
{
    s->state = RNL_STREAM_FREE;
    s->conn->shut &= (uint8_t)~RNL_SHUT_STREAM;
    s->conn->wants_room = 0;
    s->ep->work.open_streams--; /* the stream was promoted before */
    rnl_ep_set_fast(s->ep);
    if (s->conn->post_first || s->conn->bulk_posts || (s->conn->waits && s->ep->flags & RNL_SHARED))
        rnl_ep_look_again(s->ep); /* what was queued behind it can go, or the begin of another thread */
}

void rnl_stream_want_room(struct rnl_endpoint *ep, struct rnl_conn *conn, int want)
{
    if (want && !conn->wants_room)
        rnl_ep_look_again(ep); /* sleepers have to arm for room, too */
    conn->wants_room = want != 0;
}
