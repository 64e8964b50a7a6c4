/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cell.c - taking in the cells of one lane of one peer: runs of messages that share cells, requests, rejected messages;
 * extent.c takes in what announces bytes of the bulk area. Everything a cell says is loaded once and checked here; a
 * cell that cannot be true makes its peer broken, and nothing of it is used. A message that cannot be taken in now (no
 * handler, no stack, no room for its reply) stays at the head of its lane and blocks the lane: only that peer waits. */
#include "stream/poll.h"

#include <stdio.h>

#include "base/bug.h"
#include "stream/barrier.h"
#include "stream/stream_internal.h"

/* Counts and drops a message whose handler never came, during the close. */
static int discard(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    s->ep->close.dropped++;
    s->ep->c->dropped_no_handler++;
    s->ep->close.drop_id = s->handler;
    return RNL_DONE;
}

const struct rnl_handler *rnl_stream_handler_of(struct rnl_endpoint *ep, unsigned id)
{
    static const struct rnl_handler discarding = {.stream = discard};
    if (RNL_LIKELY(id < ep->fast.handlers)) {
        const struct rnl_handler *h = &ep->fast.handler[id];
        if (RNL_LIKELY(h->stream || h->whole))
            return h;
    } else if (id >= RNL_LIBRARY_ID && ep->window_ops) {
        const struct rnl_handler *h = ep->window_ops->handler(ep, id);
        if (h)
            return h;
    }
    return ep->close.discard ? &discarding : NULL;
}

/* Records why a message waits for memory, to report that to the program once: the wait may be long. */
static void note_starved(struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    ep->c->no_memory++;
    snprintf(ep->credit.starved_text, sizeof ep->credit.starved_text, "a message from rank %u waits for memory: %.140s",
             conn->rank, rnl_last_error()->text);
    ep->credit.starved = 1;
    ep->credit.starved_status = RNL_ERR_NO_MEMORY;
    rnl_ep_set_pending(ep);
}

/* What lacks memory for as long as a peer may be silent is given up with the peer, or both would wait for ever. */
static void starve(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane)
{
    uint64_t now = ep->env->ops->now_ns(ep->env);
    if (conn->starved_ns[lane] == 0) {
        conn->starved_ns[lane] = now;
        note_starved(ep, conn);
    } else if (now - conn->starved_ns[lane] >= ep->silence_ns && !conn->self)
        rnl_ep_starved(ep, conn);
}

unsigned rnl_stream_block(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, enum rnl_blocked why)
{
    uint64_t at = lane == RNL_LANE_BULK ? conn->bulk->seen + 1 : conn->channel.rx[lane].pos + 1;
    conn->blocked[lane] = (uint8_t)why;
    ep->credit.starved_before |= why == RNL_BLOCKED_MEMORY;
    rnl_ep_set_sole(ep);
    if (conn->blocked_at[lane] != at) { /* each message is counted once, however often it is looked at */
        conn->blocked_at[lane] = at;
        if (why == RNL_BLOCKED_HANDLER)
            ep->c->no_handler++;
        else if (why == RNL_BLOCKED_STACK)
            ep->c->no_stack++;
        conn->starved_ns[lane] = 0;
    }
    if (why == RNL_BLOCKED_MEMORY)
        starve(ep, conn, lane);
    return 0;
}

unsigned rnl_stream_no_handler(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, unsigned id)
{
    if (RNL_UNLIKELY(rnl_turn_is_threads(ep)))
        return rnl_stream_leave_head(ep, conn, lane);
    ep->c->missing_handler = 1 + id;
    ep->c->missing_handler_rank = 1 + conn->rank;
    return rnl_stream_block(ep, conn, lane, RNL_BLOCKED_HANDLER);
}

/* Runs the handler of a message that lies in one cell. */
static int run_record(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h,
                      const unsigned char *at, unsigned n)
{
    if (h->stream)
        return rnl_stream_run(ep, s, h);
    unsigned char copy[RNL_CELL_PAYLOAD] __attribute__((aligned(16)));
    rnl_copy_short(copy, at, n);
    return rnl_stream_run_whole(ep, s, h, copy, n);
}

/* ---- cells of records ---- */

/* These bits are all clear only in a cell of records that acknowledges lane 0. */
#define NOT_PLAIN ((rnl_header)31 << 43 | (rnl_header)3 << 32)

