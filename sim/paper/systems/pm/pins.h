/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pins.h - PM's pin-down cache: pages that a program has sent from stay pinned until others need their place, the one
 * used longest ago first. No page of a message that is on its way may be given up; who uses this waits for its ACKs. */
#ifndef RNL_PAPER_PM_PINS_H
#define RNL_PAPER_PM_PINS_H

#include "sim/paper/hw/hw.h"

enum { PM_PINNED = 1 << 20 }; /* bytes that are pinned at most */

struct pm_pins {
    uint32_t limit, held; /* pages */
    uint64_t uses;        /* ever, by which `used` tells what is older */
    uint64_t hits, misses;
    struct {
        uint32_t page;
        uint64_t used;
    } entry[PM_PINNED / RNL_HW_PAGE_LEAST];
};

/* Pins what of the area is not pinned yet: a miss costs its page a pin and another one its release. */
void pm_pin(struct pm_pins *, struct rnl_task *, uint32_t at, uint32_t bytes);

#endif
