/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix.h - joins a job whose ranks learn of each other by values that they exchange: through the PMIx server of the
 * launcher that started them (mpirun, prterun, srun), or through functions of the caller. */
#ifndef RNL_PMIX_PMIX_H
#define RNL_PMIX_PMIX_H

#ifndef RNL_HAVE_PMIX
#define RNL_HAVE_PMIX 0
#endif

#include "base/env.h"
#include "runnel/adapter.h"

/* Returns 1 and *out, the env of this rank, which its close frees; 0 if there is no PMIx server; or RNL_ERR_JOB,
 * RNL_ERR_SYSTEM, RNL_ERR_NO_MEMORY. All ranks of the job must call it; it succeeds or fails for all of them. */
int rnl_pmix_env(struct rnl_env **out);
/* The env of a rank of a job whose ranks the caller started: *x carries what they tell each other. */
int rnl_exchange_env(const struct rnl_options *opt, const struct rnl_exchange *x, struct rnl_env **out);
/* For a process that exits with success and without a close, as its program's ranks have agreed: finalizes PMIx, since
 * the server would otherwise count the exit as a failure. No effect outside a PMIx job. */
void rnl_pmix_leave(void);

#endif
