/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native_vmmc.c - see native.h. */
#include "sim/paper/systems/vmmc/firmware.c"

enum { PAGE = 4096 };

#define SYSTEM        "vmmc"
#define FIRST_WORD(n) ((n)-VMMC_HEADER)
#include "paper/native.h"

static void host_fills(void)
{
    card.processes = VMMC_PROCESSES;
    card.page_shift = 12;
    for (uint32_t i = 0; i < VMMC_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
    for (uint32_t i = 0; i < 64; i++)
        card.incoming[i] = (uint8_t)chance(4);
    for (uint32_t p = 0; p < VMMC_PROCESSES; p++)
        for (uint32_t i = 0; i < 64; i++) {
            card.process[p].outgoing[i] = chance(3) ? (uint32_t)(i * PAGE) | VMMC_VALID | chance(4) : 0;
            card.process[p].tag[i][0] = i;
            card.process[p].physical[i][0] = i * PAGE;
        }
}

/* A process may write anything into its queue, at any time; the driver answers misses. */
static void host_writes(void)
{
    volatile struct vmmc_process *p = &card.process[chance(VMMC_PROCESSES)];
    volatile uint32_t *word = (volatile uint32_t *)&p->queue[chance(VMMC_QUEUE)];
    if (chance(2)) { /* what a library writes */
        volatile struct vmmc_request *r = &p->queue[chance(VMMC_QUEUE)];
        r->kind = VMMC_IS_SHORT;
        r->proxy = chance(64 * PAGE);
        r->bytes = 1 + chance(VMMC_SHORT);
        return;
    }
    static const uint32_t likely[] = {0, 1, 2, 4, 128, 129, 4096, 9000, 0x3f000, 0xfffffffc, 0x80000000};
    word[chance(36)] = chance(3) ? likely[chance(sizeof likely / sizeof likely[0])] : (uint32_t)(seed >> 20);
    if (chance(3) == 0) {
        uint32_t page = card.missed / PAGE, set = page & (VMMC_SETS - 1);
        card.process[card.missing_process].tag[set][1] = page;
        card.process[card.missing_process].physical[set][1] = page * PAGE;
    }
}
