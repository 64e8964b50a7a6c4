/* SPDX-License-Identifier: BSD-3-Clause
 *
 * core.h - the inside of AM-2. All bundles on one runnel endpoint share a *port*: it numbers their endpoints, takes in
 * messages, and keeps those that may have to be returned. An AM message is one message of src/stream. A request goes on
 * lane 0 with room reserved for the largest reply; on lane 1 travel replies, and requests that are returned. A reply
 * that cannot be delivered is queued by the handler that finds it so, since handlers of lane 1 must not send, and is
 * returned on lane 0 by a later call.
 *
 * request.c sends requests, reply.c replies; take.c takes in both; returned.c handles returned messages, session.c
 * ports and bundles, endpoint.c endpoints, table.c translations and handlers; call.c calls handlers; header.c is the
 * layout of messages, state.c how calls begin and fail. */
#ifndef RNL_API_AM_CORE_H
#define RNL_API_AM_CORE_H

#include <setjmp.h>

#include "api/am/process.h"
#include "base/bug.h"
#include "runnel/am.h"
#include "stream/stream.h"

enum { RNL_AM_ID_REQUEST = RNL_AM_ID_FIRST, RNL_AM_ID_REPLY, RNL_AM_ID_REJECTED };
static_assert((int)RNL_AM_ID_REJECTED == (int)RNL_AM_ID_LAST, "handler numbers");

/* ---- on the wire ----
 *
 *   bit 0    3      8         16        32        48       56      64           96           128      192
 *   +--------+------+---------+---------+---------+--------+-------+------------+------------+--------+
 *   | op     | args | handler | to:     | from:   | serial         | generation | generation | tag    |  request
 *   |        |      |         | number  | number  |                | of to      | of from    |        |
 *   +--------+------+---------+---------+---------+--------+-------+------------+------------+--------+
 *   | op     | args | handler | to      | from    | serial, or     | generation | generation |           answer: status
 *   |        |      |         |         |         | status | op    |            |            |  is why a message comes
 *   +--------+------+---------+---------+---------+--------+-------+------------+------------+  back, which had that
 *   other op. The serial number counts the requests to that rank, and a reply repeats that of its request: so it is
 *   known which requests a dead receiver has answered. An extension follows, by op: nothing; nbytes; dest_offset,
 *   nbytes; source_offset, dest_offset, nbytes (8 bytes each). Then come the arguments (4 bytes each), then nbytes of
 *   payload, except in gets and returned messages, then, in a returned request, its serial number (2 bytes). The header
 *   consists of 64-bit words composed in registers, since loading a word from bytes just stored one by one is slow. */
enum rnl_am_op { RNL_AM_OP_SHORT, RNL_AM_OP_MEDIUM, RNL_AM_OP_XFER, RNL_AM_OP_GET, RNL_AM_OP_RETURNED };
struct rnl_am_header {
    uint64_t what, who;
};
struct rnl_am_request_header {
    struct rnl_am_header h;
    uint64_t tag;
};
static_assert(sizeof(struct rnl_am_header) == 16, "answer's head");
static_assert(sizeof(struct rnl_am_request_header) == 24 && offsetof(struct rnl_am_request_header, tag) == 16,
              "request's head");
RNL_INLINE uint64_t rnl_am_what(unsigned op, unsigned numargs, unsigned handler, unsigned to, unsigned from)
{
    return op | numargs << 3 | handler << 8 | (uint64_t)to << 16 | (uint64_t)from << 32;
}
RNL_INLINE uint64_t rnl_am_who(uint32_t to_generation, uint32_t from_generation)
{
    return to_generation | (uint64_t)from_generation << 32;
}
#define RNL_AM_OP(what)      ((unsigned)(what)&7)
#define RNL_AM_NUMARGS(what) ((unsigned)((what) >> 3) & 31)
#define RNL_AM_SERIAL(what)  ((uint16_t)((what) >> 48))
RNL_INLINE void rnl_am_set_serial(unsigned char *head, uint16_t serial)
{
    uint64_t what;
    memcpy(&what, head, sizeof what);
    what = (what << 16 >> 16) | (uint64_t)serial << 48;
    memcpy(head, &what, sizeof what);
}
#define RNL_AM_STATUS(what) ((unsigned)((what) >> 48) & 255)
#define RNL_AM_WAS(what)    ((unsigned)((what) >> 56) & 7)
enum {
    RNL_AM_EXT_MAX = 24,
    RNL_AM_HEADER_MAX = 24 + RNL_AM_EXT_MAX + 4 * RNL_AM_SHORT,
    RNL_AM_REPLY_ROOM = RNL_REPLY_MAX /* the reply room that each request declares, as any reply may follow */
};
static_assert(RNL_AM_MEDIUM + 16 + RNL_AM_EXT_MAX + 4 * RNL_AM_SHORT <= RNL_AM_REPLY_ROOM, "the largest reply");
static_assert(sizeof(en_t) == 16, "name");

