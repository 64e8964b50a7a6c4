/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pace.h - spreads a window over its round trip, in user space. What was not used is saved, up to a burst; and who has
 * to wait waits until a few packets may go, so that one system call carries them. */
#ifndef RNL_RELIABLE_PACE_H
#define RNL_RELIABLE_PACE_H

#include <stdint.h>

struct rnl_pace_limits {
    uint32_t burst_ns; /* what is saved, and what is waited for, as a time ... */
    uint32_t burst;    /* ... and as packets: the less counts, and one packet is always allowed */
    uint32_t max_ns;   /* between two packets of the slowest flow */
};
struct rnl_pace {
    uint64_t next_ns;    /* when the next packet is due; the past if there is something saved */
    uint64_t release_ns; /* when it may go */
};
/* A packet of `bytes` went; `window_q8` (bytes << 8) is to take trip_ns; 0 = do not pace. */
void rnl_pace_sent(struct rnl_pace *pace, const struct rnl_pace_limits *limits, uint64_t bytes, uint64_t window_q8,
                   uint64_t trip_ns, uint64_t now_ns);

#endif
