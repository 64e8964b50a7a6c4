/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rows.h - the published figures (rows.csv), and which experiment on which machine answers each.
 *
 * Classes: `fit` rows may be used to find fitted values, `held` rows never; `second` rows are held ones that came
 * later, of systems and of what the survey says in words; `leaked` rows have been used to derive the machine's values,
 * and prove nothing; `input` rows are the machine's values themselves. */
#ifndef MYRI_ROWS_H
#define MYRI_ROWS_H

#include "sim/myrinet/experiments/run.h"

enum { MYRI_ROWS = 256, MYRI_ROW_FIELDS = 12, MYRI_ROW_TEXT = 240 };
enum myri_row_field {
    MYRI_ROW_ID,
    MYRI_ROW_PAPER,
    MYRI_ROW_PLACE,
    MYRI_ROW_MACHINE,
    MYRI_ROW_SYSTEM,
    MYRI_ROW_METRIC,
    MYRI_ROW_BYTES,
    MYRI_ROW_VALUE,
    MYRI_ROW_UNIT,
    MYRI_ROW_KIND,
    MYRI_ROW_CLASS,
    MYRI_ROW_NOTE
};
struct myri_row {
    char field[MYRI_ROW_FIELDS][MYRI_ROW_TEXT];
};

/* A changed machine for every experiment of a row; NULL: as it is built in. */
typedef int myri_row_machine(void *arg, struct myri_machine *);

struct myri_answer {
    int answered;     /* there is an experiment for it */
    int truth;        /* of a shape */
    double ours;      /* of a figure */
    double null;      /* what the closed form from given values says; NAN: nothing */
    double affine;    /* `null` with a constant for each generation of cards, or the line of its DMA; NAN: nothing */
    double published; /* or the bound; NAN: a shape */
    double off;       /* ours / published - 1; NAN of bounds and shapes */
    double null_off, affine_off;
    int inside; /* 15 % of latencies, 10 % of sizes and rates, bounds and shapes exactly */
    /* Ours with the system's firmware that was written for speed alone, of a shape 1 or 0; NAN: there is none. */
    double tuned;
    int tuned_inside;
};

/* Reads rows.csv; returns how many, or RNL_ERR_ARG with the line that is wrong. */
int myri_rows_read(const char *text, size_t n, struct myri_row *rows, int most);
int myri_rows_builtin(struct myri_row *rows, int most);
/* Whether one of the names, with blanks between, is that one. */
int myri_names_has(const char *names, const char *name);
/* 0, or an error of the experiment. */
int myri_row_answer(const struct myri_row *, myri_row_machine *change, void *arg, struct myri_answer *out);
/* By the plain firmware alone, and without what is said beside it: half of the time where there is a tuned one. */
int myri_row_answer_plain(const struct myri_row *, myri_row_machine *change, void *arg, struct myri_answer *out);
/* Fills in what follows from ours, null, affine and tuned: how far off each is, and what is inside. */
void myri_row_judge(const struct myri_row *, struct myri_answer *);
static inline int myri_row_is_shape(const struct myri_row *r)
{
    return r->field[MYRI_ROW_KIND][0] == 's';
}

/* Closed forms (null.c): what the given values alone would say, without protocol or firmware. */
double myri_null_latency(const char *system, const struct myri_machine *, uint32_t bytes);
double myri_null_rate(const char *system, const struct myri_machine *, uint32_t bytes);
int myri_null_stores(const char *system, uint32_t bytes); /* whether such a message goes to the card by stores */
/* The closed forms of null.c with what two lines of arithmetic add to them (affine.c). */
double myri_affine_latency(const char *system, const struct myri_machine *, uint32_t bytes);
double myri_affine_rate(const char *system, const struct myri_machine *, uint32_t bytes);
double myri_affine_ping(const char *system, const struct myri_machine *, uint32_t bytes);

/* ---- plans.c: which experiment answers a published figure ---- */

/* Fills answered, and truth or ours and null. A figure without a plan is left unanswered, as is with `tuned` one of a
 * system that has no second firmware. */
int myri_plan_answer(const struct myri_row *, int tuned, myri_row_machine *change, void *arg, struct myri_answer *);

/* The five published latencies of one word from one host to another, each as it was measured. */
enum { MYRI_ORDER = 5 };
struct myri_order {
    const char *row, *system, *machine;
    uint32_t bytes;
    double ours; /* us */
};
/* In the order of the published figures; ours on machines that are changed so. 0, or an error. */
int myri_plan_order(myri_row_machine *change, void *arg, struct myri_order out[MYRI_ORDER]);

/* ---- shapes.c: what the survey says in words, each judged as the row's note has it ---- */

/* 1 with the truth, 0 when there is no such row, or an error of an experiment. With `tuned` of the second firmwares: 0
 * too if one of its systems has none. Unless it is judged as a whole, the first point that makes it false is the
 * last. */
int myri_shape_judge(const char *row, const struct myri_machine *, int tuned, int whole, int *truth);

/* ---- fit.c: finds the fitted values of the machines, from rows of class fit and nothing else ---- */

struct myri_fit {
    const char *what;              /* in words */
    enum myri_machine_value value; /* one, on all of its machines */
    const char *rows, *machines;   /* names with blanks between */
    double least, most, step;      /* where it may lie, and in what steps it is kept */
    double found, is;              /* what the rows say; what the machine files have */
    double misfit;                 /* the mean square of what the rows are off, relative */
};
enum { MYRI_FITS = 5 }; /* at most; they are found one after another, each with those before it in place */
int myri_fit_all(struct myri_fit *out, int most); /* how many, or an error */

#endif
