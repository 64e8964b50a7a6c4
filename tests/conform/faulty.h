/* SPDX-License-Identifier: BSD-3-Clause
 *
 * faulty.h - a fixture's transports, each inside transport/fault: what a wrapped transport promises is what the one
 * below promised. */
#ifndef RNL_TESTS_CONFORM_FAULTY_H
#define RNL_TESTS_CONFORM_FAULTY_H

#include "conform/conform.h"

/* Wraps net->t[0 .. places - 1]; faults == NULL: leaves them bare. 0, or negative. */
int faulty_wrap(struct conform_net *net, unsigned places, const char *faults);

#endif
