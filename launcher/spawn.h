/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spawn.h - finds a program and starts it as a rank; the guard; and which cores ranks can be bound to. */
#ifndef RNL_LAUNCHER_SPAWN_H
#define RNL_LAUNCHER_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Finds the program `name`: as it is if it has a slash, else in PATH. Returns 0 and *path, which the caller frees; or
 * an exit status, 126 or 127, and a sentence with a remedy. */
int rnl_spawn_find(const char *name, char **path, char *sentence, size_t room);

/* The signals that the launcher handles, and passes on to the ranks. */
enum { RNL_SPAWN_SIGNALS = 8 };
extern const int rnl_spawn_signals[RNL_SPAWN_SIGNALS];

struct rnl_spawn {
    const char *path;
    char **argv;
    int in, out, err;          /* become descriptors 0, 1 and 2 */
    int bootstrap;             /* the bootstrap socket, which stays open; RUNNEL_FD gets its number */
    int pmi;                   /* stays open, too; PMI_FD gets its number */
    uint32_t size;             /* of the job */
    char **variables;          /* more for its environment, NULL at the end; or NULL */
    int failed;                /* a pipe for struct rnl_spawn_failed, close-on-exec */
    int cpu;                   /* the processor to bind the rank to, -1 = none */
    struct rlimit descriptors; /* its limit; all 0 = unchanged */
};

enum rnl_spawn_stage { RNL_SPAWN_BIND, RNL_SPAWN_PREPARE, RNL_SPAWN_EXECUTE };
struct rnl_spawn_failed {
    uint32_t rank;
    int32_t sys_errno;
    int32_t stage; /* enum rnl_spawn_stage: what failed */
};

/* Saves the signal mask and actions of this process for its children. To be called before it changes any. */
void rnl_spawn_save_signals(void);
/* Forks with all signals blocked in the child, so that no handler of the launcher runs there. The child restores the
 * saved mask and actions by rnl_spawn_restore_signals. */
pid_t rnl_spawn_fork(void);
void rnl_spawn_restore_signals(void);

/* Starts a rank, which leads a process group of its own and dies with this thread. 0 or -errno; errors after the fork
 * are reported through `failed`. */
int rnl_spawn(const struct rnl_spawn *how, uint32_t rank, pid_t *pid);

/* Lists the processors this process may run on: first one hardware thread of each core, then the second ones. Returns
 * their number, or -errno. */
int rnl_bind_cores(int *cpus, int room);
/* Returns how many there are. */
int rnl_bind_count(void);
/* Called around hwloc_topology_init, these keep hwloc from printing errors where there is no /sys, without the ranks
 * inheriting that setting. The result of the first is the argument of the second. */
bool rnl_bind_hush(void);
void rnl_bind_unhush(int hushed);

/* Returns the least that the control group of this process and those above it allow, of version 1 or 2; UINT64_MAX: no
 * limit, or it cannot be read. */
enum rnl_group_limit {
    RNL_GROUP_MEMORY, /* bytes */
    RNL_GROUP_PROCESSES,
    RNL_GROUP_PROCESSORS /* thousandths of one */
};
uint64_t rnl_group_limit(enum rnl_group_limit);

/* ---- the guard: a process that outlives who started it. When a node agent is killed, it kills the process groups of
 * the ranks: ranks themselves die with the agent (PR_SET_PDEATHSIG), but processes that they started do not. When a
 * launcher is killed, it removes the rendezvous file. ---- */

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
