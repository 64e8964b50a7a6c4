/* SPDX-License-Identifier: BSD-3-Clause
 *
 * output.c - how one remote connection sends: what comes before its flow's turn, the rooms of the transport for it, and
 * the end of the flow. */
#include "base/bug.h"
#include "base/sometimes.h"
#include "remote/remote_internal.h"

enum {
    BATCH_LOST = 16,   /* rooms for a batch after a loss, when it is not known how much there is to send */
    SINGLE_SPARE = 300 /* bytes of a packet for all but cells: header, ACK block, credit words, tag */
};

/* ---- the transport, as the flow sees it ---- */

static uint32_t port_mtu(void *ctx)
{
    const struct rnl_remote_conn *rc = ctx;
    struct rnl_transport *t = rc->remote->t;
    return t->ops->mtu(t, rc->rank);
}

/* Returns how many rooms to reserve: one more than the content needs, so that a fill finds nothing left. */
static int rooms_for(const struct rnl_remote_conn *rc, uint32_t bytes)
{
    if (RNL_BUGGIFY("a batch of one"))
        return 1;
    if (!rc->replica || rc->replica->lost_count)
        return BATCH_LOST;
    uint32_t backlog = rnl_replica_backlog(rc->replica, (BATCH_LOST - 2) * bytes);
    return RNL_LIKELY(backlog < bytes) ? 2 : 2 + (int)(backlog / bytes);
}

static int port_reserve(void *ctx, uint32_t bytes, struct rnl_room *room, int most)
{
    struct rnl_remote_conn *rc = ctx;
    struct rnl_transport *t = rc->remote->t;
    int rooms = rooms_for(rc, bytes);
    return t->ops->reserve(t, rc->rank, bytes, room, rooms < most ? rooms : most);
}

static void port_commit(void *ctx, const struct rnl_room *room, const uint32_t *used, int n, bool ecn, uint64_t now_ns)
{
    struct rnl_remote_conn *rc = ctx;
    struct rnl_transport *t = rc->remote->t;
    bool ends = false;
    for (int i = 0; RNL_UNLIKELY(rc->paths != NULL) && i < n && used[i]; i++)
        ends |= rnl_remote_paths_close(rc, room[i].at, used[i]);
    (void)t->ops->commit(t, rc->rank, room, used, n, ecn, now_ns);
    if (ends)
        rnl_remote_paths_send_close(rc, now_ns);
}

static unsigned char *port_reserve_one(void *ctx, uint32_t bytes)
{
    struct rnl_remote_conn *rc = ctx;
    struct rnl_transport *t = rc->remote->t;
    if (rc->paths || !rc->replica || rc->replica->lost_count || rc->remote->active_count > rc->remote->active_few ||
        !t->ops->reserve_one || rnl_flow_mtu(&rc->flow) > t->ops->mtu(t, rc->rank) ||
        rnl_replica_backlog(rc->replica, bytes) + SINGLE_SPARE > bytes) /* perhaps more than one packet */
        return NULL;
    return t->ops->reserve_one(t, rc->rank, bytes);
}

static void port_send_one(void *ctx, const unsigned char *at, uint32_t used, uint64_t now_ns)
{
    struct rnl_remote_conn *rc = ctx;
    struct rnl_transport *t = rc->remote->t;
    t->ops->send_one(t, rc->rank, at, used, now_ns);
}

static void port_flush(void *ctx, uint64_t now_ns)
{
    struct rnl_remote_conn *rc = ctx;
    struct rnl_transport *t = rc->remote->t;
    (void)t->ops->flush(t, now_ns);
}

static const struct rnl_flow_port port = {.mtu = port_mtu,
                                          .reserve = port_reserve,
                                          .commit = port_commit,
                                          .reserve_one = port_reserve_one,
                                          .send_one = port_send_one,
                                          .flush = port_flush};

/* ---- the connection ---- */

bool rnl_remote_all_read(struct rnl_remote_conn *rc)
{
    for (unsigned lane = 0; rc->replica && lane < RNL_LANES; lane++) {
        struct rnl_tx *t = &rc->channel->tx[lane];
        if (t->acked < t->pos)
            (void)!rnl_tx_refresh(t, NULL, NULL);
        if (t->acked < t->pos)
            return false;
    }
    return true;
}

/* Whether the peer acknowledges nothing of what it is sent for as long as makes a silent one dead. Its own packets may
 * arrive meanwhile: then the way to it is cut and the one from it is not. Each step counts for at most a turn that is
 * a little late, since this process may not have run. */
