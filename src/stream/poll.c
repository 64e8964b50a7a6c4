/* SPDX-License-Identifier: BSD-3-Clause
 *
 * poll.c - polling for single messages: the instances of poll.h that are the library's own, and the general path that
 * they and the interfaces' instances fall back to. */
#include "stream/poll.h"

#include "stream/barrier.h"
#include "stream/eager.h"

/* ---- how handlers are called ---- */

RNL_INLINE int call_stream(struct rnl_stream *s, unsigned peer)
{
    RNL_NO_EXCEPTION();
    return s->h.stream(s, peer, s->h.ctx);
}

RNL_INLINE int call_whole(struct rnl_stream *s, unsigned peer)
{
    unsigned len = s->record_bytes;
    unsigned char copy[RNL_CELL_PAYLOAD] __attribute__((aligned(16)));
    rnl_copy_short(copy, s->at, len);
    RNL_NO_EXCEPTION();
    return s->h.whole(copy, len, peer, s->h.ctx) == RNL_QUIT ? RNL_QUIT : RNL_DONE;
}

static RNL_NOINLINE int call_any(struct rnl_stream *s, unsigned peer)
{
    return s->h.stream ? call_stream(s, peer) : call_whole(s, peer);
}

/* ---- after the handler ---- */

/* Ends a poll that has delivered the single message of conn's last cell of that lane. */
static RNL_NOINLINE int64_t after_single(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, unsigned lane,
                                         enum rnl_found found)
{
    struct rnl_rx *r = &conn->channel.rx[lane];
    struct rnl_stream *s = rnl_stream_in(conn, lane);
    struct rnl_poll_ctx t = {.max = max, .bytes = lane == 0 ? s->record_bytes : 0, .work_done = 1};
    if (found == RNL_FOUND_ENDED) {
        if (rnl_ep_forked(ep))
            return rnl_ep_enter_slow(ep);
        rnl_stream_handled(ep, lane, 1);
        ep->c->bytes_received += s->record_bytes;
        ep->fast.empty_polls = 0;
        if (lane == 0)
            t.quit = rnl_stream_ended(ep, s, s->ending);
        s->state = RNL_STREAM_FREE;
    }
    if (rnl_header_full(r->seen))
        rnl_rx_leave(r);
    rnl_stream_wake_sender(ep, conn, r);
    return rnl_stream_continue_extract(ep, conn, &t);
}

/* ---- the general path ---- */

/* Extracts where the fast path is closed. */
static RNL_NOINLINE int64_t extract_closed(struct rnl_endpoint *ep, size_t max)
{
    if (!rnl_ep_open_path(ep))
        return rnl_stream_extract_all(ep, max);
    int64_t bytes = rnl_extract(ep, max);
    rnl_ep_shut_path(ep);
    return bytes;
}

static RNL_NOINLINE int64_t search(struct rnl_endpoint *ep, size_t max);
static RNL_NOINLINE int64_t deliver_other(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h);
static RNL_NOINLINE int64_t give_credit(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn);

/* Where this is inlined, what was found is a constant, so that one tail call remains. */
RNL_INLINE int64_t general(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h,
                           enum rnl_found found)
{
    switch (found) {
    case RNL_FOUND_NO_MATCH:
        return search(ep, max);
    case RNL_FOUND_OTHER_KIND:
        return deliver_other(ep, max, conn, h);
    case RNL_FOUND_CREDIT_DUE:
        return give_credit(ep, max, conn);
    case RNL_FOUND_ENDED:
    case RNL_FOUND_MORE:
        return after_single(ep, max, conn, 0, found);
    default:
        return extract_closed(ep, max);
    }
}

/* ---- requests and replies ---- */

static RNL_NOINLINE int64_t poll_lane(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, unsigned lane,
                                      rnl_header h)
{
    struct rnl_poll_ctx t = {.max = max}, replies = {.max = UINT64_MAX};
    rnl_stream_take(ep, conn, lane, h, lane ? &replies : &t);
    if (rnl_ep_forked(ep))
        return rnl_ep_enter_slow(ep);
    rnl_stream_wake_sender(ep, conn, &conn->channel.rx[lane]);
    ep->fast.empty_polls = 0;
    if (!t.quit && t.bytes < t.max && rnl_stream_nothing_pending(ep, conn))
        return (int64_t)t.bytes;
    return rnl_stream_continue_extract(ep, conn, &t);
}

static RNL_NOINLINE int64_t reply_general(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h,
                                          enum rnl_found found)
{
    (void)h;
    return after_single(ep, max, conn, 1, found);
}

/* Polls where h is the header of conn's replies. A reply for a handler of streams is delivered here if it is one
 * record, in a cell of its own or appended. */
