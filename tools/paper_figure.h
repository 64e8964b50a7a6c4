/* SPDX-License-Identifier: BSD-3-Clause
 *
 * paper_figure.h - a figure: curves over one thing that is varied. */
#ifndef RNL_TOOLS_PAPER_FIGURE_H
#define RNL_TOOLS_PAPER_FIGURE_H

#include "paper.h"

enum { PAPER_CURVES = 8, PAPER_POINTS = 24 };
struct paper_curve {
    const char *label, *system, *machine;
    enum rnl_measure measure;
    const char *set;        /* a value of the machine, or NULL */
    uint32_t bytes;         /* where the size is not what varies */
    int given;              /* no experiment: y of a closed form, paper_given() */
    double slow_us;         /* of the receiver */
    uint32_t packet, count; /* 0: as many as is usual */
    uint32_t senders;       /* 0: one, or four where several are what is measured */
    int cold;               /* one message, with empty caches of translations */
    const char *of;         /* y is the part of this system's, in per cent; or NULL */
    const double *y;        /* no experiment: these are printed in the paper; or NULL */
    enum rnl_attention attention;
};
struct paper_mark { /* what survives of the printed curve */
    double x, y;
    const char *label;
};
struct paper_figure {
    const char *name, *title, *over,
        *unit; /* over: size, packet, buffers, senders, processes, places, slow, or a machine's value */
    const char *y;
    const char *rows; /* the published figures on it that have an experiment, blanks between; NULL: none validates it */
    const char *note; /* what one has to know to read it, or NULL; lines end with \n */
    struct paper_curve curve[PAPER_CURVES];
    double x[PAPER_POINTS];
    struct paper_mark mark[PAPER_CURVES];
};
extern const struct paper_figure paper_printed[], paper_what_if[]; /* each ends with a NULL name */
#define SIZES_BLOCKS 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536

/* One point. 0, or the exit status, said. */
int paper_point(const struct paper_options *, const struct paper_figure *, const struct paper_curve *, double x,
                double *y);
/* Prints it, and draws it if the options say so. */
int paper_draw(const struct paper_options *, const struct paper_figure *);

#endif
