/* SPDX-License-Identifier: BSD-3-Clause
 *
 * congest.c - the part that all congestion control algorithms share, and pacing. */
#include "net/flow/congest.h"

#include <stdbool.h>
#include <string.h>

static const struct rnl_congest_ops *const algorithms[RNL_CONGEST_ALGORITHMS] = {
    [RNL_CONGEST_DLF] = &rnl_congest_dlf,
    [RNL_CONGEST_NEWRENO] = &rnl_congest_newreno,
    [RNL_CONGEST_CUBIC] = &rnl_congest_cubic,
};

static void clamp(struct rnl_congest *c, const struct rnl_congest_limits *limits, uint32_t packet)
{
    uint64_t most = (uint64_t)limits->most_bytes << 8, least = (uint64_t)packet * algorithms[c->which]->least_q8;
    if (c->window > most)
        c->window = most;
    if (c->window < least)
        c->window = least;
}

void rnl_congest_init(struct rnl_congest *c, enum rnl_congest_algorithm algorithm,
                      const struct rnl_congest_limits *limits, uint32_t packet)
{
    memset(c, 0, sizeof *c);
    c->which = algorithm;
    c->window = (uint64_t)limits->initial_packets * packet << 8;
    c->threshold = RNL_CONGEST_NO_THRESHOLD;
    clamp(c, limits, packet);
}

int rnl_congest_acked(struct rnl_congest *c, const struct rnl_congest_limits *limits,
                      const struct rnl_congest_news *news)
{
    int round = news->number >= c->round_end;
    c->acked += news->acked;
    c->marked += news->marked;
    algorithms[c->which]->acked(c, limits, news, round);
    if (round) {
        c->round_end = news->next;
        c->acked = c->lost = c->marked = 0;
    }
    clamp(c, limits, news->packet);
    return round;
}

void rnl_congest_lost(struct rnl_congest *c, const struct rnl_congest_limits *limits,
                      const struct rnl_congest_news *news, uint64_t first, uint64_t last, uint32_t bytes,
                      uint32_t packets)
{
    uint64_t window = c->window, threshold = c->threshold;
    c->lost += bytes;
    algorithms[c->which]->lost(c, news, last);
    clamp(c, limits, news->packet);
    if (c->suspects && first < c->episode_end) {
        c->suspects += packets;
    } else if (c->window < window) {
        c->suspects = packets;
        c->episode = first;
        c->episode_end = news->next;
        c->old_window = window;
        c->old_threshold = threshold;
    }
}

void rnl_congest_collapse(struct rnl_congest *c, const struct rnl_congest_limits *limits,
                          const struct rnl_congest_news *news)
{
    algorithms[c->which]->collapse(c, news);
    clamp(c, limits, news->packet);
}

bool rnl_congest_was_wrong(struct rnl_congest *c, uint64_t number, uint32_t bytes)
{
    c->lost = c->lost > bytes ? c->lost - bytes : 0;
    if (c->suspects == 0 || number < c->episode || number >= c->episode_end || --c->suspects)
        return false;
    if (c->old_window <= c->window)
        return false;
    c->window = c->old_window;
    c->threshold = c->old_threshold;
    return true;
}

uint64_t rnl_congest_trip_ns(const struct rnl_congest *c, uint32_t smoothed_ns, uint32_t latest_ns, uint32_t packet)
{
    if (c->window < (uint64_t)packet << 8)
        return latest_ns;
    return c->window < c->threshold ? smoothed_ns / 2 : (uint64_t)smoothed_ns * 4 / 5;
}

/* ---- pacing ---- */

void rnl_pace_sent(struct rnl_pace *pace, const struct rnl_pace_limits *limits, uint64_t bytes, uint64_t window_q8,
                   uint64_t trip_ns, uint64_t now_ns)
{
    if (trip_ns == 0) {
        pace->next_ns = pace->release_ns = now_ns;
        return;
    }
    uint64_t step = (bytes << 8) * trip_ns / window_q8;
    if (step > limits->max_ns)
        step = limits->max_ns;
    uint64_t burst = (uint64_t)limits->burst * step < limits->burst_ns ? limits->burst * step : limits->burst_ns;
    uint64_t saved = burst > step ? burst - step : 0;
    pace->late = pace->waits && (pace->late || now_ns > pace->release_ns + limits->burst_ns);
    uint64_t kept = pace->late && saved < trip_ns ? trip_ns : saved;
    if (pace->next_ns + kept < now_ns)
        pace->next_ns = now_ns - kept;
    pace->next_ns += step;
    pace->late &= pace->next_ns + saved < now_ns;
    pace->release_ns = pace->next_ns <= now_ns ? now_ns : pace->next_ns + saved;
}
