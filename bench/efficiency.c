/* SPDX-License-Identifier: BSD-3-Clause
 *
 * efficiency.c - see report.h: what the provider for libfabric, and MPI on it, keep of Fast Messages and of the native
 * interface, at each size: as a table, and as figure 6 of the FM 2.x paper again. All of them were measured in the same
 * trials, so each has its ratio to the same baseline, and a layer's efficiency is the ratio of two of these. */
#include "report.h"

#include <math.h>

static const struct {
    unsigned api;
    const char *title, *style;
} layers[] = {{BENCH_PROVIDER, "the provider", "lc rgb '#222222' pt 13"},
              {BENCH_OPENMPI_RNL, "Open MPI on the provider", "lc rgb '#e08e45' pt 5"},
              {BENCH_MPICH_RNL, "MPICH on the provider", "lc rgb '#7d5ba6' pt 9"}};
static const struct {
    enum bench_test test;
    const char *name, *title;
} panels[] = {{BENCH_BANDWIDTH, "stream", "stream"}, {BENCH_LATENCY, "pingpong", "one message at a time (ping-pong)"}};
enum { LAYERS = sizeof layers / sizeof *layers, PANELS = sizeof panels / sizeof *panels };
/* What the paper says of MPI-FM 2.0 on FM 2.x: its share of FM's bandwidth at 16 bytes, which is more than that, and of
 * long messages; and the least latencies of the two. */
enum { PAPER_BYTES = 16, PAPER_SHORT = 70, PAPER_LONG = 90, PAPER_FM_US = 11, PAPER_MPI_US = 17 };

static const struct bench_row *find(const struct bench_row *row, size_t n, const struct bench_row *like, unsigned api)
{
    for (const struct bench_row *r = row; r < row + n; r++)
        if (r->test == like->test && r->bytes == like->bytes && r->placement == like->placement && r->api == api)
            return isnan(r->ratio) ? NULL : r;
    return NULL;
}

/* In percent; NAN = one of the two was not measured. */
static double kept(const struct bench_row *row, size_t n, const struct bench_row *of, unsigned layer)
{
    const struct bench_row *r = find(row, n, of, layer);
    if (!r || isnan(of->ratio))
        return NAN;
    return 100 * (bench_is_latency(of->test) ? of->ratio / r->ratio : r->ratio / of->ratio);
}

static bool is_base(const struct bench_row *r)
{
    return (r->api == BENCH_FM || r->api == BENCH_NATIVE) && !isnan(r->ratio) &&
           (bench_is_latency(r->test) || r->test == BENCH_RATE || bench_is_bulk(r->test, r->bytes));
}

void bench_report_efficiency(FILE *f, const struct bench_row *row, size_t n)
{
    bool begun = false;
    for (const struct bench_row *r = row; r < row + n; r++) {
        char bytes[24];
        bool any = false;
        for (unsigned i = 0; i < LAYERS && is_base(r) && r->shown; i++)
            any |= !isnan(kept(row, n, r, layers[i].api));
        if (!any)
            continue;
        if (!begun) {
            fputs("\nWhat layers on Runnel keep of it, in percent. In 1998 MPI-FM 2.0 kept more than 70 of FM 2.x at "
                  "16 bytes,\n"
                  "and 90 of long messages.\n\n",
                  f);
            fprintf(f, "%-16s %6s %-8s %-7s", "", "bytes", "cores", "of");
            for (unsigned i = 0; i < LAYERS; i++)
                fprintf(f, " %9s", bench_api_name(layers[i].api));
            fputc('\n', f);
        }
        begun = true;
        bench_bytes_text(r->bytes, bytes);
        fprintf(f, "%-16s %6s %-8s %-7s", bench_test_name(r->test), bytes, bench_placement_name(r->placement),
                bench_api_name(r->api));
        for (unsigned i = 0; i < LAYERS; i++) {
            double percent = kept(row, n, r, layers[i].api);
            if (isnan(percent))
                fprintf(f, " %9s", "-");
            else
                fprintf(f, " %9.0f", percent);
        }
        fputc('\n', f);
    }
}

/* ---- the picture ---- */

static bool has_curve(const struct bench_row *row, size_t n, unsigned p, unsigned layer, enum bench_placement placement)
{
    for (const struct bench_row *r = row; r < row + n; r++)
        if (r->test == panels[p].test && r->placement == placement && r->api == BENCH_FM &&
            !isnan(kept(row, n, r, layers[layer].api)))
            return true;
    return false;
}

