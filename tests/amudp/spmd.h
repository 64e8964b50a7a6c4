/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spmd.h - what the files of the program spmd share: the worker's place in its job, and how it says what is wrong. */
#ifndef TESTS_AMUDP_SPMD_H
#define TESTS_AMUDP_SPMD_H

#include <amudp.h>
#include <amudp_spmd.h>

#include <stdio.h>
#include <stdlib.h>

enum { SEGMENT_BYTES = 4 * AMUDP_MAX_LONG };
extern eb_t eb;
extern ep_t ep;
extern int rank, size;
extern char segment[SEGMENT_BYTES];

#define MUST(x)                                                                            \
    do {                                                                                   \
        if (!(x)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d: not so: %s\n", __FILE__, __LINE__, rank, #x); \
            AMUDP_SPMDExit(1);                                                             \
        }                                                                                  \
    } while (0)
#define OK(call) MUST((call) == AM_OK)

/* Runs the case `what` if a worker ends the job in it, and does not return then. */
void spmd_ends(const char *what, char **argv);

#endif
