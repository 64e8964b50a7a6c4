/* SPDX-License-Identifier: BSD-3-Clause
 *
 * core.h - AM-2 inside. A *port* is what all bundles on one runnel endpoint share: it numbers their endpoints, takes in
 * what comes, and keeps what has to come back. A message is one message of the core: a request on lane 0 with room for
 * the largest reply set aside; replies and returned requests are its answer, on lane 1. A reply that cannot be
 * delivered is noted by the handler that finds it so, which must not send, and goes back on lane 0 in a later call.
 *
 * request.c sends requests, reply.c replies, take.c takes in both, returned.c has what comes back, session.c ports and
 * bundles, endpoint.c endpoints, table.c translations and handlers, call.c the calls of handlers. */
#ifndef RNL_AM_CORE_H
#define RNL_AM_CORE_H

#include <setjmp.h>

#include "am/process.h"
#include "runnel/am.h"
#include "stream/stream.h"

enum { RNL_AM_ID_REQUEST = RNL_AM_ID_FIRST, RNL_AM_ID_ANSWER, RNL_AM_ID_REJECTED };
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
 *   other op. The serial number is that of the request, among those to that rank: so is known, should its receiver die,
 *   what it has answered. Then by op: nothing; nbytes; dest_offset, nbytes; source_offset, dest_offset, nbytes (8 bytes
 *   each); then the arguments (4 bytes each), then nbytes of payload, which a get and what comes back do not have, and
 *   behind a request that comes back its serial number (2 bytes). Words, since they are composed in registers: bytes
 *   that were just stored one by one are slow to load. */
enum rnl_am_op { RNL_AM_OP_SHORT, RNL_AM_OP_MEDIUM, RNL_AM_OP_XFER, RNL_AM_OP_GET, RNL_AM_OP_BACK };
struct rnl_am_head {
    uint64_t what, who;
};
struct rnl_am_request_head {
    struct rnl_am_head h;
    uint64_t tag;
};
static_assert(sizeof(struct rnl_am_head) == 16, "answer's head");
static_assert(sizeof(struct rnl_am_request_head) == 24 && offsetof(struct rnl_am_request_head, tag) == 16,
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
    RNL_AM_HEAD_MAX = 24 + RNL_AM_EXT_MAX + 4 * RNL_AM_SHORT,
    RNL_AM_ANSWER = RNL_ANSWER_MAX /* what each request asks for: nobody knows how its handler will reply */
};
static_assert(RNL_AM_MEDIUM + 16 + RNL_AM_EXT_MAX + 4 * RNL_AM_SHORT <= RNL_AM_ANSWER, "the largest reply");
static_assert(sizeof(en_t) == 16, "name");

/* What a message says, from whichever side. */
struct rnl_am_message {
    uint8_t op, numargs, handler;
    uint8_t status; /* why it comes back; 0 */
    uint8_t was;    /* ... and whether it was a request */
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
    uint32_t busy; /* handlers that wait for the rest of a message for it */
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
    uint32_t waiting;      /* threads in AM_WaitSema */
    uint64_t events, seen; /* messages handled; when the last poll or wait began */
};

/* A request or reply that its receiver has not said to have read, or a request whose answer may be under way: comes
 * back should that die. */
struct rnl_am_record {
    uint64_t line; /* that ended it */
    uint32_t index, bytes;
    uint64_t head[RNL_AM_HEAD_MAX / 8]; /* as it was sent */
};
static_assert(sizeof(struct rnl_am_record) % 64 == 0, "whole cache lines");
struct rnl_am_records { /* a ring of `room`, a power of two */
    struct rnl_am_record *record;
    uint32_t first, count, room;
};
struct rnl_am_peer {
    struct rnl_am_records of[2]; /* by lane */
    uint64_t asked, answered;    /* requests; the last of them that was answered */
    uint64_t heard;              /* ... when `window`, which were unanswered until then, was seen last */
    uint32_t deepest, deep; /* so many requests were unanswered at a time: in the last RNL_AM_LATELY groups; since */
    uint32_t window;
    uint8_t groups; /* since */
    uint8_t dead;
};
/* Fewer requests than serials are under way to a rank. A ring holds fewer still, but over a network an answer can be
 * late while other requests are read. */
