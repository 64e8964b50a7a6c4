/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_start.h - starts a node agent on a host, over ssh or in a network namespace. */
#ifndef RNL_LAUNCHER_REMOTE_START_H
#define RNL_LAUNCHER_REMOTE_START_H

#include "launcher/control.h"
#include "launcher/launcher.h"
#include "launcher/spawn.h"

/* Starts the agent of that host. *pid is the process that carries the connection, which dies with this one; `pipes` are
 * this process's ends of its standard input, output and error. 0 or -errno. */
int rnl_remote_start(const struct rnl_launch *, uint32_t host, int pipes[3], pid_t *pid);

#endif
