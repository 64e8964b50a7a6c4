/* SPDX-License-Identifier: BSD-3-Clause
 *
 * head.h - what the parts of head.c share: the agents of the hosts, as the launcher sees them. */
#ifndef RNL_JOB_HEAD_H
#define RNL_JOB_HEAD_H

#include "job/branch.h"
#include "job/troubles.h"

enum rnl_child_state {
    RNL_CHILD_STARTS,
    RNL_CHILD_LOST, /* it ended, or is not to be listened to any more */
    RNL_CHILD_HERE,
    RNL_CHILD_PROBED,
    RNL_CHILD_DONE
};
struct rnl_child { /* the agent of a host, whoever started it */
    uint8_t state, told_gone[2];
    uint32_t ways;
    struct rnl_here_way way[RNL_HOST_WAYS_MAX];
    struct rnl_pack here; /* as it came, to be passed on */
    uint64_t heard_ns, owed[2];
};

struct rnl_head {
    enum { RNL_HEAD_GATHERS, RNL_HEAD_PROBES, RNL_HEAD_RUNS, RNL_HEAD_OVER } phase;
    uint64_t phase_ends, ping_at, worked_ns;
    uint32_t here, probed, vains;
    struct rnl_trouble *vain;
    struct rnl_brief brief;
    char *folder;
    int input; /* what rank 0 is to read */
    uint64_t input_room;
    uint8_t input_over, input_watched;
    uint32_t branches;
    struct rnl_branch *branch;
    struct rnl_child at[];
};

/* head_say.c: a line for each pair of hosts that cannot talk. */
void rnl_head_troubles(struct rnl_launcher *);

#endif
