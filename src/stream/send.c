/* SPDX-License-Identifier: BSD-3-Clause
 *
 * send.c - composing messages: send, piece, end, flush; begin.c opens them. Bytes are stored once, into the place they
 * travel from.
 *
 * A stream in an extent never waits after its begin: the line for its end stays free, since no other message can go to
 * that peer while it is open, and lines for early publication are used only if another is left. */
#include "stream/stream.h"

#include "base/copy.h"
#include "endpoint/remote.h"

/* ---- short messages ---- */

int rnl_stream_publish_other(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_head key, unsigned char *end)
{
    int status = rnl_stream_publish(ep, conn, 0, key, end, 1, 0); /* another key: a fresh line */
    if (!conn->shut)
        rnl_tx_quick(&conn->pair.tx[0]);
    return status;
}

void rnl_stream_end_other(struct rnl_stream *s, unsigned char *end)
{
    (void)rnl_stream_publish_other(s->ep, s->conn, s->key, end);
}

static RNL_NOINLINE int send_slow(struct rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n)
{
    struct rnl_stream *s;
    struct rnl_begin b = {.peer = peer, .handler = handler, .bound = n};
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    if (n > RNL_SHORT_MAX)
        status = rnl_fail(RNL_ERR_TOO_LONG, "rnl_send takes up to %d bytes, not %zu; use rnl_begin, rnl_piece, rnl_end",
                          RNL_SHORT_MAX, n);
    else
        status = rnl_stream_begin(ep, &b, &s);
    if (status == 0 && n > 0) {
        rnl_copy_short(s->at, buf, s->state == RNL_STREAM_SWALLOW ? 0 : n);
        s->at += n;
    }
    if (status == 0)
        status = rnl_stream_try_end(s);
    rnl_ep_leave(ep);
    return status;
}

/* The short path, of the kind that conn's line says. Nothing is left for after a call: it needs no frame. */
RNL_INLINE int send_short(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned peer, unsigned handler,
                          const void *buf, size_t n)
{
    struct rnl_tx *t = &conn->pair.tx[0];
    uint64_t pos = t->pos;
    if (RNL_LIKELY(
            rnl_tx_room_in_line(t))) { /* a copy of what follows for each case: in a burst nothing is decided twice */
        unsigned char *at = t->end;
        rnl_copy_short(at, buf, n);
        rnl_tx_publish_at(t, t->key, at + n, pos, conn->pair.rx[0].pos, 0);
        return rnl_ep_published(ep, conn, t);
    }
    if (RNL_UNLIKELY(pos >= t->quick_stop))
        return send_slow(ep, peer, handler, buf, n);
    pos = rnl_tx_begin_line(t);
    struct rnl_line *line = rnl_line_of(t->ring, t->wrap, pos);
    rnl_copy_short(line->payload, buf, n);
    rnl_tx_publish_in(t, t->key, line, line->payload + n, pos, conn->pair.rx[0].pos, 0);
    return rnl_ep_published(ep, conn, t);
}

/* Of another kind than the last to its peer, or the first after something was against it. */
static RNL_NOINLINE int send_other(struct rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n)
{
    struct rnl_conn *conn = ep->conn[peer];
    struct rnl_tx *t = &conn->pair.tx[0];
    rnl_head key = rnl_head_key(RNL_LINE_ITEMS, handler, (unsigned)n);
    uint64_t start = RNL_LINE_START(t->pos);
    if (n > RNL_SHORT_MAX || handler > 0xffff || conn->shut || start >= t->stop)
        return send_slow(ep, peer, handler, buf, n);
    if (key == t->key && t->pos & 7) {
        rnl_tx_quick(t);
        return send_short(ep, conn, peer, handler, buf, n);
    }
    unsigned char *at = rnl_line_of(t->ring, t->wrap, start)->payload;
    rnl_copy_short(at, buf, n);
    return rnl_stream_publish_other(ep, conn, key, at + n);
}

