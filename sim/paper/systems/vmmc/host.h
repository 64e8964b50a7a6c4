/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - VMMC's library (paper 002, sections 3 and 4): export, import, send. There is no receive: a receiver looks at
 * its memory, or asks to be notified.
 *
 * The daemons' work (pins and tables, agreed on over Ethernet) is done here at once and without time. Process k of a
 * node sees, of the card, only its own send queue: its task's map. */
#ifndef RNL_PAPER_VMMC_HOST_H
#define RNL_PAPER_VMMC_HOST_H

#include "sim/paper/systems/system.h"
#include "sim/paper/systems/vmmc/layout.h"

struct vmmc {
    struct rnl_hw *hw;
    struct rnl_host *host;
    struct rnl_card *card_of;
    struct rnl_task *task; /* set when it runs */
    uint32_t process;
    uint32_t card, status; /* SRAM; host */
    uint32_t posted, known_free, longs;
    uint32_t imported; /* pages */
};

/* Process `process` of `node` attaches to the card. 0, or -1 with a fault of the machine. */
int vmmc_attach(struct vmmc *, struct rnl_hw *, uint32_t node, uint32_t process);
/* Pages of the own memory, pinned from now on, may be written by who imports them. */
void vmmc_export(struct vmmc *, uint32_t at, uint32_t bytes, int notify);
void vmmc_unexport(struct vmmc *, uint32_t at, uint32_t bytes);
/* The proxy address for them. 0: there is no room for that many pages (8 MB a process). */
uint32_t vmmc_import(struct vmmc *, const struct vmmc *exporter, uint32_t at, uint32_t bytes);
/* Puts translations into the TLB and pins, as the driver does at a miss. */
void vmmc_translate(struct vmmc *, uint32_t address, uint32_t pages);

/* From a task. Asynchronous: of a long message the memory may be read until vmmc_wait returns. */
void vmmc_post(struct vmmc *, uint32_t from, uint32_t proxy, uint32_t bytes);
void vmmc_wait(struct vmmc *); /* until all long ones have been taken */
void vmmc_send(struct vmmc *, uint32_t from, uint32_t proxy, uint32_t bytes);

#endif
