/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launch.h - jobs of `runnel bench`: this program again, as `runnel run`, whose ranks are this program with --child. */
#ifndef RNL_BENCH_LAUNCH_H
#define RNL_BENCH_LAUNCH_H

#include <sys/types.h>

#include "area.h"

/* How others find the area, from its descriptor here. */
void bench_area_path(int fd, char out[64]);

/* In a child just forked: end when the parent does, also if it is gone already. */
void bench_end_with(pid_t parent, int signal);

/* Starts argv (argv[0] is looked for along PATH; "" is this program itself); it gets SIGTERM when this process dies.
 * Its standard output goes to standard error. The process, or -errno. */
pid_t bench_launch(const char *const argv[]);
/* Starts the job of a pair: as many ranks as it has, in its role. */
pid_t bench_launch_pair(const struct bench_area *, const char *area_path, unsigned pair);

#endif
