/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sometimes.h - marks for simulated runs, after Antithesis ("sometimes" assertions) and FoundationDB ("buggify"). In
 * the library all of this is nothing. Where RNL_RECORD is defined (tests/swarm builds the sources so) a mark names a
 * place that the schedules have to reach: what no run goes through, no run tests, so a set of schedules that misses a
 * mark fails.
 *
 *   RNL_SOMETIMES(condition, "what")    at least one run comes here with the condition true
 *   if (... || RNL_BUGGIFY("what"))      a rare branch that is legal here in any state; the run's seed decides whether
 *                                       it is taken. In the library the mark is the constant 0
 *
 * The marks of a program are the section rnl_marks, which the linker bounds by two symbols. */
#ifndef RNL_BASE_SOMETIMES_H
#define RNL_BASE_SOMETIMES_H

#include <assert.h>
#include <stdint.h>

struct rnl_mark {
    const char *what, *file;
    uint64_t line, reached;
    uint64_t asked, parts; /* of RNL_BUGGIFY: how often it was evaluated, and its probability in this run */
    uint64_t zero[2];      /* fills the entry to the 64 bytes at which the linker places entries */
};

static_assert(sizeof(struct rnl_mark) == 64, "an array of them");

#ifdef RNL_RECORD
#define RNL_MARK(text)                   \
    static struct rnl_mark rnl_mark_here \
        __attribute__((section("rnl_marks"), used, aligned(64))) = {text, __FILE__, __LINE__, 0, 0, 0, {0, 0}}
#define RNL_SOMETIMES(condition, text) \
    do {                               \
        RNL_MARK(text);                \
        if (condition)                 \
            rnl_mark_here.reached++;   \
    } while (0)
/* Decides whether the rare branch is taken; the program that runs the schedules defines it. */
int rnl_buggify(struct rnl_mark *mark);
#define RNL_BUGGIFY(text)            \
    (__extension__({                 \
        RNL_MARK(text);              \
        rnl_buggify(&rnl_mark_here); \
    }))
#else
#define RNL_SOMETIMES(condition, text) ((void)0)
#define RNL_BUGGIFY(text)              0
#endif

#endif
