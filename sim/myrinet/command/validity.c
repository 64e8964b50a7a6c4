/* SPDX-License-Identifier: BSD-3-Clause
 *
 * validity.c - what the published rows on a figure say of it. Validated is one whose rows are all inside, at least one
 * of them held: rows that were fitted, or that values were derived from, prove nothing. */
#include "base/error.h"
#include "sim/myrinet/command/figure.h"
#include "sim/myrinet/experiments/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Figures share rows, so each is answered once. Inside is -1 of one without an experiment. */
static struct {
    struct myri_row *row; /* for the life of the command; the pages of a command that judges nothing stay few */
    int n, asked[MYRI_ROWS], inside[MYRI_ROWS];
} judged;

static int answer_of(const char *name, size_t length, int *inside, int *held)
{
    if (!judged.row && !(judged.row = calloc(MYRI_ROWS, sizeof *judged.row)))
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %d published rows", MYRI_ROWS);
    if (!judged.n && (judged.n = myri_rows_builtin(judged.row, MYRI_ROWS)) < 0)
        return judged.n;
    for (int i = 0; i < judged.n; i++) {
        const char *id = judged.row[i].field[MYRI_ROW_ID], *class_name = judged.row[i].field[MYRI_ROW_CLASS];
        if (strlen(id) != length || strncmp(id, name, length) != 0)
            continue;
        struct myri_answer a;
        int rc = judged.asked[i] ? 0 : myri_row_answer_plain(&judged.row[i], NULL, NULL, &a);
        if (rc < 0)
            return rc;
        if (!judged.asked[i])
            judged.inside[i] = a.answered ? a.inside : -1;
        judged.asked[i] = 1;
        *inside = judged.inside[i];
        *held = strcmp(class_name, "held") == 0 || strcmp(class_name, "second") == 0;
        return 0;
    }
    *inside = -1;
    *held = 0;
    return 0;
}

int myri_cmd_figure_judge(const struct myri_cmd_options *o, const struct myri_cmd_figure *f,
                          struct myri_cmd_validity *v)
{
    int held = 0, missing = 0;
    memset(v, 0, sizeof *v);
    if (!f->rows) {
        snprintf(v->said, sizeof v->said, "%s",
                 myri_cmd_figure_has_ours(f) ? "a what-if: no published figure validates it"
                                             : "what the paper prints, nothing of ours");
        return 0;
    }
    if (o->machine || o->machine_file || o->sets) {
        snprintf(v->said, sizeof v->said, "not validated: on another machine than the published rows %s are of",
                 f->rows);
        return 0;
    }
    for (const char *r = f->rows; *r; r += strcspn(r, " "), r += *r == ' ') {
        size_t n = strcspn(r, " "), used = strlen(v->missed);
        int inside = 0, is_held = 0;
        if (answer_of(r, n, &inside, &is_held) < 0)
            return myri_cmd_failed();
        held += is_held;
        missing += inside < 0;
        if (inside <= 0)
            snprintf(v->missed + used, sizeof v->missed - used, "%s%.*s", used ? " " : "", (int)n, r);
    }
    v->validated = held && !v->missed[0];
    const char *are = strchr(f->rows, ' ') ? "rows" : "row", *miss = strchr(v->missed, ' ') ? "miss" : "misses";
    if (v->validated)
        snprintf(v->said, sizeof v->said, "validated by published %s %s: inside", are, f->rows);
    else if (v->missed[0])
        snprintf(v->said, sizeof v->said, "NOT validated: of published %s %s, %s %s", are, f->rows, v->missed,
                 missing ? "miss or have no experiment" : miss);
    else
        snprintf(v->said, sizeof v->said, "not validated: published %s %s inside, and used to find values", are,
                 f->rows);
    return 0;
}
