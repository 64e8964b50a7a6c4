/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sense.h - how samples of a transfer's time become the verdict near or far. The verdict byte is the whole state: bit 0
 * = far, bits 1..7 = running average in units of 2 ns, in which what is much longer than most counts little. */
#ifndef RNL_BASE_SENSE_H
#define RNL_BASE_SENSE_H

#include "base/copies.h"
#include "base/env.h"

enum {
    RNL_SENSE_UNIT_NS = 2,
    RNL_SENSE_COST_NS = 20,        /* of timing a fetch */
    RNL_SENSE_MIDDLE_NS = 86,      /* between what is near and what is far, where neither was measured */
    RNL_SENSE_SLACK_NS = 10,       /* this close to the middle, the verdict does not change */
    RNL_SENSE_STEP_NS = 8,         /* a sample moves the average so far at most: many find a line in slower memory */
    RNL_SENSE_DROP_ABOVE_NS = 1000 /* longer samples were preempted, and are dropped */
};

/* The middle for this host, by its table of copies. A line crosses in two fetches, one by who writes it and one by who
 * reads it; a sample is one of them. */
static inline int rnl_sense_middle_ns(const struct rnl_copies *c)
{
    uint64_t near = c->line_ns[RNL_NEAR], far = c->line_ns[RNL_FAR];
    uint64_t middle = RNL_SENSE_COST_NS + (near + far) / 4;
    if (near == 0 || far <= near)
        return RNL_SENSE_MIDDLE_NS;
    return middle < RNL_SENSE_MIDDLE_NS * 2 ? (int)middle : RNL_SENSE_MIDDLE_NS * 2;
}

/* Adds a sample, which counts for 1/weight of the average. */
static inline void rnl_sense_sample(uint8_t *d, uint64_t ns, int weight, int middle_ns)
{
    const int most = RNL_SENSE_STEP_NS / RNL_SENSE_UNIT_NS;
    if (ns > RNL_SENSE_DROP_ABOVE_NS)
        return;
    int average = *d >> 1, far = *d & 1;
    int now = ns < 127 * RNL_SENSE_UNIT_NS ? (int)ns / RNL_SENSE_UNIT_NS : 127;
    int step = (now - average) / weight;
    if (step == 0) /* differences smaller than weight count too */
        step = (now > average) - (now < average);
    average += step > most ? most : step < -most ? -most : step;
    if (average * RNL_SENSE_UNIT_NS > middle_ns + RNL_SENSE_SLACK_NS)
        far = RNL_FAR;
    else if (average * RNL_SENSE_UNIT_NS < middle_ns - RNL_SENSE_SLACK_NS)
        far = RNL_NEAR;
    *d = (uint8_t)(average << 1 | far);
}

#endif
