/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launcher_internal.h - the launcher of a job, which runs no ranks itself: node agents do, on this host and on others
 * (node.h). It brings them together, leads the membership of several hosts, decides on exit statuses, and owns the
 * terminal. */
#ifndef RNL_LAUNCHER_LAUNCHER_INTERNAL_H
#define RNL_LAUNCHER_LAUNCHER_INTERNAL_H

#include "base/error.h"
#include "launcher/console.h"
#include "launcher/control.h"
#include "launcher/launcher.h"
#include "launcher/loop.h"
#include "launcher/spawn.h"

struct rnl_rank { /* as its node agent has reported it */
    struct rnl_rank_exit exit;
    bool exited;
    bool finished; /* its output has come, and it was reaped */
    bool report;   /* a line about its end is due */
};

struct rnl_host_failure { /* a failed probe by `host` */
    uint32_t host;
    struct rnl_probe_failure what;
};

struct rnl_input { /* standard input of rank 0 */
    uv_poll_t events;
    uv_timer_t again; /* tries again, as there is no signal for coming back to the foreground */
    uint64_t room;    /* so many bytes are granted */
    bool over, watched, terminal;
};

struct rnl_node;
struct rnl_bootstrap;

/* GATHERING --HERE of all--> PROBING --PROBED of all--> RUNNING --> OVER; a job of one host has nothing to probe. */
enum rnl_launch_phase { RNL_LAUNCH_GATHERING, RNL_LAUNCH_PROBING, RNL_LAUNCH_RUNNING, RNL_LAUNCH_OVER };

struct rnl_launcher {
    const struct rnl_launch *job;
    uv_loop_t *loop;
    enum rnl_launch_phase phase;
    const struct rnl_job_host *at; /* the hosts */
    struct rnl_host_info *info;    /* by host, as its agent has reported it */
    struct rnl_job_host own_host;  /* of a job without --hosts: all of `at` */
    uint32_t hosts;                /* 0 until all have joined */
    bool local;                    /* the one agent is a child of this process */
    uv_signal_t signal[RNL_SPAWN_SIGNALS];
    uv_timer_t timeout, kill, abandon, ping, leave;
    struct rnl_agent *agent; /* the leader of the membership; NULL on one host, whose agent needs none */
    struct rnl_agent_watched watch;
    struct rnl_console *console;
    struct rnl_input input;
    struct rnl_job_spec spec;
    char *folder;
    uint64_t pinged_ns;
    uint32_t running;                   /* how many ranks have started and not finished */
    uint32_t starting, here, probed;    /* how many node agents */
    uint32_t failures;                  /* of probes */
    struct rnl_host_failure *failure;   /* each of them */
    int status;                         /* the exit status of the job */
    int interrupted;                    /* the signal that interrupted the job; 0 = none */
    bool ending, failed, quiet, killed; /* quiet: why it ends has been said */
    bool abandoned, left;
    char why[300]; /* who still waits to join is told */
    struct rnl_bootstrap *bootstrap;
    struct rnl_node **node; /* by host; behind these callers of the bootstrap socket that are none */
    uint32_t nodes;
    struct rnl_rank rank[];
};

/* ---- launcher.c ---- */

/* Makes a launcher, in pages that no core dump contains, or NULL. It does nothing yet. */
struct rnl_launcher *rnl_launcher_new(const struct rnl_launch *, uv_loop_t *);
/* Frees it, and what belongs to it in the loop. */
void rnl_launcher_free(struct rnl_launcher *);
/* Makes the keys of the job. 0, or -1 after printing the reason. */
int rnl_launcher_draw_keys(struct rnl_launcher *);

/* ---- verdict.c ---- */

void rnl_launcher_end_job(struct rnl_launcher *); /* SIGTERM, and SIGKILL after a while */
void rnl_launcher_kill(struct rnl_launcher *);    /* SIGKILL to all */
/* Sets the time of SIGKILL, unless an earlier one is set already. */
void rnl_launcher_kill_in(struct rnl_launcher *, uint64_t ms);
/* Nothing will come of this job; it has been said why. The agents end it at once. */
void rnl_launcher_give_up(struct rnl_launcher *, int status);
void rnl_launcher_exited(struct rnl_launcher *, const struct rnl_rank_exit *);
void rnl_launcher_finished(struct rnl_launcher *, uint32_t rank);

/* ---- nodes.c: the node agents ---- */

/* Makes a node for each host, none of which is started. 0, or -1: no memory. */
int rnl_nodes_make(struct rnl_launcher *);
/* Starts the first agents. 0, or -1 after printing the reason. */
int rnl_nodes_start(struct rnl_launcher *);
/* The hosts of a job whose ranks join are known. */
void rnl_nodes_gathered(struct rnl_launcher *);
void rnl_nodes_free(struct rnl_launcher *);
void rnl_nodes_work(struct rnl_launcher *); /* called in each turn of the loop */
bool rnl_nodes_busy(const struct rnl_launcher *);
void rnl_nodes_signal(struct rnl_launcher *, int signal);
const char *rnl_nodes_host(const struct rnl_launcher *, uint32_t rank);
void rnl_nodes_word(void *launcher, const struct rnl_word *); /* the `publish` of struct rnl_agent_options */
void rnl_nodes_input(struct rnl_launcher *, const void *bytes, size_t n); /* to rank 0; 0 bytes are the end */
void rnl_nodes_end(struct rnl_launcher *); /* sends END, and waits a bounded time for the agents */

/* ---- rendezvous.c: the launcher's side of job/rendezvous.h. Node agents that processes have started on their hosts
 * call at its bootstrap socket and report who waits there to join. When all have come, it is known which hosts the job
 * has, and which ranks are where; from then on these agents are like those that are started over ssh. ---- */

/* Listens, and writes the file. 0, or -1 after printing the reason. */
int rnl_rendezvous_open(struct rnl_launcher *);
void rnl_rendezvous_work(struct rnl_launcher *); /* called in each turn of the loop */
/* How many have joined. */
unsigned rnl_rendezvous_joined(const struct rnl_bootstrap *);
/* Removes the file; when the loop has closed its handles. Fine on NULL. */
void rnl_rendezvous_free(struct rnl_bootstrap *);

/* ---- diagnostics.c ---- */

/* Prints a line on standard error, after "runnel: ". */
RNL_PRINTF(2, 3) void rnl_launcher_report(struct rnl_launcher *, const char *format, ...);
/* Explains each pair of hosts and address that do not work by a sentence with the likely cause. */
void rnl_diagnostics_report(struct rnl_launcher *);

#endif
