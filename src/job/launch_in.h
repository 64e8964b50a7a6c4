/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launch_in.h - what the parts of the launcher share. */
#ifndef RNL_JOB_LAUNCH_IN_H
#define RNL_JOB_LAUNCH_IN_H

#include "base/error.h"
#include "job/agent.h"
#include "job/brief.h"
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
    uint8_t away;     /* an agent has it: what is said of it here was said by that */
    uint8_t unserved; /* ended since the system let us down, which has been said */
};

struct rnl_launcher {
    const struct rnl_launch *job;
    uint32_t first, count;     /* the ranks that are processes of ours */
    uint32_t below, below_end; /* the hosts that are reached from here: job/branch.h */
    struct rnl_head *head;     /* the launcher of a job on several hosts */
    struct rnl_site *site;     /* an agent */
    struct rnl_back *back;     /* where agents that we started come back; NULL: they cannot */
    char host[RNL_JOB_HOST_BYTES];
    int epoll, signals, exec_failed;
    struct rnl_agent *agent;
    struct rnl_console *console;
    struct rnl_input input;
    struct rnl_guard guard;
    uint32_t running; /* started and not finished */
    uint32_t exited;  /* and not finished */
    int status;       /* of the job */
    unsigned char key[RNL_JOB_KEY_BYTES];
    uint8_t shares_cores; /* with the other hosts */
    uint8_t ending, failed, quiet, gave_up;
    int interrupted; /* the signal that did */
    uint64_t timeout_at, kill_at, abandon_at, vouch_at;
    struct rnl_proc proc[];
};

/* A line on standard error, behind "runnel: ". */
RNL_PRINTF(2, 3) void rnl_launch_say(struct rnl_launcher *, const char *format, ...);
/* One round of the loop; waits for something to happen if `wait`. */
void rnl_launch_turn(struct rnl_launcher *, int wait);
void rnl_launch_end_job(struct rnl_launcher *, uint64_t now_ns);
void rnl_launch_kill_all(struct rnl_launcher *, uint64_t now_ns);

/* What an agent says of a rank: as its exit and its end. */
enum rnl_exit_flags { RNL_EXIT_BROKEN = 1, RNL_EXIT_UNSERVED = 2, RNL_EXIT_LOST = 4 };
void rnl_launch_exited(struct rnl_launcher *, uint32_t rank, int signal, int status, unsigned flags, uint64_t now_ns);
void rnl_launch_finished(struct rnl_launcher *, uint32_t rank);
void rnl_launch_signal(struct rnl_launcher *, int signal); /* to all ranks */
void rnl_launch_free(struct rnl_launcher *);
struct rnl_launcher *rnl_launch_new(const struct rnl_launch *job); /* NULL: no memory */

/* head.c */
int rnl_head_new(struct rnl_launcher *, const struct rnl_spawn *how); /* 0; -1: it has been said why */
void rnl_head_free(struct rnl_head *);
void rnl_head_event(struct rnl_launcher *, enum rnl_source, uint32_t index, uint64_t now_ns);
void rnl_head_work(struct rnl_launcher *, uint64_t now_ns); /* in each turn */
uint64_t rnl_head_deadline_ns(const struct rnl_launcher *);
int rnl_head_busy(const struct rnl_head *); /* before the ranks run */
int rnl_head_waits(const struct rnl_head *);
void rnl_head_signal(struct rnl_launcher *, int signal);
const char *rnl_head_host(const struct rnl_launcher *, uint32_t rank);
void rnl_head_tell(void *launcher, const struct rnl_word *);
void rnl_head_end(struct rnl_launcher *); /* says so, and waits for the agents, not for long */

/* reach.c. Starts the agent of that host: its pipes and process. 0 or -errno. */
int rnl_reach_start(const struct rnl_launch *, uint32_t host, const struct rnl_spawn *how, int pipes[3], pid_t *pid);

/* site.c */
void rnl_site_event(struct rnl_launcher *, enum rnl_source, uint32_t index, uint64_t now_ns);
void rnl_site_work(struct rnl_launcher *, uint64_t now_ns);
uint64_t rnl_site_deadline_ns(const struct rnl_launcher *);
int rnl_site_busy(const struct rnl_launcher *);
void rnl_site_say(struct rnl_launcher *, const char *line);
void rnl_site_fail(struct rnl_site *, int status); /* what was said last is why */
void rnl_site_exited(struct rnl_launcher *, uint32_t rank);

/* launch_start.c. Negative: the job cannot be; it has been said why, `status` is set, and what was started of it is
 * being killed. */
int rnl_launch_set_up(struct rnl_launcher *, struct rnl_spawn *how);
int rnl_launch_make_agent(struct rnl_launcher *, struct rnl_agent_options *);
int rnl_launch_start(struct rnl_launcher *, struct rnl_spawn *how);

#endif