static RNL_NOINLINE int send_n(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned peer, unsigned handler,
                               const void *buf, size_t n)
{
    const struct rnl_tx *t = &conn->pair.tx[0];
    if (RNL_UNLIKELY(handler != t->quick_handler || n != t->quick_bytes || n > RNL_SHORT_MAX))
        return send_other(ep, peer, handler, buf, n);
    return send_short(ep, conn, peer, handler, buf, n);
}

int rnl_send(rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n)
{
    if (RNL_UNLIKELY(peer >= ep->reach || ep->open_short))
        return send_slow(ep, peer, handler, buf, n);
    struct rnl_conn *conn = ep->conn[peer];
    const struct rnl_tx *t = &conn->pair.tx[0];
    if (RNL_LIKELY(n == 8 && t->quick_bytes == 8 && handler == (uint32_t)t->quick_handler))
        return send_short(ep, conn, peer, handler, buf, 8);
    return send_n(ep, conn, peer, handler, buf, n);
}

/* ---- pieces ---- */

void rnl_stream_publish_extent(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, unsigned flags)
{
    struct rnl_tx *t = &conn->pair.tx[s->lane];
    uint32_t published = (uint32_t)(s->at - s->base);
    int fresh = 1;
    if (s->published == 0 || s->first) {
        struct rnl_extent e = {.start = s->start, .reserved = s->reserved, .published = published, .flags = flags};
        rnl_head key = rnl_head_key(RNL_LINE_EXTENT, s->handler, sizeof e);
        if (s->first) {
            e.bound = s->bound;
            e.answer = s->answer;
            e.flags |= RNL_EXTENT_FIRST;
        }
        unsigned char *at = rnl_tx_place(t, key, &fresh);
        memcpy(at, &e, sizeof e);
        rnl_stream_publish(ep, conn, s->lane, key, at + sizeof e, fresh, 0);
        if (s->first)
            ep->c->messages_sent++;
    } else {
        struct rnl_prefix p = {.published = published, .flags = flags};
        rnl_head key = rnl_head_key(RNL_LINE_PREFIX, s->handler, sizeof p);
        unsigned char *at = rnl_tx_place(t, key, &fresh);
        memcpy(at, &p, sizeof p);
        rnl_stream_publish(ep, conn, s->lane, key, at + sizeof p, fresh, 0);
    }
    rnl_tx_close_other(t);
    ep->c->bytes_sent += published - s->published;
    s->first = 0;
    s->published = published;
    if (flags & RNL_EXTENT_CLOSED && published < s->reserved)
        rnl_tx_bulk_take(t, s->start + ((published + 63u) & ~63u)); /* trim: nothing was reserved after it */
}

/* 1 = a line may be used and another is left for the end. */
static int spare_line(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_tx *t)
{
    if (RNL_LINE_START(t->pos) + 8 >= t->stop)
        (void)!rnl_tx_refresh(t, ep->env, &conn->pair.distance);
    return RNL_LINE_START(t->pos) + 8 < t->stop;
}

static uint32_t chunk_of(uint64_t bound)
{
    return bound <= RNL_CHUNK_SMALL_BOUND ? RNL_CHUNK_SMALL : RNL_CHUNK;
}

