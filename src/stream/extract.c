/* SPDX-License-Identifier: BSD-3-Clause
 *
 * extract.c - the progress calls: extract, wait, fd; and what a blocked send calls. */
#include "stream/lone.h"

#include "endpoint/remote.h"

enum {
    MANY = 12,  /* messages that came at once: perhaps there are more, whose answers go with theirs in one datagram, */
    ENOUGH = 64 /* ... unless there are so many: the other side is to have something to do, too */
};

/* Room was given back: the sender may sleep for want of it. */
RNL_INLINE void look_after(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_rx *r)
{
    if (RNL_UNLIKELY(r->told)) {
        r->told = 0;
        rnl_ep_told(ep, conn);
    }
}

static RNL_NOINLINE void take_answers(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_taking *t)
{
    struct rnl_rx *r = &conn->pair.rx[1];
    struct rnl_taking answers = {.max = UINT64_MAX};
    rnl_head h = rnl_rx_peek(r);
    if (h)
        rnl_stream_take(ep, conn, 1, h, &answers);
    if (rnl_ep_forked(ep)) {
        t->quit = 1;
        return;
    }
    if (RNL_UNLIKELY(answers.things >= MANY) && conn->pair.away && rnl_rx_untold(r))
        rnl_rx_tell(r); /* it goes with what is asked next: then all of the ring is free for the answers */
    look_after(ep, conn, r);
    t->things += answers.things;
}

/* For who looks at the counters of a program that waits. */
static void count_all(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->live; i++)
        for (unsigned lane = 0; lane < 2; lane++)
            rnl_stream_count(ep, &ep->hot[i]->pair.tx[lane]);
}

/* What was published to it is on its way, and now known to the counters. */
static void settle(struct rnl_endpoint *ep)
{
    if (ep->unsettled) {
        rnl_stream_count(ep, &ep->unsettled->pair.tx[0]);
        rnl_ep_settle(ep);
    }
}

/* `left` peers, beginning with hot[i]. */
static void extract_from(struct rnl_endpoint *ep, uint32_t i, uint32_t left, struct rnl_taking *t)
{
    uint32_t count = ep->hot_count; /* those that handlers connect are looked at next time */
    for (; left > 0; left--, i = i + 1 == count ? 0 : i + 1) {
        struct rnl_conn *conn = ep->hot[i];
        struct rnl_rx *r = &conn->pair.rx[0];
        if (RNL_UNLIKELY(conn->broken))
            continue;
        if (RNL_UNLIKELY(conn->lane1_hot)) {
            take_answers(ep, conn, t);
            if (t->quit)
                break;
        }
        if (RNL_UNLIKELY(t->bytes >= t->max))
            continue; /* answers of the others still come in */
        rnl_head h = rnl_rx_peek(r);
        if (h) {
            rnl_stream_take(ep, conn, 0, h, t);
            if (RNL_UNLIKELY(t->quit || t->bytes >= t->max)) {
                ep->turn = i + 1 < count ? i + 1 : 0; /* the next call begins with the next peer */
                if (t->quit) {
                    if (!rnl_ep_forked(ep))
                        look_after(ep, conn, r);
                    break;
                }
            }
        }
        if (RNL_UNLIKELY(r->bulk_read != r->told_bulk))
            rnl_rx_tell(r); /* who must reserve much at once needs to know that all of it is free */
        look_after(ep, conn, r);
    }
    if (RNL_UNLIKELY(ep->posts | ep->dying | ep->gathering | ep->aborting)) {
        if (ep->gathering)
            t->things += rnl_stream_stacks(ep, t);
        if (ep->aborting)
            t->things += rnl_stream_aborts(ep);
        if (ep->posts)
            t->things += rnl_stream_posts(ep);
        if (ep->dying)
            rnl_ep_bury_dying(ep);
    }
    if (RNL_UNLIKELY(ep->turn >= ep->hot_count))
        ep->turn = 0;
    if (RNL_UNLIKELY(ep->calls))
        t->things += rnl_stream_calls(ep);
}

