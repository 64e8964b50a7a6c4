/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. */
#ifdef BARE
#define SYSTEM "am2-bare"
#include "sim/myrinet/systems/am2/firmware-bare.c"
#elif defined TUNED
#define SYSTEM "am2-tuned"
#include "sim/myrinet/systems/am2/firmware-tuned.c"
#else
#define SYSTEM "am2"
#include "sim/myrinet/systems/am2/firmware.c"
#endif
#define CONSERVED     (card.ready - card.taken < AM2_RING && native_loop.active <= AM2_SLOTS)
#define FIRST_WORD(n) ((1 + chance(4)) << 24 | (1 + ((n) == 8 ? chance(4) : 0)) << 16 | chance(5) << 8 | chance(2))
#include "myrinet/native.h"

static void host_fills(void)
{
    card.out_at = card.in_at = 65536;
    card.nodes = 5;
    card.tick = 200;
    card.patience = 2;
    card.tries = 100;
    card.open = 1;
    for (uint32_t i = 0; i < AM2_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
}

static void host_writes(void)
{
    uint32_t slot = chance(AM2_SLOTS), state = card.state[slot];
    if (state == AM2_FREE || state == AM2_RETURNED) {
        card.slot[slot][1] = any_word();
        card.to[slot] = chance(6);
        card.state[slot] = chance(2) ? AM2_POSTED : AM2_FETCH;
    }
    if (card.ready != card.taken)
        card.taken += chance(2);
    card.open = chance(10) != 0;
}
