/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handshake.c - how one remote connection begins and ends: its handshake (net/flow/handshake.h), the flow that
 * results, and what the packets of that flow do to the replica. */
#include "base/bug.h"
#include "base/sometimes.h"
#include "remote/remote_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- operations for the flow ---- */

static uint32_t fill(void *ctx, unsigned char *at, uint32_t room, struct rnl_flow_note *notes, unsigned *count)
{
    struct rnl_remote_conn *rc = ctx;
    *count = 0;
    if (!rc->replica)
        return 0;
    if (RNL_UNLIKELY(rc->paths && rc->paths->stripes && rc->paths->lead))
        return rnl_remote_stripe_fill(rc, 0, at, room, notes, count);
    uint32_t used = rnl_replica_emit(rc->replica, at, room, notes, count);
    if (rc->replica->emitted_all)
        rnl_flow_no_more_data(&rc->flow);
    return used;
}

static void acked(void *ctx, const struct rnl_flow_note *note)
{
    struct rnl_remote_conn *rc = ctx;
    if (rc->replica)
        rnl_replica_acked(rc->replica, note);
}

static void lost(void *ctx, const struct rnl_flow_note *note)
{
    struct rnl_remote_conn *rc = ctx;
    if (rc->replica)
        rnl_replica_lost(rc->replica, note);
}

static int frames(void *ctx, const unsigned char *at, uint32_t bytes, uint64_t number)
{
    return rnl_remote_frames(ctx, at, bytes, number);
}

void *rnl_remote_take_memory(void *ctx, size_t bytes)
{
    (void)ctx;
    return malloc(bytes);
}

void rnl_remote_give_memory(void *ctx, void *at, size_t bytes)
{
    (void)ctx, (void)bytes;
    free(at);
}

static void path(void *ctx, const struct rnl_path_word *word)
{
    const struct rnl_remote_conn *rc = ctx;
    rc->remote->word = *word;
    rc->remote->has_word = 1;
}

static uint32_t window(void *ctx)
{
    const struct rnl_remote_conn *rc = ctx;
    return rnl_remote_window(rc, &rc->flow);
}

static const struct rnl_flow_ops flow_ops = {.fill = fill,
                                             .acked = acked,
                                             .lost = lost,
                                             .frames = frames,
                                             .alloc = rnl_remote_take_memory,
                                             .free = rnl_remote_give_memory,
                                             .path = path,
                                             .window = window};

/* ---- beginning and end ---- */

int rnl_remote_connect(struct rnl_remote *r, uint32_t rank, struct rnl_channel *channel, uint64_t refused,
                       struct rnl_remote_conn **out)
{
    struct rnl_remote_conn *rc = calloc(1, sizeof *rc);
    if (!rc)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the connection to rank %u (%zu bytes)", rank, sizeof *rc);
    struct rnl_rank_address place = {0};
    struct rnl_addr addr[RNL_FLOW_PATHS_MAX] = {{0}};
    (void)r->env->ops->rank_address(r->env, rank, &place);
    if (r->pair_keys && !place.key) {
        free(rc);
        return rnl_fail(RNL_ERR_RANK, "peer %u has no key", rank);
    }
    unsigned addrs = rnl_remote_addresses(r, rank, addr);
    int taken = r->t->ops->add_peer(r->t, rank, addr, addrs ? addrs : 1, place.incarnation);
    if (taken < 0) {
        free(rc);
        return taken;
    }
    rc->remote = r;
    rc->channel = channel;
    rc->rank = rank;
    rc->same_kernel = place.same_kernel;
    int status = rnl_remote_paths_new(rc, addr, addrs, (unsigned)taken);
    if (status < 0) {
        (void)r->t->ops->remove_peer(r->t, rank);
        free(rc);
        return status;
    }
    rnl_hs_peer_init(&r->hs, &rc->hs, rank, place.incarnation);
    rc->hs.refused = refused;
    if (r->pair_keys) {
        rnl_job_keys_derive(&r->pair_keys[rank], place.key);
        rnl_hs_peer_pair(&rc->hs, place.as, &r->pair_keys[rank]);
    }
    rc->replica = channel->own;
    rnl_replica_init(rc->replica, channel);
    rnl_remote_add_active(rc);
    r->conn[rank] = rc;
    *out = rc;
    return 0;
}

