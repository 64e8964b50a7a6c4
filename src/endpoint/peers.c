/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peers.c - connections, and what becomes of peers: connect, news from the watcher, death, broken peers. */
#include "base/sometimes.h"
#include "endpoint/endpoint.h"
#include "endpoint/remote.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_SOON_NS ((uint64_t)100 * 1000 * 1000) /* it may have to wait for a processor */

static const char *reason_text(const struct rnl_peer *p, char *buf, size_t n)
{
    const char *name;
    switch (p->reason) {
    case RNL_DEATH_SIGNAL:
        name = strsignal(p->detail);
        snprintf(buf, n, "it was killed by signal %d (%s)", p->detail, name ? name : "unknown");
        return buf;
    case RNL_DEATH_EXIT:
        if (p->detail < 0) /* it was below a wrapper */
            return "it ended, or closed its connection to the launcher, without rnl_close or FM_finalize";
        snprintf(buf, n, "it exited with status %d without rnl_close or FM_finalize", p->detail);
        return buf;
    case RNL_DEATH_BROKEN:
        return "it broke the protocol";
    case RNL_DEATH_NEVER_JOINED:
        return "it ended without joining the job";
    case RNL_DEATH_LEFT:
        return "it replaced its program (exec), or closed its connection to the launcher";
    case RNL_DEATH_PARTED:
        if (rnl_remote_why(p->conn))
            return rnl_remote_why(p->conn);
        return "it ended the connection, since it found that this process broke the protocol";
    case RNL_DEATH_SILENT:
        if (rnl_remote_why(p->conn))
            return rnl_remote_why(p->conn);
        return "nothing was heard of it for too long, or it does not know the connection any more";
    case RNL_DEATH_HOST:
        return "its host is lost: the agent there has ended, or nothing is heard of it; its processes cannot come back";
    default:
        return "it has left the job";
    }
}

int rnl_ep_gone(struct rnl_endpoint *ep, uint32_t rank)
{
    char buf[96];
    const struct rnl_peer *p = &ep->peer[rank];
    int status = p->reason == RNL_DEATH_BROKEN ? RNL_ERR_PEER_BROKEN : RNL_ERR_PEER_DEAD;
    return rnl_fail(status, "rank %u is gone: %s; do not send to it", rank, reason_text(p, buf, sizeof buf));
}

int rnl_ep_unread(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_conn *conn = ep->peer[rank].conn;
    if (!conn)
        return 0;
    struct rnl_tx *t = &conn->pair.tx[0];
    if (t->acked < t->pos)
        (void)!rnl_tx_refresh(t, NULL, NULL);
    return t->acked < t->pos;
}

int rnl_ep_lost(struct rnl_endpoint *ep, uint32_t rank)
{
    char buf[96];
    const struct rnl_peer *p = &ep->peer[rank];
    int status = p->reason == RNL_DEATH_BROKEN ? RNL_ERR_PEER_BROKEN : RNL_ERR_PEER_DEAD;
    return rnl_fail(status, "rank %u has not said that it took in all that was sent to it, and is gone: %s", rank,
                    reason_text(p, buf, sizeof buf));
}

/* What a peer may have outstanding from the start: an even share of half the budget; the other half goes to those who
 * send much. */
static uint64_t first_grant(const struct rnl_endpoint *ep)
{
    uint64_t units = ep->budget / 64 / (2 * (uint64_t)ep->size);
    return units < RNL_GRANT_MIN ? RNL_GRANT_MIN : units < RNL_GRANT_FULL ? units : RNL_GRANT_FULL;
}

/* What one peer can get when all others are down to their even shares. Units. */
static uint64_t most_grant(const struct rnl_endpoint *ep)
{
    uint64_t first = first_grant(ep), others = (ep->size - 1) * first + (uint64_t)ep->size * RNL_GRANT_MIN;
    uint64_t units = ep->budget / 64 > others ? ep->budget / 64 - others : 0;
    return units < first ? first : units < RNL_GRANT_FULL ? units : RNL_GRANT_FULL;
}

/* 1 = it has as many now, or more. */
static int grant(struct rnl_endpoint *ep, struct rnl_rx *r, uint64_t units)
{
    uint64_t more = units > r->standing ? (units - r->standing) * 64 : 0;
    uint64_t minimum = (uint64_t)ep->size * RNL_GRANT_MIN * 64; /* set aside for peers that have not connected */
    if (more != 0 && ep->granted + minimum + more > ep->budget)
        return 0;
    ep->granted += more;
    rnl_rx_grant(r, units);
    return 1;
}

