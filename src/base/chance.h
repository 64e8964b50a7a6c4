/* SPDX-License-Identifier: BSD-3-Clause
 *
 * chance.h - random numbers without state: a number is a pure function of (seed, stream, entity, ordinal), so that
 * taking one decision away moves no other. stream says what is decided, entity for whom, and ordinal counts the
 * decisions. Not for secrets: whoever knows a few numbers knows all. */
#ifndef RNL_BASE_CHANCE_H
#define RNL_BASE_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t rnl_chance_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline uint64_t rnl_chance(uint64_t seed, uint32_t stream, uint64_t entity, uint64_t ordinal)
{
    uint64_t x = rnl_chance_mix(seed + 0x9e3779b97f4a7c15u * (stream + 1u));
    x = rnl_chance_mix(x ^ entity * 0xd1342543de82ef95u);
    return rnl_chance_mix(x + ordinal * 0x9e3779b97f4a7c15u);
}

/* Maps such a number to 0 .. n - 1; 0 if n is 0. */
static inline uint64_t rnl_chance_below(uint64_t number, uint64_t n)
{
    if (n <= UINT32_MAX)
        return (number >> 32) * n >> 32;
    return number % n;
}

/* rnl_chance_is is true with probability parts / RNL_CHANCE_ALWAYS, of which 1 % and 0.001 % are whole numbers. */
enum { RNL_CHANCE_ALWAYS = 1000000000 };
static inline bool rnl_chance_is(uint64_t number, uint32_t parts)
{
    return (number >> 32) * RNL_CHANCE_ALWAYS >> 32 < parts;
}

#endif
