/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report.c - `runnel paper report`: one page of HTML with all that there is, which needs nothing beside it. Pictures
 * are part of it; what they show stands in tables, too, for readers without pictures. */
#include "sim/myrinet/command/figure.h"
#include "sim/myrinet/command/history.h"
#include "sim/myrinet/command/page.h"
#include "sim/myrinet/command/summary.h"

#include "sim/myrinet/data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- rows ---- */

static void put_row(FILE *out, const struct myri_row *r, const struct myri_answer *a)
{
    static const enum myri_row_field fields[] = {MYRI_ROW_ID,    MYRI_ROW_SYSTEM, MYRI_ROW_MACHINE,
                                                 MYRI_ROW_CLASS, MYRI_ROW_METRIC, MYRI_ROW_BYTES};
    struct myri_history h;
    const char *unit = r->field[MYRI_ROW_UNIT];
    myri_history_of(r->field[MYRI_ROW_ID], &h);
    fprintf(out, "<tr class='%s'>", !a->answered ? "none" : a->inside ? "in" : "miss");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        page_cell(out, "%s", r->field[fields[i]]);
    if (myri_row_is_shape(r))
        page_cell(out, "that it is so");
    else
        page_cell(out, "%s %s", r->field[MYRI_ROW_VALUE], unit);
    if (!a->answered)
        page_cell(out, "-");
    else if (myri_row_is_shape(r))
        page_cell(out, "%s", a->truth ? "true" : "false");
    else
        page_cell(out, "%.4g", a->ours);
    page_number(out, "%+.1f %%", a->answered ? 100 * a->off : NAN);
    page_cell(out, "%s", h.first[0] ? h.first : "-");
    if (myri_row_is_shape(r) && !isnan(a->tuned))
        page_cell(out, "%s", a->tuned_inside ? "true" : "false");
    else
        page_number(out, "%.4g", a->tuned);
    page_number(out, "%.3g", a->null);
    page_number(out, "%.3g", a->affine);
    page_cell(out, "%s", !a->answered ? myri_cmd_what_is_missing(r) : a->inside ? "inside" : "MISS");
    fputs("</tr>\n", out);
}

static const struct {
    const char *name;
    int of_numbers;
} heads[] = {{"row", 0},  {"system", 0}, {"machine", 0}, {"class", 0}, {"metric", 0}, {"bytes", 0},  {"published", 0},
             {"ours", 0}, {"off", 1},    {"first", 0},   {"tuned", 1}, {"null", 1},   {"affine", 1}, {"", 0}};

struct all_sums {
    struct myri_cmd_sums sums;
};

static int print_sums(void *arg)
{
    return myri_cmd_sums_print(&((struct all_sums *)arg)->sums, 1, NULL, NULL) < 0 ? myri_cmd_failed() : 0;
}

/* All rows, into `table`; what they come to, into `out`. */
static int put_rows(FILE *out, FILE *table)
{
    struct myri_row *rows = calloc(MYRI_ROWS, sizeof *rows);
    struct all_sums all = {0};
    int n = rows ? myri_rows_builtin(rows, MYRI_ROWS) : 0, rc = rows ? 0 : myri_cmd_no_memory(MYRI_ROWS * sizeof *rows);
    if (n < 0)
        rc = myri_cmd_failed();
    fputs("<h2 id='rows'>Published figures beside ours</h2>\n"
          "<p>Rows of class held and second were never used to find a value of the machines; fit rows were; leaked and "
          "derived ones prove "
          "nothing. first: ours at the row's first comparison, where it was written down. null and affine: what "
          "arithmetic alone says, "
          "without and with two constants. <code>runnel paper why ROW</code> explains each.</p>\n<div "
          "class='wide'><table>\n<tr>",
          table);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        page_head(table, heads[i].name, heads[i].of_numbers);
    fputs("</tr>\n", table);
    for (int i = 0; i < n && rc == 0; i++) {
        struct myri_answer a;
        if (myri_row_answer(&rows[i], NULL, NULL, &a) < 0) {
            rc = myri_cmd_failed();
            break;
        }
        myri_cmd_sums_add(&all.sums, &rows[i], &a);
        put_row(table, &rows[i], &a);
    }
    fputs("</table></div>\n", table);
    fputs("<h2 id='summary'>What it comes to</h2>\n", out);
    rc = rc ? rc : page_printed(out, print_sums, &all);
    free(rows);
    return rc;
}

/* ---- figures ---- */

