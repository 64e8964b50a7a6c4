/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bounds_picture.c - `runnel paper fit --bounds --plot`: for each value a panel with a line for each row, and on it the
 * numbers that have the row inside, and behind it the rows that it has no number in common with. The first line of a
 * panel is what all rows have in common that are inside now. Between two factors that were tried a side ends in the
 * middle of both, on the logarithmic axis. */
#include "sim/myrinet/command/bounds.h"
#include "sim/myrinet/command/command.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { POINTS = MYRI_CMD_FACTORS, OWN = MYRI_CMD_OWN };
enum {
    LEFT = 290,
    OCTAVE = 110,
    RIGHT = LEFT + 4 * OCTAVE + 20,
    NEVER = RIGHT + 220,
    WIDTH = NEVER + 330,
    LINE = 20,
    HEAD = 76
};

struct myri_cmd_bounds_picture {
    FILE *out;
    char *text;
    size_t bytes;
    int y;
};

static double across(double factor)
{
    return LEFT + OCTAVE * (log2(factor) + 2);
}

static double edge(int i)
{
    return i == 0        ? across(myri_cmd_factors[0]) - 10
           : i == POINTS ? across(myri_cmd_factors[POINTS - 1]) + 10
                         : (across(myri_cmd_factors[i - 1]) + across(myri_cmd_factors[i])) / 2;
}

struct myri_cmd_bounds_picture *myri_cmd_bounds_picture_new(void)
{
    struct myri_cmd_bounds_picture *p = calloc(1, sizeof *p);
    if (p && !(p->out = open_memstream(&p->text, &p->bytes))) {
        free(p);
        p = NULL;
    }
    if (p)
        p->y = HEAD;
    return p;
}

/* What each run of one side is drawn as; blanks, where the value cannot be that, are left open. */
static void put_bar(struct myri_cmd_bounds_picture *p, const char *at, const char *inside)
{
    for (int i = 0; i < POINTS; i++) {
        int first = i;
        while (i + 1 < POINTS && at[i + 1] == at[first])
            i++;
        if (at[first] != ' ')
            fprintf(p->out, "<rect x='%.1f' y='%d' width='%.1f' height='%d' fill='%s'/>\n", edge(first), p->y + 4,
                    edge(i + 1) - edge(first), LINE - 6, at[first] == '#' ? inside : "#e4e4e4");
    }
}

static void put_runs(FILE *out, const char *at, double is, const char *unit)
{
    int runs = 0;
    for (int i = 0; i < POINTS; i++) {
        int first = i;
        while (i + 1 < POINTS && at[first] == '#' && at[i + 1] == '#')
            i++;
        if (at[first] != '#')
            continue;
        fprintf(out, "%s%.4g", runs++ ? ", " : "", is * myri_cmd_factors[first]);
        if (i > first)
            fprintf(out, " to %.4g", is * myri_cmd_factors[i]);
    }
    fprintf(out, runs ? " %s" : "never", unit);
}

static void put_row(struct myri_cmd_bounds_picture *p, const struct myri_cmd_bounds_row *b, int n, int k,
                    const char *unit)
{
    const struct myri_row *r = b[k].row;
    int excluded = 0;
    fprintf(p->out, "<text x='8' y='%d'%s>%s</text><text x='52' y='%d' class='of'>%s</text>", p->y + 15,
            b[k].at[OWN] == '#' ? "" : " class='miss'", r->field[MYRI_ROW_ID], p->y + 15, r->field[MYRI_ROW_SYSTEM]);
    fprintf(p->out, "<text x='170' y='%d' class='of'>%s, %s</text>\n", p->y + 15, r->field[MYRI_ROW_MACHINE],
            r->field[MYRI_ROW_CLASS]);
    put_bar(p, b[k].at, strcmp(r->field[MYRI_ROW_CLASS], "fit") == 0 ? "#e69f00" : "#4477aa");
    fprintf(p->out, "<text x='%d' y='%d'>", RIGHT, p->y + 15);
    put_runs(p->out, b[k].at, b[k].is, unit);
    fputs("</text>", p->out);
    fprintf(p->out, "<text x='%d' y='%d' class='miss'>", NEVER, p->y + 15);
    for (int i = 0; i < n; i++)
        if (i != k && myri_cmd_bounds_exclude(&b[i], &b[k]))
            fprintf(p->out, "%s%s", excluded++ ? " " : "", b[i].row->field[MYRI_ROW_ID]);
    fputs("</text>\n", p->out);
    p->y += LINE;
}

