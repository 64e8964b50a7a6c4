/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream.h - messages: the waist. Everything above says message, everything below line, extent or packet. Sending is in
 * begin.c and send.c, taking in lines in take.c, handlers and what they call in handler.c, the progress calls in
 * extract.c, queued messages in post.c, what ends early in abort.c, telling the program in
 * calls.c, close in close.c.
 *
 * How a message travels, by its bound:
 *   up to 56 bytes       one item of a line, packed with its neighbours (with an answer: up to 48, a line of its own)
 *   up to a quarter of   one contiguous extent of the bulk area, announced by a line and published as a growing prefix,
 * trimmed at the end; the bulk area        a message that is composed before CHUNK bytes are reached arrives whole, and
 * its handler needs no stack of its own longer               an extent per chunk, so that both sides copy at the same
 * time */
#ifndef RNL_STREAM_STREAM_H
#define RNL_STREAM_STREAM_H

#include "base/copy.h"
#include "endpoint/endpoint.h"

enum {
    RNL_CHUNK_SMALL = 16 << 10, /* bytes between publications for bounds up to CHUNK_SMALL_BOUND: more overlap */
    RNL_CHUNK = 32 << 10,
    RNL_CHUNK_SMALL_BOUND = (64 << 10) + 4096, /* a layer above puts a header before its 64 KiB */
    RNL_PIECE_MIN = 2048,                      /* of a chunk, where the grant is smaller than a chunk */
    RNL_MEDIUM = RNL_CHUNK_SMALL,              /* never published before it is whole */
    RNL_EXTENT_BOUND = RNL_BULK_BYTES / 4,
    RNL_RESERVE_MAX = RNL_BULK_BYTES / 2, /* what a begin that must not wait can reserve */
    RNL_WHOLE_MAX = 1 << 20
};

/* Hooks stream/ into a new endpoint. */
void rnl_stream_attach(struct rnl_endpoint *ep);

/* begin.c: the stream behind rnl_begin, without entering the endpoint. */
int rnl_stream_begin(struct rnl_endpoint *ep, const struct rnl_begin *b, struct rnl_stream **out);
/* What is wrong with it, but for the peer and the bound. */
int rnl_stream_check_begin(struct rnl_endpoint *ep, const struct rnl_begin *b);
int rnl_stream_try_begin(struct rnl_endpoint *ep, struct rnl_conn *conn, const struct rnl_begin *b, int no_wait,
                         struct rnl_stream **out);
/* Reserves `bytes` of the bulk area for the open stream; the next chunk: as much of `left` as room and grant allow now.
 * 0, RNL_NO_ROOM, or an error. */
int rnl_stream_open_extent(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, uint32_t bytes);
int rnl_stream_open_chunk(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, uint64_t left);
/* send.c */
/* Composes what fits without waiting: bytes taken, or a negative status. */
int64_t rnl_stream_put(struct rnl_stream *s, const void *buf, size_t n);
/* RNL_NO_ROOM: try again (only for RNL_STREAM_CHUNKS). */
int rnl_stream_try_end(struct rnl_stream *s);
/* Publishes what the extent holds; the caller made sure of a line. RNL_EXTENT_... other than FIRST. */
void rnl_stream_publish_extent(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, unsigned flags);
/* It is over: another may be begun. */
void rnl_stream_closed(struct rnl_stream *s);
void rnl_stream_flush(struct rnl_endpoint *ep);
/* Something waits for a line to conn, and no call waits with it: whoever sleeps is to be woken for it. */
void rnl_stream_want_room(struct rnl_endpoint *ep, struct rnl_conn *conn, int want);
/* A stream of the short path becomes one like any other: before another is begun, or its peer's queue is looked at. */
void rnl_stream_lengthen(struct rnl_endpoint *ep);
void rnl_stream_lengthen_one(struct rnl_stream *s);
/* Waits for a line (and `bulk` contiguous bytes) to conn on lane 0, making progress. */
int rnl_stream_wait_room(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t bulk);