/* Short messages come in runs; what has come meanwhile is taken in before anything is sent. */
static RNL_NOINLINE void extract_more(struct rnl_endpoint *ep, struct rnl_taking *t)
{
    unsigned before = 0;
    while (t->things >= before + MANY && t->things < ENOUGH && !t->quit && t->bytes < t->max && !rnl_ep_forked(ep)) {
        before = t->things;
        rnl_remote_receive(ep);
        rnl_ep_heard(ep);
        extract_from(ep, ep->turn, ep->hot_count, t);
    }
}

int64_t rnl_stream_extract(struct rnl_endpoint *ep, uint64_t max, unsigned *things)
{
    struct rnl_taking t = {.max = max};
    unsigned deaths = ep->deaths_seen;
    if (RNL_UNLIKELY(ep->open_short != NULL || ep->open_streams))
        rnl_stream_flush(ep);
    if (RNL_UNLIKELY(ep->due))
        rnl_ep_round(ep, ep->env->ops->now_ns(ep->env));
    rnl_ep_news(ep);
    int network = RNL_UNLIKELY(ep->remote != NULL) && rnl_remote_time(ep);
    if (network)
        rnl_remote_receive(ep);
    rnl_ep_heard(ep);
    extract_from(ep, ep->turn, ep->hot_count, &t);
    if (RNL_UNLIKELY(network) && t.things >= MANY)
        extract_more(ep, &t);
    *things = t.things + (ep->deaths_seen - deaths);
    if (RNL_UNLIKELY(ep->net_due | network) && !rnl_ep_forked(ep)) {
        if (ep->hot_count > RNL_HOT_ALWAYS)
            rnl_ep_quieten(ep);
        if (*things)
            rnl_remote_leave(ep);
        else if (network)
            rnl_remote_send_after(ep);
        else
            rnl_remote_send(ep);
        *things = t.things + (ep->deaths_seen - deaths);
    }
    if (*things == 0)
        settle(ep);
    return (int64_t)t.bytes;
}

unsigned rnl_stream_progress(struct rnl_endpoint *ep)
{
    unsigned things;
    (void)rnl_stream_extract(ep, ep->flags & RNL_NO_RUN_IN_SEND ? 0 : UINT64_MAX, &things);
    return things;
}

static int may_progress(struct rnl_endpoint *ep)
{
    if (ep->in_handler)
        return rnl_fail(RNL_ERR_CONTEXT, "extract and wait do not belong inside a handler, or a function that the "
                                         "library calls: return from it first");
    return 0;
}

/* A message waits for memory, and will until there is some: what the program must know. */
static RNL_NOINLINE int tell_trouble(struct rnl_endpoint *ep)
{
    ep->troubled = 0;
    rnl_ep_chores(ep);
    return rnl_fail(RNL_ERR_NO_MEMORY, "%s", ep->trouble);
}

int64_t rnl_stream_extract_none(struct rnl_endpoint *ep)
{
    settle(ep);
    if (RNL_UNLIKELY(ep->job_gone))
        return rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone");
    int64_t none = rnl_ep_empty(ep);
    if (RNL_UNLIKELY((ep->empties | ep->untidied) == 0)) /* it has tidied: time enough */
        count_all(ep);
    return none;
}

static int64_t go_on(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_taking *t)
{
    uint32_t i = conn->hot_index, count = ep->hot_count, turn = ep->turn;
    if (t->quit || t->bytes >= t->max)
        ep->turn = i + 1 < count ? i + 1 : 0;
    else
        extract_from(ep, i, i < turn ? turn - i : count - i + turn, t);
    return rnl_ep_forked(ep) ? rnl_ep_enter_slow(ep) : (int64_t)t->bytes;
}

/* All that could be there has been looked at. */
static int only(const struct rnl_endpoint *ep, const struct rnl_conn *conn, const struct rnl_taking *t)
{
    return ep->hot_count == 1 && !ep->busy && !t->quit && t->bytes < t->max && !rnl_stream_odd(conn, 1) &&
           !rnl_rx_peek(&conn->pair.rx[0]) && !(conn->odd && rnl_rx_peek(&conn->pair.rx[1]));
}

