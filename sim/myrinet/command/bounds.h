/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bounds.h - one value of the machines is multiplied by nine factors, and a row is judged at each of them: of `fit
 * --bounds` and of `why`. */
#ifndef MYRI_BOUNDS_H
#define MYRI_BOUNDS_H

#include "sim/myrinet/experiments/rows.h"

enum { MYRI_CMD_FACTORS = 9, MYRI_CMD_OWN = MYRI_CMD_FACTORS / 2 };
extern const double myri_cmd_factors[MYRI_CMD_FACTORS];

/* What one row comes to at each factor: `#` inside, `.` outside, a blank where the value cannot be that. */
struct myri_cmd_bounds_row {
    const struct myri_row *row;
    double is;
    char at[MYRI_CMD_FACTORS + 1];
    int idle;                                    /* the least and the largest change nothing, to the bit */
    struct myri_answer answer[MYRI_CMD_FACTORS]; /* what the row is then; of blanks nothing */
};

/* The value on each machine of the row that has it of one of these classes (letters, as in machine.h), and not 0. With
 * `ends_first`, what is idle at both ends is not tried between them; `own` is what the row is with the machine's own
 * value, or NULL. False when no experiment answers the row. */
int myri_cmd_bounds_judge(struct myri_cmd_bounds_row *, int value, const char *classes, int ends_first,
                          const struct myri_answer *own);

/* Its side changes somewhere; no number has both inside, though each has one. */
int myri_cmd_bounds_is_moved(const struct myri_cmd_bounds_row *);
int myri_cmd_bounds_exclude(const struct myri_cmd_bounds_row *, const struct myri_cmd_bounds_row *);

/* A picture of it: NULL without memory; a value with its rows; DIR/bounds.svg, or nothing without DIR. */
struct myri_cmd_bounds_picture;
struct myri_cmd_bounds_picture *myri_cmd_bounds_picture_new(void);
void myri_cmd_bounds_picture_add(struct myri_cmd_bounds_picture *, int value, const struct myri_cmd_bounds_row *,
                                 int n);
int myri_cmd_bounds_picture_end(struct myri_cmd_bounds_picture *, const char *dir); /* 0, or the exit status, said */

#endif
