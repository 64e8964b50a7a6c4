/* SPDX-License-Identifier: BSD-3-Clause
 *
 * branch.h - the agents that a process of the job has started itself, each with the hosts behind it. The launcher
 * (head.c) starts a few and an agent (site.c) those behind it, so that nobody holds hundreds of connections, and what
 * is said to all is said once to each branch. Which host is behind which: job/tree.h. */
#ifndef RNL_JOB_BRANCH_H
#define RNL_JOB_BRANCH_H

#include "job/back.h"
#include "job/launch_in.h"
#include "job/tree.h"
#include "job/trunk.h"

struct rnl_branch {
    uint32_t host, end; /* [host, end): it and those behind it */
    struct rnl_trunk trunk;
    pid_t pid;
    int err, how; /* its standard error; how it ended, once it is reaped */
    uint8_t greeted, here, reaped, garbled, silent, said_ended, lost;
    uint8_t away, returned; /* its pipes have failed, and it may come back; it did: those are gone */
    uint64_t heard_ns, ended_ns;
    size_t said_bytes;
    char said[240], noise[160], release[64];
};

/* Starts the agents for [first, end): *out, *n, the caller's. 0; or -1: it has been said why, and those that are there
 * are in *out. The events of the k-th have the index k. */
int rnl_branches_start(struct rnl_launcher *, uint32_t first, uint32_t end, const struct rnl_spawn *how,
                       struct rnl_branch **out, uint32_t *n);
/* The one that `host` is in, or NULL. */
struct rnl_branch *rnl_branch_of(struct rnl_branch *, uint32_t n, uint32_t host);
/* Something can be read: 1 = it has just greeted, and wants to know its JOB. */
int rnl_branch_read(struct rnl_launcher *, struct rnl_branch *, uint64_t now_ns);
/* Before it is told its JOB: where it comes back to, if it may. */
void rnl_branch_may_return(struct rnl_launcher *, struct rnl_branch *, struct rnl_back_at *out);
/* An event of RNL_SOURCE_BACK. */
void rnl_branches_back(struct rnl_launcher *, struct rnl_branch *, uint32_t n, uint32_t index, uint64_t now_ns);
/* What was read: as rnl_trunk_next, of hosts of this branch. */
int rnl_branch_next(struct rnl_branch *, struct rnl_frame *out);
void rnl_branch_hear_error(struct rnl_launcher *, struct rnl_branch *);
/* Whether it is to be given up: it ended, talks garbage, or has not greeted in time. A sentence says why. Later it is
 * `lost`, closed and killed, and is not told again. */
int rnl_branch_gone(struct rnl_launcher *, struct rnl_branch *, uint64_t now_ns, char *why, size_t room);
/* Gives it up, for a reason of the caller's. */
void rnl_branch_lose(struct rnl_launcher *, struct rnl_branch *);
/* The frame goes to all that have greeted. */
void rnl_branches_send(struct rnl_branch *, uint32_t n, enum rnl_frame_kind, const void *body, size_t bytes);
/* To one host below, whichever its branch. */
void rnl_branches_send_to(struct rnl_branch *, uint32_t n, uint32_t host, enum rnl_frame_kind, const struct rnl_pack *);
/* Its end is to be learnt soon. */
int rnl_branches_ending(const struct rnl_branch *, uint32_t n);
/* Agents end when they are told so, or find nobody there. Waits for that, for at most 2 s. */
void rnl_branches_end(struct rnl_launcher *, struct rnl_branch *, uint32_t n);
void rnl_branches_free(struct rnl_branch *, uint32_t n);

#endif
