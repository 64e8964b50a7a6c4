/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - VMMC's library (paper 002, sections 3 and 4): export, import, send. There is no receive: a receiver looks at
 * its memory, or asks to be notified.
 *
 * The daemons' work (pins and tables, agreed on over Ethernet) is done here at once and without time; daemon.h has
 * daemons that are processes, and ask for it in theirs. Process k of a
 * node sees, of the card, only its own send queue: its task's map. */
#ifndef MYRI_VMMC_HOST_H
#define MYRI_VMMC_HOST_H

#include "sim/myrinet/systems/system.h"
#include "sim/myrinet/systems/vmmc/layout.h"

/* A process that may import a buffer. */
struct vmmc_importer {
    uint32_t node, process;
};
enum { VMMC_EXPORTS = MYRI_HW_NODES, VMMC_IMPORTERS = 4 }; /* of a process; of a buffer that is not for everybody */

struct vmmc {
    struct myri_hw *hw;
    struct myri_host *host;
    struct myri_card *card_of;
    struct myri_task *task; /* set when it runs */
    uint32_t process;
    uint32_t card, status; /* SRAM; host */
    uint32_t posted, known_free, longs;
    uint32_t imported; /* pages */
    struct {
        uint32_t at, bytes, importers; /* bytes 0: a free entry; importers 0: everybody */
        struct vmmc_importer importer[VMMC_IMPORTERS];
    } exported[VMMC_EXPORTS]; /* what the daemon of this node knows of them */
};

/* Process `process` of `node` attaches to the card. 0, or -1 with a fault of the machine. */
int vmmc_attach(struct vmmc *, struct myri_hw *, uint32_t node, uint32_t process);
/* Pages of the own memory, pinned from now on, may be written by who imports them: everybody may if n is 0, else these
 * n processes alone. 0, or -1: the daemon keeps VMMC_EXPORTS buffers of a process, VMMC_IMPORTERS of each. */
int vmmc_export(struct vmmc *, uint32_t at, uint32_t bytes, int notify, const struct vmmc_importer *only, uint32_t n);
/* From now on sends to this buffer are refused, also by who imported it before. */
void vmmc_unexport(struct vmmc *, uint32_t at, uint32_t bytes);
/* Whether the exporter's daemon gives these pages to that process. */
int vmmc_permits(const struct vmmc *exporter, const struct vmmc *importer, uint32_t at, uint32_t bytes);
/* The proxy address for them. 0: not part of one buffer that is exported to this process, or no room for that many
 * pages (8 MB a process). */
uint32_t vmmc_import(struct vmmc *, const struct vmmc *exporter, uint32_t at, uint32_t bytes);
/* What serves the card's interrupts: translations that are missing. */
void vmmc_driver(struct myri_host *, uint32_t value);
/* Puts translations into the TLB and pins, as the driver does at a miss. */
void vmmc_translate(struct vmmc *, uint32_t address, uint32_t pages);

/* From a task. Asynchronous: of a long message the memory may be read until vmmc_wait returns. */
void vmmc_post(struct vmmc *, uint32_t from, uint32_t proxy, uint32_t bytes);
/* One look (002, 5.3): whether the first so many long sends have been taken, `longs` as it is behind the post of one. A
 * call, and a look at the word that the card writes. */
int vmmc_check(struct vmmc *, uint32_t longs);
void vmmc_wait(struct vmmc *); /* until all long ones have been taken */
void vmmc_send(struct vmmc *, uint32_t from, uint32_t proxy, uint32_t bytes);

#endif
