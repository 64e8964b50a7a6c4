/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rpc.c - remote procedure calls: a request and a reply, no more, since messages arrive once and in order. A client
 * keeps a ticket for each call that has not returned. What a reply claims is checked against the ticket. */
#include "api/panda/session.h"

#include <stdlib.h>

#include "runnel/adapter.h"

void pan_rpc_register(pan_rpc_handler *h)
{
    struct rnl_panda *p = rnl_pan_enter("pan_rpc_register");
    if (!p)
        return;
    p->request = h;
    rnl_pan_unlock(p);
}

/* ---- the client ---- */

static struct rnl_pan_call *new_call(struct rnl_panda *p)
{
    if (RNL_UNLIKELY(!p->free_call)) {
        uint32_t n = p->calls ? 2 * p->calls : 16;
        struct rnl_pan_call *more = realloc(p->call, n * sizeof *more);
        if (!more)
            return NULL;
        for (uint32_t i = p->calls; i < n; i++)
            more[i] = (struct rnl_pan_call){.next_free = i + 1 < n ? i + 2 : 0};
        p->call = more;
        p->free_call = p->calls + 1;
        p->calls = n;
    }
    uint32_t place = p->free_call - 1;
    struct rnl_pan_call *c = &p->call[place];
    p->free_call = c->next_free;
    p->numbers = (p->numbers + 1) & UINT32_MAX;
    if (!p->numbers)
        p->numbers = 1;
    c->ticket = p->numbers << 32 | place;
    return c;
}

static void free_call(struct rnl_panda *p, struct rnl_pan_call *c)
{
    c->ticket = 0;
    c->next_free = p->free_call;
    p->free_call = (uint32_t)(c - p->call) + 1;
}

/* With the lock; p->call may move while it waits. */
static inline int start(struct rnl_panda *p, uint32_t dest, const pan_iovec_t *iov, int n, size_t bytes, void *proto,
                        size_t psize, pan_rpc_done *done, void *arg)
{
    struct rnl_pan_call *c = new_call(p);
    if (!c)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for another call");
    c->dest = dest;
    c->done = done;
    c->arg = arg;
    const uint64_t ticket = c->ticket;
    const struct rnl_pan_rpc_head head = {.ticket = ticket, .psize = (uint32_t)psize, .refused = 0};
    memcpy(proto, &head, sizeof head);
    p->count[RNL_PAN_CALLS]++;
    int status = rnl_pan_send(p, dest, RNL_PAN_REQUEST, proto, psize, iov, n, bytes);
    if (RNL_UNLIKELY(status < 0)) {
        c = &p->call[(uint32_t)ticket];
        if (c->ticket != ticket)
            return 0; /* it failed while it was sent, and `done` was told */
        free_call(p, c);
    }
    return status;
}

int pan_rpc_start(int dest, const pan_iovec_t *iov, int n, void *proto, size_t psize, pan_rpc_done *done, void *arg)
{
    struct rnl_panda *p = rnl_pan_enter("pan_rpc_start");
    if (RNL_UNLIKELY(!p))
        return rnl_last_error()->status;
    int64_t bytes = rnl_pan_check(iov, n, proto, psize, RNL_PAN_RPC_OFFSET);
    int status = bytes < 0 ? (int)bytes : start(p, (uint32_t)dest, iov, n, (size_t)bytes, proto, psize, done, arg);
    rnl_pan_unlock(p);
    return status;
}

/* A thread that waits for a reply: the message is kept for it. */
struct trans {
    struct rnl_pan_waiter waiter;
    struct pan_msg *reply;
    int status;
};

/* Marks a call of pan_rpc_trans, whose reply is no upcall; its arg is a struct trans. */
static void is_trans(void *arg, int status, pan_msg_p reply, void *proto)
{
    (void)arg, (void)status, (void)reply, (void)proto;
}

static RNL_COLD int fail_trans(int status, int dest)
{
    if (status == RNL_ERR_HANDLER)
        return rnl_fail(status, "process %d has no handler of requests; it registers one with pan_rpc_register", dest);
    if (status == RNL_ERR_NO_MEMORY)
        return rnl_fail(status, "no memory for the reply of process %d", dest);
    return rnl_fail(status, "process %d died before it replied", dest);
}