/* A message decoded, by its sender or its receiver. */
struct rnl_am_message {
    uint8_t op, numargs, handler;
    uint8_t status; /* why it was returned; 0 = it was not */
    uint8_t was;    /* of a returned message: 1 = it was a request, 0 = a reply */
    uint16_t to, from, serial;
    uint32_t to_generation, from_generation;
    uint64_t tag, source_offset, dest_offset, nbytes;
    int32_t args[RNL_AM_SHORT];
};

struct rnl_am_translation {
    en_t name;
    tag_t tag;
    uint8_t used;
};

struct rnl_am_token;
struct rnl_am_port;

struct rnl_am_endpoint {
    struct rnl_am_port *port;
    struct rnl_am_bundle *bundle;
    struct rnl_am_translation *translation;
    uint32_t translations;
    uint32_t generation;
    uint16_t number;
    uint8_t hooked;
    uint32_t busy; /* how many handlers wait for the rest of a message to this endpoint */
    tag_t tag;
    unsigned char *seg;
    uintptr_t seg_bytes;
    uint64_t congestion_ns;
    struct rnl_am_hooks hooks;
    rnl_am_fn handler[RNL_AM_HANDLERS];
};

struct rnl_am_bundle {
    struct rnl_am_port *port;
    struct rnl_am_bundle *next;
    int type, mask;
    uint32_t waiting;      /* how many threads are in AM_WaitSema */
    uint64_t events, seen; /* how many messages were handled; the same when the last poll or wait began */
};

/* A request or reply that its receiver has not acknowledged to have read, or a request that is unanswered. If the
 * receiver dies, it is returned to its sender. */
struct rnl_am_record {
    uint64_t cell; /* the number of the cell in which it ended */
    uint32_t index, bytes;
    uint64_t head[RNL_AM_HEADER_MAX / 8]; /* its header, extension and arguments as they were sent */
};
static_assert(sizeof(struct rnl_am_record) % 64 == 0, "whole cache lines");
struct rnl_am_records { /* a ring of `room` records, a power of two */
    struct rnl_am_record *record;
    uint32_t first, count, room;
};
struct rnl_am_peer {
    struct rnl_am_records of[2];          /* by lane */
    uint64_t requests_sent, last_replied; /* requests sent; the number of the last one that was answered */
    uint64_t window_replied;              /* `answered` when `window` was last computed */
    uint32_t outstanding_peak,
        outstanding_now; /* most requests unanswered at once in the last and in this period of groups */
    uint32_t window;     /* how many requests were unanswered when replies last came: see rnl_am_expects_replies */
    uint8_t bursts;      /* groups of requests sent in this period, which ends at RNL_AM_PERIOD_BURSTS of them */
    uint8_t dead;
};
/* The bound on unanswered requests to a rank, below the range of the serial numbers. A ring holds fewer, but from
 * another host a reply can be late while further requests are read. */
enum { RNL_AM_RECORDS_MAX = 1 << 14 };
RNL_INLINE void rnl_am_note_reply(struct rnl_am_peer *p, uint16_t serial)
{
    p->last_replied = p->requests_sent - (uint16_t)((uint16_t)p->requests_sent - serial);
}
/* A reply that could not be delivered and waits to be returned to its sender. */
struct rnl_am_rejected {
    struct rnl_am_rejected *next;
    uint32_t rank;
    uint8_t ours; /* 1 = it was sent by this process, to a rank that is dead */
    struct rnl_am_message m;
};
enum { RNL_AM_REJECTED_MAX = 1024 /* while more replies wait to be returned, requests are not sent */ };
enum { RNL_AM_BUFFERS_KEPT = 4 };

