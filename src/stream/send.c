/* SPDX-License-Identifier: BSD-3-Clause
 *
 * send.c - the calls that send: they begin, compose and end messages, and wait for room if they must.
 *
 * Clause c of the deadlock rule is kept here: a send that must wait outside handlers makes progress meanwhile. */
#include "base/bug.h"
#include "stream/stream_internal.h"

#include "endpoint/net.h"

/* ---- waiting for room ---- */

enum { FULL_BEFORE_GROW = 16, FULL_OF_CELLS = 8, FULL_OF_BULK = 1 };

static RNL_COLD int no_job(const struct rnl_endpoint *ep)
{
    return rnl_fail(RNL_ERR_JOB, "the %s", ep->close.job_gone ? "launcher of this job is gone" : "job ends");
}

void rnl_send_timeout(rnl_endpoint *ep, int64_t timeout_ns)
{
    if (rnl_ep_enter(ep) < 0)
        return; /* a forked child sends nothing */
    ep->send_timeout_ns = timeout_ns < 0 ? UINT64_MAX : (uint64_t)timeout_ns;
    rnl_ep_leave(ep);
}

/* Returns when a call that begins to wait now has to give up; UINT64_MAX = never. */
static uint64_t deadline_of(const struct rnl_endpoint *ep)
{
    if (RNL_LIKELY(ep->send_timeout_ns == UINT64_MAX))
        return UINT64_MAX;
    uint64_t now = ep->env->ops->now_ns(ep->env);
    return ep->send_timeout_ns < UINT64_MAX - now ? now + ep->send_timeout_ns : UINT64_MAX;
}

static bool is_late(struct rnl_endpoint *ep, uint64_t deadline_ns)
{
    return deadline_ns != UINT64_MAX && ep->env->ops->now_ns(ep->env) >= deadline_ns;
}

static RNL_COLD int late(const struct rnl_endpoint *ep, unsigned peer, const char *lacks)
{
    return rnl_fail(RNL_TIMED_OUT,
                    "%s rank %u within the %llu us that rnl_send_timeout allows; try again, abort the message, or "
                    "allow more",
                    lacks, peer, (unsigned long long)ep->send_timeout_ns / 1000);
}

/* Makes progress once, or idles if there is nothing to do. Returns false if the process has forked: then the endpoint
 * is not its own. */
static bool progress_or_idle(struct rnl_endpoint *ep, struct rnl_idle *w)
{
    if (rnl_stream_progress(ep))
        w->polls = w->yields = 0;
    else if (!rnl_ep_forked(ep))
        rnl_ep_idle(ep, w);
    return !rnl_ep_forked(ep);
}

/* Waits for a free cell (and `bulk` contiguous bytes) to conn on lane 0, and makes progress meanwhile. */
static int wait_room(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t bulk, uint64_t deadline_ns)
{
    struct rnl_idle w = {.deadline_ns = deadline_ns, .room = conn, .bulk = bulk};
    struct rnl_tx *t = &conn->channel.tx[0];
    ep->c->no_room++;
    ep->c->waiting_for_rank = conn->rank + 1;
    uint64_t since = 0;
    int status = 0;
    int full = bulk ? 0 : FULL_OF_CELLS;
    conn->waits++;
    for (;;) {
        if (conn->dying | conn->gone) {
            status = rnl_ep_gone(ep, conn->rank);
            break;
        }
        if (ep->close.job_gone | ep->close.give_up) {
            status = no_job(ep);
            break;
        }
        int room = rnl_tx_refresh(t, ep->env, &conn->channel.distance);
        if (room == 0 && bulk && conn->channel.is_remote)
            full = FULL_OF_BULK;
        if (room > 0 && bulk)
            room = rnl_tx_bulk_piece(t, bulk, bulk) != 0;
        if (room < 0) {
            status = rnl_ep_broken(ep, conn, "a reading position past what was written");
            break;
        }
        if (room > 0) {
            /* The big ring is worth having when the small one was found full again and again. To other hosts the
             * cells of long messages fill the small ring, too: on a long path it would limit what is in flight
             * before the bulk area does. The change takes one cell, and the next send needs none of the small ring.
             * It is put off while somebody else, a handler or a thread, composes in that cell, or needs it for the
             * end of an extent. */
            if (!conn->channel.big_tx && full && rnl_stream_out(conn)->state != RNL_STREAM_SHORT &&
                rnl_stream_out(conn)->state != RNL_STREAM_EXTENT &&
                (conn->full_count = (uint8_t)(conn->full_count + full)) >= FULL_BEFORE_GROW) {
                rnl_stream_count(ep, t);
                if (rnl_channel_grow_tx(&conn->channel) == 0) {
                    ep->c->rings_grown++;
                    rnl_ep_published(ep, conn, t);
                }
            }
            break;
        }
        if (is_late(ep, deadline_ns)) {
            status = late(ep, conn->rank, "there was no room for a message to");
            break;
        }
        if (since == 0)
            ep->c->waiting_since_ns = since = ep->env->ops->now_ns(ep->env);
        if (!progress_or_idle(ep, &w))
            return rnl_ep_enter_slow(ep);
    }
    conn->waits--;
    ep->c->waiting_for_rank = ep->c->waiting_since_ns = 0;
    if (since)
        ep->c->no_room_wait_ns += ep->env->ops->now_ns(ep->env) - since;
    return status;
}

