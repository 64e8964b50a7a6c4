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
    bool bulk;                 /* of the bulk lane */
    struct rnl_stream *stream; /* lane 0: NULL = not begun */
    uint64_t charge;           /* bytes of the queue's budget until it is reported, with its own memory */
    void (*done)(void *arg, int status);
    void *arg;
    int status;
    struct rnl_cursor at;
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
    for (struct rnl_cursor *at = &p->at; at->piece < at->count; at->piece++, at->offset = 0) {
        const struct rnl_buffer *piece = &at->pieces[at->piece];
        int64_t took = rnl_stream_put(p->stream, (const char *)piece->buf + at->offset, piece->n - at->offset);
        if (took < 0) {
            rnl_stream_abort(p->stream); /* ended, it would be taken for a whole one */
            return (int)took;
        }
        at->offset += (size_t)took;
        if (at->offset < piece->n)
            return RNL_NO_ROOM;
    }
    return rnl_stream_try_end(p->stream);
}

static int advance(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_post *p)
{
    if (p->bulk)
        return rnl_stream_bulk_send(ep, conn, p->begin.handler, &p->at);
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

/* The two queues of a connection: lane 0 and the bulk lane. */
static struct rnl_post **queue_of(struct rnl_conn *conn, bool bulk)
{
    return bulk ? &conn->bulk->post_first : &conn->post_first;
}
static struct rnl_post ***end_of(struct rnl_conn *conn, bool bulk)
{
    return bulk ? &conn->bulk->post_last : &conn->post_last;
}

/* Notes whether posts wait, after a change of their queue. */
static void set_waiting(struct rnl_conn *conn, bool bulk)
{
    if (bulk)
        conn->bulk_posts = conn->bulk->post_first || conn->bulk->aborting;
    else if (conn->post_first)
        rnl_conn_shut(conn, RNL_SHUT_POSTS);
    else
        conn->shut &= (uint8_t)~RNL_SHUT_POSTS;
}

static void append(struct rnl_conn *conn, struct rnl_post *p)
{
    struct rnl_post ***last = end_of(conn, p->bulk);
    **last = p;
    *last = &p->next;
    set_waiting(conn, p->bulk);
}

static void take_out(struct rnl_conn *conn, struct rnl_post *p)
{
    struct rnl_post **at = queue_of(conn, p->bulk);
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (!p->next)
        *end_of(conn, p->bulk) = at;
    set_waiting(conn, p->bulk);
}

static unsigned send_queue(struct rnl_endpoint *ep, struct rnl_conn *conn, bool bulk)
{
    unsigned sent = 0;
    for (struct rnl_post *p; (p = *queue_of(conn, bulk)) && !conn->dying; sent++) {
        int status = advance(ep, conn, p);
        if (status == RNL_NO_ROOM)
            break;
        take_out(conn, p);
        finish(ep, p, status);
    }
    return sent;
}

unsigned rnl_stream_send_posts(struct rnl_endpoint *ep)
{
    unsigned sent = 0;
    for (uint32_t i = 0; ep->work.posts && i < ep->poll.connected; i++) {
        struct rnl_conn *conn = ep->fast.conns[i];
        sent += send_queue(ep, conn, false);
        if (RNL_LIKELY(!conn->bulk_posts))
            continue;
        if (!conn->dying)
            (void)rnl_stream_bulk_aborts(ep, conn);
        sent += send_queue(ep, conn, true);
        set_waiting(conn, true);
    }
    return sent;
}

/* Gives up what was sent of a post that is not in its queue any more. */
static void give_up(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_post *p)
{
    if (p->bulk && p->at.sent != UINT64_MAX) {
        rnl_stream_bulk_abort(ep, conn, p->begin.handler);
        set_waiting(conn, true);
    } else if (p->stream) {
        conn->post_sending = 0;
        rnl_stream_abort(p->stream);
    }
}

static void fail_queue(struct rnl_endpoint *ep, struct rnl_conn *conn, bool bulk, int status)
{
    for (struct rnl_post *p; (p = *queue_of(conn, bulk));) {
        take_out(conn, p);
        give_up(ep, conn, p);
        finish(ep, p, status);
    }
}

void rnl_stream_fail_posts(struct rnl_endpoint *ep, struct rnl_conn *conn, int status)
{
    fail_queue(ep, conn, false, status);
    if (!conn->bulk)
        return;
    fail_queue(ep, conn, true, status);
    if (conn->bulk->aborting) { /* nobody is left to hear of it */
        conn->bulk->aborting = 0;
        ep->work.posts--;
    }
    set_waiting(conn, true);
}

/* Makes a post whose own memory, and the bytes of its pieces unless the caller holds those anyway, fit the budget. */
static int new_post(struct rnl_endpoint *ep, const struct rnl_message *b, const struct rnl_buffer *pieces,
                    unsigned count, size_t bytes, bool held, struct rnl_post **out)
{
    size_t own = sizeof(struct rnl_post) + count * sizeof *pieces, charge = held ? 0 : bytes;
    if (ep->credit.post_bytes &&
        charge + own >
            RNL_POST_BUDGET - (ep->credit.post_bytes < RNL_POST_BUDGET ? ep->credit.post_bytes : RNL_POST_BUDGET))
        return rnl_fail(RNL_NO_ROOM, "%llu bytes are queued already; the limit is %d: extract or wait, then send again",
                        (unsigned long long)ep->credit.post_bytes, RNL_POST_BUDGET);
    struct rnl_post *p = malloc(own);
    if (!p)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to queue a message of %u pieces", count);
    *p = (struct rnl_post){
        .ep = ep, .begin = *b, .charge = charge + own, .at = {p->pieces, 0, count, 0, UINT64_MAX, bytes}};
    if (count)
        memcpy(p->pieces, pieces, count * sizeof *pieces);
    ep->credit.post_bytes += p->charge;
    *out = p;
    return 0;
}

static int post(struct rnl_endpoint *ep, const struct rnl_message *message, const struct rnl_buffer *pieces,
                unsigned count, void (*done)(void *arg, int status), void *arg, struct rnl_post **held)
{
    struct rnl_conn *conn;
    struct rnl_post *p = NULL;
    size_t bytes = 0;
    const bool bulk = (message->flags & RNL_BULK) != 0;
    struct rnl_message copy = *message, *b = &copy;
    b->flags &= ~(unsigned)RNL_BULK;
    for (unsigned i = 0; i < count; i++) {
        if (pieces[i].n > b->bound - bytes)
            return rnl_fail(RNL_ERR_PAST_END, "piece %u is %zu bytes, with %zu before it: more than the bound of %zu",
                            i, pieces[i].n, bytes, b->bound);
        bytes += pieces[i].n;
    }
    if (ep->close.closing == RNL_CLOSED)
        return rnl_fail(RNL_ERR_CLOSED, "the endpoint is being closed: nothing can be posted any more");
    if (bulk && b->answer)
        return rnl_fail(RNL_ERR_ARG, "a message of the bulk lane causes no reply: post it without RNL_BULK");
    int status = rnl_stream_check_begin(ep, b);
    if (status == 0)
        status = rnl_ep_connect_soon(ep, b->peer, &conn);
    if (status == 0 && bulk)
        status = rnl_stream_bulk_open(ep, conn);
    if (status < 0)
        return status;
    if (conn->shut & RNL_SHUT_DEAD)
        return rnl_ep_gone(ep, b->peer);
    status = new_post(ep, b, pieces, count, bytes, held != NULL, &p);
    if (status < 0)
        return status;
    p->conn = conn;
    p->bulk = bulk;
    p->done = done;
    p->arg = arg;
    if (held)
        *held = p;
    ep->work.posts++;
    rnl_ep_set_pending(ep);
    if (!*queue_of(conn, bulk)) {
        status = advance(ep, conn, p);
        if (status != RNL_NO_ROOM) {
            finish(ep, p, status);
            rnl_ep_look_again(ep); /* an extract has it to report */
            return 0;
        }
    }
    ep->c->posts_queued++;
    append(conn, p);
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

static void withdraw(struct rnl_endpoint *ep, struct rnl_post *p)
{
    struct rnl_conn *conn = p->conn;
    take_out(conn, p);
    give_up(ep, conn, p);
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
