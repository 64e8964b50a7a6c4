/* SPDX-License-Identifier: BSD-3-Clause
 *
 * latency.c - with LATENCY_STATS=1, since it costs each request two readings of the clock, how long answers take: from
 * the call of a request to the handler of its reply, in nanoseconds. A reply has the serial number of its request, so
 * when that was sent is noted by it, for the last NOTED requests to each rank. Requests that nobody replies to are not
 * measured, and none where several bundles, or AM_PAR, make calls lock. */
#include "amudp/amudp_in.h"

#include "endpoint/endpoint.h"

#include <stdlib.h>

enum { NOTED = 1024, SERIAL_BITS = 16 }; /* no more are expected to be unanswered: AMUDP_MAX_NETWORKDEPTH */

struct rnl_amudp_latency {
    struct rnl_env *env;
    uint32_t ranks;
    uint64_t *sent[]; /* by rank; of each request: time << SERIAL_BITS | serial, 0 = none */
};

static uint64_t now_ns(const struct rnl_amudp_latency *l)
{
    return l->env->ops->now_ns(l->env);
}

void rnl_amudp_latency_new(struct amudp_ep *ep)
{
    const rnl_endpoint *rank = rnl_am_get_rank(ep->bundle->core);
    ep->latency = NULL;
    if (rnl_amudp_setting("LATENCY_STATS", 0, 1, 0) == 0)
        return;
    ep->latency = calloc(1, sizeof *ep->latency + rank->size * sizeof ep->latency->sent[0]);
    if (ep->latency == NULL) /* then they are not measured */
        return;
    ep->latency->env = rank->env;
    ep->latency->ranks = rank->size;
}

void rnl_amudp_latency_free(struct amudp_ep *ep)
{
    for (uint32_t i = 0; ep->latency != NULL && i < ep->latency->ranks; i++)
        free(ep->latency->sent[i]);
    free(ep->latency);
    ep->latency = NULL;
}

void rnl_amudp_latency_sends(struct amudp_ep *ep, int dest, uint64_t since_ns)
{
    struct rnl_amudp_latency *l = ep->latency;
    uint32_t rank;
    uint16_t serial;
    if (!rnl_am_next_serial(ep->core, dest, &rank, &serial) || rank >= l->ranks)
        return;
    if (RNL_UNLIKELY(l->sent[rank] == NULL) && (l->sent[rank] = calloc(NOTED, sizeof *l->sent[rank])) == NULL)
        return;
    l->sent[rank][serial % NOTED] = (since_ns != 0 ? since_ns : now_ns(l)) << SERIAL_BITS | serial;
}

void rnl_amudp_latency_answered(struct amudp_ep *ep, const void *token)
{
    struct rnl_amudp_latency *l = ep->latency;
    uint32_t rank;
    uint16_t serial = rnl_am_answer_serial(token, &rank);
    uint64_t *at = rank < l->ranks && l->sent[rank] != NULL ? &l->sent[rank][serial % NOTED] : NULL;
    if (at == NULL || *at == 0 || (uint16_t)*at != serial)
        return;
    uint64_t took = ((now_ns(l) << SERIAL_BITS) - (*at - serial)) >> SERIAL_BITS;
    *at = 0;
    amudp_stats_t *s = &ep->stats;
    s->RequestSumLatency += took;
    if (took < s->RequestMinLatency)
        s->RequestMinLatency = took;
    if (took > s->RequestMaxLatency)
        s->RequestMaxLatency = took;
}
