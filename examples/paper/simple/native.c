/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - firmware.c as a program of this machine (runnel paper build --native): engines end whenever they like,
 * packets bring any bytes, and the host writes what it likes. The firmware must start no engine that works, stay within
 * `card`, and lose no packet; sanitizers see what is undefined. */
#include "firmware.c"

#define SYSTEM "my_simple"
/* What has come is in the host, dropped, in error, or the one that waits. */
#define CONSERVED (packets - card.errors - card.dropped - into_host <= 1)
#include "myrinet/native.h"

static uint32_t next; /* descriptor that the host fills */

/* Before the card is started. */
static void host_fills(void)
{
    next = 0;
    card.area = 4096;
    for (uint32_t i = 0; i < RING; i++)
        card.receive[i] = 65536 * (i + 1);
}

/* Now and then. chance(N) is a number below N. */
static void host_writes(void)
{
    volatile struct descriptor *d = &card.send[next];
    if (d->flag == FREE) {
        d->to = any_word();
        d->bytes = 1 + chance(PACKET);
        d->offset = chance(65536);
        d->flag = POSTED;
        next = (next + 1) & (RING - 1);
    }
    if (chance(2))
        card.receive[chance(RING)] = 65536;
}
