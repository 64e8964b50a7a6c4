/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launch_in.h - what the parts of the launcher share. */
#ifndef RNL_JOB_LAUNCH_IN_H
#define RNL_JOB_LAUNCH_IN_H

#include "base/error.h"
#include "job/agent.h"
#include "job/console.h"
#include "job/guard.h"
#include "job/input.h"
#include "job/launch.h"
#include "job/spawn.h"

#include <sys/types.h>

struct rnl_proc {
    pid_t pid;
    int pidfd, cpu;
    int signal, status;
    uint64_t exited_ns;
    uint8_t started, exited, swept, finished, broken, report;
    uint8_t unserved; /* ended since the system let us down, which has been said */
};

struct rnl_launcher {
    const struct rnl_launch *job;
    char host[RNL_JOB_HOST_BYTES];
    int epoll, signals, exec_failed;
    struct rnl_agent *agent;
    struct rnl_console *console;
    struct rnl_input input;
    struct rnl_guard guard;
    uint32_t running; /* started and not finished */
    uint32_t exited;  /* and not finished */
    int status;       /* of the job */
    uint8_t ending, failed, quiet, gave_up;
    int interrupted; /* the signal that did */
    uint64_t timeout_at, kill_at, abandon_at;
    struct rnl_proc proc[];
};

/* A line on standard error, behind "runnel: ". */
RNL_PRINTF(2, 3) void rnl_launch_say(struct rnl_launcher *, const char *format, ...);
/* One round of the loop; waits for something to happen if `wait`. */
void rnl_launch_turn(struct rnl_launcher *, int wait);
void rnl_launch_end_job(struct rnl_launcher *, uint64_t now_ns);
void rnl_launch_kill_all(struct rnl_launcher *, uint64_t now_ns);

/* launch_start.c. Negative: the job cannot be; it has been said why, `status` is set, and what was started of it is
 * being killed. */
int rnl_launch_set_up(struct rnl_launcher *, struct rnl_spawn *how);
int rnl_launch_start(struct rnl_launcher *, struct rnl_spawn *how);

#endif