static int64_t put_extent(struct rnl_stream *s, const unsigned char *buf, size_t n)
{
    size_t done = 0, chunk = chunk_of(s->bound);
    while (done < n) {
        size_t there = (size_t)(s->at - s->base) - s->published, step = n - done;
        if (there + step > chunk)
            step = chunk > there ? chunk - there : 0;
        rnl_copy_in(s->at, buf + done, step);
        s->at += step;
        done += step;
        if (done < n) {
            if (spare_line(s->ep, s->conn, &s->conn->pair.tx[0]))
                rnl_stream_publish_extent(s->ep, s->conn, s, 0);
            else if (step == 0) { /* no line for an early publication: go on composing */
                step = n - done;
                rnl_copy_in(s->at, buf + done, step);
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
    size_t done = 0;
    while (done < n) {
        if (s->base && s->at == s->end) {
            struct rnl_tx *t = &conn->pair.tx[0];
            if (RNL_LINE_START(t->pos) >= t->stop && rnl_tx_refresh(t, ep->env, &conn->pair.distance) <= 0)
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
        rnl_copy_in(s->at, buf + done, step);
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
    rnl_stream_lengthen_one(s);
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

static RNL_NOINLINE int piece_slow(struct rnl_stream *s, const void *buf, size_t n)
{
    if (rnl_stream_piece_medium(s, buf, n))
        return 0;
    struct rnl_endpoint *ep = s->ep;
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    const unsigned char *from = buf;
    for (;;) {
        int64_t took = rnl_stream_put(s, from, n);
        status = took < 0 ? (int)took : 0;
        if (took < 0 || (size_t)took == n)
            break;
        from += took;
        n -= (size_t)took;
        if (ep->in_handler) { /* only a stream begun outside can be in chunks */
            status = rnl_fail(RNL_ERR_CONTEXT,
                              "this message was begun outside the handler and cannot wait for room inside it");
            break;
        }
        uint64_t left = s->bound - s->before;
        status = rnl_stream_wait_room(ep, s->conn, s->base ? 0 : left < RNL_PIECE_MIN ? (uint32_t)left : RNL_PIECE_MIN);
        if (status < 0)
            break;
    }
    s->spoilt |= status < 0 && from != buf;
    rnl_ep_leave(ep);
    return status;
}

int rnl_piece(rnl_stream *s, const void *buf, size_t n)
{
    if (RNL_LIKELY(rnl_stream_piece_short(s, buf, n)))
        return 0;
    return piece_slow(s, buf, n);
}

/* ---- end, flush ---- */

void rnl_stream_closed(struct rnl_stream *s)
{
    s->state = RNL_STREAM_FREE;
    s->conn->shut &= (uint8_t)~RNL_SHUT_STREAM;
    s->conn->wants_room = 0;
    s->ep->open_streams--; /* lengthened before */
    rnl_ep_set_reach(s->ep);
    if (s->conn->post_first)
        rnl_ep_look_again(s->ep); /* what was queued behind it can go */
}

static void end_short(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s)
{
    size_t len = (size_t)(s->at - s->base);
    if (RNL_UNLIKELY(len != s->bound)) { /* fewer than announced: the item's place depends on its length */
        struct rnl_tx *t = &conn->pair.tx[0];
        unsigned head = s->answer ? sizeof(struct rnl_ask) : 0;
        unsigned char kept[RNL_LINE_PAYLOAD];
        int fresh = 1;
        memcpy(kept, s->base - head, len + head);
        s->key = rnl_head_key(s->answer ? RNL_LINE_ASK : RNL_LINE_ITEMS, s->handler, (unsigned)len + head);
        unsigned char *at = rnl_tx_place(t, s->key, &fresh); /* a line was left for it at begin */
        memcpy(at, kept, len + head);
        s->at = at + head + len;
        s->fresh = (uint8_t)fresh;
    }
    rnl_stream_publish(ep, conn, 0, s->key, s->at, s->fresh, 0);
    if (s->answer) {
        ep->c->messages_sent++;
        ep->c->bytes_sent += len;
        rnl_tx_close_other(&conn->pair.tx[0]);
    }
}

int rnl_stream_try_end(struct rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    struct rnl_conn *conn = s->conn;
    rnl_stream_lengthen_one(s);
    if (!rnl_stream_composing(s))
        return not_open();
    if (conn->shut & RNL_SHUT_DEAD) {
        rnl_stream_closed(s);
        return rnl_ep_gone(ep, conn->rank);
    }
    if (s->spoilt) {
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
            int status = rnl_stream_open_extent(ep, conn, s, 0); /* needs a line, no room */
            if (status < 0)
                return status;
        } else {
            struct rnl_tx *t = &conn->pair.tx[0];
            if (RNL_LINE_START(t->pos) >= t->stop && rnl_tx_refresh(t, ep->env, &conn->pair.distance) <= 0)
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

static RNL_NOINLINE int end_slow(struct rnl_stream *s)
{
    if (rnl_stream_end_medium(s))
        return 0;
    struct rnl_endpoint *ep = s->ep;
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    while ((status = rnl_stream_try_end(s)) == RNL_NO_ROOM) {
        if (ep->in_handler) {
            status = rnl_fail(RNL_ERR_CONTEXT,
                              "this message was begun outside the handler and cannot wait for room inside it");
            break;
        }
        status = rnl_stream_wait_room(ep, s->conn, 0);
        if (status < 0)
            break;
    }
    if (status < 0 && status != RNL_ERR_CONTEXT && !rnl_ep_forked(ep))
        rnl_stream_abort(s); /* it is invalid now */
    rnl_ep_leave(ep);
    return status;
}

int rnl_end(rnl_stream *s)
{
    return RNL_LIKELY(rnl_stream_end_short(s)) ? 0 : end_slow(s);
}

/* A short message that is half composed when the program waits: it goes on as an extent, so that the half can be seen.
 */
static void flush_short(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s)
{
    unsigned char bytes[RNL_LINE_PAYLOAD];
    size_t n = (size_t)(s->at - s->base);
    unsigned char *base = s->base, *at = s->at, *end = s->end;
    memcpy(bytes, s->base, n);
    if (!spare_line(ep, conn, &conn->pair.tx[0]) || rnl_stream_open_extent(ep, conn, s, (uint32_t)s->bound) < 0) {
        s->base = base, s->at = at, s->end = end; /* no room yet: the next call tries again */
        return;
    }
    if (!spare_line(ep, conn,
                    &conn->pair.tx[0])) { /* the extent took the last of the grant: its end would find no line */
        rnl_tx_bulk_take(&conn->pair.tx[0], s->bulk_was);
        s->base = base, s->at = at, s->end = end;
        return;
    }
    s->state = RNL_STREAM_EXTENT;
    memcpy(s->at, bytes, n);
    s->at += n;
    rnl_stream_publish_extent(ep, conn, s, 0);
}

void rnl_stream_want_room(struct rnl_endpoint *ep, struct rnl_conn *conn, int want)
{
    if (want && !conn->wants_room)
        rnl_ep_look_again(ep); /* whoever waits arms for room, too */
    conn->wants_room = want != 0;
}

void rnl_stream_flush(struct rnl_endpoint *ep)
{
    rnl_stream_lengthen(ep);
    for (uint32_t i = 0; ep->open_streams && i < ep->live; i++) {
        struct rnl_conn *conn = ep->hot[i];
        struct rnl_stream *s = &conn->out[0];
        if (!rnl_stream_composing(s) || conn->shut & RNL_SHUT_DEAD || !s->base)
            continue;
        size_t composed = (size_t)(s->at - s->base);
        if (s->state == RNL_STREAM_SHORT) {
            if (composed)
                flush_short(ep, conn, s);
            rnl_stream_want_room(ep, conn, composed && s->state == RNL_STREAM_SHORT);
        } else {
            if (composed > s->published && spare_line(ep, conn, &conn->pair.tx[0]))
                rnl_stream_publish_extent(ep, conn, s, 0);
            rnl_stream_want_room(ep, conn, composed > s->published);
        }
    }
}

int rnl_flush(rnl_endpoint *ep)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    rnl_stream_flush(ep);
    if (ep->remote)
        rnl_remote_send(ep);
    rnl_ep_leave(ep);
    return 0;
}
