/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plot_am.c - see plot.h: the AMUDP paper's figures of throughput against depth, once more: left short requests a
 * second, right bulk bytes a second, each beside its floor. */
#include "plot.h"

#include <math.h>

static const struct {
    enum bench_test test;
    const char *name, *title, *unit;
} panels[] = {{BENCH_AM_RATE, "rate", "short requests, each answered", "million a second"},
              {BENCH_AM_BULK, "bulk", "windows of 8 requests of 128 KiB", "GB/s"}};
enum { PANELS = sizeof panels / sizeof *panels };

void bench_plot_am(FILE *f, const char *picture, const struct bench_row *row, size_t n, enum bench_placement placement)
{
    bool has[PANELS];
    unsigned drawn = 0;
    for (unsigned p = 0; p < PANELS; p++) {
        has[p] = bench_plot_has(row, n, panels[p].test, placement, BENCH_AM);
        drawn += has[p];
        fprintf(f, "$%s << END\n", panels[p].name);
        for (const struct bench_row *r = row; r < row + n; r++)
            if (r->test == panels[p].test && r->placement == placement && !isnan(r->value))
                fprintf(f, "%u %.6g %.6g\n", r->n, r->value, r->floor);
        fputs("END\n", f);
    }
    fprintf(f,
            "set terminal pngcairo size %u,460 font 'sans,11'\nset output '%s'\n"
            "set multiplot layout 1,%u title 'AM-2 against depth ",
            drawn > 1 ? 1100 : 600, picture, drawn);
    bench_plot_where(f, row, n, placement);
    fputs("' font ',13'\nset xlabel 'requests that may be unanswered'\nset logscale x 2\nset yrange [0:*]\n"
          "set grid xtics ytics lt 1 lw 1 lc rgb '#cccccc'\nset border 3\nset tics nomirror\nset key bottom right\n",
          f);
    for (unsigned p = 0; p < PANELS; p++) {
        if (!has[p])
            continue;
        fprintf(f,
                "set title '%s'\nset ylabel '%s'\n"
                "plot $%s using 1:2 with linespoints lw 2 ps 0.8 pt 11 lc rgb '#7a3e9d' title 'AM-2'",
                panels[p].title, panels[p].unit, panels[p].name);
        /* One-way messages that share cache lines are another scale than answered requests. */
        if (panels[p].test == BENCH_AM_BULK)
            fprintf(f, ", $%s using 1:3 with lines lw 2 dt 2 lc rgb '" BENCH_PLOT_COLOUR_FLOOR "' title 'bare ring'",
                    panels[p].name);
        fputc('\n', f);
    }
    fputs("unset multiplot\n", f);
}
