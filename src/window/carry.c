/* SPDX-License-Identifier: BSD-3-Clause
 *
 * carry.c - the peers of windows by number, and messages to them over whatever links them. */
#include "window/internal.h"

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

int rnl_window_send(struct rnl_windows *ws, struct window_peer *p, enum window_kind kind, const void *head,
                    size_t head_bytes, const void *buf, size_t n, size_t answer)
{
    const struct rnl_message b = {.peer = p->at,
                                  .handler = RNL_LIBRARY_ID + (unsigned)kind,
                                  .bound = head_bytes + n,
                                  .answer = answer,
                                  .flags = rnl_window_may_wait(ws) ? 0 : RNL_NO_WAIT};
    rnl_stream *s;
    int status = rnl_begin(p->via, &b, &s);
    if (status == RNL_ERR_TOO_LONG && b.flags)
        return rnl_fail(RNL_NO_ROOM, "%zu bytes are too many for a put that must not wait: use rnl_put_async", n);
    if (status < 0)
        return status;
    status = rnl_piece(s, head, head_bytes);
    if (status == 0 && n)
        status = rnl_piece(s, buf, n);
    int end = rnl_end(s);
    return status < 0 ? status : end;
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
