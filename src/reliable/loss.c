/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loss.c - the two thresholds and how they adapt. */
#include "reliable/loss.h"

void rnl_loss_init(struct rnl_loss *loss)
{
    *loss = (struct rnl_loss){.verdict_ns = UINT64_MAX, .packets = RNL_LOSS_PACKETS, .eighths = RNL_LOSS_EIGHTHS};
}

static uint64_t trip(const struct rnl_rtt *rtt)
{
    return rtt->latest_ns > rtt->smoothed_ns ? rtt->latest_ns : rtt->smoothed_ns;
}

uint64_t rnl_loss_wait_ns(const struct rnl_loss *loss, const struct rnl_rtt *rtt, uint32_t granularity_ns)
{
    uint64_t wait = trip(rtt) * loss->eighths / 8;
    return wait > granularity_ns ? wait : granularity_ns;
}

void rnl_loss_was_wrong(struct rnl_loss *loss, const struct rnl_rtt *rtt, uint64_t late_numbers, uint64_t late_ns)
{
    loss->calm = 0;
    if (late_numbers >= loss->packets)
        loss->packets = late_numbers < RNL_LOSS_PACKETS_MAX ? (uint16_t)(late_numbers + 1) : RNL_LOSS_PACKETS_MAX;
    uint64_t of = trip(rtt), need = of ? late_ns * 8 / of + 1 : 0;
    if (need > loss->eighths)
        loss->eighths = need < RNL_LOSS_EIGHTHS_MAX ? (uint16_t)need : RNL_LOSS_EIGHTHS_MAX;
}

void rnl_loss_round(struct rnl_loss *loss)
{
    if (++loss->calm < RNL_LOSS_CALM)
        return;
    loss->calm = 0;
    loss->packets = (uint16_t)(loss->packets - (loss->packets - RNL_LOSS_PACKETS + 3) / 4);
    if (loss->eighths > RNL_LOSS_EIGHTHS)
        loss->eighths--;
}