static RNL_NOINLINE int64_t extract_lane(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, unsigned lane,
                                         rnl_head h)
{
    struct rnl_taking t = {.max = max}, answers = {.max = UINT64_MAX};
    rnl_stream_take(ep, conn, lane, h, lane ? &answers : &t);
    if (rnl_ep_forked(ep))
        return rnl_ep_enter_slow(ep);
    look_after(ep, conn, &conn->pair.rx[lane]);
    ep->empties = 0;
    return only(ep, conn, &t) ? (int64_t)t.bytes : go_on(ep, conn, &t);
}

/* After a handler that was run here. */
static RNL_NOINLINE int64_t extract_lane_rest(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, unsigned lane,
                                              uint64_t bytes, int quit)
{
    struct rnl_taking t = {.max = max, .bytes = bytes, .things = 1, .quit = quit};
    look_after(ep, conn, &conn->pair.rx[lane]);
    return go_on(ep, conn, &t);
}

/* Nothing came meanwhile, as far as one look says: what comes later is for the next extract. */
RNL_INLINE int settled(const struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    return ep->alone == conn && !ep->busy && !rnl_rx_peek(&conn->pair.rx[0]) &&
           !(conn->lane1_hot && rnl_rx_peek(&conn->pair.rx[1]));
}

/* One item of a line of items, in a handler of streams; anything else goes the general way. */
int64_t rnl_stream_extract_answer(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h)
{
    struct rnl_rx *r = &conn->pair.rx[1];
    struct rnl_stream *s = &conn->in[1];
    unsigned len = RNL_HEAD_LEN(h), n = RNL_HEAD_N(h), begun = rnl_rx_begun(r, h), from = begun ? 0 : r->pos & 7;
    if (RNL_UNLIKELY(!rnl_stream_is_ready(s, r, h)) &&
        (s->state != RNL_STREAM_FREE || conn->self || !rnl_stream_expect(ep, conn, 1, h)))
        return extract_lane(ep, max, conn, 1, h);
    if (RNL_UNLIKELY(!s->h.stream || n != from + 1 || n * len > RNL_LINE_PAYLOAD ||
                     rnl_tx_acked(&conn->pair.tx[0], r, RNL_HEAD_ACK(h)) < 0))
        return extract_lane(ep, max, conn, 1, h);
    rnl_stream_setup_item(s, (begun ? r->next : r->last)->payload + from * len, len);
    if (begun)
        rnl_rx_enter(r, 1);
    else
        r->pos++;
    uint32_t before = rnl_ep_handler_begins(ep, 1);
    (void)s->h.stream(s, conn->rank, s->h.ctx);
    rnl_ep_handler_ends(ep, 1, before);
    if (rnl_ep_forked(ep))
        return rnl_ep_enter_slow(ep);
    s->state = RNL_STREAM_FREE;
    rnl_stream_handled(ep, 1, 1);
    ep->c->bytes_received += len;
    ep->empties = 0;
    r->seen = h;
    if (rnl_head_full(h))
        rnl_rx_leave(r);
    if (RNL_LIKELY(!r->told && settled(ep, conn)))
        return 0;
    return extract_lane_rest(ep, max, conn, 1, 0, 0);
}

/* Requests like h's, for a handler of streams, are expected from now on: 1. */
static RNL_NOINLINE int expect_ask(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_head h)
{
    static const unsigned char nothing[1];
    struct rnl_stream *s = &conn->in[0];
    unsigned len = RNL_HEAD_LEN(h), id = RNL_HEAD_HANDLER(h);
    if (RNL_HEAD_ACKLANE(h) != 0 || len < sizeof(struct rnl_ask) || len > RNL_LINE_PAYLOAD ||
        s->state != RNL_STREAM_FREE || id >= ep->handlers || !ep->handler[id].stream)
        return 0;
    rnl_stream_setup(s, nothing, 0, id, 0);
    s->state = RNL_STREAM_FREE;
    s->h = ep->handler[id];
    s->ready = RNL_READY_ASK;
    rnl_rx_expect(&conn->pair.rx[0], h);
    return 1;
}