/* abort.c */
/* Gives the message up, complete or not: its receiver drops it. Never waits; what cannot be said now is said as soon as
 * there is a line (rnl_stream_aborts, which returns how many were). */
void rnl_stream_abort(struct rnl_stream *s);
unsigned rnl_stream_aborts(struct rnl_endpoint *ep);
/* What the handler of s began and has not ended when it returns is the program's to end. */
void rnl_stream_disown(struct rnl_endpoint *ep, struct rnl_stream *s);
/* Gives up what the program has open. */
void rnl_stream_abort_all(struct rnl_endpoint *ep);
RNL_INLINE int rnl_stream_composing(const struct rnl_stream *s)
{
    return s->state >= RNL_STREAM_SHORT && s->state <= RNL_STREAM_CHUNKS;
}
/* The open message that comes in never will be complete. Its handler is told, or dropped; bytes that were collected are
 * thrown away. */
void rnl_stream_fail(struct rnl_endpoint *ep, struct rnl_stream *s, int why);
/* Its collecting buffer is done with. */
void rnl_stream_ungather(struct rnl_endpoint *ep, struct rnl_stream *s);
/* ... the status and sentence for it. */
int rnl_stream_lost(const struct rnl_stream *s);
/* All that waits for a peer that is gone. */
void rnl_stream_gone(struct rnl_endpoint *ep, struct rnl_conn *conn);

/* medium.c: all of the step (the stream; 1), or nothing of it (NULL; 0): the general way does it then. */
struct rnl_stream *rnl_stream_begin_medium(struct rnl_endpoint *ep, unsigned long peer, unsigned long handler,
                                           size_t bound);
int rnl_stream_piece_medium(struct rnl_stream *s, const void *buf, size_t n);
int rnl_stream_end_medium(struct rnl_stream *s);
struct rnl_taking;
/* e has been checked. */
int rnl_stream_take_medium(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_head h, const struct rnl_extent *e,
                           struct rnl_taking *t);

/* take.c: take in what is there on one lane, beginning with the line whose header h rnl_rx_peek returned. */
struct rnl_taking {
    uint64_t max, bytes; /* stop at max; payload bytes so far */
    unsigned things;     /* messages, lines, deaths: 0 = nothing was there */
    int quit;            /* a handler returned RNL_QUIT */
};
/* Start the handlers of messages that wait for a stack, if there is one now. Returns how many. */
unsigned rnl_stream_stacks(struct rnl_endpoint *ep, struct rnl_taking *t);
void rnl_stream_take(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_head h, struct rnl_taking *t);

/* handler.c */
/* Run the handler of a message that is all here, on this stack. */
int rnl_stream_run(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h);
/* What a handler's return value asks for: 1 = quit. */
int rnl_stream_ended(struct rnl_endpoint *ep, struct rnl_stream *s, int ending);
/* Start it on a coroutine; 0, RNL_NO_ROOM (no stack), RNL_ERR_NO_MEMORY. */
int rnl_stream_start(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h);
/* More bytes are there (or the end is, or the peer is dead): give them to whoever waits. */
void rnl_stream_feed(struct rnl_endpoint *ep, struct rnl_stream *s);
/* Room for the largest answer of a message, on lane 1: 1, 0, RNL_RING_BROKEN, or no memory to send it from. */
int rnl_stream_answer_fits(struct rnl_conn *conn, uint32_t answer);

/* extract.c: all lanes of all peers. *things counts what was taken in. */
int64_t rnl_stream_extract(struct rnl_endpoint *ep, uint64_t max, unsigned *things);
/* What a blocked send calls: answers first, then lane 0 unless the endpoint forbids it. Returns things taken in. */
unsigned rnl_stream_progress(struct rnl_endpoint *ep);

/* table.c: as rnl_handler_stream, with every flag. */
int rnl_stream_register(struct rnl_endpoint *ep, int id, const struct rnl_handler *h);

/* calls.c: tells the program what there is to tell; returns how many things. */
unsigned rnl_stream_calls(struct rnl_endpoint *ep);

