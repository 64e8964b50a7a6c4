/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sense.h - how samples of a transfer's time become the verdict near or far. The verdict byte is the whole state: bit 0
 * = far, bits 1..7 = running average in units of 2 ns. */
#ifndef RNL_BASE_SENSE_H
#define RNL_BASE_SENSE_H

#include "base/env.h"

enum {
    RNL_SENSE_UNIT_NS = 2,
    RNL_SENSE_NEAR_BELOW_NS = 60, /* between the two bounds the verdict does not change */
    RNL_SENSE_FAR_ABOVE_NS = 80,
    RNL_SENSE_DROP_ABOVE_NS = 1000 /* longer samples were preempted, and are dropped */
};

/* Adds a sample, which counts for 1/weight of the average. */
static inline void rnl_sense_sample(uint8_t *d, uint64_t ns, int weight)
{
    if (ns > RNL_SENSE_DROP_ABOVE_NS)
        return;
    int average = *d >> 1, far = *d & 1;
    int now = ns < 127 * RNL_SENSE_UNIT_NS ? (int)ns / RNL_SENSE_UNIT_NS : 127;
    int step = (now - average) / weight;
    if (step == 0) /* differences smaller than weight count too */
        step = (now > average) - (now < average);
    average += step;
    if (average * RNL_SENSE_UNIT_NS > RNL_SENSE_FAR_ABOVE_NS)
        far = RNL_FAR;
    else if (average * RNL_SENSE_UNIT_NS < RNL_SENSE_NEAR_BELOW_NS)
        far = RNL_NEAR;
    *d = (uint8_t)(average << 1 | far);
}

#endif
