/* SPDX-License-Identifier: BSD-3-Clause
 *
 * post.c - messages that wait in a queue for their peer, in order, and are sent piecewise as room comes; their bytes
 * stay with the caller until `done` was called. And the calls that report to the program: posts that are done, peers
 * that died, processes that want to become peers. Whatever is to be reported is only noted when it is found. The
 * program is called at the end of an extract, when no list of the endpoint is being walked and no handler runs. Like a
 * handler, such a function may send and post, but must not make progress or close. So there is no recursion, and no
 * caller finds its state changed. */
#include <stdlib.h>

#include "runnel/adapter.h"
#include "runnel/meet.h"
#include "stream/barrier.h"
#include "stream/stream_internal.h"

/* A message that is queued, or has ended and is not reported yet. */
struct rnl_post {
    struct rnl_post *next;
    struct rnl_endpoint *ep;
    struct rnl_conn *conn; /* NULL = it has ended */
    struct rnl_message begin;
    struct rnl_stream *stream; /* NULL = not begun */
    uint64_t charge;           /* bytes of the queue's budget until it is reported, with its own memory */
    void (*done)(void *arg, int status);
    void *arg;
    int status;
    unsigned piece, count;
    size_t offset;
    struct rnl_buffer pieces[];
};

/* ---- reports to the program ---- */

/* Notes the message's end and status; its `done` is called at the end of an extract. */
static void note_done(struct rnl_endpoint *ep, struct rnl_post *p, int status)
{
    p->status = status;
    p->next = NULL;
    if (ep->work.done_first)
        ep->work.done_last->next = p;
    else
        ep->work.done_first = p;
    ep->work.done_last = p;
    ep->work.calls++;
    rnl_ep_set_pending(ep);
    if (ep->wait.fd_armed)
        rnl_ep_busy(ep); /* an extract has something to report */
}

static void report_posts(struct rnl_endpoint *ep)
{
    struct rnl_post *p = ep->work.done_first, *next;
    ep->work.done_first = ep->work.done_last = NULL; /* what is posted meanwhile is reported next time */
    for (; p && !rnl_ep_forked(ep); p = next) {
        next = p->next;
        ep->work.calls--;
        ep->credit.post_bytes -= p->charge;
        RNL_NO_EXCEPTION();
        if (p->done)
            p->done(p->arg, p->status);
        free(p);
    }
}

static void report_deaths(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; ep->work.reports && i < ep->size; i++) {
        struct rnl_peer *p = &ep->peer[i];
        if (!p->report_due)
            continue;
        p->report_due = 0;
        ep->work.reports--;
        ep->work.calls--;
        RNL_NO_EXCEPTION();
        for (struct rnl_ep_watch *w = ep->hooks.watches, *next; w && !rnl_ep_forked(ep); w = next) {
            next = w->next;
            w->died(w, i);
        }
        if (ep->hooks.death)
            ep->hooks.death(ep->hooks.death_arg, i, (enum rnl_death_reason)p->reason);
    }
}

/* A function of the program may leave the peer that it is asked about, or fork. */
static void ask(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_cred cred;
    rnl_connection_request *f;
    void *ctx;
    if (!ep->env->meet->request(ep->env, rank, &cred, &f, &ctx))
        return;
    RNL_NO_EXCEPTION();
    bool welcome = f(ctx, rank, &cred) == 0;
    if (!rnl_ep_forked(ep))
        ep->env->meet->reply(ep->env, rank, welcome);
}

static void report_requests(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; !rnl_ep_forked(ep) && ep->work.requests && i < ep->size; i++) {
        struct rnl_peer *p = &ep->peer[i];
        if (!p->request_due)
            continue;
        p->request_due = 0;
        ep->work.requests--;
        ep->work.calls--;
        ask(ep, i);
    }
}

unsigned rnl_stream_run_callbacks(struct rnl_endpoint *ep)
{
    unsigned n = ep->work.calls;
    ep->fast.in_handler = RNL_IN_CALL;
    report_posts(ep);
    report_deaths(ep);
    if (ep->work.requests)
        report_requests(ep);
    ep->fast.in_handler = 0;
    rnl_ep_set_pending(ep);
    return n;
}

/* ---- the queue ---- */

static int begin(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_post *p)
{
    rnl_stream_promote(ep);
    if (rnl_stream_out(conn)->state != RNL_STREAM_FREE)
        return RNL_NO_ROOM;
    int status = rnl_stream_try_begin(ep, conn, &p->begin, 0, &p->stream);
    if (status == 0) {
        p->stream->owner = NULL; /* it outlives the handler that posted it */
        conn->post_sending = 1;
    }
    return status;
}