/* post.c */
unsigned rnl_stream_posts(struct rnl_endpoint *ep);
void rnl_stream_posts_fail(struct rnl_endpoint *ep, struct rnl_conn *conn, int status);

/* Items that the counters do not know yet: counted when the key changes and now and then, not per message. */
RNL_INLINE void rnl_stream_count(struct rnl_endpoint *ep, struct rnl_tx *t)
{
    uint32_t all = rnl_tx_items(t), items = all - t->counted;
    ep->c->messages_sent += items;
    ep->c->bytes_sent += (uint64_t)items * RNL_HEAD_LEN(t->key);
    t->counted = all;
}
/* Handlers of `n` messages returned. */
RNL_INLINE void rnl_stream_handled(struct rnl_endpoint *ep, unsigned lane, unsigned n)
{
    ep->c->messages_received += n;
    if (RNL_UNLIKELY(lane == 1))
        ep->c->replies_received += n;
}
/* Publishes what was composed at its place, up to `end`. Returns 0. */
RNL_INLINE int rnl_stream_publish(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_head key,
                                  unsigned char *end, int fresh, unsigned acklane)
{
    struct rnl_tx *t = &conn->pair.tx[lane];
    if (key != t->key)
        rnl_stream_count(ep, t);
    rnl_pair_publish(&conn->pair, lane, key, end, fresh, acklane);
    return rnl_ep_published(ep, conn, t);
}
/* send.c: the same on lane 0 for the short path, where the kind changes: it is the quick one from now on. A call at its
 * end, so that it needs no frame. */
RNL_NOINLINE int rnl_stream_publish_other(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_head key,
                                          unsigned char *end);
/* In the position of an open short stream: it is of another kind than what is in the open line, and begins a line; its
 * `key` says which. */
#define RNL_POS_OTHER ((uint64_t)1 << 63)

/* ---- the short path, inlined into the native calls and into FM's ----
 *
 * Each returns NULL or 0 where the long one must be taken. A short stream sets only what these need, in its endpoint;
 * rnl_stream_lengthen() fills in the rest before anything else touches it, and before anything can change what begin
 * checked: so while `open_short` is still s, the rest need not be checked again. */

/* begin.c: the same for another kind than the last to its peer, or the first after something was against it. Apart, and
 * for who got NULL: then the short path needs no frame. */
RNL_NOINLINE struct rnl_stream *rnl_stream_begin_other(struct rnl_endpoint *ep, unsigned long peer,
                                                       unsigned long handler, size_t bound);
/* send.c: its end. */
RNL_NOINLINE void rnl_stream_end_other(struct rnl_stream *s, unsigned char *end);

RNL_INLINE struct rnl_stream *rnl_stream_begin_short(struct rnl_endpoint *ep, unsigned long peer, unsigned long handler,
                                                     size_t bound)
{
    if (RNL_UNLIKELY(peer >= ep->reach || ep->open_short))
        return NULL;
    struct rnl_conn *conn = ep->conn[peer];
    struct rnl_stream *s = &conn->out[0];
    struct rnl_tx *t = &conn->pair.tx[0];
    uint64_t pos = t->pos;
    if (RNL_UNLIKELY(handler != t->quick_handler || bound != t->quick_bytes))
        return NULL;
    if (RNL_UNLIKELY(pos >= t->quick_stop)) /* a line must be left in any case: see try_short in begin.c */
        return NULL;
    ep->open_short = s;
    unsigned char *at;
    if (RNL_LIKELY(rnl_tx_room_in_line(t))) { /* of few that come at once each counts, of one alone it does not */
        at = t->end;
    } else {
        pos = rnl_tx_begin_line(t);
        at = rnl_line_of(t->ring, t->wrap, pos)->payload;
    }
    ep->short_pos = pos;
    ep->short_at = at;
    ep->short_end = at + bound;
    return s;
}