bool rnl_stream_expect(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h)
{
    static const unsigned char nothing[1];
    struct rnl_stream *s = rnl_stream_in(conn, lane);
    unsigned id = RNL_HEADER_HANDLER(h), len = RNL_HEADER_LEN(h);
    rnl_stream_setup(s, nothing, 0, id, 0);
    s->state = RNL_STREAM_FREE;
    if (h & NOT_PLAIN || len > RNL_CELL_PAYLOAD || id >= ep->fast.handlers ||
        (!ep->fast.handler[id].stream && !ep->fast.handler[id].whole))
        return false;
    s->h = ep->fast.handler[id];
    s->record_bytes = len;
    s->ready = (uint8_t)s->h.kind;
    rnl_rx_expect(&conn->channel.rx[lane], h);
    return true;
}

/* Takes in records up to the n-th of the cell. Returns 0 to stop taking from this lane. */
RNL_INLINE bool deliver_run(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h, unsigned n,
                            struct rnl_poll_ctx *t)
{
    struct rnl_rx *r = &conn->channel.rx[lane];
    struct rnl_stream *s = rnl_stream_in(conn, lane);
    unsigned len = RNL_HEADER_LEN(h), id = RNL_HEADER_HANDLER(h),
             first = RNL_BUG(stream_run_from_its_start) ? 0 : rnl_rx_first_unread(r, h), i = first;
    uint64_t bytes = t->bytes;
    if (RNL_UNLIKELY(n * len > RNL_CELL_PAYLOAD || s->state != RNL_STREAM_FREE)) {
        rnl_ep_broken(ep, conn, "records longer than their cell, or inside another message");
        return false;
    }
    const unsigned char *at = rnl_rx_payload(r, h) + i * len;
    const struct rnl_handler *entry =
        rnl_stream_handler_of(ep, id); /* an entry may be replaced meanwhile, never emptied */
    if (RNL_UNLIKELY(!entry)) {
        rnl_stream_no_handler(ep, conn, lane, id);
        return false;
    }
    uint32_t before = rnl_ep_handler_begins(ep, lane);
    if (RNL_UNLIKELY(!rnl_stream_is_ready(s, r, h)))
        (void)rnl_stream_expect(ep, conn, lane, h);
    /* A record counts as read before its handler runs, so that what the handler sends acknowledges it. */
    if (rnl_rx_begun(r, h))
        rnl_rx_enter(r, 1);
    else
        r->pos++;
    for (;;) {
        int ending;
        i++;
        if (RNL_LIKELY(entry->stream)) {
            rnl_stream_setup_record(s, at, len);
            RNL_NO_EXCEPTION();
            ending = entry->stream(s, conn->rank, entry->ctx);
        } else {
            unsigned char copy[RNL_CELL_PAYLOAD] __attribute__((aligned(16)));
            rnl_copy_short(copy, at, len);
            RNL_NO_EXCEPTION();
            ending = entry->whole(copy, len, conn->rank, entry->ctx) == RNL_QUIT ? RNL_QUIT : RNL_DONE;
        }
        at += len;
        bytes += len;
        if (RNL_UNLIKELY(ending != RNL_DONE) && rnl_stream_ended(ep, s, ending)) {
            t->quit = 1;
            break;
        }
        if (i == n || bytes >= t->max)
            break;
        r->pos++;
    }
    rnl_ep_handler_ends(ep, lane, before);
    s->state = RNL_STREAM_FREE;
    if (rnl_ep_forked(ep)) {
        t->quit = 1;
        return false;
    }
    rnl_stream_handled(ep, lane, i - first);
    ep->c->bytes_received += (uint64_t)(i - first) * len;
    t->work_done += i - first;
    t->bytes = bytes;
    if (i == RNL_HEADER_N(h)) {
        r->seen = h;
        if (rnl_header_full(h))
            rnl_rx_leave(r);
    }
    return !t->quit && bytes < t->max;
}

int rnl_stream_reply_ready(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, uint32_t reply_max)
{
    if (!reply_max || RNL_BUG(stream_reply_room_unchecked))
        return 1;
    if (reply_max > RNL_REPLY_MAX || lane != 0)
        return rnl_ep_broken(ep, conn, "a reply longer than the limit, or a request on the reply lane");
    int fits = rnl_stream_reply_fits(conn, reply_max);
    if (fits == RNL_RING_BROKEN)
        return rnl_ep_broken(ep, conn, "a position past what was written");
    if (fits < 0)
        return (int)rnl_stream_block(ep, conn, lane, RNL_BLOCKED_MEMORY);
    if (!fits) {
        conn->blocked_reply = reply_max;
        rnl_stream_block(ep, conn, lane, RNL_BLOCKED_REPLY);
    }
    return fits;
}

