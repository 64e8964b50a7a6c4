/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plot.h - what the pictures have in common: plot.c draws one curve an interface, plot_layered.c the four panels of a
 * layer's efficiency, plot_am.c throughput against depth. */
#ifndef RNL_BENCH_PLOT_H
#define RNL_BENCH_PLOT_H

#include "report.h"

#define BENCH_PLOT_COLOUR_NATIVE "#1b6ca8"
#define BENCH_PLOT_COLOUR_FM     "#d1495b"
#define BENCH_PLOT_COLOUR_FM1    "#66a182"
#define BENCH_PLOT_COLOUR_FLOOR  "#888888"

/* Does the test have figures in this placement, over one interface, or any if it is negative? */
bool bench_plot_has(const struct bench_row *, size_t n, enum bench_test, enum bench_placement, int api);
/* "set xtics" and "set xrange": the sizes that the interface has rows for, or every other one where they are many. */
void bench_plot_ticks(FILE *, const struct bench_row *, size_t n, enum bench_test, enum bench_placement, unsigned api);
/* "(cores near: 26 ns a line)" */
void bench_plot_where(FILE *, const struct bench_row *, size_t n, enum bench_placement);

/* Has a curve a point that one round alone gave? It is marked: more of the plot command, for data whose columns hold
 * the value and the rounds. The mark is explained once a picture. */
bool bench_plot_lone(const struct bench_row *, size_t n, enum bench_test, enum bench_placement, int api);
void bench_plot_mark(FILE *, const char *data, unsigned value, unsigned rounds, bool named);

/* The scripts for pictures: of one curve an interface against the size, for layered.png, and for am-rate.png. A curve
 * breaks where nothing was measured. */
void bench_plot_sizes(FILE *, const char *picture, const struct bench_row *, size_t n, enum bench_test,
                      enum bench_placement);
void bench_plot_layered(FILE *, const char *picture, const struct bench_row *, size_t n, enum bench_placement);
void bench_plot_am(FILE *, const char *picture, const struct bench_row *, size_t n, enum bench_placement);

#endif
