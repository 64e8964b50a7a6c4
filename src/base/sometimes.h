/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sometimes.h - what is seldom, made likely. In the library all of this is nothing. Where RNL_RECORD is defined
 * (tests/swarm builds the sources so) there are marks: places that schedules have to reach. What no run goes through,
 * no run tests, so a set of schedules that misses one fails.
 *
 *   RNL_SOMETIMES(condition, "what")    at least one run comes here with the condition true
 *   if (... || RNL_RARELY("what"))      something that may happen here at any time, and hardly ever does, by the seed's
 *                                       will: only what is legal, whatever the state is. In the library it is 0
 *
 * The marks of a program are the section rnl_marks, which the linker bounds by two symbols. */
#ifndef RNL_BASE_SOMETIMES_H
#define RNL_BASE_SOMETIMES_H

#include <assert.h>
#include <stdint.h>

struct rnl_mark {
    const char *what, *file;
    uint64_t line, reached;
    uint64_t asked, parts; /* of RNL_RARELY: how often, and how likely it is in this run */
    uint64_t zero[2];      /* as large as the linker lays them apart */
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
/* Who runs the schedules says whether it happens now. */
int rnl_rarely(struct rnl_mark *mark);
#define RNL_RARELY(text)            \
    (__extension__({                \
        RNL_MARK(text);             \
        rnl_rarely(&rnl_mark_here); \
    }))
#else
#define RNL_SOMETIMES(condition, text) ((void)0)
#define RNL_RARELY(text)               0
#endif

#endif
