/* SPDX-License-Identifier: BSD-3-Clause
 *
 * close.c - leaving a job together: runs handlers until every rank is in the close and nothing is under way. A rank
 * that is idle (it has nothing to send, and everything it sent has been read) reports how many cells it has moved.
 * Two waves of equal reports from all live ranks prove that nothing moved in between (four-counter termination
 * detection, Mattern 1987). Pairs that never connected stay unconnected. */
#include "base/bug.h"
#include "stream/stream_internal.h"

#define STARVED_MAX_NS ((uint64_t)1000 * 1000 * 1000) /* longest wait of a message for memory during the close */

/* Returns a number that changes when anything moves. Connections that hibernate or are gone are in poll.moved; one that
 * becomes active is counted twice from then on, but then something moves. */
static uint64_t activity(const struct rnl_endpoint *ep)
{
    uint64_t sum = ep->deaths_seen + ep->poll.moved;
    for (uint32_t i = 0; i < ep->poll.connected; i++)
        sum += rnl_ep_positions(ep->fast.conns[i]);
    return sum;
}

/* Returns true if the peer has read everything we sent to it. */
static bool all_read(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_tx *t = &conn->channel.tx[lane];
        if (rnl_tx_cell(t) == t->cell0)
            continue; /* never used */
        if (t->acked < t->pos && rnl_tx_refresh(t, NULL, NULL) < 0)
            rnl_ep_broken(ep, conn, "a reading position past what was written");
        if (t->acked < t->pos)
            return false;
    }
    return true;
}

static bool idle(struct rnl_endpoint *ep)
{
    if (ep->work.posts | ep->work.aborting | ep->work.calls | ep->work.dying) /* every known death is reported first */
        return false;
    /* Begin with the connection that was not ready at the last look: with many peers there is always one that is
     * not. */
    for (uint32_t left = ep->poll.connected, i = ep->close.at; left > 0; left--, i++) {
        i = i < ep->poll.connected ? i : 0;
        ep->close.at = i;
        struct rnl_conn *conn = ep->fast.conns[i];
        for (unsigned lane = 0; lane < 2; lane++) {
            if (conn->blocked[lane] == RNL_BLOCKED_HANDLER)
                ep->close.discard = 1; /* nobody will register the handler now */
            if (conn->blocked[lane] || rnl_stream_in(conn, lane)->state != RNL_STREAM_FREE)
                return false;
        }
        if (conn->blocked[RNL_LANE_BULK] == RNL_BLOCKED_HANDLER)
            ep->close.discard = 1;
        if (conn->parked || (conn->bulk && conn->bulk->in.state != RNL_STREAM_FREE))
            return false;
        rnl_ep_advertise(ep, conn);
        if (!all_read(ep, conn))
            return false;
    }
    return true;
}

static bool lacks_memory(const struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; ep->credit.starved_before && i < ep->poll.connected; i++) /* asked often, and peers are many */
        for (unsigned lane = 0; lane < RNL_HEADS; lane++)
            if (ep->fast.conns[i]->blocked[lane] == RNL_BLOCKED_MEMORY)
                return true;
    return false;
}

