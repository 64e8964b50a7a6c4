/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream.h - messages: the waist of the library. Everything above it speaks of messages, everything below of cells,
 * extents or packets. This header is what the interfaces above may use: the open message, handlers, and the fast path
 * of sending and receiving, which is inlined into them. poll.h takes messages in, request.h sends requests and replies,
 * and stream_internal.h is for this folder only.
 *
 * How a message travels, by its bound:
 *
 *   up to 56 bytes       one record of a cell, packed with its neighbours; a request: up to 48, a cell of its own
 *   up to 16 KiB         eager: one contiguous extent of the bulk area, published whole and announced by one cell
 *   up to a quarter of   one such extent, announced by a cell and published as a growing prefix, trimmed at the end;
 *   the bulk area        what is composed before CHUNK bytes are reached arrives whole, and its handler needs no stack
 *   longer               an extent per chunk, so that both sides copy at the same time
 */
#ifndef RNL_STREAM_STREAM_H
#define RNL_STREAM_STREAM_H

#include "base/bug.h"
#include "base/copy.h"
#include "base/iface.h"
#include "endpoint/endpoint.h"

enum {
    RNL_CHUNK_SMALL = 16 << 10, /* bytes between publications for bounds up to CHUNK_SMALL_BOUND, for more overlap */
    RNL_CHUNK = 32 << 10,
    RNL_CHUNK_SMALL_BOUND = (64 << 10) + 4096, /* 64 KiB, and the header that a layer above puts before them */
    RNL_PIECE_MIN = 2048,                      /* least bytes of a chunk, where the grant is small */
    RNL_EAGER = RNL_CHUNK_SMALL,               /* messages up to this size are published when they are whole */
    RNL_EXTENT_BOUND = RNL_BULK_BYTES / 4,
    RNL_RESERVE_MAX = RNL_BULK_BYTES / 2, /* bytes that a begin that must not wait can reserve */
    RNL_WHOLE_MAX = 1 << 20
};

/* ---- the open message ---- */

enum rnl_stream_state {
    RNL_STREAM_FREE = 0,
    /* outgoing */
    RNL_STREAM_SHORT,       /* composed at its place in a cell */
    RNL_STREAM_EXTENT,      /* one reserved extent, published as a growing prefix */
    RNL_STREAM_CHUNKS,      /* one extent for each chunk */
    RNL_STREAM_DISCARD_OUT, /* the peer is dead: bytes are discarded */
    RNL_STREAM_ABORTING,    /* aborted, but no cell was free to announce that; it has no owner any more */
    /* incoming */
    RNL_STREAM_INLINE,     /* all bytes have arrived: its handler runs on the caller's stack */
    RNL_STREAM_RUNNING,    /* its handler runs on a coroutine */
    RNL_STREAM_SUSPENDED,  /* its handler waits for `want_bytes` more bytes */
    RNL_STREAM_REASSEMBLY, /* bytes are collected until it is whole: no stack was free, or its handler takes it whole */
    RNL_STREAM_DISCARD     /* the rest is dropped as it arrives */
};

/* How the handler of a single message is called: a constant of each instance of the poll loop (poll.h). An interface
 * whose `stream` only passes the call on to ctx may choose a kind of its own, from RNL_KIND_OWN on, and call ctx
 * itself. Two interfaces on one endpoint choose different kinds. */
enum rnl_kind {
    RNL_KIND_NONE = 0, /* nothing is expected */
    RNL_KIND_STREAM,
    RNL_KIND_WHOLE,
    RNL_KIND_REQUEST, /* a message with room for its reply, for a handler of streams */
    RNL_KIND_REPLY,   /* a message on lane 1 */
    RNL_KIND_OWN
};

struct rnl_handler {
    rnl_stream_handler *stream; /* NULL: the handler takes messages whole, or there is none */
    rnl_whole_handler *whole;
    void *ctx;
    uint16_t flags; /* RNL_IN_PLACE, RNL_HANDLER_DROP */
    uint16_t kind;  /* 0 = RNL_KIND_STREAM or RNL_KIND_WHOLE; else RNL_KIND_OWN or above */
};
enum { RNL_HANDLER_DROP = 1 << 8 /* a suspended handler is dropped, not resumed, when its peer dies */ };
static_assert(sizeof(struct rnl_handler) == RNL_HANDLER_BYTES, "an entry of the handler table");

/* The open message of one peer, lane and direction. Only stream/ writes it. Outgoing messages stay open on lane 0
 * alone. */