/* In a line of its own, for a handler of streams, and with room for the answer as far as is known here already. */
int64_t rnl_stream_extract_ask(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h)
{
    struct rnl_rx *r = &conn->pair.rx[0];
    struct rnl_stream *s = &conn->in[0];
    const unsigned char *at = r->next->payload;
    struct rnl_ask ask;
    if (RNL_UNLIKELY(rnl_rx_begun(r, h) != 1 || (!rnl_stream_is_ready(s, r, h) && !expect_ask(ep, conn, h))))
        return extract_lane(ep, max, conn, 0, h);
    rnl_rx_load(&ask, at, sizeof ask);
    if (RNL_UNLIKELY(ask.answer > RNL_ANSWER_MAX || !rnl_tx_surely(&conn->pair.tx[1], ask.answer) ||
                     rnl_tx_acked(&conn->pair.tx[0], r, RNL_HEAD_ACK(h)) < 0))
        return extract_lane(ep, max, conn, 0, h);
    unsigned len = RNL_HEAD_LEN(h) - (unsigned)sizeof ask;
    rnl_rx_enter(r, 1);
    r->seen = h;
    rnl_stream_setup_item(s, at + sizeof ask, len);
    s->answered = 0;
    s->answer = ask.answer;
    ep->in_handler = 1;
    int ending = s->h.stream(s, conn->rank, s->h.ctx);
    if (rnl_ep_forked(ep))
        return rnl_ep_enter_slow(ep);
    ep->in_handler = 0;
    rnl_stream_handled(ep, 0, 1);
    ep->c->bytes_received += len;
    ep->empties = 0;
    int quit = RNL_UNLIKELY(ending != RNL_DONE) && rnl_stream_ended(ep, s, ending);
    s->state = RNL_STREAM_FREE;
    rnl_rx_leave(r);
    if (RNL_LIKELY(!r->told && !quit && len < max && settled(ep, conn)))
        return len;
    return extract_lane_rest(ep, max, conn, 0, len, quit);
}

int64_t rnl_stream_extract_alone(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn)
{
    const struct rnl_rx *r = &conn->pair.rx[0];
    if (conn->lane1_hot) {
        rnl_head answer = rnl_rx_peek(&conn->pair.rx[1]);
        if (answer)
            return rnl_stream_extract_answer(ep, max, conn, answer);
    }
    rnl_head h = atomic_load_explicit(&r->next->head, memory_order_acquire);    /* A1 */
    rnl_head last = atomic_load_explicit(&r->last->head, memory_order_acquire); /* A1; after next: see peek */
    unsigned n = rnl_rx_begun(r, h);
    if (RNL_UNLIKELY(last != r->seen))
        return rnl_stream_extract_any(ep, max);
    if (RNL_LIKELY(n == 1))
        return RNL_HEAD_KIND(h) == RNL_LINE_ASK ? rnl_stream_extract_ask(ep, max, conn, h)
                                                : rnl_stream_extract_one(ep, max, conn, h);
    if (RNL_UNLIKELY(n || atomic_load_explicit(ep->news, memory_order_relaxed) != ep->news_seen || rnl_ep_rung(ep)))
        return rnl_stream_extract_any(ep, max);
    return rnl_stream_extract_none(ep);
}

int64_t rnl_stream_extract_rest(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_taking *t)
{
    struct rnl_rx *r = &conn->pair.rx[0];
    if (RNL_UNLIKELY(r->bulk_read != r->told_bulk) && !conn->odd)
        rnl_rx_tell(r);
    look_after(ep, conn, r);
    if (RNL_LIKELY(ep->hot_count == 1 && !ep->busy && !t->quit && t->bytes < t->max && !conn->odd && !rnl_rx_peek(r)))
        return (int64_t)t->bytes;
    return go_on(ep, conn, t);
}

/* The same where that is one item of len bytes. */
static int64_t extract_rest(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, unsigned len, int ending)
{
    struct rnl_taking t = {.max = max, .bytes = len, .things = 1};
    if (len > RNL_LINE_PAYLOAD / 2) /* a full line */
        rnl_rx_leave(&conn->pair.rx[0]);
    look_after(ep, conn, &conn->pair.rx[0]);
    t.quit = rnl_stream_ended(ep, &conn->in[0], ending);
    return go_on(ep, conn, &t);
}

