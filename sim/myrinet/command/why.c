/* SPDX-License-Identifier: BSD-3-Clause
 *
 * why.c - `runnel paper why`: one published figure, and all that there is to say about ours: where the time of its
 * experiment goes, which value of the machine would have it inside, and what was tried. */
#include "sim/myrinet/command/bounds.h"
#include "sim/myrinet/command/command.h"
#include "sim/myrinet/command/history.h"
#include "sim/myrinet/command/stages.h"
#include "sim/myrinet/command/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- its experiments ---- */

struct points {
    struct myri_experiment *x;
    double *value;
    size_t n, room;
    int no_memory;
};

static void note(void *arg, const struct myri_experiment *x, double value)
{
    struct points *p = arg;
    if (p->n == p->room && !p->no_memory) {
        size_t room = p->room ? 2 * p->room : 16;
        struct myri_experiment *more = realloc(p->x, room * sizeof *more);
        p->x = more ? more : p->x;
        double *values = realloc(p->value, room * sizeof *values);
        p->value = values ? values : p->value;
        p->no_memory = !more || !values;
        p->room = p->no_memory ? p->room : room;
    }
    if (p->no_memory)
        return;
    p->x[p->n] = *x;
    p->value[p->n++] = value;
}

/* The one that is the figure, or of a size the one of the size next to it; else the first of the row's own system. */
static size_t decisive(const struct points *p, const struct myri_row *r, const struct myri_answer *a)
{
    size_t next = 0;
    for (size_t i = 0; i < p->n; i++)
        if (fabs(p->x[i].bytes - a->ours) < fabs(p->x[next].bytes - a->ours))
            next = i;
    if (!myri_row_is_shape(r) && strcmp(r->field[MYRI_ROW_UNIT], "B") == 0)
        return next;
    for (size_t i = 0; i < p->n; i++)
        if (!myri_row_is_shape(r) && p->value[i] == a->ours)
            return i;
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->x[i].system->name, r->field[MYRI_ROW_SYSTEM]) == 0)
            return i;
    return 0;
}

static void print_points(const struct points *p)
{
    if (p->n < 2)
        return;
    printf("\nIt is made of %zu experiments (--run K has where the time of the Kth goes):\n", p->n);
    for (size_t i = 0; i < p->n; i++)
        printf("%4zu  %-16s %-6s %-12s %8u bytes %10.4g %s\n", i + 1, p->x[i].system->name, p->x[i].machine.name,
               myri_measure_name(p->x[i].measure), p->x[i].bytes, p->value[i], myri_measure_unit(p->x[i].measure));
}

/* ---- where its time goes ---- */

static const char *who(const struct myri_stage *g)
{
    return g->role == MYRI_SENDER ? "sender" : "receiver";
}

/* Each figure is what the sum so far grows by, rounded: as printed, they add up. */
static void print_way(const struct myri_experiment *x, const struct myri_stages *s)
{
    double per = myri_stages_per(x, s), kinds[MYRI_STAGE_KINDS] = {0};
    uint64_t sum = 0;
    printf("\nWhere the time of %s goes, the mean of %.0f, in the order of its way; what works furthest on counts:\n",
           x->measure == MYRI_ROUND_TRIP                                ? "a round trip"
           : x->measure == MYRI_ONE_WAY || x->measure == MYRI_PING_RATE ? "one message"
                                                                        : "one call",
           per / 1e6);
    printf("%9s %6s  %-8s %-5s %s\n", "us", "share", "at", "where", "what");
    for (int i = 0; i < s->n; i++) {
        const struct myri_stage *g = &s->stage[i];
        double before = round(1e3 * (double)sum / per);
        sum += g->ps;
        kinds[g->kind] += (double)g->ps / per;
        printf("%9.3f %5.1f%%  %-8s %-5s %s\n", (round(1e3 * (double)sum / per) - before) / 1e3,
               100 * (double)g->ps / (double)s->ps, who(g), myri_stage_kind_name(g->kind), g->what);
    }
    printf("%9.3f in all:", round(1e3 * (double)s->ps / per) / 1e3);
    for (int k = 0; k < MYRI_STAGE_KINDS; k++)
        printf("%s %s %.3f", k ? "," : "", myri_stage_kind_name((enum myri_stage_kind)k), kinds[k]);
    puts(" us");
}

