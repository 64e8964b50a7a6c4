/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spawn.h - from the name of a program to a running rank. */
#ifndef RNL_JOB_SPAWN_H
#define RNL_JOB_SPAWN_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Where execution will find `name`: as it is if it has a slash, else in PATH. 0 and *path (malloced); or an exit
 * status, 126 or 127, and a sentence with remedy. */
int rnl_spawn_find(const char *name, char **path, char *sentence, size_t room);

struct rnl_spawn {
    const char *path;
    char **argv;
    int in, out, err; /* become 0, 1, 2 */
    int door;         /* stays open, its number in RUNNEL_FD */
    int failed;       /* pipe for struct rnl_spawn_failed, close-on-exec */
    int cpu;          /* to be bound to, -1 = none */
    sigset_t mask;
    struct sigaction on_pipe, on_child; /* as they were before us */
    struct rlimit descriptors;          /* all 0: could not be learnt, so they were not changed */
};

enum rnl_spawn_stage { RNL_SPAWN_BIND, RNL_SPAWN_PREPARE, RNL_SPAWN_EXECUTE };
struct rnl_spawn_failed {
    uint32_t rank;
    int32_t sys_errno;
    int32_t stage; /* enum rnl_spawn_stage: what failed */
};

/* The rank leads a process group of its own and dies with this thread. 0 or -errno; what happens after the fork is told
 * through `failed`. */
int rnl_spawn(const struct rnl_spawn *how, uint32_t rank, pid_t *pid);

/* The cores this process may run on, first one thread of each core, then the second ones. Number of them, or -errno. */
int rnl_bind_cores(int *cpus, int room);
/* How many there are. */
int rnl_bind_count(void);
/* hwloc complains on standard error where there is no /sys; around hwloc_topology_init, in pairs: not so, and the ranks
 * do not inherit that. The first returns what the second wants. */
int rnl_bind_hush(void);
void rnl_bind_unhush(int hushed);

#endif