void rnl_remote_end_flow(struct rnl_remote_conn *rc)
{
    rnl_remote_stripes_end(rc);
    if (rc->has_flow)
        rnl_flow_fini(&rc->flow);
    rc->has_flow = rc->established = 0;
}

void rnl_remote_conn_free(struct rnl_remote_conn *rc)
{
    rnl_remote_not_due(rc);
    rnl_remote_unqueue(rc);
    rnl_remote_no_events(rc);
    rnl_remote_retire(rc);
    rc->remote->conn[rc->rank] = NULL;
    rnl_remote_end_flow(rc);
    if (rc->remote->pair_keys)
        rnl_wipe(&rc->remote->pair_keys[rc->rank], sizeof *rc->remote->pair_keys);
    free(rc->why);
    free(rc->paths);
    free(rc);
}

void rnl_remote_forget(struct rnl_remote_conn *rc)
{
    struct rnl_remote *r = rc->remote;
    uint32_t rank = rc->rank;
    rnl_hs_peer_drop(&r->hs, &rc->hs);
    rnl_remote_conn_free(rc);
    (void)r->t->ops->remove_peer(r->t, rank); /* it was added, so this cannot fail */
}

/* After silence nothing is sent any more, and what the peer sends is answered as for an unknown connection. After a
 * CLOSE the flow stays, to answer that. */
void rnl_remote_lose(struct rnl_remote_conn *rc, int why)
{
    if (rc->closed)
        return;
    rc->closed = 1;
    rnl_hs_end(&rc->hs, 1);
    if (why == RNL_DEATH_SILENT)
        rnl_remote_end_flow(rc);
    rc->lost_why = (int8_t)why;
    if (!RNL_BUG(remote_loses_in_silence))
        rnl_remote_raise(rc, RNL_REMOTE_LOST);
}

void rnl_remote_abandon(struct rnl_remote_conn *rc)
{
    RNL_SOMETIMES(1, "a peer that lives ends the connection");
    if (!rc->why)
        rc->why = strdup("it has ended the connection: it took this process for dead, or left without the others");
    rc->closed = 1;
    rnl_hs_end(&rc->hs, 1);
}

/* Reports that no connection came about, for the reason that rnl_last_error has now. */
static void fail(struct rnl_remote_conn *rc)
{
    if (!rc->why)
        rc->why = strdup(rnl_last_error()->text); /* without memory a general sentence is all there is */
    rnl_remote_lose(rc, RNL_DEATH_SILENT);
}

/* Sets up datagrams as long as a run for peers on the same kernel: both sides then handle one packet, not many.
 * Loopback takes them; if something does not, the search finds that out, as with all sizes. */
static void set_near(struct rnl_remote *r)
{
    unsigned last = RNL_MTU_SIZES - 1;
    r->config_near = r->config;
    r->config_near.congest.near_ns = r->near_ns;
    while (last > 0 && r->config.mtu[last - 1] == 0)
        last--;
    r->config_near.mtu[last] = RNL_REMOTE_MTU_NEAR;
}

static void begin_flow(struct rnl_remote_conn *rc, const struct rnl_hs_made *made, uint64_t now_ns)
{
    struct rnl_remote *r = rc->remote;
    struct rnl_keys keys;
    r->limits = rnl_key_limits_default(made->suite);
    rnl_keys_init(&keys, made->suite, made->tx, made->rx, &r->limits);
    if (rc->same_kernel)
        set_near(r);
    const struct rnl_flow_setup setup = {.config = rc->same_kernel ? &r->config_near : &r->config,
                                         .ops = &flow_ops,
                                         .path = &rc->path,
                                         .count = r->count,
                                         .ctx = rc,
                                         .connection = made->tx_connection,
                                         .window_bytes = made->window_bytes,
                                         .mtu_bytes = made->mtu_bytes,
                                         .peer_ack_delay_ns = made->ack_delay_ns,
                                         .sealer = &r->sealer,
                                         .first_number = made->first_number,
                                         .first_control = made->first_control,
                                         .keys = &keys};
    rnl_flow_init(&rc->flow, &setup, now_ns);
    rnl_keys_wipe(&keys);
    rnl_remote_stripes_keys(rc, made);
    rc->has_flow = 1;
}

