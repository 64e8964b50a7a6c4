/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix.h - jobs that somebody else started, who serves PMIx (mpirun, srun, prterun). */
#ifndef RNL_JOB_PMIX_H
#define RNL_JOB_PMIX_H

/* Whether there is a PMIx server, whose job we are in: 1 and the door of this rank (job/agent.h); 0: there is none;
 * RNL_ERR_JOB, RNL_ERR_UNSUPPORTED (its ranks are on several hosts), RNL_ERR_SYSTEM. A collective of all ranks. */
int rnl_pmix_door(int *door);

#endif