void rnl_ep_grant_more(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    struct rnl_rx *r = &conn->pair.rx[0];
    uint64_t wants = rnl_rx_wants(r);
    if (!grant(ep, r, rnl_grant_full(r->bulk_mask)) && !grant(ep, r, wants))
        rnl_ep_reallocate(ep); /* what others have and do not use comes back in their calls */
}

void rnl_ep_reallocate(struct rnl_endpoint *ep)
{
    uint64_t share = first_grant(ep);
    for (uint32_t i = 0; i < ep->live; i++) {
        struct rnl_rx *r = &ep->hot[i]->pair.rx[0];
        if (rnl_rx_wants(r) <= r->standing) /* who wants more uses what it has */
            rnl_rx_ask_back(r, share);
    }
}

/* Not to another host: its words come with the next packet, its lines when it is their turn, or again after they were
 * lost. What they quote may be older than all that is known, by any number of ringfuls. There quotes may stay behind by
 * a multiple of 2^16: they say less than they mean, and its words say the rest. */
static void requote(struct rnl_pair *p)
{
    uint64_t behind = RNL_RARELY("quotes are brought up to date early") ? 0 : RNL_QUOTE_BEHIND;
    if (p->away)
        return;
    for (unsigned lane = 0; lane < 2; lane++)
        rnl_rx_requote(&p->rx[lane], &p->tx[0], behind);
}

void rnl_ep_credit(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->live; i++) {
        rnl_tx_give_back(&ep->hot[i]->pair.tx[0]);
        ep->granted -= rnl_rx_got_back(&ep->hot[i]->pair.rx[0]) * 64;
        requote(&ep->hot[i]->pair);
        if (rnl_rx_wants(&ep->hot[i]->pair.rx[0]) > ep->hot[i]->pair.rx[0].standing)
            rnl_ep_grant_more(ep, ep->hot[i]);
    }
}

static void died(struct rnl_endpoint *ep, uint32_t rank, int reason, int detail);

static void want_no_more(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_peer *p = &ep->peer[rank];
    ep->wanted -= p->wanted;
    p->wanted = 0;
    if (p->ended) {
        p->ended = 0;
        died(ep, rank, p->reason, p->detail);
    }
}

static int open_pair(struct rnl_endpoint *ep, struct rnl_conn *conn, uint64_t wait_ns)
{
    if (!rnl_remote_away(ep, conn->rank))
        return rnl_pair_open(&conn->pair, ep->env, conn->rank, wait_ns);
    int status = rnl_pair_open_away(&conn->pair, ep->env, conn->rank);
    if (status == 0 && (status = rnl_remote_link(ep, conn)) < 0)
        rnl_pair_close(&conn->pair);
    return status;
}

/* aligned_alloc would take more, and leave pieces that every later malloc looks at. */
struct rnl_conn *rnl_conn_new(void)
{
    unsigned char *memory = calloc(1, sizeof(struct rnl_conn) + RNL_LINE_BYTES - alignof(max_align_t));
    if (!memory)
        return NULL;
    struct rnl_conn *conn = (struct rnl_conn *)(void *)(memory + (-(uintptr_t)memory & (RNL_LINE_BYTES - 1)));
    conn->memory = memory;
    return conn;
}

void rnl_conn_free(struct rnl_conn *conn)
{
    if (conn)
        free(conn->memory);
}

