/* SPDX-License-Identifier: BSD-3-Clause
 *
 * table.c - registering handlers; asking about peers, limits and counters. */
#include "stream/stream.h"

#define RAISE_HANDLERS "raise rnl_options.handlers (FM_MAX_HANDLERS in FM), up to 65536"

int rnl_stream_register(struct rnl_endpoint *ep, int id, const struct rnl_handler *h)
{
    if (id == RNL_ANY_ID) {
        for (id = 1; (uint32_t)id < ep->handlers; id++)
            if (!ep->handler[id].stream && !ep->handler[id].whole)
                break;
        if ((uint32_t)id >= ep->handlers)
            return rnl_fail(RNL_ERR_HANDLER, "all %u handler numbers are taken; " RAISE_HANDLERS, ep->handlers);
    }
    if (id < 0)
        return rnl_fail(RNL_ERR_HANDLER, "handler number %d is below 0; give 0 to %u, or RNL_ANY_ID", id,
                        ep->handlers - 1);
    if ((uint32_t)id >= ep->handlers)
        return rnl_fail(RNL_ERR_HANDLER, "handler number %d is outside 0 to %u; " RAISE_HANDLERS, id, ep->handlers - 1);
    ep->handler[id] = *h;
    if (ep->c->missing_handler == (uint64_t)id + 1)
        ep->c->missing_handler = ep->c->missing_handler_rank = 0;
    for (uint32_t i = 0; i < ep->live; i++) {
        for (unsigned lane = 0; lane < RNL_LANES; lane++) /* somebody may have waited for it */
            if (ep->hot[i]->stuck[lane] == RNL_STUCK_HANDLER)
                ep->hot[i]->stuck[lane] = RNL_STUCK_NOT;
        ep->hot[i]->in[0].ready = ep->hot[i]->in[1].ready = RNL_READY_NOT; /* it may have another's copy */
    }
    rnl_ep_set_only(ep);
    rnl_ep_look_again(ep); /* an extract may find something now */
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

int rnl_peer(rnl_endpoint *ep, unsigned peer, struct rnl_peer_info *out)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    if (peer >= ep->size) {
        status = rnl_fail(RNL_ERR_RANK, "there is no rank %u: the job has ranks 0 to %u", peer, ep->size - 1);
    } else {
        const struct rnl_peer *p = &ep->peer[peer];
        rnl_ep_news(ep);
        memset(out, 0, sizeof *out);
        out->state = p->state == RNL_PEER_DEAD && p->returned ? RNL_PEER_RETURNED : (enum rnl_peer_state)p->state;
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
    ep->on_death = f;
    ep->on_death_arg = arg;
    rnl_ep_leave(ep);
}

void rnl_on_refused(rnl_endpoint *ep, rnl_refused *f, void *arg)
{
    if (rnl_ep_enter(ep) < 0)
        return;
    ep->on_refused = f;
    ep->on_refused_arg = arg;
    rnl_ep_leave(ep);
}

void rnl_get_limits(const rnl_endpoint *ep, struct rnl_limits *out)
{
    memset(out, 0, sizeof *out);
    if (ep->open == RNL_EP_FORKED)
        return;
    *out = (struct rnl_limits){.whole_max = RNL_WHOLE_MAX,
                               .answer_max = RNL_ANSWER_MAX,
                               .reserve_max = RNL_RESERVE_MAX,
                               .handlers = ep->handlers,
                               .stacks = rnl_coro_max(ep->coros),
                               .stack_bytes = RNL_STACK_BYTES,
                               .receive_budget = ep->budget,
                               .post_budget = RNL_POST_BUDGET};
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
