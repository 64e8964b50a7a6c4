/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hist.c - buckets of a histogram: one for each value below 2 * RNL_HIST_SUBS, then RNL_HIST_SUBS for each power of
 * two. */
#include "base/hist.h"

static unsigned bucket_of(uint64_t ns)
{
    if (ns < RNL_HIST_SUBS)
        return (unsigned)ns;
    unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - RNL_HIST_SUB_BITS;
    return shift * RNL_HIST_SUBS + (unsigned)(ns >> shift);
}

/* Returns the middle of a bucket, rounded down, which is its value where it holds only one. */
static uint64_t value_of(unsigned bucket)
{
    if (bucket < 2 * RNL_HIST_SUBS)
        return bucket;
    unsigned shift = bucket / RNL_HIST_SUBS - 1;
    uint64_t low = (uint64_t)(bucket - shift * RNL_HIST_SUBS) << shift;
    return low + (((uint64_t)1 << shift) - 1) / 2;
}

void rnl_hist_record(struct rnl_hist *h, uint64_t ns)
{
    if (h->count == 0 || ns < h->min_ns)
        h->min_ns = ns;
    if (h->count == 0 || ns > h->max_ns)
        h->max_ns = ns;
    h->count++;
    h->bucket[bucket_of(ns)]++;
}

void rnl_hist_merge(struct rnl_hist *into, const struct rnl_hist *from)
{
    if (from->count == 0)
        return;
    if (into->count == 0 || from->min_ns < into->min_ns)
        into->min_ns = from->min_ns;
    if (into->count == 0 || from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
    into->count += from->count;
    for (unsigned i = 0; i < RNL_HIST_BUCKETS; i++)
        into->bucket[i] += from->bucket[i];
}

uint64_t rnl_hist_percentile(const struct rnl_hist *h, double percent)
{
    if (h->count == 0)
        return 0;
    double want = (double)h->count * percent / 100;
    if (!(want > 1))
        return h->min_ns;
    if (want > (double)(h->count - 1))
        return h->max_ns;
    uint64_t seen = 0;
    unsigned i = 0;
    while (i < RNL_HIST_BUCKETS - 1 && (double)(seen += h->bucket[i]) < want)
        i++;
    uint64_t ns = value_of(i);
    return ns < h->min_ns ? h->min_ns : ns > h->max_ns ? h->max_ns : ns;
}