enum { RNL_AM_RECORDS_MAX = 1 << 14 };
RNL_INLINE void rnl_am_answered(struct rnl_am_peer *p, uint16_t serial)
{
    p->answered = p->asked - (uint16_t)((uint16_t)p->asked - serial);
}
/* A reply that could not be delivered, on its way back. */
struct rnl_am_rejected {
    struct rnl_am_rejected *next;
    uint32_t rank;
    uint8_t ours; /* it is our own, to a rank that is dead */
    struct rnl_am_message m;
};
enum { RNL_AM_REJECTED_MAX = 1024 /* requests wait while more are on their way back */ };
enum { RNL_AM_BUFFERS_KEPT = 4 };

struct rnl_am_port {
    struct rnl_endpoint *ep;
    struct rnl_am_token *running;      /* of the handler that runs */
    struct rnl_am_endpoint **endpoint; /* by number */
    uint32_t endpoints;                /* room of it; a power of two, or 0 */
    uint32_t generation;               /* the last given */
    uint32_t deaths;                   /* of ep->deaths_seen that were looked at */
    uint32_t ranks;
    uint8_t guarded;    /* calls lock */
    uint8_t own;        /* the session opened ep */
    uint8_t untold;     /* a message came back to an endpoint without a handler 0 */
    uint32_t sent_away; /* requests to other hosts since the last poll */
    struct rnl_am_bundle *bundle;
    struct rnl_am_peer *peer; /* by rank */
    struct rnl_am_rejected *rejected, **rejected_last;
    uint32_t rejections;
    void *buffer[RNL_AM_BUFFERS_KEPT]; /* for payload of medium messages, RNL_AM_MEDIUM bytes each */
    uint32_t buffers;
};

/* Valid in one handler, by the thread that runs it. */
struct rnl_am_token {
    const struct rnl_am_token *self; /* NULL once the handler has returned: most that are used too late are found */
    struct rnl_am_port *port;
    struct rnl_am_endpoint *ep;
    rnl_stream *s; /* of a request, else NULL */
    const struct rnl_am_message *m;
    uint32_t rank; /* of its sender */
    int index;
    tag_t tag;
    uint8_t replied;
    jmp_buf *leave; /* NULL = this handler can only return */
};

/* ---- entering ---- */

/* Takes the lock of a port that is shared. Handlers may call in again. AM_OK, else AM_ERR_NOT_INIT and nothing is
 * locked. */
RNL_COLD int rnl_am_enter_slow(struct rnl_am_port *port);
RNL_COLD int rnl_am_enter_forked(struct rnl_am_port *port);
RNL_INLINE int rnl_am_enter(struct rnl_am_port *port)
{
    if (port->guarded)
        pthread_mutex_lock(&port->ep->lock); /* in a forked child it reads as zeros, a mutex that is free */
    return RNL_LIKELY(port->ep->open != RNL_EP_FORKED) ? AM_OK : rnl_am_enter_forked(port);
}
RNL_INLINE int rnl_am_leave(struct rnl_am_port *port, int status)
{
    if (port->guarded && port->ep->open != RNL_EP_FORKED)
        pthread_mutex_unlock(&port->ep->lock);
    return status;
}
/* status with a sentence for rnl_last_error(). */
RNL_COLD int rnl_am_fail(int status, const char *sentence, ...) __attribute__((format(printf, 2, 3)));
/* The AM status for one of the core's, whose sentence stands. */
RNL_COLD int rnl_am_status(int status);
/* Requests, polls and the like are not for handlers: AM_OK or AM_ERR_RESOURCE. */
RNL_COLD int rnl_am_in_handler(const char *what);
RNL_INLINE int rnl_am_outside(const struct rnl_am_port *port, const char *what)
{
    return RNL_LIKELY(!port->running && !port->ep->in_handler) ? AM_OK : rnl_am_in_handler(what);
}
/* Nobody else shares the port, and nothing is against a call: no need to enter, ask whether this is outside, leave. */
RNL_INLINE int rnl_am_plain(const struct rnl_am_port *port)
{
    const struct rnl_endpoint *ep = port->ep;
    return RNL_LIKELY(!port->guarded && !port->running && ep->open == RNL_EP_OPEN && !ep->in_handler);
}

