/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.c - announces what was written, to a peer of this host by its bell, to a peer of another host through remote/;
 * and turns the events of remote/ into the life of peers. The endpoint takes all events after each call into
 * remote/, so bad news arrives as data, never in the middle of a send. */
#include "endpoint/net.h"
#include "base/bug.h"
#include "base/sometimes.h"
#include "endpoint/poll.h"

enum {
    MISSES_FEW = 64, /* polls of the network that find nothing before it is polled less often */
    SKIP_MAX = 1023  /* extracts between two polls, at most: some 20 us */
};

/* ---- how often the network is polled ---- */

/* Decides how soon the next poll is, where nothing has come for a while: then a word of the transport can tell when
 * something does, if only one thread polls. Returns true if something is here already. */
static RNL_NOINLINE bool poll_seldom(struct rnl_endpoint *ep)
{
    bool may = !ep->wait.fd_mode && !(ep->flags & (RNL_SHARED | RNL_EP_SERVES | RNL_EP_GUARDED));
    int status = may ? rnl_remote_bell(ep->remote, &ep->net.bell, &ep->net.bits) : RNL_ERR_UNSUPPORTED;
    ep->net.bits = status == 0 ? ep->net.bits : 0;
    if (ep->wait.fd_mode || rnl_ep_net_all(ep)) /* no peer of this host is connected */
        ep->net.skip = 0;
    else if (ep->net.skip < SKIP_MAX)
        ep->net.skip = 2 * ep->net.skip + 1;
    return status == 1;
}

/* Decides after a poll, which returned `result`, how soon the next one is. */
static void set_poll_interval(struct rnl_endpoint *ep, unsigned result)
{
    bool found = result & RNL_REMOTE_CAME, arrived = false;
    ep->net.misses = found ? 0 : ep->net.misses + 1;
    ep->net.skipped = 0;
    if (ep->net.misses < MISSES_FEW)
        ep->net.skip = ep->net.bits = 0;
    else
        arrived = poll_seldom(ep);
    bool due = ep->net.skip == 0 || arrived || result & RNL_REMOTE_TO_SEND;
    if (due != ep->net.due) {
        ep->net.due = due;
        rnl_ep_set_pending(ep);
    }
    if (found && ep->wait.by_fd && (ep->wait.asleep || ep->wait.fd_armed))
        rnl_remote_rearm(ep->remote); /* somebody still sleeps on it, and a look that did not arm may have ended that */
}

/* ---- events ---- */

/* Returns true if no extract and no call waits for anything of conn. */
static bool is_quiescent(const struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    const struct rnl_conn lane1 = {.lane1_polled = 1};
    return !conn->post_first && !conn->bulk_posts && !conn->wants_room && !conn->waits && !conn->dying && !conn->gone &&
           !(conn->exceptional & ~lane1.exceptional) && !ep->conn_ops->sends(conn) && !ep->conn_ops->receives(conn);
}

static void hibernate(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    if ((conn->shut & RNL_SHUT_HIBERNATED) || !is_quiescent(ep, conn) || !rnl_remote_may_hibernate(conn->remote))
        return;
    rnl_ep_promote(ep, conn); /* only polled connections can be removed */
    rnl_ep_remove_polled(ep, conn);
    rnl_remote_hibernate(conn->remote);
    rnl_conn_shut(conn, RNL_SHUT_HIBERNATED);
}

static void on_active(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    conn->shut &= (uint8_t)~RNL_SHUT_HIBERNATED;
    rnl_ep_add_polled(ep, conn);
}

int rnl_ep_net_activate(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    int woken = rnl_remote_activate(conn->remote);
    if (woken > 0)
        on_active(ep, conn);
    return woken < 0 ? woken : 0;
}

static void on_left(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    if (ep->close.closing && rnl_remote_all_read(conn->remote))
        return; /* all leave together, as agreed */
    rnl_remote_abandon(conn->remote);
    rnl_ep_died(ep, conn->rank, ep->env->meet ? RNL_DEATH_LEFT : RNL_DEATH_DISCONNECTED, 0);
}

