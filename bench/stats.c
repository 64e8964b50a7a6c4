/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stats.c - see stats.h. */
#include "stats.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *v, size_t n)
{
    if (n == 0)
        return 0;
    qsort(v, n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

void bench_hist_clear(struct bench_hist *h)
{
    memset(h, 0, sizeof *h);
}

void bench_hist_merge(struct bench_hist *into, const struct bench_hist *from)
{
    into->count += from->count;
    for (size_t i = 0; i < BENCH_HIST_BUCKETS; i++)
        into->bucket[i] += from->bucket[i];
}

/* The inverse of bench_hist_index: the smallest value of a bucket, and how many values it holds. */
static uint64_t bucket_first(unsigned i, uint64_t *width)
{
    const unsigned sub = 1u << BENCH_HIST_SUB_BITS;
    unsigned shift = i < 2 * sub ? 0 : i / sub - 1;
    *width = (uint64_t)1 << shift;
    return shift ? (uint64_t)(i - shift * sub) << shift : i;
}

double bench_hist_quantile(const struct bench_hist *h, double q)
{
    if (h->count == 0)
        return 0;
    double want = q * (double)h->count;
    uint64_t seen = 0;
    unsigned last = 0;
    for (unsigned i = 0; i < BENCH_HIST_BUCKETS; i++) {
        if (h->bucket[i] == 0)
            continue;
        last = i;
        seen += h->bucket[i];
        if ((double)seen >= want)
            break;
    }
    uint64_t width, first = bucket_first(last, &width);
    return (double)first + (double)(width - 1) / 2;
}