/* Returns true if messages that no call waits for go first: queued posts, and the announcement of an abort. */
static bool queued(const struct rnl_conn *conn)
{
    return conn->post_first || rnl_stream_out(conn)->state == RNL_STREAM_ABORTING;
}

/* Does what rnl_begin does, without entering the endpoint. */
static int begin(struct rnl_endpoint *ep, const struct rnl_message *b, struct rnl_stream **out)
{
    struct rnl_conn *conn;
    int no_wait = ep->fast.in_handler || b->flags & RNL_NO_WAIT;
    int status = rnl_stream_check_begin(ep, b);
    if (status < 0)
        return status;
    rnl_stream_promote(ep);
    if (!ep->fast.in_handler) {
        rnl_ep_take_events(ep);
        rnl_stream_flush(ep);
    }
    if (no_wait && b->bound > RNL_RESERVE_MAX)
        return rnl_stream_too_long(b->bound);
    const uint64_t deadline_ns = no_wait ? UINT64_MAX : deadline_of(ep);
    if (no_wait)
        status = rnl_ep_connect_soon(ep, b->peer, &conn);
    else if ((status = rnl_ep_connect(ep, b->peer, &conn)) == RNL_NO_ROOM)
        status = late(ep, b->peer, "the launcher has not connected");
    if (status < 0)
        return status;
    for (;;) {
        if (conn->shut & RNL_SHUT_DEAD)
            return rnl_ep_gone(ep, b->peer);
        if (rnl_stream_composing(rnl_stream_out(conn)) && !conn->post_sending)
            return rnl_fail(RNL_BUSY, "a message to rank %u is open already; %s", b->peer,
                            ep->fast.in_handler ? "leave this one to the program, or queue it with rnl_post"
                                                : "end it first");
        status = queued(conn) && !RNL_BUG(stream_send_overtakes_queue)
                     ? RNL_NO_ROOM
                     : rnl_stream_try_begin(ep, conn, b, no_wait, out);
        if (status != RNL_NO_ROOM || no_wait)
            break;
        uint32_t bulk = rnl_stream_is_short(b) ? 0 : b->bound < RNL_PIECE_MIN ? (uint32_t)b->bound : RNL_PIECE_MIN;
        if (queued(conn)) {
            struct rnl_idle w = {.deadline_ns = deadline_ns};
            conn->waits++; /* rnl_readmit has to wait, too */
            while (queued(conn) && !(conn->dying | conn->gone | ep->close.job_gone | ep->close.give_up) &&
                   !is_late(ep, deadline_ns))
                if (!progress_or_idle(ep, &w))
                    return rnl_ep_enter_slow(ep);
            conn->waits--;
            if (queued(conn) && is_late(ep, deadline_ns))
                return late(ep, b->peer, "queued messages have not left for");
            if (ep->close.job_gone | ep->close.give_up)
                return no_job(ep);
        } else {
            status = wait_room(ep, conn, bulk, deadline_ns);
            if (status < 0)
                break;
        }
    }
    if (status == RNL_NO_ROOM) {
        ep->c->no_room++;
        uint64_t max;
        if (b->bound > RNL_CELL_PAYLOAD && rnl_tx_bulk_never(&conn->channel.tx[0], (uint32_t)b->bound, &max))
            return rnl_fail(RNL_ERR_TOO_LONG,
                            "a message of up to %zu bytes cannot be reserved at once: rank %u lets us have %llu bytes; "
                            "send it from outside a handler and without RNL_NO_WAIT, rnl_post it, or raise that rank's "
                            "rnl_options.receive_budget",
                            b->bound, b->peer, (unsigned long long)max);
        rnl_ep_ring_bell(ep, conn, RNL_ARMED_CELLS); /* the peer may sleep, and can grant more */
        return rnl_fail(RNL_NO_ROOM, "no room for a message of up to %zu bytes to rank %u now; %s", b->bound, b->peer,
                        ep->fast.in_handler
                            ? "leave it to the program, or queue it with rnl_post: trying again here cannot succeed"
                            : "try again after the next extract");
    }
    return status;
}

