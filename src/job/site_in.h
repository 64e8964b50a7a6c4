/* SPDX-License-Identifier: BSD-3-Clause
 *
 * site_in.h - what the parts of an agent share. */
#ifndef RNL_JOB_SITE_IN_H
#define RNL_JOB_SITE_IN_H

#include "job/branch.h"
#include "job/rejoin.h"
#include "job/search.h"

struct rnl_way_back { /* a try at one of the addresses of who started us */
    int fd;           /* -1 = none */
    struct rnl_channel *channel;
};

struct rnl_site {
    struct rnl_trunk trunk;
    struct rnl_rejoin rejoin;
    struct rnl_way_back way_back[RNL_BACK_WAYS_MAX];
    struct rnl_brief brief;
    struct rnl_launch job;
    struct rnl_spawn how;
    char *path;
    struct rnl_here *here;     /* of each host; ways of our own first */
    int *sockets;              /* of our ranks, until the agent has them */
    struct rnl_branch *branch; /* the agents that we have started */
    uint32_t branches;
    struct rnl_search *probe;
    int probe_fd;
    uint64_t heard_ns, worked_ns, alive_at, room[2];
    int input;             /* our end of rank 0's standard input */
    struct rnl_pack given; /* what it has not taken yet, from `passed` on */
    size_t passed;
    uint32_t told; /* ranks whose end has been said */
    uint8_t nobody[2], input_ends, input_waits, probed, go, running, done, over, stopped, datagram;
    uint8_t said_end[RNL_JOB_RANKS_MAX];
    char said[512]; /* a line that is yet to be sent, as why this host cannot go on or by itself */
};

/* Input and output of the ranks: site.c. */
ssize_t rnl_site_output(void *site, int which, const char *data, size_t n);

/* site_back.c: what is to be done about a connection that is cut or silent, in each turn. */
void rnl_site_look_back(struct rnl_launcher *, uint64_t now_ns);
void rnl_site_way_event(struct rnl_launcher *, uint32_t index, uint64_t now_ns);
void rnl_site_cut(struct rnl_launcher *, uint64_t now_ns);
void rnl_site_stop_tries(struct rnl_launcher *);

#endif
