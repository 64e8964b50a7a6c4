/* SPDX-License-Identifier: BSD-3-Clause
 *
 * faults.h - one program: the driver of faults.c, and with the argument `target` what it drives, target.c. */
#ifndef RNL_TESTS_FAULTS_FAULTS_H
#define RNL_TESTS_FAULTS_FAULTS_H

enum { FAULTS_FAILED = 3, FAULTS_LEFT = 9 };

/* self: a job of one; hub: two threads; rank: of a launched job; listen: the same, but rank 0 alone sends;
 * often, fork, show: see there. Its exit
 * status. */
int faults_target(const char *as);

#endif
