/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native_fm1.c - see native.h. */
#ifndef SYSTEM
#define SYSTEM "fm1"
#include "sim/paper/systems/fm1/firmware.c"
#endif
#define CONSERVED (card.posted - card.sent <= FM1_QUEUE && sends - card.sent <= 1)
#include "paper/native.h"

static void host_fills(void)
{
    card.ring_at = 65536;
    for (uint32_t i = 0; i < FM1_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
}

static void host_writes(void)
{
    if (card.posted - card.sent < FM1_QUEUE) {
        uint32_t bytes = chance(FM1_DATA + 1), rest = chance(1 << 24);
        card.queue[card.posted % FM1_QUEUE][FM1_WORDS - 2] = bytes << 24 | rest;
        card.posted++;
    }
}
