/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. */
#ifdef TUNED
#define SYSTEM "bip-tuned"
#include "sim/myrinet/systems/bip/firmware-tuned.c"
#else
#define SYSTEM "bip"
#include "sim/myrinet/systems/bip/firmware.c"
#endif

#include "myrinet/native.h"

static uint32_t next; /* short message that the host fills */

static void host_fills(void)
{
    next = 0;
    memset(ready_from, 0, sizeof ready_from);
    card.ring_at = 65536;
    card.page = 4096;
    for (uint32_t i = 0; i < BIP_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
}

static void host_writes(void)
{
    if (chance(2) && card.go[next].bytes == 0) {
        card.go[next].to = chance(64);
        card.go[next].bytes = 12 + 4 * chance(BIP_SMALL);
        next ^= 1;
    }
    if (!card.send.bytes) {
        card.send.to = chance(9);
        card.send.at = chance(100000);
        card.send.packet = 256u << chance(5);
        card.send.bytes = 4 + 4 * chance(5000);
    }
    if (!card.receive.bytes) {
        card.receive.from = chance(9);
        card.receive.at = chance(100000);
        card.receive.bytes = 4 + 4 * chance(5000);
    }
}
