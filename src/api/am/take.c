/* SPDX-License-Identifier: BSD-3-Clause
 *
 * take.c - takes in requests, replies and returned messages. Every field from a peer is loaded once and checked before
 * anything is written or called; a message that cannot be delivered is returned. The bytes of bulk messages go straight
 * into the segment as they arrive. The stream's handler waits for them, and looks up afterwards again what it needs of
 * the endpoint, which may have changed. */
#include "api/am/core.h"

#include <stdlib.h>

#include "base/bug.h"
#include "stream/request.h"

enum { SMALL = 512 /* medium messages of up to so many bytes are taken in on the stack */ };
/* A result besides the reasons to return a message, which are positive: its sender died or aborted it. */
enum { LOST = -1 };

RNL_INLINE int take(rnl_stream *s, void *to, size_t n)
{
    if (RNL_LIKELY(rnl_stream_receive_short(s, to, n)))
        return 0;
    int status = rnl_receive(s, to, n);
    return status == 0 ? 0 : status == RNL_ERR_PAST_END ? AM_EBADARGS : LOST;
}

/* Takes the two or three words of a header. They are loaded by separate statements, since compilers keep a loop. */
RNL_INLINE int take_words(rnl_stream *s, uint64_t *words, size_t n)
{
    if (RNL_UNLIKELY((size_t)(s->end - s->at) < n * 8 || s->state != RNL_STREAM_INLINE))
        return take(s, words, n * 8);
    rnl_rx_load(words, s->at, 8);
    rnl_rx_load(words + 1, s->at + 8, 8);
    if (n == 3)
        rnl_rx_load(words + 2, s->at + 16, 8);
    s->at += n * 8;
    return 0;
}

/* Takes the extension and the arguments. Returns 0, LOST, or AM_EBADARGS, and then m has neither. */
static RNL_NOINLINE int take_rest(rnl_stream *s, struct rnl_am_message *m)
{
    uint64_t ext[8] = {0};                               /* at most three words are used */
    size_t words = m->op, args = (size_t)m->numargs * 4; /* the op's number is the number of words */
    int why = m->op > RNL_AM_OP_GET || m->numargs > RNL_AM_SHORT ? AM_EBADARGS : 0;
    if (!why && words) {
        why = take(s, ext, words * 8);
        if (!why) {
            m->nbytes = ext[words - 1];
            m->dest_offset = words > 1 ? ext[words - 2] : 0;
            m->source_offset = words > 2 ? ext[0] : 0;
        }
    }
    if (!why && args) {
        if (RNL_LIKELY((size_t)(s->end - s->at) >= args && s->state == RNL_STREAM_INLINE)) {
            rnl_am_copy_args(m->args, (const int32_t *)(const void *)s->at, m->numargs);
            s->at += args;
        } else {
            why = take(s, m->args, args);
        }
    }
    if (RNL_UNLIKELY(why)) { /* such a message is returned with its header alone */
        m->numargs = 0;
        m->op = RNL_AM_OP_SHORT;
    }
    return why;
}

/* Takes what follows the header; inlined for a short message that lies whole in one cell. */
RNL_INLINE int take_tail(rnl_stream *s, struct rnl_am_message *m)
{
    size_t args = (size_t)m->numargs * 4;
    if (RNL_UNLIKELY(m->op != RNL_AM_OP_SHORT || m->numargs > RNL_AM_SHORT || (size_t)(s->end - s->at) < args ||
                     s->state != RNL_STREAM_INLINE))
        return take_rest(s, m);
    rnl_am_copy_args(m->args, (const int32_t *)(const void *)s->at, m->numargs);
    s->at += args;
    return 0;
}

static rnl_am_fn handler_of(const struct rnl_am_endpoint *ep, const struct rnl_am_message *m)
{
    return m->handler ? ep->handler[m->handler] : NULL; /* handler 0 is for returned messages only */
}

/* ---- payload ---- */

static void *buffer_get(struct rnl_am_port *port)
{
    return port->buffers ? port->buffer[--port->buffers] : malloc(RNL_AM_MEDIUM);
}

static void buffer_put(struct rnl_am_port *port, void *buffer)
{
    if (port->buffers < RNL_AM_BUFFERS_KEPT)
        port->buffer[port->buffers++] = buffer;
    else
        free(buffer);
}

/* Takes the payload from s into buf and runs the handler for t. */
static int run_payload(struct rnl_am_token *t, rnl_stream *s, void *buf)
{
    struct rnl_am_endpoint *ep = t->ep;
    const struct rnl_am_message *m = t->m;
    ep->busy++; /* keeps ep and its segment from being freed during the wait */
    int why = m->nbytes ? take(s, buf, (size_t)m->nbytes) : 0;
    if (rnl_ep_forked(t->port->ep))
        return LOST;
    ep->busy--;
    rnl_am_fn fn = handler_of(ep, m);
    if (!why && !fn)
        why = AM_EBADHANDLER;
    if (!why)
        rnl_am_run(t, fn, buf);
    return why;
}