static unsigned take_request(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h,
                             struct rnl_poll_ctx *t)
{
    struct rnl_rx *r = &conn->channel.rx[lane];
    struct rnl_stream *s = rnl_stream_in(conn, lane);
    const unsigned char *at = rnl_rx_payload(r, h);
    unsigned len = RNL_HEADER_LEN(h), id = RNL_HEADER_HANDLER(h);
    struct rnl_request_record record;
    if (len < sizeof record || len > RNL_CELL_PAYLOAD || RNL_HEADER_N(h) != 1 || s->state != RNL_STREAM_FREE) {
        rnl_ep_broken(ep, conn, "a malformed request");
        return 1;
    }
    rnl_rx_load(&record, at, sizeof record);
    const struct rnl_handler *entry = rnl_stream_handler_of(ep, id);
    if (!entry)
        return rnl_stream_no_handler(ep, conn, lane, id);
    int credit_known =
        lane == 0 && record.reply_max <= RNL_REPLY_MAX && rnl_tx_has_credit(&conn->channel.tx[1], record.reply_max);
    int ready = RNL_LIKELY(credit_known) ? 1 : rnl_stream_reply_ready(ep, conn, lane, record.reply_max);
    if (RNL_UNLIKELY(ready <= 0))
        return ready < 0;
    rnl_rx_read(r, h, 1);
    rnl_stream_setup(s, at + sizeof record, len - sizeof record, id, record.reply_max);
    t->bytes += len - sizeof record;
    ep->c->bytes_received += len - sizeof record;
    t->quit |= run_record(ep, s, entry, s->at, len - (unsigned)sizeof record);
    if (rnl_ep_forked(ep))
        return 1;
    rnl_rx_leave(&conn->channel.rx[lane]);
    return 1;
}

unsigned rnl_stream_leave_head(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane)
{
    conn->blocked[lane] = RNL_BLOCKED_HANDLER;
    ep->turn.heads = 1;
    rnl_ep_set_sole(ep);
    return 0;
}

/* Records that a peer threw a message away, for a program that has no function to be told by. */
static void note_too_long(struct rnl_endpoint *ep, const struct rnl_conn *conn, unsigned id)
{
    snprintf(ep->credit.starved_text, sizeof ep->credit.starved_text,
             "rank %u threw away a message to its handler %u, which takes whole messages, of %u bytes at most: send "
             "less, or have it take streams",
             conn->rank, id, (unsigned)RNL_WHOLE_MAX);
    ep->credit.starved = 1;
    ep->credit.starved_status = RNL_ERR_TOO_LONG;
    rnl_ep_set_pending(ep);
}

static unsigned take_rejected(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h)
{
    struct rnl_rx *r = &conn->channel.rx[lane];
    unsigned len = RNL_HEADER_LEN(h);
    struct rnl_rejected_record rejected;
    unsigned char copy[RNL_CELL_PAYLOAD];
    if (lane != 1 || len < sizeof rejected || len > RNL_CELL_PAYLOAD || RNL_HEADER_N(h) != 1) {
        rnl_ep_broken(ep, conn, "a malformed rejection");
        return 1;
    }
    rnl_rx_load(copy, rnl_rx_payload(r, h), sizeof copy);
    memcpy(&rejected, copy, sizeof rejected);
    if (rejected.reason > RNL_REASON_TOO_LONG || rejected.bytes != len - sizeof rejected) {
        rnl_ep_broken(ep, conn, "a malformed rejection");
        return 1;
    }
    if (ep->hooks.rejected && rnl_turn_is_threads(ep))
        return rnl_stream_leave_head(ep, conn, lane);
    ep->c->refused_received++;
    rnl_rx_read(r, h, 1);
    if (ep->hooks.rejected) {
        uint32_t before = rnl_ep_handler_begins(ep, lane);
        RNL_NO_EXCEPTION();
        ep->hooks.rejected(ep->hooks.rejected_arg, conn->rank, RNL_HEADER_HANDLER(h), rejected.reason,
                           copy + sizeof rejected, rejected.bytes);
        rnl_ep_handler_ends(ep, lane, before);
        if (rnl_ep_forked(ep))
            return 1;
    }
    if (rejected.reason == RNL_REASON_TOO_LONG && !ep->hooks.rejected)
        note_too_long(ep, conn, RNL_HEADER_HANDLER(h));
    rnl_rx_leave(&conn->channel.rx[lane]);
    return 1;
}

/* ---- one lane ---- */

