/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. */
#ifdef TUNED
#define SYSTEM "pm-tuned"
#define MARKS
#include "sim/myrinet/systems/pm/firmware-tuned.c"
#elif defined GANG
#define SYSTEM "pm-gang"
#include "sim/myrinet/systems/pm/firmware-gang.c"
#else
#define SYSTEM "pm"
#include "sim/myrinet/systems/pm/firmware.c"
#endif

#include "myrinet/native.h"

static uint32_t next, back; /* that the host fills: to send, and given back */

static void host_fills(void)
{
    next = back = 0;
    memset(sequence_of, 0, sizeof sequence_of);
    memset(next_sequence, 0, sizeof next_sequence);
    memset(expected, 0, sizeof expected);
    card.after_refusal = PM_POSTED;
    for (uint32_t i = 0; i < PM_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
}

static void host_writes(void)
{
    volatile struct pm_descriptor *d = &card.send[next];
    if (chance(2) && d->state == PM_FREE) {
        d->to = (uint32_t)chance(0xffffffff);
        d->bytes = 1 + chance(PM_BUFFER);
        d->at = 4096;
        d->state = PM_POSTED;
        next = (next + 1) & (PM_RING - 1);
    }
    card.receive[back] = 65536;
    back = (back + 1) & (PM_RING - 1);
}
