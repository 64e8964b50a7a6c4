/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM 1.x on the card, the few lines that paper 000 (section 3.1, figure 3a) speaks of: a frame of the queue goes out as
 * it is, an arrived one to the next place of the host's ring; credits are the hosts' business. What the loop knows is
 * local to it, so that the compiler keeps it in registers: at 5 million instructions a second each one counts. */
#include "sim/paper/hw/nic.h"
#include "sim/paper/systems/fm1/layout.h"

volatile struct fm1_card card;
#define QUEUE_END (card.queue[0] + FM1_QUEUE * FM1_WORDS)

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
    nic_arm(l->open, FM1_FRAME);
    if (l->place_end == l->ring_end)
        l->place_end -= FM1_RING * FM1_FRAME;
    l->place_end += FM1_FRAME;
}

FIRMWARE void send(struct loop *l)
{
    volatile uint32_t *end = l->next_end;
    uint32_t first = end[-2], bytes = ((first >> 24) + FM1_HEADER + 3) & ~3u;
    nic_write(SRT, card.route[first >> 16 & (FM1_NODES - 1)]);
    nic_write(SMP, SRAM_AT(end) - bytes);
    nic_write(SMLT, SRAM_AT(end));
    card.sent = l->sent++; /* those before it have left; this one's place may not be written yet */
    if (end == QUEUE_END)
        end = card.queue[0];
    l->next_end = end + FM1_WORDS;
}

FIRMWARE void step(struct loop *l)
{
    uint32_t status = nic_read(ISR), posted = card.posted;
    if (RARELY((status & (RECV | HDONE)) == (RECV | HDONE))) {
        if (RARELY(status & CRCERR)) { /* the network is taken to be reliable: paper 000, 3.1 */
            card.errors++;
            nic_arm(l->open, FM1_FRAME);
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
    l->place_end = card.ring_at + FM1_FRAME;
    l->ring_end = card.ring_at + FM1_RING * FM1_FRAME;
    l->next_end = card.queue[0] + FM1_WORDS;
    l->open = SRAM_AT(card.in[0]);
    l->both = l->open ^ SRAM_AT(card.in[1]);
    nic_write(DIR, TO_HOST);
    nic_arm(l->open, FM1_FRAME);
}

LOOP_OF_CARD(struct loop)
