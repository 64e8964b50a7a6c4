/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - see host.h. Integers only: a clock shows the same on every machine. */
#include "sim/cluster/host.h"

#include "sim/engine/engine.h"
#include "sim/engine/random.h"

#define BILLION ((int64_t)1000000000)
enum { OFFSET_BITS = 40, ROUNDING = 4 }; /* the offset: up to 18 minutes since it was started */

void rnl_vhost_init(struct rnl_vhost *h, uint64_t seed, uint32_t index)
{
    *h = (struct rnl_vhost){.index = index};
    h->drift_ppb = (int32_t)rnl_sim_below(rnl_sim_random(seed, RNL_STREAM_CLOCK, index, 0), 2 * RNL_DRIFT_MAX_PPB + 1) -
                   RNL_DRIFT_MAX_PPB;
    h->offset_ns = rnl_sim_random(seed, RNL_STREAM_CLOCK, index, 1) >> (64 - OFFSET_BITS);
}

/* ns * ppb / 10^9, rounded towards zero, without a product that does not fit. */
static int64_t drift(uint64_t ns, int64_t ppb)
{
    return (int64_t)(ns / (uint64_t)BILLION) * ppb + (int64_t)(ns % (uint64_t)BILLION) * ppb / BILLION;
}

uint64_t rnl_vhost_ns(const struct rnl_vhost *h, uint64_t tick)
{
    uint64_t ns = tick / RNL_TICKS_PER_NS;
    return h->offset_ns + ns + (uint64_t)drift(ns, h->drift_ppb);
}

void rnl_vhost_set_drift(struct rnl_vhost *h, int32_t ppb, uint64_t tick)
{
    uint64_t shown = rnl_vhost_ns(h, tick);
    h->drift_ppb = ppb;
    h->offset_ns += shown - rnl_vhost_ns(h, tick); /* may pass below 0 and come back */
}

uint64_t rnl_vhost_tick(const struct rnl_vhost *h, uint64_t ns)
{
    if (ns == UINT64_MAX)
        return RNL_SIM_NEVER;
    if (ns <= h->offset_ns)
        return 0;
    uint64_t since = ns - h->offset_ns, most = RNL_SIM_NEVER / RNL_TICKS_PER_NS / 2;
    if (since > most)
        return RNL_SIM_NEVER;
    /* Never too late: the square of the drift is missing. */
    uint64_t guess = since - (uint64_t)drift(since, h->drift_ppb);
    guess -= guess > ROUNDING ? ROUNDING : guess;
    for (uint64_t shown; (shown = rnl_vhost_ns(h, guess * RNL_TICKS_PER_NS)) < ns;)
        guess += 1 + (ns - shown) / 4; /* where a fast clock leaves a number out, a longer step could pass it */
    return guess * RNL_TICKS_PER_NS;
}
