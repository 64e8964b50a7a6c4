/* SPDX-License-Identifier: BSD-3-Clause
 *
 * extract.c - the progress calls: extract, wait, fd; what a blocked send calls; and what happens to open messages when
 * a peer goes. */
#include "stream/stream.h"

#include <stdlib.h>

/* Room was given back: the sender may sleep for want of it. */
RNL_INLINE void look_after(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_rx *r)
{
    if (RNL_UNLIKELY(r->told)) {
        r->told = 0;
        rnl_ep_told(ep, conn);
    }
}

static RNL_NOINLINE void take_answers(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_taking *t)
{
    struct rnl_rx *r = &conn->pair.rx[1];
    struct rnl_taking answers = {.max = UINT64_MAX};
    rnl_head h = rnl_rx_peek(r);
    if (h)
        rnl_stream_take(ep, conn, 1, h, &answers);
    look_after(ep, conn, r);
    t->things += answers.things;
}

/* The commonest case, inlined: one short message. 0 = take it the general way. */
RNL_INLINE int take_lone(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_rx *r, rnl_head h,
                         struct rnl_taking *t)
{
    struct rnl_stream *s = &conn->in[0];
    unsigned n = RNL_HEAD_N(h), len = RNL_HEAD_LEN(h), id = RNL_HEAD_HANDLER(h), acklane = RNL_HEAD_ACKLANE(h);
    if (RNL_UNLIKELY(RNL_HEAD_KIND(h) != RNL_LINE_ITEMS || n != r->n + 1 || n * len > RNL_LINE_PAYLOAD ||
                     id >= ep->handlers || acklane >= RNL_LANES || s->state != RNL_STREAM_FREE || conn->stuck[0] ||
                     conn->rank == ep->rank))
        return 0;
    const struct rnl_handler *hd = &ep->handler[id];
    if (RNL_UNLIKELY((!hd->stream && !hd->whole) || rnl_tx_acked(&conn->pair.tx[acklane], RNL_HEAD_ACK(h)) < 0))
        return 0;
    r->n = n; /* before the handler: what it sends says that this message was read */
    r->seen = h;
    const unsigned char *at = r->ring[r->line & r->mask].payload + (n - 1) * len;
    uint32_t before = rnl_ep_handler_begins(ep, 0);
    int ending;
    if (RNL_LIKELY(hd->stream != NULL)) {
        rnl_stream_setup(s, at, len, id, 0);
        ending = hd->stream(s, conn->rank, hd->ctx);
    } else {
        unsigned char copy[RNL_LINE_PAYLOAD] __attribute__((aligned(16)));
        rnl_copy_short(copy, at, len);
        ending = hd->whole(copy, len, conn->rank, hd->ctx) == RNL_QUIT ? RNL_QUIT : RNL_DONE;
    }
    rnl_ep_handler_ends(ep, 0, before);
    s->state = RNL_STREAM_FREE;
    ep->c->messages_received++;
    ep->c->bytes_received += len;
    t->things++;
    t->bytes += len;
    if (RNL_UNLIKELY(ending != RNL_DONE))
        t->quit = rnl_stream_ended(ep, s, ending);
    if (rnl_head_full(h))
        rnl_rx_leave(r);
    return 1;
}

RNL_INLINE int64_t extract(struct rnl_endpoint *ep, uint64_t max, unsigned *things)
{
    struct rnl_taking t = {.max = max};
    unsigned deaths = ep->deaths_seen;
    if (ep->unsettled) {
        rnl_stream_count(ep, &ep->unsettled->pair.tx[0]);
        rnl_ep_settle(ep);
    }
    if (RNL_UNLIKELY(ep->open_short != NULL))
        rnl_stream_flush(ep);
    rnl_ep_news(ep);
    uint32_t count = ep->hot_count; /* those that handlers connect are looked at next time */
    for (uint32_t k = count, i = ep->turn; k > 0; k--, i = i + 1 == count ? 0 : i + 1) {
        struct rnl_conn *conn = ep->hot[i];
        struct rnl_rx *r = &conn->pair.rx[0];
        if (RNL_UNLIKELY(conn->lane1_hot | conn->broken)) {
            if (conn->broken)
                continue;
            take_answers(ep, conn, &t);
        }
        if (RNL_UNLIKELY(t.bytes >= max))
            continue; /* answers of the others still come in */
        rnl_head h = rnl_rx_peek(r);
        if (h) {
            if (!take_lone(ep, conn, r, h, &t))
                rnl_stream_take(ep, conn, 0, h, &t);
            else if (rnl_rx_next(r) && !t.quit && t.bytes < max && (h = rnl_rx_peek(r)) != 0)
                rnl_stream_take(ep, conn, 0, h, &t);
            if (RNL_UNLIKELY(t.quit || t.bytes >= max)) {
                ep->turn = i + 1 < count ? i + 1 : 0; /* the next call begins with the next peer */
                if (t.quit)
                    break;
            }
        }
        if (RNL_UNLIKELY(r->bulk_read != r->told_bulk))
            rnl_rx_tell(r); /* who must reserve much at once needs to know that all of it is free */
        look_after(ep, conn, r);
    }
    if (RNL_UNLIKELY(ep->posts | ep->dying | ep->gathering)) {
        if (ep->gathering)
            t.things += rnl_stream_stacks(ep, &t);
        if (ep->posts)
            t.things += rnl_stream_posts(ep);
        if (ep->dying)
            rnl_ep_bury_dying(ep);
        if (ep->turn >= ep->hot_count)
            ep->turn = 0;
    }
    *things = t.things + (ep->deaths_seen - deaths);
    return (int64_t)t.bytes;
}

