/* SPDX-License-Identifier: BSD-3-Clause
 *
 * top.h - the parts of `runnel top`: rows of rates from two looks at a job (top_rows.c), the screen (top_screen.c), and
 * metrics for Prometheus (top_metrics.c). */
#ifndef RNL_TOOLS_TOP_H
#define RNL_TOOLS_TOP_H

#include "job_look.h"

#include <stdio.h>

enum top_sort { TOP_RANK, TOP_SENT, TOP_RECEIVED, TOP_BYTES, TOP_CPU, TOP_LOST, TOP_KEPT, TOP_WAITS, TOP_SORTS };
extern const char *const top_sort_word[TOP_SORTS];

struct top_row { /* one rank between two looks; what is per second is a rate */
    unsigned rank;
    int pid;                    /* 0 = it is not on this host, or has ended */
    const char *state;          /* "stopped" and so on, as the system says */
    double sent, received;      /* messages, replies too, a second */
    double out, in;             /* payload bytes a second */
    double cpu;                 /* percent of a processor, of its process */
    double lost;                /* packets a second that were declared lost and sent again */
    uint64_t kept, queued;      /* bytes of kept messages; posted messages that had to be queued so far */
    uint64_t stacks;            /* suspended handlers */
    uint64_t waits;             /* enum rnl_waits, now; 0 = it does not wait */
    int waits_at;               /* the rank that it waits for; -1 = none */
    double seconds;             /* since when */
    uint64_t packets, all_lost; /* sent to other hosts so far, and lost */
};

struct top_table {
    int job;
    unsigned size, found, waiting, stopped;
    double interval; /* seconds between the two looks */
    char program[64];
    struct top_row total; /* sums */
    struct top_row *row;  /* `size` of them, sorted */
};

/* Makes the table from what was seen before and now: `before` has a copy of each rank of `now`, or is empty: then all
 * rates are those since the endpoint was opened. 0, or -1 = no memory. */
int top_table_make(const struct job_look *now, const struct job_rank *before, uint64_t before_ns, enum top_sort,
                   bool reverse, struct top_table *out);
void top_table_free(struct top_table *);
/* What a row waits for, "room at 3"; "" = nothing. */
const char *top_waits(const struct top_row *, char *text, size_t room);
/* A number in at most five columns: 1234, 12.3k, 4.56M. */
const char *top_short(double, char text[16]);
/* The head lines, and one row, of at most `columns` characters, without an end of line. */
void top_put_head(const struct top_table *, enum top_sort, unsigned line, unsigned columns, char *out, size_t room);
void top_put_row(const struct top_table *, const struct top_row *, unsigned columns, char *out, size_t room);
enum { TOP_HEAD_LINES = 3 };
void top_put_json(const struct top_table *, FILE *);

/* top_screen.c: shows the job until `q` or its end. The exit status. */
int top_screen(struct job_look *, double interval, enum top_sort);

/* top_metrics.c */
void top_put_metrics(const struct job_look *, FILE *);
/* Serves them at `where`: PORT of the loopback interface, ADDRESS:PORT, or a file that is replaced at each interval,
 * until the job ends or a signal comes. The exit status. */
int top_metrics(struct job_look *, const char *where, double interval);

#endif
