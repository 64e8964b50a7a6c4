/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.c - runs handlers. The handler of a message that has arrived whole runs on the caller's stack. Any other runs
 * on a coroutine, and is resumed when the bytes that it waits for have arrived. */
#include "base/segv.h"
#include "stream/barrier.h"
#include "stream/stream_internal.h"

/* Sends a rejection with the first bytes of the message, for which room was reserved. */
static void send_rejection(struct rnl_endpoint *ep, struct rnl_stream *s, unsigned reason, const void *head,
                           uint32_t bytes)
{
    struct rnl_conn *conn = s->conn;
    struct rnl_tx *t = &conn->channel.tx[1];
    const struct rnl_rejected_record r = {.reason = reason, .bytes = bytes};
    int new_cell = 1;
    rnl_header key = rnl_header_key(RNL_CELL_REJECTED, s->handler, sizeof r + bytes);
    unsigned char *at = rnl_tx_place(t, key, &new_cell);
    if (!at)
        return; /* cannot happen: room was reserved before the handler ran */
    memcpy(at, &r, sizeof r);
    if (bytes)
        memcpy(at + sizeof r, head, bytes);
    rnl_stream_publish(ep, conn, 1, key, at + sizeof r + bytes, new_cell, 0);
    rnl_tx_close_other(t);
    ep->c->refused_sent++;
}

static void reject(struct rnl_endpoint *ep, struct rnl_stream *s, unsigned reason)
{
    if (!s->reply_max || s->replied || s->lane != 0 || s->lost)
        return;
    /* The message's first bytes are returned with the rejection. */
    const unsigned char *head = s->base;
    uint32_t bytes;
    if (s->state == RNL_STREAM_INLINE) {
        size_t arrived = (size_t)(s->end - s->base);
        bytes = arrived < RNL_REJECTED_BYTES ? (uint32_t)arrived : RNL_REJECTED_BYTES;
    } else { /* after a suspension their place belongs to the sender again */
        head = s->conn->head;
        bytes = s->head_bytes;
    }
    send_rejection(ep, s, reason, head, bytes);
    s->replied = 1;
}

void rnl_stream_reject_too_long(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    if (s->lane == 0 && !s->conn->gone)
        send_rejection(ep, s, RNL_REASON_TOO_LONG, NULL, 0);
}

bool rnl_stream_ended(struct rnl_endpoint *ep, struct rnl_stream *s, int ending)
{
    if (RNL_LIKELY(ending == RNL_DONE))
        return false;
    if (ending == RNL_QUIT)
        return true;
    if (ending >= RNL_REJECT_BASE && ending < RNL_REJECT_BASE + 256)
        reject(ep, s, (unsigned)(ending - RNL_REJECT_BASE));
    return false;
}

