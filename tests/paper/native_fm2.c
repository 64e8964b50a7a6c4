/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native_fm2.c - see native.h. */
#include "sim/paper/systems/fm2/firmware.c"

#define SYSTEM "fm2"
#include "paper/native.h"

static void host_fills(void)
{
    card.ring_at = 65536;
}

static void host_writes(void)
{
    if (card.posted - card.sent < FM2_QUEUE) {
        volatile struct fm2_slot *s = &card.queue[card.posted % FM2_QUEUE];
        s->route = ROUTE_VALID | chance(64);
        s->bytes = FM2_TRAILER + 4 * chance(FM2_DATA / 4 + 1);
        card.posted++;
    }
}