int64_t rnl_stream_extract_more(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, int ending)
{
    unsigned len = conn->in[0].item;
    if (rnl_ep_forked(ep))
        return rnl_ep_enter_slow(ep);
    ep->c->messages_received++;
    ep->c->bytes_received += len;
    ep->empties = 0;
    return extract_rest(ep, max, conn, len, ending);
}

int64_t rnl_stream_extract_again(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn)
{
    return extract_rest(ep, max, conn, conn->in[0].item, RNL_DONE);
}

/* ---- one item, of whatever handler ---- */

RNL_INLINE int call_stream(struct rnl_stream *s, unsigned peer)
{
    return s->h.stream(s, peer, s->h.ctx);
}

RNL_INLINE int call_whole(struct rnl_stream *s, unsigned peer)
{
    unsigned len = s->item;
    unsigned char copy[RNL_LINE_PAYLOAD] __attribute__((aligned(16)));
    rnl_copy_short(copy, s->at, len);
    return s->h.whole(copy, len, peer, s->h.ctx) == RNL_QUIT ? RNL_QUIT : RNL_DONE;
}

static const struct rnl_stream_ways two_fit = {
    .told = rnl_stream_extract_told,
    .any = rnl_stream_extract_any,
    .more = rnl_stream_extract_more,
    .again = rnl_stream_extract_again,
    .two_fit = 1,
};

int64_t rnl_stream_extract_told(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn)
{
    rnl_rx_tell(&conn->pair.rx[0]);
    if ((conn->in[0].ready & ~RNL_READY_LONG) == RNL_READY_WHOLE)
        return rnl_stream_run_one(ep, max, conn, call_whole, &rnl_stream_native, 1);
    return rnl_stream_run_one(ep, max, conn, call_stream, &rnl_stream_native, 1);
}

/* For whatever has a whole handler, is long, or is not ready yet. */
static RNL_NOINLINE int64_t lone_other(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h,
                                       unsigned ack)
{
    if (RNL_UNLIKELY(max == 0))
        return rnl_stream_extract_any(ep, max);
    if (RNL_LIKELY(conn->in[0].ready == RNL_READY_WHOLE))
        return rnl_stream_take_one(ep, max, conn, h, ack, call_whole, &two_fit);
    if (RNL_UNLIKELY(conn->in[0].ready == RNL_READY_NOT))
        return rnl_stream_extract_one(ep, max, conn, h);
    if (conn->in[0].ready == RNL_READY_ASK)
        return rnl_stream_extract_ask(ep, max, conn, h);
    if (conn->in[0].ready == (RNL_READY_WHOLE | RNL_READY_LONG))
        return rnl_stream_take_one(ep, max, conn, h, ack, call_whole, &rnl_stream_native);
    return rnl_stream_take_one(ep, max, conn, h, ack, call_stream, &rnl_stream_native);
}

int64_t rnl_stream_extract_lone(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h, unsigned ack)
{
    if (RNL_UNLIKELY(conn->in[0].ready != RNL_READY_STREAM || max == 0))
        return lone_other(ep, max, conn, h, ack);
    return rnl_stream_take_one(ep, max, conn, h, ack, call_stream, &two_fit);
}

/* Of another kind than the last: */
static RNL_NOINLINE int64_t extract_unexpected(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h)
{
    const struct rnl_stream *s = &conn->in[0];
    if (RNL_HEAD_KIND(h) == RNL_LINE_EXTENT && max > 0 && !conn->self)
        return rnl_stream_extract_medium(ep, max, conn, h);
    if (RNL_HEAD_KIND(h) == RNL_LINE_ASK && max > 0 && !conn->self)
        return rnl_stream_extract_ask(ep, max, conn, h);
    if (max == 0 || s->state != RNL_STREAM_FREE || !rnl_stream_expect(ep, conn, 0, h))
        return rnl_stream_extract_any(ep, max);
    return rnl_stream_extract_lone(ep, max, conn, h, RNL_HEAD_ACK(h));
}