static void take_event(struct rnl_endpoint *ep, const struct rnl_remote_event *e)
{
    struct rnl_conn *conn = ep->peer[e->rank].conn;
    switch (e->kind) {
    case RNL_REMOTE_ACCEPT:
        if (rnl_ep_accept(ep, e->rank, &conn) < 0)
            conn = NULL; /* the peer asks again */
        rnl_ep_net_result(ep, rnl_remote_accept(ep->remote, conn ? conn->remote : NULL));
        break;
    case RNL_REMOTE_ACTIVE:
        on_active(ep, conn);
        break;
    case RNL_REMOTE_DATA:
        if (!conn->gone)
            rnl_ep_promote(ep, conn);
        break;
    case RNL_REMOTE_IDLE:
        hibernate(ep, conn);
        break;
    case RNL_REMOTE_BROKEN:
        (void)rnl_ep_broken(ep, conn, "impossible packets or frames");
        break;
    case RNL_REMOTE_LEFT:
        if (!conn->gone && !conn->dying)
            on_left(ep, conn);
        break;
    case RNL_REMOTE_LOST:
        if (!RNL_BUG(endpoint_drops_the_event_of_a_death))
            rnl_ep_died(ep, e->rank, e->why, 0);
        break;
    default:
        break;
    }
}

static RNL_NOINLINE void take_events(struct rnl_endpoint *ep)
{
    struct rnl_remote_event e;
    if (ep->net.draining_events) /* an event has caused this call: what the call brings is taken after that event */
        return;
    ep->net.draining_events = 1;
    while (rnl_remote_event(ep->remote, &e))
        take_event(ep, &e);
    ep->net.draining_events = 0;
}

void rnl_ep_net_handle(struct rnl_endpoint *ep, unsigned result)
{
    if (result & RNL_REMOTE_POLLED)
        set_poll_interval(ep, result);
    else if (result & RNL_REMOTE_TO_SEND)
        rnl_ep_net_soon(ep);
    if (result & RNL_REMOTE_EVENTS)
        take_events(ep);
}

/* ---- calls ---- */

void rnl_ep_net_receive(struct rnl_endpoint *ep)
{
    rnl_ep_net_result(ep, rnl_remote_receive(ep->remote));
}

void rnl_ep_net_send(struct rnl_endpoint *ep)
{
    rnl_ep_net_result(ep, rnl_remote_send(ep->remote));
}

void rnl_ep_net_send_after(struct rnl_endpoint *ep)
{
    rnl_ep_net_result(ep, rnl_remote_send_after(ep->remote));
}

void rnl_ep_net_send_urgent(struct rnl_endpoint *ep)
{
    rnl_ep_net_result(ep, rnl_remote_send_urgent(ep->remote));
}

void rnl_ep_net_maintain(struct rnl_endpoint *ep)
{
    rnl_ep_net_result(ep, rnl_remote_tidy(ep->remote));
}

bool rnl_ep_net_look(struct rnl_endpoint *ep, uint64_t now_ns)
{
    if (rnl_remote_asleep(ep->remote, now_ns))
        return false;
    rnl_ep_net_soon(ep);
    return true;
}

bool rnl_ep_net_all(const struct rnl_endpoint *ep)
{
    return ep->remote && ep->poll.connected == rnl_remote_active(ep->remote);
}

bool rnl_ep_is_remote(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_rank_address place;
    return ep->remote && rank != ep->rank && ep->env->ops->rank_address(ep->env, rank, &place) == 1;
}

