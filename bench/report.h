/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report.h - rows as a table for people, as JSON for programs, as pictures. */
#ifndef RNL_BENCH_REPORT_H
#define RNL_BENCH_REPORT_H

#include <stdio.h>

#include "trials.h"

/* "64K" for 65536, "100" for 100. */
void bench_bytes_text(uint64_t bytes, char out[24]);
/* The inverse, with K and M: 0, or -EINVAL. */
int bench_bytes_parse(const char *text, uint64_t *bytes);

/* One object a line: test, api, transport, bytes, value, unit, baseline, ratio, placement; trials, probe_ns; n, where
 * the test has one; p50 and p999, where there are single times; cpu_ns for latency and rate; data, what becomes of the
 * bytes, and way, which variant a baseline is; of a peer its own words, and error if it failed. What was not seen is
 * null. */
void bench_report_json(FILE *, const struct bench_row *, size_t n);
/* At most 80 columns. Rows of units that are only plotted are left out. A row of a peer that failed says so. */
void bench_report_table(FILE *, const struct bench_row *, size_t n);
/* What each peer is, and why one has no figures. */
void bench_report_peers(FILE *, const struct bench_plan *);

/* What layers on Runnel keep of FM 2.x and of native: nothing, if none was measured. */
void bench_report_efficiency(FILE *, const struct bench_row *, size_t n);

/* Is gnuplot there? Looks along PATH. */
bool bench_plot_possible(void);
/* Makes dir if need be; to be called before the time for measuring is spent. 0, or negative with a sentence in text. */
int bench_plot_folder(const char *dir, char *text, size_t size);
/* Writes NAME.gp and NAME.png to dir for latency, bandwidth and layered by size, for each placement seen: the one seen
 * most is latency.png, another latency-far.png. Names what it wrote on `say`. 0, or negative with a sentence in text.
 */
int bench_plot(const char *dir, const struct bench_row *, size_t n, FILE *say, char *text, size_t size);

/* ---- what the pictures have in common: plot.c, plot_layered.c, plot_am.c ---- */

#define BENCH_PLOT_COLOUR_NATIVE   "#1b6ca8"
#define BENCH_PLOT_COLOUR_FM       "#d1495b"
#define BENCH_PLOT_COLOUR_FM1      "#66a182"
#define BENCH_PLOT_COLOUR_BASELINE "#888888"

/* Does the test have figures in this placement, over one interface, or any if it is negative? */
bool bench_plot_has(const struct bench_row *, size_t n, enum bench_test, enum bench_placement, int api);
/* "set xtics" and "set xrange": the sizes that the interface has rows for, or every other one where they are many. */
void bench_plot_ticks(FILE *, const struct bench_row *, size_t n, enum bench_test, enum bench_placement, unsigned api);
/* "(cores near: 26 ns a line)" */
void bench_plot_where(FILE *, const struct bench_row *, size_t n, enum bench_placement);

/* Has a curve a point that one trial alone gave? It is marked: more of the plot command, for data whose columns hold
 * the value and the trials. The mark is explained once a picture. */
bool bench_plot_single(const struct bench_row *, size_t n, enum bench_test, enum bench_placement, int api);
void bench_plot_mark(FILE *, const char *data, unsigned value, unsigned trials, bool named);

/* The scripts for pictures: of one curve an interface against the size, for layered.png, mpi.png and am-rate.png. A
 * curve breaks where nothing was measured. */
void bench_plot_sizes(FILE *, const char *picture, const struct bench_row *, size_t n, enum bench_test,
                      enum bench_placement);
void bench_plot_layered(FILE *, const char *picture, const struct bench_row *, size_t n, enum bench_placement);
bool bench_plot_mpi_has(const struct bench_row *, size_t n, enum bench_placement);
void bench_plot_mpi(FILE *, const char *picture, const struct bench_row *, size_t n, enum bench_placement);
bool bench_plot_am_has(const struct bench_row *, size_t n, enum bench_placement);
void bench_plot_am(FILE *, const char *picture, const struct bench_row *, size_t n, enum bench_placement);

#endif
