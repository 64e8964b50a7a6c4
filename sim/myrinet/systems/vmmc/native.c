/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. */
#ifdef TUNED
#define SYSTEM "vmmc-tuned"
#include "sim/myrinet/systems/vmmc/firmware-tuned.c"
#else
#define SYSTEM "vmmc"
#include "sim/myrinet/systems/vmmc/firmware.c"
#endif

enum { PAGE = 4096 };

#define PERMITTED     permitted
#define FIRST_WORD(n) ((n)-VMMC_HEADER)

/* What has come from the wire goes to one page that is exported. A completion word is the daemon's affair. */
static int permitted(uint32_t host, uint32_t from, uint32_t bytes)
{
    uint32_t frame = host / PAGE;
    if (from < SRAM_AT(card.in) || from >= SRAM_AT(card.in) + sizeof card.in)
        return 1;
    return frame < VMMC_FRAMES && (card.incoming[frame] & VMMC_MAY_WRITE) && (host + bytes - 1) / PAGE == frame;
}

static uint32_t near_page(void);
#define LIKELY_WORD near_page
#include "myrinet/native.h"

static uint32_t near_page(void)
{
    uint32_t page = chance(64);
    return page * PAGE - 4 * chance(9);
}

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
    uint32_t at = chance(36);
    word[at] = chance(3) ? likely[chance(sizeof likely / sizeof likely[0])] : any_word();
    if (chance(3) == 0) {
        uint32_t page = card.missed / PAGE, set = page & (VMMC_SETS - 1);
        card.process[card.missing_process].tag[set][1] = page;
        card.process[card.missing_process].physical[set][1] = page * PAGE;
    }
}