bool bench_plot_mpi_has(const struct bench_row *row, size_t n, enum bench_placement placement)
{
    for (unsigned p = 0; p < PANELS; p++)
        for (unsigned i = 0; i < LAYERS; i++)
            if (has_curve(row, n, p, i, placement))
                return true;
    return false;
}

/* Size and percent, and the trials of the layer. */
static void data(FILE *f, const struct bench_row *row, size_t n, unsigned p, unsigned layer,
                 enum bench_placement placement)
{
    fprintf(f, "$%s%u << END\n", panels[p].name, layer);
    for (const struct bench_row *r = row; r < row + n; r++) {
        if (r->test != panels[p].test || r->placement != placement || r->api != BENCH_FM)
            continue;
        double percent = kept(row, n, r, layers[layer].api);
        if (isnan(percent))
            fputc('\n', f); /* the curves break where nothing was measured */
        else
            fprintf(f, "%llu %.4g %zu\n", (unsigned long long)r->bytes, percent,
                    find(row, n, r, layers[layer].api)->trials);
    }
    fputs("END\n", f);
}

/* The published points: short messages at their own size, which the axis is made to hold if it was not measured; long
 * ones at the longest size. */
static void paper(FILE *f, const struct bench_row *row, size_t n, unsigned p, enum bench_placement placement)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (const struct bench_row *r = row; r < row + n; r++)
        if (r->test == panels[p].test && r->placement == placement && r->api == BENCH_FM) {
            least = r->bytes < least ? r->bytes : least;
            most = r->bytes > most ? r->bytes : most;
        }
    fputs("$paper << END\n", f);
    if (panels[p].test == BENCH_LATENCY)
        fprintf(f, "%llu %u\nEND\n", (unsigned long long)least, 100 * PAPER_FM_US / PAPER_MPI_US);
    else
        fprintf(f, "%u %u\n%llu %u\nEND\n", PAPER_BYTES, PAPER_SHORT, (unsigned long long)most, PAPER_LONG);
    if (panels[p].test == BENCH_BANDWIDTH && least > PAPER_BYTES && most > least)
        fprintf(f, "set xtics add ('%u' %u)\nset xrange [%u:%llu]\n", PAPER_BYTES, PAPER_BYTES, PAPER_BYTES,
                (unsigned long long)most);
}

void bench_plot_mpi(FILE *f, const char *picture, const struct bench_row *row, size_t n, enum bench_placement placement)
{
    fprintf(f,
            "set terminal pngcairo size 1100,500 font 'sans,11'\nset output '%s'\n"
            "set multiplot layout 1,2 title 'What MPI keeps of Fast Messages 2.x ",
            picture);
    bench_plot_where(f, row, n, placement);
    fputs("' font ',13'\nset xlabel 'message size, bytes'\nset ylabel 'percent of FM 2.x'\nset logscale x 2\n"
          "set yrange [0:100<*]\nset grid xtics ytics lt 1 lw 1 lc rgb '#cccccc'\nset border 3\nset tics nomirror\n"
          "set key below horizontal maxcols 2 height 1.5\n",
          f);
    for (unsigned p = 0; p < PANELS; p++) {
        bool single = false;
        for (unsigned i = 0; i < LAYERS; i++)
            data(f, row, n, p, i, placement);
        bench_plot_ticks(f, row, n, panels[p].test, placement, BENCH_FM);
        paper(f, row, n, p, placement);
        fprintf(f,
                "set title '%s'\nplot $paper using 1:2 with points pt 7 ps 1.5 lc rgb '" BENCH_PLOT_COLOUR_FM
                "' title '%s'",
                panels[p].title,
                panels[p].test == BENCH_LATENCY ? "MPI-FM 2.0, 1998: 11 of 17 us" : "MPI-FM 2.0, 1998: figure 6");
        for (unsigned i = 0; i < LAYERS; i++)
            if (has_curve(row, n, p, i, placement))
                fprintf(f, ", \\\n    $%s%u using 1:2 with linespoints lw 2 ps 0.8 %s title '%s'", panels[p].name, i,
                        layers[i].style, layers[i].title);
        for (unsigned i = 0; i < LAYERS; i++)
            if (has_curve(row, n, p, i, placement) &&
                bench_plot_single(row, n, panels[p].test, placement, (int)layers[i].api)) {
                char name[24];
                snprintf(name, sizeof name, "$%s%u", panels[p].name, i);
                bench_plot_mark(f, name, 2, 3, single);
                single = true;
            }
        fputc('\n', f);
    }
    fputs("unset multiplot\n", f);
}
