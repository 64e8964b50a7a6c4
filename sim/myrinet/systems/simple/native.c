/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. */
#ifdef TUNED
#define SYSTEM "simple-tuned"
#include "sim/myrinet/systems/simple/firmware-tuned.c"
#else
#define SYSTEM "simple"
#include "sim/myrinet/systems/simple/firmware.c"
#endif
/* What has come is in the host, dropped, in error, or one of two that wait. */
#define CONSERVED (packets - card.errors - card.dropped - into_host <= 2)
#include "myrinet/native.h"

static uint32_t next; /* that the host fills */

static void host_fills(void)
{
    next = 0;
    card.area = 4096;
    for (uint32_t i = 0; i < SIMPLE_RING; i++)
        card.receive[i] = 65536 * (i + 1);
}

static void host_writes(void)
{
    volatile struct simple_descriptor *d = &card.send[next];
    if (d->flag == SIMPLE_FREE) {
        d->to = (uint32_t)chance(0xffffffff);
        d->bytes = 1 + chance(SIMPLE_MAX);
        d->offset = chance(65536);
        d->flag = SIMPLE_POSTED;
        next = (next + 1) & (SIMPLE_RING - 1);
    }
    if (chance(2))
        card.receive[chance(SIMPLE_RING)] = 65536;
}
