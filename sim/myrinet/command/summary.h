/* SPDX-License-Identifier: BSD-3-Clause
 *
 * summary.h - what a table of published figures comes to: held rows inside, how far off, whether that is nearer than
 * what arithmetic alone says. */
#ifndef MYRI_SUMMARY_H
#define MYRI_SUMMARY_H

#include "sim/myrinet/experiments/rows.h"

/* Misses of the held rows of one kind that both null models have a figure of. */
struct myri_cmd_misses {
    int rows, nearer; /* nearer: than the affine model is */
    double ours, null, affine;
};
struct myri_cmd_sums {
    int answered, inside, in_sight, tuned_inside, figures;
    int second, second_inside, second_in_sight; /* that came later: rows, inside now, and those in sight */
    int second_then, second_first;              /* rows at the first comparison, and inside then */
    double off, tuned_off;
    struct myri_cmd_misses all, latencies, rates;
};

void myri_cmd_sums_add(struct myri_cmd_sums *, const struct myri_row *, const struct myri_answer *);
/* `whole`: of all rows, so that it says what the machines' values are and how it began, too. 0, or an error. */
int myri_cmd_sums_print(const struct myri_cmd_sums *, int whole, myri_row_machine *change, void *arg);

/* Whether a row of class second was inside when its system was first compared with it. */
int myri_cmd_was_inside(const struct myri_row *);
/* What there is no experiment of, or what is missing from one that is not counted (table.c). */
const char *myri_cmd_what_is_missing(const struct myri_row *);

#endif
