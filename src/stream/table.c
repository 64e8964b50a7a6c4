/* SPDX-License-Identifier: BSD-3-Clause
 *
 * table.c - what stream/ does for a connection, the registration of handlers, and queries about peers, limits and
 * counters. */
#include "stream/stream_internal.h"

/* ---- connections ---- */

static void conn_opened(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    struct rnl_stream *all = rnl_stream_in(conn, 0);
    for (unsigned i = 0; i < 3; i++) {
        all[i].ep = ep;
        all[i].conn = conn;
    }
    rnl_stream_in(conn, 1)->lane = 1;
}

static bool conn_receives(const struct rnl_conn *conn)
{
    return rnl_stream_in(conn, 0)->state != RNL_STREAM_FREE || rnl_stream_in(conn, 1)->state != RNL_STREAM_FREE ||
           conn->channel.tx[1].held_cells || conn->parked || (conn->bulk && conn->bulk->in.state != RNL_STREAM_FREE);
}

static bool conn_sends(const struct rnl_conn *conn)
{
    const struct rnl_stream *s = rnl_stream_out(conn);
    return s->state != RNL_STREAM_FREE || s->ep->fast.open_short == s;
}

static uint64_t conn_uncomposed(const struct rnl_conn *conn)
{
    const struct rnl_stream *s = rnl_stream_out(conn);
    bool reserves = (s->state == RNL_STREAM_EXTENT || s->state == RNL_STREAM_CHUNKS) && s->base;
    return reserves ? s->reserved - (uint64_t)(s->at - s->base) : 0;
}

void rnl_stream_attach(struct rnl_endpoint *ep)
{
    static const struct rnl_conn_ops ops = {
        .opened = conn_opened,
        .gone = rnl_stream_gone,
        .receives = conn_receives,
        .sends = conn_sends,
        .uncomposed = conn_uncomposed,
    };
    ep->conn_ops = &ops;
}

/* ---- handlers ---- */

int rnl_overrun(const rnl_endpoint *ep, const void *address)
{
    /* Others cannot be at their stacks' ends, since they are suspended. */
    const struct rnl_stream *s = ep ? ep->work.running : rnl_stream_on_own_stack;
    return s && s->coro && rnl_coro_guards(s->coro, address) ? s->handler : RNL_ERR_HANDLER;
}

void rnl_stream_overran(const void *address)
{
    const int handler = rnl_overrun(NULL, address);
    if (handler < 0)
        return;
    struct rnl_env *env = rnl_stream_on_own_stack->ep->env;
    if (env->ops->overran)
        env->ops->overran(env, (uint32_t)handler, RNL_STACK_BYTES);
}

#define RAISE_HANDLERS "raise rnl_options.handlers, up to 65536"

int rnl_stream_register(struct rnl_endpoint *ep, int id, const struct rnl_handler *h)
{
    if (id == RNL_ANY_ID) {
        for (id = 1; (uint32_t)id < ep->fast.handlers; id++)
            if (!ep->fast.handler[id].stream && !ep->fast.handler[id].whole)
                break;
        if ((uint32_t)id >= ep->fast.handlers)
            return rnl_fail(RNL_ERR_HANDLER, "all %u handler numbers are taken; " RAISE_HANDLERS, ep->fast.handlers);
    }
    if (id < 0)
        return rnl_fail(RNL_ERR_HANDLER, "handler number %d is below 0; give 0 to %u, or RNL_ANY_ID", id,
                        ep->fast.handlers - 1);
    if ((uint32_t)id >= ep->fast.handlers)
        return rnl_fail(RNL_ERR_HANDLER, "handler number %d is outside 0 to %u; " RAISE_HANDLERS, id,
                        ep->fast.handlers - 1);
    ep->fast.handler[id] = *h;
    if (!h->kind)
        ep->fast.handler[id].kind = h->stream ? RNL_KIND_STREAM : RNL_KIND_WHOLE;
    if (ep->c->missing_handler == (uint64_t)id + 1)
        ep->c->missing_handler = ep->c->missing_handler_rank = 0;
    for (uint32_t i = 0; i < ep->poll.connected; i++)
        rnl_stream_in(ep->fast.conns[i], 0)->ready = rnl_stream_in(ep->fast.conns[i], 1)->ready =
            RNL_KIND_NONE;    /* it may have a copy of another handler */
    rnl_ep_look_at_heads(ep); /* a message may have waited for it */
    rnl_ep_look_again(ep);    /* an extract may find something now */
    return id;
}

