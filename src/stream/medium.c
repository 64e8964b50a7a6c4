/* SPDX-License-Identifier: BSD-3-Clause
 *
 * medium.c - messages of some hundred or thousand bytes, for which everything is at hand: one extent, composed whole,
 * announced by one line. Each function does all of its step, or nothing: then the general way in begin.c, send.c,
 * take.c and extract.c does it. */
#include "base/copy.h"
#include "stream/lone.h"

enum { MEMCPY_MAX = 2048 /* above, the copy that bulk data gets */ };

/* Room, by what is known without asking the peer. */
static int has_room(const struct rnl_tx *t, uint64_t end)
{
    uint64_t line = rnl_tx_line(t), used = line - t->line0 + t->bulk_head / 64;
    return end - t->bulk_read <= t->bulk_mask && RNL_LINE_START(t->pos) < t->stop &&
           used + 1 + (end - t->bulk_head) / 64 <= t->granted - t->gave;
}

static void take_room(struct rnl_tx *t, uint64_t end)
{
    uint64_t line = rnl_tx_line(t), used = line - t->line0 + end / 64;
    uint64_t by_grant = line + 1 + (t->granted - t->gave - used), by_room = (t->acked >> 3) + RNL_LINES(t->wrap);
    t->bulk_head = end;
    rnl_tx_set_stop(t, (by_grant < by_room ? by_grant : by_room) * 8);
}

struct rnl_stream *rnl_stream_begin_medium(struct rnl_endpoint *ep, unsigned long peer, unsigned long handler,
                                           size_t bound)
{
    if (peer >= ep->reach || bound > RNL_MEDIUM || handler > 0xffff || ep->open_short)
        return NULL;
    struct rnl_conn *conn = ep->conn[peer];
    if (conn->shut)
        return NULL;
    struct rnl_tx *t = &conn->pair.tx[0];
    uint64_t start = t->bulk_head, at = start & t->bulk_mask, end = start + ((bound + 63) & ~(size_t)63);
    /* At half the area it may turn: ring.c. */
    if ((at ^ (at + bound)) & (RNL_BULK_BYTES / 2) || !t->bulk || !has_room(t, end))
        return NULL;
    take_room(t, end);
    struct rnl_stream *s = &conn->out[0];
    s->base = s->at = t->bulk + at;
    s->end = s->base + bound;
    s->before = 0;
    s->state = RNL_STREAM_EXTENT;
    s->handler = (uint16_t)handler;
    s->first = 1;
    s->spoilt = 0;
    s->answer = 0;
    s->bound = bound;
    s->start = s->bulk_was = start;
    s->reserved = (uint32_t)bound;
    s->published = 0;
    s->owner = ep->running;
    rnl_conn_shut(conn, RNL_SHUT_STREAM);
    ep->open_streams = 1;
    ep->reach = 0;
    ep->chores |= RNL_CHORE_OPEN;
    ep->c->extents_sent++;
    return s;
}

int rnl_stream_piece_medium(struct rnl_stream *s, const void *buf, size_t n)
{
    if (s->ep->open != RNL_EP_OPEN || s->state != RNL_STREAM_EXTENT || n > (size_t)(s->end - s->at) ||
        s->bound > RNL_MEDIUM || s->conn->shut != RNL_SHUT_STREAM)
        return 0;
    if (n > MEMCPY_MAX)
        rnl_copy_in(s->at, buf, n);
    else if (n > 0) /* buf may be NULL */
        memcpy(s->at, buf, n);
    s->at += n;
    return 1;
}

/* The lines that another message of this length will lie in were last read by the peer: they come back while this one
 * is on its way, or answered, and not when the next is composed. As long as the peer is known to be done with them. */
static inline void fetch_back(const struct rnl_tx *t, uint32_t bytes)
{
    uint64_t at = t->bulk_head & t->bulk_mask;
    if (at + bytes > t->bulk_mask || t->bulk_head + bytes - t->bulk_read > t->bulk_mask)
        return;
    for (uint32_t i = 0; i < bytes; i += RNL_LINE_BYTES)
        rnl_prefetch_write(t->bulk + at + i);
}

int rnl_stream_end_medium(struct rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    struct rnl_conn *conn = s->conn;
    if (ep->open != RNL_EP_OPEN || s->state != RNL_STREAM_EXTENT || s->published || !s->first || s->spoilt ||
        s->at != s->end || conn->shut != RNL_SHUT_STREAM || ep->open_streams != 1)
        return 0;
    struct rnl_tx *t = &conn->pair.tx[0];
    rnl_stream_count(ep, t);
    struct rnl_line *line = rnl_line_of(t->ring, t->wrap, RNL_LINE_START(t->pos)); /* it was free at begin */
    /* Field by field: composed on the stack and copied as a whole, it would be read before it is written there. And
     * `reserved`, which `bytes` is, not from where it lies: read by one load with its neighbour, as compilers do, it
     * waits for every store before it, and those go to the peer's core. */
    uint32_t bytes = (uint32_t)(s->end - s->base);
    struct rnl_extent *e = (struct rnl_extent *)(void *)line->payload;
    e->start = s->start;
    e->reserved = e->published = bytes;
    e->bound = s->bound;
    e->answer = s->answer;
    e->flags = RNL_EXTENT_FIRST | RNL_EXTENT_LAST | RNL_EXTENT_CLOSED;
    rnl_tx_publish_closed(t, rnl_head_key(RNL_LINE_EXTENT, s->handler, sizeof *e), line, conn->pair.rx[0].pos);
    ep->c->messages_sent++;
    ep->c->bytes_sent += bytes;
    s->state = RNL_STREAM_FREE;
    conn->shut = 0;
    conn->wants_room = 0; /* a flush may have found no line for it */
    ep->open_streams = 0;
    ep->reach = ep->size;
    ep->chores &= ~RNL_CHORE_OPEN;
    (void)rnl_ep_published(ep, conn, t);
    fetch_back(t, bytes);
    return 1;
}

