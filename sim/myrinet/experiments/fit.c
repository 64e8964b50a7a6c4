/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fit.c - each fitted value by itself: the point of its grid where the mean square of the relative misses of its rows
 * is smallest; a coarse walk over the whole range, then a fine one around the best. Values are on a grid, and ties go
 * to the smaller, so the answer is one number and not a matter of rounding. */
#include "sim/myrinet/experiments/rows.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

static const struct myri_fit fits[] = {
    {"set-up of a host DMA, from blocks as a host sees them", MYRI_M_dma_setup, "21a 21b", "H-P H-PP H-FM2", 0, 4, 0.05,
     0, 0, 0},
    {"cycles of an instruction of LANai 2.3, within a fifth of 5 MIPS", MYRI_M_ni_instruction, "7a 34", "H-A H-S", 4, 6,
     0.05, 0, 0, 0},
    {"an operation of the 50-MHz SPARC", MYRI_M_host_operation, "34", "H-A H-A2", 20, 120, 1, 0, 0, 0},
    {"a frame's way through Amoeba's kernel", MYRI_M_datagram, "36a", "H-A H-A2", 0, 300, 1, 0, 0, 0},
};

struct tried {
    const struct myri_fit *all;
    int n; /* of these are in place, the last one being tried */
    double value;
};

static int with_tried(void *arg, struct myri_machine *m)
{
    const struct tried *t = arg;
    for (int i = 0; i < t->n; i++)
        if (myri_names_has(t->all[i].machines, m->name))
            m->v[t->all[i].value] = i + 1 == t->n ? t->value : t->all[i].found;
    return 0;
}

static int misfit(const struct myri_row *rows, int n, struct tried *t, double *out)
{
    const struct myri_fit *f = &t->all[t->n - 1];
    double sum = 0;
    int used = 0;
    for (int i = 0; i < n; i++) {
        struct myri_answer a;
        if (!myri_names_has(f->rows, rows[i].field[MYRI_ROW_ID]))
            continue;
        if (strcmp(rows[i].field[MYRI_ROW_CLASS], "fit") != 0)
            return rnl_fail(RNL_ERR_ARG, "row %s is of class %s: only rows of class fit may be fitted",
                            rows[i].field[MYRI_ROW_ID], rows[i].field[MYRI_ROW_CLASS]);
        int rc = myri_row_answer_plain(&rows[i], with_tried, t, &a);
        if (rc < 0)
            return rc;
        if (!a.answered)
            return rnl_fail(RNL_ERR_ARG, "row %s has no experiment", rows[i].field[MYRI_ROW_ID]);
        sum += a.off * a.off;
        used++;
    }
    *out = used ? sum / used : 0;
    return 0;
}

/* Grid points first, first + by, ... last: the best of them. */
static int walk(const struct myri_row *rows, int n, struct tried *t, struct myri_fit *f, long first, long last, long by,
                long *best)
{
    double least = INFINITY;
    for (long k = first; k <= last; k += by) {
        double miss;
        t->value = (double)k * f->step;
        int rc = misfit(rows, n, t, &miss);
        if (rc < 0)
            return rc;
        if (miss < least) {
            least = miss;
            *best = k;
        }
    }
    f->misfit = least;
    return 0;
}

int myri_fit_all(struct myri_fit *out, int most)
{
    static const int count = sizeof fits / sizeof fits[0];
    struct myri_row rows[MYRI_ROWS];
    int n = myri_rows_builtin(rows, MYRI_ROWS), done = 0;
    if (n < 0)
        return n;
    for (; done < count && done < most; done++) {
        struct myri_fit *f = &out[done];
        struct tried t = {out, done + 1, 0};
        struct myri_machine m;
        char first_machine[MYRI_MACHINE_NAME] = {0};
        *f = fits[done];
        long low = lround(f->least / f->step), high = lround(f->most / f->step), best = low, coarse = (high - low) / 10;
        if (coarse < 1)
            coarse = 1;
        int rc = walk(rows, n, &t, f, low, high, coarse, &best);
        long from = best - coarse + 1 < low ? low : best - coarse + 1,
             to = best + coarse - 1 > high ? high : best + coarse - 1;
        rc = rc < 0 ? rc : walk(rows, n, &t, f, from, to, 1, &best);
        memcpy(first_machine, f->machines, strcspn(f->machines, " "));
        rc = rc < 0 ? rc : myri_machine_builtin(first_machine, &m);
        if (rc < 0)
            return rc;
        f->found = (double)best * f->step;
        f->is = m.v[f->value];
    }
    return done;
}
