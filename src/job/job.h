/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job.h - makes the env (base/env.h) of a rank, at an agent or at a hub. open/job.c decides which it is. Each returns 0
 * and *out, which its close operation frees, or a negative rnl_status; RNL_ERR_JOB says that there is a launcher that
 * does not admit this process (another release, second open). Each may block on the agent. */
#ifndef RNL_JOB_JOB_H
#define RNL_JOB_JOB_H

#include "base/env.h"
#include "runnel/runnel.h"

/* The caller keeps the bootstrap socket. */
int rnl_client_env(int bootstrap, struct rnl_env **out);
int rnl_hub_env(struct rnl_hub *hub, uint32_t rank, int owns_hub, struct rnl_env **out);

uint32_t rnl_hub_size(const struct rnl_hub *hub);

/* For tests: the hub declares that rank dead, while its thread goes on until it finds out. */
void rnl_hub_kill(struct rnl_hub *hub, uint32_t rank, int why, int detail);

#endif