/* Prints, for a rate, which part of the machine works how much of the time. */
static void print_busy(const struct myri_experiment *x, const struct myri_stages *s)
{
    static const char *const of[2] = {"sender", "receiver"};
    double per = myri_stages_per(x, s), most = 0;
    int busiest = 0, role_of = 0;
    printf("\nHow long each part works for one message, the mean of %.0f, each %.3f us behind the one before:\n",
           per / 1e6, (double)s->ps / per);
    for (int role = 0; role < 2; role++)
        for (int k = 0; k < MYRI_STAGE_WAIT; k++) {
            double ps = (double)myri_stages_sum(s, (enum myri_stage_kind)k, role);
            if (ps <= 0)
                continue;
            printf("%9.3f %5.1f%%  %-8s %s\n", ps / per, 100 * ps / (double)s->ps, of[role],
                   myri_stage_kind_name((enum myri_stage_kind)k));
            if (ps > most) {
                most = ps;
                busiest = k;
                role_of = role;
            }
        }
    printf("The busiest is the %s's %s, %.0f %% of the time%s:\n", of[role_of],
           myri_stage_kind_name((enum myri_stage_kind)busiest), 100 * most / (double)s->ps,
           most < 0.9 * (double)s->ps ? "; none works all of it, so parts wait for each other" : "");
    for (int i = 0; i < s->n; i++)
        if (s->stage[i].kind == (enum myri_stage_kind)busiest && s->stage[i].role == role_of)
            printf("%9.3f %5.1f%%  %s\n", (double)s->stage[i].ps / per, 100 * (double)s->stage[i].ps / (double)s->ps,
                   s->stage[i].what);
}

static int print_time(const struct myri_experiment *x)
{
    struct myri_stages *s = malloc(sizeof *s);
    if (!s)
        return myri_cmd_no_memory(sizeof *s);
    int rc = myri_stages_of(x, s) < 0 ? myri_cmd_failed() : 0;
    if (rc == 0)
        printf("\n%s on %s, %s of %u bytes: %.4g %s\n", x->system->title, x->machine.name,
               myri_measure_name(x->measure), x->bytes, s->value, myri_measure_unit(x->measure));
    if (rc == 0 && !s->parts)
        puts("  (stages are summed up of messages between two nodes; runnel paper trace shows what this one does)");
    else if (rc == 0)
        (s->of_rate ? print_busy : print_way)(x, s);
    free(s);
    return rc;
}

/* ---- what it would take ---- */

/* Prints how near a figure comes that is inside nowhere. */
static void print_nearest(const struct myri_cmd_bounds_row *b)
{
    int best = -1;
    for (int i = 0; i < MYRI_CMD_FACTORS; i++)
        if (b->at[i] != ' ' && (best < 0 || fabs(b->answer[i].ours - b->answer[i].published) <
                                                fabs(b->answer[best].ours - b->answer[best].published)))
            best = i;
    fputs(" none has it inside", stdout);
    if (best >= 0 && !myri_row_is_shape(b->row))
        printf("; nearest %.4g %s, times %g", b->answer[best].ours, b->row->field[MYRI_ROW_UNIT],
               myri_cmd_factors[best]);
}

static void print_value(const struct myri_cmd_bounds_row *b, const struct myri_machine *m, int value)
{
    int runs = 0;
    const char *class_name = myri_machine_class_name(m->class_of[value]);
    const char *unit = myri_machine_unit_of((enum myri_machine_value)value);
    printf("  %-15s %-8s %8.4g %-9s |%s|", myri_machine_name_of((enum myri_machine_value)value), class_name, b->is,
           unit, b->at);
    for (int i = 0; i < MYRI_CMD_FACTORS; i++) {
        int first = i;
        while (i + 1 < MYRI_CMD_FACTORS && b->at[first] == '#' && b->at[i + 1] == '#')
            i++;
        if (b->at[first] != '#')
            continue;
        printf("%s times %g", runs++ ? "," : " inside at", myri_cmd_factors[first]);
        if (i > first)
            printf(" to %g", myri_cmd_factors[i]);
        printf(" (%.4g", b->is * myri_cmd_factors[first]);
        printf(i > first ? " to %.4g)" : ")", b->is * myri_cmd_factors[i]);
    }
    if (!runs)
        print_nearest(b);
    putchar('\n');
}

