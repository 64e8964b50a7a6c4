/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hist.h - a log-linear histogram of times in ns, for benchmarks: exact below 128 ns, within 0.8 % above, any 64-bit
 * value. Fixed size, no allocation; zeroed memory is an empty one. One thread records; merge combines. */
#ifndef RNL_BASE_HIST_H
#define RNL_BASE_HIST_H

#include <stdint.h>

enum {
    RNL_HIST_SUB_BITS = 6,
    RNL_HIST_SUBS = 1 << RNL_HIST_SUB_BITS,
    RNL_HIST_BUCKETS = (65 - RNL_HIST_SUB_BITS) * RNL_HIST_SUBS
};

struct rnl_hist {
    uint64_t count, min_ns, max_ns; /* min and max are undefined while count is 0 */
    uint64_t bucket[RNL_HIST_BUCKETS];
};

void rnl_hist_record(struct rnl_hist *, uint64_t ns);
void rnl_hist_merge(struct rnl_hist *into, const struct rnl_hist *from);
/* Returns the value that `percent` (0..100) of the samples do not exceed: 0 = least, 50 = median, 100 = largest. 0 if
 * empty. */
uint64_t rnl_hist_percentile(const struct rnl_hist *, double percent);

#endif
