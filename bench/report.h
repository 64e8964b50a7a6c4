/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report.h - rows as a table for people, as JSON for programs, as pictures. */
#ifndef RNL_BENCH_REPORT_H
#define RNL_BENCH_REPORT_H

#include <stdio.h>

#include "rounds.h"

/* "64K" for 65536, "100" for 100. */
void bench_bytes_text(uint64_t bytes, char out[24]);
/* The inverse, with K and M: 0, or -EINVAL. */
int bench_bytes_parse(const char *text, uint64_t *bytes);

/* One object a line: test, api, transport, bytes, value, unit, floor, ratio, placement; then rounds, probe_ns; n, where
 * the test has one; p50 and p999, where there are single times; cpu_ns for latency and rate; of a peer its own words,
 * and error if it failed. What was not seen is null. */
void bench_report_json(FILE *, const struct bench_row *, size_t n);
/* At most 80 columns. Rows of units that are only plotted are left out. A row of a peer that failed says so. */
void bench_report_table(FILE *, const struct bench_row *, size_t n);
/* What each peer is, and why one has no figures. */
void bench_report_peers(FILE *, const struct bench_plan *);

/* Is gnuplot there? Looks along PATH. */
bool bench_plot_possible(void);
/* Makes dir if need be; to be called before the time for measuring is spent. 0, or negative with a sentence in text. */
int bench_plot_folder(const char *dir, char *text, size_t size);
/* Writes NAME.gp and NAME.png to dir for latency, bandwidth and layered by size, for each placement seen: the one seen
 * most is latency.png, another latency-far.png. Names what it wrote on `say`. 0, or negative with a sentence in text.
 */
int bench_plot(const char *dir, const struct bench_row *, size_t n, FILE *say, char *text, size_t size);

#endif
