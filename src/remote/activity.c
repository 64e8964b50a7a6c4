/* SPDX-License-Identifier: BSD-3-Clause
 *
 * activity.c - which connections are active, which are idle and may hibernate, and which silent peers the agents
 * attest; and whether all flows to a peer rest, and how much they may have in flight. The active connections lie in a
 * list, each with a time at which it was surely not idle yet. So a walk over the list touches only those that may be
 * idle now, and no memory that has left the caches since. */
#include "base/bug.h"
#include "base/sometimes.h"
#include "remote/remote_internal.h"

#define STILL_LEAST_NS ((uint64_t)100 * 1000)
enum {
    AHEAD = 4,       /* places ahead at which connections that may be idle are prefetched */
    WINDOW_LEAST = 2 /* packets */
};

void rnl_remote_add_active(struct rnl_remote_conn *rc)
{
    struct rnl_remote *r = rc->remote;
    r->active[r->active_count++] = (struct rnl_remote_awake){0, rc}; /* there is a place for each rank */
    r->activated++;
    rc->active = r->active_count;
}

void rnl_remote_retire(struct rnl_remote_conn *rc)
{
    struct rnl_remote *r = rc->remote;
    if (!rc->active)
        return;
    struct rnl_remote_awake last = r->active[--r->active_count];
    r->active[rc->active - 1] = last;
    last.rc->active = rc->active;
    rc->active = 0;
}

/* ---- hibernation ---- */

/* Returns how long a connection must be idle before it may hibernate, in ns. The more connections are active, the
 * shorter that is, so their memory is bounded, whatever connects. Activating one again costs a few us. */
static uint64_t still_enough(const struct rnl_remote *r)
{
    uint64_t over = (uint64_t)r->active_count * 16 / r->active_few, still = r->idle_after_ns;
    if (over > 16)
        still = still * 256 / (over * over);
    return still > STILL_LEAST_NS ? still : STILL_LEAST_NS;
}

bool rnl_remote_may_hibernate(struct rnl_remote_conn *rc)
{
    if (!rc->replica || !rc->established || rc->closed || rc->scheduled || !rnl_remote_flows_idle(rc) ||
        !rnl_replica_can_hibernate(rc->replica, &rc->rest))
        return false;
    return rnl_remote_flows_rest(rc);
}

void rnl_remote_hibernate(struct rnl_remote_conn *rc)
{
    rnl_remote_not_due(rc);
    rnl_channel_hibernate(rc->channel, rc->words);
    rc->replica = NULL; /* it was part of the pair */
    rnl_remote_retire(rc);
    RNL_SOMETIMES(1, "a link rests");
}

int rnl_remote_activate(struct rnl_remote_conn *rc)
{
    if (rc->replica)
        return 0;
    int status = rnl_channel_resume(rc->channel, rc->words);
    if (status < 0)
        return status;
    rc->replica = rc->channel->own;
    rnl_remote_add_active(rc);
    rnl_replica_activate(rc->replica, rc->channel, &rc->rest);
    RNL_SOMETIMES(1, "a link wakes");
    return 1;
}

int rnl_remote_frames(struct rnl_remote_conn *rc, const unsigned char *at, uint32_t bytes, uint64_t number)
{
    int woken = RNL_BUGGIFY("no memory for a packet") ? RNL_ERR_NO_MEMORY : rnl_remote_activate(rc);
    if (woken < 0) {
        rc->remote->c->connects_failed++;
        return RNL_NO_ROOM; /* it comes again; perhaps there is memory then */
    }
    if (woken)
        rnl_remote_raise(rc, RNL_REMOTE_ACTIVE);
    return rnl_replica_apply(rc->replica, at, bytes, number);
}

void rnl_remote_update_credit(struct rnl_remote_conn *rc)
{
    for (unsigned lane = 0; rc->replica && lane < RNL_LANES; lane++) {
        struct rnl_rx *r = &rc->channel->rx[lane];
        if (!rnl_rx_unadvertised(r))
            continue;
        rnl_rx_advertise(r);
        r->wake_check_due = 0; /* this does what ringing a bell would do */
        rc->advertise_pending = 1;
    }
}

static void fetch(const struct rnl_remote_awake *a, uint64_t now_ns, uint64_t still_ns)
{
    if (now_ns - a->moved_ns < still_ns)
        return;
    __builtin_prefetch(&a->rc->established);
    __builtin_prefetch(&a->rc->flow.last_sent_ns);
    __builtin_prefetch(&a->rc->flow.received.largest_ns);
    __builtin_prefetch(&a->rc->flow.sent.count);
}

void rnl_remote_find_idle(struct rnl_remote *r, uint64_t now_ns)
{
    uint64_t still = still_enough(r);
    if (now_ns < r->idle_ns && r->idle_ns - now_ns <= still)
        return;
    r->idle_ns = now_ns + still;
    r->activated = 0;
    for (uint32_t i = 0; i < r->active_count; i++) {
        struct rnl_remote_conn *rc = r->active[i].rc;
        if (i + AHEAD < r->active_count)
            fetch(&r->active[i + AHEAD], now_ns, still);
        if (now_ns - r->active[i].moved_ns < still)
            continue;
        if (r->active_count > r->active_few) { /* else its peer keeps what has been read, and neither can hibernate */
            rnl_remote_update_credit(rc);
            if (rc->advertise_pending && rc->established && !rc->closed && rnl_flow_owes_ns(&rc->flow) == UINT64_MAX) {
                rnl_flow_has_data(&rc->flow);
                rnl_remote_schedule(rc, RNL_REMOTE_CAN_WAIT);
            }
        }
        uint64_t moved = rc->established ? rnl_flow_moved_ns(&rc->flow) : now_ns;
        r->active[i].moved_ns = moved;
        if (now_ns - moved >= still && rnl_remote_may_hibernate(rc))
            rnl_remote_raise(rc, RNL_REMOTE_IDLE);
    }
}