static void put_points(FILE *out, const struct myri_cmd_figure *f, double (*y)[MYRI_CMD_POINTS])
{
    fprintf(out, "<details><summary>the points, %s</summary><div class='wide'><table>\n<tr>", f->y);
    page_head(out, f->over, 1);
    for (int c = 0; c < myri_cmd_figure_curves(f); c++)
        page_head(out, f->curve[c].label, 1);
    fputs("</tr>\n", out);
    for (int k = 0; k < myri_cmd_figure_points(f); k++) {
        fputs("<tr>", out);
        page_number(out, "%g", f->x[k]);
        for (int c = 0; c < myri_cmd_figure_curves(f); c++)
            page_number(out, "%.4g", y[c][k]);
        fputs("</tr>\n", out);
    }
    fputs("</table></div></details>\n", out);
}

static int put_figure(FILE *out, const struct myri_cmd_options *o, const struct myri_cmd_figure *f, const char *dir)
{
    double y[MYRI_CMD_CURVES][MYRI_CMD_POINTS];
    struct myri_cmd_validity v;
    int rc = myri_cmd_figure_measure(o, f, y);
    rc = rc ? rc : myri_cmd_figure_judge(o, f, &v);
    rc = rc ? rc : myri_cmd_plot(dir, f, y, &v);
    if (rc)
        return rc;
    fprintf(out, "<h3 id='%s'>", f->name);
    page_text(out, f->title);
    fprintf(out, "</h3>\n<p class='%s'>", v.validated ? "in" : v.missed[0] ? "miss" : "none");
    page_text(out, v.said);
    fputs("</p>\n", out);
    rc = page_picture(out, dir, f->name, f->title);
    for (int k = 0; k < MYRI_CMD_CURVES && f->mark[k].label; k++) {
        fputs(k ? "; " : "<p>Published in it: ", out);
        page_text(out, f->mark[k].label);
    }
    fputs(f->mark[0].label ? ".</p>\n" : "", out);
    put_points(out, f, y);
    return rc;
}

static int put_figures(FILE *out, const struct myri_cmd_options *o)
{
    char dir[PAGE_PATH];
    if (page_scratch(dir) < 0 || !mkdtemp(dir))
        return myri_cmd_cannot("cannot make (TMPDIR says where)", dir);
    int rc = 0;
    fputs("<h2 id='figures'>Figures of the papers</h2>\n<p>Crosses are the values that survive in the papers' texts; "
          "their printed "
          "curves are lost.</p>\n",
          out);
    for (const struct myri_cmd_figure *f = myri_cmd_printed; f->name && rc == 0; f++)
        rc = put_figure(out, o, f, dir);
    fputs(
        "<h2 id='what-if'>What if</h2>\n<p>No published figure validates these, least of all those with more than two "
        "hosts.</p>\n",
        out);
    for (const struct myri_cmd_figure *f = myri_cmd_what_if; f->name && rc == 0; f++)
        rc = put_figure(out, o, f, dir);
    page_forget(dir);
    return rc;
}

/* ---- matrix, traces, machines ---- */

static int print_matrix(void *arg)
{
    return myri_cmd_matrix(arg);
}

static int put_matrix(FILE *out, struct myri_cmd_options *o)
{
    fputs("<h2 id='matrix'>All systems on one machine</h2>\n", out);
    return page_printed(out, print_matrix, o);
}

static int put_traces(FILE *out, const struct myri_cmd_options *o)
{
    fputs(
        "<h2 id='traces'>The first message of one word</h2>\n<p>Each system on its paper's machine: what hosts, buses, "
        "the cards' programs, their engines and the wire do, and when. Cards have been started, but no message went "
        "before: caches of translations are cold, pages are not pinned yet, credits not yet known, so that some take "
        "longer here than in the tables, which have means of many. "
        "<code>runnel paper trace SYSTEM</code> has each span in words.</p>\n",
        out);
    for (int i = 0; myri_systems[i]; i++) {
        struct myri_experiment x;
        struct myri_machine m;
        const struct myri_system *s = myri_systems[i];
        char *svg = NULL;
        size_t n = 0;
        uint64_t took = 0;
        if (!s->receive)
            continue;
        if (myri_cmd_machine_for(o, s->machines, &m) != 0)
            return 1;
        myri_experiment_init(&x, s, &m, MYRI_STREAM_RATE, 4);
        x.count = 1;
        x.seed = o->seed;
        FILE *f = open_memstream(&svg, &n);
        int rc = !f                                     ? myri_cmd_cannot("no memory for the trace of", s->name)
                 : myri_cmd_trace_svg(f, &x, &took) < 0 ? myri_cmd_failed()
                                                        : 0;
        if (f)
            fclose(f);
        if (rc == 0) {
            fprintf(out, "<h3 id='trace-%s'>", s->name);
            page_text(out, s->title);
            fprintf(out, " (%s) on %s: %.3f us</h3>\n<div class='wide'>%s</div>\n", s->name, m.name, (double)took / 1e6,
                    svg);
        }
        free(svg);
        if (rc)
            return rc;
    }
    return 0;
}

