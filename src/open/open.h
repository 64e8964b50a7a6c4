/* SPDX-License-Identifier: BSD-3-Clause
 *
 * open.h - what open's files share, and what the simulator sets of how an endpoint is opened. */
#ifndef RNL_OPEN_OPEN_H
#define RNL_OPEN_OPEN_H

#include "base/env.h"
#include "runnel/runnel.h"

/* Where it is not NULL, rnl_open gets its env from it and from nothing else. The simulator sets it, since its ranks are
 * copies of a program in one process. */
extern int (*rnl_open_virtual)(const struct rnl_options *opt, struct rnl_env **out);

/* Finds the job of this process and its rank in it (job.c), and joins it. The env is made by the first of these that is
 * there:
 *
 *   a hub         the options name it; each endpoint is a thread of this process (tests, thread sanitizer)
 *   an agent      the launcher passed a socket to it in RUNNEL_FD
 *   a rendezvous  RUNNEL_RENDEZVOUS says where a job waits for ranks
 *   PMIx          this process was started by a launcher that serves PMIx
 *   none          a job of one rank: a private hub of size 1
 *
 * Returns 0 and *out, which its close operation frees, or a negative rnl_status; RNL_ERR_JOB says that there is a
 * launcher that does not admit this process (descriptor not open, another release, second open). opt may be NULL. May
 * block on the agent. */
int rnl_job_env(const struct rnl_options *opt, struct rnl_env **out);
/* 1 = the process that started this one may end before it, and this process is ended with the job by other means. */
extern int rnl_job_apart;

/* Opens an endpoint on the env that `find` finds. It is called once the options have been checked. */
typedef int rnl_open_env(const struct rnl_options *opt, const void *arg, struct rnl_env **out);
int rnl_open_with(rnl_endpoint **out, const struct rnl_options *opt, rnl_open_env *find, const void *arg);

#endif
