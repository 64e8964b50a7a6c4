/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plot_layered.c - see report.h: figures 4 and 6 of the FM 2.x paper again. Left the bytes a second of a layer and of
 * what it stands on, right the one as a percentage of the other; above a stream, below ping-pong. Shaded: what the
 * paper says of MPI on FM 1.x and on FM 2.x. */
#include "report.h"

#include <math.h>

static const struct {
    unsigned api;
    const char *name, *colour;
} curves[] = {{BENCH_FM, "FM 2.x", BENCH_PLOT_COLOUR_FM}, {BENCH_FM1, "FM 1.1", BENCH_PLOT_COLOUR_FM1}};
static const struct {
    enum bench_test test;
    const char *name, *title;
} panels[] = {{BENCH_LAYERED_STREAM, "stream", "stream"},
              {BENCH_LAYERED, "pingpong", "one message at a time (ping-pong)"}};
enum { CURVES = sizeof curves / sizeof *curves, PANELS = sizeof panels / sizeof *panels };

/* Size, layered and bare MB/s, efficiency in percent, trials. */
static void data(FILE *f, const struct bench_row *row, size_t n, enum bench_placement placement, unsigned p, unsigned c)
{
    fprintf(f, "$%s_%s << END\n", panels[p].name, bench_api_name(curves[c].api));
    for (const struct bench_row *r = row; r < row + n; r++) {
        if (r->test != panels[p].test || r->placement != placement || r->api != curves[c].api)
            continue;
        if (isnan(r->value) || isnan(r->ratio))
            fputc('\n', f); /* the curves break where nothing was measured */
        else
            fprintf(f, "%llu %.6g %.6g %.4g %zu\n", (unsigned long long)r->bytes, r->value, r->baseline, 100 * r->ratio,
                    r->trials);
    }
    fputs("END\n", f);
}

/* The points of the curves of a panel that one trial alone gave. */
static void marks(FILE *f, unsigned p, unsigned column, const bool single[CURVES])
{
    bool named = false;
    for (unsigned c = 0; c < CURVES; c++) {
        char name[32];
        snprintf(name, sizeof name, "$%s_%s", panels[p].name, bench_api_name(curves[c].api));
        if (single[c])
            bench_plot_mark(f, name, column, 5, named);
        named |= single[c];
    }
}

static void absolute(FILE *f, unsigned p, const bool has[CURVES], const bool single[CURVES])
{
    const char *sep = "plot ";
    fprintf(f,
            "set title '%s: payload'\nset ylabel 'MB/s'\nset logscale y 10\nset yrange [*:*]\nset format y '%%.0s%%c'\n"
            "set key below horizontal maxcols 2 height 1.5\n",
            panels[p].title);
    for (unsigned c = 0; c < CURVES; c++) {
        if (!has[c])
            continue;
        const char *api = bench_api_name(curves[c].api);
        fprintf(f,
                "%s$%s_%s using 1:3 with lines lw 2 dt 2 lc rgb '%s' title 'bare %s', \\\n"
                "    $%s_%s using 1:2 with linespoints lw 2 ps 0.8 pt %u lc rgb '%s' title 'layer on %s'",
                sep, panels[p].name, api, curves[c].colour, curves[c].name, panels[p].name, api, c ? 9u : 5u,
                curves[c].colour, curves[c].name);
        sep = ", \\\n    ";
    }
    marks(f, p, 2, single);
    fputc('\n', f);
}

/* What the paper says of bandwidth, between two percentages. */
static void band(FILE *f, unsigned number, unsigned c, unsigned low, unsigned high, const char *text)
{
    fprintf(f,
            "set object %u rectangle from graph 0, first %u to graph 1, first %u fc rgb '%s' fs solid 0.12 noborder "
            "behind\nset label %u '%s' at graph 0.98, first %u right tc rgb '%s' font ',10'\n",
            number, low, high, curves[c].colour, number, text, high - 4, curves[c].colour);
}

static void efficiency(FILE *f, unsigned p, const bool has[CURVES], const bool single[CURVES])
{
    const char *sep = "plot ";
    fprintf(
        f,
        "set title '%s: percent of bare'\nset ylabel '%%'\nunset logscale y\nset yrange [0:100<*<125]\nset format y "
        "'%%.0f'\n"
        "set key below horizontal maxcols 2 height 1.5\n",
        panels[p].title);
    if (panels[p].test == BENCH_LAYERED_STREAM) {
        band(f, 1, 0, 70, 90, "MPI-FM on FM 2.x, 1998");
        band(f, 2, 1, 20, 35, "MPI-FM on FM 1.x, 1998");
    }
    for (unsigned c = 0; c < CURVES; c++) {
        if (!has[c])
            continue;
        fprintf(f, "%s$%s_%s using 1:4 with linespoints lw 2 ps 0.8 pt %u lc rgb '%s' title 'on %s'", sep,
                panels[p].name, bench_api_name(curves[c].api), c ? 9u : 5u, curves[c].colour, curves[c].name);
        sep = ", \\\n    ";
    }
    marks(f, p, 4, single);
    fputs("\nunset object\nunset label\n", f);
}

/* A curve has a point: measured, and beside the bare interface. */
static bool has_point(const struct bench_row *row, size_t n, enum bench_test test, enum bench_placement placement,
                      unsigned api)
{
    for (size_t i = 0; i < n; i++)
        if (row[i].test == test && row[i].placement == placement && row[i].api == api && !isnan(row[i].value) &&
            !isnan(row[i].ratio))
            return true;
    return false;
}

void bench_plot_layered(FILE *f, const char *picture, const struct bench_row *row, size_t n,
                        enum bench_placement placement)
{
    bool has[PANELS][CURVES], single[PANELS][CURVES];
    unsigned drawn = 0;
    for (unsigned p = 0; p < PANELS; p++) {
        bool any = false;
        for (unsigned c = 0; c < CURVES; c++) {
            any |= has[p][c] = has_point(row, n, panels[p].test, placement, curves[c].api);
            single[p][c] = has[p][c] && bench_plot_single(row, n, panels[p].test, placement, (int)curves[c].api);
            if (has[p][c])
                data(f, row, n, placement, p, c);
        }
        drawn += any;
    }
    fprintf(f,
            "set terminal pngcairo size 1100,%u font 'sans,11'\nset output '%s'\n"
            "set multiplot layout %u,2 title 'A matching layer with a 24-byte header on Fast Messages ",
            drawn > 1 ? 940 : 500, picture, drawn);
    bench_plot_where(f, row, n, placement);
    fputs("' font ',13'\nset xlabel 'payload, bytes'\nset logscale x 2\nset grid xtics ytics lt 1 lw 1 lc "
          "rgb '#cccccc'\n"
          "set border 3\nset tics nomirror\n",
          f);
    for (unsigned p = 0; p < PANELS; p++) {
        if (!has[p][0] && !has[p][1])
            continue;
        bench_plot_ticks(f, row, n, panels[p].test, placement, curves[has[p][0] ? 0 : 1].api);
        absolute(f, p, has[p], single[p]);
        efficiency(f, p, has[p], single[p]);
    }
    fputs("unset multiplot\n", f);
}
