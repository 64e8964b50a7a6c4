/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi.h - PMI-1, by which MPICH and its kin find their ranks: what a host keeps for its ranks, and what it replies
 * to a line of one. Pure: mpi.c has the sockets. A rank says a line of words NAME=VALUE, and reads one as reply:
 *
 *   cmd=put kvsname=NAME key=KEY value=VALUE           cmd=put_result rc=0 msg=success
 *   cmd=get kvsname=NAME key=KEY                       cmd=get_result rc=0 msg=success value=VALUE
 *   cmd=barrier_in                                     cmd=barrier_out, when all ranks are in
 *
 * After a barrier every host has what the ranks of all hosts have put before it. Nothing of a rank is trusted. */
#ifndef RNL_LAUNCHER_MPI_PMI_H
#define RNL_LAUNCHER_MPI_PMI_H

#include "launcher/control.h"

enum {
    RNL_PMI_LINE = 1024, /* bytes of a line with its end; clients have no more room */
    RNL_PMI_NAME = 32,   /* of the name of the job's values, as of those below: bytes with a 0 */
    RNL_PMI_KEY = 65,
    RNL_PMI_VALUE = 769,
    RNL_PMI_BYTES = 4 << 20 /* of all pairs that a host keeps */
};

struct rnl_pmi_pair;
struct rnl_pmi { /* of a host */
    uint32_t size;
    char name[RNL_PMI_NAME];
    struct rnl_pmi_pair *pairs;
    size_t bytes;
    struct rnl_pack news; /* pairs since the last barrier: texts that end with 0, a key and a value in turn */
};

struct rnl_pmi_caller { /* of a rank */
    bool inside;        /* of a barrier */
    bool spawning;      /* the lines of a command that spawns are coming; so many of so many were said */
    unsigned so_far, in_all;
    int status;
};

enum rnl_pmi_turn {
    RNL_PMI_REPLIES,
    RNL_PMI_SILENT,    /* there is no reply, or not yet */
    RNL_PMI_ABORTS,    /* the job is to end with `status` of the caller */
    RNL_PMI_NO_SPAWN,  /* replies that there is no spawning, which it asked for */
    RNL_PMI_NO_COMMAND /* the line is no PMI-1: not to be listened to any more */
};

void rnl_pmi_init(struct rnl_pmi *, uint64_t number, uint32_t hosts, const struct rnl_job_host *);
/* Takes in a line, without its end and with a 0 there. `reply` gets a line with its end and a 0. */
enum rnl_pmi_turn rnl_pmi_receive(struct rnl_pmi *, struct rnl_pmi_caller *, const char *line,
                                  char reply[RNL_PMI_LINE]);
/* Takes in the news of all hosts. 0, or -1 if they are malformed, or more than there may be. */
int rnl_pmi_learn(struct rnl_pmi *, const void *news, size_t bytes);
void rnl_pmi_free(struct rnl_pmi *);

#endif