int pan_rpc_trans(int dest, const pan_iovec_t *iov, int n, void *proto, size_t psize, pan_msg_p *reply,
                  void **reply_proto)
{
    struct rnl_panda *p = rnl_pan_enter("pan_rpc_trans");
    if (RNL_UNLIKELY(!p))
        return rnl_last_error()->status;
    struct trans t; /* not all of it: its condition is long, and seldom used */
    t.waiter.done = false;
    t.status = 0;
    int64_t bytes = rnl_pan_check(iov, n, proto, psize, RNL_PAN_RPC_OFFSET);
    int status = bytes < 0 ? (int)bytes : rnl_pan_may_wait(p, "pan_rpc_trans");
    if (status == 0)
        status = start(p, (uint32_t)dest, iov, n, (size_t)bytes, proto, psize, is_trans, &t);
    if (status == 0) {
        status = rnl_pan_block(p, &t.waiter, UINT64_MAX);
        for (uint32_t i = 0; status < 0 && i < p->calls; i++) /* the wait failed: no reply is to find it */
            if (p->call[i].ticket && p->call[i].arg == &t)
                free_call(p, &p->call[i]);
    }
    rnl_pan_unlock(p);
    if (status == 0 && t.status < 0)
        status = fail_trans(t.status, dest);
    if (status < 0)
        return status;
    *reply = t.reply;
    *reply_proto = t.reply->proto;
    return 0;
}

/* Receives the headers; the rest of the message is m's. */
static inline bool take_head(struct pan_msg *m, rnl_stream *s, unsigned peer, struct rnl_pan_rpc_head *head)
{
    bool exact;
    const size_t n = rnl_stream_length(s, &exact);
    if (RNL_UNLIKELY(n < sizeof *head || rnl_pan_take(s, m->proto, sizeof *head) < 0))
        return false;
    memcpy(head, m->proto, sizeof *head);
    const size_t more = head->psize - sizeof *head;
    if (RNL_UNLIKELY(more > RNL_PAN_PROTO_MAX - sizeof *head || head->psize > n))
        return false;
    if (more && RNL_UNLIKELY(rnl_pan_take(s, m->proto + sizeof *head, more) < 0))
        return false;
    m->stream = s;
    m->left = n - head->psize;
    m->sender = peer;
    return true;
}

static void drop(struct rnl_panda *p, struct pan_msg *m)
{
    m->in_upcall = 0;
    pan_msg_clear(m);
    (void)p;
}

static void finish_trans(struct rnl_panda *p, struct trans *t, struct pan_msg *m)
{
    const size_t n = m->left;
    t->status = m->status;
    if (n) {
        m->own = malloc(n);
        t->status = m->own ? pan_msg_consume(m, m->own, n) : RNL_ERR_NO_MEMORY;
        m->left = n;
    }
    m->stream = NULL;
    m->at = m->own;
    if (RNL_UNLIKELY(t->status < 0))
        drop(p, m);
    else
        t->reply = m;
    rnl_pan_complete(p, &t->waiter);
}

int rnl_pan_take_reply(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_panda *p = ctx;
    struct rnl_pan_rpc_head head;
    struct pan_msg *m = rnl_pan_msg_new(p);
    if (RNL_UNLIKELY(!m)) { /* the caller is told when its ticket fails with the peer */
        rnl_pan_fail_calls(p, peer, RNL_ERR_NO_MEMORY);
        return RNL_DONE;
    }
    bool good = take_head(m, s, peer, &head) && (uint32_t)head.ticket < p->calls;
    struct rnl_pan_call *c = good ? &p->call[(uint32_t)head.ticket] : NULL;
    if (RNL_UNLIKELY(!c || c->ticket != head.ticket || c->dest != peer || !head.ticket)) {
        drop(p, m);
        return RNL_DONE;
    }
    m->kind = RNL_PAN_OF_REPLY;
    m->done = c->done;
    m->arg = c->arg;
    free_call(p, c);
    if (RNL_UNLIKELY(head.refused)) {
        m->status = RNL_ERR_HANDLER;
        m->stream = NULL;
        m->left = 0;
    }
    if (m->done == is_trans)
        finish_trans(p, m->arg, m);
    else
        rnl_pan_upcall(p, m);
    return RNL_DONE;
}

void rnl_pan_fail_calls(struct rnl_panda *p, uint32_t rank, int status)
{
    for (uint32_t i = 0; i < p->calls; i++) {
        struct rnl_pan_call *c = &p->call[i];
        if (!c->ticket || c->dest != rank)
            continue;
        pan_rpc_done *done = c->done;
        void *arg = c->arg;
        free_call(p, c);
        if (done == is_trans) {
            struct trans *t = arg;
            t->status = status;
            rnl_pan_complete(p, &t->waiter);
            continue;
        }
        struct pan_msg *m = rnl_pan_msg_new(p);
        if (!m)
            continue;
        m->kind = RNL_PAN_OF_REPLY;
        m->done = done;
        m->arg = arg;
        m->status = status;
        rnl_pan_upcall(p, m);
    }
}