/* Sends what fits. Returns 0 = the message is sent whole, RNL_NO_ROOM = the rest waits, else the message is lost. */
static int send_some(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_post *p)
{
    if (!p->stream) {
        int status = begin(ep, conn, p);
        if (status < 0)
            return status;
    }
    for (; p->piece < p->count; p->piece++, p->offset = 0) {
        const struct rnl_buffer *piece = &p->pieces[p->piece];
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
    ep->work.posts--;
    p->conn = NULL;
    note_done(ep, p, status);
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

unsigned rnl_stream_send_posts(struct rnl_endpoint *ep)
{
    unsigned sent = 0;
    for (uint32_t i = 0; ep->work.posts && i < ep->poll.connected; i++) {
        struct rnl_conn *conn = ep->fast.conns[i];
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

void rnl_stream_fail_posts(struct rnl_endpoint *ep, struct rnl_conn *conn, int status)
{
    while (conn->post_first) {
        struct rnl_post *p = shift(conn);
        if (p->stream)
            rnl_stream_abort(p->stream);
        conn->post_sending = 0;
        finish(ep, p, status);
    }
}

/* Makes a post whose own memory, and the bytes of its pieces unless the caller holds those anyway, fit the budget. */
static int new_post(struct rnl_endpoint *ep, const struct rnl_message *b, const struct rnl_buffer *pieces,
                    unsigned count, size_t bytes, struct rnl_post **out)
{
    size_t own = sizeof(struct rnl_post) + count * sizeof *pieces;
    if (ep->credit.post_bytes &&
        bytes + own >
            RNL_POST_BUDGET - (ep->credit.post_bytes < RNL_POST_BUDGET ? ep->credit.post_bytes : RNL_POST_BUDGET))
        return rnl_fail(RNL_NO_ROOM, "%llu bytes are queued already; the limit is %d: extract or wait, then send again",
                        (unsigned long long)ep->credit.post_bytes, RNL_POST_BUDGET);
    struct rnl_post *p = malloc(own);
    if (!p)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to queue a message of %u pieces", count);
    *p = (struct rnl_post){.ep = ep, .begin = *b, .charge = bytes + own, .count = count};
    if (count)
        memcpy(p->pieces, pieces, count * sizeof *pieces);
    ep->credit.post_bytes += p->charge;
    *out = p;
    return 0;
}

static int post(struct rnl_endpoint *ep, const struct rnl_message *b, const struct rnl_buffer *pieces, unsigned count,
                void (*done)(void *arg, int status), void *arg, struct rnl_post **held)
{
    struct rnl_conn *conn;
    struct rnl_post *p = NULL;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        if (pieces[i].n > b->bound - bytes)
            return rnl_fail(RNL_ERR_PAST_END, "piece %u is %zu bytes, with %zu before it: more than the bound of %zu",
                            i, pieces[i].n, bytes, b->bound);
        bytes += pieces[i].n;
    }
    if (ep->close.closing == RNL_CLOSED)
        return rnl_fail(RNL_ERR_CLOSED, "the endpoint is being closed: nothing can be posted any more");
    int status = rnl_stream_check_begin(ep, b);
    if (status == 0)
        status = rnl_ep_connect_soon(ep, b->peer, &conn);
    if (status < 0)
        return status;
    if (conn->shut & RNL_SHUT_DEAD)
        return rnl_ep_gone(ep, b->peer);
    status = new_post(ep, b, pieces, count, held ? 0 : bytes, &p);
    if (status < 0)
        return status;
    p->conn = conn;
    p->done = done;
    p->arg = arg;
    if (held)
        *held = p;
    ep->work.posts++;
    rnl_ep_set_pending(ep);
    if (!conn->post_first) {
        status = advance(ep, conn, p);
        if (status != RNL_NO_ROOM) {
            finish(ep, p, status);
            rnl_ep_look_again(ep); /* an extract has it to report */
            return 0;
        }
    }
    ep->c->posts_queued++;
    *conn->post_last = p;
    conn->post_last = &p->next;
    rnl_conn_shut(conn, RNL_SHUT_POSTS);
    rnl_ep_look_again(ep); /* sleepers have to arm for room, too */
    return 0;
}

int rnl_post(rnl_endpoint *ep, const struct rnl_message *b, const struct rnl_buffer *pieces, unsigned count,
             void (*done)(void *arg, int status), void *arg)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = post(ep, b, pieces, count, done, arg, NULL);
    rnl_ep_leave(ep);
    return status;
}

int rnl_post_held(rnl_endpoint *ep, const struct rnl_message *b, const struct rnl_buffer *pieces, unsigned count,
                  void (*done)(void *arg, int status), void *arg, rnl_posted **out)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = post(ep, b, pieces, count, done, arg, out);
    rnl_ep_leave(ep);
    return status;
}

/* Takes the post out of its peer's queue. What was sent of it is given up. */
static void withdraw(struct rnl_endpoint *ep, struct rnl_post *p)
{
    struct rnl_conn *conn = p->conn;
    struct rnl_post **at = &conn->post_first;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (!p->next)
        conn->post_last = at;
    if (!conn->post_first)
        conn->shut &= (uint8_t)~RNL_SHUT_POSTS;
    if (p->stream) {
        conn->post_sending = 0;
        rnl_stream_abort(p->stream);
    }
    finish(ep, p, RNL_ERR_ABORTED);
    rnl_ep_look_again(ep); /* an extract has it to report, and those behind it may go */
}

int rnl_cancel(rnl_posted *p)
{
    struct rnl_endpoint *ep = p->ep;
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = p->conn != NULL;
    if (status)
        withdraw(ep, p);
    rnl_ep_leave(ep);
    return status;
}