struct rnl_am_port {
    struct rnl_endpoint *ep;
    struct rnl_am_token *running;      /* the token of the handler that runs, NULL = none runs */
    struct rnl_am_endpoint **endpoint; /* by number */
    uint32_t endpoints;                /* the length of that array; a power of two, or 0 */
    uint32_t generation;               /* the last one that an endpoint was given */
    uint32_t deaths;                   /* the value of ep->deaths_seen up to which deaths were handled */
    uint32_t ranks;
    uint8_t guarded;             /* several threads may call, so calls take the lock */
    uint8_t owns_ep;             /* the session opened ep, and closes it */
    uint8_t returned_unreported; /* a message came back to an endpoint without handler 0, not reported yet */
    uint32_t sent_remote;        /* requests sent to other hosts since the last poll */
    struct rnl_am_bundle *bundle;
    struct rnl_am_peer *peer; /* by rank */
    struct rnl_am_rejected *rejected, **rejected_last;
    uint32_t rejections;
    void *buffer[RNL_AM_BUFFERS_KEPT]; /* free buffers of RNL_AM_MEDIUM bytes for payload of medium messages */
    uint32_t buffers;
    uint64_t *count; /* by enum rnl_am_counter */
};

/* What a handler's token points to. It is valid in that handler and in the thread that runs it. */
struct rnl_am_token {
    const struct rnl_am_token *self; /* NULL once the handler has returned, which reveals most late uses */
    struct rnl_am_port *port;
    struct rnl_am_endpoint *ep;
    rnl_stream *s; /* the stream of a request; NULL if the message is none */
    const struct rnl_am_message *m;
    uint32_t rank; /* the rank of the sender */
    int index;
    tag_t tag;
    uint8_t replied;
    jmp_buf *leave; /* where rnl_am_leave_handler jumps to; NULL = this handler can only return */
};

/* ---- entering ---- */

/* Takes the port's lock, if it is shared; the lock is recursive, so handlers may call it. Returns AM_OK, or
 * AM_ERR_NOT_INIT, and then the lock is not held. */
RNL_COLD int rnl_am_enter_slow(struct rnl_am_port *port);
RNL_COLD int rnl_am_enter_forked(struct rnl_am_port *port);
RNL_INLINE int rnl_am_enter(struct rnl_am_port *port)
{
    if (port->guarded)
        pthread_mutex_lock(&port->ep->lock); /* in a forked child the lock reads as zeros, a free mutex */
    return RNL_LIKELY(port->ep->fast.open != RNL_EP_FORKED) ? AM_OK : rnl_am_enter_forked(port);
}
RNL_INLINE int rnl_am_leave(struct rnl_am_port *port, int status)
{
    if (port->guarded && port->ep->fast.open != RNL_EP_FORKED)
        pthread_mutex_unlock(&port->ep->lock);
    return status;
}
/* Returns `status` after setting the sentence of rnl_last_error(). */
RNL_COLD int rnl_am_fail(int status, const char *sentence, ...) __attribute__((format(printf, 2, 3)));
/* Translates a status of the core into one of AM; the sentence of rnl_last_error() stays. */
RNL_COLD int rnl_am_status(int status);
/* rnl_am_outside returns AM_OK, or AM_ERR_RESOURCE if called in a handler, where requests and polls are not allowed. */
RNL_COLD int rnl_am_in_handler(const char *what);
RNL_INLINE int rnl_am_outside(const struct rnl_am_port *port, const char *what)
{
    return RNL_LIKELY(!port->running && !port->ep->fast.in_handler) ? AM_OK : rnl_am_in_handler(what);
}
/* Whether a call may go ahead without rnl_am_enter, rnl_am_outside and rnl_am_leave: the port is not shared, the
 * endpoint is open, and no handler runs. */
RNL_INLINE int rnl_am_is_fast(const struct rnl_am_port *port)
{
    const struct rnl_endpoint *ep = port->ep;
    return RNL_LIKELY(!port->guarded && !port->running && ep->fast.open == RNL_EP_OPEN && !ep->fast.in_handler);
}

/* ---- parts ---- */

/* Decode a header alone, and all of a record. */
RNL_INLINE void rnl_am_read_header(struct rnl_am_message *m, const struct rnl_am_header *h)
{
    m->op = (uint8_t)RNL_AM_OP(h->what);
    m->numargs = (uint8_t)RNL_AM_NUMARGS(h->what);
    m->handler = (uint8_t)(h->what >> 8);
    m->status = m->was = 0;
    m->to = (uint16_t)(h->what >> 16);
    m->from = (uint16_t)(h->what >> 32);
    m->serial = RNL_AM_SERIAL(h->what);
    m->to_generation = (uint32_t)h->who;
    m->from_generation = (uint32_t)(h->who >> 32);
    m->nbytes = m->dest_offset = m->source_offset = 0;
}
void rnl_am_read_record(struct rnl_am_message *m, const struct rnl_am_record *r, unsigned lane);
/* Copies arguments one by one, since the caller has just stored them so: wider loads would miss store forwarding. */
RNL_INLINE void rnl_am_copy_args(void *to, const int32_t *args, unsigned n)
{
    unsigned char *t = to;
    for (unsigned i = 0; i < n; i++)
        memcpy(t + i * 4, &args[i], 4);
}
/* Write the header of a message, its extension and its arguments. Return the bytes written, at most
 * RNL_AM_HEADER_MAX. */
