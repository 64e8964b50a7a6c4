/* SPDX-License-Identifier: BSD-3-Clause
 *
 * close.c - leaving a job together: run handlers until every rank is in close and nothing is on the way. Each rank,
 * whenever it is idle (nothing to send, all it sent has been read), reports its count of lines moved to the watcher;
 * two waves of equal reports from all live ranks prove that nothing moved in between (Mattern's double count). Pairs
 * that never connected stay unconnected. */
#include "stream/stream.h"

#define LACKING_MAX_NS ((uint64_t)1000 * 1000 * 1000) /* how long a message waits for memory in close */

/* Of those that rest, or are gone, it is known; who wakes counts twice from then on, and something moves then. */
static uint64_t activity(const struct rnl_endpoint *ep)
{
    uint64_t sum = ep->deaths_seen + ep->moved;
    for (uint32_t i = 0; i < ep->live; i++)
        sum += rnl_ep_positions(ep->hot[i]);
    return sum;
}

/* The peer has read all we sent it. */
static int all_read(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_tx *t = &conn->pair.tx[lane];
        if (rnl_tx_line(t) == t->line0)
            continue; /* never used */
        if (t->acked < t->pos && rnl_tx_refresh(t, NULL, NULL) < 0)
            rnl_ep_broken(ep, conn, "a reading position past what was written");
        if (t->acked < t->pos)
            return 0;
    }
    return 1;
}

static int idle(struct rnl_endpoint *ep)
{
    if (ep->posts | ep->aborting | ep->calls | ep->dying) /* who leaves has been told of all deaths it knows of */
        return 0;
    /* Who was not ready when we last looked is asked first: with many peers there is always one that is not. */
    for (uint32_t left = ep->live, i = ep->close_at; left > 0; left--, i++) {
        i = i < ep->live ? i : 0;
        ep->close_at = i;
        struct rnl_conn *conn = ep->hot[i];
        for (unsigned lane = 0; lane < 2; lane++) {
            if (conn->stuck[lane] == RNL_STUCK_HANDLER)
                ep->discard = 1; /* nobody will register it now */
            if (conn->stuck[lane] || conn->in[lane].state != RNL_STREAM_FREE)
                return 0;
        }
        rnl_ep_tell(ep, conn);
        if (!all_read(ep, conn))
            return 0;
    }
    return 1;
}

static int lacks_memory(const struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; ep->lacked && i < ep->live; i++) /* asked often, and peers are many */
        if (ep->hot[i]->stuck[0] == RNL_STUCK_MEMORY || ep->hot[i]->stuck[1] == RNL_STUCK_MEMORY)
            return 1;
    return 0;
}

static int quiesce(struct rnl_endpoint *ep)
{
    struct rnl_idle w = {.deadline_ns = UINT64_MAX};
    uint64_t told = 0, wave = UINT64_MAX, lacking_ns = 0;
    uint64_t stuck = 0;
    int reported = 0; /* and nothing came since: all is as it was */
    while (!ep->close_done && !ep->job_gone) {
        unsigned things;
        (void)rnl_stream_extract(ep, UINT64_MAX, &things);
        if (rnl_ep_forked(ep))
            return rnl_ep_enter_slow(ep);
        if (things) {
            w.polls = w.yields = 0;
            reported = 0;
            continue;
        }
        if (ep->close_done || ep->job_gone)
            break;
        if (ep->c->no_handler != stuck)
            reported = 0; /* what came waits for a handler */
        if ((!reported || ep->close_asked) && idle(ep)) {
            reported = 1;
            stuck = ep->c->no_handler;
            uint64_t now = activity(ep);
            if (ep->close_asked || wave == UINT64_MAX || now != told) {
                ep->close_asked = 0;
                wave = ep->close_wave;
                told = now;
                int status = ep->env->ops->close_report(ep->env, wave, now);
                if (status < 0)
                    return status;
                continue;
            }
        }
        if (lacks_memory(ep)) { /* nobody can go on before this message does: not for ever */
            uint64_t now_ns = ep->env->ops->now_ns(ep->env);
            if (lacking_ns == 0)
                lacking_ns = now_ns;
            if (now_ns - lacking_ns > LACKING_MAX_NS)
                return rnl_fail(RNL_ERR_NO_MEMORY, "%s", ep->trouble);
        } else {
            lacking_ns = 0;
        }
        rnl_ep_idle(ep, &w);
    }
    return ep->job_gone ? rnl_fail(RNL_ERR_JOB, "the launcher of this job is gone") : 0;
}

/* What is still open is lost; whoever waits for it is told. */
static void abandon(struct rnl_endpoint *ep)
{
    ep->closing = RNL_CLOSED; /* nothing more is queued */
    for (uint32_t i = 0; i < ep->size; i++) {
        struct rnl_conn *conn = ep->peer[i].conn;
        for (unsigned lane = 0; conn && lane < 2; lane++)
            rnl_stream_fail(ep, &conn->in[lane], RNL_ERR_JOB);
        if (conn)
            rnl_stream_posts_fail(ep, conn, RNL_ERR_JOB);
    }
    if (ep->calls)
        (void)rnl_stream_calls(ep);
}

int rnl_close(rnl_endpoint *ep)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    if (ep->in_handler) {
        rnl_ep_leave(ep);
        return rnl_fail(RNL_ERR_CONTEXT,
                        "rnl_close and FM_finalize do not belong inside a handler, or a function that the library "
                        "calls: return from it first");
    }
    rnl_stream_abort_all(ep); /* whoever leaves it open will not complete it; handlers that are suspended may */
    ep->closing = RNL_CLOSING;
    status = quiesce(ep);
    if (rnl_ep_forked(ep))
        return status;
    abandon(ep);
    if (status == 0 && ep->dropped)
        status = rnl_fail(RNL_ERR_HANDLER,
                          "%llu message%s dropped: no handler was registered for number %u; register it before %s",
                          (unsigned long long)ep->dropped, ep->dropped == 1 ? " was" : "s were", ep->drop_id,
                          ep->dropped == 1 ? "it arrives" : "they arrive");
    rnl_ep_leave(ep);
    rnl_ep_free(ep);
    return status;
}
