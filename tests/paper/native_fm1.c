/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native_fm1.c - see native.h. */
#include "sim/paper/systems/fm1/firmware.c"

#define SYSTEM "fm1"
#include "paper/native.h"

static void host_fills(void)
{
    card.ring_at = 65536;
}

static void host_writes(void)
{
    if (card.posted - card.sent < FM1_QUEUE) {
        card.queue[card.posted % FM1_QUEUE].route = ROUTE_VALID | chance(64);
        card.posted++;
    }
}
