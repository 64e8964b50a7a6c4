/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - AM-II (paper 004, table 1): active messages that are handed over exactly once, or returned with a reason,
 * on a network that may lose packets. Not in order, as AM-2 has it. Handlers may not send. */
#ifndef MYRI_AM2_HOST_H
#define MYRI_AM2_HOST_H

#include "sim/myrinet/systems/am2/layout.h"
#include "sim/myrinet/systems/system.h"

struct am2;
/* `at`: in host memory. */
typedef void am2_handler(struct am2 *, uint32_t from, uint32_t at, uint32_t bytes);
/* Handler 0 of AM-2: a message to that node came back, for one of the reasons of layout.h. */
typedef void am2_returned(struct am2 *, uint32_t to, uint32_t reason);

struct am2 {
    struct myri_side *side;
    void *owner;
    uint32_t card, out, in, words; /* SRAM; host addresses: areas, and where a short one is read to */
    uint32_t next, ready;          /* slot that is used next; messages that the card was known to have */
    uint32_t taken;
    uint32_t used[AM2_SLOTS]; /* a message was put there */
    am2_handler *handler[256];
    am2_returned *returned;
    uint32_t handled;
    uint32_t back, why; /* messages that came back, and the reason of the last one */
};

int am2_init(struct am2 *, struct myri_side *);
/* AM_RequestI: a message of up to 8 KB from host memory; waits for a slot, and polls meanwhile. */
void am2_request(struct am2 *, uint32_t to, uint32_t handler, uint32_t from, uint32_t bytes);
/* AM_Poll: handlers of what is here, and of what came back; how many. It looks across the bus. */
uint32_t am2_poll(struct am2 *);

#endif
