/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rarely.c - what the library asks in a recorded build (base/sometimes.h): does something rare happen now? Of the
 * places that ask, half do nothing in a run; each of the others has a likelihood of its own, of all magnitudes. */
#include <string.h>

#include "base/chance.h"
#include "base/sometimes.h"
#include "swarm/world.h"

enum { LIKELIEST = RNL_CHANCE_ALWAYS / 4 };

static uint64_t seed;
static int on;

void swarm_rarely(const struct swarm_plan *plan)
{
    seed = plan->seed;
    on = swarm_has(plan, SWARM_RARE);
}

/* Places are told apart by what they say: they keep their numbers when the code around them moves. */
static uint64_t place(const struct rnl_mark *m)
{
    uint64_t x = 0;
    for (const char *c = m->what; *c; c++)
        x = rnl_chance_mix(x + (unsigned char)*c);
    return x;
}

int rnl_buggify(struct rnl_mark *m)
{
    if (!on)
        return 0;
    if (m->asked == 0) {
        uint64_t at = place(m);
        m->parts = swarm_draw(seed, SWARM_STREAM_RARE, at, 0, 2)
                       ? (uint64_t)LIKELIEST >> swarm_draw(seed, SWARM_STREAM_RARE, at, 1, 8)
                       : 0;
    }
    m->asked++;
    if (!m->parts ||
        !rnl_chance_is(rnl_chance(seed, 0x5a000000u + SWARM_STREAM_RARE, place(m), 1 + m->asked), (uint32_t)m->parts))
        return 0;
    m->reached++;
    return 1;
}