int64_t rnl_stream_extract(struct rnl_endpoint *ep, uint64_t max, unsigned *things)
{
    return extract(ep, max, things);
}

unsigned rnl_stream_progress(struct rnl_endpoint *ep)
{
    unsigned things;
    (void)rnl_stream_extract(ep, ep->flags & RNL_NO_RUN_IN_SEND ? 0 : UINT64_MAX, &things);
    return things;
}

static int may_progress(struct rnl_endpoint *ep)
{
    if (ep->in_handler)
        return rnl_fail(RNL_ERR_CONTEXT, "extract and wait do not belong inside a handler: return from it first");
    return 0;
}

int64_t rnl_extract(rnl_endpoint *ep, size_t max_bytes)
{
    unsigned things;
    int64_t bytes = rnl_ep_enter(ep);
    if (bytes < 0)
        return bytes;
    if (RNL_UNLIKELY(ep->in_handler)) {
        bytes = may_progress(ep);
    } else {
        bytes = extract(ep, max_bytes, &things);
        if (things) {
            ep->empties = 0;
            if (ep->fd_armed)
                rnl_ep_busy(ep);
        } else if (RNL_UNLIKELY(ep->job_gone)) {
            bytes = rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone");
        } else {
            rnl_ep_empty(ep);
        }
    }
    rnl_ep_leave(ep);
    return bytes;
}

int64_t rnl_wait(rnl_endpoint *ep, int64_t timeout_ns)
{
    struct rnl_idle w = {.deadline_ns = UINT64_MAX};
    unsigned things;
    int64_t bytes = rnl_ep_enter(ep);
    if (bytes < 0)
        return bytes;
    unsigned deaths = ep->deaths_seen; /* also those noticed while it sleeps */
    bytes = may_progress(ep);
    if (bytes == 0 && timeout_ns >= 0)
        w.deadline_ns = ep->env->ops->now_ns(ep->env) + (uint64_t)timeout_ns;
    while (bytes == 0) {
        bytes = rnl_stream_extract(ep, SIZE_MAX, &things);
        if (things || ep->deaths_seen != deaths) {
            if (ep->fd_armed)
                rnl_ep_busy(ep);
            break;
        }
        if (ep->job_gone)
            bytes = rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone");
        else
            bytes = rnl_ep_idle(ep, &w);
    }
    rnl_ep_leave(ep);
    return bytes;
}

int rnl_fd(rnl_endpoint *ep)
{
    int fd = rnl_ep_enter(ep);
    if (fd < 0)
        return fd;
    fd = rnl_ep_fd(ep);
    rnl_ep_leave(ep);
    return fd;
}

/* ---- a peer is gone ---- */

static void fail_incoming(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    if (s->state == RNL_STREAM_SUSPENDED) {
        s->dead = 1;
        if (s->drop) {
            rnl_coro_drop(s->coro);
            s->coro = NULL;
        } else {
            rnl_stream_feed(ep, s); /* resumes it: its receive says RNL_ERR_PEER_DEAD */
        }
    } else if (s->state == RNL_STREAM_GATHER) {
        if (s->h.stream)
            ep->gathering--;
        free(s->gather);
    }
    s->gather = NULL;
    s->at = s->end = s->base = NULL;
    s->state = RNL_STREAM_FREE;
    ep->c->stacks_in_use = rnl_coro_in_use(ep->coros);
}

static void gone(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    for (unsigned lane = 0; lane < 2; lane++)
        fail_incoming(ep, &conn->in[lane]);
    rnl_stream_posts_fail(ep, conn, RNL_ERR_PEER_DEAD); /* an open outgoing stream is its owner's to end */
}

void rnl_stream_attach(struct rnl_endpoint *ep)
{
    ep->on_gone = gone;
}