static int connect_within(struct rnl_endpoint *ep, uint32_t rank, uint64_t wait_ns, struct rnl_conn **out)
{
    if (rank >= ep->size)
        return rnl_fail(RNL_ERR_RANK, "there is no rank %u: the job has ranks 0 to %u", rank, ep->size - 1);
    struct rnl_peer *p = &ep->peer[rank];
    if (p->state == RNL_PEER_DEAD)
        return rnl_ep_gone(ep, rank);
    if (p->conn) {
        *out = p->conn;
        return p->conn->link ? rnl_remote_wake(ep, p->conn) : 0;
    }
    struct rnl_conn *conn = rnl_conn_new();
    if (!conn)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the connection to rank %u (%zu bytes)", rank, sizeof *conn);
    conn->rank = rank;
    int status = open_pair(ep, conn, wait_ns);
    if (status < 0) {
        rnl_conn_free(conn);
        return status;
    }
    conn->self = rank == ep->rank;
    conn->post_last = &conn->post_first;
    for (unsigned lane = 0; lane < 2; lane++) {
        conn->in[lane].ep = ep;
        conn->in[lane].conn = conn;
        conn->in[lane].lane = (uint8_t)lane;
    }
    conn->out[0].ep = ep;
    conn->out[0].conn = conn;
    uint64_t standing = first_grant(ep);
    if (ep->granted + standing * 64 > ep->budget)
        standing = RNL_GRANT_MIN;
    ep->granted += standing * 64;
    atomic_store_explicit(&conn->pair.mine->most, most_grant(ep), memory_order_relaxed);
    rnl_rx_grant(&conn->pair.rx[0], standing);
    uint32_t answers = conn->pair.away ? RNL_AWAY1 : RNL_SMALL1; /* what we asked for */
    rnl_rx_grant(&conn->pair.rx[1], answers + RNL_BULK_BYTES / 64 + RNL_GRANT_MIN);
    rnl_rx_grant(&conn->pair.rx[2], RNL_SMALL2 + RNL_BULK_BYTES / 64 + RNL_GRANT_MIN);
    p->conn = conn;
    ep->conn[rank] = conn;
    p->state = RNL_PEER_UP;
    rnl_ep_add_hot(ep, conn);
    ep->c->connects++;
    rnl_ep_tell(ep, conn); /* what was granted: it may wait for that already */
    want_no_more(ep, rank);
    *out = conn;
    return 0;
}

int rnl_ep_connect(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out)
{
    return connect_within(ep, rank, UINT64_MAX, out);
}

int rnl_ep_connect_soon(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out)
{
    if (rank >= ep->size)
        return rnl_ep_connect(ep, rank, out); /* says so */
    uint8_t asked = ep->peer[rank].asked;
    int status = connect_within(ep, rank, asked ? 0 : CONNECT_SOON_NS, out);
    ep->peer[rank].asked = status == RNL_NO_ROOM;
    return status == RNL_NO_ROOM
               ? rnl_fail(RNL_NO_ROOM, "the launcher has not connected rank %u yet; try again later", rank)
               : status;
}

int rnl_ep_accept(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out)
{
    return connect_within(ep, rank, 0, out);
}

/* A peer's first message waits behind this: so it is tried again until it succeeds, or can never. */
static void join(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_conn *conn;
    int status = connect_within(ep, rank, 0, &conn);
    if (status == RNL_ERR_SYSTEM || status == RNL_ERR_NO_MEMORY)
        ep->c->connects_failed++;
    else if (status == RNL_NO_ROOM)
        return;
    else if (status < 0)
        want_no_more(ep, rank);
    if (ep->peer[rank].ended) /* it cannot be had, and nobody will come back for it */
        want_no_more(ep, rank);
}

void rnl_ep_part(struct rnl_endpoint *ep, uint32_t rank, int why)
{
    struct rnl_peer *p = &ep->peer[rank];
    ep->wanted -= p->unparted != 0;
    p->unparted = ep->env->ops->part(ep->env, rank, why) == RNL_NO_ROOM ? (uint8_t)why : 0;
    ep->wanted += p->unparted != 0;
}

static void part(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_peer *p = &ep->peer[rank];
    if (p->conn && p->conn->link) {
        rnl_remote_part(p->conn, 1);
        return;
    }
    rnl_ep_part(ep, rank, RNL_DEATH_BROKEN);
}

void rnl_ep_want(struct rnl_endpoint *ep, uint32_t rank)
{
    ep->wanted += !ep->peer[rank].wanted;
    ep->peer[rank].wanted = 1;
    join(ep, rank);
}

void rnl_ep_join_wanted(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; ep->wanted && i < ep->size; i++) {
        if (ep->peer[i].wanted)
            join(ep, i);
        if (ep->peer[i].unparted)
            rnl_ep_part(ep, i, ep->peer[i].unparted);
    }
}

