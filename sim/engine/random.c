/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random.c - see random.h: a finalizer of 64 bits (its multipliers are those of Stafford's variant 13) after each
 * argument is added in. */
#include "sim/engine/random.h"

#define GOLDEN ((uint64_t)0x9e3779b97f4a7c15u) /* 2^64 over the golden ratio: neighbours land far apart */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rnl_sim_random(uint64_t seed, uint32_t stream, uint64_t entity, uint64_t ordinal)
{
    uint64_t z = mix(seed + GOLDEN);
    z = mix(z + GOLDEN * (stream + (uint64_t)1));
    z = mix(z ^ GOLDEN * (entity + 1));
    return mix(z + GOLDEN * (ordinal + 1));
}

uint64_t rnl_sim_below(uint64_t random, uint64_t bound)
{
    /* The high half of a product of 128 bits, from halves of 32. */
    uint64_t a = random >> 32, b = random & UINT32_MAX, c = bound >> 32, d = bound & UINT32_MAX;
    uint64_t middle = (b * d >> 32) + (a * d & UINT32_MAX) + (b * c & UINT32_MAX);
    return a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32);
}
