/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AM-II on the card (paper 004, table 1 and reliability): an alternating bit on each of a few channels between two
 * nodes. A message goes again until it is answered; one that has been taken is answered again, and not taken again, so
 * it is handed over exactly once, whatever the network loses. One that nobody takes comes back with a reason. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/am2/layout.h"

volatile struct am2_card card;

#include "sim/myrinet/systems/am2/channels.h"

FIRMWARE void step(struct am2_loop *l)
{
    uint32_t status = nic_read(ISR);
#ifdef AM2_BARE
    if (RARELY(l->leaving != AM2_NONE) && status & SDONE) {
        finish(l, l->leaving, AM2_FREE, 0);
        l->leaving = AM2_NONE;
    }
#endif
    if (RARELY(status & RECV))
        arrived(l, status);
    if (RARELY(l->engine != AM2_NONE) && status & HDONE) {
        if (l->engine == AM2_SLOTS)
            card.ready = ++l->ready;
        else
            card.state[l->engine] = AM2_POSTED;
        l->engine = AM2_NONE;
    }
    if (RARELY(l->ready != l->taken_in) && l->engine == AM2_NONE && status & HDONE)
        put_into_host(l);
    else
        look_at_slot(l, status);
#ifndef AM2_BARE
    if (RARELY(l->answers) && nic_read(ISR) & SDONE) {
        volatile uint32_t *a = card.answer[l->answer_at];
        l->answer_at = (l->answer_at + 1) & (AM2_ANSWERS - 1);
        l->answers--;
        nic_send(card.route[a[0] & (AM2_NODES - 1)], SRAM_AT(&a[1]), 8);
    }
    if (RARELY(status & TIMER))
        tick(l);
    else if (RARELY(l->active) && !l->ticking) {
        l->ticking = 1;
        nic_write(TMR, card.tick);
    }
#endif
}

static void init(struct am2_loop *l)
{
    begin_channels(l);
}

LOOP_OF_CARD(struct am2_loop)