/* The segment stays mapped until the endpoint is freed: a handler may be looking into it. */
static void gone(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    if (conn->dying)
        ep->dying--;
    rnl_ep_chores(ep);
    conn->dying = 0;
    conn->gone = 1;
    if (ep->c->missing_handler_rank == (uint64_t)conn->rank + 1)
        ep->c->missing_handler = ep->c->missing_handler_rank = 0;
    rnl_ep_remove_hot(ep, conn);
    if (conn->link) {
        rnl_remote_part(conn, 0);
        rnl_remote_sleeps(conn);
    }
    ep->on_gone(ep, conn);
}

static void report(struct rnl_endpoint *ep, uint32_t rank)
{
    if (rnl_ep_forked(ep))
        return;
    ep->deaths_seen++;
    ep->peer[rank].untold = 1; /* told by stream/, when nothing here is under way */
    ep->untold++;
    ep->calls++;
    rnl_ep_chores(ep);
    if (ep->fd_armed)
        rnl_ep_busy(ep);
}

static int mark_dead(struct rnl_endpoint *ep, uint32_t rank, int reason, int detail)
{
    struct rnl_peer *p = &ep->peer[rank];
    if (p->state == RNL_PEER_DEAD)
        return 0;
    p->state = RNL_PEER_DEAD;
    p->reason = (uint8_t)reason;
    p->detail = detail;
    ep->c->deaths++;
    return 1;
}

/* Sends to it fail from now on; what it sent before is taken in first, then its waiters fail. */
static void died(struct rnl_endpoint *ep, uint32_t rank, int reason, int detail)
{
    struct rnl_conn *conn = ep->peer[rank].conn;
    if (!mark_dead(ep, rank, reason, detail))
        return;
    if (conn && conn->link && rnl_remote_wake(ep, conn) < 0) { /* it rests: nothing is under way, nobody waits */
        rnl_conn_shut(conn, RNL_SHUT_DEAD);
        conn->gone = 1;
        rnl_remote_part(conn, 0);
        report(ep, rank);
    } else if (conn) {
        conn->dying = 1;
        rnl_conn_shut(conn, RNL_SHUT_DEAD);
        ep->dying++;
        rnl_ep_chores(ep);
        rnl_ep_warm(ep, conn); /* what is left in its ring is not announced twice */
    } else {
        report(ep, rank);
    }
}

void rnl_ep_died(struct rnl_endpoint *ep, uint32_t rank, int why, int detail)
{
    died(ep, rank, why, detail);
}

/* As died, but what it sent before we joined its connection is taken in first, too. */
static void ended(struct rnl_endpoint *ep, uint32_t rank, int reason, int detail)
{
    struct rnl_peer *p = &ep->peer[rank];
    if (p->wanted && !p->ended) {
        p->ended = 1;
        p->reason = (uint8_t)reason;
        p->detail = detail;
        join(ep, rank);
    } else if (!p->ended) {
        died(ep, rank, reason, detail);
    }
}

/* ... of what an extract would take in. */
static int nothing_left(struct rnl_conn *conn)
{
    int lane0 = !conn->stuck[0] && rnl_rx_peek(&conn->pair.rx[0]) != 0;
    int lane1 = conn->lane1_hot && !conn->stuck[1] && rnl_rx_peek(&conn->pair.rx[1]) != 0;
    return !lane0 && !lane1;
}

void rnl_ep_bury_dying(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->hot_count;) {
        struct rnl_conn *conn = ep->hot[i];
        int all_here = !conn->link || rnl_remote_drained(ep);
        if (!conn->dying || !(conn->broken || (all_here && nothing_left(conn)))) {
            i++;
            continue;
        }
        gone(ep, conn); /* takes it out of hot[] */
        report(ep, conn->rank);
    }
}

int rnl_ep_broken(struct rnl_endpoint *ep, struct rnl_conn *conn, const char *what)
{
    if (mark_dead(ep, conn->rank, RNL_DEATH_BROKEN, 0)) {
        ep->c->broken++;
        conn->dying = 1;
        rnl_conn_shut(conn, RNL_SHUT_DEAD);
        ep->dying++;
        rnl_ep_chores(ep);
        rnl_ep_warm(ep, conn);
        if (!conn->self)
            part(ep, conn->rank);
    }
    conn->broken = 1;
    rnl_ep_set_only(ep);
    return rnl_fail(RNL_ERR_PEER_BROKEN, "rank %u broke the protocol: %s; it is treated as dead", conn->rank, what);
}

