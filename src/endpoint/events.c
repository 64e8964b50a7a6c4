/* SPDX-License-Identifier: BSD-3-Clause
 *
 * events.c - takes the events of the agent (env->ops->event): connections that peers have made, deaths, processes that
 * are started again or want to become peers, the close. */
#include "endpoint/endpoint.h"
#include "endpoint/net.h"

/* Whether the event is of a connection that the program has left. */
static bool is_of_left(const struct rnl_endpoint *ep, const struct rnl_event *e)
{
    return ep->env->meet && e->rank != ep->rank && e->incarnation <= ep->peer[e->rank].last_dead;
}

/* Handles the death of a peer like rnl_ep_died, but what the peer sent before we joined its connection is taken in
 * first. */
static void ended(struct rnl_endpoint *ep, uint32_t rank, int reason, int detail)
{
    struct rnl_peer *p = &ep->peer[rank];
    if (rnl_peer_move(ep, rank, RNL_PEER_IS_ENDING)) {
        p->reason = (uint8_t)reason;
        p->detail = detail;
        rnl_ep_join(ep, rank);
    } else if (p->state != RNL_PEER_IS_ENDING) {
        rnl_ep_died(ep, rank, reason, detail);
    }
}

static void on_connect(struct rnl_endpoint *ep, const struct rnl_event *e)
{
    struct rnl_peer *p = &ep->peer[e->rank];
    if (is_of_left(ep, e))
        return;
    p->incarnation = e->incarnation;
    if (!rnl_peer_is_dead(p))
        rnl_ep_join(ep, e->rank);
    else if (p->process == RNL_PROCESS_NEXT)
        p->process = RNL_PROCESS_NEXT_CONNECTS;
}

static void on_death(struct rnl_endpoint *ep, const struct rnl_event *e)
{
    struct rnl_peer *p = &ep->peer[e->rank];
    if (is_of_left(ep, e))
        return;
    if (e->why != RNL_DEATH_DISCONNECTED) { /* the process itself is gone */
        p->last_dead = e->incarnation;
        if (p->rejoined && !ep->env->meet && !rnl_peer_is_dead(p) && p->conn && p->conn->remote &&
            !rnl_remote_is_with(p->conn->remote, e->incarnation))
            return; /* an earlier process; the connection is with the next one */
        p->process = RNL_PROCESS_GONE;
    }
    p->incarnation = e->incarnation;
    if (e->rank != ep->rank)
        ended(ep, e->rank, e->why, e->detail);
}

/* A program that waits for the peer to come back has its wait ended, as by a death. Where peers come and go, a rank is
 * given to another process only after the program has given it back: there is nobody to be taken back. */
static void on_return(struct rnl_endpoint *ep, const struct rnl_event *e)
{
    struct rnl_peer *p = &ep->peer[e->rank];
    if (e->rank == ep->rank || is_of_left(ep, e))
        return;
    p->incarnation = e->incarnation;
    if (ep->env->meet) {
        if (rnl_ep_net_leads(ep, e->rank) > 0)
            rnl_ep_join(ep, e->rank); /* nothing else tells that it may be connected to */
        return;
    }
    p->process = RNL_PROCESS_NEXT;
    ep->deaths_seen++;
    if (ep->wait.fd_armed)
        rnl_ep_busy(ep);
}

static void on_connection_request(struct rnl_endpoint *ep, const struct rnl_event *e)
{
    struct rnl_peer *p = &ep->peer[e->rank];
    ep->work.calls += !p->request_due;
    ep->work.requests += !p->request_due;
    p->request_due = 1; /* stream/ asks the program, when nothing here is under way */
    rnl_ep_set_pending(ep);
    if (ep->wait.fd_armed)
        rnl_ep_busy(ep);
}

void rnl_ep_take_events_slow(struct rnl_endpoint *ep)
{
    struct rnl_event e;
    ep->fast.event_seq_seen = atomic_load_explicit(
        ep->fast.event_seq, memory_order_relaxed); /* before the events: a later one is seen next time */
    while (ep->env->ops->event(ep->env, &e) == 1) {
        int known = e.rank < ep->size;
        switch (e.kind) {
        case RNL_EVENT_CONNECT:
            if (known)
                on_connect(ep, &e);
            break;
        case RNL_EVENT_DEATH:
            if (known)
                on_death(ep, &e);
            break;
        case RNL_EVENT_RETURN:
            if (known)
                on_return(ep, &e);
            break;
        case RNL_EVENT_CONNECTION_REQUEST:
            if (known)
                on_connection_request(ep, &e);
            break;
        case RNL_EVENT_CLOSE_REQUEST:
            ep->close.wave = e.wave;
            ep->close.report_requested = 1;
            break;
        case RNL_EVENT_CLOSE_DONE:
            ep->close.done = 1;
            break;
        case RNL_EVENT_JOB_GONE:
            ep->close.job_gone = 1;
            break;
        default:
            break;
        }
    }
}
