/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - PM's library: send buffers are taken, filled in place and sent; received ones are used in place and given
 * back. The running job owns the card (gang scheduling), so nothing on it is protected from it; gang.h has
 * the switch. */
#ifndef MYRI_PM_HOST_H
#define MYRI_PM_HOST_H

#include "sim/myrinet/hw/hw.h"
#include "sim/myrinet/systems/pm/layout.h"
#include "sim/myrinet/systems/system.h"

enum { PM_SLOT = PM_BUFFER + 4096 }; /* a buffer, and behind it its mark */

struct pm {
    struct myri_side *side;
    uint32_t card, out, in;  /* SRAM; host: PM_RING buffers, and `buffers` */
    uint32_t buffers, given; /* given to the card, ever */
    uint32_t sent, known_free, next;
    uint32_t got_at, got_bytes, got_from;
};

int pm_open(struct pm *, struct myri_side *);
/* Where the next message is to be composed: waits while all buffers are on their way. */
uint32_t pm_get_send_buffer(struct pm *);
/* From the send buffer, or from any pinned memory; `at` stays as it is until the message has its ACK. */
void pm_send(struct pm *, uint32_t to, uint32_t at, uint32_t bytes);
/* Sends a message to each of n nodes (paper 004, multicast): the data cross the bus once, the card sends them n times,
 * and fetches them again only for a copy that was refused. `at` stays as it is until all have their ACKs. */
void pm_send_many(struct pm *, const uint32_t *to, uint32_t n, uint32_t at, uint32_t bytes);
int pm_send_done(struct pm *); /* all have their ACKs */
/* 1, and got_at, got_bytes, got_from; 0 by the tick. */
int pm_receive(struct pm *, uint64_t until);
void pm_put_receive_buffer(struct pm *);

/* ---- the pin-down cache ----
 *
 * Pages that a program has sent from stay pinned until others need their place, the one used longest ago first. No page
 * of a message that is on its way may be given up; who uses this waits for its ACKs. */

enum { PM_PINNED = 1 << 20 }; /* bytes that are pinned at most */

struct pm_pins {
    uint32_t limit, held; /* pages */
    uint64_t uses;        /* ever, by which `used` tells what is older */
    uint64_t hits, misses;
    struct {
        uint32_t page;
        uint64_t used;
    } entry[PM_PINNED / MYRI_HW_PAGE_LEAST];
};

/* Pins what of the area is not pinned yet: a miss costs its page a pin and another one its release. */
void pm_pin(struct pm_pins *, struct myri_task *, uint32_t at, uint32_t bytes);

#endif
