/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_agent_internal.h - a node agent: the process that starts and serves the ranks of one host. It reports all that
 * happens over its control stream to the launcher, which decides. When the stream ends, it kills its ranks at once. */
#ifndef RNL_LAUNCHER_NODE_AGENT_INTERNAL_H
#define RNL_LAUNCHER_NODE_AGENT_INTERNAL_H

#include "base/error.h"
#include "launcher/control.h"
#include "launcher/launcher.h"
#include "launcher/loop.h"
#include "launcher/mpi/mpi.h"
#include "launcher/spawn.h"
#include "net/socket/i8255x/grant.h"

/* EXPECTING --JOB--> PROBING --GO--> RUNNING --all ranks finished--> DONE; END, or the end of the stream: OVER. What
 * cannot go on has said why by FAIL, and waits in FAILED for END. */
enum rnl_node_agent_phase {
    RNL_NODE_AGENT_EXPECTING,
    RNL_NODE_AGENT_PROBING,
    RNL_NODE_AGENT_RUNNING,
    RNL_NODE_AGENT_DONE,
    RNL_NODE_AGENT_FAILED,
    RNL_NODE_AGENT_OVER
};

struct rnl_output { /* what a rank writes to its standard output (which 1) or error (2) */
    uv_pipe_t pipe;
    struct rnl_node_agent *agent;
    uint32_t rank, which;
    bool open;
};

/* The slot of a rank: started; exited (its process can be waited for, and its peers learn it at once); finished (its
 * output has been sent, the rest of its process group has been killed, and it is reaped). The number of its process
 * group is not reused until it is reaped, so a signal to the group cannot hit another process. */
struct rnl_slot {
    pid_t pid; /* of a process that was started here, or of one that joined; 0 = none */
    int pidfd, cpu;
    int lifeline;   /* to a process that joined, which says on it how it exits; -1 */
    uv_poll_t exit; /* of pidfd */
    int signal, status;
    int aborted; /* the status with which it wanted to end, and was killed; 0 = it did not */
    uint64_t exited_ns, stopped_reported_ns;
    bool started, exited, finished;
    bool swept;    /* the processes left in its process group were killed */
    bool broken;   /* it broke the protocol of its socket, and was killed for that */
    bool taken;    /* it joined, and has its place */
    bool vanished; /* it joined, and ended without an exit code: by a signal or _exit */
    bool unserved; /* it ended since the system let it down, which has been said */
    struct rnl_output output[2];
};

struct rnl_expected;
struct rnl_mpi;

struct rnl_node_agent {
    uv_loop_t *loop;
    enum rnl_node_agent_phase phase;
    struct rnl_control control;
    struct rnl_job_spec spec;
    uint32_t first, count; /* the ranks of this host */
    char host[RNL_JOB_HOST_BYTES];
    uv_timer_t silence, sweep, look;
    /* -- the membership of the ranks -- */
    struct rnl_agent *agent;
    struct rnl_agent_watched watch;
    /* -- node_network.c -- */
    struct rnl_host_info *info;  /* by host */
    int *sockets;                /* the UDP sockets of this host's ranks, until job/agent.h takes them over */
    struct rnl_xdp_queue *queue; /* of the ranks that have AF_XDP sockets, or NULL */
    struct rnl_notes *notes;     /* why there is no queue; runnel info shows it for each rank */
    struct rnl_i8255x_grant card[RNL_JOB_CARDS_MAX]; /* taken from this host; wire 0 = none */
    struct rnl_host_probe *probe;
    int probe_fd;
    uv_poll_t probe_events;
    uv_timer_t probe_timer, attest;
    bool probed;
    /* -- input and output of the ranks -- */
    uint64_t room[2];    /* so many bytes of output may be sent */
    bool reader_gone[2]; /* its reader is gone */
    uv_pipe_t input;     /* this process's end of rank 0's standard input */
    uint32_t input_writes;
    bool input_open, input_ends;
    /* -- process.c -- */
    struct rnl_guard guard;
    struct rnl_spawn how;
    char *path;
    int exec_failed; /* the pipe for struct rnl_spawn_failed */
    uv_poll_t exec_events;
    uint32_t next_start; /* the next rank to be started, while `starting` is set */
    uint32_t finished;
    int null; /* standard input of all ranks but the first */
    bool starting;
    bool ending, quiet, terminated; /* the ranks were killed; got a signal that ends the job; got SIGTERM */
    bool suspended;                 /* by SIGTSTP */
    struct rnl_expected *expected;
    struct rnl_mpi *mpi;   /* NULL: the ranks are not MPI's */
    char why[300];         /* who still waits to join is told */
    struct rnl_slot *slot; /* by rank of the job; only those of this host are used */
};

static inline bool rnl_node_agent_is(const struct rnl_node_agent *n, enum rnl_job_flags flag)
{
    return (n->spec.flags & (uint32_t)flag) != 0;
}

/* ---- output.c: sentences, what the ranks write, and what rank 0 reads ---- */