static void confirmed(struct rnl_remote_conn *rc)
{
    rc->established = 1;
    if (rc->replica && rnl_replica_pending(rc->replica))
        rnl_flow_has_data(&rc->flow);
    rnl_remote_schedule(rc, RNL_REMOTE_URGENT);
}

/* Does what a step of the handshake has brought about. A connection on which nothing was taken in may end and begin
 * again; one that was established may not, since what was on its way would be lost. */
static void step_done(struct rnl_remote_conn *rc, const struct rnl_hs_step *step, uint64_t now_ns)
{
    if (step->events & RNL_HS_GONE) {
        bool was_established = rc->established;
        rnl_remote_end_flow(rc);
        if (was_established) {
            rnl_remote_lose(rc, RNL_DEATH_SILENT);
            return;
        }
    }
    if (step->events & RNL_HS_CONNECTED)
        begin_flow(rc, &step->made, now_ns);
    if (step->events & RNL_HS_CONFIRMED)
        confirmed(rc);
    if (step->events & RNL_HS_FAILED)
        fail(rc);
    rnl_remote_due(rc, rnl_hs_deadline(&rc->hs));
}

void rnl_remote_want(struct rnl_remote_conn *rc, uint64_t now_ns)
{
    if (rc->has_flow) {
        rnl_flow_has_data(&rc->flow);
    } else if (rc->hs.state == RNL_HS_IDLE) {
        struct rnl_remote *r = rc->remote;
        struct rnl_rank_address place = {0};
        (void)r->env->ops->rank_address(r->env, rc->rank, &place);
        if (rnl_hs_open(&r->hs, &rc->hs, place.addr, place.addr_bytes, now_ns) < 0)
            fail(rc);
    }
}

void rnl_remote_step_handshake(struct rnl_remote_conn *rc, uint64_t now_ns)
{
    struct rnl_remote *r = rc->remote;
    struct rnl_hs_step step;
    unsigned char out[RNL_HELLO_BYTES];
    rnl_hs_output(&r->hs, &rc->hs, now_ns, out, sizeof out, &step);
    if (step.bytes)
        (void)rnl_remote_hello_send(rc, out, step.bytes, now_ns); /* no room: as if it were lost */
    step_done(rc, &step, now_ns);
}

/* ---- input ---- */

/* Returns true if the connection has just been established, and its first packet goes in this turn. It confirms as much
 * as the reply would, and the peer's first packet can then acknowledge it. If it is lost, the peer's next HELLO is
 * answered. */
static bool first_packet_replies(const struct rnl_remote_conn *rc, const struct rnl_hs_step *step)
{
    return step->events & RNL_HS_CONFIRMED && rc->established && !rc->closed && !rc->paths && rc->flow.wanted &&
           !RNL_BUGGIFY("an answer goes beside the first packet");
}

/* Adds what a HELLO or UNKNOWN was counted as to the counters that other processes read. */
static void count_refused(struct rnl_remote *r, const struct rnl_hs_counters *before)
{
    const struct rnl_hs_counters *now = &r->hs.count;
    r->c->packets_refused += now->forged + now->bad - before->forged - before->bad;
    if (now->taken == before->taken)
        r->c->strays += now->stale + now->strayed + now->version + now->mismatch - before->stale - before->strayed -
                        before->version - before->mismatch;
}

