/* SPDX-License-Identifier: BSD-3-Clause
 *
 * paper_table.c - `runnel paper table`: published figures beside ours, misses included. */
#include "paper.h"
#include "sim/paper/experiments/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sums {
    int answered, inside, tuned_inside, figures, nulls;
    double off, tuned_off, null_off;
};

static int unfitted(void *arg, struct rnl_machine *m)
{
    (void)arg;
    m->v[RNL_M_ni_time] = 1;
    return 0;
}

/* On the time of the card's processor, of the row's machine as it is built in. */
static double factor_of(const struct rnl_row *r)
{
    struct rnl_machine m;
    return rnl_machine_builtin(r->field[RNL_ROW_MACHINE], &m) < 0 ? 1 : m.v[RNL_M_ni_time];
}

static int changed(void *arg, struct rnl_machine *m)
{
    const struct paper_options *o = arg;
    for (int i = 0; i < o->sets; i++)
        if (rnl_machine_set(m, o->set[i]) < 0)
            return RNL_ERR_ARG;
    return 0;
}

static int wanted(const struct rnl_row *r, const char *what)
{
    return !what || strcmp(what, "all") == 0 || strcmp(what, r->field[RNL_ROW_ID]) == 0 ||
           strcmp(what, r->field[RNL_ROW_PAPER]) == 0 || strcmp(what, r->field[RNL_ROW_SYSTEM]) == 0 ||
           strcmp(what, r->field[RNL_ROW_CLASS]) == 0;
}

static void figure(char *out, size_t room, double v, int digits)
{
    if (isnan(v))
        snprintf(out, room, "-");
    else
        snprintf(out, room, "%.*g", digits, v);
}

static void percent(char *out, size_t room, double v, int decimals)
{
    if (isnan(v))
        snprintf(out, room, "-");
    else
        snprintf(out, room, "%+.*f%%", decimals, 100 * v);
}

static void print_row(const struct rnl_row *r, const struct rnl_answer *a, const struct rnl_answer *plain)
{
    char ours[24], off[24], bare[24], null[24], null_off[24], tuned[24];
    if (rnl_row_is_shape(r)) {
        snprintf(ours, sizeof ours, "%s", a->answered ? a->truth ? "true" : "false" : "-");
        snprintf(bare, sizeof bare, "%s", plain->answered ? plain->truth ? "true" : "false" : "-");
        snprintf(off, sizeof off, "-");
    } else {
        figure(ours, sizeof ours, a->answered ? a->ours : NAN, 4);
        figure(bare, sizeof bare, plain->answered ? plain->ours : NAN, 4);
        percent(off, sizeof off, a->answered ? a->off : NAN, 1);
    }
    figure(null, sizeof null, a->null, 3);
    percent(null_off, sizeof null_off, a->null_off, 0);
    figure(tuned, sizeof tuned, a->tuned, 4);
    const char *class = r->field[RNL_ROW_CLASS];
    const char *verdict = a->answered                     ? a->inside ? "inside" : "MISS"
                          : strcmp(class, "input") == 0   ? "given to the machine"
                          : strcmp(class, "context") == 0 ? "no experiment"
                                                          : "not modelled";
    printf("%-4s %-8s %-7s %-6s %-46.46s %9s %-4s %8s %7s %8s %7s %8s %6s  %s\n", r->field[RNL_ROW_ID],
           r->field[RNL_ROW_SYSTEM], r->field[RNL_ROW_MACHINE], r->field[RNL_ROW_CLASS], r->field[RNL_ROW_METRIC],
           r->field[RNL_ROW_VALUE], r->field[RNL_ROW_UNIT], ours, off, bare, tuned, null, null_off, verdict);
}

