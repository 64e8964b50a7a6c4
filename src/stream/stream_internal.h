/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream_internal.h - what the files of stream/ call of each other. */
#ifndef RNL_STREAM_STREAM_INTERNAL_H
#define RNL_STREAM_STREAM_INTERNAL_H

#include "base/bug.h"
#include "endpoint/poll.h"
#include "stream/stream.h"

struct rnl_poll_ctx;

enum { RNL_BULK_AHEAD = 16 /* chunks of the bulk lane that a peer has not taken in, at most */ };

/* When an extract takes in what is parked: after lane 0. If its bytes are used up by then, the next one takes in a
 * chunk before lane 0. */
enum rnl_bulk_turn { RNL_BULK_AFTER = 0, RNL_BULK_NEXT, RNL_BULK_SERVED /* this extract has done so */ };

/* The bulk lane of one connection (bulk.c); made when it is first used. */
struct rnl_bulk_lane {
    struct rnl_stream in; /* the open incoming message */
    /* Chunks that were found in the ring and are not taken in: a queue, of conn->parked entries. */
    struct rnl_extent parked[RNL_BULK_AHEAD];
    uint16_t handler[RNL_BULK_AHEAD];
    uint8_t parked_first;
    uint8_t turn;  /* in: enum rnl_bulk_turn */
    uint64_t seen; /* in: chunks taken in so far */
    uint64_t done; /* in: the bulk area is done with up to here, but for what is parked */
    /* Out: ends in the bulk area of the chunks that the peer has not taken in, as far as is known; a queue. */
    struct {
        uint64_t end;
        uint32_t bytes;
    } unread[RNL_BULK_AHEAD];
    uint8_t unread_first, unread_count;
    uint8_t aborting; /* out: a message was given up, and its receiver does not know yet */
    uint16_t abort_handler;
    struct rnl_post *post_first, **post_last; /* queued posts, in order */
};

/* ---- out.c ---- */

/* Reserve bulk area for the open message: the first all `bytes`, the second as much of `left` as room and grant allow
 * now. Return 0, RNL_NO_ROOM, or an error. */
int rnl_stream_open_extent(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, uint32_t bytes);
int rnl_stream_open_chunk(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, uint64_t left);
/* Moves the message that is open on the fast path to the general path. To be called before another message is begun,
 * and before the peer's queue is looked at. */
void rnl_stream_promote(struct rnl_endpoint *ep);
void rnl_stream_promote_one(struct rnl_stream *s);
/* Counts an open stream of the general path. */
void rnl_stream_opened(struct rnl_endpoint *ep);
/* Publishes what the extent holds. The caller has made sure of a free cell. flags: RNL_EXTENT_..., but not FIRST. */
void rnl_stream_publish_extent(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_stream *s, unsigned flags);
/* Ends the life of an outgoing message, so that another may be begun. */
void rnl_stream_closed(struct rnl_stream *s);
/* Sets or clears conn->wants_room: work that no call waits for needs a free cell to conn, so sleepers are to be
 * woken. */
void rnl_stream_want_room(struct rnl_endpoint *ep, struct rnl_conn *conn, int want);

/* ---- begin.c ---- */

/* Checks everything but the peer and the bound. */
int rnl_stream_check_begin(struct rnl_endpoint *ep, const struct rnl_message *b);
int rnl_stream_try_begin(struct rnl_endpoint *ep, struct rnl_conn *conn, const struct rnl_message *b, int no_wait,
                         struct rnl_stream **out);

/* Whether the message is one record of a cell, and needs nothing of the bulk area. */
bool rnl_stream_is_short(const struct rnl_message *b);
/* Records that so much cannot be reserved at once. Returns RNL_ERR_TOO_LONG. */
RNL_COLD int rnl_stream_too_long(size_t bound);

/* ---- compose.c ---- */

/* Composes what fits without waiting. Returns the bytes taken, or a negative status. */
int64_t rnl_stream_put(struct rnl_stream *s, const void *buf, size_t n);
/* Ends the message. RNL_NO_ROOM: try again (only in state RNL_STREAM_CHUNKS). */
int rnl_stream_try_end(struct rnl_stream *s);
/* Publishes what open messages hold. */
void rnl_stream_flush(struct rnl_endpoint *ep);

