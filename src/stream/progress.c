/* SPDX-License-Identifier: BSD-3-Clause
 *
 * progress.c - the general loop, which takes in what has arrived on all lanes of all peers, and the calls that make
 * progress with it: wait, a blocked send, a poll that assumes nothing. */
#include "stream/stream_internal.h"

#include "endpoint/net.h"
#include "stream/barrier.h"

#include <errno.h>

enum {
    MANY = 12,   /* messages at once after which more may come soon, whose replies share a datagram with theirs */
    ENOUGH = 64, /* messages at once after which the other side is to have something to do */
    CHUNKS = 2 * RNL_BULK_AHEAD /* of the bulk lane of one peer that an extract takes in */
};

static RNL_NOINLINE void take_replies(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_poll_ctx *t)
{
    struct rnl_rx *r = &conn->channel.rx[1];
    struct rnl_poll_ctx replies = {.max = UINT64_MAX};
    rnl_header h = rnl_rx_peek(r);
    if (h)
        rnl_stream_take(ep, conn, 1, h, &replies);
    if (rnl_ep_forked(ep)) {
        t->quit = 1;
        return;
    }
    if (RNL_UNLIKELY(replies.work_done >= MANY) && conn->channel.is_remote && rnl_rx_unadvertised(r))
        rnl_rx_advertise(r); /* it goes with the next request: then all of the ring is free for the replies */
    rnl_stream_wake_sender(ep, conn, r);
    t->work_done += replies.work_done;
}

/* Updates the counters, for whoever reads those of a program that waits. */
static void count_all(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->poll.connected; i++)
        for (unsigned lane = 0; lane < 2; lane++)
            rnl_stream_count(ep, &ep->fast.conns[i]->channel.tx[lane]);
}

/* Lets what was published leave, and adds it to the counters. */
static void drain(struct rnl_endpoint *ep)
{
    if (ep->fast.unfenced) {
        rnl_stream_count(ep, &ep->fast.unfenced->channel.tx[0]);
        rnl_ep_fence_sent(ep);
    }
}

/* Takes in the first parked chunk. Returns false if it has to wait, or nothing more is to be taken of conn. */
static bool take_chunk(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_poll_ctx *t)
{
    struct rnl_bulk_lane *b = conn->bulk;
    const struct rnl_extent e = b->parked[b->parked_first];
    if (conn->blocked[RNL_LANE_BULK]) {
        conn->blocked[RNL_LANE_BULK] = RNL_BLOCKED_NOT;
        rnl_ep_set_sole(ep);
    }
    int taken = rnl_stream_take_chunk(ep, conn, &e, b->handler[b->parked_first], t);
    if (rnl_ep_forked(ep)) {
        t->quit = 1;
        return false;
    }
    if (ep->work.quit) {
        ep->work.quit = 0;
        t->quit = 1;
    }
    t->work_done += taken != 0;
    if (taken > 0)
        rnl_stream_unpark(ep, conn);
    return taken > 0 && !conn->broken && !t->quit;
}

/* Takes in parked chunks, and lane 0 between two of them: all; or one if `first`, whose turn it is. */
static RNL_NOINLINE void take_parked(struct rnl_endpoint *ep, struct rnl_conn *conn, bool first, struct rnl_poll_ctx *t)
{
    struct rnl_bulk_lane *b = conn->bulk;
    const uint8_t turn = b->turn;
    if (first && turn != RNL_BULK_NEXT)
        return;
    b->turn = RNL_BULK_AFTER;
    for (unsigned i = 0; conn->parked && i < CHUNKS; i++) {
        if (t->bytes >= t->max) {
            if (i == 0 && turn != RNL_BULK_SERVED)
                b->turn = RNL_BULK_NEXT;
            return;
        }
        if (!take_chunk(ep, conn, t))
            return;
        if (first) {
            b->turn = RNL_BULK_SERVED;
            return;
        }
        rnl_header h = t->bytes < t->max ? rnl_rx_peek(&conn->channel.rx[0]) : 0;
        if (h)
            rnl_stream_take(ep, conn, 0, h, t);
        if (t->quit || conn->broken)
            return;
    }
}

