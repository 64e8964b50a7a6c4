/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pace.c - a clock that each packet advances. */
#include "reliable/pace.h"

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
    if (pace->next_ns + saved < now_ns)
        pace->next_ns = now_ns - saved;
    pace->next_ns += step;
    pace->release_ns = pace->next_ns <= now_ns ? now_ns : pace->next_ns + saved;
}