/* ---- eager.c: each function does all of its step (returns the stream; 1), or none of it (NULL; 0), for the general
 * path ---- */

struct rnl_stream *rnl_stream_begin_eager(struct rnl_endpoint *ep, unsigned long peer, unsigned long handler,
                                          size_t bound);
bool rnl_stream_piece_eager(struct rnl_stream *s, const void *buf, size_t n);
bool rnl_stream_end_eager(struct rnl_stream *s);

/* ---- abort.c ---- */

/* Aborts the message, complete or not: its receiver drops it. Never waits. If no cell is free, the abort is announced
 * by rnl_stream_announce_aborts as soon as there is one; that returns how many were announced. */
void rnl_stream_abort(struct rnl_stream *s);
unsigned rnl_stream_announce_aborts(struct rnl_endpoint *ep);
/* Gives the messages that the handler of s began and did not end over to the program, when the handler returns. */
void rnl_stream_disown(struct rnl_endpoint *ep, struct rnl_stream *s);
/* Aborts the messages that this handler's message has open, or the program, if it is NULL. */
void rnl_stream_abort_of(struct rnl_endpoint *ep, const struct rnl_stream *owner);
/* Aborts what the program has open when it closes the endpoint, and notes it in ep->close. */
void rnl_stream_abort_forgotten(struct rnl_endpoint *ep);
/* The abort of s is announced, or nobody is left to hear of it. */
void rnl_stream_aborted(struct rnl_endpoint *ep, struct rnl_stream *s);
RNL_INLINE bool rnl_stream_composing(const struct rnl_stream *s)
{
    return s->state >= RNL_STREAM_SHORT && s->state <= RNL_STREAM_CHUNKS;
}

/* ---- fail.c ---- */

/* Marks the open incoming message as never complete, because of `why`: its handler is resumed with that error, or
 * dropped. Collected bytes are freed. */
void rnl_stream_fail(struct rnl_endpoint *ep, struct rnl_stream *s, int why);
/* Drops what is parked, and marks the open message of the bulk lane, if conn has one, in the same way. */
void rnl_stream_fail_bulk(struct rnl_endpoint *ep, struct rnl_conn *conn, int why);
/* Frees the message's collecting buffer. */
void rnl_stream_free_reassembly(struct rnl_endpoint *ep, struct rnl_stream *s);
/* Fails everything that waits for a peer that is gone. */
void rnl_stream_gone(struct rnl_endpoint *ep, struct rnl_conn *conn);

/* ---- cell.c: takes in what has arrived on one lane, from the cell on whose header rnl_rx_peek returned ---- */

struct rnl_poll_ctx {
    uint64_t max, bytes; /* limit of payload bytes; payload bytes so far */
    unsigned work_done;  /* messages, cells and deaths; 0 = nothing was there */
    int quit;            /* a handler returned RNL_QUIT */
};
void rnl_stream_take(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h,
                     struct rnl_poll_ctx *t);

/* Returns true if s is set up for messages like h's. What single messages of one kind have in common is checked once:
 * that they are records of a length that fits, that lane 0 was acknowledged, and that their handler, of which s->h is a
 * copy, exists. It holds for the next message if its header has the same upper half and s is `ready`. The stream is
 * free then, or runs the handler of such a record. */
RNL_INLINE bool rnl_stream_is_ready(const struct rnl_stream *s, const struct rnl_rx *r, rnl_header h)
{
    return s->ready && (rnl_header_rotated(h) ^ r->expect) << 16 >> 32 == 0;
}
/* Sets up the free stream of that lane for records like h's. Returns true if they are expected from now on. */
RNL_NOINLINE bool rnl_stream_expect(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h);

/* The thread that serves the endpoint leaves what is first on that lane to the owner. Returns 0. */
unsigned rnl_stream_leave_head(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane);
/* Returns the handler of that number, or NULL if there is none, and the message must wait. */
const struct rnl_handler *rnl_stream_handler_of(struct rnl_endpoint *ep, unsigned id);
/* Blocks the lane, whose first message must wait. Returns 0, for the caller to return. */
unsigned rnl_stream_block(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, enum rnl_blocked why);
RNL_NOINLINE unsigned rnl_stream_no_handler(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, unsigned id);
/* Checks that there is room for the reply that a request asks for. Returns 1; 0 = the lane is blocked; negative = the
 * peer is broken. The room stays free until the handler returns, since nobody else sends on lane 1 to this peer. */