/* Extracts from `left` peers, beginning with fast.conns[i]. */
static void extract_from(struct rnl_endpoint *ep, uint32_t i, uint32_t left, struct rnl_poll_ctx *t)
{
    uint32_t count = ep->fast.polled; /* peers that handlers connect come next time */
    for (; left > 0; left--, i = i + 1 == count ? 0 : i + 1) {
        struct rnl_conn *conn = ep->fast.conns[i];
        struct rnl_rx *r = &conn->channel.rx[0];
        if (RNL_UNLIKELY(conn->broken))
            continue;
        if (RNL_UNLIKELY(conn->lane1_polled)) {
            take_replies(ep, conn, t);
            if (t->quit)
                break;
        }
        if (RNL_UNLIKELY(t->bytes >= t->max))
            continue; /* replies of the others still come in */
        if (RNL_UNLIKELY(conn->parked)) {
            take_parked(ep, conn, true, t);
            if (t->quit)
                break;
        }
        rnl_header h = rnl_rx_peek(r);
        if (h) {
            rnl_stream_take(ep, conn, 0, h, t);
            if (RNL_UNLIKELY(t->quit || t->bytes >= t->max)) {
                ep->fast.next_polled = i + 1 < count ? i + 1 : 0; /* the next call begins with the next peer */
                if (t->quit) {
                    if (!rnl_ep_forked(ep))
                        rnl_stream_wake_sender(ep, conn, r);
                    break;
                }
            }
        }
        if (RNL_UNLIKELY(conn->parked)) {
            take_parked(ep, conn, false, t);
            if (t->quit)
                break;
        }
        if (RNL_UNLIKELY(r->bulk_read != r->advertised_bulk))
            rnl_rx_advertise(r); /* a sender that must reserve much at once needs to know that all of it is free */
        rnl_stream_wake_sender(ep, conn, r);
    }
    if (RNL_UNLIKELY(ep->work.posts | ep->work.dying | ep->work.reassembling | ep->work.aborting)) {
        if (ep->work.reassembling)
            t->work_done += rnl_stream_start_waiting(ep, t);
        if (ep->work.aborting)
            t->work_done += rnl_stream_announce_aborts(ep);
        if (ep->work.posts)
            t->work_done += rnl_stream_send_posts(ep);
        if (ep->work.dying)
            rnl_ep_reap_dying(ep);
    }
    if (RNL_UNLIKELY(ep->fast.next_polled >= ep->fast.polled))
        ep->fast.next_polled = 0;
    if (RNL_UNLIKELY(ep->work.calls))
        t->work_done += rnl_stream_run_callbacks(ep);
}

/* Takes in what has come meanwhile, before anything is sent: short messages come in bursts. */
static RNL_NOINLINE void extract_more(struct rnl_endpoint *ep, struct rnl_poll_ctx *t)
{
    unsigned before = 0;
    while (t->work_done >= before + MANY && t->work_done < ENOUGH && !t->quit && t->bytes < t->max &&
           !rnl_ep_forked(ep)) {
        before = t->work_done;
        rnl_ep_net_receive(ep);
        rnl_ep_check_bell(ep);
        extract_from(ep, ep->fast.next_polled, ep->fast.polled, t);
    }
}

int64_t rnl_stream_extract(struct rnl_endpoint *ep, uint64_t max, unsigned *work_done)
{
    struct rnl_poll_ctx t = {.max = max};
    unsigned deaths = ep->deaths_seen;
    if (RNL_UNLIKELY(ep->fast.open_short || ep->work.open_streams))
        rnl_stream_flush(ep);
    if (RNL_UNLIKELY(ep->poll.round_due))
        rnl_ep_round(ep, ep->env->ops->now_ns(ep->env));
    rnl_ep_take_events(ep);
    int network = RNL_UNLIKELY(ep->remote) && rnl_ep_net_time(ep);
    if (network)
        rnl_ep_net_receive(ep);
    rnl_ep_check_bell(ep);
    extract_from(ep, ep->fast.next_polled, ep->fast.polled, &t);
    RNL_NO_EXCEPTION();
    if (RNL_UNLIKELY(ep->polls_windows) && !rnl_ep_forked(ep))
        t.work_done += ep->window_ops->progress(ep);
    if (RNL_UNLIKELY(network) && t.work_done >= MANY)
        extract_more(ep, &t);
    *work_done = t.work_done + (ep->deaths_seen - deaths);
    if (RNL_UNLIKELY(ep->net.due | network) && !rnl_ep_forked(ep)) {
        if (ep->fast.polled > RNL_POLLED_ALWAYS)
            rnl_ep_find_idle(ep);
        if (*work_done)
            rnl_ep_net_send_urgent(ep);
        else if (network)
            rnl_ep_net_send_after(ep);
        else
            rnl_ep_net_send(ep);
        *work_done = t.work_done + (ep->deaths_seen - deaths);
    }
    if (*work_done == 0)
        drain(ep);
    return (int64_t)t.bytes;
}

unsigned rnl_stream_progress(struct rnl_endpoint *ep)
{
    unsigned work_done;
    (void)rnl_stream_extract(ep, ep->flags & RNL_NO_RUN_IN_SEND ? 0 : UINT64_MAX, &work_done);
    return work_done;
}

static int may_progress(struct rnl_endpoint *ep)
{
    if (ep->fast.in_handler)
        return rnl_fail(RNL_ERR_CONTEXT, "extract and wait do not belong inside a handler, or a function that the "
                                         "library calls: return from it first");
    return 0;
}

