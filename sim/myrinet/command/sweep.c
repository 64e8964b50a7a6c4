/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sweep.c - `runnel paper figure` and `sweep`: tables of points, and their pictures by gnuplot. */
#include "sim/myrinet/command/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int share(const struct myri_cmd_options *o, const struct myri_cmd_figure *f, const struct myri_cmd_curve *c,
                 double x, double *y)
{
    struct myri_cmd_curve mine = *c, whole = *c;
    double part = NAN, all = NAN;
    mine.of = whole.of = NULL;
    whole.system = c->of;
    int rc = myri_cmd_point(o, f, &mine, x, &part);
    rc = rc ? rc : myri_cmd_point(o, f, &whole, x, &all);
    *y = 100 * part / all;
    return rc;
}

int myri_cmd_point(const struct myri_cmd_options *o, const struct myri_cmd_figure *f, const struct myri_cmd_curve *c,
                   double x, double *y)
{
    struct myri_cmd_options mine = *o;
    struct myri_experiment e;
    struct myri_machine machine;
    struct myri_outcome out;
    const struct myri_system *system;
    uint32_t whole = (uint32_t)x, bytes = c->bytes;
    if (c->given) { /* a closed form: bytes over the overhead and the wire, c->given MB/s */
        *y = x / (125 + x / c->given);
        return 0;
    }
    if (c->y) {
        *y = c->y[whole - 1];
        return 0;
    }
    if (c->of)
        return share(o, f, c, x, y);
    mine.what = c->system;
    if (!mine.machine)
        mine.machine = c->machine;
    int rc = myri_cmd_system(&mine, &system);
    rc = rc ? rc : myri_cmd_machine_for(&mine, system->machines, &machine);
    if (rc)
        return rc;
    if (c->set && myri_machine_set(&machine, c->set) < 0)
        return myri_cmd_failed();
    mine.packet = c->packet ? c->packet : o->packet;
    mine.slow_us = c->slow_us > 0 ? c->slow_us : o->slow_us;
    if (strcmp(f->over, "size") == 0)
        bytes = whole;
    else if (strcmp(f->over, "packet") == 0)
        mine.packet = whole;
    else if (strcmp(f->over, "buffers") == 0)
        mine.buffers = whole;
    else if (strcmp(f->over, "senders") == 0)
        mine.senders = whole;
    else if (strcmp(f->over, "processes") == 0)
        mine.processes = whole;
    else if (strcmp(f->over, "places") == 0)
        mine.places = whole;
    else if (strcmp(f->over, "slow") == 0)
        mine.slow_us = x;
    else {
        char set[64];
        snprintf(set, sizeof set, "%s=%.10g", f->over, x);
        if (myri_machine_set(&machine, set) < 0)
            return myri_cmd_failed();
    }
    if (c->attention)
        mine.attention = c->attention;
    *y = NAN;
    if (bytes > system->most)
        return 0;
    if (strcmp(f->over, "buffers") == 0 && (whole < 2 * system->buffers_least || whole > system->buffers_most))
        return 0;
    myri_experiment_init(&e, system, &machine, c->measure, bytes);
    myri_cmd_prepare(&mine, &e);
    if (c->count && !o->count)
        e.count = c->count;
    if (c->cold) {
        e.cold = 1;
        e.count = 1;
    }
    if ((c->measure == MYRI_GOODPUT || c->measure == MYRI_WIRE_COST) && !e.senders)
        e.senders = c->senders ? c->senders : 4;
    if ((c->measure == MYRI_GOODPUT || c->measure == MYRI_WIRE_COST) && !o->count)
        e.count = 100;
    if (myri_experiment_run(&e, &out) < 0) {
        fprintf(stderr, "%s at %g: ", c->label, x);
        return myri_cmd_failed();
    }
    *y = out.value;
    return 0;
}

/* What varies is not set as well. */
static int varied(const struct myri_cmd_options *o, const char *over)
{
    size_t n = strlen(over);
    const struct {
        const char *name;
        int given;
    } also[] = {{"size", o->bytes != 0},         {"packet", o->packet != 0}, {"buffers", o->buffers != 0},
                {"senders", o->senders != 0},    {"places", o->places != 0}, {"slow", o->slow_us > 0},
                {"processes", o->processes != 0}};
    for (size_t i = 0; i < sizeof also / sizeof also[0]; i++)
        if (also[i].given && strcmp(also[i].name, over) == 0)
            return myri_cmd_wrong("--%s has no effect where %s is what varies; runnel paper run takes it", over, over);
    for (int i = 0; i < o->sets; i++)
        if (strncmp(o->set[i], over, n) == 0 && o->set[i][n] == '=')
            return myri_cmd_wrong("--set %s has no effect where %s is what varies; runnel paper run takes it",
                                  o->set[i], over);
    return 0;
}

