/* SPDX-License-Identifier: BSD-3-Clause
 *
 * role.h - what a process of a job can be. The coordinator writes a role's name into its pair and starts the job; each
 * of its ranks finds it here. */
#ifndef RNL_BENCH_ROLE_H
#define RNL_BENCH_ROLE_H

#include "side.h"

extern const struct bench_api bench_role_idle_native, bench_role_idle_fm, bench_role_wake, bench_role_wake_fd,
    bench_role_barrier, bench_role_layer_fm, bench_role_layer_fm1, bench_role_startup, bench_role_memory, bench_role_am,
    bench_role_am_par;

/* The role or interface of that name, or NULL. */
const struct bench_api *bench_role(const char *name);

#endif
