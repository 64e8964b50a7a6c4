/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sometimes.h - marks on branches that are seldom taken. In the library they are nothing. Where RNL_RECORD is defined
 * (tests/swarm builds the sources so) each counts how often it was reached, and a set of schedules that never reaches
 * one fails: what no run goes through, no run tests.
 *
 *   RNL_SOMETIMES(condition, "what") at least one run comes here with the condition true
 *   RNL_RARELY("what")               the same, for a branch of its own
 *
 * The marks of a program are the section rnl_marks, which the linker bounds by two symbols. */
#ifndef RNL_BASE_SOMETIMES_H
#define RNL_BASE_SOMETIMES_H

#include <stdint.h>

struct rnl_mark {
    const char *what, *file;
    uint64_t line, reached;
};

#ifdef RNL_RECORD
#define RNL_SOMETIMES(condition, text)                                                                \
    do {                                                                                              \
        static struct rnl_mark rnl_mark_here                                                          \
            __attribute__((section("rnl_marks"), used, aligned(32))) = {text, __FILE__, __LINE__, 0}; \
        if (condition)                                                                                \
            rnl_mark_here.reached++;                                                                  \
    } while (0)
#else
#define RNL_SOMETIMES(condition, text) ((void)0)
#endif
#define RNL_RARELY(text) RNL_SOMETIMES(1, text)

#endif
