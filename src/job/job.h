/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job.h - finds the job of this process and its rank in it, and makes the env (base/env.h) of the endpoint. An env is
 * made by the first of these that is there:
 *
 *   a hub      the options name it; each endpoint is a thread of this process (tests, thread sanitizer)
 *   an agent   the launcher passed a socket to it in RUNNEL_FD
 *   PMIx       this process was started by a launcher that serves PMIx
 *   none       a job of one rank: a private hub of size 1 */
#ifndef RNL_JOB_JOB_H
#define RNL_JOB_JOB_H

#include "base/env.h"
#include "runnel/adapter.h"
#include "runnel/runnel.h"

/* 1 = the process that started this one may end before it, and this process is ended with the job by other means. */
extern int rnl_job_apart;

/* Returns 0 and *out, which its close operation frees, or a negative rnl_status; RNL_ERR_JOB says that there is a
 * launcher that does not admit this process (descriptor not open, another release, second open). opt may be NULL. May
 * block on the agent. */
int rnl_job_env(const struct rnl_options *opt, struct rnl_env **out);

/* The same into the job whose ranks the caller started: *x carries what they tell each other. */
int rnl_exchange_env(const struct rnl_options *opt, const struct rnl_exchange *x, struct rnl_env **out);

/* The parts of rnl_job_env. The caller keeps the bootstrap socket. */
int rnl_client_env(int bootstrap, struct rnl_env **out);
int rnl_hub_env(struct rnl_hub *hub, uint32_t rank, int owns_hub, struct rnl_env **out);

uint32_t rnl_hub_size(const struct rnl_hub *hub);

/* For tests: the hub declares that rank dead, while its thread goes on until it finds out. */
void rnl_hub_kill(struct rnl_hub *hub, uint32_t rank, int why, int detail);

#endif