static RNL_NOINLINE unsigned take_other(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h,
                                        struct rnl_poll_ctx *t)
{
    switch (RNL_HEADER_KIND(h)) {
    case RNL_CELL_REQUEST:
        return take_request(ep, conn, lane, h, t);
    case RNL_CELL_EXTENT:
        return rnl_stream_take_extent(ep, conn, lane, h, t);
    case RNL_CELL_PREFIX:
        return rnl_stream_take_prefix(ep, conn, lane, h, t);
    case RNL_CELL_REJECTED:
        return take_rejected(ep, conn, lane, h);
    case RNL_CELL_GROW:
        rnl_rx_read(&conn->channel.rx[lane], h, 1);
        rnl_rx_leave(&conn->channel.rx[lane]);
        if (lane != 0 || rnl_channel_grow_rx(&conn->channel) < 0) {
            rnl_ep_broken(ep, conn, "a second change of ring, or no memory for it");
        } else {
            rnl_ep_grant_more(ep, conn);
        }
        return 1;
    default:
        rnl_ep_broken(ep, conn, "a cell of unknown kind");
        return 1;
    }
}

enum { FAR = 2, AWAY = 6 /* pauses at most: as many as a sender of such cells needs to get so far ahead */ };

/* Pauses to let the sender get ahead. Right behind the sender each cell of several records would move three times:
 * here, back for its next record, and here again. The distance is generous, since equally fast processes would meet
 * again soon. */
static RNL_NOINLINE void wait_for_writer(const struct rnl_endpoint *ep, const struct rnl_conn *conn,
                                         const struct rnl_rx *r)
{
    if (conn->channel.is_remote | conn->self) /* nobody writes meanwhile */
        return;
    if (rnl_rx_ahead(r, RNL_CELLS_AHEAD))
        return;
    for (int k = 0; k < AWAY && !rnl_rx_ahead(r, FAR * RNL_CELLS_AHEAD); k++)
        rnl_ep_relax(ep);
}

void rnl_stream_take(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_header h,
                     struct rnl_poll_ctx *t)
{
    struct rnl_rx *r = &conn->channel.rx[lane];
    uint64_t begin = r->pos, sent = conn->self ? conn->channel.tx[lane].pos : UINT64_MAX;
    if (RNL_UNLIKELY(conn->blocked[lane])) {
        conn->blocked[lane] = RNL_BLOCKED_NOT;
        rnl_ep_set_sole(ep);
    }
    unsigned shared = 0; /* cells of three records or more */
    do {
        unsigned acklane = RNL_HEADER_ACKLANE(h);
        if (RNL_UNLIKELY(acklane >= RNL_LANES || rnl_tx_acked(&conn->channel.tx[acklane], r, RNL_HEADER_ACK(h)) < 0)) {
            rnl_ep_broken(ep, conn, "a reading position past what was written");
            return;
        }
        if (RNL_LIKELY(RNL_HEADER_KIND(h) == RNL_CELL_RECORDS)) {
            unsigned n = RNL_HEADER_N(h);
            uint64_t start = rnl_rx_begun(r, h) ? r->next_pos : r->pos & ~(uint64_t)7;
            if (RNL_UNLIKELY(start + n > sent))
                n = (unsigned)(sent - start);
            if (!deliver_run(ep, conn, lane, h, n, t))
                return;
            /* The cell moves while this one is handled. If it is not written yet, it has been here since the last round
             * of the ring. */
            __builtin_prefetch(rnl_cell_of(r->ring, r->wrap, r->next_pos + RNL_CELLS_AHEAD * 8));
            if (n > 2 && ++shared % RNL_CELLS_AHEAD == 0)
                wait_for_writer(ep, conn, r);
        } else {
            t->work_done += take_other(ep, conn, lane, h, t);
            if (rnl_ep_forked(ep))
                t->quit = 1;
            if (ep->work.quit) {
                ep->work.quit = 0;
                t->quit = 1;
            }
            if (t->quit | conn->blocked[lane] || t->bytes >= t->max)
                return;
        }
        if (RNL_UNLIKELY(r->wake_check_due)) {
            r->wake_check_due = 0;
            rnl_ep_advertised(ep, conn);
        }
        if (RNL_UNLIKELY(conn->broken))
            return;
        /* More than the ring holds, or than we had sent ourselves, cannot have been there at the call. */
        if (RNL_UNLIKELY(r->pos - begin >= RNL_CELLS(r->wrap) * 8 || r->pos >= sent))
            return;
        h = rnl_rx_peek(r);
    } while (h);
}
