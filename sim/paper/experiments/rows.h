/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rows.h - the published figures (rows.csv), and which experiment on which machine answers each.
 *
 * Classes: `fit` rows may be used to find fitted values, `held` rows never; `leaked` rows have been used to derive the
 * machine's values, and prove nothing; `input` rows are the machine's values themselves. */
#ifndef RNL_PAPER_ROWS_H
#define RNL_PAPER_ROWS_H

#include "sim/paper/experiments/run.h"

enum { RNL_ROWS = 128, RNL_ROW_FIELDS = 12, RNL_ROW_TEXT = 96 };
enum rnl_row_field {
    RNL_ROW_ID,
    RNL_ROW_PAPER,
    RNL_ROW_PLACE,
    RNL_ROW_MACHINE,
    RNL_ROW_SYSTEM,
    RNL_ROW_METRIC,
    RNL_ROW_BYTES,
    RNL_ROW_VALUE,
    RNL_ROW_UNIT,
    RNL_ROW_KIND,
    RNL_ROW_CLASS,
    RNL_ROW_NOTE
};
struct rnl_row {
    char field[RNL_ROW_FIELDS][RNL_ROW_TEXT];
};

/* A changed machine for every experiment of a row; NULL: as it is built in. */
typedef int rnl_row_machine(void *arg, struct rnl_machine *);

struct rnl_answer {
    int answered;     /* there is an experiment for it */
    int truth;        /* of a shape */
    double ours;      /* of a figure */
    double null;      /* what the closed form from given values says; NAN: nothing */
    double published; /* or the bound; NAN: a shape */
    double off;       /* ours / published - 1; NAN of bounds and shapes */
    double null_off;
    int inside;   /* 15 % of latencies and sizes, 10 % of rates, bounds and shapes exactly */
    double tuned; /* the same with the system's firmware that was written for speed alone; NAN: it has none */
    int tuned_inside;
};

/* Reads rows.csv; returns how many, or RNL_ERR_ARG with the line that is wrong. */
int rnl_rows_read(const char *text, size_t n, struct rnl_row *rows, int most);
int rnl_rows_builtin(struct rnl_row *rows, int most);
/* 0, or an error of the experiment. */
int rnl_row_answer(const struct rnl_row *, rnl_row_machine *change, void *arg, struct rnl_answer *out);
static inline int rnl_row_is_shape(const struct rnl_row *r)
{
    return r->field[RNL_ROW_KIND][0] == 's';
}

/* Closed forms (null.c): what the given values alone would say, without protocol or firmware. */
double rnl_null_latency(const char *system, const struct rnl_machine *, uint32_t bytes);
double rnl_null_rate(const char *system, const struct rnl_machine *, uint32_t bytes);

#endif
