/* SPDX-License-Identifier: BSD-3-Clause
 *
 * figure.h - a figure: curves over one thing that is varied. */
#ifndef MYRI_FIGURE_H
#define MYRI_FIGURE_H

#include "sim/myrinet/command/command.h"

enum { MYRI_CMD_CURVES = 8, MYRI_CMD_POINTS = 24 };
struct myri_cmd_curve {
    const char *label, *system, *machine;
    enum myri_measure measure;
    const char *set;        /* a value of the machine, or NULL */
    uint32_t bytes;         /* where the size is not what varies */
    int given;              /* no experiment: y of a closed form, myri_cmd_given() */
    double slow_us;         /* of the receiver */
    uint32_t packet, count; /* 0: as many as is usual */
    uint32_t senders;       /* 0: one, or four where several are what is measured */
    int cold;               /* one message, with empty caches of translations */
    const char *of;         /* y is the part of this system's, in per cent; or NULL */
    const double *y;        /* no experiment: these are printed in the paper; or NULL */
    enum myri_attention attention;
};
struct myri_cmd_mark { /* what survives of the printed curve */
    double x, y;
    const char *label;
};
struct myri_cmd_figure {
    const char *name, *title, *over,
        *unit; /* over: size, packet, buffers, senders, processes, places, slow, or a machine's value */
    const char *y;
    const char *rows; /* the published figures on it that have an experiment, blanks between; NULL: none validates it */
    const char *note; /* what one has to know to read it, or NULL; lines end with \n */
    struct myri_cmd_curve curve[MYRI_CMD_CURVES];
    double x[MYRI_CMD_POINTS];
    struct myri_cmd_mark mark[MYRI_CMD_CURVES];
};
extern const struct myri_cmd_figure myri_cmd_printed[], myri_cmd_what_if[]; /* each ends with a NULL name */
#define SIZES_BLOCKS 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536

struct myri_cmd_validity {
    int validated;
    char said[200];   /* for below its title; empty: nothing is to be said */
    char missed[100]; /* of its rows those that are outside, or have no experiment */
};
/* Whether its published rows validate a figure. 0, or the exit status, said. */
int myri_cmd_figure_judge(const struct myri_cmd_options *, const struct myri_cmd_figure *, struct myri_cmd_validity *);
int myri_cmd_figure_points(const struct myri_cmd_figure *); /* how many */
int myri_cmd_figure_curves(const struct myri_cmd_figure *);
int myri_cmd_figure_has_ours(const struct myri_cmd_figure *);
/* All points: y of each curve. 0, or the exit status, said. */
int myri_cmd_figure_measure(const struct myri_cmd_options *, const struct myri_cmd_figure *,
                            double (*y)[MYRI_CMD_POINTS]);
/* Draws NAME.svg in a folder, which is made. 0, or the exit status, said. */
int myri_cmd_plot(const char *dir, const struct myri_cmd_figure *, double (*y)[MYRI_CMD_POINTS],
                  const struct myri_cmd_validity *);
/* One point. 0, or the exit status, said. */
int myri_cmd_point(const struct myri_cmd_options *, const struct myri_cmd_figure *, const struct myri_cmd_curve *,
                   double x, double *y);
/* Prints it, and draws it if the options say so. */
int myri_cmd_draw(const struct myri_cmd_options *, const struct myri_cmd_figure *);

#endif