static int quiesce(struct rnl_endpoint *ep)
{
    struct rnl_idle w = {.deadline_ns = UINT64_MAX};
    uint64_t last_activity = 0, wave = UINT64_MAX, starved_since_ns = 0;
    uint64_t no_handler_seen = 0;
    int reported = 0; /* a report was made, and nothing has come since */
    while (!ep->close.done && !ep->close.job_gone) {
        unsigned work_done;
        (void)rnl_stream_extract(ep, UINT64_MAX, &work_done);
        if (rnl_ep_forked(ep))
            return rnl_ep_enter_slow(ep);
        if (work_done) {
            w.polls = w.yields = 0;
            reported = 0;
            continue;
        }
        if (ep->close.done || ep->close.job_gone)
            break;
        if (ep->c->no_handler != no_handler_seen)
            reported = 0; /* what came waits for a handler */
        if ((!reported || ep->close.report_requested) && idle(ep)) {
            reported = 1;
            no_handler_seen = ep->c->no_handler;
            uint64_t now = activity(ep);
            if (ep->close.report_requested || wave == UINT64_MAX || now != last_activity) {
                ep->close.report_requested = 0;
                wave = ep->close.wave;
                last_activity = now;
                int status = ep->env->ops->close_report(ep->env, wave, now);
                if (status < 0)
                    return status;
                continue;
            }
        }
        if (lacks_memory(ep) ||
            ep->credit.unjoined_ns) { /* nothing else can go on before this message does, but not for ever */
            uint64_t now_ns = ep->env->ops->now_ns(ep->env);
            if (starved_since_ns == 0)
                starved_since_ns = now_ns;
            if (now_ns - starved_since_ns > STARVED_MAX_NS)
                /* A message that had waited for its handler before is not noted. */
                return ep->credit.starved_status && ep->credit.starved_status != RNL_ERR_TOO_LONG
                           ? rnl_fail(ep->credit.starved_status, "%s", ep->credit.starved_text)
                           : rnl_fail(RNL_ERR_NO_MEMORY, "a message waits for memory, and got none for a second");
        } else {
            starved_since_ns = 0;
        }
        rnl_ep_idle(ep, &w);
    }
    return ep->close.job_gone ? rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone") : 0;
}

/* Leaves without waiting for anybody: sends what there is room for. */
static int depart(struct rnl_endpoint *ep)
{
    rnl_stream_flush(ep);
    (void)rnl_stream_send_posts(ep);
    return 0;
}

/* Fails what is still open, and reports that to whoever waits for it. */
static void abandon(struct rnl_endpoint *ep, int posts)
{
    ep->close.closing = RNL_CLOSED; /* nothing more is queued */
    for (uint32_t i = 0; i < ep->size; i++) {
        struct rnl_conn *conn = ep->peer[i].conn;
        for (unsigned lane = 0; conn && lane < 2; lane++)
            rnl_stream_fail(ep, rnl_stream_in(conn, lane), RNL_ERR_JOB);
        if (!conn)
            continue;
        rnl_stream_fail_bulk(ep, conn, RNL_ERR_JOB);
        rnl_stream_fail_posts(ep, conn, posts);
    }
    if (ep->work.calls)
        (void)rnl_stream_run_callbacks(ep);
}

int rnl_close(rnl_endpoint *ep)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    if (ep->fast.in_handler) {
        rnl_ep_leave(ep);
        return rnl_fail(
            RNL_ERR_CONTEXT,
            "an endpoint is not closed inside a handler, or a function that the library calls: return first");
    }
    rnl_turn_stop(ep);
    rnl_ep_take_events(ep);         /* what was open to the dead is lost with them, not forgotten */
    rnl_stream_abort_forgotten(ep); /* the program will not complete them; suspended handlers may */
    ep->close.closing = RNL_CLOSING;
    bool alone = ep->env->meet != NULL;
    status = alone ? depart(ep) : quiesce(ep);
    if (rnl_ep_forked(ep))
        return status;
    abandon(ep, alone ? RNL_ERR_CLOSED : RNL_ERR_JOB);
    if (status == 0 && ep->close.left_open)
        status = rnl_fail(RNL_ERR_ABORTED,
                          "%u message%s given up, since %s never ended: one was to handler %u of rank %u; end or abort "
                          "each message before the endpoint is closed",
                          ep->close.left_open, ep->close.left_open == 1 ? " was" : "s were",
                          ep->close.left_open == 1 ? "it was" : "they were", ep->close.left_open_id,
                          ep->close.left_open_rank);
    if (status == 0 && ep->close.dropped && !RNL_BUG(stream_close_hides_dropped))
        status = rnl_fail(RNL_ERR_HANDLER,
                          "%llu message%s dropped: no handler was registered for number %u; register it before %s",
                          (unsigned long long)ep->close.dropped, ep->close.dropped == 1 ? " was" : "s were",
                          ep->close.drop_id, ep->close.dropped == 1 ? "it arrives" : "they arrive");
    if (status == 0 && ep->credit.starved && ep->credit.starved_status == RNL_ERR_TOO_LONG)
        status = rnl_fail(RNL_ERR_TOO_LONG, "%s", ep->credit.starved_text);
    rnl_ep_leave(ep);
    rnl_ep_free(ep);
    return status;
}
