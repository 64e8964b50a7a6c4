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
RNL_NOINLINE int64_t rnl_stream_extract_lone(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h);

/* As rnl_stream_extract_lone, of a line that announces a message in one extent, and for those that follow it: medium.c.
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
            return rnl_stream_extract_lone(ep, max, conn, h);
        if (RNL_UNLIKELY(n - 1 < RNL_ITEMS_MAX))
            return rnl_stream_extract_any(ep, max);
    }
    return rnl_stream_extract_none(ep);
}

RNL_INLINE int64_t rnl_stream_extract_first(struct rnl_endpoint *ep, size_t max)
{
    if (RNL_UNLIKELY(!ep->reach || ep->busy || ep->open_short ||
                     atomic_load_explicit(ep->news, memory_order_relaxed) != ep->news_seen || rnl_ep_rung(ep)))
        return rnl_stream_extract_any(ep, max);
    return rnl_stream_search(ep, max, 0);
}

#endif