struct rnl_stream {
    unsigned char *at, *end; /* out: next free byte, end of room; in: next unread byte, end of what has arrived */
    unsigned char *base;     /* where this record or extent begins */
    uint64_t before;         /* bytes of the message in earlier extents */
    uint8_t state;           /* enum rnl_stream_state */
    uint8_t last;            /* in: all bytes have arrived */
    uint8_t replied;         /* in: rnl_reply was called */
    int8_t lost;             /* in: 0, or why the rest never comes: RNL_ERR_PEER_DEAD, RNL_ERR_ABORTED */
    uint32_t record_bytes;   /* in, while `ready`: bytes of each message, without the prefix of a request */
    uint16_t handler;
    uint8_t new_cell;   /* out, SHORT: it opens a cell */
    uint8_t first;      /* out: nothing of it has been published */
    uint32_t reply_max; /* bytes of the largest reply that it may cause */
    uint8_t lane;
    uint8_t closed;       /* the extent is complete */
    uint8_t drop;         /* in: the handler is dropped, not resumed, when the peer dies */
    uint8_t too_long;     /* in, GATHER: longer than whole_max, so it is only counted */
    uint8_t piece_failed; /* out: a piece failed after a part of it had been taken */
    uint8_t ready;        /* in: enum rnl_kind of the messages that rx.expect describes, for which this is set up */
    uint8_t bulk;         /* in: of the bulk lane */
    struct rnl_endpoint *ep;
    struct rnl_conn *conn;
    uint64_t bound;          /* bytes announced; in: not set for records of a cell */
    union {                  /* fields of one direction share places, since an idle peer may take only 6 kB */
        rnl_header key;      /* out, SHORT */
        unsigned char *want; /* in, suspended: where the bytes go */
    };
    uint64_t start; /* extents: position in the bulk area */
    union {
        uint64_t bulk_was; /* out: position up to which the bulk area was used before */
        size_t want_bytes; /* in, suspended: bytes that are missing */
    };
    uint32_t reserved, published;
    union {
        struct rnl_coro *coro;    /* in */
        struct rnl_stream *owner; /* out: message whose handler began it on a coroutine; NULL = the program did */
    };
    union {
        struct rnl_handler h; /* in: the handler as it was when the message came */
        pthread_t thread;     /* out, in an endpoint that threads share: the one that began it */
    };
    int32_t ending;            /* what the handler returned */
    uint32_t head_bytes;       /* in, on a coroutine, if it may be replied to: bytes of conn->head */
    unsigned char *reassembly; /* in, GATHER: the collecting buffer; NULL = in place, or too_long */
    union {
        size_t reassembled; /* in, GATHER: bytes in the collecting buffer */
        size_t piece_taken; /* out, if piece_failed: so much of that piece was taken */
    };
    size_t reassembly_room; /* in, GATHER: bytes of the collecting buffer */
};
/* Returns how many bytes of an incoming message its handler has taken. */
RNL_INLINE uint64_t rnl_stream_received(const struct rnl_stream *s)
{
    return s->before + (uint64_t)(s->at - s->base);
}

static_assert(3 * sizeof(struct rnl_stream) == RNL_CONN_STREAM_BYTES, "a connection keeps two in and one out");
RNL_INLINE struct rnl_stream *rnl_stream_in(const struct rnl_conn *conn, unsigned lane)
{
    return (struct rnl_stream *)(void *)(uintptr_t)conn->stream_state + lane;
}
RNL_INLINE struct rnl_stream *rnl_stream_out(const struct rnl_conn *conn)
{
    return (struct rnl_stream *)(void *)(uintptr_t)conn->stream_state + 2;
}
RNL_INLINE struct rnl_conn *rnl_stream_conn_of_out(struct rnl_stream *s)
{
    return (struct rnl_conn *)(void *)((char *)s - offsetof(struct rnl_conn, stream_state) - 2 * sizeof *s);
}

/* ---- for the interfaces above ---- */

/* Hooks stream/ into a new endpoint. */
void rnl_stream_attach(struct rnl_endpoint *ep);
/* Registers a handler as rnl_handler_stream and rnl_handler_whole do, with any flags and kind. */
int rnl_stream_register(struct rnl_endpoint *ep, int id, const struct rnl_handler *h);
/* Takes in what has arrived on all lanes of all peers, up to max bytes. *things counts messages, cells and deaths. */
int64_t rnl_stream_extract(struct rnl_endpoint *ep, uint64_t max, unsigned *work_done);
/* Is rnl_wait, which rnl_wake ends if `by_wake`. */
int64_t rnl_stream_wait(struct rnl_endpoint *ep, int64_t timeout_ns, bool by_wake);
/* Waits until the message that is open to the peer has ended, which another thread or a suspended handler has to do, in
 * an endpoint that threads share. Returns 0; RNL_BUSY: this thread has opened it; RNL_NO_ROOM: a handler must not wait;
 * RNL_ERR_JOB or RNL_ERR_FORKED. */