static bool is_cut_off(struct rnl_remote_conn *rc, uint64_t now_ns)
{
    const struct rnl_flow_config *config = rc->flow.config;
    const uint64_t stuck_ns = rnl_flow_stuck_ns(&rc->flow, now_ns);
    const uint64_t late_ns = config->max_pto_ns + config->suspect_ns / 8, passed_ns = now_ns - rc->cut_at_ns;
    rc->cut_at_ns = now_ns;
    rc->cut_ns += passed_ns < late_ns ? passed_ns : late_ns;
    if (rc->cut_ns > stuck_ns)
        rc->cut_ns = stuck_ns;
    if (!config->dead_ns || rc->cut_ns < config->dead_ns)
        return false;
    rnl_remote_attest(rc, now_ns);
    const uint64_t attested_ns = rc->flow.attested_ns;
    if (now_ns - attested_ns < rc->cut_ns)
        rc->cut_ns = now_ns - attested_ns;
    return rc->cut_ns >= config->dead_ns;
}

static void look_at_state(struct rnl_remote_conn *rc, uint64_t now_ns)
{
    switch (rnl_flow_state(&rc->flow)) {
    case RNL_FLOW_DRAINING:
    case RNL_FLOW_CLOSED:
        if (rc->flow.peer_reason == RNL_CLOSE_BROKEN)
            rnl_remote_lose(rc, RNL_DEATH_DISCONNECTED);
        else
            rnl_remote_raise(rc, RNL_REMOTE_LEFT);
        break;
    case RNL_FLOW_DEAD:
        rnl_remote_lose(rc, RNL_DEATH_SILENT);
        break;
    default:
        if (RNL_UNLIKELY(rc->flow.timeouts || rc->cut_ns) && is_cut_off(rc, now_ns))
            rnl_remote_lose(rc, RNL_DEATH_SILENT);
    }
}

bool rnl_remote_output(struct rnl_remote_conn *rc, uint64_t backlog, uint64_t now_ns, bool last)
{
    struct rnl_remote *r = rc->remote;
    struct rnl_flow_want want = {
        .backlog = backlog, .single = backlog == 0 && last && !rc->advertise_pending, .flush = last};
    if (!rc->established || rnl_flow_state(&rc->flow) == RNL_FLOW_SUSPECT)
        rnl_remote_attest(rc, now_ns);
    if (RNL_UNLIKELY(rnl_hs_deadline(&rc->hs) <= now_ns) && !rc->closed)
        rnl_remote_step_handshake(rc, now_ns);
    const bool stripes = rc->paths && rc->established && !rc->closed;
    if (rc->paths && rc->established)
        rnl_remote_paths_step(rc, now_ns);
    if (stripes)
        rnl_remote_stripes_step(rc, now_ns);
    if (!rc->established) {
        if (!rc->closed) /* a connection that has its turn is not in the heap any more */
            rnl_remote_due(rc, rnl_hs_deadline(&rc->hs));
        return false;
    }
    if (r->active_count > r->active_few)
        rnl_remote_update_credit(rc);
    uint64_t due_ns, owes_ns = rnl_flow_owes_ns(&rc->flow);
    if (rc->advertise_pending && (owes_ns <= now_ns || owes_ns == UINT64_MAX)) {
        rc->advertise_pending = 0;
        rnl_flow_has_data(&rc->flow);
    }
    bool more = rnl_flow_turn(&rc->flow, &port, &want, now_ns, &due_ns);
    if (stripes && rc->paths->stripes)
        more |= rnl_remote_stripes_turn(rc, last, now_ns, &due_ns);
    if (!rc->closed)
        look_at_state(rc, now_ns);
    if (!rc->has_flow)
        return false;
    rnl_remote_due(rc, due_ns);
    return more;
}

unsigned rnl_remote_disconnect(struct rnl_remote_conn *rc, bool broken)
{
    struct rnl_remote *r = rc->remote;
    if (rc->closed)
        return rnl_remote_result(r);
    uint64_t now = r->env->ops->now_ns(r->env);
    if (rc->established) {
        rnl_flow_close(&rc->flow, broken ? RNL_CLOSE_BROKEN : RNL_CLOSE_LEAVES, 0, now);
        (void)rnl_remote_output(rc, 0, now, true);
        (void)r->t->ops->flush(r->t, now);
    } else {
        rnl_remote_end_flow(rc);
    }
    rc->closed = 1;
    rnl_hs_end(&rc->hs, 1);
    return rnl_remote_result(r);
}
