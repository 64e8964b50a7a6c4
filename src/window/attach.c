/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attach.c - what the core calls of windows: handlers of their messages, progress, arming before a sleep, a peer's
 * death, the end. It calls all other files of this folder, and none calls it. */
#include "endpoint/poll.h"
#include "stream/poll.h"
#include "window/window_internal.h"

#include <stdlib.h>

enum { LOOKS_PER_TIDY = 64 }; /* at the window endpoint, empty, before its events are looked for */

static const struct rnl_handler handlers[WINDOW_KINDS] = {
    [WINDOW_MEET] = {.stream = rnl_window_on_meet},         [WINDOW_APART] = {.stream = rnl_window_on_apart},
    [WINDOW_BIND] = {.stream = rnl_window_on_bind},         [WINDOW_IMPORT] = {.stream = rnl_window_on_import},
    [WINDOW_UNASK] = {.stream = rnl_window_on_unask},       [WINDOW_OFFERED] = {.stream = rnl_window_on_offered},
    [WINDOW_PUT] = {.stream = rnl_window_on_put},           [WINDOW_PUT_NOTIFY] = {.stream = rnl_window_on_put_notify},
    [WINDOW_NOTIFY] = {.stream = rnl_window_on_notify},     [WINDOW_GET] = {.stream = rnl_window_on_get},
    [WINDOW_CHANGE] = {.stream = rnl_window_on_change},     [WINDOW_ATOMIC] = {.stream = rnl_window_on_atomic},
    [WINDOW_QUIET] = {.stream = rnl_window_on_quiet},       [WINDOW_REVOKED] = {.stream = rnl_window_on_revoked},
    [WINDOW_DROP] = {.stream = rnl_window_on_drop},         [WINDOW_MET] = {.stream = rnl_window_on_met},
    [WINDOW_IMPORTED] = {.stream = rnl_window_on_imported}, [WINDOW_GOT] = {.stream = rnl_window_on_got},
    [WINDOW_CHANGED] = {.stream = rnl_window_on_changed},   [WINDOW_QUIETED] = {.stream = rnl_window_on_quieted},
    [WINDOW_UNMAPPED] = {.stream = rnl_window_on_unmapped},
};

/* ---- what the core calls ---- */

/* While there is no room for notifications, messages that bring one wait at the head of their lane. */
static const struct rnl_handler *handler(struct rnl_endpoint *ep, unsigned id)
{
    struct rnl_windows *ws = ep->windows;
    unsigned kind = id - RNL_LIBRARY_ID;
    if (kind >= WINDOW_KINDS)
        return NULL;
    if ((kind == WINDOW_NOTIFY || kind == WINDOW_PUT_NOTIFY) && ws && rnl_window_notes_full(ws)) {
        ws->held = 1;
        return NULL;
    }
    return &handlers[kind];
}

static void look_at_heads(struct rnl_endpoint *ep)
{
    rnl_ep_look_at_heads(ep);
    rnl_ep_look_again(ep);
}

/* There is room for notifications again. */
static void release(struct rnl_windows *ws)
{
    ws->held = 0;
    look_at_heads(ws->ep);
    if (ws->inner)
        look_at_heads(ws->inner);
}

static void tidy(struct rnl_endpoint *inner)
{
    rnl_ep_take_events_slow(inner);
    rnl_ep_maintain(inner);
    rnl_ep_round(inner, inner->env->ops->now_ns(inner->env));
}

/* Returns whether an extract would find nothing, and has nothing else to do: the usual case, at less of its cost. */
static bool is_still(const struct rnl_endpoint *inner)
{
    const struct rnl_conn *conn = inner->fast.sole_with_replies;
    return conn && rnl_stream_nothing_pending(inner, conn) && !inner->fast.unfenced && !inner->fast.open_short &&
           !inner->remote && !rnl_ep_bell_rang(inner) &&
           atomic_load_explicit(inner->fast.event_seq, memory_order_relaxed) == inner->fast.event_seq_seen;
}