/* ---- news ---- */

static void connect_came(struct rnl_endpoint *ep, const struct rnl_event *e)
{
    struct rnl_peer *p = &ep->peer[e->rank];
    p->incarnation = e->incarnation;
    if (p->state == RNL_PEER_DEAD)
        p->knocked = p->returned;
    else if (!p->conn)
        rnl_ep_want(ep, e->rank);
}

static void death_came(struct rnl_endpoint *ep, const struct rnl_event *e)
{
    struct rnl_peer *p = &ep->peer[e->rank];
    if (e->why != RNL_DEATH_PARTED) { /* the process itself is gone */
        p->buried = e->incarnation;
        if (p->again && p->state != RNL_PEER_DEAD && p->conn && p->conn->link &&
            !rnl_remote_may_be(p->conn, e->incarnation))
            return; /* one that we had given up before: the connection is with the next */
        p->left = 1;
        p->returned = p->knocked = 0;
    }
    p->incarnation = e->incarnation;
    if (e->rank != ep->rank)
        ended(ep, e->rank, e->why, e->detail);
}

/* For the program that waits for it to come back a wait ends, as with a death. */
static void return_came(struct rnl_endpoint *ep, const struct rnl_event *e)
{
    struct rnl_peer *p = &ep->peer[e->rank];
    if (e->rank == ep->rank)
        return;
    p->incarnation = e->incarnation;
    p->left = 0;
    p->returned = 1;
    p->knocked = 0;
    ep->deaths_seen++;
    if (ep->fd_armed)
        rnl_ep_busy(ep);
}

void rnl_ep_news_slow(struct rnl_endpoint *ep)
{
    struct rnl_event e;
    ep->news_seen = atomic_load_explicit(
        ep->news, memory_order_relaxed); /* before the events: one that comes meanwhile is seen next time */
    while (ep->env->ops->event(ep->env, &e) == 1) {
        int known = e.rank < ep->size;
        switch (e.kind) {
        case RNL_EVENT_CONNECT:
            if (known)
                connect_came(ep, &e);
            break;
        case RNL_EVENT_DEATH:
            if (known)
                death_came(ep, &e);
            break;
        case RNL_EVENT_RETURN:
            if (known)
                return_came(ep, &e);
            break;
        case RNL_EVENT_CLOSE_ASK:
            ep->close_wave = e.wave;
            ep->close_asked = 1;
            break;
        case RNL_EVENT_CLOSE_DONE:
            ep->close_done = 1;
            break;
        case RNL_EVENT_JOB_GONE:
            ep->job_gone = 1;
            break;
        default:
            break;
        }
    }
}

int rnl_ep_ring_bell(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t what)
{
    struct rnl_pair *p = &conn->pair;
    if (conn->link) {
        rnl_remote_ring(ep, conn, what);
        return 0;
    }
    /* Its heavy fence may have ceased to work since it said that it has one. */
    int changed = !p->senders_fence && atomic_load_explicit(&p->theirs->senders_fence, memory_order_relaxed);
    if ((!p->joined || changed) && rnl_pair_joined(p) < 0) {
        rnl_ep_broken(ep, conn, "its side of the segment has an unknown version");
        return 0;
    }
    if (p->senders_fence) {
        rnl_full_fence(); /* F1: the receiver has none for us */
    }
    uint32_t armed = rnl_pair_must_ring(p, what);
    struct rnl_bell *bell = armed ? ep->env->bell_of(ep->env, conn->rank) : NULL;
    if (!bell)
        return 0;
    ep->c->bells_rung++;
    /* The descriptor first: whoever sees the word change must find it raised, or would leave it so (rnl_ep_empty). */
    if (armed & RNL_ARMED_FD)
        ep->env->ops->fd_raise(ep->env, conn->rank);
    /* The line before it: whoever sees the word change finds it (rnl_ep_look_cold). */
    atomic_fetch_add_explicit(&bell->word, 1, memory_order_release);
    if (armed & RNL_ARMED_WAKE)
        ep->env->ops->wake(ep->env, &bell->word);
    return 0;
}

void rnl_ep_tell(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    uint32_t told = 0;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_rx *r = &conn->pair.rx[lane];
        rnl_rx_tell(r);
        told |= r->told;
        r->told = 0;
    }
    if (told)
        rnl_ep_told(ep, conn);
}
