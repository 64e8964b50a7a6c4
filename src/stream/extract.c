/* SPDX-License-Identifier: BSD-3-Clause
 *
 * extract.c - the progress calls: extract, wait, fd; what a blocked send calls; and what happens to open messages when a peer goes. */
#include "stream/stream.h"

#include <stdlib.h>

int64_t rnl_stream_extract(struct rnl_endpoint *ep, uint64_t max, unsigned *things)
{
    uint64_t bytes = 0;
    unsigned taken = 0, count = ep->hot_count, deaths = ep->deaths_seen;
    int quit = 0;
    rnl_ep_settle(ep);
    if (ep->open_streams)
        rnl_stream_flush(ep);
    rnl_ep_news(ep);
    for (uint32_t k = 0; k < count && !quit; k++) {
        uint32_t i = ep->turn + k;
        if (i >= count)
            i -= count;
        struct rnl_conn *conn = ep->hot[i];
        if (RNL_UNLIKELY(conn->broken))
            continue;
        if (conn->lane1_hot) {
            uint64_t answers = 0;
            int ignored = 0;
            taken += rnl_stream_take(ep, conn, 1, UINT64_MAX, &answers, &ignored);
        }
        if (bytes < max) {
            taken += rnl_stream_take(ep, conn, 0, max, &bytes, &quit);
            if (RNL_UNLIKELY(quit || bytes >= max))
                ep->turn = i + 1 < count ? i + 1 : 0; /* the next call begins with the next peer */
        }
    }
    if (RNL_UNLIKELY(ep->turn >= ep->hot_count))
        ep->turn = 0;
    if (RNL_UNLIKELY(ep->posts))
        taken += rnl_stream_posts(ep);
    if (RNL_UNLIKELY(ep->dying))
        rnl_ep_bury_dying(ep);
    *things = taken + (ep->deaths_seen - deaths);
    return (int64_t)bytes;
}

unsigned rnl_stream_progress(struct rnl_endpoint *ep)
{
    unsigned things;
    (void)rnl_stream_extract(ep, ep->flags & RNL_NO_RUN_IN_SEND ? 0 : UINT64_MAX, &things);
    return things;
}

static int may_progress(struct rnl_endpoint *ep)
{
    if (ep->in_handler)
        return rnl_fail(RNL_ERR_CONTEXT, "extract and wait do not belong inside a handler: return from it first");
    return 0;
}

int64_t rnl_extract(rnl_endpoint *ep, size_t max_bytes)
{
    unsigned things;
    int64_t bytes = rnl_ep_enter(ep);
    if (bytes < 0)
        return bytes;
    if (RNL_UNLIKELY(ep->in_handler)) {
        bytes = may_progress(ep);
    } else {
        bytes = rnl_stream_extract(ep, max_bytes, &things);
        if (things) {
            ep->empties = 0;
            if (ep->fd_armed)
                rnl_ep_busy(ep);
        } else if (RNL_UNLIKELY(ep->job_gone)) {
            bytes = rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone");
        } else {
            rnl_ep_empty(ep);
        }
    }
    rnl_ep_leave(ep);
    return bytes;
}

int64_t rnl_wait(rnl_endpoint *ep, int64_t timeout_ns)
{
    struct rnl_idle w = {.deadline_ns = UINT64_MAX};
    unsigned things;
    int64_t bytes = rnl_ep_enter(ep);
    if (bytes < 0)
        return bytes;
    bytes = may_progress(ep);
    if (bytes == 0 && timeout_ns >= 0)
        w.deadline_ns = ep->env->ops->now_ns(ep->env) + (uint64_t)timeout_ns;
    while (bytes == 0) {
        bytes = rnl_stream_extract(ep, SIZE_MAX, &things);
        if (things) {
            if (ep->fd_armed)
                rnl_ep_busy(ep);
            break;
        }
        if (ep->job_gone)
            bytes = rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone");
        else
            bytes = rnl_ep_idle(ep, &w);
    }
    rnl_ep_leave(ep);
    return bytes;
}

int rnl_fd(rnl_endpoint *ep)
{
    int fd = rnl_ep_enter(ep);
    if (fd < 0)
        return fd;
    fd = rnl_ep_fd(ep);
    rnl_ep_leave(ep);
    return fd;
}

/* ---- a peer is gone ---- */

static void fail_incoming(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    if (s->state == RNL_STREAM_SUSPENDED) {
        s->dead = 1;
        if (s->drop) {
            rnl_coro_drop(s->coro);
            s->coro = NULL;
        } else {
            rnl_stream_feed(ep, s); /* resumes it: its receive says RNL_ERR_PEER_DEAD */
        }
    } else if (s->state == RNL_STREAM_GATHER && s->base) {
        free(s->base);
    }
    s->base = NULL;
    s->at = s->end = NULL;
    s->state = RNL_STREAM_FREE;
    ep->c->stacks_in_use = rnl_coro_in_use(ep->coros);
}

static void gone(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        fail_incoming(ep, &conn->in[lane]);
    rnl_stream_posts_fail(ep, conn, RNL_ERR_PEER_DEAD); /* an open outgoing stream is its owner's to end */
}

void rnl_stream_attach(struct rnl_endpoint *ep)
{
    ep->on_gone = gone;
}
