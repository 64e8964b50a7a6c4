/* SPDX-License-Identifier: BSD-3-Clause
 *
 * state.c - how public calls begin, wait and end, and the state that an endpoint has of its windows. */
#include "window/window_internal.h"

#include <stdlib.h>

int rnl_window_state(struct rnl_endpoint *ep, struct rnl_windows **out)
{
    static uint64_t nowhere[WINDOW_COUNTERS]; /* what cannot be counted */
    if (ep->windows) {
        *out = ep->windows;
        return 0;
    }
    struct rnl_windows *ws = calloc(1, sizeof *ws);
    uint32_t notes = WINDOW_NOTES + WINDOW_NOTES_SPARE + ep->size;
    if (ws) {
        ws->peer = calloc(ep->size, sizeof(struct window_peer *));
        ws->note = calloc(notes, sizeof *ws->note);
    }
    if (!ws || !ws->peer || !ws->note) {
        if (ws) {
            free(ws->peer);
            free(ws->note);
        }
        free(ws);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the windows of an endpoint with %u peers", ep->size);
    }
    ws->ep = ep;
    ws->notes_size = notes;
    if (rnl_iface_counters(&rnl_window_iface, ep->c, &ws->count) < 0)
        ws->count = nowhere;
    ep->windows = ws;
    rnl_window_fork_add(ws);
    *out = ws;
    return 0;
}

int rnl_window_enter(struct rnl_endpoint *ep, struct rnl_windows **out)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = ep->window_ops ? rnl_window_state(ep, out)
                            : rnl_fail(RNL_ERR_UNSUPPORTED, "this endpoint was made without windows");
    if (status < 0)
        rnl_ep_leave(ep);
    return status;
}

void rnl_window_leave(struct rnl_windows *ws)
{
    rnl_ep_leave(ws->ep);
}

void rnl_window_watch(struct rnl_windows *ws)
{
    uint32_t polls = ws->inner || ws->due || ws->imports_due || ws->changes || ws->held ||
                     (ws->notes && !ws->notes_blocked) || ws->put_off;
    if (polls == ws->ep->polls_windows)
        return;
    ws->ep->polls_windows = polls;
    rnl_ep_set_pending(ws->ep);
    if (polls)
        rnl_ep_look_again(ws->ep);
}

bool rnl_window_may_wait(const struct rnl_windows *ws)
{
    return !ws->ep->fast.in_handler && !(ws->inner && ws->inner->fast.in_handler);
}

int rnl_window_no_context(void)
{
    return rnl_fail(RNL_ERR_CONTEXT, "waiting for a peer's answer does not belong inside a handler, or a function that "
                                     "the library calls: use the asynchronous call, or return from it first");
}

uint64_t rnl_window_deadline(const struct rnl_windows *ws, int64_t timeout_ns)
{
    return timeout_ns < 0 ? UINT64_MAX : ws->ep->env->ops->now_ns(ws->ep->env) + (uint64_t)timeout_ns;
}

void rnl_window_waits(struct rnl_windows *ws, enum window_wait what, uint32_t rank)
{
    ws->count[WINDOW_WAITS_SINCE] = ws->ep->env->ops->now_ns(ws->ep->env);
    ws->count[WINDOW_WAITS_AT] = 1 + (uint64_t)rank;
    ws->count[WINDOW_WAITS_FOR] = what;
}

int rnl_window_turn(struct rnl_windows *ws, struct rnl_endpoint *via, uint64_t deadline_ns)
{
    struct rnl_endpoint *ep = ws->ep;
    uint64_t now = ep->env->ops->now_ns(ep->env), left = deadline_ns - now;
    if (now >= deadline_ns)
        return RNL_TIMED_OUT;
    bool inside = via != ep && !(ep->flags & RNL_SHARED), keeps = ep->flags & RNL_EP_SERVES;
    const bool looks_again = inside || ws->due; /* an introduction may have failed, which wakes nobody */
    if (deadline_ns == UINT64_MAX || (looks_again && left > WINDOW_LOOK_NS))
        left = looks_again ? WINDOW_LOOK_NS : (uint64_t)INT64_MAX;
    if (!keeps) /* the owner's turn goes on: it works on the window endpoint, too */
        rnl_window_leave(ws);
    int64_t did = rnl_stream_wait(inside ? via : ep, (int64_t)left, false);
    if (did == RNL_TIMED_OUT && inside)
        did = rnl_extract(ep, SIZE_MAX);
    int status = !keeps || rnl_ep_forked(ep) ? rnl_ep_enter(ep) : 0;
    return status < 0 ? status : did < 0 && did != RNL_TIMED_OUT ? (int)did : 0;
}