static void print_json(const struct rnl_row *r, const struct rnl_answer *a, const struct rnl_answer *plain, int *some)
{
    printf("%s\n  {\"row\": \"%s\", \"system\": \"%s\", \"machine\": \"%s\", \"class\": \"%s\", \"unit\": \"%s\", ",
           *some ? "," : "", r->field[RNL_ROW_ID], r->field[RNL_ROW_SYSTEM], r->field[RNL_ROW_MACHINE],
           r->field[RNL_ROW_CLASS], r->field[RNL_ROW_UNIT]);
    if (rnl_row_is_shape(r)) {
        printf("\"ours\": %s, \"unfitted\": %s", a->truth ? "true" : "false", plain->truth ? "true" : "false");
    } else {
        printf("\"published\": \"%s\", \"ours\": %.6g, \"unfitted\": %.6g", r->field[RNL_ROW_VALUE], a->ours,
               plain->ours);
        if (!isnan(a->null))
            printf(", \"null\": %.6g", a->null);
        if (!isnan(a->tuned))
            printf(", \"tuned\": %.6g, \"tuned_inside\": %s", a->tuned, a->tuned_inside ? "true" : "false");
    }
    printf(", \"inside\": %s}", a->inside ? "true" : "false");
    *some = 1;
}

static void add(struct sums *s, const struct rnl_row *r, const struct rnl_answer *a)
{
    if (!a->answered || strcmp(r->field[RNL_ROW_CLASS], "held") != 0)
        return;
    s->answered++;
    s->inside += a->inside;
    s->tuned_inside += a->tuned_inside;
    if (!isnan(a->off)) {
        s->figures++;
        s->off += fabs(a->off);
        s->tuned_off += fabs(isnan(a->tuned) ? a->off : a->tuned / a->published - 1);
        if (!isnan(a->null_off)) {
            s->nulls++;
            s->null_off += fabs(a->null_off);
        }
    }
}

static int table(struct paper_options *o, struct rnl_row *rows)
{
    struct sums sums = {0};
    int n = rnl_rows_builtin(rows, RNL_ROWS), some = 0, found = 0;
    if (n < 0)
        return paper_failed();
    if (o->json)
        putchar('[');
    else
        printf("%-4s %-8s %-7s %-6s %-46s %9s %-4s %8s %7s %8s %7s %8s %6s\n", "row", "system", "machine", "class",
               "metric", "published", "unit", "ours", "off", "unfitted", "tuned", "null", "off");
    for (int i = 0; i < n; i++) {
        struct rnl_answer a, plain;
        if (!wanted(&rows[i], o->what))
            continue;
        found++;
        int same = !o->sets && factor_of(&rows[i]) == 1; /* the fit found no factor: there is nothing to leave out */
        if (rnl_row_answer(&rows[i], changed, o, &a) < 0 ||
            (!same && rnl_row_answer(&rows[i], unfitted, NULL, &plain) < 0)) {
            fprintf(stderr, "row %s: ", rows[i].field[RNL_ROW_ID]);
            return paper_failed();
        }
        if (same)
            plain = a;
        add(&sums, &rows[i], &a);
        if (!o->json)
            print_row(&rows[i], &a, &plain);
        else if (a.answered)
            print_json(&rows[i], &a, &plain, &some);
    }
    if (o->json)
        puts(some ? "\n]" : "]");
    else if (sums.answered)
        printf(
            "\nheld rows: %d of %d inside (15 %% of latencies and sizes, 10 %% of rates); off by %.1f %% in the mean, "
            "the null model by %.1f %%; with tuned firmware %d inside, %.1f %%\n",
            sums.inside, sums.answered, 100 * sums.off / (sums.figures ? sums.figures : 1),
            100 * sums.null_off / (sums.nulls ? sums.nulls : 1), sums.tuned_inside,
            100 * sums.tuned_off / (sums.figures ? sums.figures : 1));
    return found ? 0 : paper_wrong("no published figure is called '%s', nor its paper, system or class", o->what);
}

int paper_table(struct paper_options *o)
{
    struct rnl_row *rows = calloc(RNL_ROWS, sizeof *rows);
    int rc = rows ? table(o, rows) : paper_no_memory(RNL_ROWS * sizeof *rows);
    free(rows);
    return rc;
}