int rnl_handler_stream(rnl_endpoint *ep, int id, rnl_stream_handler *f, void *ctx)
{
    struct rnl_handler h = {.stream = f, .ctx = ctx};
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = f ? rnl_stream_register(ep, id, &h) : rnl_fail(RNL_ERR_ARG, "a handler must not be NULL");
    rnl_ep_leave(ep);
    return status;
}

int rnl_handler_whole(rnl_endpoint *ep, int id, rnl_whole_handler *f, void *ctx, unsigned flags)
{
    struct rnl_handler h = {.whole = f, .ctx = ctx, .flags = flags};
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    if (!f)
        status = rnl_fail(RNL_ERR_ARG, "a handler must not be NULL");
    else if (flags & ~(unsigned)RNL_IN_PLACE)
        status = rnl_fail(RNL_ERR_ARG, "unknown bits 0x%x in flags; RNL_IN_PLACE is the only one", flags);
    else
        status = rnl_stream_register(ep, id, &h);
    rnl_ep_leave(ep);
    return status;
}

/* Looks for news of peers that are being introduced: extracts that find nothing do so one time in many, which is seldom
 * for a program that extracts seldom. */
static void look(struct rnl_endpoint *ep)
{
    uint64_t now_ns = ep->env->ops->now_ns(ep->env);
    if (now_ns - ep->poll.looked_ns < RNL_LOOK_NS)
        return;
    ep->poll.looked_ns = now_ns;
    rnl_ep_take_events_slow(ep);
}

int rnl_peer(rnl_endpoint *ep, unsigned peer, struct rnl_peer_info *out)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    if (peer >= ep->size) {
        status = rnl_fail(RNL_ERR_RANK, "there is no rank %u: the job has ranks 0 to %u", peer, ep->size - 1);
    } else {
        const struct rnl_peer *p = &ep->peer[peer];
        if (p->state == RNL_PEER_IS_NEW && ep->env->facts.must_look)
            look(ep);
        rnl_ep_take_events(ep);
        memset(out, 0, sizeof *out);
        out->state = rnl_peer_public_state(p);
        out->reason = (enum rnl_death_reason)p->reason;
        out->detail = p->detail;
        out->incarnation = peer == ep->rank ? ep->env->incarnation : p->incarnation;
        memcpy(out->host, ep->env->host, sizeof out->host);
    }
    rnl_ep_leave(ep);
    return status;
}

void rnl_on_death(rnl_endpoint *ep, rnl_death *f, void *arg)
{
    if (rnl_ep_enter(ep) < 0)
        return;
    ep->hooks.death = f;
    ep->hooks.death_arg = arg;
    rnl_ep_leave(ep);
}

void rnl_on_rejected(rnl_endpoint *ep, rnl_rejected *f, void *arg)
{
    if (rnl_ep_enter(ep) < 0)
        return;
    ep->hooks.rejected = f;
    ep->hooks.rejected_arg = arg;
    rnl_ep_leave(ep);
}

void rnl_get_limits(const rnl_endpoint *ep, struct rnl_limits *out)
{
    struct rnl_endpoint *served = (struct rnl_endpoint *)(uintptr_t)ep;
    memset(out, 0, sizeof *out);
    if (rnl_ep_enter(served) < 0)
        return;
    *out = (struct rnl_limits){.whole_max = RNL_WHOLE_MAX,
                               .reply_max = RNL_REPLY_MAX,
                               .reserve_max = RNL_RESERVE_MAX,
                               .handlers = ep->fast.handlers,
                               .stacks = rnl_coro_max(ep->coros),
                               .stack_bytes = RNL_STACK_BYTES,
                               .receive_budget = ep->credit.budget,
                               .post_budget = RNL_POST_BUDGET};
    rnl_ep_leave(served);
}

const struct rnl_counters *rnl_get_counters(rnl_endpoint *ep)
{
    return ep->c;
}

unsigned rnl_rank(const rnl_endpoint *ep)
{
    return ep->rank;
}

unsigned rnl_size(const rnl_endpoint *ep)
{
    return ep->size;
}
