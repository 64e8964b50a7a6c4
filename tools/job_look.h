/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_look.h - finds the ranks of a job on this host, and looks at their pages of counters again and again, for
 * `runnel why` and `runnel top`. Ranks need not answer. A process may have several ranks, as threads. */
#ifndef RNL_TOOLS_JOB_LOOK_H
#define RNL_TOOLS_JOB_LOOK_H

#include "base/counters.h"

#include <stdbool.h>
#include <stdint.h>

struct job_rank {
    int pid;        /* 0 = no process of this host has an endpoint of this rank, or it has ended */
    unsigned first; /* the rank of its process that was found first, be it this one */
    char state;     /* of the process, as /proc has it: 'R', 'S', 'T'; '?' = unknown */
    uint64_t ticks; /* processor time of its process so far */
    struct rnl_counters_view view;
    struct rnl_counters_page page; /* of the last look */
};
struct job_look {
    int job; /* the process of its launcher, or its only process */
    unsigned size, found;
    struct job_rank *rank;           /* by rank; `size` of them */
    uint64_t now_ns;                 /* of the last look */
    struct rnl_counters_page *pages; /* room for those of one process, */
    struct rnl_counters_view *views; /* and for their views */
};

/* Finds the ranks of the job of which `pid` is the launcher or a rank, and looks at them once. Returns their number,
 * 0 = it has none here; -1: no memory. */
int job_look_find(struct job_look *, int pid);
/* Looks at the same processes again; what has ended has no pid from then on. Returns how many ranks are left. */
int job_look_again(struct job_look *);
void job_look_free(struct job_look *);

#endif
