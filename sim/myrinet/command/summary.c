/* SPDX-License-Identifier: BSD-3-Clause
 *
 * summary.c - the lines below `runnel paper table`; see summary.h. */
#include "sim/myrinet/command/summary.h"

#include "sim/myrinet/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many of the 23 held rows were inside before anything was changed with knowledge of them: doc/results/log.md, 1. */
enum { FIRST_INSIDE = 9 };

/* Rows that are inside by a mechanism or an estimate that was chosen with them in sight (log.md 19, 43 to 45): such a
 * row is described, and nothing is predicted by it. */
static const char in_sight[] = "27c 31a 38b 38c";

/* Held rows that came later (class second), of systems and of the survey's words, which were inside as they were first
 * compared, before anything was changed with knowledge of them (log.md, from 48 on). */
static const char second_first[] =
    "10a 10c 35a 35b 35d 36b 36c 39a 39b 39c 39d 43a 43b 43c 71b 71c 73 74 75 76a 76b 78 80b";

/* Rows that one row of two systems became after the first comparison, which counts that one: true with 71c, false with
 * 72a and 72b (log.md 55). */
static const char split_later[] = "71d 72c 72d";

/* Rows whose criterion, or firmware, or what they go by, was changed after they had been looked at (log.md 55, 66, 73
 * to 79). */
static const char second_in_sight[] = "10b 40d 41 71a 72c 72d 78 79a 80a";

int myri_cmd_was_inside(const struct myri_row *r)
{
    return myri_names_has(second_first, r->field[MYRI_ROW_ID]);
}

static void add_miss(struct myri_cmd_misses *k, const struct myri_answer *a)
{
    k->rows++;
    k->ours += fabs(a->off);
    k->null += fabs(a->null_off);
    k->affine += fabs(a->affine_off);
    k->nearer += fabs(a->off) < fabs(a->affine_off);
}

void myri_cmd_sums_add(struct myri_cmd_sums *s, const struct myri_row *r, const struct myri_answer *a)
{
    if (a->answered && strcmp(r->field[MYRI_ROW_CLASS], "second") == 0) {
        s->second++;
        s->second_inside += a->inside;
        s->second_first += myri_cmd_was_inside(r);
        s->second_then += !myri_names_has(split_later, r->field[MYRI_ROW_ID]);
        s->second_in_sight += a->inside && myri_names_has(second_in_sight, r->field[MYRI_ROW_ID]);
    }
    if (!a->answered || strcmp(r->field[MYRI_ROW_CLASS], "held") != 0)
        return;
    s->answered++;
    s->inside += a->inside;
    s->in_sight += a->inside && myri_names_has(in_sight, r->field[MYRI_ROW_ID]);
    s->tuned_inside += a->tuned_inside;
    if (isnan(a->off))
        return;
    s->figures++;
    s->off += fabs(a->off);
    s->tuned_off += fabs(isnan(a->tuned) ? a->off : a->tuned / a->published - 1);
    if (isnan(a->null_off) || isnan(a->affine_off))
        return;
    add_miss(&s->all, a);
    if (strcmp(r->field[MYRI_ROW_UNIT], "us") == 0)
        add_miss(&s->latencies, a);
    else if (strcmp(r->field[MYRI_ROW_UNIT], "MB/s") == 0)
        add_miss(&s->rates, a);
}

static void print_misses(const char *what, const struct myri_cmd_misses *k)
{
    if (k->rows)
        printf("%-9s of %2d rows: ours %5.1f %%, null %5.1f %%, affine %5.1f %%; nearer than affine on %d: %s\n", what,
               k->rows, 100 * k->ours / k->rows, 100 * k->null / k->rows, 100 * k->affine / k->rows, k->nearer,
               k->ours < k->affine ? "CLOSER in the mean" : "NOT CLOSER in the mean");
}

/* A number that several machines share, as they have the same card, is one value. */
static int print_classes(void)
{
    struct {
        int value;
        char class_of;
        double number;
    } seen[512];
    int n = 0, count[128] = {0};
    for (const struct myri_data *d = myri_data_table; d->name; d++) {
        struct myri_machine m;
        if (strncmp(d->name, "machines/", 9) != 0)
            continue;
        int rc = myri_machine_parse((const char *)d->bytes, d->n, &m);
        if (rc < 0)
            return rc;
        for (int v = 0; v < MYRI_M_COUNT; v++) {
            int k = 0;
            while (k < n && (seen[k].value != v || seen[k].class_of != m.class_of[v] || seen[k].number != m.v[v]))
                k++;
            if (k < n || n == sizeof seen / sizeof seen[0])
                continue;
            seen[n].value = v;
            seen[n].class_of = m.class_of[v];
            seen[n++].number = m.v[v];
            count[(unsigned char)m.class_of[v]]++;
        }
    }
    printf("values of all machines, one number of one name once: %d fitted, %d derived, %d assumed, %d given\n",
           count['f'], count['d'], count['a'], count['g']);
    return 0;
}

static int shorter(const void *a, const void *b)
{
    double x = ((const struct myri_order *)a)->ours, y = ((const struct myri_order *)b)->ours;
    return (x > y) - (x < y);
}

static int print_order(myri_row_machine *change, void *arg)
{
    struct myri_order of[MYRI_ORDER];
    int rc = myri_plan_order(change, arg, of);
    if (rc < 0)
        return rc;
    printf("one-word latencies, published in this order:");
    for (int i = 0; i < MYRI_ORDER; i++)
        printf("%s %s", i ? " <" : "", of[i].system);
    qsort(of, MYRI_ORDER, sizeof of[0], shorter);
    printf("; ours:");
    for (int i = 0; i < MYRI_ORDER; i++)
        printf("%s %s %.2f", i ? " <" : "", of[i].system, of[i].ours);
    puts(" us");
    return 0;
}

static void print_second(const struct myri_cmd_sums *s)
{
    if (!s->second)
        return;
    printf("held rows that came later (second): inside at the first comparison %d of %d, and now %d of %d",
           s->second_first, s->second_then, s->second_inside, s->second);
    if (s->second_in_sight)
        printf(", of which %d with the row in sight (%s)", s->second_in_sight, second_in_sight);
    putchar('\n');
}

int myri_cmd_sums_print(const struct myri_cmd_sums *s, int whole, myri_row_machine *change, void *arg)
{
    if (!s->answered && s->second) {
        putchar('\n');
        print_second(s);
        return 0;
    }
    if (!s->answered) {
        puts("\nheld rows: no rows of that class are among these");
        return 0;
    }
    printf("\nheld rows: %d of %d inside (15 %% of latencies, 10 %% of sizes and rates); with tuned firmware %d\n",
           s->inside, s->answered, s->tuned_inside);
    if (whole)
        printf("inside at the first comparison %d of %d, and now %d, of which %d with the row in sight (%s)\n",
               FIRST_INSIDE, s->answered, s->inside, s->in_sight, in_sight);
    print_second(s);
    if (!s->figures)
        puts("off in the mean: no rows with a figure");
    else
        printf("off in the mean: %.1f %%, with tuned firmware %.1f %% (%d rows with a figure)\n",
               100 * s->off / s->figures, 100 * s->tuned_off / s->figures, s->figures);
    print_misses("figures", &s->all);
    print_misses("latencies", &s->latencies);
    print_misses("rates", &s->rates);
    if (!whole)
        return 0;
    int rc = print_classes();
    return rc < 0 ? rc : print_order(change, arg);
}