int rnl_ep_net_new(struct rnl_endpoint *ep, const struct rnl_remote_options *opt)
{
    const struct rnl_remote_options own = {.silent_ns = ep->silence_ns, .open_ns = ep->silence_ns};
    int status = rnl_remote_new(ep->env, ep->c, opt ? opt : &own, &ep->remote);
    if (status < 0)
        return status;
    ep->wait.by_fd = rnl_remote_by_fd(ep->remote);
    rnl_ep_net_soon(ep);
    return 0;
}

/* Begins to use datagrams in an endpoint that was without. */
static int net_late(struct rnl_endpoint *ep)
{
    int status = rnl_ep_net_new(ep, NULL);
    if (status == 0 && ep->wait.by_fd && ep->wait.fd_mode != RNL_FD_NONE)
        status = ep->env->ops->fd_watch(ep->env, rnl_remote_fd(ep->remote));
    rnl_ep_set_pending(ep);
    if (ep->wait.fd_armed)
        rnl_ep_busy(ep);
    return status;
}

int rnl_ep_net_leads(struct rnl_endpoint *ep, uint32_t rank)
{
    const int status = !ep->remote && ep->env->meet && ep->env->datagrams ? net_late(ep) : 0;
    return status < 0 ? status : rnl_ep_is_remote(ep, rank);
}

uint64_t rnl_conn_reply_watermark(const struct rnl_conn *conn)
{
    return conn->remote ? rnl_remote_watermark(&conn->channel) : conn->channel.tx[0].acked;
}

/* ---- announcing ---- */

/* Room in a ring is seldom waited for between hosts, so its announcement can wait, except during the close. */
static RNL_NOINLINE int announce_remote(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t what)
{
    unsigned use = (ep->fast.in_handler ? RNL_REMOTE_IN_HANDLER : 0) | (conn->awaited ? RNL_REMOTE_AWAITS : 0);
    rnl_ep_net_result(ep, what & RNL_ARMED_CELLS
                              ? rnl_remote_published(conn->remote, use, ep->conn_ops->uncomposed(conn))
                              : rnl_remote_advertise(conn->remote, ep->close.closing));
    return 0;
}

static RNL_NOINLINE int ring_local(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t what)
{
    struct rnl_channel *p = &conn->channel;
    /* The peer's heavy fence may have ceased to work since the peer joined. */
    int changed = !p->senders_fence && atomic_load_explicit(&p->theirs->senders_fence, memory_order_relaxed);
    if ((!p->joined || changed) && rnl_channel_joined(p) < 0) {
        rnl_ep_broken(ep, conn, "its side of the segment has an unknown version");
        return 0;
    }
    if (p->senders_fence) {
        rnl_full_fence(); /* F1: the receiver issues no heavy fence for us */
    }
    uint32_t armed = rnl_channel_must_ring(p, what);
    struct rnl_bell *bell = armed ? ep->env->bell_of(ep->env, conn->rank) : NULL;
    if (!bell)
        return 0;
    ep->c->bells_rung++;
    /* The descriptor comes first: a peer that sees the word change must find it raised, or would leave it so
     * (arm_fd). */
    if (armed & RNL_ARMED_FD)
        ep->env->ops->fd_raise(ep->env, conn->rank);
    /* The cell is published before the word: a peer that sees the word change finds the cell (rnl_ep_look_armed). */
    atomic_fetch_add_explicit(&bell->word, 1, memory_order_release);
    if (armed & RNL_ARMED_WAKE)
        ep->env->ops->wake(ep->env, &bell->word);
    return 0;
}

int rnl_ep_ring_bell(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t what)
{
    if (!conn->remote)
        return ring_local(ep, conn, what);
    if (what == RNL_ARMED_CELLS && rnl_remote_joins_burst(conn->remote))
        return 0;
    return announce_remote(ep, conn, what);
}

void rnl_ep_advertise(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    uint32_t changed = 0;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_rx *r = &conn->channel.rx[lane];
        rnl_rx_advertise(r);
        changed |= r->wake_check_due;
        r->wake_check_due = 0;
    }
    if (changed)
        rnl_ep_advertised(ep, conn);
}