int myri_cmd_figure_points(const struct myri_cmd_figure *f)
{
    int n = 0;
    while (n < MYRI_CMD_POINTS && (f->x[n] > 0 || (n == 0 && f->x[1] > 0)))
        n++;
    return n;
}

int myri_cmd_figure_curves(const struct myri_cmd_figure *f)
{
    int n = 0;
    while (n < MYRI_CMD_CURVES && f->curve[n].label)
        n++;
    return n;
}

int myri_cmd_figure_has_ours(const struct myri_cmd_figure *f)
{
    for (int c = 0; c < myri_cmd_figure_curves(f); c++)
        if (!f->curve[c].given && !f->curve[c].y)
            return 1;
    return 0;
}

static int width_of(const char *label)
{
    int n = (int)strlen(label);
    return n < 20 ? 20 : n;
}

static void print_names(const char *names) /* a list of strings */
{
    int some = 0;
    putchar('[');
    for (const char *r = names; r && *r; r += strcspn(r, " "), r += *r == ' ')
        printf("%s\"%.*s\"", some++ ? ", " : "", (int)strcspn(r, " "), r);
    putchar(']');
}

static void print_note(const char *note, const char *ends) /* as a string of JSON, or as it is */
{
    for (; *note; note++)
        fputs(*note == '\n' ? ends : (char[]){*note, 0}, stdout);
}

static void print_figure(const struct myri_cmd_options *o, const struct myri_cmd_figure *f,
                         double (*y)[MYRI_CMD_POINTS], const struct myri_cmd_validity *v)
{
    int n = myri_cmd_figure_points(f), curves = myri_cmd_figure_curves(f);
    if (o->json) {
        printf("{\"figure\": \"%s\", \"over\": \"%s\", \"y\": \"%s\", \"validated\": %s, \"said\": \"%s\", \"rows\": ",
               f->name, f->over, f->y, v->validated ? "true" : "false", v->said);
        print_names(f->rows);
        fputs(", \"missed\": ", stdout);
        print_names(v->missed);
        if (f->note) {
            fputs(", \"note\": \"", stdout);
            print_note(f->note, " ");
            putchar('"');
        }
        fputs(", \"curves\": [", stdout);
        for (int c = 0; c < curves; c++) {
            printf("%s\n  {\"label\": \"%s\", \"points\": [", c ? "," : "", f->curve[c].label);
            for (int k = 0, some = 0; k < n; k++)
                if (!isnan(y[c][k]))
                    printf("%s[%g, %.6g]", some++ ? ", " : "", f->x[k], y[c][k]);
            fputs("]}", stdout);
        }
        puts("\n]}");
        return;
    }
    printf("%s\n", f->title);
    if (v->said[0])
        printf("(%s)\n", v->said);
    printf("\n%10s", f->over);
    for (int c = 0; c < curves; c++)
        printf("  %*s", width_of(f->curve[c].label), f->curve[c].label);
    printf("  [%s]\n", f->y);
    for (int k = 0; k < n; k++) {
        printf("%10g", f->x[k]);
        for (int c = 0; c < curves; c++)
            if (isnan(y[c][k]))
                printf("  %*s", width_of(f->curve[c].label), "-");
            else
                printf("  %*.4g", width_of(f->curve[c].label), y[c][k]);
        putchar('\n');
    }
    for (int k = 0; k < MYRI_CMD_CURVES && f->mark[k].label; k++)
        printf("published: %s\n", f->mark[k].label);
    if (f->note) {
        print_note(f->note, "\n");
        putchar('\n');
    }
}

int myri_cmd_figure_measure(const struct myri_cmd_options *o, const struct myri_cmd_figure *f,
                            double (*y)[MYRI_CMD_POINTS])
{
    int rc = 0;
    for (int c = 0; c < myri_cmd_figure_curves(f) && rc == 0; c++)
        for (int k = 0; k < myri_cmd_figure_points(f) && rc == 0; k++)
            rc = myri_cmd_point(o, f, &f->curve[c], f->x[k], &y[c][k]);
    return rc;
}

int myri_cmd_draw(const struct myri_cmd_options *o, const struct myri_cmd_figure *f)
{
    double y[MYRI_CMD_CURVES][MYRI_CMD_POINTS];
    struct myri_cmd_validity v;
    int rc = myri_cmd_figure_measure(o, f, y);
    rc = rc ? rc : myri_cmd_figure_judge(o, f, &v);
    if (rc)
        return rc;
    print_figure(o, f, y, &v);
    rc = o->plot ? myri_cmd_plot(o->plot, f, y, &v) : 0;
    if (o->plot && rc == 0 && !o->json)
        printf("drawn: %s/%s.svg\n", o->plot, f->name);
    return rc;
}

