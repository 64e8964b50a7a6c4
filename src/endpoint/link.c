/* SPDX-License-Identifier: BSD-3-Clause
 *
 * link.c - one peer of another host: its handshake, its flow, its mirror, and their end. */
#include "endpoint/link.h"
#include "base/sometimes.h"

#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_LEAST = 2,  /* packets */
    BATCH = 16,        /* rooms reserved at a time */
    RUN_BYTES = 65507, /* datagrams that go as one run, the last of them perhaps shorter ... */
    RUN_MOST = 46,     /* ... and how many */
    TURN_RUNS = 4,     /* before it is another link's turn, or as many datagrams as a run has at most */
    LONE_SPARE = 300   /* bytes of a packet for all that is not lines: header, block, words, tag */
};

/* ---- what the flow asks for ---- */

static uint32_t fill(void *ctx, unsigned char *at, uint32_t room, struct rnl_flow_note *notes, unsigned *count)
{
    struct rnl_link *link = ctx;
    *count = 0;
    if (!link->mirror)
        return 0;
    uint32_t used = rnl_mirror_fill(link->mirror, at, room, notes, count);
    if (link->mirror->said_all)
        rnl_flow_sated(&link->flow);
    return used;
}

static void acked(void *ctx, const struct rnl_flow_note *note)
{
    struct rnl_link *link = ctx;
    if (link->mirror)
        rnl_mirror_acked(link->mirror, note);
}

static void lost(void *ctx, const struct rnl_flow_note *note)
{
    struct rnl_link *link = ctx;
    if (link->mirror)
        rnl_mirror_lost(link->mirror, note);
}

static int frames(void *ctx, const unsigned char *at, uint32_t bytes, uint64_t number)
{
    struct rnl_link *link = ctx;
    if (RNL_RARELY("no memory for a packet") || rnl_remote_wake(link->remote->ep, link->conn) < 0) {
        link->remote->ep->c->connects_failed++;
        return RNL_NO_ROOM; /* it comes again; perhaps there is memory then */
    }
    return rnl_mirror_frames(link->mirror, at, bytes, number);
}

static void *take_memory(void *ctx, size_t bytes)
{
    (void)ctx;
    return malloc(bytes);
}

static void give_memory(void *ctx, void *at, size_t bytes)
{
    (void)ctx, (void)bytes;
    free(at);
}

static void path(void *ctx, const struct rnl_path_word *word)
{
    const struct rnl_link *link = ctx;
    link->remote->word = *word;
    link->remote->has_word = 1;
}

/* All peers that do not rest may send at once. A few packets each are let through in any case: else with very many
 * peers nobody could send. */
static uint32_t window(void *ctx)
{
    const struct rnl_link *link = ctx;
    const struct rnl_remote *r = link->remote;
    uint32_t share = r->window / (r->awake ? r->awake : 1);
    uint32_t least = WINDOW_LEAST * (rnl_flow_mtu(&link->flow) + r->config.buffer_bytes);
    return share > least ? share : least;
}

static const struct rnl_flow_ops flow_ops = {.fill = fill,
                                             .acked = acked,
                                             .lost = lost,
                                             .frames = frames,
                                             .alloc = take_memory,
                                             .free = give_memory,
                                             .path = path,
                                             .window = window};

/* ---- beginning and end ---- */

int rnl_link_new(struct rnl_remote *r, struct rnl_conn *conn, struct rnl_link **out)
{
    struct rnl_link *link = calloc(1, sizeof *link);
    if (!link)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the link to rank %u (%zu bytes)", conn->rank, sizeof *link);
    struct rnl_place place = {0};
    struct rnl_addr addr = {0};
    (void)r->ep->env->ops->place(r->ep->env, conn->rank, &place);
    addr.len = place.addr_bytes;
    memcpy(addr.bytes, place.addr, place.addr_bytes);
    int status = r->t->ops->connect(r->t, conn->rank, &addr, place.incarnation);
    if (status < 0) {
        free(link);
        return status;
    }
    link->remote = r;
    link->conn = conn;
    link->same_kernel = place.same_kernel;
    status = rnl_link_ways_new(link);
    if (status < 0) {
        (void)r->t->ops->disconnect(r->t, conn->rank);
        free(link);
        return status;
    }
    rnl_hs_peer_init(&r->hs, &link->hs, conn->rank, place.incarnation);
    link->hs.refused = r->ep->peer[conn->rank].buried;
    link->mirror = conn->pair.own;
    rnl_mirror_init(link->mirror, &conn->pair);
    rnl_link_awakes(link);
    *out = link;
    return 0;
}

