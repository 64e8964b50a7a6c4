/* SPDX-License-Identifier: BSD-3-Clause
 *
 * affine.c - the second null model: the closed form of null.c and what a reader of the papers could add by hand. For a
 * latency that is one constant for each generation of cards, the mean of what the closed form leaves of its rows (24;
 * 7a and 34); for a rate, the line through rows 21a and 21b in place of the DMA engine's start and rate, which is known
 * of LANai 4.1 and of what goes to the card by DMA; for a ping-pong's rate both. It has no protocol in it, so a
 * simulation that is no nearer to the held rows than this has fitted and not explained. */
#include "sim/myrinet/experiments/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GENERATIONS = 2, LINE = 2 };
static const struct generation {
    const char *machines;
    struct {
        const char *row, *system, *machine;
        uint32_t bytes, ways; /* ways: 2 of a round trip */
    } of[2];
} generations[GENERATIONS] = {
    {"H-A H-S", {{"7a", "fm1", "H-S", 16, 1}, {"34", "fm1", "H-A", 16, 2}}},
    {"H-P H-PP H-FM2", {{"24", "vmmc", "H-P", 4, 1}}},
};
static const struct {
    const char *row;
    uint32_t bytes;
} line[LINE] = {{"21a", 4096}, {"21b", 65536}};

static struct {
    int known;
    double constant[GENERATIONS]; /* us */
    double start, rate;           /* of the line: us, MB/s */
} affine;

static double published(const struct myri_row *rows, int n, const char *id)
{
    for (int i = 0; i < n; i++)
        if (strcmp(rows[i].field[MYRI_ROW_ID], id) == 0)
            return strtod(rows[i].field[MYRI_ROW_VALUE], NULL);
    return NAN;
}

/* From the published figures and the machines as they are built in: --set changes what a prediction is made of, and not
 * what has been measured. */
static void learn(void)
{
    struct myri_row *rows = calloc(MYRI_ROWS, sizeof *rows);
    int n = rows ? myri_rows_builtin(rows, MYRI_ROWS) : 0;
    for (int g = 0; g < GENERATIONS; g++) {
        double sum = 0;
        int used = 0;
        for (int i = 0; i < 2 && generations[g].of[i].row; i++, used++) {
            struct myri_machine m;
            (void)myri_machine_builtin(generations[g].of[i].machine, &m);
            sum += published(rows, n, generations[g].of[i].row) / generations[g].of[i].ways -
                   myri_null_latency(generations[g].of[i].system, &m, generations[g].of[i].bytes);
        }
        affine.constant[g] = sum / used;
    }
    double t[LINE];
    for (int i = 0; i < LINE; i++)
        t[i] = line[i].bytes / published(rows, n, line[i].row);
    affine.rate = (line[1].bytes - line[0].bytes) / (t[1] - t[0]);
    affine.start = t[0] - line[0].bytes / affine.rate;
    affine.known = 1;
    free(rows);
}

static int generation_of(const struct myri_machine *m)
{
    if (!affine.known)
        learn();
    for (int g = 0; g < GENERATIONS; g++)
        if (myri_names_has(generations[g].machines, m->name))
            return g;
    return -1;
}

double myri_affine_latency(const char *system, const struct myri_machine *m, uint32_t bytes)
{
    int g = generation_of(m);
    return g < 0 ? NAN : myri_null_latency(system, m, bytes) + affine.constant[g];
}

double myri_affine_rate(const char *system, const struct myri_machine *m, uint32_t bytes)
{
    struct myri_machine with = *m;
    if (generation_of(m) == 1 && !myri_null_stores(system, bytes)) {
        with.v[MYRI_M_dma_start] = affine.start * m->v[MYRI_M_ni_clock];
        with.v[MYRI_M_dma_rate] = affine.rate;
    }
    return myri_null_rate(system, &with, bytes);
}

double myri_affine_ping(const char *system, const struct myri_machine *m, uint32_t bytes)
{
    int g = generation_of(m);
    return g < 0 ? NAN : bytes / (affine.constant[g] + bytes / myri_affine_rate(system, m, bytes));
}