/* ---- the server ---- */

/* A reply that could not go at once. */
struct later {
    void (*clear)(void *arg);
    void *arg;
    unsigned char proto[RNL_PAN_PROTO_MAX];
};

static void posted(void *arg, int status)
{
    struct later *l = arg;
    (void)status;
    if (l->clear)
        l->clear(l->arg);
    free(l);
}

static int post(struct rnl_panda *p, uint32_t dest, const pan_iovec_t *iov, int n, const void *proto, size_t psize,
                void (*clear)(void *arg), void *arg)
{
    struct rnl_buffer pieces[PAN_PIECES_MAX + 1];
    struct rnl_message b = {.peer = dest, .handler = RNL_PAN_REPLY, .bound = psize, .answer = 0, .flags = 0};
    struct later *l = malloc(sizeof *l);
    if (!l)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a reply");
    l->clear = clear;
    l->arg = arg;
    memcpy(l->proto, proto, psize);
    pieces[0] = (struct rnl_buffer){l->proto, psize};
    for (int i = 0; i < n; i++) {
        pieces[i + 1] = (struct rnl_buffer){iov[i].data, iov[i].len};
        b.bound += iov[i].len;
    }
    rnl_posted *out;
    int status = rnl_post_held(p->ep, &b, pieces, (unsigned)n + 1, posted, l, &out);
    if (status < 0)
        free(l);
    return status;
}

/* Says that there is no handler of requests: without it the caller would wait for ever. */
static RNL_COLD void refuse(struct rnl_panda *p, struct pan_msg *m, unsigned peer, uint64_t ticket)
{
    const struct rnl_pan_rpc_head head = {.ticket = ticket, .psize = sizeof head, .refused = 1};
    drop(p, m);
    (void)!post(p, peer, NULL, 0, &head, sizeof head, NULL, NULL); /* without memory the caller goes on waiting */
}

int rnl_pan_take_request(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_panda *p = ctx;
    struct rnl_pan_rpc_head head;
    struct pan_upcall *u = p->free_upcalls;
    struct pan_msg *m = rnl_pan_msg_new(p);
    if (RNL_LIKELY(u != NULL))
        p->free_upcalls = u->next;
    else
        u = malloc(sizeof *u);
    if (RNL_UNLIKELY(!u || !m || !take_head(m, s, peer, &head))) {
        free(u);
        if (m)
            drop(p, m);
        return RNL_DONE;
    }
    if (RNL_UNLIKELY(!p->request)) {
        free(u);
        refuse(p, m, peer, head.ticket);
        return RNL_DONE;
    }
    *u = (struct pan_upcall){.next = NULL, .ticket = head.ticket, .client = peer};
    m->kind = RNL_PAN_OF_REQUEST;
    m->upcall = u;
    p->count[RNL_PAN_SERVED]++;
    if (RNL_UNLIKELY(!rnl_pan_at_once(p))) {
        rnl_pan_upcall(p, m);
        return RNL_DONE;
    }
    m->in_upcall = 1;
    p->request(u, m, m->proto);
    rnl_pan_after_upcall(p, m);
    return RNL_DONE;
}

int pan_rpc_reply(pan_upcall_p u, const pan_iovec_t *iov, int n, void *proto, size_t psize, void (*clear)(void *arg),
                  void *arg)
{
    struct rnl_panda *p = rnl_pan_enter("pan_rpc_reply");
    if (RNL_UNLIKELY(!p))
        return rnl_last_error()->status;
    int64_t bytes = rnl_pan_check(iov, n, proto, psize, RNL_PAN_RPC_OFFSET);
    int status = bytes < 0 ? (int)bytes : 0;
    bool later = false;
    if (status == 0) {
        const struct rnl_pan_rpc_head head = {.ticket = u->ticket, .psize = (uint32_t)psize, .refused = 0};
        memcpy(proto, &head, sizeof head);
        later = p->ep->fast.in_handler && psize + (size_t)bytes > RNL_PAN_SHORT;
        if (!later)
            status = rnl_pan_send(p, u->client, RNL_PAN_REPLY, proto, psize, iov, n, (size_t)bytes);
        if (later || status == RNL_NO_ROOM) {
            status = post(p, u->client, iov, n, proto, psize, clear, arg);
            later = status == 0;
        }
    }
    if (status != RNL_NO_ROOM) {
        u->next = p->free_upcalls;
        p->free_upcalls = u;
    }
    rnl_pan_unlock(p);
    if (clear && !later && status != RNL_NO_ROOM)
        clear(arg);
    return status;
}
