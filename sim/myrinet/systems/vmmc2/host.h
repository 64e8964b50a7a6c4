/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - VMMC-2's library and kernel module (papers 000, section 5, and 004, address translation). All addresses are
 * of the process's space. What daemons agree on (exports, imports) is done at once and without time. */
#ifndef MYRI_VMMC2_HOST_H
#define MYRI_VMMC2_HOST_H

#include "sim/myrinet/systems/system.h"
#include "sim/myrinet/systems/vmmc2/layout.h"

enum { VMMC2_PINNED = 512 }; /* pages of a process that the library keeps pinned, at most */

struct vmmc2_buffer { /* of an export */
    uint32_t at, bytes, last_bytes;
};
struct vmmc2 {
    struct myri_hw *hw;
    struct myri_host *host;
    struct myri_card *card_of;
    struct myri_space *space;
    struct myri_task *task;                /* set when it runs */
    uint32_t process, card, table, status; /* SRAM; host: the kernel's table; where the card reports */
    uint32_t requests, messages;           /* that have been posted */
    uint32_t end_of[VMMC2_QUEUE];          /* of a message that ends with this request: its number, else 0 */
    uint32_t keeps;                        /* 0: no page stays pinned behind its message */
    uint32_t pinned, exports, imports;
    uint32_t used[MYRI_SPACE_PAGES]; /* of a page: 0, or the number of the last message from there, + 1 */
    uint8_t locked[MYRI_SPACE_PAGES];
    uint64_t pins, releases;
    struct {
        uint32_t staging, place_bytes, places, records, taken; /* addresses; taken: messages */
        struct vmmc2_buffer posted;
    } export[VMMC2_EXPORTS];
};

/* 0, or -1 with a fault of the machine. */
int vmmc2_attach(struct vmmc2 *, struct myri_hw *, uint32_t node, uint32_t process, struct myri_space *);
/* For messages of one importing node, with a staging area of so many (a power of two) messages of that size: the number
 * of the export, or -1. */
int vmmc2_export(struct vmmc2 *, uint32_t importer, uint32_t places, uint32_t bytes, int notify);
/* The number of an import, or -1. */
int vmmc2_import(struct vmmc2 *, const struct vmmc2 *exporter, uint32_t export);

/* The operating system wants the page's memory, and the kernel module drops its reference: 0, or -1 as something is
 * sent from it or may come to it, it is pinned otherwise, or it is out. */
int vmmc2_page_out(struct vmmc2 *, uint32_t at);

/* From a task. Redirection: the export's next message is to lie there, if nothing of it has come yet. */
void vmmc2_redirect(struct vmmc2 *, uint32_t export, uint32_t at, uint32_t bytes);
/* Returns the first of several exports, from `turn` on, whose next message is here, or n when none is by the tick. */
uint32_t vmmc2_poll(struct vmmc2 *, const uint32_t *exports, uint32_t n, uint32_t turn, uint64_t until);
/* Takes an export's next message into the buffer that was posted, from where it was staged if it was, and returns its
 * bytes. 0: it was refused. */
uint32_t vmmc2_take(struct vmmc2 *, uint32_t export);
/* The memory may be used again when vmmc2_wait, or vmmc2_send, returns. */
void vmmc2_post(struct vmmc2 *, uint32_t from, uint32_t import, uint32_t bytes);
void vmmc2_wait(struct vmmc2 *);
void vmmc2_send(struct vmmc2 *, uint32_t from, uint32_t import, uint32_t bytes);

#endif
