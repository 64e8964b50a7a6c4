/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rank_must.h - MUST(condition) in a rank of a job: if it is not so it is said, and the process ends. `rank` is the
 * including file's. */
#ifndef RNL_TESTS_AM_RANK_MUST_H
#define RNL_TESTS_AM_RANK_MUST_H

#include <stdio.h>
#include <unistd.h>

#include "runnel/runnel.h"

#define MUST(x)                                                                                            \
    do {                                                                                                   \
        if (!(x)) {                                                                                        \
            fprintf(stderr, "rank %u: not so: %s (%d): %s\n", rank, #x, __LINE__, rnl_last_error()->text); \
            _exit(1);                                                                                      \
        }                                                                                                  \
    } while (0)

#endif