int rnl_stream_wait_ended(struct rnl_endpoint *ep, unsigned peer);
/* Makes progress for a blocked send: takes in replies, then lane 0 unless the endpoint forbids it. Returns the number
 * of things taken in. */
unsigned rnl_stream_progress(struct rnl_endpoint *ep);

/* Returns the handler flags that follow from the interface's registration. */
RNL_INLINE uint16_t rnl_handler_flags(const struct rnl_iface *iface)
{
    return iface->death_drops_handlers && !RNL_BUG(iface_death_resumes) ? RNL_HANDLER_DROP : 0;
}

/* Adds to the counters the records that they do not contain yet. Called when the key changes and now and then, not for
 * each message. */
RNL_INLINE void rnl_stream_count(struct rnl_endpoint *ep, struct rnl_tx *t)
{
    uint32_t all = rnl_tx_records(t), items = all - t->counted;
    ep->c->messages_sent += items;
    ep->c->bytes_sent += (uint64_t)items * RNL_HEADER_LEN(t->key);
    t->counted = all;
}
/* Counts n messages whose handlers have returned. */
RNL_INLINE void rnl_stream_handled(struct rnl_endpoint *ep, unsigned lane, unsigned n)
{
    ep->c->messages_received += n;
    if (RNL_UNLIKELY(lane == 1))
        ep->c->replies_received += n;
}
/* Publishes what was composed in place, up to `end`. Returns 0. */
RNL_INLINE int rnl_stream_publish(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header key,
                                  unsigned char *end, int new_cell, unsigned acklane)
{
    struct rnl_tx *t = &conn->channel.tx[lane];
    if (key != t->key)
        rnl_stream_count(ep, t);
    rnl_channel_publish(&conn->channel, lane, key, end, new_cell, acklane);
    return rnl_ep_published(ep, conn, t);
}
/* send.c: publishes on lane 0 a message of another kind than the one before it; the fast path sends that kind from now
 * on. Being the last call of its caller, it lets the caller do without a frame. */
RNL_NOINLINE int rnl_stream_publish_other(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_header key,
                                          unsigned char *end);

/* ---- the fast path of sending, inlined into the native calls and the interfaces ----
 *
 * Each function returns NULL or 0 where the general path must be taken. A message that is open on the fast path sets
 * only what these functions need, in its endpoint (short_at, short_end, short_pos). rnl_stream_promote() moves it to
 * the general path, filling in the rest, before anything else touches it and before anything can change what begin has
 * checked: while `open_short` is still s, nothing needs to be checked again. */

/* Flag in ep->short_pos: the message is of another kind than the open cell's records, so it begins a cell. The stream's
 * `key` has its kind. */
#define RNL_POS_OTHER ((uint64_t)1 << 63)

/* begin.c: begins a message of another kind than the last to its peer, or the first since the fast path was closed.
 * Returns NULL if the general path must be taken. It is a function of its own, so that the fast path needs no frame. */
RNL_NOINLINE struct rnl_stream *rnl_stream_begin_other(struct rnl_endpoint *ep, unsigned long peer,
                                                       unsigned long handler, size_t bound);
/* send.c: ends a message that rnl_stream_begin_other() began. */
RNL_NOINLINE void rnl_stream_end_other(struct rnl_stream *s, unsigned char *end);

RNL_INLINE struct rnl_stream *rnl_stream_begin_short(struct rnl_endpoint *ep, unsigned long peer, unsigned long handler,
                                                     size_t bound)
{
    if (RNL_UNLIKELY(peer >= ep->fast.ranks || ep->fast.open_short))
        return NULL;
    struct rnl_conn *conn = ep->fast.conn[peer];
    struct rnl_stream *s = rnl_stream_out(conn);
    struct rnl_tx *t = &conn->channel.tx[0];
    uint64_t pos = t->pos;
    if (RNL_UNLIKELY(handler != t->fast_handler || bound != t->fast_bytes))
        return NULL;
    if (RNL_UNLIKELY(pos >= t->fast_stop)) /* one cell must stay free: try_short in begin.c */
        return NULL;
    ep->fast.open_short = s;
    unsigned char *at;
    if (RNL_LIKELY(rnl_tx_room_in_cell(t))) { /* likely: the branch costs most in a burst, where cells are shared */
        at = t->end;
    } else {
        pos = rnl_tx_begin_cell(t);
        at = rnl_cell_of(t->ring, t->wrap, pos)->payload;
    }
    ep->fast.short_pos = pos;
    ep->fast.short_at = at;
    ep->fast.short_end = at + bound;
    return s;
}

