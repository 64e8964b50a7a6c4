/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. The kernel's table has translations of pages of one region, with whatever a transfer
 * brings of them: into no other the card may write. */
#ifdef TUNED
#define SYSTEM "vmmc2-tuned"
#include "sim/myrinet/systems/vmmc2/firmware-tuned.c"
#else
#define SYSTEM "vmmc2"
#include "sim/myrinet/systems/vmmc2/firmware.c"
#endif
enum { REGION = 1 << 20 };
#define CONSERVED (native_loop.unacked + native_loop.frees == VMMC2_BUFFERS)
#define PERMITTED(host, sram, bytes)                       \
    ((host) >= REGION && (host) + (bytes) <= 2 * REGION && \
     (bytes) <= 4096 - ((host)&4095)) /* within a page that the kernel has translated */
#define READABLE(host, bytes) ((host) < REGION || (bytes) <= 4096 - ((host)&4095)) /* the kernel's table, or a page */
#define FIRST_WORD(n)         ((chance(3) ? 1 : 2 + chance(2)) << 24 | (1 + chance(3)) << 16 | ((n) > 24 ? (n)-24 : 1))
static uint32_t likely(void);
#define LIKELY_WORD likely
#include "myrinet/native.h"

static uint32_t likely(void)
{
    uint32_t from = 1 + chance(3), which = chance(5);
    if (which < 2) /* numbers of the packets that are next, or kept */
        return which ? number[from] : expected[from] - (chance(6) == 0);
    return which == 2 ? 0 : which == 3 ? 4 * chance(20) : chance(2) << 31 | chance(6);
}

static void host_fills(void)
{
    card.processes = 2;
    card.page_shift = 12;
    card.nodes = 4;
    card.tick = 200;
    card.patience = 2;
    for (uint32_t i = 0; i < VMMC2_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
    for (uint32_t i = 0; i < 2; i++) {
        card.process[i].table_at = 65536;
        card.process[i].references = 64;
        card.process[i].status_at = REGION;
        for (uint32_t k = 0; k < 8; k++)
            card.process[i].outgoing[k] = VMMC2_VALID | (1 + k % 3) << 16 | k;
    }
    for (uint32_t k = 0; k < 5; k++) {
        card.export[k].valid = 1;
        card.export[k].importer = 1 + k % 3;
        card.export[k].reference = k;
        card.export[k].places = 2;
        card.export[k].place_bytes = 64;
        card.export[k].place_shift = 6;
        card.export[k].record_at = REGION + 4096;
        card.export[k].notify = k & 1;
    }
}

static void host_writes(void)
{
    uint32_t i = chance(2), k = chance(VMMC2_QUEUE);
    volatile struct vmmc2_request *e = &card.process[i].queue[k];
    if (!e->bytes) { /* the process writes what it likes */
        e->what = chance(12) ? chance(9) | chance(2) << 31 : any_word();
        e->reference = chance(12) ? chance(70) : any_word();
        e->at = chance(12) ? 4 * chance(1024) : any_word();
        e->offset = chance(3) ? 0 : any_word();
        e->whole = any_word();
        e->bytes = chance(12) ? 1 + chance(200) : any_word();
    }
    k = chance(VMMC2_EXPORTS);
    card.process[i].post[k].reference = chance(8) ? chance(70) : any_word();
    card.process[i].post[k].at = chance(8) ? chance(4096) : any_word();
    card.process[i].post[k].bytes = chance(8) ? chance(128) : any_word();
    card.process[i].post[k].number = chance(100);
    card.process[i].post[k].taken = chance(100);
    if (native_loop.engine == LOOKING) /* what the kernel's table may have */
        for (k = 0; k < VMMC2_LINE; k++)
            card.line[k] = chance(4) ? REGION + 4096 * (2 + chance(100)) : 0;
    card.generation += chance(50) == 0;
}
