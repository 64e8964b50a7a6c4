/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guard.h - the process that outlives the launcher: when that is killed, it kills the process groups of the ranks.
 * Ranks die with the launcher by themselves (PR_SET_PDEATHSIG); what they started, below a wrapper say, does not. */
#ifndef RNL_JOB_GUARD_H
#define RNL_JOB_GUARD_H

#include <sys/types.h>

struct rnl_guard {
    int pipe; /* -1 = there is none */
    pid_t pid;
};

#define RNL_GUARD_NONE ((struct rnl_guard){.pipe = -1})

/* 0 or -errno. Before the launcher has grown, and before the first rank. */
int rnl_guard_start(struct rnl_guard *);
/* The group is there; is about to be reaped, so that its number may become somebody else's. Fine on none. */
void rnl_guard_add(const struct rnl_guard *, pid_t group);
void rnl_guard_remove(const struct rnl_guard *, pid_t group);
/* Kills what was not removed, and waits for the guard. Fine on none. */
void rnl_guard_end(struct rnl_guard *);

#endif
