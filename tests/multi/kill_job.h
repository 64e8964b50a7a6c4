/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kill_job.h - a job under `runnel run` whose processes are signalled at given moments, and what it said and left
 * behind. */
#ifndef RNL_TESTS_MULTI_KILL_JOB_H
#define RNL_TESTS_MULTI_KILL_JOB_H

#include <stdint.h>
#include <sys/types.h>

enum { KILL_RANKS = 16, KILL_TEXT = 1 << 16 };

struct kill_shot {
    int rank;         /* -1 = the launcher */
    uint64_t at_ns;   /* after the start */
    uint64_t stop_ns; /* SIGSTOP that long before, 0 = not */
    /* results */
    int hit;          /* 1 = SIGKILL reached a process that was not known to have ended */
    uint64_t when_ns; /* CLOCK_MONOTONIC, just before SIGKILL */
};

struct kill_job {
    /* in */
    char *const *argv; /* the whole command */
    unsigned ranks;
    int hosts; /* the job is one on several hosts */
    struct kill_shot shot[KILL_RANKS];
    unsigned shots;
    uint64_t limit_ns;
    /* out */
    int hung;         /* it did not end within limit_ns and was ended */
    int status;       /* as waitpid gives it */
    int left;         /* processes that were still there 2 s after the launcher's end */
    uint64_t ns;      /* from start to end */
    uint64_t gone_ns; /* from the launcher's end until no process was left */
    char out[KILL_TEXT], err[KILL_TEXT];
};

/* Once: orphans become our children, so that none escapes the count. 0 or -1. */
int kill_job_prepare(void);
/* 0, or -1: could not be started. */
int kill_job_run(struct kill_job *job);

#endif
