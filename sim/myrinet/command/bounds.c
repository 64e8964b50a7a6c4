/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bounds.c - `runnel paper fit --bounds`: for a value that is fitted or assumed, how far it can be moved with each row
 * still inside, and which rows no number of it has inside together. The value is multiplied on each machine where it is
 * not given or derived, all others staying; so it says nothing of two values that are moved at once. */
#include "sim/myrinet/command/bounds.h"
#include "sim/myrinet/command/command.h"

#include "base/error.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POINTS = MYRI_CMD_FACTORS, OWN = MYRI_CMD_OWN };
const double myri_cmd_factors[POINTS] = {0.25, 0.5, 0.7, 0.85, 1, 1.2, 1.4, 2, 4};

struct moved {
    int value;
    double factor;
    const char *classes;
    int refused;
};

static int may_move(const struct myri_machine *m, int value, const char *classes)
{
    return strchr(classes, m->class_of[value]) && m->v[value] > 0;
}

static int move(void *arg, struct myri_machine *m)
{
    struct moved *t = arg;
    char text[64];
    if (t->factor == 1 || !may_move(m, t->value, t->classes))
        return 0;
    snprintf(text, sizeof text, "%s=%.9g", myri_machine_name_of((enum myri_machine_value)t->value),
             m->v[t->value] * t->factor);
    t->refused |= myri_machine_set(m, text) < 0;
    return 0;
}

static void judge_at(struct myri_cmd_bounds_row *b, int i, int value, const char *classes)
{
    struct moved t = {value, myri_cmd_factors[i], classes, 0};
    if (myri_row_answer_plain(b->row, move, &t, &b->answer[i]) < 0) /* it runs into a fault: it has no figure */
        t.refused = 1;
    b->at[i] = t.refused ? ' ' : b->answer[i].inside ? '#' : '.';
}

static int same(const struct myri_cmd_bounds_row *b, int i)
{
    const struct myri_answer *own = &b->answer[OWN], *a = &b->answer[i];
    return b->at[i] == b->at[OWN] && a->ours == own->ours && a->truth == own->truth;
}

int myri_cmd_bounds_judge(struct myri_cmd_bounds_row *b, int value, const char *classes, int ends_first,
                          const struct myri_answer *own)
{
    if (own && !own->answered)
        return 0;
    if (own) {
        b->answer[OWN] = *own;
        b->at[OWN] = own->inside ? '#' : '.';
    } else {
        judge_at(b, OWN, value, classes);
    }
    if (b->at[OWN] != ' ' && !b->answer[OWN].answered)
        return 0;
    judge_at(b, 0, value, classes);
    judge_at(b, POINTS - 1, value, classes);
    b->idle = same(b, 0) && same(b, POINTS - 1);
    for (int i = 1; i + 1 < POINTS; i++)
        if (i != OWN && b->idle && ends_first)
            b->at[i] = b->at[OWN];
        else if (i != OWN)
            judge_at(b, i, value, classes);
    return 1;
}

int myri_cmd_bounds_is_moved(const struct myri_cmd_bounds_row *b)
{
    for (int i = 0; i < POINTS; i++)
        if (b->at[i] != ' ' && b->at[i] != b->at[OWN])
            return 1;
    return 0;
}

int myri_cmd_bounds_exclude(const struct myri_cmd_bounds_row *a, const struct myri_cmd_bounds_row *b)
{
    for (int i = 0; i < POINTS; i++)
        if (a->at[i] == '#' && b->at[i] == '#')
            return 0;
    return strchr(a->at, '#') && strchr(b->at, '#');
}

/* Each run of numbers that have it inside. */
static void print_row(const struct myri_cmd_bounds_row *b, const char *unit)
{
    int runs = 0;
    printf("  %-4s %-6s %-5s |%s|", b->row->field[MYRI_ROW_ID], b->row->field[MYRI_ROW_MACHINE],
           b->row->field[MYRI_ROW_CLASS], b->at);
    for (int i = 0; i < POINTS; i++) {
        int first = i;
        while (i + 1 < POINTS && b->at[first] == '#' && b->at[i + 1] == '#')
            i++;
        if (b->at[first] == '#')
            printf("%s %.4g to %.4g", runs++ ? "," : "", b->is * myri_cmd_factors[first], b->is * myri_cmd_factors[i]);
    }
    printf("%s %s (it is %.4g)\n", runs ? "" : " never inside,", unit, b->is);
}

