/* SPDX-License-Identifier: BSD-3-Clause
 *
 * begin.c - opening messages: the place in a line, the extent, the next chunk; and waiting for room.
 *
 * Rule b of the deadlock rule lives here: inside a handler a begin reserves the whole bound or says RNL_NO_ROOM; and
 * rule c: a send that must wait outside handlers makes progress meanwhile. */
#include "stream/stream.h"

enum { FULL_BEFORE_GROW = 16, FULL_OF_LINES = 8, FULL_OF_BULK = 1 };

/* One more open stream that is not of the short path. */
static void opened(struct rnl_endpoint *ep)
{
    ep->open_streams++;
    rnl_ep_set_reach(ep);
}

/* A stream of the short path becomes one like any other. */
void rnl_stream_lengthen_one(struct rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    struct rnl_tx *t = &s->conn->pair.tx[0];
    if (ep->open_short != s)
        return;
    ep->open_short = NULL;
    opened(ep);
    s->at = ep->short_at;
    s->end = ep->short_end;
    s->fresh = (ep->short_pos & 7) == 0;
    if (!(ep->short_pos & RNL_POS_OTHER)) {
        s->key = t->key;
        if (s->fresh)
            rnl_tx_unbegin_line(t);
    }
    rnl_conn_shut(s->conn, RNL_SHUT_STREAM);
    s->state = RNL_STREAM_SHORT;
    s->bound = RNL_HEAD_LEN(s->key);
    s->base = s->end - s->bound;
    s->before = 0;
    s->answer = 0;
    s->handler = (uint16_t)RNL_HEAD_HANDLER(s->key);
    s->first = 1;
    s->spoilt = 0;
    s->owner = ep->running; /* a handler that suspends lengthens its stream before */
}

struct rnl_stream *rnl_stream_begin_other(struct rnl_endpoint *ep, unsigned long peer, unsigned long handler,
                                          size_t bound)
{
    if (bound > RNL_LINE_PAYLOAD || handler > 0xffff || peer >= ep->reach || ep->open_short)
        return NULL;
    struct rnl_conn *conn = ep->conn[peer];
    struct rnl_tx *t = &conn->pair.tx[0];
    struct rnl_stream *s = &conn->out[0];
    uint64_t start = RNL_LINE_START(t->pos);
    if (conn->shut || start >= t->stop)
        return NULL;
    s->key = rnl_head_key(RNL_LINE_ITEMS, (unsigned)handler, (unsigned)bound);
    if (s->key == t->key && t->pos & 7) {
        rnl_tx_quick(t);
        return rnl_stream_begin_short(ep, peer, handler, bound);
    }
    ep->open_short = s;
    ep->short_pos = start | RNL_POS_OTHER;
    ep->short_at = rnl_line_of(t->ring, t->wrap, start)->payload;
    ep->short_end = ep->short_at + bound;
    return s;
}

static int try_short(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, const struct rnl_begin *b)
{
    struct rnl_tx *t = &conn->pair.tx[0];
    unsigned head = b->answer ? sizeof(struct rnl_ask) : 0, len = (unsigned)b->bound + head;
    int fresh = 1;
    s->key = rnl_head_key(b->answer ? RNL_LINE_ASK : RNL_LINE_ITEMS, b->handler, len);
    unsigned char *at = rnl_tx_place(t, s->key, &fresh); /* asks have a line of their own: none of their key is open */
    /* A line must be left even when this item is appended: should fewer bytes come than announced, it moves to a fresh
     * one. */
    if (!at || RNL_LINE_START(t->pos) >= t->stop) {
        int status = rnl_tx_refresh(t, ep->env, &conn->pair.distance);
        if (status <= 0)
            return status < 0 ? rnl_ep_broken(ep, conn, "a reading position past what was written") : RNL_NO_ROOM;
        at = rnl_tx_place(t, s->key, &fresh);
    }
    if (b->answer) {
        struct rnl_ask ask = {.answer = (uint32_t)b->answer};
        memcpy(at, &ask, sizeof ask);
    }
    s->base = s->at = at + head;
    s->end = s->at + b->bound;
    s->fresh = (uint8_t)fresh;
    s->state = RNL_STREAM_SHORT;
    return 0;
}