/* ---- receiving ---- */

enum { AHEAD_BYTES = 1024 };

/* The bytes of the next message cross while this one's are copied; before it is there they are not read, or the
 * sender's core would have to fetch them back. */
static inline void fetch_next(const struct rnl_rx *r, uint64_t at, uint32_t bytes)
{
    if (!rnl_rx_begun(r, atomic_load_explicit(&r->next->head, memory_order_relaxed)))
        return;
    const unsigned char *p = rnl_rx_bulk_at(r, at);
    for (uint32_t i = 0; i < bytes && i < AHEAD_BYTES; i += RNL_LINE_BYTES)
        __builtin_prefetch(p + i);
}

/* A message that is all here, lies in one extent, and asks for no answer: for its handler, in place. */
RNL_INLINE int take_whole(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_head h, const struct rnl_extent *e,
                          struct rnl_taking *t)
{
    struct rnl_rx *r = &conn->pair.rx[0];
    struct rnl_stream *s = &conn->in[0];
    unsigned id = RNL_HEAD_HANDLER(h);
    if (e->flags != (RNL_EXTENT_FIRST | RNL_EXTENT_LAST | RNL_EXTENT_CLOSED) || e->answer || e->published != e->bound ||
        e->bound > RNL_MEDIUM || id >= ep->handlers || s->state != RNL_STREAM_FREE)
        return 0;
    const struct rnl_handler *hd = &ep->handler[id];
    if (!hd->stream)
        return 0;
    uint32_t bytes = e->published;
    uint64_t end = e->start + ((bytes + 63u) & ~63u);
    rnl_rx_pass(r, h); /* before the handler: what it sends says so */
    r->bulk_next = end;
    rnl_stream_setup(s, rnl_rx_bulk_at(r, e->start), bytes, id, 0);
    s->bound = bytes;
    fetch_next(r, end, bytes);
    uint32_t before = rnl_ep_handler_begins(ep, 0);
    int ending = hd->stream(s, conn->rank, hd->ctx);
    if (RNL_UNLIKELY(rnl_ep_forked(ep)))
        return 1;
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
    return 1;
}

int rnl_stream_take_medium(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_head h, const struct rnl_extent *e,
                           struct rnl_taking *t)
{
    return take_whole(ep, conn, h, e, t);
}

/* Kind, length and acknowledged lane of the one header that such a message may have. */
static const uint16_t medium_head = (uint16_t)(RNL_LINE_EXTENT << 11 | sizeof(struct rnl_extent) << 5);
static_assert((rnl_head)(uint16_t)(RNL_LINE_EXTENT << 11 | sizeof(struct rnl_extent) << 5) << 32 ==
                  ((rnl_head)sizeof(struct rnl_extent) << 37 | (rnl_head)RNL_LINE_EXTENT << 43),
              "medium_head is part of a key");

/* What is there after h, if it may be such a message, too. */
static inline rnl_head another(const struct rnl_rx *r)
{
    rnl_head h = atomic_load_explicit(&r->next->head, memory_order_acquire); /* A1 */
    return rnl_rx_begun(r, h) == 1 ? h : 0;
}

int64_t rnl_stream_extract_medium(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h)
{
    struct rnl_rx *r = &conn->pair.rx[0];
    struct rnl_taking t = {.max = max};
    uint64_t begin = r->pos;
    struct rnl_extent e;
    while (h && (uint16_t)(h >> 32) == medium_head) {
        if (RNL_UNLIKELY(rnl_tx_acked(&conn->pair.tx[0], r, RNL_HEAD_ACK(h)) < 0))
            break;
        rnl_rx_load(&e, r->next->payload, sizeof e);
        if (RNL_UNLIKELY(rnl_rx_extent(r, &e) < 0) || !take_whole(ep, conn, h, &e, &t))
            break;
        if (RNL_UNLIKELY(rnl_ep_forked(ep)))
            return rnl_ep_enter_slow(ep);
        t.things++;
        if (RNL_UNLIKELY(r->told)) { /* room was given back: the sender may sleep for want of it */
            r->told = 0;
            rnl_ep_told(ep, conn);
        }
        if (RNL_UNLIKELY(t.quit || t.bytes >= max || conn->odd || r->pos - begin >= RNL_LINES(r->wrap) * 8))
            break;
        if (t.things % RNL_AHEAD == 0 && !conn->pair.away &&
            !rnl_rx_ahead(r, RNL_AHEAD)) /* or each line would cross several times; see take.c */
            rnl_ep_relax(ep);
        h = another(r);
    }
    if (RNL_UNLIKELY(!t.things))
        return rnl_stream_extract_any(ep, max);
    ep->empties = 0;
    return rnl_stream_extract_rest(ep, conn, &t);
}
