/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. */
#ifdef TUNED
#define SYSTEM "fm2-tuned"
#define MARKS
#include "sim/myrinet/systems/fm2/firmware-tuned.c"
#define VALID_BEFORE(end) (WORDS_AT((end)-4)[0] & FM2_VALID)
#else
#define SYSTEM "fm2"
#include "sim/myrinet/systems/fm2/firmware.c"
#endif
#define CONSERVED (card.posted - card.sent <= FM2_QUEUE && sends - card.sent <= 1)
#define FRAGMENTS /* most packets are whole */
#include "myrinet/native.h"

static void host_fills(void)
{
    card.ring_at = 65536;
    card.frame = 128 + FM2_TRAILER;
    for (uint32_t i = 0; i < FM2_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
}

static void host_writes(void)
{
    if (card.posted - card.sent < FM2_QUEUE) {
        uint32_t bytes = chance(FM2_DATA + 1), rest = chance(1 << 16);
        card.queue[card.posted % FM2_QUEUE][FM2_WORDS - 2] = bytes << 16 | rest;
        card.posted++;
    }
}