bool rnl_remote_hello(struct rnl_remote *r, struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t now_ns)
{
    unsigned char out[RNL_HELLO_BYTES];
    struct rnl_hs_step step;
    struct rnl_addr from;
    uint32_t rank = rnl_hs_claimed_rank(&r->hs, v->at, v->bytes);
    if (rank == UINT32_MAX || (rc ? rc->closed : r->pair_keys != NULL) || !rnl_remote_is_of(r, rank, v, &from)) {
        r->c->strays++;
        return false;
    }
    const struct rnl_hs_counters before = r->hs.count;
    rnl_hs_input(&r->hs, rc ? &rc->hs : NULL, v->at, v->bytes, from.bytes, from.len, now_ns, out, sizeof out, &step);
    count_refused(r, &before);
    if (step.events & RNL_HS_NEEDS_PEER)
        return true;
    if (rc) {
        step_done(rc, &step, now_ns);
        if (step.events & RNL_HS_CONNECTED)
            rnl_remote_set_active(rc, v);
    }
    /* A new process of that rank, while the one before it is dead for us, gets no reply to confirm a connection. */
    if (step.bytes && !(rc && ((rc->closed && step.events & RNL_HS_GONE) || first_packet_replies(rc, &step))))
        rnl_remote_reply(r, v, out, step.bytes, now_ns);
    rnl_wipe(&step.made, sizeof step.made); /* keys */
    return false;
}

/* Handles a packet that breaks the protocol. It could be opened, so the peer has our keys, and is sent the reason even
 * if this is its first packet. */
static void broken(struct rnl_remote_conn *rc)
{
    if (rnl_hs_confirm(&rc->hs) == RNL_HS_CONFIRMED && !RNL_BUG(remote_first_break_is_not_told))
        confirmed(rc);
    rc->refused = 1;
    rnl_remote_raise(rc, RNL_REMOTE_BROKEN);
}

void rnl_remote_input(struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t now_ns)
{
    unsigned ecn = v->flags & RNL_VIEW_CE ? 3 : v->flags & RNL_VIEW_ECT ? 2 : 0, number = rnl_packet_flow(v->at);
    struct rnl_flow *flow = rnl_remote_flow(rc, number, v, now_ns);
    if (!flow) {
        rc->remote->c->strays++;
        return;
    }
    int status = rnl_flow_input(flow, (unsigned char *)(uintptr_t)v->at, v->bytes, ecn, now_ns);
    if (status < 0) {
        broken(rc);
        return;
    }
    if (status == RNL_FLOW_NEW && rnl_hs_confirm(&rc->hs) == RNL_HS_CONFIRMED)
        confirmed(rc);
    if (status == RNL_FLOW_NEW) {
        rnl_remote_heard(rc, number, v, now_ns);
        if (number == 0)
            rnl_remote_paths_input(rc, v, now_ns);
    }
    if (rc->replica) {
        if (rc->replica->arrived & RNL_REPLICA_LINES)
            rnl_remote_raise(rc, RNL_REMOTE_DATA);
        rc->replica->arrived = 0;
    }
    rnl_remote_schedule(rc, rnl_flow_is_urgent(flow) ? RNL_REMOTE_URGENT : RNL_REMOTE_CAN_WAIT);
}

void rnl_remote_unknown(struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t now_ns)
{
    struct rnl_remote *r = rc->remote;
    uint64_t number;
    unsigned control;
    const struct rnl_hs_counters before = r->hs.count;
    bool said = rnl_hs_unknown_said(&r->hs, &rc->hs, rc->flow.connection, v->at, v->bytes, now_ns, &number, &control);
    count_refused(r, &before);
    if (said &&
        (control ? rnl_remote_challenged(rc, v, number) : rnl_flow_in_flight(&rc->flow, number))) /* not a forgery */
        rnl_remote_lose(rc, RNL_DEATH_SILENT);
    rnl_remote_due(rc, rnl_hs_deadline(&rc->hs));
}

bool rnl_remote_is_with(const struct rnl_remote_conn *rc, uint64_t incarnation)
{
    return !rc->has_flow || rc->hs.incarnation == incarnation;
}

const char *rnl_remote_why(const struct rnl_remote_conn *rc)
{
    return rc ? rc->why : NULL;
}

uint64_t rnl_remote_watermark(const struct rnl_channel *channel)
{
    const struct rnl_replica *m = channel->own; /* NULL: it hibernates, so everything was read and replied to */
    return m ? rnl_replica_watermark(m) : channel->tx[0].acked;
}