uint64_t rnl_conn_settled(const struct rnl_conn *conn)
{
    const struct rnl_mirror *m = conn->pair.own; /* NULL: in memory words do not overtake, or all rests */
    return m ? rnl_mirror_settled(m) : conn->pair.tx[0].acked;
}

static void end_flow(struct rnl_link *link)
{
    if (link->flows)
        rnl_flow_fini(&link->flow);
    link->flows = link->up = 0;
}

/* The peer is gone, as far as this link can tell. */
static void gone(struct rnl_link *link, int why)
{
    struct rnl_endpoint *ep = link->remote->ep;
    if (link->over)
        return;
    link->over = 1;
    rnl_hs_end(&link->hs, 1);
    if (why == RNL_DEATH_SILENT) {
        end_flow(link); /* nothing is sent to it any more; what it sends is answered as of a connection unknown */
        rnl_ep_part(ep, link->conn->rank, why);
    }
    rnl_ep_died(ep, link->conn->rank, why, 0);
}

/* No connection came about: whoever asks for the peer is told what rnl_last_error says now. */
static void failed(struct rnl_link *link)
{
    if (!link->why)
        link->why = strdup(rnl_last_error()->text); /* without memory a general sentence is all there is */
    gone(link, RNL_DEATH_SILENT);
}

const char *rnl_remote_why(const struct rnl_conn *conn)
{
    return conn && conn->link ? conn->link->why : NULL;
}

void rnl_remote_part(struct rnl_conn *conn, int broken)
{
    struct rnl_link *link = conn->link;
    struct rnl_remote *r = link->remote;
    if (link->over)
        return;
    uint64_t now = r->ep->env->ops->now_ns(r->ep->env);
    if (link->up) {
        rnl_flow_close(&link->flow, broken ? RNL_CLOSE_BROKEN : RNL_CLOSE_LEAVES, 0, now);
        (void)rnl_link_output(link, 0, now, 1);
        (void)r->t->ops->flush(r->t, now);
    }
    link->over = 1;
    rnl_hs_end(&link->hs, 1);
}

/* Datagrams as long as a run: both sides have one packet to do for it, not many. Loopback takes them; what does not is
 * found out by the search, as with all sizes. */
static void set_near(struct rnl_remote *r)
{
    unsigned last = RNL_MTU_SIZES - 1;
    r->config_near = r->config;
    r->config_near.congest.near_ns = r->near_ns;
    while (last > 0 && r->config.mtu[last - 1] == 0)
        last--;
    r->config_near.mtu[last] = RNL_REMOTE_MTU_NEAR;
}

static void begin_flow(struct rnl_link *link, const struct rnl_hs_made *made, uint64_t now_ns)
{
    struct rnl_remote *r = link->remote;
    struct rnl_keys keys;
    r->limits = rnl_key_limits_default(made->suite);
    rnl_keys_init(&keys, made->suite, made->tx, made->rx, &r->limits);
    if (link->same_kernel)
        set_near(r);
    const struct rnl_flow_setup setup = {.config = link->same_kernel ? &r->config_near : &r->config,
                                         .ops = &flow_ops,
                                         .path = &link->path,
                                         .count = r->count,
                                         .ctx = link,
                                         .connection = made->tx_connection,
                                         .window_bytes = made->window_bytes,
                                         .mtu_bytes = made->mtu_bytes,
                                         .peer_ack_delay_ns = made->ack_delay_ns,
                                         .sealer = &r->sealer,
                                         .first_number = made->first_number,
                                         .first_control = made->first_control,
                                         .keys = &keys};
    rnl_flow_init(&link->flow, &setup, now_ns);
    rnl_keys_wipe(&keys);
    link->flows = 1;
}

static void confirmed(struct rnl_link *link)
{
    link->up = 1;
    if (link->mirror && rnl_mirror_unsaid(link->mirror))
        rnl_flow_want(&link->flow);
    rnl_remote_mark(link, RNL_LINK_PRESSES);
}

/* What a step of the handshake has brought about. A connection on which nothing was taken in may end and come again;
 * one that was up may not: what was on its way would be lost. */
static void step_done(struct rnl_link *link, const struct rnl_hs_step *step, uint64_t now_ns)
{
    if (step->events & RNL_HS_GONE) {
        int was_up = link->up;
        end_flow(link);
        if (was_up) {
            gone(link, RNL_DEATH_SILENT);
            return;
        }
    }
    if (step->events & RNL_HS_CONNECTED)
        begin_flow(link, &step->made, now_ns);
    if (step->events & RNL_HS_CONFIRMED)
        confirmed(link);
    if (step->events & RNL_HS_FAILED)
        failed(link);
    rnl_remote_due(link, rnl_hs_deadline(&link->hs));
}

