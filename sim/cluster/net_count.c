/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net_count.c - what happened in the network: counts, how long packets waited, and the tap. No floating point, so that
 * tests can ask for equal numbers. */
#include <stdlib.h>

#include "sim/cluster/net_internal.h"

/* Waits in ns, log-linear: exact below 32, then 32 steps for each doubling, so 3 % wide. */
enum { STEP_BITS = 5, STEPS = 1 << STEP_BITS, WAIT_BUCKETS = (64 - STEP_BITS) * STEPS };

static unsigned bucket_of(uint64_t ns)
{
    if (ns < STEPS)
        return (unsigned)ns;
    unsigned top = 63 - (unsigned)__builtin_clzll(ns), shift = top - STEP_BITS;
    return (shift + 1) * STEPS + (unsigned)(ns >> shift) - STEPS;
}

/* The largest that falls into a bucket. */
static uint64_t top_of(unsigned bucket)
{
    if (bucket < STEPS)
        return bucket;
    unsigned shift = bucket / STEPS - 1;
    return (((uint64_t)STEPS + bucket % STEPS + 1) << shift) - 1;
}

void net_count_wait(struct net_link *l, uint64_t ticks)
{
    l->waits[bucket_of(ticks / VC_TICKS_PER_NS)]++;
}

int vc_net_watch(struct vc_net *net, uint32_t link)
{
    struct net_link *l = net->link[link];
    free(l->waits);
    l->waits = calloc(WAIT_BUCKETS, sizeof *l->waits);
    return l->waits ? 0 : rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the waits of link %u", link);
}

uint64_t vc_net_wait_ns(const struct vc_net *net, uint32_t link, unsigned per_mille)
{
    const uint64_t *waits = net->link[link]->waits;
    uint64_t all = 0, so_far = 0;
    if (!waits)
        return 0;
    for (unsigned i = 0; i < WAIT_BUCKETS; i++)
        all += waits[i];
    if (all == 0)
        return 0;
    uint64_t wanted = all / 1000 * per_mille + all % 1000 * per_mille / 1000;
    for (unsigned i = 0; i < WAIT_BUCKETS; i++) {
        so_far += waits[i];
        if (waits[i] && so_far >= wanted)
            return top_of(i);
    }
    return 0;
}

void vc_net_link_counts(struct vc_net *net, uint32_t link, struct vc_net_link_counts *out)
{
    struct net_link *l = net->link[link];
    uint64_t now = rnl_sim_now(net->sim), ahead = l->free_at > now ? l->free_at - now : 0;
    net_link_settle(l);
    *out = l->counts;
    out->busy_ns = (l->busy - ahead) / VC_TICKS_PER_NS;
    out->queue_bytes = l->queue_bytes;
}

void vc_net_counts(const struct vc_net *net, struct vc_net_counts *out)
{
    *out = net->counts;
}

const char *vc_net_drop_name(unsigned drop)
{
    static const char *const name[VC_NET_DROPS] = {
        "none",      "queue full", "lost by a fault",      "longer than the MTU", "link or host down",
        "partition", "blocked",    "nobody has that port", "receive buffer full", "no route",
        "no memory"};
    return drop < VC_NET_DROPS ? name[drop] : "unknown";
}

void vc_net_set_tap(struct vc_net *net, vc_net_tap *tap, void *arg)
{
    net->tap = tap;
    net->tap_arg = arg;
}

void net_tap(struct vc_net *net, enum vc_net_tap_what what, uint32_t host, const struct net_packet *p,
             const struct net_link *l, enum vc_net_drop why)
{
    if (!net->tap)
        return;
    const struct vc_net_tap_packet seen = {.what = what,
                                           .host = host,
                                           .drop = why,
                                           .link = l ? l->id : UINT32_MAX,
                                           .fault = p->lost,
                                           .from = vc_net_nth_addr(p->from, p->nth, p->from_port),
                                           .to = vc_net_nth_addr(p->to, p->nth, p->to_port),
                                           .ecn = p->ecn,
                                           .at = p->data,
                                           .bytes = p->bytes};
    net->tap(net->tap_arg, &seen);
}