static unsigned look_inside(struct rnl_windows *ws)
{
    unsigned things = 0;
    if (!is_still(ws->inner))
        (void)rnl_stream_extract(ws->inner, UINT64_MAX, &things);
    if (things) {
        ws->empty = 0;
        if (ws->inner->wait.fd_armed)
            rnl_ep_busy(ws->inner);
    } else if (++ws->empty % LOOKS_PER_TIDY == 0) {
        tidy(ws->inner);
    }
    return things;
}

static unsigned progress(struct rnl_endpoint *ep)
{
    struct rnl_windows *ws = ep->windows;
    unsigned things = ws->inner ? look_inside(ws) : 0;
    rnl_window_links(ws);
    rnl_window_imports_on(ws);
    if (ws->put_off && !rnl_turn_is_threads(ep))
        rnl_window_answer_late(ws);
    if (!rnl_ep_forked(ep) && rnl_window_notes_due(ws))
        things += rnl_window_notes_run(ws);
    if (rnl_ep_forked(ep))
        return 1;
    if (ws->held && !rnl_window_notes_full(ws))
        release(ws);
    things += ws->changes;
    ws->changes = 0;
    rnl_window_watch(ws);
    return things;
}

static int has(struct rnl_endpoint *ep)
{
    const struct rnl_windows *ws = ep->windows;
    return rnl_window_notes_due(ws) || ws->changes || (ws->inner && rnl_ep_look(ws->inner));
}

static int arm(struct rnl_endpoint *ep)
{
    struct rnl_windows *ws = ep->windows;
    if (rnl_window_notes_due(ws) || ws->changes)
        return 1;
    if (!ws->inner)
        return 0;
    rnl_ep_take_events_slow(ws->inner);
    if (look_inside(ws))
        return 1;
    (void)rnl_ep_empty(ws->inner); /* arms its descriptor */
    return !ws->inner->wait.fd_armed;
}

static void lost(struct rnl_windows *ws, struct window_peer *p)
{
    if (!rnl_window_unlink(ws, p))
        return;
    rnl_window_ops_fail(p, RNL_ERR_PEER_DEAD);
    rnl_window_imports_lost(p, RNL_ERR_PEER_DEAD);
    rnl_window_grants_free(p);
    ws->changes++;
    rnl_window_watch(ws);
}

static void gone(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_windows *ws = ep->windows;
    struct window_peer *p = ep == ws->inner ? rnl_window_bound(ws, rank) : ws->peer[rank];
    if (ep == ws->inner && !p)
        rnl_window_leave_due(ws, rank); /* it has never said who it is */
    else if (p && (ep == ws->ep || p->via))
        lost(ws, p);
}

static void peer_free(struct window_peer *p)
{
    rnl_window_ops_fail(p, RNL_ERR_CLOSED);
    rnl_window_grants_free(p);
    rnl_window_early_free(p);
    free(p->entry);
    free(p);
}

static void state_free(struct rnl_endpoint *ep)
{
    struct rnl_windows *ws = ep->windows;
    if (ws->inner == ep) /* its process was killed in the virtual cluster */
        ws->inner = NULL;
    if (ws->ep != ep)
        return;
    rnl_window_fork_remove(ws);
    ep->windows = NULL;
    ep->polls_windows = 0;
    if (ws->inner) {
        ws->inner->windows = NULL;
        (void)!rnl_close(ws->inner);
    }
    rnl_window_free_all(ws);
    for (uint32_t i = 0; i < ep->size; i++)
        if (ws->peer[i])
            peer_free(ws->peer[i]);
    rnl_window_imports_free(ws);
    rnl_window_forget_late(ws);
    free(ws->note);
    free(ws->uid);
    free(ws->bound);
    free(ws->peer);
    free(ws);
}

static const struct rnl_window_ops ops = {
    .handler = handler,
    .progress = progress,
    .has = has,
    .arm = arm,
    .gone = gone,
    .free = state_free,
};

void rnl_window_attach(struct rnl_endpoint *ep)
{
    ep->window_ops = &ops;
}