static void print_value(int value, const struct myri_cmd_bounds_row *b, int n)
{
    const char *name = myri_machine_name_of((enum myri_machine_value)value), *unit;
    unit = myri_machine_unit_of((enum myri_machine_value)value);
    printf("%s, times", name);
    for (int i = 0; i < POINTS; i++)
        printf(" %g", myri_cmd_factors[i]);
    puts(": # inside, . outside");
    int moved = 0, excluding = 0;
    for (int i = 0; i < n; i++)
        if (myri_cmd_bounds_is_moved(&b[i])) {
            print_row(&b[i], unit);
            moved++;
        }
    printf("  %d of %d rows keep their side at all of these\n", n - moved, n);
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++)
            if (myri_cmd_bounds_exclude(&b[i], &b[k]))
                printf("%s %s and %s", excluding++ ? "," : "  never inside together:", b[i].row->field[MYRI_ROW_ID],
                       b[k].row->field[MYRI_ROW_ID]);
    puts(excluding ? "" : "  no two rows exclude each other");
}

static void print_json(int value, const struct myri_cmd_bounds_row *b, int n, int *some)
{
    for (int i = 0; i < n; i++, *some = 1) {
        printf("%s\n  {\"value\": \"%s\", \"row\": \"%s\", \"machine\": \"%s\", \"is\": %.6g, \"inside\": {",
               *some ? "," : "", myri_machine_name_of((enum myri_machine_value)value), b[i].row->field[MYRI_ROW_ID],
               b[i].row->field[MYRI_ROW_MACHINE], b[i].is);
        for (int k = 0, any = 0; k < POINTS; k++)
            if (b[i].at[k] != ' ')
                printf("%s\"%.6g\": %s", any++ ? ", " : "", b[i].is * myri_cmd_factors[k],
                       b[i].at[k] == '#' ? "true" : "false");
        printf("}}");
    }
}

/* ---- rows, judged by two processes, as each row is by itself ---- */

enum { WORKERS = 2 };
struct job {
    int value, row; /* of the machine; of the table */
};
struct judging {
    const struct myri_row *rows;
    struct job *job;
    int n;
    struct {
        pid_t pid;
        FILE *said;
    } worker[WORKERS];
};

static int worker_of(const struct job *j)
{
    return j->row % WORKERS; /* all of a row's, so that what it is with the machine's own value is found once */
}

static int is_wanted(const struct myri_row *r, int value)
{
    const char *class_name = r->field[MYRI_ROW_CLASS];
    struct myri_machine m;
    return (strcmp(class_name, "held") == 0 || strcmp(class_name, "fit") == 0) &&
           myri_machine_builtin(r->field[MYRI_ROW_MACHINE], &m) == 0 && may_move(&m, value, "fa");
}

static void work(const struct judging *judging, int worker, FILE *out)
{
    static struct myri_answer own[MYRI_ROWS];
    static char known[MYRI_ROWS];
    for (int i = 0; i < judging->n; i++) {
        const struct job *j = &judging->job[i];
        struct myri_cmd_bounds_row b;
        struct myri_machine m;
        if (worker_of(j) != worker)
            continue;
        memset(&b, 0, sizeof b);
        b.row = &judging->rows[j->row];
        if (myri_machine_builtin(b.row->field[MYRI_ROW_MACHINE], &m) == 0)
            b.is = m.v[j->value];
        int answered = myri_cmd_bounds_judge(&b, j->value, "fa", 1, known[j->row] ? &own[j->row] : NULL);
        if (b.at[OWN] != ' ') {
            own[j->row] = b.answer[OWN];
            known[j->row] = 1;
        }
        b.row = answered ? b.row : NULL;
        if (fwrite(&b, sizeof b, 1, out) != 1 || fflush(out) != 0)
            return;
    }
}

static int start(struct judging *judging)
{
    fflush(NULL);
    for (int w = 0; w < WORKERS; w++) {
        int ends[2];
        if (pipe(ends) < 0)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no pipe to a process that judges rows: %s", strerror(errno));
        judging->worker[w].said = fdopen(ends[0], "r");
        judging->worker[w].pid = judging->worker[w].said ? fork() : -1;
        if (judging->worker[w].pid == 0) {
            FILE *out = fdopen(ends[1], "w");
            if (out)
                work(judging, w, out);
            _exit(0);
        }
        close(ends[1]);
        if (judging->worker[w].pid < 0)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no process to judge rows in: %s", strerror(errno));
    }
    return 0;
}

