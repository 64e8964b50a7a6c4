/* SPDX-License-Identifier: BSD-3-Clause
 *
 * link_ask.c - who lives: what the agents say of those that are silent, and what idle peers are asked themselves. */
#include "endpoint/link.h"

static uint64_t vouched(struct rnl_env *env, uint32_t rank)
{
    return env->ops->vouched ? env->ops->vouched(env, rank) : 0;
}

void rnl_link_ask_others(struct rnl_link *link, uint64_t now_ns)
{
    struct rnl_remote *r = link->remote;
    uint64_t when = vouched(r->ep->env, link->conn->rank);
    if (when == 0)
        return;
    if (when > now_ns) /* said since this turn began */
        when = now_ns;
    if (link->flows)
        rnl_flow_vouch(&link->flow, when);
    if (!link->up && when + r->hs.config.give_up_ns > link->hs.give_up_ns)
        link->hs.give_up_ns = when + r->hs.config.give_up_ns;
}

/* Who only waits for its message would never learn that a peer is stopped or cut off: it has nothing under way that
 * could stay without an answer. So an idle peer is asked when nobody has answered for it for half of the time after
 * which it would be dead. Where nobody answers for this process either, there are no agents who do, and a peer that
 * computes could not be told from one that is stopped: it is not asked. */
void rnl_link_ask_idle(struct rnl_endpoint *ep, uint64_t now_ns)
{
    struct rnl_remote *r = ep->remote;
    uint64_t quiet = r->config.dead_ns / 2, since = now_ns > quiet ? now_ns - quiet : 0;
    r->ask_ns = ep->env->ops->vouched ? now_ns + quiet / 4 : UINT64_MAX;
    if (!vouched(ep->env, ep->rank))
        return;
    for (uint32_t i = 0; i < ep->size; i++) {
        struct rnl_conn *conn = ep->peer[i].conn;
        struct rnl_link *link = conn ? conn->link : NULL;
        if (!link || !link->up || link->over || vouched(ep->env, i) > since || !rnl_flow_quiet(&link->flow, since) ||
            rnl_remote_wake(ep, conn) < 0)
            continue;
        rnl_flow_ask(&link->flow);
        rnl_remote_mark(link, RNL_LINK_PRESSES);
    }
}