void rnl_link_want(struct rnl_link *link, uint64_t now_ns)
{
    if (link->flows) {
        rnl_flow_want(&link->flow);
    } else if (link->hs.state == RNL_HS_IDLE) {
        struct rnl_remote *r = link->remote;
        struct rnl_place place = {0};
        (void)r->ep->env->ops->place(r->ep->env, link->conn->rank, &place);
        if (rnl_hs_open(&r->hs, &link->hs, place.addr, place.addr_bytes, now_ns) < 0)
            failed(link);
    }
}

/* ---- in ---- */

/* A packet came from where that rank lives, and only from there: *known is the first of its addresses. For the
 * handshake all are one: had each a nonce of its own, two that begin at once could have different pairs. */
static int from_its_place(struct rnl_remote *r, uint32_t rank, const struct rnl_view *v, struct rnl_addr *known)
{
    struct rnl_addr from;
    return r->t->ops->source(r->t, v, &from) == 0 && rnl_link_is_of(r, rank, &from, known);
}

/* The connection is up just now, and its first packet goes in this turn: that says as much as the answer would, and the
 * peer's first packet can then acknowledge it. If it is lost, the peer's next HELLO is answered. */
static int speaks_itself(const struct rnl_link *link, const struct rnl_hs_step *step)
{
    return step->events & RNL_HS_CONFIRMED && link->up && !link->over && !link->ways && link->flow.wanted &&
           !RNL_RARELY("an answer goes beside the first packet");
}

void rnl_link_hello(struct rnl_remote *r, struct rnl_link *link, const struct rnl_view *v, uint64_t now_ns)
{
    unsigned char out[RNL_HELLO_BYTES];
    struct rnl_hs_step step;
    struct rnl_addr from;
    uint32_t rank = rnl_hs_claims(&r->hs, v->at, v->bytes);
    if (rank == UINT32_MAX || (link && link->over) || !from_its_place(r, rank, v, &from)) {
        r->ep->c->strays++;
        return;
    }
    rnl_hs_input(&r->hs, link ? &link->hs : NULL, v->at, v->bytes, from.bytes, from.len, now_ns, out, sizeof out,
                 &step);
    if (step.events & RNL_HS_NEEDS_PEER) {
        struct rnl_conn *conn;
        if (rnl_ep_accept(r->ep, rank, &conn) < 0)
            return; /* it asks again */
        link = conn->link;
        rnl_hs_input(&r->hs, &link->hs, v->at, v->bytes, from.bytes, from.len, now_ns, out, sizeof out, &step);
    }
    if (link) {
        step_done(link, &step, now_ns);
        if (step.events & RNL_HS_CONNECTED)
            rnl_link_aim_at(link, v);
    }
    /* Another process of that rank, when the one before it is dead for us: it is not told that it has a connection. */
    if (step.bytes && !(link && ((link->over && step.events & RNL_HS_GONE) || speaks_itself(link, &step))))
        rnl_remote_answer(r, v, out, step.bytes, now_ns);
    rnl_wipe(&step.made, sizeof step.made); /* keys */
}

void rnl_link_input(struct rnl_link *link, const struct rnl_view *v, uint64_t now_ns)
{
    struct rnl_endpoint *ep = link->remote->ep;
    unsigned ecn = v->flags & RNL_VIEW_CE ? 3 : v->flags & RNL_VIEW_ECT ? 2 : 0;
    int status = rnl_flow_input(&link->flow, (unsigned char *)(uintptr_t)v->at, v->bytes, ecn, now_ns);
    if (status < 0) {
        (void)rnl_ep_broken(ep, link->conn, "packets that cannot be, or frames");
        return;
    }
    if (status == RNL_FLOW_NEW && rnl_hs_heard(&link->hs) == RNL_HS_CONFIRMED)
        confirmed(link);
    if (status == RNL_FLOW_NEW)
        rnl_link_ways_input(link, v, now_ns);
    if (link->mirror) {
        if (link->mirror->came & RNL_MIRROR_LINES)
            rnl_ep_warm(ep, link->conn);
        link->mirror->came = 0;
    }
    rnl_remote_mark(link, rnl_flow_presses(&link->flow) ? RNL_LINK_PRESSES : RNL_LINK_CAN_WAIT);
}

