/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handler.c - running handlers, and what they call: receive, here, reply, keep. A handler whose message is all here
 * runs on the caller's stack; another runs on a coroutine, and is suspended only in receive (or keep) when it has taken
 * every byte that arrived, so that it holds no ring space and waits for its stream alone (rule d). */
#include "stream/stream.h"

#include <stdlib.h>

#include "base/copy.h"
#include "stream/ask.h"
#include "stream/kept.h"

enum { KEEP_FLOOR = RNL_GRANT_MIN / 2 /* units that kept messages never take from a peer */ };

/* ---- endings ---- */

static void refuse(struct rnl_endpoint *ep, struct rnl_stream *s, unsigned reason)
{
    struct rnl_conn *conn = s->conn;
    struct rnl_tx *t = &conn->pair.tx[1];
    struct rnl_refused r = {.reason = reason};
    int fresh = 1;
    if (!s->answer || s->answered || s->lane != 0 || s->lost)
        return;
    /* The message's first bytes go back with it if they still lie where they came. */
    const unsigned char *head = s->base;
    if (s->state == RNL_STREAM_INLINE) {
        size_t here = (size_t)(s->end - s->base);
        r.bytes = here < RNL_REFUSED_BYTES ? (uint32_t)here : RNL_REFUSED_BYTES;
    } else { /* one that was suspended has given them back to the sender */
        head = conn->head;
        r.bytes = s->head_bytes;
    }
    rnl_head key = rnl_head_key(RNL_LINE_REFUSED, s->handler, sizeof r + r.bytes);
    unsigned char *at = rnl_tx_place(t, key, &fresh);
    if (!at)
        return; /* cannot be: room was set aside before the handler ran */
    memcpy(at, &r, sizeof r);
    if (r.bytes)
        memcpy(at + sizeof r, head, r.bytes);
    rnl_stream_publish(ep, conn, 1, key, at + sizeof r + r.bytes, fresh, 0);
    rnl_tx_close_other(t);
    s->answered = 1;
    ep->c->refused_sent++;
}

int rnl_stream_ended(struct rnl_endpoint *ep, struct rnl_stream *s, int ending)
{
    if (RNL_LIKELY(ending == RNL_DONE))
        return 0;
    if (ending == RNL_QUIT)
        return 1;
    if (ending >= RNL_REFUSE_BASE && ending < RNL_REFUSE_BASE + 256)
        refuse(ep, s, (unsigned)(ending - RNL_REFUSE_BASE));
    return 0;
}

int rnl_stream_run(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h)
{
    s->state = RNL_STREAM_INLINE;
    uint32_t before = rnl_ep_handler_begins(ep, s->lane);
    int ending = h->stream(s, s->conn->rank, h->ctx);
    rnl_ep_handler_ends(ep, s->lane, before);
    if (rnl_ep_forked(ep)) {
        s->state = RNL_STREAM_FREE;
        return 1;
    }
    rnl_stream_handled(ep, s->lane, 1);
    int quit = rnl_stream_ended(ep, s, ending);
    s->state = RNL_STREAM_FREE;
    return quit;
}

static void entry(struct rnl_coro *self, void *arg)
{
    struct rnl_stream *s = arg;
    s->coro = self;
    s->ending = s->h.stream(s, s->conn->rank, s->h.ctx);
}

static void returned(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    rnl_stream_handled(ep, s->lane, 1);
    s->coro = NULL;
    s->state = RNL_STREAM_DISCARD;
    if (RNL_UNLIKELY(ep->open_streams))
        rnl_stream_disown(ep, s);
    if (rnl_stream_ended(ep, s, s->ending))
        ep->quit = 1;
}

int rnl_stream_start(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h)
{
    struct rnl_coro *co;
    uint32_t before = ep->in_handler;
    s->state = RNL_STREAM_RUNNING;
    s->h = *h;
    s->head_bytes = 0;
    if (s->answer && s->lane == 0) {
        size_t here = (size_t)(s->end - s->at);
        s->head_bytes = here < RNL_REFUSED_BYTES ? (uint32_t)here : RNL_REFUSED_BYTES;
        memcpy(s->conn->head, s->at, s->head_bytes);
    }
    s->drop = (h->flags & RNL_HANDLER_DROP) != 0;
    ep->in_handler = 1u + s->lane;
    ep->running = s;
    int status = rnl_coro_start(ep->coros, entry, s, &co);
    ep->running = NULL;
    ep->in_handler = before;
    if (rnl_ep_forked(ep))
        return 0;
    if (status < 0) {
        s->state = RNL_STREAM_FREE;
        return status;
    }
    if (co) {
        s->coro = co;
        ep->c->handlers_suspended++;
    } else {
        returned(ep, s);
    }
    ep->c->stacks_in_use = rnl_coro_in_use(ep->coros);
    return 0;
}