/* ---- parts ---- */

/* What a head says; and of what is noted, the rest, too. */
RNL_INLINE void rnl_am_read_head(struct rnl_am_message *m, const struct rnl_am_head *h)
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
/* A word or two at a time: what the caller stored just now one by one. */
RNL_INLINE void rnl_am_copy_args(void *to, const int32_t *args, unsigned n)
{
    unsigned char *t = to;
    for (unsigned i = 0; i < n; i++)
        memcpy(t + i * 4, &args[i], 4);
}
/* Writes the head of a message, extension and arguments included; returns its bytes, at most RNL_AM_HEAD_MAX. */
size_t rnl_am_write_request(unsigned char *to, const struct rnl_am_message *m);
size_t rnl_am_write_answer(unsigned char *to, const struct rnl_am_message *m);
RNL_INLINE struct rnl_am_endpoint *rnl_am_find(const struct rnl_am_port *port, unsigned number, uint32_t generation)
{
    struct rnl_am_endpoint *ep = number < port->endpoints ? port->endpoint[number] : NULL;
    return ep && (generation == ep->generation || generation == 0) ? ep : NULL;
}
/* Why nbytes at offset do not lie in the segment, or 0. */
int rnl_am_segment(const struct rnl_am_endpoint *ep, uint64_t offset, uint64_t nbytes);
/* Runs a handler with all around it. */
void rnl_am_run(struct rnl_am_token *t, rnl_am_fn fn, void *buf);
/* The same for a short message: what is around most of them. */
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
/* Opcode of a message, as programs see it. */
op_t rnl_am_opcode(const struct rnl_am_message *m, int is_request);

/* returned.c: m, which came from `rank` or would have, comes back to ep: runs handler 0. `to` of m is ep. */
void rnl_am_come_back(struct rnl_am_endpoint *ep, uint32_t rank, struct rnl_am_message *m, int status, int was_request,
                      int index);
/* m as seen from its receiver. */
RNL_INLINE void rnl_am_turn(struct rnl_am_message *m)
{
    uint16_t number = m->to;
    uint32_t generation = m->to_generation;
    m->to = m->from;
    m->to_generation = m->from_generation;
    m->from = number;
    m->from_generation = generation;
}
/* Room to note a message to rank on that lane: 1, or 0 = no memory. Then, when it is on its way, the note. */
RNL_NOINLINE int rnl_am_record_grow(struct rnl_am_port *port, uint32_t rank, unsigned lane);
RNL_INLINE int rnl_am_record_room(struct rnl_am_port *port, uint32_t rank, unsigned lane)
{
    const struct rnl_am_records *p = &port->peer[rank].of[lane];
    return RNL_LIKELY(p->count < p->room) || rnl_am_record_grow(port, rank, lane);
}
/* ... which is there already. */
RNL_INLINE int rnl_am_record_free(const struct rnl_am_port *port, uint32_t rank, unsigned lane)
{
    const struct rnl_am_records *p = &port->peer[rank].of[lane];
    return p->count < p->room;
}
RNL_INLINE struct rnl_am_record *rnl_am_record_on(struct rnl_am_port *port, uint32_t rank, const struct rnl_tx *t,
                                                  unsigned lane, uint32_t index, size_t bytes)
{
    struct rnl_am_records *p = &port->peer[rank].of[lane];
    struct rnl_am_record *r = &p->record[(p->first + p->count++) & (p->room - 1)];
    r->line = rnl_tx_line(t);
    r->index = index;
    r->bytes = (uint32_t)bytes;
    return r;
}
RNL_INLINE struct rnl_am_record *rnl_am_record(struct rnl_am_port *port, uint32_t rank, unsigned lane, uint32_t index,
                                               size_t bytes)
{
    return rnl_am_record_on(port, rank, &port->ep->conn[rank]->pair.tx[lane], lane, index, bytes);
}
/* In a handler: the answer m from rank cannot be delivered. */
void rnl_am_reject(struct rnl_am_port *port, uint32_t rank, const struct rnl_am_message *m);
/* In a handler: the reply m to rank cannot go, for rank is dead: it comes back later. */
void rnl_am_unreached(struct rnl_am_port *port, uint32_t rank, const struct rnl_am_message *m);
/* Outside handlers, after the core took in something: deaths, rejected replies. */
void rnl_am_chores(struct rnl_am_port *port);
RNL_INLINE int rnl_am_has_chores(const struct rnl_am_port *port)
{
    return port->rejected != NULL || port->deaths != port->ep->deaths_seen || port->untold;
}
/* AM_OK, or once AM_ERR_NOT_SENT. */
int rnl_am_tell_untold(struct rnl_am_port *port);
/* Polls, outside handlers; the lock is held. After a request that was sent: it is not told what another came to. */
int rnl_am_progress(struct rnl_am_port *port);
int rnl_am_progress_sent(struct rnl_am_port *port);
/* The same after a request to rank. To another host not after each: a poll sends what is there to send, and requests
 * that follow each other are to share datagrams, whose way through the kernel costs as much as a dozen of them. Half of
 * as many as were unanswered at a time lately go together: the two sides work at the same time then. */
