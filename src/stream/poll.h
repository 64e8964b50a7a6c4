/* SPDX-License-Identifier: BSD-3-Clause
 *
 * poll.h - taking in a single message: the commonest end of a poll, inlined into each interface's own call.
 *
 * One algorithm for all instances:
 *
 *   peek          Load the headers of the next cell of the connection and of the last cell, where a burst appends.
 *   check key     Kind, length and handler are compared in one word with those of the message before (rx.expect). Equal
 *                 means that all checks of that one hold, and that the stream is set up for this one.
 *   acknowledge   Take in how far the peer has read. Enter the cell. When a quarter of the ring has been read, its
 *                 credit is to be advertised.
 *   run handler   In place, on the caller's stack.
 *   count         One message, and its bytes.
 *   look again    At the cell: a record that was appended meanwhile begins a burst.
 *
 * rnl_stream_poll_fast() peeks and checks, rnl_stream_deliver_single() does the rest. Whatever they do not expect they
 * leave untouched to the general path, by a tail call whose argument names what was found:
 *
 *   fast if                                                          else general, with
 *   --------------------------------------------------------------   ----------------------------------------
 *   one thread has the endpoint, no handler runs, no work is         RNL_FOUND_UNKNOWN
 *     pending, no message is open on the fast path
 *   one connection is polled, and nothing on it is exceptional;      RNL_FOUND_NO_MATCH
 *     its next cell holds one message like the last, which may
 *     be taken, and nothing was appended to its last cell
 *   the message's handler is of the instance's kind                  RNL_FOUND_OTHER_KIND
 *   what the peer says to have read was sent                         RNL_FOUND_UNKNOWN
 *   no credit is due                                                 RNL_FOUND_CREDIT_DUE
 *   the handler returned RNL_DONE, in this process, and only         RNL_FOUND_ENDED
 *     this connection is polled still
 *   nothing was appended, and the cell has room for another          RNL_FOUND_MORE
 *
 * An instance is a kind, the call of its handlers, and its general path, all constants. poll.c has
 * three: handlers of streams, handlers of whole messages, and requests with their replies; an interface builds one for
 * handlers of its own. A run of messages that share cells goes to rnl_stream_deliver_run in cell.c, a message in the
 * bulk area to eager.c.
 *
 * Events of the agent and the bell wait until nothing is found, or until credit has been advertised
 * RNL_ADVERTISED_PER_CLOCK times (rnl_ep_advertised). */
#ifndef RNL_STREAM_POLL_H
#define RNL_STREAM_POLL_H

#include "endpoint/poll.h"
#include "stream/stream.h"

/* What the fast path found. conn and h hold only where they are named. */
enum rnl_found {
    RNL_FOUND_UNKNOWN,    /* nothing may be assumed */
    RNL_FOUND_NO_MATCH,   /* the next message of the sole connection, if there is one, is not like its last */
    RNL_FOUND_OTHER_KIND, /* h is the expected next cell of conn, but not of the instance's kind */
    RNL_FOUND_CREDIT_DUE, /* conn's single message is acknowledged; advertise, then run its handler */
    RNL_FOUND_ENDED,      /* the handler has returned in->ending, and its message is not counted yet */
    RNL_FOUND_MORE        /* the message is counted; the cell may hold more, or is to be left */
};

/* Returns what the poll returns: bytes, or a negative status. */
typedef int64_t rnl_poll_general(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h,
                                 enum rnl_found found);
/* Is rnl_stream_deliver_single() with the instance's constants. */
typedef int64_t rnl_poll_deliver(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h,
                                 unsigned ack);
/* Calls the handler of s for its message. Returns the handler's result; 0 = RNL_DONE. */
typedef int rnl_handler_call(struct rnl_stream *s, unsigned peer);

/* The general path of the library itself. An interface's general path calls it and translates the result. */
RNL_NOINLINE rnl_poll_general rnl_stream_poll_general;

RNL_INLINE void rnl_stream_setup_record(struct rnl_stream *s, const unsigned char *at, size_t n)
{
    s->at = s->base = (unsigned char *)(uintptr_t)at;
    s->end = s->base + n;
    s->state = RNL_STREAM_INLINE;
}

/* Returns true if one look finds nothing that has come meanwhile. What comes later is for the next poll. */
RNL_INLINE bool rnl_stream_nothing_pending(const struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    return ep->fast.sole_with_replies == conn && !ep->fast.busy && !rnl_rx_peek(&conn->channel.rx[0]) &&
           !(conn->lane1_polled && rnl_rx_peek(&conn->channel.rx[1]));
}

/* Runs the handler, counts, and looks again, for the message at `at`, whose cell was entered and for which the stream
 * of its lane is set up. credit: some was advertised, and its sender must be looked after. */