static int print_bounds(const struct myri_row *r, const struct myri_answer *a)
{
    struct myri_machine m;
    struct myri_cmd_bounds_row *b = calloc(1, sizeof *b);
    int idle = 0, asked = 0, help = 0, tried = 0, values = 0;
    if (!b)
        return myri_cmd_no_memory(sizeof *b);
    if (myri_machine_builtin(r->field[MYRI_ROW_MACHINE], &m) < 0) {
        free(b);
        return myri_cmd_failed();
    }
    for (int v = 0; v < MYRI_M_COUNT; v++)
        values += m.v[v] > 0;
    printf("\n%s, one value of the machine alone, times",
           a->inside ? "How far it stays inside" : "What would have it inside");
    for (int i = 0; i < MYRI_CMD_FACTORS; i++)
        printf(" %g", myri_cmd_factors[i]);
    puts(": # inside, . outside\n(given and derived values have a paper behind them that would have to be wrong)");
    /* First those that nothing but rows or assumptions hold where they are. */
    for (int turn = 0; turn < 2; turn++)
        for (int v = 0; v < MYRI_M_COUNT; v++) {
            int loose = m.class_of[v] == 'f' || m.class_of[v] == 'a';
            if (loose != !turn || !(m.v[v] > 0))
                continue;
            memset(b, 0, sizeof *b);
            b->row = r;
            myri_cmd_progress("what if %s were another: value %d of %d of the machine",
                              myri_machine_name_of((enum myri_machine_value)v), ++tried, values);
            b->is = m.v[v];
            if (!myri_cmd_bounds_judge(b, v, (const char[]){m.class_of[v], 0}, 1, a))
                continue;
            myri_cmd_progress(NULL);
            asked++;
            idle += b->idle;
            help += strchr(b->at, '#') != NULL;
            if (!b->idle)
                print_value(b, &m, v);
            fflush(stdout);
        }
    myri_cmd_progress(NULL);
    if (myri_row_is_shape(r))
        printf("  %d of %d values leave it %s, a quarter and four times of each\n", idle, asked,
               a->inside ? "true" : "false");
    else
        printf("  %d of %d values change nothing, a quarter and four times of each\n", idle, asked);
    if (!help)
        puts("  no value alone has it inside within these factors");
    free(b);
    return 0;
}

/* ---- what was tried ---- */

static void print_log(const struct myri_row *r)
{
    struct myri_history h;
    myri_history_of(r->field[MYRI_ROW_ID], &h);
    printf("\nWhat was changed or tried: entries of doc/results/log.md that name the row, %d\n", h.n);
    for (int i = 0; i < h.n; i++) {
        size_t n = 0;
        const char *text = myri_history_entry(h.entry[i], &n);
        if (text)
            printf("%.*s\n", (int)n, text);
    }
}

/* ---- the row ---- */

static void print_first(const struct myri_row *r)
{
    struct myri_history h;
    myri_history_of(r->field[MYRI_ROW_ID], &h);
    if (!h.first[0]) {
        int later = strcmp(r->field[MYRI_ROW_CLASS], "second") == 0;
        printf("first comparison: %s\n", !later                   ? "its figure was not written down"
                                         : myri_cmd_was_inside(r) ? "inside; its figure was not written down"
                                                                  : "MISS; its figure was not written down");
        return;
    }
    struct myri_answer a = {
        .tuned = NAN, .answered = 1, .ours = strtod(h.first, NULL), .truth = strcmp(h.first, "true") == 0};
    myri_row_judge(r, &a);
    printf("first comparison: %s%s%s, ", h.first, *r->field[MYRI_ROW_UNIT] ? " " : "", r->field[MYRI_ROW_UNIT]);
    if (!isnan(a.off))
        printf("%+.1f %%, ", 100 * a.off);
    puts(a.inside ? "inside" : "MISS");
}

static void print_answer(const struct myri_row *r, const struct myri_answer *a)
{
    const char *unit = r->field[MYRI_ROW_UNIT];
    if (!a->answered) {
        printf("ours: none; %s\n", myri_cmd_what_is_missing(r));
        return;
    }
    if (myri_row_is_shape(r))
        printf("ours: %s", a->truth ? "true" : "false");
    else
        printf("ours: %.4g %s", a->ours, unit);
    if (!isnan(a->off))
        printf(" (%+.1f %%)", 100 * a->off);
    printf(", %s\n", a->inside ? "inside" : "MISS");
    if (!isnan(a->tuned)) {
        fputs("with the firmware that was written for speed alone: ", stdout);
        if (myri_row_is_shape(r))
            fputs(a->tuned_inside ? "true" : "false", stdout);
        else
            printf("%.4g %s", a->tuned, unit);
        printf(", %s\n", a->tuned_inside ? "inside" : "MISS");
    }
    if (!isnan(a->null))
        printf("by arithmetic alone: %.3g %s, with two constants beside it %.3g\n", a->null, unit, a->affine);
    print_first(r);
}