static RNL_NOINLINE int64_t poll_reply(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h)
{
    struct rnl_rx *r = &conn->channel.rx[1];
    struct rnl_stream *s = rnl_stream_in(conn, 1);
    unsigned len = RNL_HEADER_LEN(h), n = RNL_HEADER_N(h), begun = rnl_rx_begun(r, h), from = begun ? 0 : r->pos & 7;
    if (RNL_UNLIKELY(!rnl_stream_is_ready(s, r, h)) &&
        (s->state != RNL_STREAM_FREE || conn->self || !rnl_stream_expect(ep, conn, 1, h)))
        return poll_lane(ep, max, conn, 1, h);
    if (RNL_UNLIKELY(!s->h.stream || n != from + 1 || n * len > RNL_CELL_PAYLOAD ||
                     rnl_tx_acked(&conn->channel.tx[0], r, RNL_HEADER_ACK(h)) < 0))
        return poll_lane(ep, max, conn, 1, h);
    const unsigned char *at = (begun ? r->next : r->last)->payload + from * len;
    if (begun)
        rnl_rx_enter(r, 1);
    else
        r->pos++;
    r->seen = h;
    return rnl_stream_deliver_entered(ep, max, conn, at, RNL_KIND_REPLY, call_stream, reply_general, false);
}

/* Sets in[0] of conn up for requests like h. Returns true if they are for a handler of streams, and so expected from
 * now on. */
static RNL_NOINLINE bool expect_request(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_header h)
{
    static const unsigned char nothing[1];
    struct rnl_stream *s = rnl_stream_in(conn, 0);
    unsigned len = RNL_HEADER_LEN(h), id = RNL_HEADER_HANDLER(h);
    if (RNL_HEADER_ACKLANE(h) != 0 || len < sizeof(struct rnl_request_record) || len > RNL_CELL_PAYLOAD ||
        s->state != RNL_STREAM_FREE || id >= ep->fast.handlers || !ep->fast.handler[id].stream)
        return false;
    rnl_stream_setup(s, nothing, 0, id, 0);
    s->state = RNL_STREAM_FREE;
    s->h = ep->fast.handler[id];
    s->record_bytes = len - (unsigned)sizeof(struct rnl_request_record);
    s->ready = RNL_KIND_REQUEST;
    rnl_rx_expect(&conn->channel.rx[0], h);
    return true;
}

/* Polls where h is the next cell of conn, and a request. One for a handler of streams is delivered here, if room for
 * its reply is known without a look at the peer's memory. */
static RNL_NOINLINE int64_t poll_request(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h)
{
    struct rnl_rx *r = &conn->channel.rx[0];
    struct rnl_stream *s = rnl_stream_in(conn, 0);
    const unsigned char *at = r->next->payload;
    struct rnl_request_record record;
    if (RNL_UNLIKELY(rnl_rx_begun(r, h) != 1 || (!rnl_stream_is_ready(s, r, h) && !expect_request(ep, conn, h))))
        return poll_lane(ep, max, conn, 0, h);
    rnl_rx_load(&record, at, sizeof record);
    if (RNL_UNLIKELY(record.reply_max > RNL_REPLY_MAX || !rnl_tx_has_credit(&conn->channel.tx[1], record.reply_max) ||
                     rnl_tx_acked(&conn->channel.tx[0], r, RNL_HEADER_ACK(h)) < 0))
        return poll_lane(ep, max, conn, 0, h);
    rnl_rx_enter(r, 1);
    r->seen = h;
    s->replied = 0;
    s->reply_max = record.reply_max;
    return rnl_stream_deliver_entered(ep, max, conn, at + sizeof record, RNL_KIND_REQUEST, call_stream, general, false);
}

/* ---- eager messages ---- */

/* The kind, length and acknowledged lane of the only header that such a message may have. */
static const uint16_t eager_key = (uint16_t)(RNL_CELL_EXTENT << 11 | sizeof(struct rnl_extent) << 5);
static_assert((rnl_header)(uint16_t)(RNL_CELL_EXTENT << 11 | sizeof(struct rnl_extent) << 5) << 32 ==
                  ((rnl_header)sizeof(struct rnl_extent) << 37 | (rnl_header)RNL_CELL_EXTENT << 43),
              "eager_key is part of a key");

/* Returns the header of the cell after h, if it may be such a message, too, else 0. */
static inline rnl_header another(const struct rnl_rx *r)
{
    rnl_header h = atomic_load_explicit(&r->next->header, memory_order_acquire); /* A1 */
    return rnl_rx_begun(r, h) == 1 ? h : 0;
}

