/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job.h - how a process finds its place in a job: gives the endpoint the env (base/env.h) it lives in.
 *
 *   a hub      endpoints of one process, a thread each (tests, thread sanitizer): options name it
 *   an agent   the launcher named a socket to it in RUNNEL_FD
 *   neither    a job of one: a private hub of size 1 */
#ifndef RNL_JOB_JOB_H
#define RNL_JOB_JOB_H

#include "base/env.h"
#include "runnel/runnel.h"

/* Asked before anything else, where it is not NULL: the simulator, whose ranks are copies of a program in one process.
 */
extern int (*rnl_job_virtual)(const struct rnl_options *opt, struct rnl_env **out);

/* 1 = what started this process may end before it, and somebody else sees to it that it ends with the job. */
extern int rnl_job_apart;

/* opt may be NULL. May block on the agent. 0 and *out, which its close operation frees; or a negative rnl_status:
 * RNL_ERR_JOB when there is a launcher and it will not have us (descriptor not open, another release, second open). */
int rnl_job_env(const struct rnl_options *opt, struct rnl_env **out);

/* The parts of rnl_job_env. `door` stays the caller's. */
int rnl_client_env(int door, struct rnl_env **out);
int rnl_hub_env(struct rnl_hub *hub, uint32_t rank, int owns_hub, struct rnl_env **out);

/* The key of the whole job, 32 bytes; NULL in a hub, whose endpoints have nobody to hide from. */
const unsigned char *rnl_client_key(const struct rnl_env *env);

uint32_t rnl_hub_size(const struct rnl_hub *hub);

/* For tests: the endpoint is dead as far as its hub is concerned; its thread finds out by itself. */
void rnl_hub_kill(struct rnl_hub *hub, uint32_t rank, int why, int detail);

#endif
