/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stats.h - what a list of measurements says. Leaves out means and deviations: on a shared machine the outliers are
 * somebody else's. Tails are in base/hist.h. */
#ifndef RNL_BENCH_STATS_H
#define RNL_BENCH_STATS_H

#include <stddef.h>

/* Sorts v. n == 0 gives 0; an even n gives the mean of the two in the middle. */
double bench_median(double *v, size_t n);

#endif
