/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lone.h - an extract that finds one short message, or nothing: the commonest two. The search is inlined into
 * rnl_extract and FM_extract and needs no frame; whatever it does not expect it leaves untouched to extract.c. */
#ifndef RNL_STREAM_LONE_H
#define RNL_STREAM_LONE_H

#include "stream/stream.h"

/* All of these are ends of an extract and return its result, bytes or a negative status. Any case: */
RNL_NOINLINE int64_t rnl_stream_extract_any(struct rnl_endpoint *ep, size_t max);
/* Nothing was found: */
RNL_NOINLINE int64_t rnl_stream_extract_none(struct rnl_endpoint *ep);
/* The first that was found is h, of a line of conn's with one item: */
RNL_NOINLINE int64_t rnl_stream_extract_one(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h);
/* ... one that was expected, and acknowledges `ack`: */
RNL_NOINLINE int64_t rnl_stream_extract_lone(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h,
                                             unsigned ack);
/* ... which was entered, and its sender is to be told: */
RNL_NOINLINE int64_t rnl_stream_extract_told(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn);
/* None like that was found in the likeliest place: */
RNL_NOINLINE int64_t rnl_stream_extract_search(struct rnl_endpoint *ep, size_t max);
/* One of conn was taken whose handler returned `ending`; it is to be counted, and may not be all: */
RNL_NOINLINE int64_t rnl_stream_extract_more(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, int ending);
/* ... it is counted, and returned RNL_DONE: */
RNL_NOINLINE int64_t rnl_stream_extract_again(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn);

/* As rnl_stream_extract_one, of a line that announces a message in one extent, and for those that follow it: medium.c.
 */
RNL_NOINLINE int64_t rnl_stream_extract_medium(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h);
/* The rest of an extract that has taken t from conn. */
int64_t rnl_stream_extract_rest(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_taking *t);

/* As rnl_stream_extract_first, where answers may come too: */
RNL_NOINLINE int64_t rnl_stream_extract_asked(struct rnl_endpoint *ep, size_t max);

/* The first that was found is h, of the answers of conn, or of its requests with room for an answer (h is the line's,
 * of which nothing was read): */
RNL_NOINLINE int64_t rnl_stream_extract_answer(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h);
RNL_NOINLINE int64_t rnl_stream_extract_ask(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h);

/* All that may be there to take is of conn, which is ep->alone: requests with room for an answer, and answers, before
 * anything else. */
RNL_NOINLINE int64_t rnl_stream_extract_alone(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn);

/* More than that answers may come from it. */
RNL_INLINE int rnl_stream_odd(const struct rnl_conn *conn, int asked)
{
    const struct rnl_conn lane1 = {.lane1_hot = 1};
    return conn->odd && (!asked || conn->odd != lane1.odd);
}

/* asked, a constant: are answers looked for? */
RNL_INLINE int64_t rnl_stream_search(struct rnl_endpoint *ep, size_t max, int asked)
{
    uint32_t count = ep->hot_count, i = ep->turn;
    for (uint32_t left = count; left > 0; left--, i = i + 1 == count ? 0 : i + 1) {
        struct rnl_conn *conn = ep->hot[i];
        const struct rnl_rx *r = &conn->pair.rx[0];
        rnl_head h = atomic_load_explicit(&r->next->head, memory_order_acquire);    /* A1 */
        rnl_head last = atomic_load_explicit(&r->last->head, memory_order_acquire); /* A1; after next: see peek */
        unsigned n = (uint16_t)((unsigned)h - (unsigned)r->next_pos);
        if (RNL_UNLIKELY(rnl_stream_odd(conn, asked)))
            return asked ? rnl_stream_extract_any(ep, max) : rnl_stream_extract_asked(ep, max);
        if (asked && conn->odd) {
            rnl_head answer = rnl_rx_peek(&conn->pair.rx[1]);
            if (answer)
                return rnl_stream_extract_answer(ep, max, conn, answer);
        }
        if (RNL_UNLIKELY(last != r->seen))
            return rnl_stream_extract_any(ep, max);
        if (n == 1)
            return rnl_stream_extract_one(ep, max, conn, h);
        if (RNL_UNLIKELY(n - 1 < RNL_ITEMS_MAX))
            return rnl_stream_extract_any(ep, max);
    }
    return rnl_stream_extract_none(ep);
}

/* ---- one message of the kind that came before ---- */

/* What is done otherwise, as tail calls: how these differ is what an interface makes of their results. */
struct rnl_stream_ways {
    int64_t (*lone)(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h, unsigned ack);
    int64_t (*told)(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn);
    int64_t (*any)(struct rnl_endpoint *ep, size_t max);
    int64_t (*search)(struct rnl_endpoint *ep, size_t max);
    int64_t (*more)(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, int ending);
    int64_t (*again)(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn);
    int two_fit; /* a line has room for two of those that are taken this way, at least */
};

