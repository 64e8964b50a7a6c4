/* SPDX-License-Identifier: BSD-3-Clause
 *
 * table.c - `runnel paper table`: published figures beside ours, misses included. */
#include "sim/myrinet/command/command.h"
#include "sim/myrinet/command/summary.h"
#include "sim/myrinet/experiments/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int changed(void *arg, struct myri_machine *m)
{
    const struct myri_cmd_options *o = arg;
    for (int i = 0; i < o->sets; i++)
        if (myri_machine_set(m, o->set[i]) < 0)
            return RNL_ERR_ARG;
    return 0;
}

static int wanted(const struct myri_row *r, const char *what)
{
    return !what || strcmp(what, "all") == 0 || strcmp(what, r->field[MYRI_ROW_ID]) == 0 ||
           strcmp(what, r->field[MYRI_ROW_PAPER]) == 0 || strcmp(what, r->field[MYRI_ROW_SYSTEM]) == 0 ||
           strcmp(what, r->field[MYRI_ROW_CLASS]) == 0;
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

/* What there is no experiment of, or what is missing from one that is not counted. */
const char *myri_cmd_what_is_missing(const struct myri_row *r)
{
    static const struct {
        const char *system, *what;
    } missing[] = {
        {"vrpc", "no vRPC here: what its library takes is not given"},
        {"shrimp", "other hardware: SHRIMP's interface"},
        {"myricom-api", "closed firmware: Myricom's API"},
        {"orca", "no Water here: nothing says what its computing takes"},
    };
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
        if (strcmp(missing[i].system, r->field[MYRI_ROW_SYSTEM]) == 0)
            return missing[i].what;
    return strcmp(r->field[MYRI_ROW_CLASS], "input") == 0 ? "given to the machine"
                                                          : "no experiment: nothing to measure";
}

/* Columns are as wide as the longest entry, so that no name is cut. */
static const struct column {
    const char *head;
    enum myri_row_field field;
} columns[] = {{"row", MYRI_ROW_ID},          {"system", MYRI_ROW_SYSTEM}, {"machine", MYRI_ROW_MACHINE},
               {"class", MYRI_ROW_CLASS},     {"metric", MYRI_ROW_METRIC}, {"bytes", MYRI_ROW_BYTES},
               {"published", MYRI_ROW_VALUE}, {"unit", MYRI_ROW_UNIT}};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static int right_of(enum myri_row_field f)
{
    return f == MYRI_ROW_BYTES || f == MYRI_ROW_VALUE;
}

static void print_head(const struct myri_row *rows, int n, const char *what, int *width)
{
    for (int k = 0; k < COLUMNS; k++) {
        width[k] = (int)strlen(columns[k].head);
        for (int i = 0; i < n; i++)
            if (wanted(&rows[i], what) && (int)strlen(rows[i].field[columns[k].field]) > width[k])
                width[k] = (int)strlen(rows[i].field[columns[k].field]);
        printf("%*s ", right_of(columns[k].field) ? width[k] : -width[k], columns[k].head);
    }
    printf("%8s %7s %7s %8s %6s %8s %6s\n", "ours", "off", "tuned", "null", "off", "affine", "off");
}

static void print_row(const struct myri_row *r, const struct myri_answer *a, const int *width)
{
    char ours[24], off[24], null[24], null_off[24], tuned[24], affine[24], affine_off[24];
    if (myri_row_is_shape(r)) {
        snprintf(ours, sizeof ours, "%s", a->answered ? a->truth ? "true" : "false" : "-");
        snprintf(off, sizeof off, "-");
    } else {
        figure(ours, sizeof ours, a->answered ? a->ours : NAN, 4);
        percent(off, sizeof off, a->answered ? a->off : NAN, 1);
    }
    figure(null, sizeof null, a->null, 3);
    percent(null_off, sizeof null_off, a->null_off, 0);
    figure(affine, sizeof affine, a->affine, 3);
    percent(affine_off, sizeof affine_off, a->affine_off, 0);
    if (myri_row_is_shape(r) && !isnan(a->tuned))
        snprintf(tuned, sizeof tuned, "%s", a->tuned_inside ? "true" : "false");
    else
        figure(tuned, sizeof tuned, a->tuned, 4);
    for (int k = 0; k < COLUMNS; k++)
        printf("%*s ", right_of(columns[k].field) ? width[k] : -width[k], r->field[columns[k].field]);
    printf("%8s %7s %7s %8s %6s %8s %6s  ", ours, off, tuned, null, null_off, affine, affine_off);
    int counted = strcmp(r->field[MYRI_ROW_CLASS], "later") != 0;
    if (!a->answered)
        puts(myri_cmd_what_is_missing(r));
    else
        printf("%s%s%s\n", a->inside ? "inside" : "MISS",
               counted ? "" : ", not counted: ", counted ? "" : myri_cmd_what_is_missing(r));
}

static void print_json(const struct myri_row *r, const struct myri_answer *a, int *some)
{
    printf("%s\n  {\"row\": \"%s\", \"system\": \"%s\", \"machine\": \"%s\", \"class\": \"%s\", \"unit\": \"%s\", ",
           *some ? "," : "", r->field[MYRI_ROW_ID], r->field[MYRI_ROW_SYSTEM], r->field[MYRI_ROW_MACHINE],
           r->field[MYRI_ROW_CLASS], r->field[MYRI_ROW_UNIT]);
    if (myri_row_is_shape(r)) {
        printf("\"ours\": %s", a->truth ? "true" : "false");
        if (!isnan(a->tuned))
            printf(", \"tuned\": %s", a->tuned_inside ? "true" : "false");
    } else {
        printf("\"published\": \"%s\", \"ours\": %.6g", r->field[MYRI_ROW_VALUE], a->ours);
        if (!isnan(a->null))
            printf(", \"null\": %.6g, \"affine\": %.6g", a->null, a->affine);
        if (!isnan(a->tuned))
            printf(", \"tuned\": %.6g, \"tuned_inside\": %s", a->tuned, a->tuned_inside ? "true" : "false");
    }
    printf(", \"inside\": %s}", a->inside ? "true" : "false");
    *some = 1;
}

static int table(struct myri_cmd_options *o, struct myri_row *rows)
{
    struct myri_cmd_sums sums = {0};
    int n = myri_rows_builtin(rows, MYRI_ROWS), some = 0, found = 0, width[COLUMNS];
    if (n < 0)
        return myri_cmd_failed();
    for (int i = 0; i < n; i++)
        found += wanted(&rows[i], o->what);
    if (!found)
        return myri_cmd_wrong("no published figure is called '%s', nor its paper, system or class", o->what);
    for (int i = 0; i < o->sets; i++) { /* before there is half a table */
        struct myri_machine m;
        if (myri_machine_builtin("H-P", &m) < 0 || myri_machine_set(&m, o->set[i]) < 0)
            return myri_cmd_failed();
    }
    if (o->json)
        putchar('[');
    else
        print_head(rows, n, o->what, width);
    for (int i = 0; i < n; i++) {
        struct myri_answer a;
        if (!wanted(&rows[i], o->what))
            continue;
        if (myri_row_answer(&rows[i], changed, o, &a) < 0) {
            fprintf(stderr, "row %s: ", rows[i].field[MYRI_ROW_ID]);
            return myri_cmd_failed();
        }
        myri_cmd_sums_add(&sums, &rows[i], &a);
        if (!o->json)
            print_row(&rows[i], &a, width);
        else if (a.answered)
            print_json(&rows[i], &a, &some);
    }
    if (o->json)
        puts(some ? "\n]" : "]");
    else if (myri_cmd_sums_print(&sums, !o->what || strcmp(o->what, "all") == 0, changed, o) < 0)
        return myri_cmd_failed();
    return 0;
}

int myri_cmd_table(struct myri_cmd_options *o)
{
    struct myri_row *rows = calloc(MYRI_ROWS, sizeof *rows);
    int rc = rows ? table(o, rows) : myri_cmd_no_memory(MYRI_ROWS * sizeof *rows);
    free(rows);
    return rc;
}
