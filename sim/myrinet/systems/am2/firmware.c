/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AM-II on the card (paper 004, table 1 and reliability): an alternating bit on each of a few channels between two
 * nodes. A message goes again until it is answered; one that has been taken is answered again, and not taken again, so
 * it is handed over exactly once, whatever the network loses. One that nobody takes comes back with a reason. Endpoints
 * are in frames; one that is in the host is asked for when a message for it comes, which is refused meanwhile. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/am2/layout.h"

volatile struct am2_card card;

#include "sim/myrinet/systems/am2/channels.h"

FIRMWARE void step(struct am2_loop *l)
{
    uint32_t status = nic_read(ISR);
#ifdef AM2_BARE
    if (RARELY(l->sending != AM2_NONE) && status & SDONE) {
        finish(l, l->sending, AM2_FREE, 0);
        l->sending = AM2_NONE;
    }
#else
    if (RARELY(l->answers) && status & SDONE)
        send_answer(l, &status);
#endif
    if (RARELY(status & RECV))
        arrived(l, &status);
    if (RARELY(l->engine != AM2_NONE) && status & HDONE)
        engine_is_done(l);
    if (RARELY(l->arriving) && l->engine == AM2_NONE && status & HDONE)
        put_into_host(l);
    else
        look_at_slot(l, status);
#ifndef AM2_BARE
    if (RARELY(status & TIMER)) {
        tick(l);
    } else if (RARELY(l->active) && !l->ticking) {
        l->ticking = 1;
        nic_write(TMR, card.tick);
    }
#endif
}

FIRMWARE void init(struct am2_loop *l)
{
    begin_channels(l);
}

LOOP_OF_CARD(struct am2_loop)