/* ---- attestation ---- */

static uint64_t attested(struct rnl_env *env, uint32_t rank)
{
    return env->ops->liveness && !RNL_BUG(remote_ignores_attestation) ? env->ops->liveness(env, rank) : 0;
}

void rnl_remote_attest(struct rnl_remote_conn *rc, uint64_t now_ns)
{
    struct rnl_remote *r = rc->remote;
    uint64_t when = attested(r->env, rc->rank);
    if (when == 0)
        return;
    if (when > now_ns) /* attested since this turn began */
        when = now_ns;
    if (rc->has_flow)
        rnl_flow_attest(&rc->flow, when);
    if (!rc->established && when + r->hs.config.give_up_ns > rc->hs.give_up_ns)
        rc->hs.give_up_ns = when + r->hs.config.give_up_ns;
}

/* Whether the silence of a peer says anything. Where nobody attests this process either, no agent does so at all, and a
 * peer that computes could not be told from one that is stopped. */
static bool is_probed(struct rnl_env *env, uint32_t rank)
{
    return attested(env, env->rank) || (env->ops->is_unwatched && env->ops->is_unwatched(env, rank));
}

/* A process that only waits for a message would never learn that the peer is stopped or cut off, since it has nothing
 * in flight that could stay unanswered. So an idle peer is probed when no agent has attested it for half of the time
 * after which it would be dead. */
void rnl_remote_probe_idle(struct rnl_remote *r, uint64_t now_ns)
{
    uint64_t quiet = r->config.dead_ns / 2, since = now_ns > quiet ? now_ns - quiet : 0;
    r->probe_ns = r->env->ops->liveness ? now_ns + quiet / 4 : UINT64_MAX;
    for (uint32_t i = 0; i < r->env->size; i++) {
        struct rnl_remote_conn *rc = r->conn[i];
        if (!rc || !rc->established || rc->closed || !is_probed(r->env, i) || attested(r->env, i) > since ||
            !rnl_flow_is_idle_since(&rc->flow, since))
            continue;
        int woken = rnl_remote_activate(rc);
        if (woken < 0)
            continue;
        if (woken)
            rnl_remote_raise(rc, RNL_REMOTE_ACTIVE);
        rnl_flow_ping(&rc->flow);
        rnl_remote_schedule(rc, RNL_REMOTE_URGENT);
    }
}

/* ---- all flows to a peer ---- */

/* All active peers may send at once, on all their flows, but each may send a few packets in any case: else with very
 * many peers nobody could send. */
uint32_t rnl_remote_window(const struct rnl_remote_conn *rc, const struct rnl_flow *flow)
{
    const struct rnl_remote *r = rc->remote;
    uint32_t share = r->window / (r->active_count ? r->active_count : 1);
    uint32_t least = WINDOW_LEAST * (rnl_flow_mtu(flow) + r->config.buffer_bytes);
    if (rc->paths)
        share /= 1u + rc->paths->stripes;
    return share > least ? share : least;
}

bool rnl_remote_may_send(const struct rnl_remote_conn *rc, uint64_t now_ns)
{
    bool may = rnl_flow_may_send(&rc->flow, now_ns);
    for (unsigned k = 0; rc->paths && k < RNL_FLOW_PATHS_MAX - 1 && !may; k++) {
        const struct rnl_remote_stripe *s = rc->paths->stripe[k];
        may = s && s->works && rnl_flow_may_send(&s->flow, now_ns);
    }
    return may;
}

bool rnl_remote_flows_idle(const struct rnl_remote_conn *rc)
{
    bool idle = rnl_flow_idle(&rc->flow);
    for (unsigned k = 0; rc->paths && k < RNL_FLOW_PATHS_MAX; k++) {
        const struct rnl_remote_stripe *s = k ? rc->paths->stripe[k - 1] : NULL;
        idle = idle && (!s || rnl_flow_idle(&s->flow)) &&
               !(rc->replica && rnl_replica_wants(rc->replica, &rc->paths->own[k]));
    }
    return idle;
}

bool rnl_remote_flows_rest(struct rnl_remote_conn *rc)
{
    rnl_flow_relax(&rc->flow);
    bool at_rest = rnl_flow_deadline(&rc->flow) == UINT64_MAX;
    for (unsigned k = 0; rc->paths && k < RNL_FLOW_PATHS_MAX - 1; k++) {
        struct rnl_remote_stripe *s = rc->paths->stripe[k];
        if (!s)
            continue;
        rnl_flow_relax(&s->flow);
        at_rest = at_rest && rnl_flow_deadline(&s->flow) == UINT64_MAX;
    }
    return at_rest;
}
