/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node.h - the launcher's connection to one node agent: its control stream, and the process that carries the stream:
 * ssh, say, or the agent itself where it was forked here. A lost connection is not made again: all ranks of that host
 * are then dead. */
#ifndef RNL_LAUNCHER_NODE_H
#define RNL_LAUNCHER_NODE_H

#include "launcher/launcher_internal.h"

/*   WAITING --start--> STARTING --greeting--> GREETED --HERE--> HERE --PROBED--> PROBED --DONE--> DONE
 *                         \_____________________\_________________\______________\-------------> LOST           */
enum rnl_node_state {
    RNL_NODE_WAITING, /* not started yet, because of --fan-out */
    RNL_NODE_STARTING,
    RNL_NODE_GREETED,
    RNL_NODE_HERE,
    RNL_NODE_PROBED,
    RNL_NODE_DONE,
    RNL_NODE_LOST
};

struct rnl_node {
    struct rnl_launcher *launcher;
    uint32_t host;
    enum rnl_node_state state;
    struct rnl_control control;
    /* -- the process that carries the stream -- */
    pid_t pid;
    int pidfd, how; /* `how`: its wait status, once it is reaped */
    uv_poll_t exit;
    uv_pipe_t error; /* its standard error, unless that is the launcher's */
    uv_timer_t timer;
    bool started, reaped, garbled, silent, late, error_line_ended;
    size_t error_bytes;
    char error_line[240], error_buffer[512], noise[160], release[RNL_CONTROL_RELEASE_BYTES];
    /* -- what the agent has reported -- */
    struct rnl_arrivals *came; /* of one that called: who waits on its host */
    bool own;                  /* that is this host */
    uint64_t heard_ns, owed[2];
    bool reported_gone[2];
    bool fenced[RNL_FENCES]; /* it waits for the other hosts, and has brought `fence` */
    struct rnl_pack fence[RNL_FENCES];
};

/* Starts the agent of that host and watches its stream and its process. 0, or -1 after printing the reason. */
int rnl_node_start(struct rnl_node *);
/* Watches the process `pid`, and the stream that it carries: this process's ends of its standard input, output and
 * error, or -1. 0 or -errno. */
int rnl_node_watch(struct rnl_node *, const int pipes[3]);
/* JOB is sent, and HERE has to come within a while. */
void rnl_node_await_here(struct rnl_node *);
/* Looks for the greeting after bytes arrived. True: it has just come, and the agent waits for its JOB. */
bool rnl_node_greeted(struct rnl_node *);
/* Whether frames of it can be read, and sent. */
bool rnl_node_talks(const struct rnl_node *);
/* Whether the connection has ended or broken; `why` gets a sentence that says why. */
bool rnl_node_gone(struct rnl_node *, char *why, size_t room);
/* Closes the connection, and kills the process that carries it. */
void rnl_node_lose(struct rnl_node *);
/* Whether its process has ended, if there is one. */
bool rnl_node_has_left(const struct rnl_node *);
void rnl_node_free(struct rnl_node *); /* when the loop has closed its handles */

#endif
