/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. */
#ifdef LINK /* figure 3a's first curve */
#define SYSTEM "fm1-link"
#define STAYS_ON_CARD
#include "sim/myrinet/systems/fm1/firmware-link.c"
#elif defined WHOLE /* frames of one length only */
#define SYSTEM "fm1-whole"
#include "sim/myrinet/systems/fm1/firmware-whole.c"
#elif defined TUNED
#define SYSTEM "fm1-tuned"
#include "sim/myrinet/systems/fm1/firmware-tuned.c"
#elif defined TUNED_WHOLE
#define SYSTEM "fm1-tuned-whole"
#include "sim/myrinet/systems/fm1/firmware-tuned-whole.c"
#else
#define SYSTEM "fm1"
#include "sim/myrinet/systems/fm1/firmware.c"
#endif
#define CONSERVED (card.posted - card.sent <= FM1_QUEUE && sends - card.sent <= 1)
#include "myrinet/native.h"

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
