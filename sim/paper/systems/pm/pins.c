/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pins.c - PM's pin-down cache; see pins.h. */
#include "sim/paper/systems/pm/pins.h"

static uint32_t find(const struct pm_pins *p, uint32_t page)
{
    uint32_t i = 0;
    while (i < p->held && p->entry[i].page != page)
        i++;
    return i;
}

static uint32_t oldest(const struct pm_pins *p)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < p->held; i++)
        if (p->entry[i].used < p->entry[least].used)
            least = i;
    return least;
}

void pm_pin(struct pm_pins *p, struct rnl_task *t, uint32_t at, uint32_t bytes)
{
    struct rnl_host *h = t->host;
    uint32_t size = h->hw->page, last = (at + bytes - 1) / size, missed = 0;
    p->limit = PM_PINNED / size;
    for (uint32_t page = at / size; page <= last; page++) {
        uint32_t i = find(p, page);
        if (i < p->held) {
            p->hits++;
        } else {
            missed++;
            if (p->held < p->limit) {
                p->held++;
            } else {
                i = oldest(p);
                h->pins[p->entry[i].page] = 0;
            }
            p->entry[i].page = page;
            h->pins[page] = 1;
        }
        p->entry[i].used = ++p->uses;
    }
    p->misses += missed;
    rnl_task_spend(t, missed * rnl_machine_us(&h->hw->machine, RNL_M_pin_page), "pin");
}