static void print_row(const struct myri_row *r)
{
    printf("row %s: %s of %s on %s", r->field[MYRI_ROW_ID], r->field[MYRI_ROW_METRIC], r->field[MYRI_ROW_SYSTEM],
           r->field[MYRI_ROW_MACHINE]);
    if (*r->field[MYRI_ROW_BYTES])
        printf(", %s bytes", r->field[MYRI_ROW_BYTES]);
    printf(" (%s, %s)\n", myri_cmd_paper(r->field[MYRI_ROW_PAPER]), r->field[MYRI_ROW_PLACE]);
    printf("published: %s%s%s; class %s%s%s\n", myri_row_is_shape(r) ? "that it is so" : r->field[MYRI_ROW_VALUE],
           *r->field[MYRI_ROW_UNIT] ? " " : "", r->field[MYRI_ROW_UNIT], r->field[MYRI_ROW_CLASS],
           *r->field[MYRI_ROW_NOTE] ? "; " : "", r->field[MYRI_ROW_NOTE]);
}

/* With `run` the time of that experiment alone. */
static int explain(const struct myri_row *r, uint32_t run)
{
    struct myri_answer a = {.tuned = NAN};
    struct points p = {0};
    int rc = run ? 0 : myri_row_answer(r, NULL, NULL, &a);
    if (rc == 0) {
        struct myri_answer plain;
        myri_experiment_watch(note, &p);
        rc = myri_plan_answer(r, 0, NULL, NULL, &plain);
        myri_experiment_watch(NULL, NULL);
    }
    rc = rc < 0 ? myri_cmd_failed() : p.no_memory ? myri_cmd_no_memory(p.room * sizeof *p.x) : 0;
    if (rc == 0 && run > p.n)
        rc = p.n ? myri_cmd_wrong("row %s is made of %zu experiment%s: --run takes 1 to %zu", r->field[MYRI_ROW_ID],
                                  p.n, p.n > 1 ? "s" : "", p.n)
                 : myri_cmd_wrong("row %s has no experiment, so --run has nothing to show", r->field[MYRI_ROW_ID]);
    if (rc == 0)
        print_row(r);
    if (rc == 0 && !run) {
        print_answer(r, &a);
        print_points(&p);
    }
    if (rc == 0 && p.n)
        rc = print_time(&p.x[run ? run - 1 : decisive(&p, r, &a)]);
    fflush(stdout);
    if (rc == 0 && !run) {
        rc = a.answered ? print_bounds(r, &a) : 0;
        if (rc == 0)
            print_log(r);
    }
    free(p.x);
    free(p.value);
    return rc;
}

/* Rows whose number is the same, or who are of what was asked for. */
static int is_near(const struct myri_row *r, const char *what)
{
    size_t digits = strspn(what, "0123456789"), own = strspn(r->field[MYRI_ROW_ID], "0123456789");
    return (digits && digits == own && strncmp(r->field[MYRI_ROW_ID], what, digits) == 0) ||
           strcmp(r->field[MYRI_ROW_SYSTEM], what) == 0 || strcmp(r->field[MYRI_ROW_PAPER], what) == 0;
}

static int unknown(const struct myri_row *rows, int n, const char *what)
{
    char names[MYRI_ROWS * 8] = "";
    for (int i = 0; i < n; i++)
        if (is_near(&rows[i], what)) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, " %s", rows[i].field[MYRI_ROW_ID]);
        }
    if (!names[0])
        return myri_cmd_wrong(
            "there is no row '%s'; runnel paper table all has them. Where the time of a system goes, runnel "
            "paper trace, diff and profile show",
            what);
    return myri_cmd_wrong("there is no row '%s'; near it:%s (runnel paper table has them all)", what, names);
}

int myri_cmd_why(struct myri_cmd_options *o)
{
    if (!o->what)
        return myri_cmd_wrong("name a row, like 53a; runnel paper table all has them");
    struct myri_row *rows = calloc(MYRI_ROWS, sizeof *rows);
    if (!rows)
        return myri_cmd_no_memory(MYRI_ROWS * sizeof *rows);
    int n = myri_rows_builtin(rows, MYRI_ROWS), k = 0;
    while (k < n && strcmp(rows[k].field[MYRI_ROW_ID], o->what) != 0)
        k++;
    int rc = n < 0 ? myri_cmd_failed() : k == n ? unknown(rows, n, o->what) : explain(&rows[k], o->run);
    free(rows);
    return rc;
}