int rnl_stream_reply_ready(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, uint32_t reply_max);

/* ---- extent.c ---- */

/* Take in a cell that announces an extent, or more bytes of one. Return the number of things taken in. */
unsigned rnl_stream_take_extent(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h,
                                struct rnl_poll_ctx *t);
unsigned rnl_stream_take_prefix(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h,
                                struct rnl_poll_ctx *t);
/* Takes in a chunk of the bulk lane. Returns 1; 0 = blocked; negative = broken. */
int rnl_stream_take_chunk(struct rnl_endpoint *ep, struct rnl_conn *conn, const struct rnl_extent *e, unsigned id,
                          struct rnl_poll_ctx *t);
/* Starts handlers of messages that wait for a stack, while there are stacks. Returns how many. */
unsigned rnl_stream_start_waiting(struct rnl_endpoint *ep, struct rnl_poll_ctx *t);

/* ---- run.c ---- */

/* Makes s the incoming message whose bytes all lie at `at`. */
RNL_INLINE void rnl_stream_setup(struct rnl_stream *s, const unsigned char *at, size_t n, unsigned handler,
                                 uint32_t reply_max)
{
    s->at = s->base = (unsigned char *)(uintptr_t)at;
    s->end = s->base + n;
    s->before = 0;
    s->state = RNL_STREAM_INLINE;
    s->last = 1;
    s->replied = 0;
    s->lost = 0;
    s->handler = (uint16_t)handler;
    s->reply_max = reply_max;
    s->ready = RNL_KIND_NONE;
}

/* The stream whose handler this thread runs on a stack of its own, of whatever endpoint, or NULL. */
extern _Thread_local const struct rnl_stream *rnl_stream_on_own_stack;
/* Tells the launcher, if there is one, of the handler of this thread that has overrun its stack at `address`, if one
 * has. For a handler of SIGSEGV. */
void rnl_stream_overran(const void *address);
/* Run the handler of a message that has arrived whole, on the caller's stack. Return 1 if it returned RNL_QUIT. */
int rnl_stream_run(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h);
bool rnl_stream_run_whole(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h, const void *buf,
                          size_t n);
/* Tells the sender of a message that its handler cannot take it whole; room for that was reserved when it began. */
void rnl_stream_reject_too_long(struct rnl_endpoint *ep, struct rnl_stream *s);
/* Does what a handler's return value asks for. Returns true for RNL_QUIT. */
bool rnl_stream_ended(struct rnl_endpoint *ep, struct rnl_stream *s, int ending);
/* Counts the stacks in use. */
void rnl_stream_count_stacks(struct rnl_endpoint *ep);
/* Starts the handler on a coroutine. Returns 0, RNL_NO_ROOM (no stack is free) or RNL_ERR_NO_MEMORY. */
int rnl_stream_start(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h);
/* Gives the bytes that have arrived, the end of the message, or the peer's death to the handler that waits. */
void rnl_stream_resume(struct rnl_endpoint *ep, struct rnl_stream *s);
/* Returns the word of base/copies.h for a connection as far away as it is now. What goes to another host is private
 * memory, which no other core holds. */
RNL_INLINE uint64_t rnl_stream_copies(const struct rnl_conn *conn, const struct rnl_env *env)
{
    return conn->remote ? RNL_COPIES_DEFAULT : env->facts.copies.word[conn->channel.distance & RNL_FAR];
}
/* Copies bytes out of a message. What came from another host was written by this core, so writing whole lines is what
 * counts then. */
RNL_INLINE void rnl_stream_copy_out(const struct rnl_stream *s, void *to, const void *from, size_t n)
{
    if (s->conn->remote)
        rnl_copy_in(to, from, n);
    else
        rnl_copy_out(to, from, n, s->ep->env->facts.wide_copy);
}

RNL_INLINE void rnl_stream_take_bytes(struct rnl_stream *s, void *to, size_t n)
{
    if (n <= RNL_CELL_PAYLOAD)
        rnl_copy_short(to, s->at, n);
    else
        rnl_stream_copy_out(s, to, s->at, n);
    s->at += n;
}

