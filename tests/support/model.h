/* SPDX-License-Identifier: BSD-3-Clause
 *
 * model.h - random operation lists against a model. A list that fails, crashes or hangs is cut down to a minimal one by
 * leaving out stretches of it, half, a quarter ... one operation, and making numbers smaller, as long as it still
 * fails; then it is printed.
 *
 *   RNL_TEST_SEED=N    only this seed
 *   RNL_TEST_SEEDS=N   so many seeds, without a time limit
 *   RNL_TEST_NOFORK=1  with RNL_TEST_SEED: in this process, for a debugger */
#ifndef RNL_TESTS_SUPPORT_MODEL_H
#define RNL_TESTS_SUPPORT_MODEL_H

#include "support/random.h"

/* Smaller numbers mean a simpler operation; 0 must be allowed for each. id stays with an operation when others go: a
 * run takes all chance of an operation from (seed, id). */
struct test_op {
    uint32_t kind, id;
    uint32_t arg[6];
};

struct test_why {
    char text[400];
};
/* Notes the first reason only. Returns 1. */
int test_why(struct test_why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct test_model {
    const char *name;
    size_t max_ops;
    unsigned seeds;   /* to try */
    unsigned seconds; /* but stop after so long */
    /* Fills in at most max_ops operations (id is set by the caller); returns how many. */
    size_t (*generate)(uint64_t seed, struct test_op *ops, size_t max_ops);
    /* 0 = as the model says, else *why. Must leave nothing behind when it succeeds. */
    int (*run)(uint64_t seed, const struct test_op *ops, size_t n, struct test_why *why);
    void (*print)(const struct test_op *op, char *text, size_t bytes);
};

/* 0, or 1 after printing the minimal list. */
int test_model_check(const struct test_model *m);

#endif