void rnl_link_unknown(struct rnl_link *link, const struct rnl_view *v, uint64_t now_ns)
{
    struct rnl_remote *r = link->remote;
    uint64_t number;
    unsigned control;
    if (rnl_hs_unknown_said(&r->hs, &link->hs, link->flow.connection, v->at, v->bytes, now_ns, &number, &control) ==
            1 &&
        (control ? rnl_link_challenged(link, v, number) : rnl_flow_in_flight(&link->flow, number))) /* it has seen it */
        gone(link, RNL_DEATH_SILENT);
    rnl_remote_due(link, rnl_hs_deadline(&link->hs));
}

/* ---- out ---- */

static void send_hello(struct rnl_link *link, uint64_t now_ns)
{
    struct rnl_remote *r = link->remote;
    struct rnl_hs_step step;
    unsigned char out[RNL_HELLO_BYTES];
    rnl_hs_output(&r->hs, &link->hs, now_ns, out, sizeof out, &step);
    if (step.bytes)
        (void)rnl_link_hello_send(link, out, step.bytes, now_ns); /* no room: as if it were lost */
    step_done(link, &step, now_ns);
}

static void mark_ecn(struct rnl_link *link)
{
    struct rnl_transport *t = link->remote->t;
    uint8_t ecn = rnl_flow_ecn(&link->flow) != 0;
    if (ecn == link->ecn || !(t->caps & RNL_CAP_ECN))
        return;
    link->ecn = ecn;
    (void)t->ops->mark(t, link->conn->rank, ecn);
}

/* One more than what there is to say takes, so that it is seen to be all. */
static int rooms_for(const struct rnl_link *link, uint32_t bytes)
{
    if (RNL_RARELY("a batch of one"))
        return 1;
    if (!link->mirror || link->mirror->lost_count)
        return BATCH;
    uint32_t piled = rnl_mirror_piled(link->mirror, (BATCH - 2) * bytes);
    return RNL_LIKELY(piled < bytes) ? 2 : 2 + (int)(piled / bytes);
}

/* How many datagrams it may give out in one turn. They are full runs, for each run costs both sides the way through the
 * kernel; and while more is being composed, what would make a short one waits for it. */
static int turn_of(const struct rnl_link *link, uint64_t piled)
{
    uint32_t bytes = rnl_flow_mtu(&link->flow), run = RUN_BYTES / bytes;
    if (run > RUN_MOST)
        run = RUN_MOST;
    uint64_t runs = RUN_MOST / run, full = piled / (bytes * run);
    if (runs > TURN_RUNS)
        runs = TURN_RUNS;
    if (full > 0 && full < runs)
        runs = full;
    return (int)(runs * run);
}

/* Up to a batch, of most_packets: how many into *put. 1 = there may be more; 0 = nothing; RNL_NO_ROOM. */
static int put_batch(struct rnl_link *link, int most_packets, int *put, uint64_t now_ns)
{
    struct rnl_transport *t = link->remote->t;
    struct rnl_room room[BATCH];
    uint32_t used[BATCH] = {0}, rank = link->conn->rank, bytes = rnl_flow_mtu(&link->flow);
    uint32_t most = t->ops->mtu(t, rank);
    if (bytes > most) { /* that of our own host has become smaller */
        RNL_SOMETIMES(1, "the host sends less than the flow knows");
        rnl_flow_too_big(&link->flow, bytes, now_ns);
        bytes = rnl_flow_mtu(&link->flow);
    }
    if (link->flow.mtu.due_ns <= now_ns)
        bytes = most; /* room to ask whether larger ones pass */
    else
        bytes &= ~31u; /* rooms begin at multiples of 8: full packets lie behind one another; 32: rnl_copy_trips */
    int rooms = rooms_for(link, bytes), k = 0;
    *put = 0;
    int ends = 0, n = t->ops->reserve(t, rank, 0, bytes, room, rooms < most_packets ? rooms : most_packets);
    if (n <= 0)
        return RNL_NO_ROOM;
    int more = 1;
    while (more && k < n && (used[k] = rnl_flow_output(&link->flow, room[k].at, room[k].bytes, now_ns)) > 0) {
        if (RNL_UNLIKELY(rnl_link_ways_ends(link, room[k].at, used[k])))
            ends = 1;
        k++;
        more = rnl_flow_has_more(&link->flow, now_ns);
    }
    mark_ecn(link);
    (void)t->ops->commit(t, rank, 0, room, used, n, now_ns);
    if (ends)
        rnl_link_ways_end(link, now_ns);
    *put = k;
    return more && k == n;
}