/* ---- handler.c ---- */

/* Records that a message will never be complete. Returns the status. */
int rnl_stream_lost(const struct rnl_stream *s);

/* ---- reply.c ---- */

/* Returns 1 if the largest reply to a message fits on lane 1, 0 if not; RNL_RING_BROKEN; or RNL_ERR_NO_MEMORY. */
int rnl_stream_reply_fits(struct rnl_conn *conn, uint32_t reply_max);
/* Forgets the replies that are deferred for a peer that is gone. */
void rnl_stream_forget_deferred(struct rnl_endpoint *ep, const struct rnl_conn *conn);

/* ---- progress.c ---- */

/* Ends an extract: looks at everything but what comes before conn in this round, after t was taken from conn. Returns
 * the result of the extract. */
int64_t rnl_stream_continue_extract(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_poll_ctx *t);
/* Ends an extract that found nothing. Returns its result. */
RNL_NOINLINE int64_t rnl_stream_extract_empty(struct rnl_endpoint *ep);
/* Does an extract that assumes nothing. */
RNL_NOINLINE int64_t rnl_stream_extract_all(struct rnl_endpoint *ep, size_t max);
/* Wakes the sender if credit was given back to it, since it may sleep for want of credit. */
RNL_INLINE void rnl_stream_wake_sender(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_rx *r)
{
    if (RNL_UNLIKELY(r->wake_check_due)) {
        r->wake_check_due = 0;
        rnl_ep_advertised(ep, conn);
    }
}

/* ---- bulk.c ---- */

/* Where the next byte of a message lies that is gathered from pieces. */
struct rnl_cursor {
    const struct rnl_buffer *pieces;
    unsigned piece, count;
    size_t offset;
    uint64_t sent, bytes; /* sent: of all bytes; UINT64_MAX = not begun */
};
/* Makes the bulk lane of conn, unless it is there. Returns 0 or RNL_ERR_NO_MEMORY. */
int rnl_stream_bulk_open(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Returns what is in the way of a post, as bits of enum rnl_room_lacks, beside what rnl_tx_look has told of lane 0. If
 * nothing is, stores in *room how many bytes of one would be sent now; to another host it may be more. */
uint32_t rnl_stream_bulk_lacks(const struct rnl_conn *conn, const struct rnl_tx_room *lane0, uint64_t *room);
/* Sends what there is room for on the bulk lane. Returns 0 = all of it is sent, RNL_NO_ROOM, or an error. */
int rnl_stream_bulk_send(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned handler, struct rnl_cursor *c);
/* The message that is half sent is given up: its receiver drops it. Never waits. */
void rnl_stream_bulk_abort(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned handler);
/* Announces the abort that could not be announced. Returns 0 or RNL_NO_ROOM. */
int rnl_stream_bulk_aborts(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Notes a chunk whose cell was found in the ring of lane 0. Returns 0; RNL_NO_ROOM = as many are parked as can be; or
 * RNL_ERR_NO_MEMORY. */
int rnl_stream_park(struct rnl_endpoint *ep, struct rnl_conn *conn, const struct rnl_extent *e, unsigned id);
/* The first parked chunk is done with, and so is the bulk area up to the next one. */
void rnl_stream_unpark(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Marks the bulk area of a lane as read up to `to`; that of lane 0 once no chunk before that is parked. */
RNL_INLINE void rnl_stream_bulk_done(struct rnl_conn *conn, unsigned lane, uint64_t to)
{
    if (RNL_UNLIKELY(conn->parked) && lane == 0 && !RNL_BUG(stream_parked_is_freed)) {
        if (to > conn->bulk->done)
            conn->bulk->done = to;
        return;
    }
    rnl_rx_bulk_done(&conn->channel.rx[lane], to);
}

/* ---- post.c ---- */

unsigned rnl_stream_send_posts(struct rnl_endpoint *ep);
void rnl_stream_fail_posts(struct rnl_endpoint *ep, struct rnl_conn *conn, int status);
/* Calls the program's functions that are due. Returns the number of calls. */
unsigned rnl_stream_run_callbacks(struct rnl_endpoint *ep);

#endif
