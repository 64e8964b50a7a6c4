/* SPDX-License-Identifier: BSD-3-Clause
 *
 * serve.c - the thread that serves an endpoint (rnl_progress_start) while its owner computes: acknowledgements, timers,
 * credit, queued messages, and the messages of the library, which are those of windows. It runs no function of the
 * program but those that are marked for it. A message of the program stays at the head of its lane, where it is found
 * when the owner calls again, and what is behind it waits, too; so do the owner's other duties: deaths, calls that are
 * due. */
#include "stream/stream_internal.h"

#include "endpoint/net.h"
#include "stream/barrier.h"

/* Returns whether the thread may go on with what is open on that lane: nothing, or a message of the library. */
static bool may_go_on(const struct rnl_conn *conn, unsigned lane)
{
    const struct rnl_stream *s = rnl_stream_in(conn, lane);
    return s->state == RNL_STREAM_FREE || s->handler >= RNL_LIBRARY_ID;
}

static void serve_lane(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, struct rnl_poll_ctx *t)
{
    struct rnl_rx *r = &conn->channel.rx[lane];
    rnl_header h = conn->blocked[lane] == RNL_BLOCKED_HANDLER ? 0 : rnl_rx_peek(r);
    if (!h)
        return;
    if (!may_go_on(conn, lane)) {
        (void)rnl_stream_leave_head(ep, conn, lane);
        return;
    }
    rnl_stream_take(ep, conn, lane, h, t);
    if (rnl_ep_forked(ep))
        return;
    if (r->bulk_read != r->advertised_bulk)
        rnl_rx_advertise(r);
    rnl_stream_wake_sender(ep, conn, r);
}

static unsigned pass(struct rnl_endpoint *ep)
{
    struct rnl_poll_ctx t = {.max = UINT64_MAX};
    if (ep->poll.round_due)
        rnl_ep_round(ep, ep->env->ops->now_ns(ep->env));
    rnl_ep_take_events(ep);
    int network = ep->remote && rnl_ep_net_time(ep);
    if (network)
        rnl_ep_net_receive(ep);
    rnl_ep_check_bell(ep);
    for (uint32_t i = 0; i < ep->fast.polled && !rnl_ep_forked(ep); i++) {
        struct rnl_conn *conn = ep->fast.conns[i];
        for (unsigned lane = RNL_LANES; lane-- > 0 && !conn->broken && !rnl_ep_forked(ep);)
            if (lane == 0 || conn->lane1_polled)
                serve_lane(ep, conn, lane, &t);
        if (conn->parked && !conn->blocked[RNL_LANE_BULK])
            (void)rnl_stream_leave_head(ep, conn, RNL_LANE_BULK);
    }
    if (rnl_ep_forked(ep))
        return 0;
    if (ep->work.posts)
        t.work_done += rnl_stream_send_posts(ep);
    RNL_NO_EXCEPTION();
    if (ep->polls_windows)
        t.work_done += ep->window_ops->progress(ep);
    if (rnl_ep_forked(ep) || !(ep->net.due | network))
        return t.work_done;
    if (t.work_done)
        rnl_ep_net_send_urgent(ep);
    else if (network)
        rnl_ep_net_send_after(ep);
    else
        rnl_ep_net_send(ep);
    return t.work_done;
}

void *rnl_stream_serve(void *arg)
{
    struct rnl_endpoint *ep = arg;
    struct rnl_turn *turn = &ep->turn;
    struct rnl_idle w = {.deadline_ns = UINT64_MAX};
    rnl_turn_thread_begins(ep);
    bool mine = rnl_turn_take(ep);
    while (mine && !atomic_load(&turn->ends)) {
        unsigned work = pass(ep);
        if (rnl_ep_forked(ep))
            return NULL;
        if (atomic_load_explicit(&turn->asked, memory_order_relaxed)) {
            rnl_turn_give(ep);
            mine = rnl_turn_take(ep);
        }
        if (work)
            w.polls = w.yields = 0;
        else if (mine)
            (void)rnl_ep_idle(ep, &w);
        if (rnl_ep_forked(ep))
            return NULL;
    }
    return NULL;
}

int rnl_stream_serve_from_now(struct rnl_endpoint *ep)
{
    struct rnl_turn *t = &ep->turn;
    if (ep->fast.open != RNL_EP_OPEN || ep->fast.in_handler)
        return rnl_fail(ep->flags & RNL_SHARED ? RNL_ERR_UNSUPPORTED : RNL_ERR_CONTEXT,
                        "the thread that serves windows cannot be started inside a handler, nor for an endpoint that "
                        "threads share: have one of them in rnl_wait");
    if (!ep->env->open || ep->env->facts.is_virtual || ep->flags & RNL_EP_GUARDED)
        return rnl_fail(RNL_ERR_UNSUPPORTED, "no thread can serve a virtual process, or an endpoint that an interface "
                                             "locks");
    rnl_stream_promote(ep);
    ep->flags |= RNL_EP_SERVES;
    ep->fast.open = RNL_EP_SERVED;
    rnl_ep_set_fast(ep);
    rnl_ep_set_pending(ep);
    t->no_fence = !ep->env->facts.have_membarrier;
    t->promote = rnl_stream_promote;
    return 0;
}
