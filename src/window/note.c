/* SPDX-License-Identifier: BSD-3-Clause
 *
 * note.c - notifications: they wait in a ring until the owner's next progress call. While the ring is full, messages
 * that bring one wait at the head of their lane (state.c), so the lane's credit bounds what waits, and its sender is
 * held up. */
#include "base/bug.h"
#include "window/window_internal.h"

bool rnl_window_notes_full(const struct rnl_windows *ws)
{
    return ws->notes >= WINDOW_NOTES;
}

/* There is room: messages that begin when it is full wait, and what had begun is less than what is spare. */
void rnl_window_note(struct rnl_windows *ws, struct window_grant *g, uint64_t offset, uint64_t n)
{
    struct rnl_window *w = g->window;
    if (!w->offer.notify || ws->notes == ws->notes_size)
        return;
    ws->note[(ws->notes_first + ws->notes) % ws->notes_size] = (struct window_note){
        .window = w, .notify = w->offer.notify, .ctx = w->offer.ctx, .rank = g->peer->rank, .offset = offset, .n = n};
    ws->notes++;
    rnl_window_watch(ws);
}

static bool are_blocked(const struct rnl_windows *ws)
{
    return ws->notes_blocked && !RNL_BUG(window_notes_run_blocked);
}

/* Returns whether the caller may run it. What the thread has run stays in its place, empty. */
static bool may_run(const struct window_note *note, bool is_thread)
{
    return note->window && (!is_thread || note->window->offer.flags & RNL_OFFER_IN_THREAD);
}

bool rnl_window_notes_due(const struct rnl_windows *ws)
{
    bool is_thread = rnl_turn_is_threads(ws->ep);
    if (!is_thread || are_blocked(ws))
        return ws->notes && !are_blocked(ws);
    for (uint32_t i = 0; i < ws->notes; i++)
        if (may_run(&ws->note[(ws->notes_first + i) % ws->notes_size], true))
            return true;
    return false;
}

static void call(struct rnl_windows *ws, struct window_note *at)
{
    const struct window_note note = *at;
    at->window = NULL;
    ws->notes_running = 1;
    note.notify(note.ctx, note.window, note.rank, note.offset, note.n);
}

/* The first ones are done. */
static void drop_empty(struct rnl_windows *ws)
{
    while (ws->notes && !ws->note[ws->notes_first].window) {
        ws->notes_first = (ws->notes_first + 1) % ws->notes_size;
        ws->notes--;
    }
}

unsigned rnl_window_notes_run(struct rnl_windows *ws)
{
    struct rnl_endpoint *ep = ws->ep;
    unsigned ran = 0;
    const uint32_t first = ws->notes_first, most = ws->notes; /* those that come meanwhile run the next time */
    const bool is_thread = rnl_turn_is_threads(ep);
    if (ep->fast.in_handler)
        return 0;
    ep->fast.in_handler = RNL_IN_CALL;
    for (uint32_t i = 0; i < most && !are_blocked(ws); i++) {
        struct window_note *note = &ws->note[(first + i) % ws->notes_size];
        if (!may_run(note, is_thread))
            continue;
        call(ws, note);
        if (rnl_ep_forked(ep))
            return ran;
        ws->notes_running = 0;
        ran++;
        drop_empty(ws);
    }
    drop_empty(ws);
    ep->fast.in_handler = 0;
    ws->notes_run += ran;
    ws->count[WINDOW_NOTES_RUN] += ran;
    return ran;
}

/* The window is freed: nothing names it any more. */
void rnl_window_notes_purge(struct rnl_windows *ws, const struct rnl_window *w)
{
    for (uint32_t i = 0; i < ws->notes; i++) {
        struct window_note *note = &ws->note[(ws->notes_first + i) % ws->notes_size];
        if (note->window == w)
            note->window = NULL;
    }
}

int rnl_notify_block(rnl_endpoint *ep)
{
    struct rnl_windows *ws;
    int status = rnl_window_enter(ep, &ws);
    if (status < 0)
        return status;
    ws->notes_blocked++;
    rnl_window_watch(ws);
    rnl_window_leave(ws);
    return 0;
}

int rnl_notify_unblock(rnl_endpoint *ep)
{
    struct rnl_windows *ws;
    int status = rnl_window_enter(ep, &ws);
    if (status < 0)
        return status;
    if (ws->notes_blocked == 0) {
        status = rnl_fail(RNL_ERR_CONTEXT, "notifications are not blocked%s",
                          ws->notes_running ? ", but by the one that runs, which blocks them until it returns" : "");
    } else {
        ws->notes_blocked--;
        rnl_window_watch(ws);
    }
    rnl_window_leave(ws);
    return status;
}

int64_t rnl_notify_wait(rnl_endpoint *ep, int64_t timeout_ns)
{
    struct rnl_windows *ws;
    int64_t status = rnl_window_enter(ep, &ws);
    if (status < 0)
        return status;
    uint64_t before = ws->notes_run, deadline = rnl_window_deadline(ws, timeout_ns);
    status = rnl_window_may_wait(ws) ? 0 : rnl_window_no_context();
    while (status == 0 && ws->notes_run == before)
        status = rnl_window_turn(ws, ep, deadline);
    if (status == RNL_ERR_FORKED)
        return status;
    if (ws->notes_run != before)
        status = (int64_t)(ws->notes_run - before);
    else if (status == RNL_TIMED_OUT)
        status = rnl_timed_out();
    rnl_window_leave(ws);
    return status;
}