size_t rnl_am_write_request(unsigned char *to, const struct rnl_am_message *m);
size_t rnl_am_write_reply(unsigned char *to, const struct rnl_am_message *m);
RNL_INLINE struct rnl_am_endpoint *rnl_am_find(const struct rnl_am_port *port, unsigned number, uint32_t generation)
{
    struct rnl_am_endpoint *ep = number < port->endpoints ? port->endpoint[number] : NULL;
    return ep && (generation == ep->generation || generation == 0 || RNL_BUG(am_old_name_accepted)) ? ep : NULL;
}
/* Returns 0 if nbytes at offset lie in ep's segment, else the reason for which the message is returned. */
int rnl_am_segment(const struct rnl_am_endpoint *ep, uint64_t offset, uint64_t nbytes);
/* Runs a handler with its hooks, counts the event, and wakes threads that wait for it. */
void rnl_am_run(struct rnl_am_token *t, rnl_am_fn fn, void *buf);
/* Runs the handler of a short message as rnl_am_run does; inlined for endpoints without hooks in bundles that nobody
 * waits on. */
RNL_NOINLINE void rnl_am_call_short(rnl_am_fn fn, struct rnl_am_token *t, const int32_t *args, unsigned numargs);
RNL_INLINE void rnl_am_run_short(struct rnl_am_token *t, rnl_am_fn fn)
{
    struct rnl_am_port *port = t->port;
    struct rnl_am_bundle *b = t->ep->bundle;
    if (RNL_UNLIKELY(t->ep->hooked | b->waiting)) {
        rnl_am_run(t, fn, NULL);
        return;
    }
    t->self = t;
    port->running = t;
    rnl_am_call_short(fn, t, t->m->args, t->m->numargs);
    t->self = NULL;
    port->running = NULL;
    if (RNL_LIKELY(!rnl_ep_forked(port->ep)))
        b->events++;
}
/* Returns the opcode of a message, as programs see it. */
op_t rnl_am_opcode(const struct rnl_am_message *m, int is_request);

/* returned.c. Returns the message m to its sender ep by running ep's handler 0. In m, `to` names ep and `from` the
 * receiver, on `rank`. */
void rnl_am_return_message(struct rnl_am_endpoint *ep, uint32_t rank, struct rnl_am_message *m, int status,
                           int was_request, int index);
/* Swaps sender and receiver of m. */
RNL_INLINE void rnl_am_swap_ends(struct rnl_am_message *m)
{
    uint16_t number = m->to;
    uint32_t generation = m->to_generation;
    m->to = m->from;
    m->to_generation = m->from_generation;
    m->from = number;
    m->from_generation = generation;
}
/* A message is recorded in two steps: rnl_am_record_room makes room before it is sent and returns 0 if there is no
 * memory; rnl_am_record takes the room once it is sent. */
RNL_NOINLINE bool rnl_am_record_grow(struct rnl_am_port *port, uint32_t rank, unsigned lane);
RNL_INLINE bool rnl_am_record_room(struct rnl_am_port *port, uint32_t rank, unsigned lane)
{
    const struct rnl_am_records *p = &port->peer[rank].of[lane];
    return RNL_LIKELY(p->count < p->room) || rnl_am_record_grow(port, rank, lane);
}
/* Whether there is room for a record on that lane without looking for finished ones or allocating. */
RNL_INLINE bool rnl_am_record_free(const struct rnl_am_port *port, uint32_t rank, unsigned lane)
{
    const struct rnl_am_records *p = &port->peer[rank].of[lane];
    return p->count < p->room;
}
RNL_INLINE struct rnl_am_record *rnl_am_record_on(struct rnl_am_port *port, uint32_t rank, const struct rnl_tx *t,
                                                  unsigned lane, uint32_t index, size_t bytes)
{
    struct rnl_am_records *p = &port->peer[rank].of[lane];
    struct rnl_am_record *r = &p->record[(p->first + p->count++) & (p->room - 1)];
    r->cell = rnl_tx_cell(t);
    r->index = index;
    r->bytes = (uint32_t)bytes;
    return r;
}
RNL_INLINE struct rnl_am_record *rnl_am_record(struct rnl_am_port *port, uint32_t rank, unsigned lane, uint32_t index,
                                               size_t bytes)
{
    return rnl_am_record_on(port, rank, &port->ep->fast.conn[rank]->channel.tx[lane], lane, index, bytes);
}
/* For handlers: queues the reply m of rank, which cannot be delivered, to be returned to rank. */
void rnl_am_reject(struct rnl_am_port *port, uint32_t rank, const struct rnl_am_message *m);
/* For handlers: queues the reply m to rank, which is dead, to be returned to its sender in this process. */
void rnl_am_reject_unreachable(struct rnl_am_port *port, uint32_t rank, const struct rnl_am_message *m);
/* Handles deaths and returns rejected replies. Called outside handlers, after messages were taken in. */
void rnl_am_do_pending(struct rnl_am_port *port);
RNL_INLINE bool rnl_am_has_pending(const struct rnl_am_port *port)
{
    return port->rejected || port->deaths != port->ep->deaths_seen || port->returned_unreported;
}
/* Returns AM_ERR_NOT_SENT once after a message was returned to an endpoint without a handler 0, else AM_OK. */
int rnl_am_report_returned(struct rnl_am_port *port);
/* Poll, outside handlers, with the lock held. The second is for the call that has just sent a request: it does not
 * report that another message was returned, since the caller would take that for a failure of this request. */
