/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer_keep.h - the keeper of one peer, see peer.h. */
#ifndef RNL_BENCH_PEER_KEEP_H
#define RNL_BENCH_PEER_KEEP_H

#include "peer.h"

/* In a forked child: compiles and runs that peer until it is done, fails, or SIGTERM comes, which the end of `parent`
 * also brings. Then ends all that came of it and removes its files. Returns the exit status. */
int bench_peer_keep(const struct bench_peers *, unsigned api, pid_t parent);

#endif