/* What all rows have that are inside now. */
static void put_common(struct myri_cmd_bounds_picture *p, const struct myri_cmd_bounds_row *b, int n, const char *unit)
{
    char at[POINTS + 1] = "#########";
    double is = b[0].is;
    int same = 1;
    for (int k = 0; k < n; k++) {
        same &= b[k].is == is;
        for (int i = 0; b[k].at[OWN] == '#' && i < POINTS; i++)
            if (b[k].at[i] != '#')
                at[i] = b[k].at[i] == ' ' || at[i] == ' ' ? ' ' : '.';
    }
    fprintf(p->out, "<text x='8' y='%d'>all that are inside now</text>\n", p->y + 15);
    put_bar(p, at, "#228833");
    fprintf(p->out, "<text x='%d' y='%d'>", RIGHT, p->y + 15);
    put_runs(p->out, at, same ? is : 1, same ? unit : "times what each machine has");
    fputs("</text>\n", p->out);
    p->y += LINE;
}

void myri_cmd_bounds_picture_add(struct myri_cmd_bounds_picture *p, int value, const struct myri_cmd_bounds_row *b,
                                 int n)
{
    const char *unit = myri_machine_unit_of((enum myri_machine_value)value);
    int moved = 0, top = p->y + 30;
    for (int k = 0; k < n; k++)
        moved += myri_cmd_bounds_is_moved(&b[k]);
    fprintf(p->out, "<text x='8' y='%d' class='head'>%s</text>", p->y + 20,
            myri_machine_name_of((enum myri_machine_value)value));
    fprintf(p->out,
            "<text x='%d' y='%d' class='of'>%d of %d rows keep their side everywhere, and are left out</text>"
            "<text x='%d' y='%d' class='of'>has it inside</text><text x='%d' y='%d' class='of'>excludes</text>\n",
            LEFT - 10, p->y + 20, n - moved, n, RIGHT, p->y + 20, NEVER, p->y + 20);
    p->y = top;
    if (n)
        put_common(p, b, n, unit);
    for (int k = 0; k < n; k++)
        if (myri_cmd_bounds_is_moved(&b[k]))
            put_row(p, b, n, k, unit);
    fprintf(p->out, "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' stroke='black' stroke-dasharray='3,2'/>\n", across(1),
            top, across(1), p->y + 2);
    for (int i = 0; i < POINTS; i++)
        fprintf(p->out, "<text x='%.1f' y='%d' class='tick'>%g</text>", across(myri_cmd_factors[i]), p->y + 15,
                myri_cmd_factors[i]);
    p->y += 2 * LINE;
}

/* Writes DIR/bounds.svg, and makes DIR. */
static int write_picture(struct myri_cmd_bounds_picture *p, const char *dir)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/bounds.svg", dir) >= (int)sizeof path)
        return myri_cmd_wrong("the path for --plot is too long: %zu bytes", strlen(dir));
    if (mkdir(dir, 0777) < 0 && errno != EEXIST)
        return myri_cmd_cannot("cannot make", dir);
    FILE *out = fopen(path, "w");
    if (!out)
        return myri_cmd_cannot("cannot write", path);
    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif' "
            "font-size='13'>\n<style>.head{font-weight:bold;font-size:15px}.of{fill:#555}.miss{fill:#b00000}"
            ".tick{text-anchor:middle;font-size:11px;fill:#555}</style>\n"
            "<rect width='%d' height='%d' fill='white'/>\n",
            WIDTH, p->y, WIDTH, p->y);
    fprintf(out,
            "<text x='8' y='24' font-size='17'>How far one value of the machines can be multiplied, all others "
            "staying, with each published row inside</text>\n"
            "<rect x='8' y='36' width='16' height='12' fill='#4477aa'/><text x='30' y='47'>inside, held row</text>"
            "<rect x='150' y='36' width='16' height='12' fill='#e69f00'/><text x='172' y='47'>inside, row of class "
            "fit</text><rect x='330' y='36' width='16' height='12' fill='#e4e4e4'/><text x='352' y='47'>outside"
            "</text><text x='430' y='47'>dashed: as the machines are</text>"
            "<text x='640' y='47' class='miss'>red: outside now, or never inside together with it</text>\n"
            "<text x='8' y='66' class='of'>Tried at the factors below each panel; nothing is known between two of "
            "them, where a side ends in the middle.</text>\n");
    fwrite(p->text, 1, p->bytes, out);
    fputs("</svg>\n", out);
    return fclose(out) == 0 ? 0 : myri_cmd_cannot("cannot write", path);
}

int myri_cmd_bounds_picture_end(struct myri_cmd_bounds_picture *p, const char *dir)
{
    int rc = fclose(p->out) == 0 ? 0 : myri_cmd_cannot("no memory for", "the picture");
    if (dir && rc == 0)
        rc = write_picture(p, dir);
    free(p->text);
    free(p);
    return rc;
}
