/* SPDX-License-Identifier: BSD-3-Clause
 *
 * state.c - what there is once in a process: the bundles, and what a worker knows of its job. */
#include "api/amudp/amudp_internal.h"

struct amudp_eb *rnl_amudp_bundles;
struct rnl_amudp_spmd rnl_amudp_spmd = {.rank = -1, .size = -1, .wanted = -1};
