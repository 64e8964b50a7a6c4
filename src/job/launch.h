/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launch.h - starts the ranks of a job on this host, is their agent, their terminal and their undertaker. Part of the
 * `runnel` command, not of the library: prints to standard error, and lives as long as the job.
 *
 *   launch.c        the loop: signals, exits, deadlines, the exit status
 *   launch_start.c  limits, signals, pipes, pages, until the ranks run
 *   spawn.c         from a name to a running process
 *   console.c       the ranks' output: whole lines, back-pressure
 *   input.c         a terminal's input for rank 0
 *   bind.c          which core for which rank
 *   head.c          of a job on several hosts: the launcher's part
 *   reach.c         from the name of a host to a running agent
 *   site.c          the agent's part
 *   branch.c        the agents that the launcher, or an agent, has started
 *   back.c, resend.c, rejoin.c, site_back.c  another connection to them when one fails
 *   trunk.c, brief.c, search.c   what they say to each other, and how hosts find each other */
#ifndef RNL_JOB_LAUNCH_H
#define RNL_JOB_LAUNCH_H

#include <stdint.h>

struct rnl_host;

/* How agents come to their hosts. */
enum rnl_reach { RNL_REACH_SSH, RNL_REACH_NETNS };

struct rnl_launch {
    uint32_t size;
    int bind_core;
    int datagrams; /* between ranks of one host, too: as if each were on a host of its own */
    int tag;
    int keep_going;
    uint64_t timeout_ns;      /* 0 = none */
    const char *timeout_text; /* as it was given */
    char **argv;              /* the program and its arguments, NULL at the end */
    /* -- several hosts: hosts > 0 -- */
    const struct rnl_host *at; /* job/brief.h */
    uint32_t hosts;
    enum rnl_reach reach;
    uint32_t fan;      /* so many agents are started by one process; those start the others */
    int no_call_back;  /* nobody listens for agents whose ssh fails */
    const char *ssh;   /* the command that is it */
    const char *agent; /* path of the runnel command on the hosts */
};

enum { /* exit statuses of the launcher's own, besides those of the ranks */
       RNL_EXIT_USAGE = 64,
       RNL_EXIT_SYSTEM = 71,
       RNL_EXIT_OUTPUT = 74,
       RNL_EXIT_TIMEOUT = 124,
       RNL_EXIT_NOT_EXECUTABLE = 126,
       RNL_EXIT_NOT_FOUND = 127,
       RNL_EXIT_SIGNAL = 128
};

enum { /* descriptors that the launcher needs */
       RNL_LAUNCH_DESCRIPTORS = 32,
       RNL_RANK_DESCRIPTORS = 8 /* more for each rank: door, two sockets, eventfd, two pidfds, two pipes */
};

/* Runs the job to its end and returns its exit status. Once a process. */
int rnl_launch(const struct rnl_launch *job);
/* `runnel agent`: does on this host what the launcher at its standard input says. Once a process. */
int rnl_launch_agent(void);

/* What an epoll event of the launcher is about: the high half of its data; the low half is a rank, a sink or a stream.
 */
enum rnl_source {
    RNL_SOURCE_SIGNALS,
    RNL_SOURCE_AGENT,
    RNL_SOURCE_EXIT,
    RNL_SOURCE_EXEC,
    RNL_SOURCE_STREAM,
    RNL_SOURCE_SINK,
    RNL_SOURCE_INPUT,
    RNL_SOURCE_INPUT_ROOM,
    RNL_SOURCE_TRUNK, /* what the launcher says to an agent */
    RNL_SOURCE_TRUNK_ROOM,
    RNL_SOURCE_BRANCH, /* what an agent says that was started from here */
    RNL_SOURCE_BRANCH_ROOM,
    RNL_SOURCE_BRANCH_ERROR, /* ... on its standard error */
    RNL_SOURCE_PROBE,
    RNL_SOURCE_BACK, /* an agent that comes back to us: job/back.h */
    RNL_SOURCE_WAY   /* our way back */
};
/* 0 or -errno. */
int rnl_source_add(int epoll, int fd, enum rnl_source source, uint32_t index, uint32_t events);

#endif