RNL_INLINE bool rnl_stream_piece_short(struct rnl_stream *s, const void *buf, size_t n)
{
    struct rnl_endpoint *ep = s->ep;
    if (RNL_UNLIKELY(ep->fast.open_short != s))
        return false;
    unsigned char *at = ep->fast.short_at;
    if (RNL_LIKELY(n == 8)) {
        if (RNL_UNLIKELY(at + 8 > ep->fast.short_end))
            return false;
        memcpy(at, buf, 8);
        ep->fast.short_at = at + 8;
        return true;
    }
    if (RNL_UNLIKELY(n > (size_t)(ep->fast.short_end - at)))
        return false;
    rnl_copy_short(at, buf, n);
    ep->fast.short_at = at + n;
    return true;
}

RNL_INLINE int rnl_stream_end_short(struct rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    if (RNL_UNLIKELY(ep->fast.open_short != s)) /* first: a shared endpoint's s may be read only under its lock */
        return 0;
    unsigned char *end = ep->fast.short_end;
    if (RNL_UNLIKELY(ep->fast.short_at != end))
        return 0;
    struct rnl_conn *conn = rnl_stream_conn_of_out(s);
    struct rnl_tx *t = &conn->channel.tx[0];
    uint64_t pos = ep->fast.short_pos;
    ep->fast.open_short = NULL;
    if (RNL_UNLIKELY(pos & RNL_POS_OTHER))
        return rnl_stream_end_other(s, end), 1;
    rnl_tx_publish_at(t, t->key, end, pos, conn->channel.rx[0].pos, 0);
    (void)rnl_ep_published(ep, conn, t);
    return 1;
}

/* Sends a message of two parts, both just stored as words: the second part may be empty. */
RNL_INLINE bool rnl_stream_send_parts(struct rnl_endpoint *ep, unsigned long peer, unsigned long handler,
                                      const void *head, size_t head_bytes, const void *body, size_t body_bytes)
{
    if (RNL_UNLIKELY(peer >= ep->fast.ranks || ep->fast.open_short))
        return false;
    struct rnl_conn *conn = ep->fast.conn[peer];
    struct rnl_tx *t = &conn->channel.tx[0];
    uint64_t pos = t->pos;
    if (RNL_UNLIKELY(handler != t->fast_handler || head_bytes + body_bytes != t->fast_bytes || pos >= t->fast_stop))
        return false;
    unsigned char *at = t->end;
    if (!rnl_tx_room_in_cell(t)) {
        pos = rnl_tx_begin_cell(t);
        at = rnl_cell_of(t->ring, t->wrap, pos)->payload;
    }
    rnl_copy_words(at, head, head_bytes);
    at += head_bytes;
    rnl_copy_words(at, body, body_bytes);
    rnl_tx_publish_at(t, t->key, at + body_bytes, pos, conn->channel.rx[0].pos, 0);
    (void)rnl_ep_published(ep, conn, t);
    return true;
}

/* ---- the thread that serves the endpoint: stream/serve.c ---- */

/* From now on a thread may serve the endpoint. Returns 0, RNL_ERR_CONTEXT or RNL_ERR_UNSUPPORTED. */
int rnl_stream_serve_from_now(struct rnl_endpoint *ep);
/* What the thread runs, with the endpoint as its argument, until it is told to end. */
void *rnl_stream_serve(void *ep);

/* ---- the fast path of receiving, inlined into the native calls and the interfaces ---- */

/* Receives eight bytes, the commonest length. */
RNL_INLINE bool rnl_stream_receive_8(struct rnl_stream *s, void *buf)
{
    unsigned char *at = s->at, *next = at + 8;
    if (RNL_UNLIKELY(next > s->end || s->state != RNL_STREAM_INLINE))
        return false;
    memcpy(buf, at, 8);
    s->at = next;
    return true;
}
RNL_INLINE bool rnl_stream_receive_short(struct rnl_stream *s, void *buf, size_t n)
{
    unsigned char *at = s->at;
    if (RNL_UNLIKELY(n > (size_t)(s->end - at) || s->state != RNL_STREAM_INLINE || n > RNL_CELL_PAYLOAD))
        return false;
    rnl_copy_short(buf, at, n);
    s->at = at + n;
    return true;
}
/* The bytes of an incoming message; as long as *exact is false, the most that it can have. */
RNL_INLINE size_t rnl_stream_length(const struct rnl_stream *s, bool *exact)
{
    uint64_t arrived = s->before + (uint64_t)(s->end - s->base);
    *exact = s->last || arrived == s->bound; /* the bound of records of a cell is not set, but they are whole */
    return (size_t)(*exact ? arrived : s->bound);
}

#endif
