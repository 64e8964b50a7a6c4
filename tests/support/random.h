/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random.h - the tests' seeded generator. A value depends on (seed, stream, ordinal) only, so that leaving out one
 * thing of a run does not change the others. */
#ifndef RNL_TESTS_SUPPORT_RANDOM_H
#define RNL_TESTS_SUPPORT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct test_random {
    uint64_t state;
};

struct test_random test_random_of(uint64_t seed, uint64_t stream);
uint64_t test_random_next(struct test_random *r);
/* 0 .. n - 1; 0 for n == 0. */
uint32_t test_random_below(struct test_random *r, uint32_t n);
/* 1 in n. */
int test_random_one_in(struct test_random *r, uint32_t n);
/* 0 .. max: all magnitudes alike, and often one of the edges named (`edges` of them, may be NULL) or next to it. */
size_t test_random_size(struct test_random *r, size_t max, const size_t *edge, size_t edges);

/* 1, or the factor by which a sanitizer of this build slows a program down: divide counts by it. */
unsigned test_slowness(void);

/* n bytes that only (id, offset) determine: what a message carries, and what must arrive. offset + n <=
 * TEST_PATTERN_MAX. */
enum { TEST_PATTERN_MAX = 4 << 20 };
const unsigned char *test_pattern(uint64_t id, size_t offset);

#endif