int64_t rnl_stream_extract_one(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h)
{
    uint64_t ack = rnl_rx_expected(&conn->pair.rx[0], h);
    if (RNL_UNLIKELY(ack >= RNL_NOT_EXPECTED || !conn->in[0].ready))
        return extract_unexpected(ep, max, conn, h);
    return rnl_stream_extract_lone(ep, max, conn, h, (unsigned)ack);
}

int64_t rnl_stream_extract_any(struct rnl_endpoint *ep, size_t max)
{
    unsigned things;
    int64_t bytes = rnl_ep_enter(ep);
    if (bytes < 0)
        return bytes;
    if (RNL_UNLIKELY(ep->in_handler)) {
        bytes = may_progress(ep);
    } else {
        bytes = rnl_stream_extract(ep, max, &things);
        if (rnl_ep_forked(ep))
            return rnl_ep_enter_slow(ep);
        if (things) {
            ep->empties = 0;
            if (ep->fd_armed)
                rnl_ep_busy(ep);
        } else if (RNL_UNLIKELY(ep->job_gone)) {
            bytes = rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone");
        } else {
            bytes = rnl_ep_empty(ep);
        }
        if (RNL_UNLIKELY(ep->troubled))
            bytes = tell_trouble(ep);
    }
    rnl_ep_leave(ep);
    return bytes;
}

int64_t rnl_stream_extract_asked(struct rnl_endpoint *ep, size_t max)
{
    return rnl_stream_search(ep, max, 1);
}

int64_t rnl_stream_extract_search(struct rnl_endpoint *ep, size_t max)
{
    if (RNL_UNLIKELY(atomic_load_explicit(ep->news, memory_order_relaxed) != ep->news_seen || rnl_ep_rung(ep)))
        return rnl_stream_extract_any(ep, max);
    return rnl_stream_search(ep, max, 0);
}

int64_t rnl_extract(rnl_endpoint *ep, size_t max_bytes)
{
    return rnl_stream_extract_quick(ep, max_bytes);
}

int64_t rnl_wait(rnl_endpoint *ep, int64_t timeout_ns)
{
    struct rnl_idle w = {.deadline_ns = UINT64_MAX};
    unsigned things, counted = 0;
    int64_t bytes = rnl_ep_enter(ep);
    if (bytes < 0)
        return bytes;
    unsigned deaths = ep->deaths_seen; /* also those noticed while it sleeps */
    bytes = may_progress(ep);
    if (bytes == 0 && timeout_ns >= 0)
        w.deadline_ns = ep->env->ops->now_ns(ep->env) + (uint64_t)timeout_ns;
    while (bytes == 0) {
        bytes = rnl_stream_extract(ep, SIZE_MAX, &things);
        if (rnl_ep_forked(ep))
            return rnl_ep_enter_slow(ep);
        if (RNL_UNLIKELY(ep->troubled)) {
            bytes = tell_trouble(ep);
            break;
        }
        if (things || ep->deaths_seen != deaths) {
            ep->empties = 0;
            if (ep->fd_armed)
                rnl_ep_busy(ep);
            break;
        }
        if (!counted)
            count_all(ep);
        counted = 1;
        if (ep->job_gone)
            bytes = rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone");
        else
            bytes = rnl_ep_idle(ep, &w);
    }
    if (bytes == RNL_TIMED_OUT) {
        bytes = rnl_timed_out();
        if (w.yields == 0) { /* too short to give way: one of many, as extracts in vain are */
            ep->empties += w.polls;
            (void)rnl_ep_empty(ep);
        }
    }
    rnl_ep_leave(ep);
    return bytes;
}

int rnl_fd(rnl_endpoint *ep)
{
    int fd = rnl_ep_enter(ep);
    if (fd < 0)
        return fd;
    fd = rnl_ep_fd(ep);
    rnl_ep_leave(ep);
    return fd;
}

void rnl_stream_attach(struct rnl_endpoint *ep)
{
    ep->on_gone = rnl_stream_gone;
}