static void resume(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    uint32_t before = ep->in_handler;
    s->state = RNL_STREAM_RUNNING;
    ep->in_handler = 1u + s->lane;
    ep->running = s;
    int again = rnl_coro_resume(s->coro);
    ep->running = NULL;
    ep->in_handler = before;
    if (rnl_ep_forked(ep)) {
        s->state = RNL_STREAM_FREE;
        return;
    }
    ep->c->handlers_resumed++;
    if (!again)
        returned(ep, s);
    ep->c->stacks_in_use = rnl_coro_in_use(ep->coros);
}

/* ---- taking bytes ---- */

/* What came from another host was written by this core: to write whole lines is what counts then. */
static void copy_out(const struct rnl_stream *s, void *to, const void *from, size_t n)
{
    if (s->conn->link)
        rnl_copy_in(to, from, n);
    else
        rnl_copy_out(to, from, n, s->ep->env->facts.wide_copy);
}

static void take_bytes(struct rnl_stream *s, void *to, size_t n)
{
    if (n <= RNL_LINE_PAYLOAD)
        rnl_copy_short(to, s->at, n);
    else
        copy_out(s, to, s->at, n);
    s->at += n;
}

void rnl_stream_feed(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    while (s->state == RNL_STREAM_SUSPENDED) {
        size_t here = (size_t)(s->end - s->at), n = here < s->want_bytes ? here : s->want_bytes;
        if (n) {
            take_bytes(s, s->want, n);
            s->want += n;
            s->want_bytes -= n;
        }
        if (s->want_bytes && !s->last && !s->lost)
            return;
        resume(ep, s);
    }
    if (s->state == RNL_STREAM_GATHER && (s->gather || s->too_long)) {
        size_t n = (size_t)(s->end - s->at);
        if (s->gathered + n > RNL_WHOLE_MAX)
            s->too_long = 1;
        if (s->too_long)
            s->at = s->end;
        else
            take_bytes(s, s->gather + s->gathered, n);
        s->gathered += n;
    }
    if (s->state == RNL_STREAM_DISCARD)
        s->at = s->end;
}

/* Suspends until `n` bytes are in buf, the message ends or is lost. Returns bytes in buf, or a negative status.
 */
static int64_t wait_bytes(struct rnl_stream *s, unsigned char *buf, size_t n)
{
    s->want = buf;
    s->want_bytes = n;
    s->state = RNL_STREAM_SUSPENDED;
    rnl_stream_lengthen(s->ep); /* a short message this handler has open is marked as a handler's */
    rnl_coro_yield(s->coro);
    if (s->want_bytes && s->lost)
        return rnl_stream_lost(s);
    return (int64_t)(n - s->want_bytes);
}

static RNL_NOINLINE int receive_slow(struct rnl_stream *s, void *buf, size_t n)
{
    size_t here = (size_t)(s->end - s->at);
    if (rnl_ep_forked(s->ep))
        return rnl_ep_enter_slow(s->ep);
    if (s->state != RNL_STREAM_INLINE && s->state != RNL_STREAM_RUNNING)
        return rnl_fail(RNL_ERR_CONTEXT, "rnl_receive and FM_receive belong inside the handler of this message");
    if (n <= here) {
        take_bytes(s, buf, n);
        return 0;
    }
    if (s->lost)
        return rnl_stream_lost(s);
    if (s->last || n > s->bound - rnl_stream_received(s))
        return rnl_fail(RNL_ERR_PAST_END, "%zu bytes asked for, but this message has only %zu left", n,
                        s->last ? here : (size_t)(s->bound - rnl_stream_received(s)));
    take_bytes(s, buf, here);
    int64_t got = wait_bytes(s, (unsigned char *)buf + here, n - here);
    if (got < 0)
        return (int)got;
    if ((size_t)got < n - here)
        return rnl_fail(RNL_ERR_PAST_END, "%zu bytes asked for, but the message ended after %zu more", n,
                        here + (size_t)got);
    return 0;
}

