/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - a virtual host's clock. Integers only: a clock shows the same on every machine. */
#include "sim/cluster/cluster_internal.h"

#include "sim/engine/engine.h"
#include "sim/engine/random.h"

#define BILLION ((int64_t)1000000000)
enum { OFFSET_BITS = 40, ROUNDING = 4 }; /* the offset: up to 18 minutes since it was started */

void vc_host_init(struct vc_host *h, uint64_t seed, uint32_t index)
{
    *h = (struct vc_host){.index = index};
    h->drift_ppb = (int32_t)rnl_sim_below(rnl_sim_random(seed, VC_CHANCE_CLOCK, index, 0), 2 * VC_DRIFT_MAX_PPB + 1) -
                   VC_DRIFT_MAX_PPB;
    h->offset_ns = rnl_sim_random(seed, VC_CHANCE_CLOCK, index, 1) >> (64 - OFFSET_BITS);
}

/* ns * ppb / 10^9, rounded towards zero, without a product that does not fit. */
static int64_t drift(uint64_t ns, int64_t ppb)
{
    return (int64_t)(ns / (uint64_t)BILLION) * ppb + (int64_t)(ns % (uint64_t)BILLION) * ppb / BILLION;
}

uint64_t vc_host_ns(const struct vc_host *h, uint64_t tick)
{
    uint64_t ns = tick / VC_TICKS_PER_NS;
    return h->offset_ns + ns + (uint64_t)drift(ns, h->drift_ppb);
}

void vc_host_set_drift(struct vc_host *h, int32_t ppb, uint64_t tick)
{
    uint64_t shown = vc_host_ns(h, tick);
    h->drift_ppb = ppb;
    h->offset_ns += shown - vc_host_ns(h, tick); /* may pass below 0 and come back */
}

uint64_t vc_host_tick(const struct vc_host *h, uint64_t ns)
{
    if (ns == UINT64_MAX)
        return RNL_SIM_NEVER;
    if (ns <= h->offset_ns)
        return 0;
    uint64_t since = ns - h->offset_ns, most = RNL_SIM_NEVER / VC_TICKS_PER_NS / 2;
    if (since > most)
        return RNL_SIM_NEVER;
    /* Never too late: the square of the drift is missing. */
    uint64_t guess = since - (uint64_t)drift(since, h->drift_ppb);
    guess -= guess > ROUNDING ? ROUNDING : guess;
    for (uint64_t shown; (shown = vc_host_ns(h, guess * VC_TICKS_PER_NS)) < ns;)
        guess += 1 + (ns - shown) / 4; /* where a fast clock leaves a number out, a longer step could pass it */
    return guess * VC_TICKS_PER_NS;
}

uint64_t vc_host_late(const struct vc_cluster *c, struct vc_host *h)
{
    if (h->late_ns == 0)
        return 0;
    uint64_t drawn = rnl_sim_random(c->opt.seed, VC_CHANCE_LATE, h->index, h->late_draws++);
    return rnl_sim_below(drawn, h->late_ns) * VC_TICKS_PER_NS;
}

void vc_host_stall(struct vc_cluster *c, struct vc_host *h, uint64_t ns)
{
    uint64_t until = rnl_sim_now(c->sim) + ns * VC_TICKS_PER_NS;
    rnl_sim_note(c->sim, VC_NOTE_STALL, h->index, ns, 0);
    if (until <= h->stalled_until)
        return;
    h->stalled_until = until;
    for (uint32_t i = 0; i < h->ranks; i++)
        rnl_sim_delay(&c->process[h->first_rank + i].coro, until);
}
