/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_jobs.h - the processes of `runnel bench`: starts a pair for each interface, watches over them, ends them. */
#ifndef RNL_TOOLS_BENCH_JOBS_H
#define RNL_TOOLS_BENCH_JOBS_H

#include <sys/types.h>

#include "trials.h"

enum { BENCH_JOBS = BENCH_MAX_PAIRS + 2 };

struct bench_jobs {
    struct bench_area *area;
    char area_path[64];    /* how the others find the area */
    pid_t pid[BENCH_JOBS]; /* the bare processes, then the launchers; 0 = none */
    unsigned pair[BENCH_JOBS];
    char *text; /* where the sentence goes when one ends too early */
    size_t text_size;
};

/* Starts the baselines, and a job for each pair with a role. apis: pairs (bit BENCH_RAW set), or 0 for a scenario,
 * which has baselines of its own. 0, or negative with a sentence in *text. Whatever was
 * started is ended by bench_jobs_end, also after a failure, and by the kernel if this process dies. */
int bench_jobs_start(struct bench_jobs *, struct bench_area *, int area_fd, unsigned apis, char *text, size_t size);
/* For bench_run: 0 while all of them live. */
int bench_jobs_alive(void *jobs);
/* failed: without asking. */
void bench_jobs_end(struct bench_jobs *, bool failed);
/* One rank of a pair's job: what the launcher starts. Returns the exit status. */
int bench_jobs_child(const char *area_path, unsigned pair);

#endif