int rnl_stream_wait_ended(struct rnl_endpoint *ep, unsigned peer)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    struct rnl_conn *conn = peer < ep->size ? ep->peer[peer].conn : NULL;
    const struct rnl_stream *s = conn ? rnl_stream_out(conn) : NULL;
    struct rnl_idle w = {.deadline_ns = deadline_of(ep)};
    if (s)
        conn->waits++;
    while (status == 0 && s && rnl_stream_composing(s) && !conn->post_sending) {
        if (ep->fast.in_handler) {
            status = rnl_fail(RNL_NO_ROOM, "a message to rank %u is open already; leave this one to the program", peer);
        } else if (ep->close.job_gone | ep->close.give_up) {
            status = no_job(ep);
        } else if (!s->owner && pthread_equal(s->thread, pthread_self())) {
            status = rnl_fail(RNL_BUSY, "this thread has a message to rank %u open already; end it first", peer);
        } else if (is_late(ep, w.deadline_ns)) {
            status = late(ep, peer, "another thread has not ended its message to");
        } else if (!progress_or_idle(ep, &w)) {
            return rnl_ep_enter_slow(ep);
        }
    }
    if (s)
        conn->waits--;
    rnl_ep_leave(ep);
    return status;
}

/* ---- short messages ---- */

int rnl_stream_publish_other(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_header key, unsigned char *end)
{
    int status = rnl_stream_publish(ep, conn, 0, key, end, 1, 0); /* another key begins a cell */
    if (!conn->shut)
        rnl_tx_fast_on(&conn->channel.tx[0]);
    return status;
}

void rnl_stream_end_other(struct rnl_stream *s, unsigned char *end)
{
    (void)rnl_stream_publish_other(s->ep, s->conn, s->key, end);
}

static RNL_NOINLINE int send_slow(struct rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n)
{
    struct rnl_stream *s;
    struct rnl_message b = {.peer = peer, .handler = handler, .bound = n};
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    if (n > RNL_SHORT_MAX)
        status = rnl_fail(RNL_ERR_TOO_LONG, "rnl_send takes up to %d bytes, not %zu; use rnl_begin, rnl_piece, rnl_end",
                          RNL_SHORT_MAX, n);
    else
        status = begin(ep, &b, &s);
    if (status == 0 && n > 0) {
        rnl_copy_short(s->at, buf, s->state == RNL_STREAM_DISCARD_OUT ? 0 : n);
        s->at += n;
    }
    if (status == 0)
        status = rnl_stream_try_end(s);
    rnl_ep_leave(ep);
    return status;
}

/* Sends on the fast path a message of the kind of conn's open cell. Nothing is left to do after a call, so it needs no
 * frame. */
RNL_INLINE int send_short(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned peer, unsigned handler,
                          const void *buf, size_t n)
{
    struct rnl_tx *t = &conn->channel.tx[0];
    uint64_t pos = t->pos;
    if (RNL_LIKELY(rnl_tx_room_in_cell(t))) { /* both branches end apart: nothing is decided twice */
        unsigned char *at = t->end;
        rnl_copy_short(at, buf, n);
        rnl_tx_publish_at(t, t->key, at + n, pos, conn->channel.rx[0].pos, 0);
        return rnl_ep_published(ep, conn, t);
    }
    if (RNL_UNLIKELY(pos >= t->fast_stop))
        return send_slow(ep, peer, handler, buf, n);
    pos = rnl_tx_begin_cell(t);
    struct rnl_cell *cell = rnl_cell_of(t->ring, t->wrap, pos);
    rnl_copy_short(cell->payload, buf, n);
    rnl_tx_publish_in(t, t->key, cell, cell->payload + n, pos, conn->channel.rx[0].pos, 0);
    return rnl_ep_published(ep, conn, t);
}

