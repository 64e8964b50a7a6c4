/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fit.h - finds the fitted values of the machines, from rows of class fit and nothing else. */
#ifndef RNL_PAPER_FIT_H
#define RNL_PAPER_FIT_H

#include "sim/paper/experiments/rows.h"

struct rnl_fit {
    const char *what;             /* in words */
    enum rnl_machine_value value; /* one, on all of its machines */
    const char *rows, *machines;  /* names with blanks between */
    double least, most, step;     /* where it may lie, and in what steps it is kept */
    double found, is;             /* what the rows say; what the machine files have */
    double misfit;                /* the mean square of what the rows are off, relative */
};
enum { RNL_FITS = 4 }; /* at most; they are found one after another, each with those before it in place */
int rnl_fit_all(struct rnl_fit *out, int most); /* how many, or an error */

#endif
