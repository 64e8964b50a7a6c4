/* SPDX-License-Identifier: BSD-3-Clause
 *
 * connect.h - connects the ranks of a job: peers are connected once they have exchanged a message. Uses handler 9,
 * which is nobody else's in bench/. */
#ifndef RNL_BENCH_CONNECT_H
#define RNL_BENCH_CONNECT_H

#include "side.h"

#include "runnel/runnel.h"

/* Every rank calls it, and returns when it is connected to all that it is to talk to: ranks below `hubs` to everybody,
 * the others to those. 0, or -1 after bench_side_fail. */
int bench_connect_native(struct bench_side *, rnl_endpoint *, unsigned hubs);
/* After FM_initialize; FM's error handler has to set side->status. */
int bench_connect_fm(struct bench_side *, unsigned hubs);

#endif
