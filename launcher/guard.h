/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guard.h - a process that outlives who started it. When a node agent is killed, it kills the process groups of the
 * ranks: ranks themselves die with the agent (PR_SET_PDEATHSIG), but processes that they started do not. When a
 * launcher is killed, it removes the rendezvous file. */
#ifndef RNL_LAUNCHER_GUARD_H
#define RNL_LAUNCHER_GUARD_H

#include <sys/types.h>

struct rnl_guard {
    int pipe; /* -1 = there is none */
    pid_t pid;
    /* Shared with the guard, by rank: 0 = none. To be set to 0 before the leader of a group is reaped, after which its
     * number may be reused. */
    pid_t *groups;
};

#define RNL_GUARD_NONE ((struct rnl_guard){.pipe = -1})

/* Forks the guard, which removes `file` at the end unless that is NULL. 0 or -errno. To be called while this process is
 * small, and before the first rank starts. */
int rnl_guard_start(struct rnl_guard *, const char *file);
/* Makes the guard do its work, and waits for its end. No effect without a guard. */
void rnl_guard_end(struct rnl_guard *);

#endif
