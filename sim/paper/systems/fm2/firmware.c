/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM 2.x on the card: packets of the queue go out as the host has stored them, arrived ones go to the next slot of the
 * host's ring. One buffer is filled from the wire while the other one crosses the bus. */
#include "sim/paper/hw/nic.h"
#include "sim/paper/systems/fm2/layout.h"

volatile struct fm2_card card;
#define QUEUE_END (card.queue[0] + FM2_QUEUE * FM2_WORDS)

struct loop {
    uint32_t sent, place_end, ring_end; /* host addresses: of the next place, of the last one */
    volatile uint32_t *next_end;        /* of the next frame of the queue */
    uint32_t open, both;                /* buffer for what comes in; its address and the other one's, in one */
};

FIRMWARE void arrived(struct loop *l)
{
    uint32_t bytes = nic_read(RLEN), here = l->open;
    nic_write(LAR, here);
    nic_write(EAR, l->place_end - bytes);
    nic_write(CTR, bytes);
    l->open = here ^ l->both;
    nic_arm(l->open, sizeof card.in[0]);
    if (l->place_end == l->ring_end)
        l->place_end -= FM2_RING * FM2_SLOT;
    l->place_end += FM2_SLOT;
}

FIRMWARE void send(struct loop *l)
{
    volatile uint32_t *end = l->next_end;
    uint32_t first = end[-2], bytes = ((first >> 16) + FM2_TRAILER + 3) & ~3u;
    nic_write(SRT, card.route[first >> 8 & (FM2_NODES - 1)]);
    nic_write(SMP, SRAM_AT(end) - bytes);
    nic_write(SMLT, SRAM_AT(end));
    card.sent = l->sent++; /* those before it have left; this one's place may not be written yet */
    if (end == QUEUE_END)
        end = card.queue[0];
    l->next_end = end + FM2_WORDS;
}

FIRMWARE void step(struct loop *l)
{
    uint32_t status = nic_read(ISR), posted = card.posted;
    if (RARELY((status & (RECV | HDONE)) == (RECV | HDONE))) {
        if (RARELY(status & CRCERR)) { /* the network is taken to be reliable: paper 000, 3.1 */
            card.errors++;
            nic_arm(l->open, sizeof card.in[0]);
        } else {
            arrived(l);
        }
    }
    if (RARELY(posted != l->sent)) {
        if (status & SDONE)
            send(l);
    }
}

FIRMWARE void init(struct loop *l)
{
    l->sent = 0;
    l->place_end = card.ring_at + FM2_SLOT;
    l->ring_end = card.ring_at + FM2_RING * FM2_SLOT;
    l->next_end = card.queue[0] + FM2_WORDS;
    l->open = SRAM_AT(card.in[0]);
    l->both = l->open ^ SRAM_AT(card.in[1]);
    nic_write(DIR, TO_HOST);
    nic_arm(l->open, sizeof card.in[0]);
}

LOOP_OF_CARD(struct loop)