/* Something that we sent has not been read. */
static int unread(struct rnl_conn *conn)
{
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_tx *t = &conn->pair.tx[lane];
        if (t->acked < t->pos)
            (void)!rnl_tx_refresh(t, NULL, NULL);
        if (t->acked < t->pos)
            return 1;
    }
    return 0;
}

/* It has ended the connection. Where all leave together, and it has read everything, that is what was agreed. */
static void left(struct rnl_link *link)
{
    struct rnl_endpoint *ep = link->remote->ep;
    if (ep->closing && (!link->mirror || !unread(link->conn)))
        return;
    RNL_SOMETIMES(1, "a peer that lives ends the connection");
    if (!link->why)
        link->why = strdup("it has ended the connection: it took this process for dead, or left without the others");
    gone(link, RNL_DEATH_PARTED);
}

static void look_at_state(struct rnl_link *link)
{
    switch (rnl_flow_state(&link->flow)) {
    case RNL_FLOW_DRAINING:
    case RNL_FLOW_CLOSED:
        if (link->flow.peer_reason == RNL_CLOSE_BROKEN)
            gone(link, RNL_DEATH_PARTED);
        else
            left(link);
        break;
    case RNL_FLOW_DEAD:
        gone(link, RNL_DEATH_SILENT);
        break;
    default:
        break;
    }
}

/* One message and nothing else to say or to do: the same packet as below, with less ado. 0 = it is not so. */
static int put_lone(struct rnl_link *link, uint64_t now_ns)
{
    struct rnl_transport *t = link->remote->t;
    struct rnl_flow *f = &link->flow;
    uint32_t bytes = rnl_flow_mtu(f) & ~7u, rank = link->conn->rank;
    if (!link->up || f->sent.count || !f->wanted || link->ways || link->untold || link->ecn || !link->mirror ||
        link->mirror->lost_count || link->remote->awake > link->remote->few || rnl_hs_deadline(&link->hs) <= now_ns ||
        !t->ops->lone || rnl_flow_mtu(f) > t->ops->mtu(t, rank) || rnl_flow_ecn(f) ||
        RNL_RARELY("a lone one goes with others"))
        return 0;
    if (rnl_mirror_piled(link->mirror, bytes) + LONE_SPARE > bytes)
        return 0; /* perhaps more than one packet */
    unsigned char *at = t->ops->lone(t, rank, bytes);
    struct rnl_flow_alone alone;
    uint32_t used = at ? rnl_flow_lone(f, at, bytes, now_ns, &alone) : 0;
    if (used) {
        t->ops->go(t, rank, at, used, now_ns);
        rnl_flow_lone_went(f, &alone, now_ns);
    }
    return used != 0;
}

int rnl_link_output(struct rnl_link *link, uint64_t piled, uint64_t now_ns, int last)
{
    int more = 1, lone = piled == 0 && last && put_lone(link, now_ns);
    if (!link->up || rnl_flow_state(&link->flow) == RNL_FLOW_SUSPECT)
        rnl_link_ask_others(link, now_ns);
    if (!link->over && rnl_hs_deadline(&link->hs) <= now_ns)
        send_hello(link, now_ns);
    if (link->ways && link->up)
        rnl_link_ways_step(link, now_ns);
    if (!link->up) {
        if (!link->over) /* who has its turn is in no heap any more */
            rnl_remote_due(link, rnl_hs_deadline(&link->hs));
        return 0;
    }
    if (link->remote->awake > link->remote->few)
        rnl_link_tell(link);
    uint64_t owes_ns = rnl_flow_owes_ns(&link->flow);
    if (link->untold && (owes_ns <= now_ns || owes_ns == UINT64_MAX)) {
        link->untold = 0;
        rnl_flow_want(&link->flow);
    }
    if (lone ? !rnl_flow_has_more(&link->flow, now_ns) : !rnl_flow_has_output(&link->flow, now_ns))
        more = 0;
    if (more) {
        for (int left = turn_of(link, piled), put; more > 0 && left > 0; left -= put)
            more = put_batch(link, left, &put, now_ns);
        if (last)
            (void)link->remote->t->ops->flush(link->remote->t, now_ns); /* first of all, then our own affairs */
        (void)rnl_flow_has_output(&link->flow, now_ns);
    }
    if (!link->over)
        look_at_state(link);
    if (!link->flows)
        return 0;
    rnl_remote_due(link, rnl_flow_deadline(&link->flow));
    return more != 0;
}
