/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - Hamlyn (paper 004; Buzzard et al. 1996): the receiver makes slots, each with a key; who has the key says
 * where in the slot a message belongs, and so manages the receiver's memory. All addresses are of the process's space.
 * Slots, and what is sent by DMA, lie in the process's area, which is pinned. Nothing is sent again. */
#ifndef MYRI_HAMLYN_HOST_H
#define MYRI_HAMLYN_HOST_H

#include "sim/myrinet/systems/hamlyn/layout.h"
#include "sim/myrinet/systems/system.h"

struct ham {
    struct myri_hw *hw;
    struct myri_host *host;
    struct myri_card *card_of;
    struct myri_space *space;
    struct myri_task *task;      /* set when it runs */
    uint32_t process, card;      /* card: SRAM */
    uint32_t area, area_bytes;   /* the process's own */
    uint32_t records, trouble;   /* host addresses */
    uint32_t sent, left;         /* messages; those of them that are known to have left the host */
    uint32_t taken, told, slots; /* records; how many the card knows to be taken; slots ever made */
};
/* What an owner gives to those who may write into its slot. */
struct ham_address {
    uint32_t node, process, slot, bytes, key[2];
};
struct ham_record { /* of a message that has come */
    uint32_t node, process, slot, offset, bytes;
};
struct ham_trouble { /* what has been refused: how often, and the last of it */
    uint32_t times, reason, node, process, slot, offset;
};

/* The kernel opens the card for a process. 0, or -1 with a fault. `notify`: messages that ask for it interrupt. */
int ham_open(struct ham *, struct myri_hw *, uint32_t node, uint32_t process, struct myri_space *, uint32_t area_bytes,
             int notify);
/* The kernel makes a slot of bytes in the area, with a new key, or takes it back: what comes for it from then on is
 * refused, and nothing is put there any more when `revoke` returns. -1: not in the area, or there are HAM_SLOTS. */
int ham_slot_create(struct ham *, uint32_t at, uint32_t bytes, struct ham_address *out);
void ham_slot_revoke(struct ham *, const struct ham_address *);

/* From a task. A message to an offset of a slot, from a whole word of the area; if it is short, from anywhere. `what`
 * is HAM_WITH_RECORD, HAM_WITH_INTERRUPT, both or neither. The memory may be used again when ham_sent says so of the
 * number that send returns. HAM_OPEN messages of several packets can be under way to a node; a receiver's queue has
 * HAM_RECORDS places, less half of them that it may be behind with: that there is room is for senders to know. */
uint32_t ham_send(struct ham *, const struct ham_address *to, uint32_t offset, uint32_t at, uint32_t bytes,
                  uint32_t what);
void ham_sent(struct ham *, uint32_t number);
/* The next record. 1, or 0 when none has come by the tick. */
int ham_meta_poll(struct ham *, struct ham_record *out, uint64_t until);
struct ham_trouble ham_trouble(const struct ham *);

#endif