static void end(struct judging *judging)
{
    for (int w = 0; w < WORKERS; w++) {
        if (judging->worker[w].said)
            fclose(judging->worker[w].said);
        if (judging->worker[w].pid > 0) {
            kill(judging->worker[w].pid, SIGKILL); /* it has said all, or nobody listens any more */
            waitpid(judging->worker[w].pid, NULL, 0);
        }
    }
}

/* What the jobs of one value came to, the first of which is `at`: how many rows an experiment answers; or an error. */
static int collect(struct judging *judging, int at, struct myri_cmd_bounds_row *out)
{
    int found = 0, value = judging->job[at].value;
    for (int i = at; i < judging->n && judging->job[i].value == value; i++) {
        myri_cmd_progress("%s: row %s, %d of %d", myri_machine_name_of((enum myri_machine_value)value),
                          judging->rows[judging->job[i].row].field[MYRI_ROW_ID], i + 1, judging->n);
        if (fread(&out[found], sizeof out[found], 1, judging->worker[worker_of(&judging->job[i])].said) != 1)
            return rnl_fail(RNL_ERR_ABORTED, "a process that judges rows has ended before row %s",
                            judging->rows[judging->job[i].row].field[MYRI_ROW_ID]);
        found += out[found].row != NULL;
    }
    myri_cmd_progress(NULL);
    return found;
}

static int is_fitted(int value)
{
    struct myri_machine m;
    return (myri_machine_builtin("H-A", &m) == 0 && m.class_of[value] == 'f') ||
           (myri_machine_builtin("H-PP", &m) == 0 && m.class_of[value] == 'f');
}

static int print_all(struct myri_cmd_options *o, struct judging *judging, struct myri_cmd_bounds_row *b,
                     struct myri_cmd_bounds_picture *picture)
{
    int some = 0;
    if (o->json)
        putchar('[');
    for (int at = 0, value; at < judging->n;) {
        value = judging->job[at].value;
        int found = collect(judging, at, b);
        if (found < 0)
            return myri_cmd_failed();
        if (o->json)
            print_json(value, b, found, &some);
        else
            print_value(value, b, found);
        myri_cmd_bounds_picture_add(picture, value, b, found);
        fflush(stdout);
        while (at < judging->n && judging->job[at].value == value)
            at++;
    }
    if (o->json)
        puts(some ? "\n]" : "]");
    return 0;
}

int myri_cmd_bounds(struct myri_cmd_options *o)
{
    int all = o->what && strcmp(o->what, "all") == 0, named = o->what && !all ? myri_machine_value_of(o->what) : -1;
    if (o->what && !all && named < 0)
        return myri_cmd_wrong("a machine has no value '%s'; runnel paper machine lists them", o->what);
    struct myri_row *rows = calloc(MYRI_ROWS, sizeof *rows);
    struct myri_cmd_bounds_row *b = calloc(MYRI_ROWS, sizeof *b);
    struct judging judging = {.rows = rows, .job = calloc((size_t)MYRI_ROWS * MYRI_M_COUNT, sizeof *judging.job)};
    struct myri_cmd_bounds_picture *picture = myri_cmd_bounds_picture_new();
    int n = rows && b && judging.job ? myri_rows_builtin(rows, MYRI_ROWS) : 0, rc = 0;
    if (!rows || !b || !judging.job || !picture)
        rc = myri_cmd_no_memory(MYRI_ROWS * (sizeof *rows + sizeof *b + MYRI_M_COUNT * sizeof *judging.job));
    else if (n < 0)
        rc = myri_cmd_failed();
    for (int value = 0; value < MYRI_M_COUNT; value++)
        for (int i = 0; rc == 0 && i < n; i++)
            if ((named >= 0 ? value == named : all || is_fitted(value)) && is_wanted(&rows[i], value))
                judging.job[judging.n++] = (struct job){value, i};
    if (rc == 0 && judging.n == 0)
        rc = myri_cmd_wrong("%s is given or derived, or 0, on each machine that has rows: it is not to be moved",
                            o->what);
    if (rc == 0) {
        rc = start(&judging) < 0 ? myri_cmd_failed() : print_all(o, &judging, b, picture);
        end(&judging);
    }
    if (picture) {
        int drawn = myri_cmd_bounds_picture_end(picture, rc == 0 ? o->plot : NULL);
        rc = rc ? rc : drawn;
    }
    free(rows);
    free(b);
    free(judging.job);
    return rc;
}