/* What a figure leaves no choice of. */
static int concerns(const struct myri_cmd_options *o, const struct myri_cmd_figure *f)
{
    if (!myri_cmd_figure_has_ours(f) && (o->machine || o->machine_file || o->sets || o->count || o->seed_given))
        return myri_cmd_wrong("%s has nothing of ours, so that no machine and no number changes it", f->name);
    return varied(o, f->over);
}

/* 1, 0: none of these was asked for, or < 0: minus the exit status. */
static int figures(struct myri_cmd_options *o, const struct myri_cmd_figure *f)
{
    int found = 0;
    for (; f->name; f++) {
        if (!o->what) {
            printf("%-14s %s%s\n", f->name, f->title, f->rows || !myri_cmd_figure_has_ours(f) ? "" : " (what-if)");
            continue;
        }
        int all = strcmp(o->what, "all") == 0;
        if (!all && strcmp(o->what, f->name) != 0)
            continue;
        if (o->json && all) /* one array of all of them */
            puts(f == myri_cmd_printed ? "[" : ",");
        int rc = all ? 0 : concerns(o, f);
        rc = rc ? rc : myri_cmd_draw(o, f);
        if (rc)
            return -rc;
        found = 1;
        if (!o->json)
            putchar('\n');
    }
    return found;
}

int myri_cmd_figure(struct myri_cmd_options *o)
{
    int printed = figures(o, myri_cmd_printed), what_if = printed < 0 ? 0 : figures(o, myri_cmd_what_if);
    if (printed < 0 || what_if < 0)
        return printed < 0 ? -printed : -what_if;
    if (o->json && o->what && strcmp(o->what, "all") == 0)
        puts("]");
    return printed || what_if || !o->what
               ? 0
               : myri_cmd_wrong("there is no figure '%s'; runnel paper figure lists them", o->what);
}

/* --over NAME=X,X,... of one system. */
int myri_cmd_sweep(struct myri_cmd_options *o)
{
    const struct myri_system *system;
    struct myri_cmd_figure f = {.name = "sweep", .unit = ""};
    char over[32] = "", spaced[40], title[160];
    int rc = myri_cmd_system(o, &system), n = 0;
    if (rc)
        return rc;
    const char *eq = o->over ? strchr(o->over, '=') : NULL;
    if (!eq || (size_t)(eq - o->over) >= sizeof over)
        return myri_cmd_wrong(
            "say over what: --over VALUE=A,B,C; size, packet, buffers, senders, processes, places, slow, or a "
            "value of the machine");
    memcpy(over, o->over, (size_t)(eq - o->over));
    snprintf(spaced, sizeof spaced, " %s ", over);
    for (const char *p = eq + 1; *p && n < MYRI_CMD_POINTS; n++) {
        char *end;
        f.x[n] = strtod(p, &end);
        int begins_at_none = n == 0 && strcmp(over, "slow") == 0 && *end == ',';
        if (end == p || (*end && *end != ',') || !(f.x[n] > 0 || (f.x[n] == 0 && begins_at_none)))
            return myri_cmd_wrong("'%s' are no numbers above 0 with commas between them", eq + 1);
        if (f.x[n] > UINT32_MAX)
            return myri_cmd_wrong("'%.*s' is too large: what a sweep varies goes up to %u", (int)(end - p), p,
                                  UINT32_MAX);
        if (f.x[n] != floor(f.x[n]) && strstr(" size packet buffers senders processes places ", spaced))
            return myri_cmd_wrong("%s are whole numbers, not %g", over, f.x[n]);
        p = end + (*end == ',');
        if (*p && n + 1 == MYRI_CMD_POINTS)
            return myri_cmd_wrong("a sweep has up to %d points", MYRI_CMD_POINTS);
    }
    enum myri_measure measure;
    rc = myri_cmd_measure(o, system, MYRI_ONE_WAY, &measure);
    rc = rc ? rc : varied(o, over);
    rc = rc || strcmp(over, "places") != 0 ? rc : myri_cmd_places_matter(system);
    if (rc)
        return rc;
    snprintf(title, sizeof title, "%s: %s over %s", system->title, myri_measure_name(measure), over);
    f.title = title;
    f.over = over;
    f.y = myri_measure_unit(measure);
    f.curve[0].label = system->name;
    f.curve[0].system = o->what;
    f.curve[0].measure = measure;
    f.curve[0].bytes = o->bytes ? o->bytes : 4;
    return myri_cmd_draw(o, &f);
}
