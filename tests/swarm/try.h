/* SPDX-License-Identifier: BSD-3-Clause
 *
 * try.h - one schedule in a process of its own: it may end in a crash or never. */
#ifndef RNL_TESTS_SWARM_TRY_H
#define RNL_TESTS_SWARM_TRY_H

#include "swarm/world.h"

/* Before the first: memory that those processes share with this one. */
struct swarm_result *swarm_try_new(void);
/* 1 = it failed, and the result says how. after: called in that process when the run is over; may be NULL. */
int swarm_try(const struct swarm_plan *plan, void (*after)(void));

#endif
