/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LFC on the card (paper 004: reliability, multicast, control transfer). A packet goes to the next card only with a
 * credit for one of the buffers that are kept there for this card; without one it waits in that card's queue, and those
 * to others go on. A buffer is free again, and its credit goes back, when the host has the packet, for which it needs a
 * free place there, and the children of a multicast have it. Credits go back with anything that goes that way, or by
 * themselves when half of them are owed.
 *
 * No cycle of waits: a packet that came over a distance d in the numbering of nodes waits at most for credits over a
 * larger one, as the k-th node behind a sender passes on to nodes 2k+1 and 2k+2. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/lfc/layout.h"

volatile struct lfc_card card;

#include "sim/myrinet/systems/lfc/credits.h"

FIRMWARE void step(struct lfc_loop *l)
{
    uint32_t status = nic_read(ISR);
    if (RARELY(status & RECV)) {
        if (RARELY(status & CRCERR)) {
            card.errors++;
            nic_arm(SRAM_AT(packet_at(l->open)), sizeof card.packet[0]);
        } else {
            arrived(l);
        }
    }
    if (RARELY(card.posted != l->seen))
        posted(l);
    if (RARELY(card.question != l->asked))
        question(l);
    if ((status & SDONE) && RARELY(l->sending != LFC_NONE || l->controls || l->ready != LFC_NONE))
        send_next(l);
    if ((status & HDONE) && RARELY(l->putting != LFC_NONE || l->has_value || l->hosts))
        put_next(l);
    if (RARELY(status & TIMER))
        timer(l);
}

LOOP_OF_CARD(struct lfc_loop)
