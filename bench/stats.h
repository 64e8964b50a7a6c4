/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stats.h - what a list of measurements says: median, and a histogram for the tail. Plain memory, no allocation: a histogram may lie in memory
 * that two processes share. Leaves out means and deviations: on a shared machine the outliers are somebody else's. */
#ifndef RNL_BENCH_STATS_H
#define RNL_BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Sorts v. n == 0 gives 0; an even n gives the mean of the two in the middle. */
double bench_median(double *v, size_t n);

/* Log-linear: values below 128 are exact, larger ones to 1 part in 64. All 64-bit values fit. */
enum { BENCH_HIST_SUB_BITS = 6, BENCH_HIST_BUCKETS = (64 - BENCH_HIST_SUB_BITS + 1) << BENCH_HIST_SUB_BITS };
struct bench_hist {
    uint64_t count;
    uint32_t bucket[BENCH_HIST_BUCKETS];
};

void bench_hist_clear(struct bench_hist *);
void bench_hist_merge(struct bench_hist *into, const struct bench_hist *from);
/* The middle of the bucket that holds the q-quantile (0 <= q <= 1): the smallest value with at least q of all at or below it. Empty: 0. */
double bench_hist_quantile(const struct bench_hist *, double q);

static inline unsigned bench_hist_index(uint64_t value)
{
    if (value < (1u << (BENCH_HIST_SUB_BITS + 1)))
        return (unsigned)value;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - BENCH_HIST_SUB_BITS;
    return (shift << BENCH_HIST_SUB_BITS) + (unsigned)(value >> shift);
}

static inline void bench_hist_add(struct bench_hist *h, uint64_t value)
{
    h->bucket[bench_hist_index(value)]++;
    h->count++;
}

#endif