int rnl_stream_open_extent(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, uint32_t bytes)
{
    struct rnl_tx *t = &conn->pair.tx[s->lane];
    uint64_t start;
    int status;
    if (RNL_LINE_START(t->pos) >= t->stop) {
        status = rnl_tx_refresh(t, ep->env, &conn->pair.distance);
        if (status <= 0)
            return status < 0 ? rnl_ep_broken(ep, conn, "a reading position past what was written") : RNL_NO_ROOM;
    }
    if (RNL_UNLIKELY(!t->bulk) && (status = rnl_pair_reach_mine(&conn->pair)) < 0)
        return status;
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

/* The next chunk: as much of `left` as room and grant allow now. */
int rnl_stream_open_chunk(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, uint64_t left)
{
    uint32_t want = left < RNL_CHUNK ? (uint32_t)left : RNL_CHUNK;
    int64_t fits = rnl_tx_bulk_piece(&conn->pair.tx[0], want, want < RNL_PIECE_MIN ? want : RNL_PIECE_MIN);
    if (fits < 0)
        return rnl_ep_broken(ep, conn, "a bulk position past what was written");
    if (fits == 0 && want > 0)
        return RNL_NO_ROOM;
    return rnl_stream_open_extent(ep, conn, s, (uint32_t)fits);
}

static int too_long(size_t bound)
{
    return rnl_fail(RNL_ERR_TOO_LONG,
                    "a message of up to %zu bytes cannot be reserved at once: inside a handler, or with RNL_NO_WAIT, "
                    "the limit is %d; send it from the program (or queue it: rnl_post, FM 1.1's FM_send)",
                    bound, RNL_RESERVE_MAX);
}

/* It is one item of a line, and needs nothing of the bulk area. */
static int is_short(const struct rnl_begin *b)
{
    return b->bound <= (b->answer ? RNL_ASK_MAX : RNL_LINE_PAYLOAD);
}

int rnl_stream_try_begin(struct rnl_endpoint *ep, struct rnl_conn *conn, const struct rnl_begin *b, int no_wait,
                         struct rnl_stream **out)
{
    struct rnl_stream *s = &conn->out[0];
    int status = 0;
    s->bound = b->bound;
    s->before = 0;
    s->handler = (uint16_t)b->handler;
    s->answer = (uint32_t)b->answer;
    s->first = 1;
    s->owner = ep->running;
    s->spoilt = 0;
    if (is_short(b)) {
        status = try_short(ep, conn, s, b);
    } else if (b->bound <= RNL_EXTENT_BOUND || no_wait) {
        if (b->bound > RNL_RESERVE_MAX)
            return too_long(b->bound);
        status = rnl_stream_open_extent(ep, conn, s, (uint32_t)b->bound);
        if (status == 0)
            s->state = RNL_STREAM_EXTENT;
        if (status == RNL_NO_ROOM && !no_wait && rnl_tx_bulk_piece(&conn->pair.tx[0], RNL_CHUNK, RNL_PIECE_MIN) > 0)
            status = 0; /* the grant is smaller than the message, or it will be: go piecewise */
    }
    if (status == 0 && s->state == RNL_STREAM_FREE) {
        s->state = RNL_STREAM_CHUNKS;
        s->base = s->at = s->end = NULL;
    }
    if (status < 0)
        return status;
    rnl_conn_shut(conn, RNL_SHUT_STREAM);
    if (b->answer && !conn->lane1_hot) {
        conn->lane1_hot = 1;
        rnl_ep_set_only(ep);
    }
    opened(ep);
    *out = s;
    return 0;
}

static RNL_COLD int no_job(const struct rnl_endpoint *ep)
{
    return rnl_fail(RNL_ERR_JOB, "the %s", ep->job_gone ? "launcher of this job is gone" : "job ends");
}

int rnl_stream_wait_room(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t bulk)
{
    struct rnl_idle w = {.deadline_ns = UINT64_MAX, .room = conn, .bulk = bulk};
    struct rnl_tx *t = &conn->pair.tx[0];
    ep->c->no_room++;
    ep->c->waiting_for_rank = conn->rank + 1;
    uint64_t since = 0;
    int status = 0;
    int full = bulk ? 0 : FULL_OF_LINES;
    conn->waits++;
    for (;;) {
        if (conn->dying | conn->gone) {
            status = rnl_ep_gone(ep, conn->rank);
            break;
        }
        if (ep->job_gone | ep->give_up) {
            status = no_job(ep);
            break;
        }
        int room = rnl_tx_refresh(t, ep->env, &conn->pair.distance);
        if (room == 0 && bulk && conn->pair.away)
            full = FULL_OF_BULK;
        if (room > 0 && bulk)
            room = rnl_tx_bulk_piece(t, bulk, bulk) != 0;
        if (room < 0) {
            status = rnl_ep_broken(ep, conn, "a reading position past what was written");
            break;
        }
        if (room > 0) {
            /* Found full again and again: traffic asks for the big ring. Needs one line; the next send needs none of
             * the small ring. To other hosts the lines of long messages fill it, too: on a long way a small ring would
             * bound what is under way before the bulk area does. Not while somebody else, a handler or a thread,
             * composes in that line, or has it for the end of an extent. */
            if (!conn->pair.big_tx && full && conn->out[0].state != RNL_STREAM_SHORT &&
                conn->out[0].state != RNL_STREAM_EXTENT &&
                (conn->full_count = (uint8_t)(conn->full_count + full)) >= FULL_BEFORE_GROW) {
                rnl_stream_count(ep, t);
                if (rnl_pair_grow_tx(&conn->pair) == 0) {
                    ep->c->rings_grown++;
                    rnl_ep_published(ep, conn, t);
                }
            }
            break;
        }
        if (since == 0)
            ep->c->waiting_since_ns = since = ep->env->ops->now_ns(ep->env);
        unsigned things = rnl_stream_progress(ep);
        if (rnl_ep_forked(ep))
            return rnl_ep_enter_slow(ep);
        if (things)
            w.polls = w.yields = 0;
        else
            rnl_ep_idle(ep, &w);
    }
    conn->waits--;
    ep->c->waiting_for_rank = ep->c->waiting_since_ns = 0;
    if (since)
        ep->c->no_room_wait_ns += ep->env->ops->now_ns(ep->env) - since;
    return status;
}

int rnl_stream_check_begin(struct rnl_endpoint *ep, const struct rnl_begin *b)
{
    if (rnl_ep_in_answer(ep))
        return rnl_fail(RNL_ERR_CONTEXT, "the handler of an answer must not send; note it and send from the program");
    if (b->handler > 0xffff)
        return rnl_fail(RNL_ERR_HANDLER, "handler %u does not fit in a message header: the largest is 65535",
                        b->handler);
    if (b->answer > RNL_ANSWER_MAX)
        return rnl_fail(RNL_ERR_TOO_LONG, "an answer of %zu bytes is too long: the limit is %d", b->answer,
                        RNL_ANSWER_MAX);
    if (b->flags & ~(unsigned)RNL_NO_WAIT)
        return rnl_fail(RNL_ERR_ARG, "unknown bits 0x%x in rnl_begin.flags; RNL_NO_WAIT is the only one", b->flags);
    return 0;
}

void rnl_stream_lengthen(struct rnl_endpoint *ep)
{
    if (ep->open_short)
        rnl_stream_lengthen_one(ep->open_short);
}

/* Others go first, whom no call waits for: queued messages, the end of one that was given up. */
static int queued(const struct rnl_conn *conn)
{
    return conn->post_first || conn->out[0].state == RNL_STREAM_ABORTING;
}

int rnl_stream_begin(struct rnl_endpoint *ep, const struct rnl_begin *b, struct rnl_stream **out)
{
    struct rnl_conn *conn;
    int no_wait = ep->in_handler || b->flags & RNL_NO_WAIT;
    int status = rnl_stream_check_begin(ep, b);
    if (status < 0)
        return status;
    rnl_stream_lengthen(ep);
    if (!ep->in_handler) {
        rnl_ep_news(ep);
        rnl_stream_flush(ep);
    }
    if (no_wait && b->bound > RNL_RESERVE_MAX)
        return too_long(b->bound);
    status = no_wait ? rnl_ep_connect_soon(ep, b->peer, &conn) : rnl_ep_connect(ep, b->peer, &conn);
    if (status < 0)
        return status;
    for (;;) {
        if (conn->shut & RNL_SHUT_DEAD)
            return rnl_ep_gone(ep, b->peer);
        if (rnl_stream_composing(&conn->out[0]) && !conn->post_sending)
            return rnl_fail(RNL_BUSY, "a message to rank %u is open already; %s", b->peer,
                            ep->in_handler ? "leave this one to the program, or queue it with rnl_post"
                                           : "end it first");
        status = queued(conn) ? RNL_NO_ROOM : rnl_stream_try_begin(ep, conn, b, no_wait, out);
        if (status != RNL_NO_ROOM || no_wait)
            break;
        uint32_t bulk = is_short(b) ? 0 : b->bound < RNL_PIECE_MIN ? (uint32_t)b->bound : RNL_PIECE_MIN;
        if (queued(conn)) {
            struct rnl_idle w = {.deadline_ns = UINT64_MAX};
            conn->waits++; /* who takes the peer back meanwhile is told to wait, too */
            while (queued(conn) && !(conn->dying | conn->gone | ep->job_gone | ep->give_up) && !rnl_ep_forked(ep))
                if (!rnl_stream_progress(ep) && !rnl_ep_forked(ep))
                    rnl_ep_idle(ep, &w);
            if (rnl_ep_forked(ep))
                return rnl_ep_enter_slow(ep);
            conn->waits--;
            if (ep->job_gone | ep->give_up)
                return no_job(ep);
        } else {
            status = rnl_stream_wait_room(ep, conn, bulk);
            if (status < 0)
                break;
        }
    }
    if (status == RNL_NO_ROOM) {
        ep->c->no_room++;
        uint64_t most;
        if (b->bound > RNL_LINE_PAYLOAD && rnl_tx_bulk_never(&conn->pair.tx[0], (uint32_t)b->bound, &most))
            return rnl_fail(RNL_ERR_TOO_LONG,
                            "a message of up to %zu bytes cannot be reserved at once: rank %u lets us have %llu bytes; "
                            "send it from outside a handler and without RNL_NO_WAIT, rnl_post it, or raise that rank's "
                            "rnl_options.receive_budget",
                            b->bound, b->peer, (unsigned long long)most);
        rnl_ep_ring_bell(ep, conn, RNL_ARMED_LINES); /* it may sleep, and can let us have more */
        return rnl_fail(RNL_NO_ROOM, "no room for a message of up to %zu bytes to rank %u now; %s", b->bound, b->peer,
                        ep->in_handler ? "leave it to the program, or queue it with rnl_post: trying again here is vain"
                                       : "try again after the next extract");
    }
    return status;
}

/* Apart from rnl_begin, which needs no frame then. */
static RNL_NOINLINE int begin_slow(struct rnl_endpoint *ep, const struct rnl_begin *b, struct rnl_stream **out)
{
    if (!b->answer && !(b->flags & ~(unsigned)RNL_NO_WAIT)) {
        struct rnl_stream *s = b->bound > RNL_LINE_PAYLOAD ? rnl_stream_begin_medium(ep, b->peer, b->handler, b->bound)
                                                           : rnl_stream_begin_other(ep, b->peer, b->handler, b->bound);
        if (s) {
            *out = s;
            return 0;
        }
    }
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = rnl_stream_begin(ep, b, out);
    rnl_ep_leave(ep);
    return status;
}

int rnl_begin(rnl_endpoint *ep, const struct rnl_begin *b, rnl_stream **out)
{
    if (RNL_UNLIKELY(b->answer || b->flags & ~(unsigned)RNL_NO_WAIT))
        return begin_slow(ep, b, out);
    struct rnl_stream *s = rnl_stream_begin_short(ep, b->peer, b->handler, b->bound);
    if (RNL_UNLIKELY(s == NULL))
        return begin_slow(ep, b, out);
    *out = s;
    return 0;
}