RNL_INLINE int64_t rnl_stream_deliver_entered(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn,
                                              const unsigned char *at, const enum rnl_kind kind,
                                              rnl_handler_call *const call, rnl_poll_general *const general,
                                              const bool credit)
{
    const bool pairs = kind == RNL_KIND_REQUEST || kind == RNL_KIND_REPLY;
    const unsigned lane = kind == RNL_KIND_REPLY;
    struct rnl_rx *r = &conn->channel.rx[lane];
    struct rnl_stream *s = rnl_stream_in(conn, lane);
    if (lane == 1)
        (void)rnl_ep_handler_begins(ep, 1);
    else
        ep->fast.in_handler = 1;
    ep->fast.max_bytes = max; /* in memory: in registers, this and ep would have to be saved */
    rnl_stream_setup_record(s, at, s->record_bytes);
    int ending = call(s, conn->rank);
    ep = s->ep;
    if (lane == 1)
        rnl_ep_handler_ends(ep, 1, 0);
    else
        ep->fast.in_handler = 0;
    if (RNL_UNLIKELY(ending != RNL_DONE ||
                     (pairs ? ep->fast.sole_with_replies : ep->fast.sole) != conn)) { /* forked: neither */
        s->ending = ending;
        return general(ep, ep->fast.max_bytes, conn, 0, RNL_FOUND_ENDED);
    }
    s->state = RNL_STREAM_FREE;
    unsigned len = s->record_bytes;
    rnl_stream_handled(ep, lane, 1);
    ep->c->bytes_received += len;
    ep->fast.empty_polls = 0;
    if (pairs) { /* they come in runs of cells, which one poll takes in */
        if (kind == RNL_KIND_REQUEST || rnl_header_full(r->seen))
            rnl_rx_leave(r);
        if (RNL_UNLIKELY(r->wake_check_due || !rnl_stream_nothing_pending(ep, conn)))
            return general(ep, ep->fast.max_bytes, conn, 0, RNL_FOUND_MORE);
        return lane == 1 ? 0 : len;
    }
    rnl_header last = atomic_load_explicit(&r->last->header, memory_order_acquire); /* A1 */
    if (RNL_UNLIKELY(last != r->seen || credit || len > RNL_CELL_PAYLOAD / 2))
        return general(ep, ep->fast.max_bytes, conn, 0, RNL_FOUND_MORE);
    return len;
}

/* Acknowledges and does the rest: h is the expected next cell of conn, on lane 0, and acknowledges `ack`. */
RNL_INLINE int64_t rnl_stream_deliver_single(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h,
                                             unsigned ack, const enum rnl_kind kind, rnl_handler_call *const call,
                                             rnl_poll_general *const general)
{
    struct rnl_rx *r = &conn->channel.rx[0];
    if (RNL_UNLIKELY(rnl_tx_acked(&conn->channel.tx[0], r, ack) < 0))
        return general(ep, max, conn, 0, RNL_FOUND_UNKNOWN);
    r->seen = h;
    /* This comes before the handler, so that what the handler sends acknowledges this message. */
    if (RNL_UNLIKELY(rnl_rx_step(r, 1) >= r->advertise_pos))
        return general(ep, max, conn, 0, RNL_FOUND_CREDIT_DUE);
    return rnl_stream_deliver_entered(ep, max, conn, r->last->payload, kind, call, general, false);
}

/* Polls: peeks, checks the key, and does the rest. */
RNL_INLINE int64_t rnl_stream_poll_fast(struct rnl_endpoint *ep, size_t max, const enum rnl_kind kind,
                                        rnl_poll_deliver *const deliver, rnl_poll_general *const general)
{
    /* `open` is checked first. Where threads share the endpoint it never changes, and the rest needs the lock. */
    if (RNL_UNLIKELY(ep->fast.open != RNL_EP_OPEN) ||
        RNL_UNLIKELY(ep->fast.busy | (uint64_t)(uintptr_t)ep->fast.open_short))
        return general(ep, max, NULL, 0, RNL_FOUND_UNKNOWN);
    struct rnl_conn *conn = ep->fast.sole;
    if (RNL_LIKELY(conn)) {
        const struct rnl_rx *r = &conn->channel.rx[0];
        rnl_header h = atomic_load_explicit(&r->next->header, memory_order_acquire); /* A1 */
        rnl_header last =
            atomic_load_explicit(&r->last->header, memory_order_acquire); /* A1; after next: rnl_rx_peek */
        uint64_t ack = rnl_rx_expected(r, h);
        if (RNL_LIKELY(ack < RNL_NOT_EXPECTED && last == r->seen && max > 0)) {
            if (RNL_LIKELY(rnl_stream_in(conn, 0)->ready == kind))
                return deliver(ep, max, conn, h, (unsigned)ack);
            return general(ep, max, conn, h, RNL_FOUND_OTHER_KIND);
        }
    }
    return general(ep, max, NULL, 0, RNL_FOUND_NO_MATCH);
}

/* Poll for requests and replies. */
RNL_NOINLINE int64_t rnl_stream_poll_pairs_of(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn);
RNL_INLINE int64_t rnl_stream_poll_pairs(struct rnl_endpoint *ep, size_t max)
{
    struct rnl_conn *conn = ep->fast.sole_with_replies;
    if (RNL_UNLIKELY(ep->fast.open != RNL_EP_OPEN) ||
        RNL_UNLIKELY(ep->fast.busy | (uint64_t)(uintptr_t)ep->fast.open_short))
        return rnl_stream_poll_general(ep, max, NULL, 0, RNL_FOUND_UNKNOWN);
    return RNL_LIKELY(conn) ? rnl_stream_poll_pairs_of(ep, max, conn)
                            : rnl_stream_poll_general(ep, max, NULL, 0, RNL_FOUND_NO_MATCH);
}

#endif
