/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plot.c - see report.h: pictures by gnuplot. Each script carries its data, so that it can be changed and run again by
 * hand. */
#include "report.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

bool bench_plot_possible(void)
{
    const char *path = getenv("PATH");
    char name[PATH_MAX];
    for (const char *p = path; p && *p;) {
        size_t n = strcspn(p, ":");
        snprintf(name, sizeof name, "%.*s/gnuplot", (int)n, p);
        if (n && access(name, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

int bench_plot_folder(const char *dir, char *text, size_t size)
{
    struct stat st;
    if (mkdir(dir, 0777) == 0)
        return 0;
    int e = errno;
    if (e != EEXIST) {
        snprintf(text, size, "cannot make the folder %s: %s; name one whose parent exists and is yours", dir,
                 strerror(e));
        return -e;
    }
    if (stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && access(dir, W_OK | X_OK) == 0)
        return 0;
    snprintf(text, size, "cannot write to %s: name a folder that is yours, or a new one", dir);
    return -EACCES;
}

bool bench_plot_has(const struct bench_row *row, size_t n, enum bench_test test, enum bench_placement placement,
                    int api)
{
    size_t points = 0;
    for (size_t i = 0; i < n; i++)
        if (row[i].test == test && row[i].placement == placement && (api < 0 || row[i].api == (unsigned)api) &&
            !isnan(row[i].value))
            points++;
    return points > 0;
}

bool bench_plot_single(const struct bench_row *row, size_t n, enum bench_test test, enum bench_placement placement,
                       int api)
{
    for (size_t i = 0; i < n; i++)
        if (row[i].test == test && row[i].placement == placement && row[i].api == (unsigned)api && row[i].trials == 1 &&
            !isnan(row[i].value))
            return true;
    return false;
}

void bench_plot_mark(FILE *f, const char *data, unsigned value, unsigned trials, bool named)
{
    fprintf(f, ", \\\n    %s using 1:($%u == 1 ? $%u : NaN) with points pt 6 ps 2 lc rgb '#444444' %s", data, trials,
            value, named ? "notitle" : "title 'ringed: one trial only'");
}

/* Rows come in order of size. */
void bench_plot_ticks(FILE *f, const struct bench_row *row, size_t n, enum bench_test test,
                      enum bench_placement placement, unsigned api)
{
    char text[24];
    unsigned sizes = 0, at = 0;
    uint64_t least = UINT64_MAX, most = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            if (row[i].test != test || row[i].api != api || row[i].placement != placement)
                continue;
            if (pass == 0) {
                sizes++;
                least = row[i].bytes < least ? row[i].bytes : least;
                most = row[i].bytes > most ? row[i].bytes : most;
            } else if (at++ % (sizes > 10 ? 2 : 1) == 0) {
                bench_bytes_text(row[i].bytes, text);
                fprintf(f, "%s'%s' %llu", at == 1 ? "set xtics (" : ", ", text, (unsigned long long)row[i].bytes);
            }
        }
    }
    fputs(")\n", f);
    if (least < most) /* also where the first and the last are missing */
        fprintf(f, "set xrange [%llu:%llu]\n", (unsigned long long)least, (unsigned long long)most);
}

void bench_plot_where(FILE *f, const struct bench_row *row, size_t n, enum bench_placement placement)
{
    double probe = NAN;
    for (size_t i = 0; i < n && isnan(probe); i++)
        if (row[i].placement == placement)
            probe = row[i].probe_ns;
    if (placement == BENCH_ONE_CORE)
        fputs("(both processes on one core)", f);
    else
        fprintf(f, "(cores %s: %.0f ns a line)", bench_placement_name(placement), probe);
}

void bench_plot_sizes(FILE *f, const char *picture, const struct bench_row *row, size_t n, enum bench_test test,
                      enum bench_placement placement)
{
    static const char *const title[BENCH_APIS] = {"raw (baseline)",
                                                  "native",
                                                  "FM 2.x",
                                                  "FM 1.1",
                                                  "TCP",
                                                  "AM-2",
                                                  [BENCH_OPENMPI] = "Open MPI",
                                                  "Open MPI on UCX",
                                                  "MPICH",
                                                  "UCX, AM",
                                                  "UCX, tagged",
                                                  "libfabric shm",
                                                  "the provider",
                                                  "Open MPI on the provider",
                                                  "MPICH on the provider"};
    /* peers are thinner, and their colours paler */
    static const char *const style[BENCH_APIS] = {"lw 2 lc rgb '" BENCH_PLOT_COLOUR_BASELINE "' dt 2 pt 2",
                                                  "lw 2 lc rgb '" BENCH_PLOT_COLOUR_NATIVE "' pt 7",
                                                  "lw 2 lc rgb '" BENCH_PLOT_COLOUR_FM "' pt 5",
                                                  "lw 2 lc rgb '" BENCH_PLOT_COLOUR_FM1 "' pt 9",
                                                  "lw 2 lc rgb '#c9a227' dt 2 pt 12",
                                                  "lw 2 lc rgb '#7a3e9d' pt 11",
                                                  [BENCH_OPENMPI] = "lw 1 lc rgb '#e08e45' pt 4",
                                                  "lw 1 lc rgb '#b5651d' pt 6",
                                                  "lw 1 lc rgb '#7d5ba6' pt 8",
                                                  "lw 1 lc rgb '#3a9ca6' pt 1",
                                                  "lw 1 lc rgb '#5b7f95' pt 3",
                                                  "lw 1 lc rgb '#a0a83c' pt 10",
                                                  "lw 2 lc rgb '#222222' pt 13",
                                                  "lw 2 lc rgb '#e08e45' pt 5",
                                                  "lw 2 lc rgb '#7d5ba6' pt 9"};
    for (int api = 0; api < BENCH_APIS; api++) {
        if (!bench_plot_has(row, n, test, placement, api))
            continue;
        fprintf(f, "$api%d << END\n", api);
        for (size_t i = 0; i < n; i++) {
            if (row[i].test != test || row[i].placement != placement || row[i].api != (unsigned)api)
                continue;
            if (isnan(row[i].value))
                fputc('\n', f); /* the curve breaks where nothing was measured */
            else
                fprintf(f, "%llu %.6g %zu\n", (unsigned long long)row[i].bytes, row[i].value, row[i].trials);
        }
        fputs("END\n", f);
    }
    fprintf(f, "set terminal pngcairo size 900,560 font 'sans,12'\nset output '%s'\n", picture);
    if (test == BENCH_LATENCY)
        fprintf(f, "set title 'One-way latency over %s ", row->udp ? "datagrams" : "shared memory");
    else
        fprintf(f, "set title 'Bandwidth over %s, fresh data copied in and out ",
                row->udp ? "datagrams" : "shared memory");
    bench_plot_where(f, row, n, placement);
    fputs("'\nset xlabel 'message size, bytes'\nset logscale x 2\nset grid xtics ytics lt 1 lw 1 lc rgb "
          "'#cccccc'\n"
          "set border 3\nset tics nomirror\n",
          f);
    bench_plot_ticks(f, row, n, test, placement, BENCH_RAW);
    if (test == BENCH_LATENCY)
        fputs("set ylabel 'ns'\nset logscale y 10\n", f);
    else
        fputs("set ylabel 'GB/s'\nset yrange [0:*]\n", f);
    fputs("set key below horizontal height 1.5\n", f); /* where no curve is */
    const char *sep = "plot ";
    for (int api = 0; api < BENCH_APIS; api++) {
        if (!bench_plot_has(row, n, test, placement, api))
            continue;
        fprintf(f, "%s$api%d using 1:2 with linespoints ps 0.8 %s title '%s'", sep, api, style[api], title[api]);
        sep = ", \\\n    ";
    }
    bool single = false;
    for (int api = 0; api < BENCH_APIS; api++) {
        char name[16];
        snprintf(name, sizeof name, "$api%d", api);
        if (bench_plot_single(row, n, test, placement, api)) {
            bench_plot_mark(f, name, 2, 3, single);
            single = true;
        }
    }
    fputc('\n', f);
}

/* In dir, so that the script can name its picture without it. */
static int run_gnuplot(const char *dir, const char *script, char *text, size_t size)
{
    posix_spawn_file_actions_t actions;
    char *argv[] = {(char[]){"gnuplot"}, NULL, NULL};
    pid_t pid;
    int status = 0;
    char name[64];
    snprintf(name, sizeof name, "%s", script);
    argv[1] = name;
    int e = posix_spawn_file_actions_init(&actions);
    if (e == 0) {
        e = posix_spawn_file_actions_addchdir_np(&actions, dir);
        if (e == 0)
            e = posix_spawnp(&pid, "gnuplot", &actions, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (e) {
        snprintf(text, size, "gnuplot did not start: %s; %s/%s holds the plot: run gnuplot on it", strerror(e), dir,
                 script);
        return -e;
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (status) {
        snprintf(text, size, "gnuplot failed on %s/%s; its message is above", dir, script);
        return -EIO;
    }
    return 0;
}

static int plot_one(const char *dir, const char *base, const struct bench_row *row, size_t n, enum bench_test test,
                    enum bench_placement placement, bool mpi, FILE *say, char *text, size_t size)
{
    char script[48], picture[48], path[PATH_MAX];
    snprintf(script, sizeof script, "%s.gp", base);
    snprintf(picture, sizeof picture, "%s.png", base);
    snprintf(path, sizeof path, "%s/%s", dir, script);
    FILE *f = fopen(path, "we");
    if (!f) {
        snprintf(text, size, "cannot write %s: %s", path, strerror(errno));
        return -errno;
    }
    if (mpi)
        bench_plot_mpi(f, picture, row, n, placement);
    else if (test == BENCH_LAYERED)
        bench_plot_layered(f, picture, row, n, placement);
    else if (test == BENCH_AM_RATE)
        bench_plot_am(f, picture, row, n, placement);
    else
        bench_plot_sizes(f, picture, row, n, test, placement);
    bool bad = ferror(f);
    if (fclose(f) || bad) {
        snprintf(text, size, "cannot write %s: is the disk full?", path);
        return -EIO;
    }
    int e = run_gnuplot(dir, script, text, size);
    if (e == 0)
        fprintf(say, "wrote %s/%s\n", dir, picture);
    return e;
}

int bench_plot(const char *dir, const struct bench_row *row, size_t n, FILE *say, char *text, size_t size)
{
    static const enum bench_test tests[] = {BENCH_LATENCY, BENCH_BANDWIDTH, BENCH_LAYERED, BENCH_AM_RATE};
    size_t trials[BENCH_PLACEMENTS] = {0};
    enum bench_placement most = 0;
    for (size_t i = 0; i < n; i++)
        trials[row[i].placement] += row[i].trials;
    for (enum bench_placement k = 1; k < BENCH_PLACEMENTS; k++)
        if (trials[k] > trials[most])
            most = k;
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t++) {
        bool drawn = false, asked = false;
        for (size_t i = 0; i < n; i++)
            asked |= row[i].test == tests[t] || (tests[t] == BENCH_AM_RATE && row[i].test == BENCH_AM_LOSS_TRIP);
        for (enum bench_placement k = 0; k < BENCH_PLACEMENTS; k++) {
            char base[32];
            if (tests[t] == BENCH_AM_RATE ? !bench_plot_am_has(row, n, k) : !bench_plot_has(row, n, tests[t], k, -1))
                continue;
            if (k == most)
                snprintf(base, sizeof base, "%s", bench_test_name(tests[t]));
            else
                snprintf(base, sizeof base, "%s-%s", bench_test_name(tests[t]), bench_placement_name(k));
            int e = plot_one(dir, base, row, n, tests[t], k, false, say, text, size);
            if (e)
                return e;
            drawn = true;
        }
        if (asked && !drawn)
            fprintf(say, "%s.png was not drawn: nothing of it was measured. Give more time with --max-time.\n",
                    bench_test_name(tests[t]));
    }
    for (enum bench_placement k = 0; k < BENCH_PLACEMENTS; k++) {
        char base[32];
        snprintf(base, sizeof base, "mpi%s%s", k == most ? "" : "-", k == most ? "" : bench_placement_name(k));
        int e = bench_plot_mpi_has(row, n, k) ? plot_one(dir, base, row, n, BENCH_QUIT, k, true, say, text, size) : 0;
        if (e)
            return e;
    }
    return 0;
}