/* Ends a poll that has taken t from lane 0 of conn. */
static int64_t poll_rest(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_poll_ctx *t)
{
    struct rnl_rx *r = &conn->channel.rx[0];
    if (RNL_UNLIKELY(r->bulk_read != r->advertised_bulk) && !conn->exceptional)
        rnl_rx_advertise(r);
    rnl_stream_wake_sender(ep, conn, r);
    if (RNL_LIKELY(ep->fast.polled == 1 && !ep->fast.busy && !t->quit && t->bytes < t->max && !conn->exceptional &&
                   !rnl_rx_peek(r)))
        return (int64_t)t->bytes;
    return rnl_stream_continue_extract(ep, conn, t);
}

/* Polls where the first message, h, is an extent of conn; takes in the messages that follow it, too. */
static RNL_NOINLINE int64_t poll_eager(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h)
{
    struct rnl_rx *r = &conn->channel.rx[0];
    struct rnl_poll_ctx t = {.max = max};
    uint64_t begin = r->pos;
    struct rnl_extent e;
    while (h && (uint16_t)(h >> 32) == eager_key) {
        if (RNL_UNLIKELY(rnl_tx_acked(&conn->channel.tx[0], r, RNL_HEADER_ACK(h)) < 0))
            break;
        rnl_rx_load(&e, r->next->payload, sizeof e);
        if (RNL_UNLIKELY(rnl_rx_extent(r, &e) < 0) || !rnl_stream_take_eager(ep, conn, h, &e, &t))
            break;
        if (RNL_UNLIKELY(rnl_ep_forked(ep)))
            return rnl_ep_enter_slow(ep);
        t.work_done++;
        if (RNL_UNLIKELY(r->wake_check_due)) { /* the sender may sleep for want of room */
            r->wake_check_due = 0;
            rnl_ep_advertised(ep, conn);
        }
        if (RNL_UNLIKELY(t.quit || t.bytes >= max || conn->exceptional || r->pos - begin >= RNL_CELLS(r->wrap) * 8))
            break;
        if (t.work_done % RNL_CELLS_AHEAD == 0 && !conn->channel.is_remote &&
            !rnl_rx_ahead(r, RNL_CELLS_AHEAD)) /* or each cell would move several times: see cell.c */
            rnl_ep_relax(ep);
        h = another(r);
    }
    if (RNL_UNLIKELY(!t.work_done))
        return rnl_stream_extract_all(ep, max);
    ep->fast.empty_polls = 0;
    return poll_rest(ep, conn, &t);
}

/* ---- what the general path finds ---- */

/* Advertises the credit that is due, before the handler of the message runs. */
static RNL_NOINLINE int64_t give_credit(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn)
{
    struct rnl_rx *r = &conn->channel.rx[0];
    rnl_rx_advertise(r);
    return rnl_stream_deliver_entered(ep, max, conn, r->last->payload, RNL_KIND_STREAM, call_any, general, true);
}

/* Delivers the expected next cell of conn, which may be taken. It is a function of its own, so that rnl_extract needs
 * no frame. */
static RNL_NOINLINE int64_t deliver_stream(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h,
                                           unsigned ack)
{
    return rnl_stream_deliver_single(ep, max, conn, h, ack, RNL_KIND_STREAM, call_stream, general);
}

static RNL_NOINLINE int64_t poll_cell(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h);

/* Delivers the same for a handler of another kind. RNL_KIND_NONE: the stream is not set up for it after all. */
static int64_t deliver_other(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h)
{
    const struct rnl_stream *s = rnl_stream_in(conn, 0);
    if (RNL_LIKELY(s->ready == RNL_KIND_WHOLE))
        return rnl_stream_deliver_single(ep, max, conn, h, RNL_HEADER_ACK(h), RNL_KIND_WHOLE, call_whole, general);
    if (s->ready == RNL_KIND_REQUEST)
        return poll_request(ep, max, conn, h);
    if (RNL_UNLIKELY(s->ready == RNL_KIND_NONE))
        return poll_cell(ep, max, conn, h);
    return deliver_stream(ep, max, conn, h, RNL_HEADER_ACK(h));
}