static RNL_NOINLINE int receive_other(struct rnl_stream *s, void *buf, size_t n)
{
    const unsigned char *at = s->at;
    if (rnl_stream_receive_short(s, buf, n))
        return 0;
    if (n <= RNL_LINE_PAYLOAD || n > (size_t)(s->end - at) || s->state != RNL_STREAM_INLINE || rnl_ep_forked(s->ep))
        return receive_slow(s, buf, n);
    s->at += n;
    copy_out(s, buf, at, n);
    return 0;
}

int rnl_receive(rnl_stream *s, void *buf, size_t n)
{
    return RNL_LIKELY(n == 8 && rnl_stream_receive_8(s, buf)) ? 0 : receive_other(s, buf, n);
}

size_t rnl_here(rnl_stream *s, const void **view)
{
    if (view)
        *view = s->at;
    return (size_t)(s->end - s->at);
}

/* ---- answers ---- */

int rnl_stream_answer_fits(struct rnl_conn *conn, uint32_t answer)
{
    struct rnl_tx *t = &conn->pair.tx[1];
    uint64_t start;
    if (RNL_UNLIKELY(!t->ring) && rnl_pair_reach_answers(&conn->pair) < 0)
        return 0; /* tried again with the next look for room */
    if (RNL_LINE_START(t->pos) >= t->stop) {
        int status = rnl_tx_refresh(t, NULL, NULL);
        if (status <= 0)
            return status;
    }
    if (answer <= RNL_LINE_PAYLOAD)
        return 1;
    if (RNL_UNLIKELY(!t->bulk) && rnl_pair_reach_mine(&conn->pair) < 0)
        return 0;
    return rnl_tx_bulk_room(t, answer, &start);
}

/* Of two pieces. */
static void send_answer(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned handler, const void *head,
                        size_t head_bytes, const void *buf, size_t n_buf)
{
    struct rnl_tx *t = &conn->pair.tx[1];
    size_t n = head_bytes + n_buf;
    int fresh = 1;
    if (n <= RNL_LINE_PAYLOAD) {
        rnl_head key = rnl_head_key(RNL_LINE_ITEMS, handler, (unsigned)n);
        unsigned char *at = rnl_tx_place(t, key, &fresh);
        if (!at)
            return; /* cannot be: set aside */
        rnl_copy_short(at, head, head_bytes);
        if (n_buf)
            rnl_copy_short(at + head_bytes, buf, n_buf);
        rnl_stream_publish(ep, conn, 1, key, at + n, fresh, 0);
        return;
    }
    struct rnl_extent e = {.reserved = (uint32_t)n,
                           .published = (uint32_t)n,
                           .bound = n,
                           .flags = RNL_EXTENT_FIRST | RNL_EXTENT_LAST | RNL_EXTENT_CLOSED};
    if (rnl_tx_bulk_room(t, (uint32_t)n, &e.start) <= 0)
        return; /* cannot be: set aside */
    unsigned char *to = t->bulk + (e.start & (RNL_BULK_BYTES - 1));
    rnl_copy_in(to, head, head_bytes);
    if (n_buf)
        rnl_copy_in(to + head_bytes, buf, n_buf);
    rnl_tx_bulk_take(t, e.start + ((n + 63) & ~(size_t)63));
    rnl_head key = rnl_head_key(RNL_LINE_EXTENT, handler, sizeof e);
    unsigned char *at = rnl_tx_place(t, key, &fresh);
    if (!at)
        return; /* cannot be: set aside */
    memcpy(at, &e, sizeof e);
    rnl_stream_publish(ep, conn, 1, key, at + sizeof e, fresh, 0);
    rnl_tx_close_other(t);
}

