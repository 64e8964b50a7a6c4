/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plot.c - a figure's picture, by gnuplot. Its title is there whole, in as many lines as it takes, and below it what
 * validates the figure, or what does not. */
#include "sim/myrinet/command/figure.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 90 }; /* letters that a picture is wide enough for */

static int gnuplot(const char *script)
{
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        execlp("gnuplot", "gnuplot", script, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return myri_cmd_cannot("cannot start", "gnuplot");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    fprintf(stderr, "runnel paper: %s\n",
            WIFEXITED(status) && WEXITSTATUS(status) == 127 ? "gnuplot is not installed (scripts/setup demo)"
                                                            : "gnuplot failed");
    return 1;
}

/* In a string of gnuplot: lines of about one length, which end at blanks. */
static void put_lines(FILE *out, const char *text)
{
    size_t lines = strlen(text) / LINE + 1, room = strlen(text) / lines + 12;
    room = room < LINE ? room : LINE;
    while (*text) {
        size_t n = strlen(text);
        if (n > room)
            for (n = room; n > 1 && text[n] != ' '; n--)
                ;
        for (size_t i = 0; i < n; i++)
            fprintf(out, text[i] == '"' || text[i] == '\\' ? "\\%c" : "%c", text[i]);
        text += n;
        text += *text == ' ';
        fputs(*text ? "\\n" : "", out);
    }
}

/* Between single quotes of gnuplot, where a quote is doubled. What is no path from the root begins with ./ there, as
 * gnuplot takes some first letters for more than a part of a name (| for a pipe). */
static void put_path(FILE *out, const char *dir, const char *name)
{
    fputs(*dir == '/' ? "set output '" : "set output './", out);
    for (; *dir; dir++)
        fputs(*dir == '\'' ? "''" : (char[]){*dir, 0}, out);
    fprintf(out, "/%s.svg'\n", name);
}

int myri_cmd_plot(const char *dir, const struct myri_cmd_figure *f, double (*y)[MYRI_CMD_POINTS],
                  const struct myri_cmd_validity *v)
{
    char path[PATH_MAX];
    int n = myri_cmd_figure_points(f), curves = myri_cmd_figure_curves(f), marks = 0;
    if (strchr(dir, '\n'))
        return myri_cmd_wrong("gnuplot takes no path with a line's end in it: give --plot another");
    if (snprintf(path, sizeof path, "%s%s/%s.gp", *dir == '/' ? "" : "./", dir, f->name) >= (int)sizeof path)
        return myri_cmd_wrong("the path for --plot is too long: %zu bytes", strlen(dir));
    if (mkdir(dir, 0777) < 0 && errno != EEXIST)
        return myri_cmd_cannot("cannot make", dir);
    FILE *out = fopen(path, "w");
    if (!out)
        return myri_cmd_cannot("cannot write", path);
    fprintf(out, "set terminal svg size 800,%d background 'white' font 'sans,13'\n", f->note ? 560 : 500);
    put_path(out, dir, f->name);
    /* The fifth colour of gnuplot's own is a yellow that is not seen on white. */
    fputs("set linetype 5 linecolor rgb '#8c510a'\nset title \"", out);
    put_lines(out, f->title);
    if (v->said[0]) {
        fputs("\\n(", out);
        put_lines(out, v->said);
        fputc(')', out);
    }
    fprintf(out, "\" noenhanced\nset key below height 1\nset grid\nset ylabel '%s'\nset xlabel \"%s%s%s%s", f->y,
            f->over, f->unit[0] ? ", " : "", f->unit, f->note ? "\\n" : "");
    for (const char *p = f->note; p && *p; p++)
        fputs(*p == '\n' ? "\\n" : (char[]){*p, 0}, out);
    fputs("\" noenhanced\n", out);
    int in_powers = strcmp(f->over, "size") == 0 || strcmp(f->over, "page") == 0 || strcmp(f->over, "packet") == 0 ||
                    strcmp(f->over, "buffers") == 0 || (strcmp(f->over, "slow") == 0 && f->x[0] > 0);
    fputs(in_powers ? "set logscale x 2\n" : "set xrange [0:*]\n", out);
    fputs(f->curve[0].y ? "set boxwidth 0.6\nset xtics 1\n" : "", out);
    /* Room for the labels of published values, at both ends where the first point is not near zero. */
    fprintf(out, "set yrange [0:*]\nset offsets %s, graph 0.15, graph 0.15, 0\n", in_powers ? "graph 0.12" : "0");
    while (marks < MYRI_CMD_CURVES && f->mark[marks].label)
        marks++;
    fputs("plot ", out);
    for (int c = 0; c < curves; c++)
        fprintf(out, "%s'-' with %s title '%s'", c ? ", " : "",
                f->curve[c].y ? "boxes fill solid 0.4" : "linespoints lw 2 pt 7 ps 0.5", f->curve[c].label);
    if (marks)
        fputs(", '-' using 1:2:3 with labels point pt 2 ps 1.5 lw 2 lc 'black' offset 0,1 center title 'published'",
              out);
    fputc('\n', out);
    for (int c = 0; c < curves; c++) {
        for (int k = 0; k < n; k++)
            if (!isnan(y[c][k]))
                fprintf(out, "%g %.6g\n", f->x[k], y[c][k]);
        fputs("e\n", out);
    }
    for (int k = 0; k < marks; k++)
        fprintf(out, "%g %g \"%s\"\n", f->mark[k].x, f->mark[k].y, f->mark[k].label);
    fputs(marks ? "e\n" : "", out);
    if (fclose(out) != 0)
        return myri_cmd_cannot("cannot write", path);
    return gnuplot(path);
}