/* Sends a line for standard error. */
RNL_PRINTF(2, 3) void rnl_node_agent_report(struct rnl_node_agent *, const char *format, ...);
/* Ends the job with that exit status, for the reason that the format gives. */
RNL_PRINTF(3, 4) void rnl_node_agent_fail(struct rnl_node_agent *, int status, const char *format, ...);

/* Reads from `fd`, a pipe that is rank's standard output (which 1) or error (2), and owns it from now on, also on
 * failure. 0 or -errno. */
int rnl_output_add(struct rnl_node_agent *, uint32_t rank, int which, int fd);
/* Takes in ROOM. 0, or -1 if it is malformed. */
int rnl_output_room(struct rnl_node_agent *, struct rnl_unpack *);
/* Returns how many streams of this rank have not ended; *unread = one of them has bytes for which there is no room. */
unsigned rnl_output_open(const struct rnl_node_agent *, uint32_t rank, bool *unread);
void rnl_output_end(struct rnl_node_agent *, uint32_t rank);
/* Makes standard input of rank 0, which becomes how.in. 0 or -errno. */
int rnl_rank_input_new(struct rnl_node_agent *);
/* Takes in INPUT. 0, or -1 if it must not come. */
int rnl_rank_input_receive(struct rnl_node_agent *, const struct rnl_control_frame *);
void rnl_rank_input_end(struct rnl_node_agent *); /* rank 0 has ended */

/* ---- process.c: the ranks ---- */

/* Prepares for starting the ranks, and begins to: a few in each turn of the loop. Failures end in FAIL. */
void rnl_processes_prepare(struct rnl_node_agent *);
void rnl_processes_start(struct rnl_node_agent *);
void rnl_processes_work(struct rnl_node_agent *); /* called in each turn of the loop */
void rnl_processes_signal(struct rnl_node_agent *, int signal);
/* Kills a rank, which counts as having exited with that status. */
void rnl_process_abort(struct rnl_node_agent *, uint32_t rank, int status);
void rnl_processes_end(struct rnl_node_agent *); /* kills what is left, and reaps it */

/* ---- expected.c: the ranks of a host that are expected instead of spawned (job/rendezvous.h). They come to an
 * abstract unix socket of its node agent and wait there until the job begins. ---- */

/* `runnel agent` that a joiner has started: listens, and makes the standard streams of this process the control stream
 * to the launcher. NULL: another agent serves this host; or the launcher cannot be reached, and joiners were told. */
struct rnl_expected *rnl_expected_open(const char *where);
/* Begins to take in joiners and to report them. 0 or a negative errno of libuv. */
int rnl_expected_serve(struct rnl_node_agent *);
/* The job is known: gives each joiner its rank. */
void rnl_expected_deal(struct rnl_node_agent *);
/* Whether that rank's output is to go by the launcher. */
bool rnl_expected_routes(const struct rnl_node_agent *, uint32_t rank);
/* Hands its slot over to that rank, with the descriptors in `how`. 0 or -errno. */
int rnl_expected_take(struct rnl_node_agent *, uint32_t rank);
/* Whether the process in a slot has ended, as its pidfd or its connection says; how is put into the slot. */
bool rnl_expected_ended(struct rnl_node_agent *, struct rnl_slot *);
/* Tells those who still wait why it ends, if that is known; when the loop has closed its handles. Fine on NULL. */
void rnl_expected_free(struct rnl_expected *, const char *why);

/* ---- node_network.c: the network to the other hosts ---- */

/* Opens the sockets of the ranks and of the probe, and fills info[spec.host]. */
void rnl_node_network_open(struct rnl_node_agent *);
/* Opens AF_XDP for the ranks of this host, if the job wants it. Returns a socket for each, in an array that the caller
 * frees; NULL: it does without, and if it was wanted the reason has been said. */
int *rnl_node_network_rings(struct rnl_node_agent *);
/* Returns whether the rank that is the i-th of `count` of its host drives the card of that wire, if there is one. */
static inline bool rnl_node_card_is_of(uint32_t wire, uint32_t i, uint32_t count)
{
    return (wire - 1) % count == i;
}
/* Returns the descriptors of the cards for each rank of this host, which are the caller's and in an array that it
 * frees; NULL: they have none. */
struct rnl_agent_cards *rnl_node_cards_give(struct rnl_node_agent *);
/* Takes the bus from the cards of a rank of this host that has ended, however that was. */
void rnl_node_cards_end(struct rnl_node_agent *, uint32_t rank);
void rnl_node_network_free(struct rnl_node_agent *);
/* Takes in HOSTS and begins to probe. 0, or -1 if the frame is malformed. */
int rnl_node_network_hosts(struct rnl_node_agent *, struct rnl_unpack *);
void rnl_node_network_work(struct rnl_node_agent *); /* steps the probes, and sends their result once */
/* Fills the table of rank addresses, as this host reaches them. */
void rnl_node_network_places(const struct rnl_node_agent *, struct rnl_rank_location *places);
/* Begins to attest the liveness of ranks that exchange datagrams; called when the ranks run. */
void rnl_node_network_attest(struct rnl_node_agent *);

#endif