/* Reports to the program that a message waits for memory, and will until there is some, or that a peer threw one
 * away. */
static RNL_NOINLINE int report_starved(struct rnl_endpoint *ep)
{
    ep->credit.starved = 0;
    rnl_ep_set_pending(ep);
    return rnl_fail(ep->credit.starved_status, "%s", ep->credit.starved_text);
}

int64_t rnl_stream_extract_empty(struct rnl_endpoint *ep)
{
    drain(ep);
    if (RNL_UNLIKELY(ep->close.job_gone))
        return rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone");
    int64_t none = rnl_ep_empty(ep);
    if (RNL_UNLIKELY((ep->fast.empty_polls | ep->wait.since_maintained) == 0)) /* it has tidied, so there is time */
        count_all(ep);
    return none;
}

int64_t rnl_stream_continue_extract(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_poll_ctx *t)
{
    uint32_t i = conn->poll_index, count = ep->fast.polled, turn = ep->fast.next_polled;
    if (t->quit || t->bytes >= t->max)
        ep->fast.next_polled = i + 1 < count ? i + 1 : 0;
    else
        extract_from(ep, i, i < turn ? turn - i : count - i + turn, t);
    return rnl_ep_forked(ep) ? rnl_ep_enter_slow(ep) : (int64_t)t->bytes;
}

int64_t rnl_stream_extract_all(struct rnl_endpoint *ep, size_t max)
{
    unsigned work_done;
    int64_t bytes = rnl_ep_enter(ep);
    if (bytes < 0)
        return bytes;
    if (RNL_UNLIKELY(ep->fast.in_handler)) {
        bytes = may_progress(ep);
    } else {
        bytes = rnl_stream_extract(ep, max, &work_done);
        if (rnl_ep_forked(ep))
            return rnl_ep_enter_slow(ep);
        if (work_done) {
            ep->fast.empty_polls = 0;
            if (ep->wait.fd_armed)
                rnl_ep_busy(ep);
        } else if (RNL_UNLIKELY(ep->close.job_gone)) {
            bytes = rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone");
        } else {
            bytes = rnl_ep_empty(ep);
        }
        if (RNL_UNLIKELY(ep->credit.starved))
            bytes = report_starved(ep);
    }
    rnl_ep_leave(ep);
    return bytes;
}

int64_t rnl_stream_wait(struct rnl_endpoint *ep, int64_t timeout_ns, bool by_wake)
{
    struct rnl_idle w = {
        .deadline_ns = UINT64_MAX, .by_wake = by_wake, .what = timeout_ns < 0 ? RNL_WAITS_MESSAGE : RNL_WAITS_TIME};
    unsigned work_done, counted = 0;
    int64_t bytes = rnl_ep_enter(ep);
    if (bytes < 0)
        return bytes;
    unsigned deaths = ep->deaths_seen; /* includes those noticed while it sleeps */
    bytes = may_progress(ep);
    if (bytes == 0 && timeout_ns >= 0)
        w.deadline_ns = ep->env->ops->now_ns(ep->env) + (uint64_t)timeout_ns;
    while (bytes == 0) {
        bytes = rnl_stream_extract(ep, SIZE_MAX, &work_done);
        if (rnl_ep_forked(ep))
            return rnl_ep_enter_slow(ep);
        if (RNL_UNLIKELY(ep->credit.starved)) {
            bytes = report_starved(ep);
            break;
        }
        if (work_done || ep->deaths_seen != deaths) {
            ep->fast.empty_polls = 0;
            if (ep->wait.fd_armed)
                rnl_ep_busy(ep);
            break;
        }
        if (!counted)
            count_all(ep);
        counted = 1;
        if (ep->close.job_gone)
            bytes = rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone");
        else
            bytes = rnl_ep_idle(ep, &w);
    }
    if (bytes == RNL_INTERRUPTED)
        bytes = rnl_fail(RNL_INTERRUPTED, "rnl_wake ended the wait; wait again, or do what it was called for");
    if (bytes == RNL_TIMED_OUT) {
        bytes = rnl_timed_out();
        if (w.yields == 0) { /* too short to yield: it counts like empty extracts */
            ep->fast.empty_polls += w.polls;
            (void)rnl_ep_empty(ep);
        }
    }
    rnl_ep_leave(ep);
    return bytes;
}

int64_t rnl_wait(rnl_endpoint *ep, int64_t timeout_ns)
{
    bool opened = ep->fast.open == RNL_EP_SERVED && rnl_ep_open_path(ep);
    int64_t bytes = rnl_stream_wait(ep, timeout_ns, true);
    if (opened)
        rnl_ep_shut_path(ep);
    return bytes;
}

void rnl_wake(rnl_endpoint *ep)
{
    int before = errno;
    rnl_ep_wake(ep);
    errno = before;
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
