/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rtt.c - the smoothed round trip, the least one of a class of paths, and the thresholds of loss detection.
 *
 * If the least round trip was not measured for long, the path has become longer or is never idle. So now and then all
 * its flows drain for a few round trips. Only after several drains without success, the least round trip of these is
 * the new base, because flows of other endpoints do not drain at the same time, and their queue is no distance. A new
 * path is drained soon and more than once, to measure it without the queue that its own first flow has made. */
#include "net/flow/rtt.h"
#include <stdbool.h>

#define KEEPS_NS (RNL_PATH_KEEPS_S * (uint64_t)1000000000)
/* At half the rate a queue is gone after twice its delay; these are the round trips that flows then have to see it. */
enum { DRAIN_TRIPS = 2 };

static bool is_new(const struct rnl_path *path)
{
    return path->keep_ns < KEEPS_NS;
}

static void drained(struct rnl_path *path, uint64_t now_ns)
{
    path->drain_ns = 0;
    path->seen_ns = now_ns;
    if (is_new(path)) {
        path->keep_ns = path->keep_ns * 4 < KEEPS_NS ? path->keep_ns * 4 : KEEPS_NS;
        path->least_ns = 0;
    } else if (path->least_ns && ++path->drains >= RNL_PATH_DRAINS) {
        path->full_ns += path->full_ns ? path->least_ns - path->base_ns : 0;
        path->base_ns = path->least_ns;
        path->least_ns = 0;
        path->drains = 0;
    }
}

void rnl_path_sample(struct rnl_path *path, uint64_t rtt_ns, uint64_t now_ns)
{
    if (path->keep_ns == 0) {
        path->keep_ns = path->base_ns ? KEEPS_NS : RNL_PATH_KEEPS_FIRST_US * (uint64_t)1000;
        path->seen_ns = now_ns;
    }
    if (path->base_ns == 0 || rtt_ns < path->base_ns)
        path->base_ns = rtt_ns;
    if (rtt_ns <= path->base_ns + path->base_ns / 16 && !is_new(path)) {
        path->seen_ns = now_ns;
        path->drain_ns = path->least_ns = 0;
        path->drains = 0;
        return;
    }
    if (path->drain_ns) {
        if (path->least_ns == 0 || rtt_ns < path->least_ns)
            path->least_ns = rtt_ns;
        if (now_ns >= path->drain_ns)
            drained(path, now_ns);
    } else if (now_ns - path->seen_ns > path->keep_ns) {
        path->drain_ns = now_ns + 2 * (rtt_ns - path->base_ns) + DRAIN_TRIPS * path->base_ns;
    }
}

void rnl_path_sample_full(struct rnl_path *path, uint64_t rtt_ns, uint32_t bytes, uint32_t packet, bool alone)
{
    if (path->full_bytes < packet / 4 * 3 || path->full_bytes > packet) { /* the largest packet has changed */
        path->full_bytes = packet;
        path->full_ns = 0;
    }
    if ((path->full_ns ? rtt_ns < path->full_ns : alone) && bytes >= packet / 4 * 3) {
        path->full_bytes = bytes;
        path->full_ns = rtt_ns;
    }
}

uint32_t rnl_path_wire_ns(const struct rnl_path *path, uint32_t bytes)
{
    if (path->full_ns <= path->base_ns || path->full_bytes == 0)
        return 0;
    uint64_t longer = path->full_ns - path->base_ns;
    return (uint32_t)((longer < RNL_RTT_MAX_NS ? longer : RNL_RTT_MAX_NS) * bytes / path->full_bytes);
}

void rnl_rtt_sample(struct rnl_rtt *rtt, uint64_t sample_ns, uint32_t hold_ns)
{
    if (sample_ns > RNL_RTT_MAX_NS)
        sample_ns = RNL_RTT_MAX_NS;
    uint32_t sample = sample_ns ? (uint32_t)sample_ns : 1;
    if (rtt->least_ns == 0 || sample < rtt->least_ns)
        rtt->least_ns = sample;
    if (sample >= rtt->least_ns && sample - rtt->least_ns >= hold_ns)
        sample -= hold_ns;
    rtt->latest_ns = sample;
    if (rtt->smoothed_ns == 0) {
        rtt->smoothed_ns = sample;
        rtt->variance_ns = sample / 2;
        return;
    }
    uint32_t away = sample > rtt->smoothed_ns ? sample - rtt->smoothed_ns : rtt->smoothed_ns - sample;
    rtt->variance_ns = (uint32_t)(((uint64_t)3 * rtt->variance_ns + away) / 4);
    rtt->smoothed_ns = (uint32_t)(((uint64_t)7 * rtt->smoothed_ns + sample) / 8);
}

uint64_t rnl_rtt_pto_ns(const struct rnl_rtt *rtt, uint32_t granularity_ns)
{
    uint64_t spread = (uint64_t)4 * rtt->variance_ns;
    return rtt->smoothed_ns + (spread > granularity_ns ? spread : granularity_ns);
}

/* ---- loss ---- */

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