static RNL_NOINLINE int run_small(struct rnl_am_token *t, rnl_stream *s)
{
    unsigned char bytes[SMALL] __attribute__((aligned(16)));
    return run_payload(t, s, bytes);
}

static int run_medium(struct rnl_am_token *t, rnl_stream *s)
{
    struct rnl_am_port *port = t->port;
    if (t->m->nbytes > RNL_AM_MEDIUM)
        return AM_EBADLENGTH;
    if (t->m->nbytes <= SMALL)
        return run_small(t, s);
    void *buffer = buffer_get(port);
    if (!buffer)
        return AM_ECONGESTION;
    int why = run_payload(t, s, buffer);
    if (!rnl_ep_forked(port->ep))
        buffer_put(port, buffer);
    return why;
}

static int run_xfer(struct rnl_am_token *t, rnl_stream *s)
{
    const struct rnl_am_message *m = t->m;
    int why = rnl_am_segment(t->ep, m->dest_offset, m->nbytes);
    return why ? why : run_payload(t, s, t->ep->seg + m->dest_offset);
}

static int send_got(struct rnl_am_token *t)
{
    const struct rnl_am_message *m = t->m;
    unsigned char head[RNL_AM_HEADER_MAX];
    struct rnl_am_message answer = *m;
    int why = rnl_am_segment(t->ep, m->source_offset, m->nbytes);
    if (!why && m->nbytes > RNL_AM_MEDIUM)
        why = AM_EBADLENGTH;
    if (why)
        return why;
    rnl_am_swap_ends(&answer);
    answer.from_generation = t->ep->generation;
    size_t n = rnl_am_write_reply(head, &answer);
    (void)rnl_stream_reply(t->s, RNL_AM_ID_REPLY, head, n, t->ep->seg + m->source_offset, (size_t)m->nbytes);
    return 0; /* a failure means that the requester is dead */
}

/* ---- requests ---- */

/* Delivers a request. Returns 0, LOST, or the reason to return it. */
static int deliver(struct rnl_am_port *port, rnl_stream *s, unsigned peer, const struct rnl_am_message *m)
{
    struct rnl_am_endpoint *ep = rnl_am_find(port, m->to, m->to_generation);
    if (RNL_UNLIKELY(!ep))
        return AM_EBADENDPOINT;
    if (RNL_UNLIKELY(ep->tag != m->tag && ep->tag != AM_ALL) ||
        RNL_UNLIKELY(ep->tag == AM_NONE && !RNL_BUG(am_closed_tag_lets_in)))
        return AM_EBADTAG;
    struct rnl_am_token t = {.port = port, .ep = ep, .s = s, .m = m, .rank = peer, .index = -1, .tag = m->tag};
    if (m->op == RNL_AM_OP_GET)
        return send_got(&t);
    rnl_am_fn fn = handler_of(ep, m);
    if (RNL_UNLIKELY(!fn))
        return AM_EBADHANDLER;
    if (RNL_LIKELY(m->op == RNL_AM_OP_SHORT))
        rnl_am_run_short(&t, fn);
    else
        return m->op == RNL_AM_OP_MEDIUM ? run_medium(&t, s) : run_xfer(&t, s);
    return 0;
}

static RNL_NOINLINE void send_returned(rnl_stream *s, struct rnl_am_message *m, int why)
{
    unsigned char head[RNL_AM_HEADER_MAX];
    rnl_am_swap_ends(m);
    m->status = (uint8_t)why;
    size_t n = rnl_am_write_reply(head, m);
    memcpy(head + n, &m->serial, sizeof m->serial);
    (void)rnl_stream_reply(s, RNL_AM_ID_REPLY, head, n + sizeof m->serial, NULL, 0);
}

static int on_request(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_am_port *port = ctx;
    struct rnl_endpoint *ep = s->ep;
    struct rnl_am_request_header h;
    struct rnl_am_message m;
    int why = take_words(s, &h.h.what, sizeof h / 8);
    if (RNL_UNLIKELY(why)) /* the header is incomplete, so the stream layer rejects the message */
        return why == LOST ? RNL_DONE : RNL_REJECT(why);
    rnl_am_read_header(&m, &h.h);
    m.tag = h.tag;
    why = take_tail(s, &m);
    if (RNL_LIKELY(!why))
        why = port ? deliver(port, s, peer, &m) : AM_EBADENDPOINT;
    if (RNL_UNLIKELY(why > 0) && !rnl_ep_forked(ep))
        send_returned(s, &m, why);
    return RNL_DONE;
}

