/* SPDX-License-Identifier: BSD-3-Clause
 *
 * carry.c - the peers of windows by number, and messages to them over whatever links them. */
#include "window/window_internal.h"

#include <stdlib.h>

int rnl_window_peer(struct rnl_windows *ws, uint32_t rank, struct window_peer **out)
{
    if (rank >= ws->ep->size)
        return rnl_fail(RNL_ERR_RANK, "there is no rank %u: the job has ranks 0 to %u", rank, ws->ep->size - 1);
    struct window_peer *p = ws->peer[rank];
    if (!p) {
        p = calloc(1, sizeof *p);
        if (!p)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the windows of rank %u", rank);
        p->rank = rank;
        p->last = &p->first;
        ws->peer[rank] = p;
    }
    *out = p;
    return 0;
}

struct window_peer *rnl_window_bound(const struct rnl_windows *ws, uint32_t at)
{
    uint32_t rank = ws->bound[at] - 1;
    return rank < ws->ep->size ? ws->peer[rank] : NULL;
}

struct window_peer *rnl_window_sender(struct rnl_windows *ws, rnl_stream *s, unsigned peer)
{
    struct window_peer *p = NULL;
    if (s->ep == ws->inner)
        return rnl_window_bound(ws, peer);
    return rnl_window_peer(ws, peer, &p) < 0 ? NULL : p;
}

/* ---- sending ---- */

/* Returns whether to go on with a call at the window endpoint that has waited for WINDOW_LOOK_NS. */
static bool goes_on(struct rnl_windows *ws, const struct window_peer *p, const struct rnl_endpoint *via, int *status)
{
    const struct rnl_peer *peer = &ws->ep->peer[p->rank];
    if (*status != RNL_TIMED_OUT || via != ws->inner)
        return false;
    rnl_ep_take_events(ws->ep);
    if (!rnl_peer_is_dead(peer) && peer->state != RNL_PEER_IS_ENDING)
        return true;
    *status = rnl_ep_gone(ws->ep, p->rank);
    return false;
}

static int piece(struct rnl_windows *ws, const struct window_peer *p, rnl_stream *s, const void *buf, size_t n)
{
    int status = 0;
    do
        status = n ? rnl_piece(s, buf, n) : 0;
    while (goes_on(ws, p, s->ep, &status));
    return status;
}

int rnl_window_send(struct rnl_windows *ws, struct window_peer *p, enum window_kind kind, const void *head,
                    size_t head_bytes, const void *buf, size_t n, size_t answer)
{
    const struct rnl_message b = {.peer = p->at,
                                  .handler = RNL_LIBRARY_ID + (unsigned)kind,
                                  .bound = head_bytes + n,
                                  .answer = answer,
                                  .flags = rnl_window_may_wait(ws) ? 0 : RNL_NO_WAIT};
    struct rnl_endpoint *via = p->via;
    rnl_stream *s;
    int status;
    if (n == 0 && head_bytes <= RNL_SHORT_MAX && !answer && !b.flags) { /* a notification of a direct put: one call */
        do
            status = rnl_send(via, b.peer, b.handler, head, head_bytes);
        while (goes_on(ws, p, via, &status));
        return status;
    }
    do
        status = rnl_begin(via, &b, &s);
    while (goes_on(ws, p, via, &status));
    if (status == RNL_ERR_TOO_LONG && b.flags)
        return rnl_fail(RNL_NO_ROOM, "%zu bytes are too many for a put that must not wait: use rnl_put_async", n);
    if (status < 0)
        return status;
    bool is_open = true;
    status = piece(ws, p, s, head, head_bytes);
    if (status == 0)
        status = piece(ws, p, s, buf, n);
    while (status == 0 && is_open) {
        status = rnl_end(s);
        is_open = status == RNL_TIMED_OUT;
        if (goes_on(ws, p, via, &status))
            status = 0;
    }
    if (is_open)
        (void)rnl_abort(s);
    return status;
}

static void posted(void *copy, int status)
{
    (void)status; /* if the peer is gone, it is told by its death */
    free(copy);
}

int rnl_window_post(struct rnl_windows *ws, struct window_peer *p, enum window_kind kind, const void *head,
                    size_t head_bytes, size_t answer)
{
    const struct rnl_message b = {
        .peer = p->at, .handler = RNL_LIBRARY_ID + (unsigned)kind, .bound = head_bytes, .answer = answer};
    struct rnl_buffer piece = {.n = head_bytes};
    struct rnl_endpoint *via = kind == WINDOW_APART ? ws->ep : p->via;
    if (head_bytes) {
        void *copy = malloc(head_bytes);
        if (!copy)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to queue %zu bytes", head_bytes);
        memcpy(copy, head, head_bytes);
        piece.buf = copy;
    }
    int status = rnl_post(via, &b, &piece, 1, posted, (void *)(uintptr_t)piece.buf);
    if (status < 0)
        free((void *)(uintptr_t)piece.buf);
    return status;
}
