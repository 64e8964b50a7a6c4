/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bodies.h - what the suite holds a transport to: step by step in bodies.c, of datagrams in datagram.c, at random in
 * random.c. All end with name == NULL. */
#ifndef RNL_TESTS_CONFORM_BODIES_H
#define RNL_TESTS_CONFORM_BODIES_H

#include "conform/conform.h"

extern const struct conform_body conform_bodies[];
extern const struct conform_body conform_datagram_bodies[];
extern const struct conform_body conform_random_bodies[];

#endif
