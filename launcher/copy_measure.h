/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy_measure.h - measures the table of base/copies.h: two processes on two processors send each other bytes through a
 * ring as two processes would. It takes some 10 ms, once for each host and distance; on a busy host up to 250. */
#ifndef RNL_LAUNCHER_COPY_MEASURE_H
#define RNL_LAUNCHER_COPY_MEASURE_H

#include "base/copies.h"

/* What a measurement found of one distance. */
struct rnl_copies_found {
    unsigned distance; /* enum rnl_distance */
    uint32_t line_ns;  /* how long a line takes to cross */
    uint64_t word;
};
/* Measures between two processors; `known`, bit per distance, ends it when the distance is known. Returns 1 = measured,
 * 0 = the distance was known, the processors moved or were busy for too long, or no process can be begun. */
int rnl_copies_measure(const int cpu[2], unsigned known, struct rnl_copies_found *out);
/* Completes the table of this host by the distance between the first two processors of this process, or the first and
 * the last, if it lacks that, and keeps it. Where there is no place for a table it measures nothing. Returns how many
 * distances the table knows then; *c is the table, of defaults where nothing is known. */
unsigned rnl_copies_complete(struct rnl_copies *c);

/* The choice from times: ns[i][k] is how long `kind` k took for size i, the least of some rounds; 0 = not measured.
 * area_ns is how long the largest size took in the whole area, by the kind that was best in half of it. */
enum { RNL_COPIES_SIZES = 3 }; /* 4 KiB, 16 KiB, 64 KiB; what is shorter than 2 KiB stays as it is */
uint64_t rnl_copies_choose(double ns[RNL_COPIES_SIZES][RNL_COPY_KINDS], double area_ns);

#endif
