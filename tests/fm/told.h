/* SPDX-License-Identifier: BSD-3-Clause
 *
 * told.h - an error handler of FM that notes what it was told. */
#ifndef RNL_TESTS_FM_TOLD_H
#define RNL_TESTS_FM_TOLD_H

#include <stdio.h>

#include "support/unit.h"

static struct {
    int count, status;
    unsigned long peer;
    char sentence[256];
} told;

static inline void note_error(int status, unsigned long peer, const char *sentence)
{
    told.count++;
    told.status = status;
    told.peer = peer;
    snprintf(told.sentence, sizeof told.sentence, "%s", sentence);
}

#define TOLD(expected, ...)                                                         \
    do {                                                                            \
        const char *const words[] = {__VA_ARGS__};                                  \
        assert_int_equal(told.count, 1);                                            \
        assert_int_equal(told.status, expected);                                    \
        for (size_t word = 0; word < sizeof words / sizeof *words; word++)          \
            if (!strstr(told.sentence, words[word]))                                \
                fail_msg("\"%s\" does not say \"%s\"", told.sentence, words[word]); \
        told.count = 0;                                                             \
    } while (0)

#endif