int rnl_stream_run(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h)
{
    s->state = RNL_STREAM_INLINE;
    uint32_t before = rnl_ep_handler_begins(ep, s->lane);
    RNL_NO_EXCEPTION();
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

bool rnl_stream_run_whole(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h, const void *buf,
                          size_t n)
{
    s->state = RNL_STREAM_INLINE;
    uint32_t before = rnl_ep_handler_begins(ep, s->lane);
    RNL_NO_EXCEPTION();
    int ending = h->whole(buf, n, s->conn->rank, h->ctx);
    rnl_ep_handler_ends(ep, s->lane, before);
    s->state = RNL_STREAM_FREE;
    if (rnl_ep_forked(ep))
        return true;
    rnl_stream_handled(ep, s->lane, 1);
    return ending == RNL_QUIT;
}

_Thread_local const struct rnl_stream *rnl_stream_on_own_stack;

static void entry(struct rnl_coro *self, void *arg)
{
    struct rnl_stream *s = arg;
    s->coro = self;
    RNL_NO_EXCEPTION();
    s->ending = s->h.stream(s, s->conn->rank, s->h.ctx);
}

static void returned(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    rnl_stream_handled(ep, s->lane, 1);
    s->coro = NULL;
    s->state = RNL_STREAM_DISCARD;
    if (RNL_UNLIKELY(ep->work.open_streams))
        rnl_stream_disown(ep, s);
    if (rnl_stream_ended(ep, s, s->ending))
        ep->work.quit = 1;
}

/* Makes s the stream whose handler this thread runs on a stack of its own, and returns the one that was it: that of
 * another endpoint, whose handler has called this one. */
static const struct rnl_stream *enter_own_stack(const struct rnl_stream *s)
{
    const struct rnl_stream *outer = rnl_stream_on_own_stack;
    if (s->ep->env->ops->overran)
        rnl_segv_watch(rnl_stream_overran);
    rnl_stream_on_own_stack = s;
    return outer;
}

/* Returns the stacks that the handler may have, or NULL: no memory. A peer has one message open on its bulk lane, and
 * there is a stack for each peer: so this lane never waits for what holds the stacks of lane 0. */
static struct rnl_coro_pool *stacks_for(struct rnl_endpoint *ep, const struct rnl_stream *s)
{
    if (!s->bulk)
        return ep->coros;
    if (!ep->bulk_coros && rnl_coro_pool_new(ep->size, RNL_STACK_BYTES, &ep->bulk_coros) < 0)
        ep->bulk_coros = NULL;
    return ep->bulk_coros;
}

void rnl_stream_count_stacks(struct rnl_endpoint *ep)
{
    ep->c->stacks_in_use = rnl_coro_in_use(ep->coros) + (ep->bulk_coros ? rnl_coro_in_use(ep->bulk_coros) : 0);
}

int rnl_stream_start(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h)
{
    struct rnl_coro *co;
    struct rnl_coro_pool *stacks = stacks_for(ep, s);
    if (!stacks)
        return RNL_ERR_NO_MEMORY;
    uint32_t before = ep->fast.in_handler;
    s->state = RNL_STREAM_RUNNING;
    s->h = *h;
    s->head_bytes = 0;
    if (s->reply_max && s->lane == 0) {
        size_t arrived = (size_t)(s->end - s->at);
        s->head_bytes = arrived < RNL_REJECTED_BYTES ? (uint32_t)arrived : RNL_REJECTED_BYTES;
        memcpy(s->conn->head, s->at, s->head_bytes);
    }
    s->drop = (h->flags & RNL_HANDLER_DROP) != 0;
    ep->fast.in_handler = 1u + s->lane;
    ep->work.running = s;
    const struct rnl_stream *outer = enter_own_stack(s);
    int status = rnl_coro_start(stacks, entry, s, &co);
    rnl_stream_on_own_stack = outer;
    ep->work.running = NULL;
    ep->fast.in_handler = before;
    if (rnl_ep_forked(ep))
        return 0;
    if (status < 0) {
        s->state = RNL_STREAM_FREE;
        return status;
    }
    if (co) {
        s->coro = co;
        ep->c->handlers_suspended++;
        ep->c->suspended_rank = 1 + s->conn->rank;
    } else {
        returned(ep, s);
    }
    rnl_stream_count_stacks(ep);
    return 0;
}

static void resume(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    uint32_t before = ep->fast.in_handler;
    s->state = RNL_STREAM_RUNNING;
    ep->fast.in_handler = 1u + s->lane;
    ep->work.running = s;
    const struct rnl_stream *outer = enter_own_stack(s);
    int again = rnl_coro_resume(s->coro);
    rnl_stream_on_own_stack = outer;
    ep->work.running = NULL;
    ep->fast.in_handler = before;
    if (rnl_ep_forked(ep)) {
        s->state = RNL_STREAM_FREE;
        return;
    }
    ep->c->handlers_resumed++;
    if (!again)
        returned(ep, s);
    rnl_stream_count_stacks(ep);
}

void rnl_stream_resume(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    while (s->state == RNL_STREAM_SUSPENDED) {
        size_t arrived = (size_t)(s->end - s->at), n = arrived < s->want_bytes ? arrived : s->want_bytes;
        if (n) {
            rnl_stream_take_bytes(s, s->want, n);
            s->want += n;
            s->want_bytes -= n;
        }
        if (s->want_bytes && !s->last && !s->lost)
            return;
        resume(ep, s);
    }
    if (s->state == RNL_STREAM_REASSEMBLY && (s->reassembly || s->too_long)) {
        size_t n = (size_t)(s->end - s->at);
        if (s->reassembled + n > RNL_WHOLE_MAX)
            s->too_long = 1;
        if (s->too_long)
            s->at = s->end;
        else
            rnl_stream_take_bytes(s, s->reassembly + s->reassembled, n);
        s->reassembled += n;
    }
    if (s->state == RNL_STREAM_DISCARD)
        s->at = s->end;
}
