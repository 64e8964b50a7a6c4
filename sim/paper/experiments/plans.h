/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plans.h - which experiment answers a published figure. */
#ifndef RNL_PAPER_PLANS_H
#define RNL_PAPER_PLANS_H

#include "sim/paper/experiments/rows.h"

/* Fills answered, and truth or ours and null. A figure without a plan is left unanswered, as is with `tuned` one of a
 * system that has no second firmware. */
int rnl_plan_answer(const struct rnl_row *, int tuned, rnl_row_machine *change, void *arg, struct rnl_answer *);

#endif