/* Sends a short message of another kind than the last to its peer, or the first since the fast path was closed. */
static RNL_NOINLINE int send_other(struct rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n)
{
    struct rnl_conn *conn = ep->fast.conn[peer];
    struct rnl_tx *t = &conn->channel.tx[0];
    rnl_header key = rnl_header_key(RNL_CELL_RECORDS, handler, (unsigned)n);
    uint64_t start = RNL_CELL_START(t->pos);
    if (n > RNL_SHORT_MAX || handler > 0xffff || conn->shut || start >= t->stop)
        return send_slow(ep, peer, handler, buf, n);
    if (key == t->key && t->pos & 7) {
        rnl_tx_fast_on(t);
        return send_short(ep, conn, peer, handler, buf, n);
    }
    unsigned char *at = rnl_cell_of(t->ring, t->wrap, start)->payload;
    rnl_copy_short(at, buf, n);
    return rnl_stream_publish_other(ep, conn, key, at + n);
}

static RNL_NOINLINE int send_n(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned peer, unsigned handler,
                               const void *buf, size_t n)
{
    const struct rnl_tx *t = &conn->channel.tx[0];
    if (RNL_UNLIKELY(handler != t->fast_handler || n != t->fast_bytes || n > RNL_SHORT_MAX))
        return send_other(ep, peer, handler, buf, n);
    return send_short(ep, conn, peer, handler, buf, n);
}

/* Sends a short message for which the fast path is closed. */
static RNL_NOINLINE int send_closed(struct rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n)
{
    if (!rnl_ep_open_path(ep))
        return send_slow(ep, peer, handler, buf, n);
    int status = rnl_send(ep, peer, handler, buf, n);
    rnl_ep_shut_path(ep);
    return status;
}

int rnl_send(rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n)
{
    if (RNL_UNLIKELY(peer >= ep->fast.ranks || ep->fast.open_short))
        return send_closed(ep, peer, handler, buf, n);
    struct rnl_conn *conn = ep->fast.conn[peer];
    const struct rnl_tx *t = &conn->channel.tx[0];
    if (RNL_LIKELY(n == 8 && t->fast_bytes == 8 && handler == (uint32_t)t->fast_handler))
        return send_short(ep, conn, peer, handler, buf, 8);
    return send_n(ep, conn, peer, handler, buf, n);
}

/* ---- begin ---- */

/* Begins on the general path. It is a function of its own, so that rnl_begin needs no frame. */
static RNL_NOINLINE int begin_slow(struct rnl_endpoint *ep, const struct rnl_message *b, struct rnl_stream **out)
{
    if (!b->answer && !(b->flags & ~(unsigned)RNL_NO_WAIT)) {
        struct rnl_stream *s = b->bound > RNL_CELL_PAYLOAD ? rnl_stream_begin_eager(ep, b->peer, b->handler, b->bound)
                                                           : rnl_stream_begin_other(ep, b->peer, b->handler, b->bound);
        if (s) {
            *out = s;
            return 0;
        }
    }
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = begin(ep, b, out);
    rnl_ep_leave(ep);
    return status;
}

static RNL_NOINLINE int begin_closed(struct rnl_endpoint *ep, const struct rnl_message *b, struct rnl_stream **out)
{
    if (!rnl_ep_open_path(ep))
        return begin_slow(ep, b, out);
    int status = rnl_begin(ep, b, out);
    rnl_ep_shut_path(ep);
    return status;
}

int rnl_begin(rnl_endpoint *ep, const struct rnl_message *b, rnl_stream **out)
{
    if (RNL_UNLIKELY(b->answer || b->flags & ~(unsigned)RNL_NO_WAIT))
        return begin_slow(ep, b, out);
    struct rnl_stream *s = rnl_stream_begin_short(ep, b->peer, b->handler, b->bound);
    if (RNL_UNLIKELY(!s))
        return ep->fast.open == RNL_EP_SERVED ? begin_closed(ep, b, out) : begin_slow(ep, b, out);
    *out = s;
    return 0;
}