int rnl_am_progress(struct rnl_am_port *port);
int rnl_am_progress_sent(struct rnl_am_port *port);
/* rnl_am_progress_after polls after a request to rank, but on the way to another host not after each: a poll sends what
 * is queued, and successive requests are to share datagrams, each of which costs the kernel as much time as a dozen
 * requests. The group that goes together is half of the most requests that were unanswered at once lately, so that both
 * processes work at the same time. */
enum { RNL_AM_BURST_MIN = 32, RNL_AM_BURST_MAX = 64, RNL_AM_PERIOD_BURSTS = 8 };
/* Whether so many replies are expected that the program will poll soon. Then the next request waits for others to share
 * its datagram, even if nothing is in flight. At most as many unanswered requests count as there were when replies last
 * came, since others may be of a kind that is never answered. */
RNL_INLINE uint8_t rnl_am_expects_replies(struct rnl_am_port *port, uint32_t rank)
{
    struct rnl_am_peer *p = &port->peer[rank];
    uint64_t open = p->requests_sent - p->last_replied;
    if (RNL_LIKELY(open < RNL_AM_BURST_MIN))
        return 0;
    if (p->last_replied != p->window_replied) {
        uint64_t depth = p->requests_sent - p->window_replied,
                 most = p->outstanding_peak > p->outstanding_now ? p->outstanding_peak : p->outstanding_now;
        p->window = (uint32_t)(depth < most ? depth : most);
        p->window_replied = p->last_replied;
    }
    return open <= p->window;
}
RNL_INLINE int rnl_am_progress_after(struct rnl_am_port *port, uint32_t rank)
{
    if (port->ep->remote && port->ep->fast.conn[rank]->channel.is_remote) {
        struct rnl_am_peer *p = &port->peer[rank];
        uint64_t open = p->requests_sent - p->last_replied;
        uint32_t sent = ++port->sent_remote;
        if (open > p->outstanding_now)
            p->outstanding_now = (uint32_t)open;
        uint32_t outstanding_peak = p->outstanding_peak > p->outstanding_now ? p->outstanding_peak : p->outstanding_now;
        if (sent < RNL_AM_BURST_MIN || (sent < RNL_AM_BURST_MAX && sent < (outstanding_peak + 1) / 2))
            return AM_OK;
        if (++p->bursts == RNL_AM_PERIOD_BURSTS) {
            p->outstanding_peak = p->outstanding_now;
            p->outstanding_now = p->bursts = 0;
        }
    }
    return rnl_am_progress_sent(port);
}
/* Makes the threads that wait on bundle b look again, after a handler ran for one of its endpoints. */
RNL_COLD void rnl_am_wake(struct rnl_am_bundle *b);

/* take.c */
int rnl_am_register(struct rnl_am_port *port);
/* Removes the port: from now on requests are returned for want of an endpoint. */
void rnl_am_unregister(struct rnl_endpoint *rank);
/* Returns the port on that runnel endpoint, NULL = none. */
struct rnl_am_port *rnl_am_port_of(const struct rnl_endpoint *rank);
/* endpoint.c. Frees ep, with the lock held and whatever its state. */
void rnl_am_free_endpoint_now(struct rnl_am_endpoint *ep);

#endif
