/* SPDX-License-Identifier: BSD-3-Clause
 *
 * evil.h - a socket that passes all on, and misuses what it has seen: what was sent goes out once more, cut, or with a
 * bit flipped, from its own address or from a stranger's; what came goes back to where it came from. And a stranger who
 * floods. */
#ifndef RNL_TESTS_SUPPORT_EVIL_H
#define RNL_TESTS_SUPPORT_EVIL_H

#include "support/loop.h"

/* For test_loop.wrap. One in a process. */
struct rnl_socket *test_evil(struct rnl_socket *in, unsigned rank);
/* Datagrams that it has sent of its own. */
uint64_t test_evil_done(void);

/* `datagrams` to ranks 0 and 1, from none of the job's addresses: half of them short, a fifth with headers that may be
 * true; every length up to 65,507 if there are enough. RNL_TEST_STRANGERS in the environment says another number. */
void test_flood(unsigned long datagrams);

/* A run of four: 0 and 1 talk, each through a test_evil; 2 floods from outside; 3 greets, and has another job's key.
 * What test_loop_run returns. */
enum { TEST_FRIENDS = 2, TEST_OUTSIDE = TEST_FRIENDS, TEST_OTHER_JOB, TEST_STRANGERS_SIZE };
int test_strangers(void (*talk)(struct test_loop_side *), void (*flood)(struct test_loop_side *),
                   void (*intrude)(struct test_loop_side *));

#endif