RNL_INLINE int rnl_stream_piece_short(struct rnl_stream *s, const void *buf, size_t n)
{
    struct rnl_endpoint *ep = s->ep;
    if (RNL_UNLIKELY(ep->open_short != s))
        return 0;
    unsigned char *at = ep->short_at;
    if (RNL_LIKELY(n == 8)) {
        if (RNL_UNLIKELY(at + 8 > ep->short_end))
            return 0;
        memcpy(at, buf, 8);
        ep->short_at = at + 8;
        return 1;
    }
    if (RNL_UNLIKELY(n > (size_t)(ep->short_end - at)))
        return 0;
    rnl_copy_short(at, buf, n);
    ep->short_at = at + n;
    return 1;
}

RNL_INLINE int rnl_stream_end_short(struct rnl_stream *s)
{
    struct rnl_endpoint *ep = s->ep;
    if (RNL_UNLIKELY(ep->open_short != s)) /* first: else s is read under the lock of shared endpoints */
        return 0;
    unsigned char *end = ep->short_end;
    if (RNL_UNLIKELY(ep->short_at != end))
        return 0;
    struct rnl_conn *conn = rnl_conn_of_out(s);
    struct rnl_tx *t = &conn->pair.tx[0];
    uint64_t pos = ep->short_pos;
    ep->open_short = NULL;
    if (RNL_UNLIKELY(pos & RNL_POS_OTHER))
        return rnl_stream_end_other(s, end), 1;
    rnl_tx_publish_at(t, t->key, end, pos, conn->pair.rx[0].pos, 0);
    (void)rnl_ep_published(ep, conn, t);
    return 1;
}

/* Makes s the incoming message that lies whole at `at`. */
RNL_INLINE void rnl_stream_setup(struct rnl_stream *s, const unsigned char *at, size_t n, unsigned handler,
                                 uint32_t answer)
{
    s->at = s->base = (unsigned char *)(uintptr_t)at;
    s->end = s->base + n;
    s->before = 0;
    s->state = RNL_STREAM_INLINE;
    s->last = 1;
    s->answered = 0;
    s->lost = 0;
    s->handler = (uint16_t)handler;
    s->answer = answer;
    s->ready = RNL_READY_NOT;
}

/* What the items of a line have in common is set up once, and holds for the next line, too, while that has the same
 * upper half of a header and s is `ready`. It stands for what was checked: items, of a length that fits, lane 0
 * acknowledged, and a handler that is there, of which s->h is a copy. The stream is free then, or runs the handler of
 * such an item. */
RNL_INLINE int rnl_stream_is_ready(const struct rnl_stream *s, const struct rnl_rx *r, rnl_head h)
{
    return s->ready && (rnl_head_turned(h) ^ r->expect) << 16 >> 32 == 0;
}
/* take.c: s, which is free, for items like h's. 1 = they are expected from now on. */
RNL_NOINLINE int rnl_stream_expect(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_head h);
RNL_INLINE void rnl_stream_setup_item(struct rnl_stream *s, const unsigned char *at, size_t n)
{
    s->at = s->base = (unsigned char *)(uintptr_t)at;
    s->end = s->base + n;
    s->state = RNL_STREAM_INLINE;
}

/* Eight bytes are what is asked for most. */
RNL_INLINE int rnl_stream_receive_8(struct rnl_stream *s, void *buf)
{
    unsigned char *at = s->at, *next = at + 8;
    if (RNL_UNLIKELY(next > s->end || s->state != RNL_STREAM_INLINE))
        return 0;
    memcpy(buf, at, 8);
    s->at = next;
    return 1;
}
RNL_INLINE int rnl_stream_receive_short(struct rnl_stream *s, void *buf, size_t n)
{
    unsigned char *at = s->at;
    if (RNL_UNLIKELY(n > (size_t)(s->end - at) || s->state != RNL_STREAM_INLINE || n > RNL_LINE_PAYLOAD))
        return 0;
    rnl_copy_short(buf, at, n);
    s->at = at + n;
    return 1;
}

#endif
