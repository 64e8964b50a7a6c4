/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random.c - splitmix64, sizes, patterns. */
#include "support/random.h"

#include <pthread.h>
#include <stdlib.h>

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

struct test_random test_random_of(uint64_t seed, uint64_t stream)
{
    return (struct test_random){mix(seed * 0x9e3779b97f4a7c15u + 1) ^ mix(~stream)};
}

uint64_t test_random_next(struct test_random *r)
{
    return mix(r->state += 0x9e3779b97f4a7c15u);
}

uint32_t test_random_below(struct test_random *r, uint32_t n)
{
    return (uint32_t)((test_random_next(r) >> 32) * n >> 32);
}

int test_random_one_in(struct test_random *r, uint32_t n)
{
    return test_random_below(r, n) == 0;
}

size_t test_random_size(struct test_random *r, size_t max, const size_t *edge, size_t edges)
{
    size_t n;
    if (edges > 0 && test_random_one_in(r, 4)) {
        n = edge[test_random_below(r, (uint32_t)edges)];
        n += test_random_below(r, 3);
        n = n ? n - 1 : 0;
    } else {
        unsigned bits = 0;
        while (bits < 63 && max >> bits)
            bits++;
        n = (size_t)(test_random_next(r) >> 1) & (((size_t)1 << test_random_below(r, bits + 1)) - 1);
    }
    return n <= max ? n : max;
}

unsigned test_slowness(void)
{
#if defined(__SANITIZE_THREAD__)
    return 10;
#elif defined(__SANITIZE_ADDRESS__)
    return 4;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    return 10;
#elif __has_feature(address_sanitizer)
    return 4;
#else
    return 1;
#endif
#else
    return 1;
#endif
}

/* One stretch of random bytes; each id begins elsewhere in it. */
enum { SHIFTS = 65521 };
static unsigned char *stretch;

static void make_stretch(void)
{
    struct test_random r = test_random_of(1, 1);
    size_t n = TEST_PATTERN_MAX + SHIFTS;
    stretch = malloc(n);
    if (!stretch)
        abort();
    for (size_t i = 0; i < n; i++)
        stretch[i] = (unsigned char)test_random_next(&r);
}

const unsigned char *test_pattern(uint64_t id, size_t offset)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_stretch);
    return stretch + mix(id) % SHIFTS + offset;
}