/* ---- piece, end, flush ---- */

static RNL_NOINLINE int piece_slow(struct rnl_stream *s, const void *buf, size_t n)
{
    if (rnl_stream_piece_eager(s, buf, n))
        return 0;
    struct rnl_endpoint *ep = s->ep;
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    const unsigned char *from = buf;
    const uint64_t deadline_ns = deadline_of(ep);
    if (s->piece_failed && rnl_stream_composing(s)) { /* the same call as before: its first bytes were taken then */
        if (n < s->piece_taken) {
            status = rnl_fail(RNL_ERR_ARG,
                              "of the last piece to rank %u %zu bytes were taken before its time had passed: give the "
                              "same %zu bytes or more again, not %zu, or abort the message",
                              s->conn->rank, s->piece_taken, s->piece_taken, n);
            rnl_ep_leave(ep);
            return status;
        }
        from += s->piece_taken;
        n -= s->piece_taken;
    }
    for (;;) {
        int64_t took = rnl_stream_put(s, from, n);
        status = took < 0 ? (int)took : 0;
        if (took < 0 || (size_t)took == n)
            break;
        from += took;
        n -= (size_t)took;
        if (ep->fast.in_handler) { /* only a stream begun outside can be in chunks */
            status = rnl_fail(RNL_ERR_CONTEXT,
                              "this message was begun outside the handler and cannot wait for room inside it");
            break;
        }
        uint64_t left = s->bound - s->before;
        status = wait_room(ep, s->conn,
                           s->base                ? 0
                           : left < RNL_PIECE_MIN ? (uint32_t)left
                                                  : RNL_PIECE_MIN,
                           deadline_ns);
        if (status < 0)
            break;
    }
    if (rnl_stream_composing(s)) {
        s->piece_failed = status < 0 && from != buf;
        s->piece_taken = (size_t)(from - (const unsigned char *)buf);
    }
    rnl_ep_leave(ep);
    return status;
}

static RNL_NOINLINE int piece_closed(struct rnl_stream *s, const void *buf, size_t n)
{
    if (!rnl_ep_open_path(s->ep))
        return piece_slow(s, buf, n);
    int status = rnl_piece(s, buf, n);
    rnl_ep_shut_path(s->ep);
    return status;
}

int rnl_piece(rnl_stream *s, const void *buf, size_t n)
{
    if (RNL_LIKELY(rnl_stream_piece_short(s, buf, n)))
        return 0;
    return s->ep->fast.open == RNL_EP_SERVED ? piece_closed(s, buf, n) : piece_slow(s, buf, n);
}

static RNL_NOINLINE int end_slow(struct rnl_stream *s)
{
    if (rnl_stream_end_eager(s))
        return 0;
    struct rnl_endpoint *ep = s->ep;
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    const uint64_t deadline_ns = deadline_of(ep);
    while ((status = rnl_stream_try_end(s)) == RNL_NO_ROOM) {
        if (ep->fast.in_handler) {
            status = rnl_fail(RNL_ERR_CONTEXT,
                              "this message was begun outside the handler and cannot wait for room inside it");
            break;
        }
        status = wait_room(ep, s->conn, 0, deadline_ns);
        if (status < 0)
            break;
    }
    if (status < 0 && status != RNL_ERR_CONTEXT && status != RNL_TIMED_OUT && !rnl_ep_forked(ep))
        rnl_stream_abort(s); /* it is invalid now */
    rnl_ep_leave(ep);
    return status;
}

static RNL_NOINLINE int end_closed(struct rnl_stream *s)
{
    if (!rnl_ep_open_path(s->ep))
        return end_slow(s);
    int status = rnl_end(s);
    rnl_ep_shut_path(s->ep);
    return status;
}

int rnl_end(rnl_stream *s)
{
    if (RNL_LIKELY(rnl_stream_end_short(s)))
        return 0;
    return s->ep->fast.open == RNL_EP_SERVED ? end_closed(s) : end_slow(s);
}

int rnl_flush(rnl_endpoint *ep)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    rnl_stream_flush(ep);
    if (ep->remote)
        rnl_ep_net_send(ep);
    rnl_ep_leave(ep);
    return 0;
}
