/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launcher.h - `runnel run` and `runnel agent`: starts the ranks of a job, on this host or through node agents on
 * others, serves them, and ends them together. It is part of the runnel command, not of the library: it prints to
 * standard error, and lives as long as the job. README.md is the introduction. */
#ifndef RNL_LAUNCHER_LAUNCHER_H
#define RNL_LAUNCHER_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rnl_job_host;

enum rnl_remote_start { RNL_START_SSH, RNL_START_NETNS }; /* how agents come to their hosts */

struct rnl_local_agent { /* a node agent that was forked, and the stream to it */
    pid_t pid;
    int fd;
};

struct rnl_launch {
    uint32_t size;
    bool bind_core;
    bool datagrams; /* ranks of one host use datagrams, too, as if each were on a host of its own */
    bool rings;     /* datagrams to other hosts go by AF_XDP where they can */
    bool cards;     /* they go by cards that ranks drive where they can */
    bool tag;
    bool keep_going;
    bool mpi;                  /* MPI is served, whatever the program is */
    uint64_t timeout_ns;       /* 0 = none */
    const char *timeout_text;  /* as it was given */
    uint64_t stopped_after_ns; /* a rank that has been stopped for so long is killed; UINT64_MAX = none is */
    uint32_t silence_ms;       /* for ranks that ask for no time of their own; 0 = the default */
    char **argv;               /* the program and its arguments, NULL at the end */
    /* -- ranks that are expected instead of spawned: rendezvous.h -- */
    bool expected;
    const char *rendezvous_file, *rendezvous_address; /* NULL = all of this host's */
    /* -- one host: hosts == 0 -- */
    struct rnl_local_agent local; /* of the launcher */
    /* -- several hosts: hosts > 0 -- */
    const struct rnl_job_host *at; /* launcher/control.h */
    uint32_t hosts;
    enum rnl_remote_start start;
    uint32_t fan_out;  /* how many agents are started at a time */
    const char *ssh;   /* the command for ssh */
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
       RNL_RANK_DESCRIPTORS = 8 /* more for each rank: bootstrap socket, two sockets, eventfd, two pidfds, two pipes */
};

/* Runs the job to its end and returns its exit status. May be called once in a process. */
int rnl_launch(const struct rnl_launch *job);
/* `runnel agent`: runs this host's ranks for the launcher at its standard input. May be called once in a process. */
int rnl_launch_agent(void);

/* ---- for the two ---- */

/* Makes sure that descriptors 0, 1 and 2 are open. To be called before any other is opened. */
void rnl_open_standard(void);
/* Forks the agent of this host. 0 or -errno. To be called before the launcher has a loop. */
int rnl_node_agent_fork(struct rnl_local_agent *out);

#endif