static int put_machines(FILE *out)
{
    enum { MACHINES = 16 };
    struct myri_machine *m = calloc(MACHINES, sizeof *m);
    int n = 0;
    if (!m)
        return myri_cmd_no_memory(MACHINES * sizeof *m);
    for (const struct myri_data *d = myri_data_table; d->name && n < MACHINES; d++)
        if (strncmp(d->name, "machines/", 9) == 0)
            if (myri_machine_parse((const char *)d->bytes, d->n, &m[n++]) < 0) {
                free(m);
                return myri_cmd_failed();
            }
    fputs("<h2 id='machines'>The machines</h2>\n<p>Behind each number its class: <span class='given'>given</span>, "
          "<span class='derived'>derived</span>, <span class='fitted'>fitted</span> (by runnel paper fit, on rows of "
          "class fit), "
          "<span class='assumed'>assumed</span> (or known from elsewhere).</p>\n<div "
          "class='wide'><table>\n<tr><th>value</th>",
          out);
    for (int i = 0; i < n; i++)
        page_head(out, m[i].name, 0);
    fputs("<th>unit</th></tr>\n", out);
    for (int v = 0; v < MYRI_M_COUNT; v++) {
        fputs("<tr>", out);
        page_cell(out, "%s", myri_machine_name_of((enum myri_machine_value)v));
        for (int i = 0; i < n; i++)
            fprintf(out, "<td class='%s'>%.10g %s</td>", myri_machine_class_name(m[i].class_of[v]), m[i].v[v],
                    myri_machine_class_name(m[i].class_of[v]));
        page_cell(out, "%s", myri_machine_unit_of((enum myri_machine_value)v));
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
    for (int i = 0; i < n; i++) {
        fprintf(out, "<details><summary>%s: ", m[i].name);
        page_text(out, m[i].about);
        fputs("; where each value comes from</summary><div class='wide'><table>\n", out);
        for (int v = 0; v < MYRI_M_COUNT; v++) {
            fputs("<tr>", out);
            page_cell(out, "%s", myri_machine_name_of((enum myri_machine_value)v));
            page_cell(out, "%.10g %s", m[i].v[v], myri_machine_unit_of((enum myri_machine_value)v));
            page_cell(out, "%s", myri_machine_class_name(m[i].class_of[v]));
            page_cell(out, "%s", m[i].source[v]);
            fputs("</tr>\n", out);
        }
        fputs("</table></div></details>\n", out);
    }
    free(m);
    return 0;
}

/* ---- the page ---- */

static int put_page(FILE *out, struct myri_cmd_options *o, const char *figures)
{
    char *rows = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&rows, &n);
    if (!to)
        return myri_cmd_cannot("no memory for", "the rows");
    page_begin(out, "The papers' systems on the papers' machine");
    if (o->count)
        fprintf(out, "<p>Figures and matrix with %u messages in each experiment, where more are usual.</p>\n",
                o->count);
    int rc = put_rows(out, to);
    fclose(to);
    if (rc == 0)
        fputs(rows, out);
    free(rows);
    rc = rc ? rc : put_matrix(out, o);
    if (rc == 0)
        fputs(figures, out);
    rc = rc ? rc : put_traces(out, o);
    rc = rc ? rc : put_machines(out);
    page_end(out);
    return rc;
}

int myri_cmd_report(struct myri_cmd_options *o)
{
    char path[512], part[520], *figures = NULL;
    size_t n = 0;
    int made = 0, rc;
    if (!o->what)
        return myri_cmd_wrong("name a folder for the page; it is made, or has to be empty");
    if (snprintf(path, sizeof path, "%s/index.html", o->what) >= (int)sizeof path)
        return myri_cmd_wrong("the name of the folder has more than %zu letters", sizeof path - sizeof "/index.html");
    rc = page_folder(o->what, path, &made);
    if (rc)
        return rc;
    FILE *to = open_memstream(&figures, &n), *out = NULL;
    snprintf(part, sizeof part, "%s.part", path);
    struct myri_cmd_options plain = {.seed = o->seed, .count = o->count, .seed_given = o->seed_given};
    rc = to ? put_figures(to, &plain)
            : myri_cmd_cannot("no memory for", "the figures"); /* first: they may need gnuplot */
    if (to)
        fclose(to);
    if (rc == 0 && !(out = fopen(part, "w")))
        rc = myri_cmd_cannot("cannot write", part);
    if (rc == 0)
        rc = put_page(out, &plain, figures);
    if (out && fclose(out) != 0 && rc == 0)
        rc = myri_cmd_cannot("cannot write", part);
    if (out && rc == 0 && rename(part, path) < 0)
        rc = myri_cmd_cannot("cannot write", path);
    if (rc == 0)
        printf("written: %s\n", path);
    else if (out)
        unlink(part);
    if (rc && made)
        rmdir(o->what);
    free(figures);
    return rc;
}