int rnl_stream_reply(struct rnl_stream *s, unsigned handler, const void *head, size_t head_bytes, const void *buf,
                     size_t n_buf)
{
    struct rnl_endpoint *ep = s->ep;
    size_t n = head_bytes + n_buf;
    if (ep->open == RNL_EP_FORKED)
        return rnl_ep_enter_slow(ep);
    if ((s->state != RNL_STREAM_INLINE && s->state != RNL_STREAM_RUNNING) || s->lane != 0)
        return rnl_fail(RNL_ERR_CONTEXT, "rnl_reply belongs inside the handler of a message that is no answer");
    if (!s->answer)
        return rnl_fail(RNL_ERR_CONTEXT, "this message allows no answer: its sender must begin it with answer > 0");
    if (s->answered)
        return rnl_fail(RNL_ERR_CONTEXT, "this message has been answered already: one reply each");
    if (n > s->answer)
        return rnl_fail(RNL_ERR_TOO_LONG, "an answer of %zu bytes is longer than the %u its asker allowed", n,
                        s->answer);
    if (handler > 0xffff)
        return rnl_fail(RNL_ERR_HANDLER, "handler %u does not fit in a message header: the largest is 65535", handler);
    if (s->lost)
        return rnl_stream_lost(s);
    if (s->conn->gone)
        return rnl_ep_gone(ep, s->conn->rank);
    s->answered = 1;
    ep->c->replies_sent++;
    send_answer(ep, s->conn, handler, head, head_bytes, buf, n_buf);
    return 0;
}

int rnl_reply(rnl_stream *s, unsigned handler, const void *buf, size_t n)
{
    return rnl_stream_reply(s, handler, buf, n, NULL, 0);
}

/* ---- keeping ---- */

int rnl_keep(rnl_stream *s, rnl_kept **out)
{
    struct rnl_endpoint *ep = s->ep;
    if (ep->open == RNL_EP_FORKED)
        return rnl_ep_enter_slow(ep);
    if ((s->state != RNL_STREAM_INLINE && s->state != RNL_STREAM_RUNNING) || s->lane != 0)
        return rnl_fail(RNL_ERR_CONTEXT, "rnl_keep belongs inside the handler of a message that is no answer");
    if (s->lost)
        return rnl_stream_lost(s);
    size_t left = s->last ? (size_t)(s->end - s->at) : (size_t)(s->bound - rnl_stream_received(s));
    if (ep->kept_bytes + ep->gather_bytes + left > ep->budget)
        return rnl_fail(
            RNL_NO_ROOM,
            "keeping %zu bytes more would pass the receive budget of %llu; free kept messages, or raise receive_budget",
            left, (unsigned long long)ep->budget);
    struct rnl_rx *r = &s->conn->pair.rx[0];
    if (r->withheld + 1 + left / 64 + KEEP_FLOOR > r->standing)
        return rnl_fail(
            RNL_NO_ROOM,
            "rank %u has %llu of its %llu units in kept messages; the rest is for its next messages: free some",
            s->conn->rank, (unsigned long long)r->withheld, (unsigned long long)r->standing);
    struct rnl_kept *k = malloc(sizeof *k + left);
    if (!k)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to keep %zu bytes", left);
    ep->kept_bytes += left; /* others may be suspended in a keep, too */
    size_t here = (size_t)(s->end - s->at), n = here < left ? here : left;
    take_bytes(s, k->data, n);
    if (!s->last && n < left) {
        int64_t got = wait_bytes(s, k->data + n, left - n);
        if (got < 0) {
            ep->kept_bytes -= left;
            free(k);
            return (int)got;
        }
        n += (size_t)got;
    }
    k->ep = ep;
    k->conn = s->conn;
    k->bytes = n;
    k->units = 1 + n / 64;
    s->conn->pair.rx[0].withheld += k->units;
    ep->kept_bytes -= left - n;
    ep->c->kept_bytes = ep->kept_bytes;
    *out = k;
    return 0;
}

const void *rnl_kept_data(const rnl_kept *kept, size_t *n, unsigned *peer)
{
    if (n)
        *n = kept->bytes;
    if (peer)
        *peer = kept->conn->rank;
    return kept->data;
}

void rnl_kept_free(rnl_kept *kept)
{
    if (!kept)
        return;
    struct rnl_endpoint *ep = kept->ep;
    struct rnl_conn *conn = kept->conn;
    if (rnl_ep_enter(ep) < 0)
        return;
    conn->pair.rx[0].withheld -= kept->units;
    ep->kept_bytes -= kept->bytes;
    ep->c->kept_bytes = ep->kept_bytes;
    if (!conn->gone) {
        rnl_rx_tell(&conn->pair.rx[0]);
        rnl_ep_told(ep, conn);
    } else if (ep->buried) {
        rnl_ep_unbury(ep, conn);
    }
    rnl_ep_leave(ep);
    free(kept);
}
