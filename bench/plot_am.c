/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plot_am.c - report.h: the AMUDP paper's figures, once more: short requests a second and bulk bytes a second against
 * depth, each beside its baseline, and the mean round trip against the share of packets that are dropped; past the
 * kernel, where the baseline is the kernel's UDP, also requests and bytes a second against that share. */
#include "report.h"

#include <math.h>

static const struct {
    enum bench_test test;
    const char *name, *title, *unit, *across;
    double every; /* n of a row is so many of what is across */
    double scale;
} panels[] = {
    {BENCH_AM_RATE, "rate", "short requests, each answered", "million a second", "requests that may be unanswered", 1,
     1},
    {BENCH_AM_BULK, "bulk", "windows of 8 requests of 128 KiB", "GB/s", "requests that may be unanswered", 1, 1},
    {BENCH_AM_LOSS_TRIP, "loss", "short round trip, mean", "us", "packets dropped each way, %", 10, 1e-3},
    {BENCH_AM_LOSS_RATE, "lossrate", "short requests, 128 unanswered", "million a second",
     "packets dropped each way, %", 10, 1},
    {BENCH_AM_LOSS_BULK, "lossbulk", "requests of 128 KiB, 8 unanswered", "GB/s", "packets dropped each way, %", 10,
     1}};
enum { PANELS = sizeof panels / sizeof *panels };

bool bench_plot_am_has(const struct bench_row *row, size_t n, enum bench_placement placement)
{
    for (unsigned p = 0; p < PANELS; p++)
        if (bench_plot_has(row, n, panels[p].test, placement, BENCH_AM))
            return true;
    return false;
}

void bench_plot_am(FILE *f, const char *picture, const struct bench_row *row, size_t n, enum bench_placement placement)
{
    bool has[PANELS];
    unsigned drawn = 0;
    for (unsigned p = 0; p < PANELS; p++) {
        has[p] = bench_plot_has(row, n, panels[p].test, placement, BENCH_AM) &&
                 (row[0].via || panels[p].test < BENCH_AM_LOSS_RATE);
        drawn += has[p];
        fprintf(f, "$%s << END\n", panels[p].name);
        for (const struct bench_row *r = row; r < row + n; r++) {
            if (r->test != panels[p].test || r->placement != placement)
                continue;
            if (isnan(r->value))
                fputc('\n', f);
            else
                fprintf(f, "%g %.6g %.6g\n", r->n / panels[p].every, r->value * panels[p].scale,
                        r->baseline * panels[p].scale);
        }
        fputs("END\n", f);
    }
    const unsigned rows = drawn > 3 ? 2 : 1;
    fprintf(f,
            "set terminal pngcairo size %u,%u font 'sans,11'\nset output '%s'\n"
            "set multiplot layout %u,%u title 'AM-2 %s%s%s",
            drawn > 2   ? 1500
            : drawn > 1 ? 1100
                        : 600,
            rows * 460, picture, rows, (drawn + rows - 1) / rows, row[0].via ? "over " : "",
            row[0].via ? row[0].via : "", row[0].via ? " " : "");
    bench_plot_where(f, row, n, placement);
    fputs("' font ',13'\nset yrange [0:*]\n"
          "set grid xtics ytics lt 1 lw 1 lc rgb '#cccccc'\nset border 3\nset tics nomirror\n\n",
          f);
    for (unsigned p = 0; p < PANELS; p++) {
        if (!has[p])
            continue;
        int loss = panels[p].test >= BENCH_AM_LOSS_TRIP;
        fprintf(f, "%s\nset key %s\nset title '%s'\nset xlabel '%s'\nset ylabel '%s'\n",
                loss ? "unset logscale x\nset xrange [0:*]" : "set logscale x 2",
                loss ? panels[p].test == BENCH_AM_LOSS_TRIP ? "top left" : "top right" : "bottom right",
                panels[p].title, panels[p].across, panels[p].unit);
        fprintf(f, "plot $%s using 1:2 with linespoints lw 2 ps 0.8 pt 11 lc rgb '#7a3e9d' title 'AM-2'",
                panels[p].name);
        /* One-way messages that share cache lines are another scale than answered requests. */
        if (panels[p].test != BENCH_AM_RATE || row[0].udp)
            fprintf(f, ", $%s using 1:3 with lines lw 2 dt 2 lc rgb '" BENCH_PLOT_COLOUR_BASELINE "' title '%s'",
                    panels[p].name,
                    row[0].via   ? "UDP of the kernel"
                    : loss       ? "none dropped"
                    : row[0].udp ? "bare sockets"
                                 : "bare ring");
        fputc('\n', f);
    }
    fputs("unset multiplot\n", f);
}
