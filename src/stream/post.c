/* SPDX-License-Identifier: BSD-3-Clause
 *
 * post.c - messages that must not wait: queued per peer, in order with its streams, sent piecewise as room comes. The
 * bytes stay where the caller has them until `done` was called, which calls.c does. */
#include "stream/post.h"

#include <stdlib.h>

#include "stream/stream.h"

static int begin(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_post *p)
{
    rnl_stream_lengthen(ep);
    if (conn->out[0].state != RNL_STREAM_FREE)
        return RNL_NO_ROOM;
    int status = rnl_stream_try_begin(ep, conn, &p->begin, 0, &p->stream);
    if (status == 0) {
        p->stream->owner = NULL; /* it outlives the handler that posted it */
        conn->post_sending = 1;
    }
    return status;
}

/* 0 = sent whole, RNL_NO_ROOM = later, else lost. */
static int send_some(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_post *p)
{
    if (!p->stream) {
        int status = begin(ep, conn, p);
        if (status < 0)
            return status;
    }
    for (; p->piece < p->count; p->piece++, p->offset = 0) {
        const struct rnl_piece *piece = &p->pieces[p->piece];
        int64_t took = rnl_stream_put(p->stream, (const char *)piece->buf + p->offset, piece->n - p->offset);
        if (took < 0) {
            rnl_stream_abort(p->stream); /* ended, it would be taken for a whole one */
            return (int)took;
        }
        p->offset += (size_t)took;
        if (p->offset < piece->n)
            return RNL_NO_ROOM;
    }
    return rnl_stream_try_end(p->stream);
}

static int advance(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_post *p)
{
    int status = send_some(ep, conn, p);
    if (status != RNL_NO_ROOM)
        conn->post_sending = 0;
    return status;
}

static void finish(struct rnl_endpoint *ep, struct rnl_post *p, int status)
{
    ep->posts--;
    rnl_stream_done(ep, p, status);
}

static struct rnl_post *shift(struct rnl_conn *conn)
{
    struct rnl_post *p = conn->post_first;
    conn->post_first = p->next;
    if (!conn->post_first) {
        conn->post_last = &conn->post_first;
        conn->shut &= (uint8_t)~RNL_SHUT_POSTS;
    }
    return p;
}

unsigned rnl_stream_posts(struct rnl_endpoint *ep)
{
    unsigned sent = 0;
    for (uint32_t i = 0; ep->posts && i < ep->live; i++) {
        struct rnl_conn *conn = ep->hot[i];
        while (conn->post_first && !conn->dying) {
            int status = advance(ep, conn, conn->post_first);
            if (status == RNL_NO_ROOM)
                break;
            finish(ep, shift(conn), status);
            sent++;
        }
    }
    return sent;
}

void rnl_stream_posts_fail(struct rnl_endpoint *ep, struct rnl_conn *conn, int status)
{
    while (conn->post_first) {
        struct rnl_post *p = shift(conn);
        if (p->stream)
            rnl_stream_abort(p->stream);
        conn->post_sending = 0;
        finish(ep, p, status);
    }
}

static int post(struct rnl_endpoint *ep, const struct rnl_begin *b, const struct rnl_piece *pieces, unsigned count,
                void (*done)(void *arg, int status), void *arg)
{
    struct rnl_conn *conn;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        if (pieces[i].n > b->bound - bytes)
            return rnl_fail(RNL_ERR_PAST_END, "piece %u is %zu bytes, with %zu before it: more than the bound of %zu",
                            i, pieces[i].n, bytes, b->bound);
        bytes += pieces[i].n;
    }
    if (ep->closing == RNL_CLOSED)
        return rnl_fail(RNL_ERR_CLOSED, "the endpoint is being closed: nothing can be posted any more");
    int status = rnl_stream_check_begin(ep, b);
    if (status == 0)
        status = rnl_ep_connect_soon(ep, b->peer, &conn);
    if (status < 0)
        return status;
    if (conn->shut & RNL_SHUT_DEAD)
        return rnl_ep_gone(ep, b->peer);
    size_t own = sizeof(struct rnl_post) + count * sizeof *pieces;
    if (ep->post_bytes &&
        bytes + own > RNL_POST_BUDGET - (ep->post_bytes < RNL_POST_BUDGET ? ep->post_bytes : RNL_POST_BUDGET))
        return rnl_fail(RNL_NO_ROOM, "%llu bytes are queued already; the limit is %d: extract or wait, then send again",
                        (unsigned long long)ep->post_bytes, RNL_POST_BUDGET);
    struct rnl_post *p = malloc(own);
    if (!p)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to queue a message of %u pieces", count);
    *p = (struct rnl_post){.begin = *b, .charge = bytes + own, .done = done, .arg = arg, .count = count};
    if (count)
        memcpy(p->pieces, pieces, count * sizeof *pieces);
    ep->posts++;
    rnl_ep_chores(ep);
    ep->post_bytes += bytes + own;
    if (!conn->post_first) {
        status = advance(ep, conn, p);
        if (status != RNL_NO_ROOM) {
            finish(ep, p, status);
            rnl_ep_look_again(ep); /* an extract has it to tell */
            return 0;
        }
    }
    ep->c->posts_queued++;
    *conn->post_last = p;
    conn->post_last = &p->next;
    rnl_conn_shut(conn, RNL_SHUT_POSTS);
    rnl_ep_look_again(ep); /* whoever waits arms for room, too */
    return 0;
}

int rnl_post(rnl_endpoint *ep, const struct rnl_begin *b, const struct rnl_piece *pieces, unsigned count,
             void (*done)(void *arg, int status), void *arg)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = post(ep, b, pieces, count, done, arg);
    rnl_ep_leave(ep);
    return status;
}
