/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. */
#ifdef TUNED
#define SYSTEM "lfc-tuned"
#include "sim/myrinet/systems/lfc/firmware-tuned.c"
#else
#define SYSTEM "lfc"
#include "sim/myrinet/systems/lfc/firmware.c"
#endif
#define CONSERVED     (card.posted - native_loop.seen <= LFC_SLOTS && native_loop.frees < LFC_BUFFERS)
#define FIRST_WORD(n) ((1 + chance(4)) << 24 | ((n) == 8 ? 1 + chance(3) : chance(20) == 0) << 16 | chance(2))
#include "myrinet/native.h"

static void host_fills(void)
{
    card.ring_at = card.value_at = 65536;
    card.nodes = 5;
    card.credits = 6;
    card.interrupt = 1;
    card.watchdog = 140;
    for (uint32_t i = 0; i < LFC_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
}

static void host_writes(void)
{
    uint32_t slot = card.posted % LFC_SLOTS;
    if (card.what[slot] == 0) {
        card.what[slot] = any_word() | 1u << 25;
        card.posted++;
    }
    if (native_loop.put != card.taken)
        card.taken += chance(2);
    if (chance(30) == 0) {
        card.ask_node = chance(5);
        card.ask_what = any_word();
        card.question++;
    }
}