enum { RNL_AM_SENT_LEAST = 32, RNL_AM_SENT_MOST = 64, RNL_AM_LATELY = 8 };
/* Who waits for so many answers polls soon: a request more does not leave alone, even if all before have arrived. But
 * not more than were unanswered when answers came last: others may be of a kind that is never answered. */
RNL_INLINE uint8_t rnl_am_awaits(struct rnl_am_port *port, uint32_t rank)
{
    struct rnl_am_peer *p = &port->peer[rank];
    uint64_t open = p->asked - p->answered;
    if (RNL_LIKELY(open < RNL_AM_SENT_LEAST))
        return 0;
    if (p->answered != p->heard) {
        uint64_t depth = p->asked - p->heard, most = p->deepest > p->deep ? p->deepest : p->deep;
        p->window = (uint32_t)(depth < most ? depth : most);
        p->heard = p->answered;
    }
    return open <= p->window;
}
RNL_INLINE int rnl_am_progress_after(struct rnl_am_port *port, uint32_t rank)
{
    if (port->ep->remote && port->ep->conn[rank]->pair.away) {
        struct rnl_am_peer *p = &port->peer[rank];
        uint64_t open = p->asked - p->answered;
        uint32_t sent = ++port->sent_away;
        if (open > p->deep)
            p->deep = (uint32_t)open;
        uint32_t deepest = p->deepest > p->deep ? p->deepest : p->deep;
        if (sent < RNL_AM_SENT_LEAST || (sent < RNL_AM_SENT_MOST && sent < (deepest + 1) / 2))
            return AM_OK;
        if (++p->groups == RNL_AM_LATELY) {
            p->deepest = p->deep;
            p->deep = p->groups = 0;
        }
    }
    return rnl_am_progress_sent(port);
}
/* A handler ran for an endpoint of b: whoever waits for that looks. */
RNL_COLD void rnl_am_wake(struct rnl_am_bundle *b);

/* take.c */
int rnl_am_register(struct rnl_am_port *port);
/* From now on all that comes goes back: there is no endpoint. */
void rnl_am_unregister(struct rnl_endpoint *rank);
/* NULL: there is none on that rank. */
struct rnl_am_port *rnl_am_port_of(const struct rnl_endpoint *rank);
/* endpoint.c; the lock is held. */
void rnl_am_free_endpoint_now(struct rnl_am_endpoint *ep);

#endif
