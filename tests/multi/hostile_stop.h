/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hostile_stop.h - see hostile_stop.c. */
#ifndef RNL_TESTS_MULTI_HOSTILE_STOP_H
#define RNL_TESTS_MULTI_HOSTILE_STOP_H

#include "runnel/runnel.h"

struct rnl_env;

/* Gets into that state with ranks 0 and 1 and stops. Returns only if there is no such state: -1. */
int hostile_stop(rnl_endpoint *ep, const char *state);
/* Their names, a line each. */
void hostile_stop_list(void);

/* Asks the launcher for the segment shared with rank, and leaves the answer where it is when it has come. */
void hostile_ask(struct rnl_env *env, uint32_t rank, size_t bytes);

#endif
