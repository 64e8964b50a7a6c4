/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rows.c - reads rows.csv, and compares an answer with what was published. */
#include "sim/myrinet/experiments/rows.h"

#include "base/error.h"
#include "sim/myrinet/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One field: quotes around it protect commas. */
static const char *take_field(const char *p, const char *end, char *out, size_t room)
{
    size_t k = 0;
    int quoted = 0;
    for (; p < end && (quoted || *p != ','); p++) {
        if (*p == '"') {
            quoted = !quoted;
        } else {
            if (k + 1 >= room)
                return NULL;
            out[k++] = *p;
        }
    }
    out[k] = 0;
    return p;
}

int myri_rows_read(const char *text, size_t n, struct myri_row *rows, int most)
{
    int count = 0, line = 1;
    for (const char *p = text, *all = text + n; p < all; line++) {
        const char *end = memchr(p, '\n', (size_t)(all - p));
        end = end ? end : all;
        if (line > 1 && end > p) {
            if (count == most)
                return rnl_fail(RNL_ERR_ARG, "more than %d published figures", most);
            for (int f = 0; f < MYRI_ROW_FIELDS; f++) {
                p = take_field(p, end, rows[count].field[f], MYRI_ROW_TEXT);
                if (!p || (p < end) != (f + 1 < MYRI_ROW_FIELDS))
                    return rnl_fail(RNL_ERR_ARG,
                                    "line %d of the published figures has not %d fields of up to %d letters", line,
                                    MYRI_ROW_FIELDS, MYRI_ROW_TEXT - 1);
                p += p < end;
            }
            count++;
        }
        p = end + 1;
    }
    return count;
}

int myri_rows_builtin(struct myri_row *rows, int most)
{
    const struct myri_data *d = myri_data_find("rows.csv");
    return myri_rows_read((const char *)d->bytes, d->n, rows, most);
}

int myri_names_has(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = names; *p; p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == n && strncmp(p, name, n) == 0)
            return 1;
    return 0;
}

static int inside(const struct myri_row *r, double ours, double low, double high)
{
    const char *value = r->field[MYRI_ROW_VALUE];
    if (value[0] == '<')
        return value[1] == '=' ? ours <= low : ours < low;
    if (value[0] == '>')
        return value[1] == '=' ? ours >= low : ours > low;
    double room = strcmp(r->field[MYRI_ROW_UNIT], "us") == 0 ? 0.15 : 0.10;
    return ours >= low * (1 - room) && ours <= high * (1 + room);
}

void myri_row_judge(const struct myri_row *r, struct myri_answer *a)
{
    a->published = a->off = a->null_off = a->affine_off = NAN;
    const char *value = r->field[MYRI_ROW_VALUE];
    value += strspn(value, "<>=");
    if (myri_row_is_shape(r) || !value[0]) {
        a->inside = a->truth;
        a->tuned_inside = isnan(a->tuned) ? a->truth : a->tuned > 0;
        return;
    }
    char *end;
    double low = strtod(value, &end), high = end[0] == '.' && end[1] == '.' ? strtod(end + 2, &end) : low;
    a->published = (low + high) / 2;
    if (r->field[MYRI_ROW_VALUE] == value) {
        a->off = a->ours / a->published - 1;
        a->null_off = a->null / a->published - 1;
        a->affine_off = a->affine / a->published - 1;
    }
    a->inside = a->answered && inside(r, a->ours, low, high);
    a->tuned_inside = isnan(a->tuned) ? a->inside : inside(r, a->tuned, low, high);
}

int myri_row_answer_plain(const struct myri_row *r, myri_row_machine *change, void *arg, struct myri_answer *out)
{
    struct myri_answer a = {.null = NAN, .affine = NAN, .tuned = NAN};
    int rc = myri_plan_answer(r, 0, change, arg, &a);
    if (rc < 0)
        return rc;
    myri_row_judge(r, &a);
    *out = a;
    return 0;
}

int myri_row_answer(const struct myri_row *r, myri_row_machine *change, void *arg, struct myri_answer *out)
{
    struct myri_answer a = {0}, tuned = {0};
    a.null = a.affine = a.tuned = NAN;
    int rc = myri_plan_answer(r, 0, change, arg, &a);
    rc = rc < 0 ? rc : myri_plan_answer(r, 1, change, arg, &tuned);
    if (rc < 0)
        return rc;
    if (tuned.answered)
        a.tuned = myri_row_is_shape(r) ? tuned.truth : tuned.ours;
    myri_row_judge(r, &a);
    *out = a;
    return 0;
}
