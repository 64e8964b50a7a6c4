/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random.h - chance without state: each number is a pure function of (seed, stream, entity, ordinal). So one decision
 * more or fewer in one place moves no other: faults can be taken away one by one from a run that fails.
 *
 * stream: what is decided (the loss of packets, the drift of clocks ...); entity: for whom (a link, a host); ordinal:
 * the how manieth time. Nothing here uses floating point: the numbers are the same with every compiler. */
#ifndef RNL_SIM_RANDOM_H
#define RNL_SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

uint64_t rnl_sim_random(uint64_t seed, uint32_t stream, uint64_t entity, uint64_t ordinal);

/* 0 .. bound - 1, from a number of the above; bound 0 gives 0. The bias is below 2^-32 for bounds up to 2^32. */
uint64_t rnl_sim_below(uint64_t random, uint64_t bound);

/* 1 in `per_2_32` of 2^32 cases: probabilities are given as parts of 2^32, of which RNL_SIM_ALWAYS are all. */
#define RNL_SIM_ALWAYS ((uint64_t)1 << 32)
static inline bool rnl_sim_chance(uint64_t random, uint64_t per_2_32)
{
    return (random >> 32) < per_2_32;
}

#endif