/* ---- answers ---- */

static int deliver_reply(struct rnl_am_port *port, rnl_stream *s, unsigned peer, const struct rnl_am_message *m)
{
    struct rnl_am_endpoint *ep = rnl_am_find(port, m->to, m->to_generation);
    if (RNL_LIKELY(ep))
        rnl_am_note_reply(&port->peer[peer], m->serial);
    rnl_am_fn fn = ep ? handler_of(ep, m) : NULL;
    if (RNL_UNLIKELY(!fn))
        return AM_EBADHANDLER;
    struct rnl_am_token t = {.port = port, .ep = ep, .m = m, .rank = peer, .index = -1, .tag = ep->tag};
    if (RNL_LIKELY(m->op == RNL_AM_OP_SHORT)) {
        rnl_am_run_short(&t, fn);
        return 0;
    }
    return m->op == RNL_AM_OP_MEDIUM ? run_medium(&t, s) : run_xfer(&t, s);
}

/* Takes in a message that is returned to this process, with header h. */
static int take_returned(struct rnl_am_port *port, rnl_stream *s, unsigned peer, const struct rnl_am_header *h,
                         int was_request)
{
    struct rnl_am_message m;
    rnl_am_read_header(&m, h);
    unsigned status = RNL_AM_STATUS(h->what);
    m.op = (uint8_t)RNL_AM_WAS(h->what);
    int why = take_rest(s, &m);
    struct rnl_am_endpoint *ep = why == LOST ? NULL : rnl_am_find(port, m.to, m.to_generation);
    if (ep && was_request && take(s, &m.serial, sizeof m.serial) == 0)
        rnl_am_note_reply(&port->peer[peer], m.serial);
    if (ep && status >= AM_EBADARGS && status <= AM_EREPLYREJECTED)
        rnl_am_return_message(ep, peer, &m, (int)status, was_request, -1);
    return RNL_DONE; /* without an endpoint, since it has been freed, the message is dropped */
}

/* Handles a reply that cannot be delivered: it is returned to its sender, but the reply to a get is reported to the
 * endpoint that made the get. */
static RNL_NOINLINE void undelivered(struct rnl_am_port *port, unsigned peer, struct rnl_am_message *m, int why)
{
    struct rnl_am_endpoint *ep = rnl_am_find(port, m->to, m->to_generation);
    if (m->op != RNL_AM_OP_GET && !RNL_BUG(am_rejected_dropped))
        rnl_am_reject(port, peer, m);
    else if (ep)
        rnl_am_return_message(ep, peer, m, why, 1, -1);
}

static int on_reply(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_am_port *port = ctx;
    struct rnl_am_header h;
    struct rnl_am_message m;
    int why = take_words(s, &h.what, sizeof h / 8);
    if (why || !port)
        return RNL_DONE; /* damaged, or there is no port */
    if (RNL_UNLIKELY(RNL_AM_OP(h.what) == RNL_AM_OP_RETURNED))
        return take_returned(port, s, peer, &h, 1);
    rnl_am_read_header(&m, &h);
    why = take_tail(s, &m);
    if (!why)
        why = deliver_reply(port, s, peer, &m);
    if (RNL_UNLIKELY(why > 0) && !rnl_ep_forked(port->ep))
        undelivered(port, peer, &m, why);
    return RNL_DONE;
}

static int on_rejected(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_am_port *port = ctx;
    struct rnl_am_header h;
    return take(s, &h, sizeof h) || !port ? RNL_DONE : take_returned(port, s, peer, &h, 0);
}

/* ---- registering ---- */

static const struct {
    int id;
    rnl_stream_handler *f;
} takers[] = {{RNL_AM_ID_REQUEST, on_request}, {RNL_AM_ID_REPLY, on_reply}, {RNL_AM_ID_REJECTED, on_rejected}};

static int register_all(struct rnl_endpoint *rank, void *ctx)
{
    int status = 0;
    for (unsigned i = 0; i < sizeof takers / sizeof takers[0] && status >= 0; i++) {
        struct rnl_handler h = {.stream = takers[i].f, .ctx = ctx};
        status = rnl_stream_register(rank, takers[i].id, &h);
    }
    return status;
}

int rnl_am_register(struct rnl_am_port *port)
{
    return register_all(port->ep, port);
}

void rnl_am_unregister(struct rnl_endpoint *rank)
{
    (void)register_all(rank, NULL);
}

struct rnl_am_port *rnl_am_port_of(const struct rnl_endpoint *rank)
{
    if (rank->fast.handlers <= RNL_AM_ID_REQUEST || rank->fast.handler[RNL_AM_ID_REQUEST].stream != on_request)
        return NULL;
    return rank->fast.handler[RNL_AM_ID_REQUEST].ctx;
}