/* Delivers the next cell of conn, which holds one record. */
static int64_t poll_cell(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h)
{
    struct rnl_stream *s = rnl_stream_in(conn, 0);
    if (RNL_UNLIKELY(max == 0))
        return rnl_stream_extract_all(ep, max);
    if (RNL_LIKELY(rnl_rx_expected(&conn->channel.rx[0], h) < RNL_NOT_EXPECTED && s->ready))
        return deliver_other(ep, max, conn, h);
    if (RNL_HEADER_KIND(h) == RNL_CELL_EXTENT && !conn->self)
        return poll_eager(ep, max, conn, h);
    if (RNL_HEADER_KIND(h) == RNL_CELL_REQUEST && !conn->self)
        return poll_request(ep, max, conn, h);
    if (s->state != RNL_STREAM_FREE || !rnl_stream_expect(ep, conn, 0, h))
        return rnl_stream_extract_all(ep, max);
    return deliver_other(ep, max, conn, h);
}

/* Returns true if anything is exceptional about conn except that replies may come from it. */
RNL_INLINE bool is_exceptional(const struct rnl_conn *conn)
{
    const struct rnl_conn replies = {.lane1_polled = 1};
    return conn->exceptional && conn->exceptional != replies.exceptional;
}

static RNL_NOINLINE int64_t search_replies(struct rnl_endpoint *ep, size_t max);

/* Looks at all polled connections in turn for the first that has something. `replies` is a constant: looking for
 * replies, too, takes more registers. */
RNL_INLINE int64_t search_for(struct rnl_endpoint *ep, size_t max, const bool replies)
{
    uint32_t count = ep->fast.polled, i = ep->fast.next_polled;
    for (uint32_t left = count; left > 0; left--, i = i + 1 == count ? 0 : i + 1) {
        struct rnl_conn *conn = ep->fast.conns[i];
        const struct rnl_rx *r = &conn->channel.rx[0];
        rnl_header h = atomic_load_explicit(&r->next->header, memory_order_acquire); /* A1 */
        rnl_header last =
            atomic_load_explicit(&r->last->header, memory_order_acquire); /* A1; after next: rnl_rx_peek */
        unsigned n = (uint16_t)((unsigned)h - (unsigned)r->next_pos);
        if (RNL_UNLIKELY(conn->exceptional)) {
            if (!replies)
                return search_replies(ep, max);
            if (is_exceptional(conn))
                return rnl_stream_extract_all(ep, max);
            rnl_header reply = rnl_rx_peek(&conn->channel.rx[1]);
            if (reply)
                return poll_reply(ep, max, conn, reply);
        }
        if (RNL_UNLIKELY(last != r->seen))
            return rnl_stream_extract_all(ep, max);
        if (n == 1)
            return poll_cell(ep, max, conn, h);
        if (RNL_UNLIKELY(n - 1 < RNL_RECORDS_MAX))
            return rnl_stream_extract_all(ep, max);
    }
    return rnl_stream_extract_empty(ep);
}

static int64_t search_replies(struct rnl_endpoint *ep, size_t max)
{
    return search_for(ep, max, true);
}

static int64_t search(struct rnl_endpoint *ep, size_t max)
{
    if (RNL_UNLIKELY(atomic_load_explicit(ep->fast.event_seq, memory_order_relaxed) != ep->fast.event_seq_seen ||
                     rnl_ep_bell_rang(ep)))
        return rnl_stream_extract_all(ep, max);
    return search_for(ep, max, false);
}

int64_t rnl_stream_poll_general(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h,
                                enum rnl_found found)
{
    return general(ep, max, conn, h, found);
}

/* ---- the instances ---- */

int64_t rnl_extract(rnl_endpoint *ep, size_t max_bytes)
{
    return rnl_stream_poll_fast(ep, max_bytes, RNL_KIND_STREAM, deliver_stream, general);
}

int64_t rnl_stream_poll_pairs_of(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn)
{
    const struct rnl_rx *r = &conn->channel.rx[0];
    if (conn->lane1_polled) {
        rnl_header reply = rnl_rx_peek(&conn->channel.rx[1]);
        if (reply)
            return poll_reply(ep, max, conn, reply);
    }
    rnl_header h = atomic_load_explicit(&r->next->header, memory_order_acquire);    /* A1 */
    rnl_header last = atomic_load_explicit(&r->last->header, memory_order_acquire); /* A1; after next: rnl_rx_peek */
    unsigned n = rnl_rx_begun(r, h);
    if (RNL_UNLIKELY(last != r->seen))
        return rnl_stream_extract_all(ep, max);
    if (RNL_LIKELY(n == 1))
        return RNL_HEADER_KIND(h) == RNL_CELL_REQUEST ? poll_request(ep, max, conn, h) : poll_cell(ep, max, conn, h);
    if (RNL_UNLIKELY(n || atomic_load_explicit(ep->fast.event_seq, memory_order_relaxed) != ep->fast.event_seq_seen ||
                     rnl_ep_bell_rang(ep)))
        return rnl_stream_extract_all(ep, max);
    return rnl_stream_extract_empty(ep);
}