/* The one item of the line that was entered last, which conn->in[0] is ready for; `call` calls its handler, and 0 is
 * RNL_DONE. told: the sender is to be looked after. All constants but the first three. */
RNL_INLINE int64_t rnl_stream_run_one(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn,
                                      int (*call)(struct rnl_stream *s, unsigned peer),
                                      const struct rnl_stream_ways *ways, int told)
{
    const struct rnl_rx *r = &conn->pair.rx[0];
    struct rnl_stream *s = &conn->in[0];
    ep->in_handler = 1;
    ep->most = max; /* this and ep are not kept in registers, which would have to be saved */
    rnl_stream_setup_item(s, r->last->payload, s->item);
    int ending = call(s, conn->rank);
    ep = s->ep;
    s->state = RNL_STREAM_FREE;
    ep->in_handler = 0;
    if (RNL_UNLIKELY(ending != RNL_DONE || ep->only != conn)) /* others are looked at, too; a forked child has none */
        return ways->more(ep, ep->most, conn, ending);
    unsigned len = s->item;
    ep->c->messages_received++;
    ep->c->bytes_received += len;
    ep->empties = 0;
    /* A burst shares lines: one more look at this one says whether it is one. */
    rnl_head last = atomic_load_explicit(&r->last->head, memory_order_acquire); /* A1 */
    if (RNL_UNLIKELY(last != r->seen || told || (!ways->two_fit && len > RNL_LINE_PAYLOAD / 2)))
        return ways->again(ep, ep->most, conn);
    return len;
}

/* h is the expected line's, and conn->in[0] is ready. */
RNL_INLINE int64_t rnl_stream_take_one(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h,
                                       unsigned ack, int (*call)(struct rnl_stream *s, unsigned peer),
                                       const struct rnl_stream_ways *ways)
{
    struct rnl_rx *r = &conn->pair.rx[0];
    if (RNL_UNLIKELY(rnl_tx_acked(&conn->pair.tx[0], r, ack) < 0))
        return ways->any(ep, max);
    r->seen = h;
    /* Before the handler: what it sends says that this message was read. */
    if (RNL_UNLIKELY(rnl_rx_step(r, 1) >= r->tell_pos))
        return ways->told(ep, max, conn);
    return rnl_stream_run_one(ep, max, conn, call, ways, 0);
}

/* Where one peer is polled it is looked at with nothing else done; news and the bell wait until nothing is there, or
 * room is given back (rnl_ep_told). */
RNL_INLINE int64_t rnl_stream_extract_first(struct rnl_endpoint *ep, size_t max, const struct rnl_stream_ways *ways)
{
    /* First `open`, which never changes where threads share the endpoint: the others then need its lock. */
    if (RNL_UNLIKELY(ep->open != RNL_EP_OPEN) || RNL_UNLIKELY(ep->busy | (uint64_t)(uintptr_t)ep->open_short))
        return ways->any(ep, max);
    struct rnl_conn *conn = ep->only;
    if (RNL_LIKELY(conn != NULL)) {
        const struct rnl_rx *r = &conn->pair.rx[0];
        rnl_head h = atomic_load_explicit(&r->next->head, memory_order_acquire);    /* A1 */
        rnl_head last = atomic_load_explicit(&r->last->head, memory_order_acquire); /* A1; after next: see peek */
        uint64_t ack = rnl_rx_expected(r, h);
        if (RNL_LIKELY(ack < RNL_NOT_EXPECTED && last == r->seen))
            return ways->lone(ep, max, conn, h, (unsigned)ack);
    }
    return ways->search(ep, max);
}

static const struct rnl_stream_ways rnl_stream_native = {
    .lone = rnl_stream_extract_lone,
    .told = rnl_stream_extract_told,
    .any = rnl_stream_extract_any,
    .search = rnl_stream_extract_search,
    .more = rnl_stream_extract_more,
    .again = rnl_stream_extract_again,
};

/* rnl_extract, inlined. */
RNL_INLINE int64_t rnl_stream_extract_quick(struct rnl_endpoint *ep, size_t max)
{
    return rnl_stream_extract_first(ep, max, &rnl_stream_native);
}

/* The same for an interface whose messages are requests and answers. */
RNL_INLINE int64_t rnl_stream_extract_asking(struct rnl_endpoint *ep, size_t max)
{
    struct rnl_conn *conn = ep->alone;
    if (RNL_UNLIKELY(ep->open != RNL_EP_OPEN) || RNL_UNLIKELY(ep->busy | (uint64_t)(uintptr_t)ep->open_short))
        return rnl_stream_extract_any(ep, max);
    return RNL_LIKELY(conn != NULL) ? rnl_stream_extract_alone(ep, max, conn) : rnl_stream_extract_search(ep, max);
}

#endif
