/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pace.h - spreads a window over its round trip, in user space. What was not used is saved up to a burst, and what is
 * to come is released a few packets at a time, so that one system call carries several. */
#ifndef RNL_RELIABLE_PACE_H
#define RNL_RELIABLE_PACE_H

#include <stdint.h>

struct rnl_pace_limits {
    uint32_t burst_ns; /* saved at most; also the time between two releases of a fast flow */
    uint32_t burst;    /* packets, at most: both saved and released together */
    uint32_t max_ns;   /* between two packets of the slowest flow */
};
struct rnl_pace {
    uint64_t next_ns; /* the next packet may go; the past if there is something saved */
};
/* A packet of `bytes` went; the whole window of `window` bytes is to take `trip_ns`, which is 0 for "do not pace". */
void rnl_pace_sent(struct rnl_pace *pace, const struct rnl_pace_limits *limits, uint64_t bytes, uint64_t window_q8,
                   uint64_t trip_ns, uint64_t now_ns);

#endif
