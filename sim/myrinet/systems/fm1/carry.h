/* SPDX-License-Identifier: BSD-3-Clause
 *
 * carry.h - FM on the card, the few lines that paper 000 (section 3.1, figure 3a) speaks of: a frame of the queue goes
 * out, an arrived one to the next place of the host's ring; credits are the hosts' business. FM 2.x does the same with
 * other frames. What the loop knows is local to it, so that the compiler keeps it in registers: at 5 million
 * instructions a second each one counts. Who includes it has named what queue.h wants, how long a frame is at most
 * (FRAME), how long one is that has arrived (ARRIVED), how many places the host's ring has (RING), and how far they lie
 * apart (PLACE). */
#include "sim/myrinet/systems/fm1/queue.h"

struct fm1_firmware_loop {
    struct queue queue;
    uint32_t place_end, ring_end; /* host addresses: of the next place, of the last one */
    uint32_t open, both;          /* buffer for what comes in; its address and the other one's, in one */
};

FIRMWARE void arrived(struct fm1_firmware_loop *l)
{
    uint32_t bytes = ARRIVED(&l->queue), here = l->open;
    nic_write(LAR, here);
    nic_write(EAR, l->place_end - bytes);
    nic_write(CTR, bytes);
    l->open = here ^ l->both;
    nic_arm(l->open, l->queue.frame);
    if (l->place_end == l->ring_end)
        l->place_end -= RING * PLACE;
    l->place_end += PLACE;
}

FIRMWARE void step(struct fm1_firmware_loop *l)
{
    uint32_t status = nic_read(ISR), posted = card.posted;
    if (RARELY((status & (RECV | HDONE)) == (RECV | HDONE))) {
        if (RARELY(status & CRCERR)) { /* the network is taken to be reliable: paper 000, 3.1 */
            card.errors++;
            nic_arm(l->open, l->queue.frame);
        } else {
            arrived(l);
        }
    }
    if (RARELY(posted != l->queue.sent)) {
        if (status & SDONE)
            send_frame(&l->queue);
    }
}

FIRMWARE void init(struct fm1_firmware_loop *l)
{
    init_queue(&l->queue);
    l->place_end = card.ring_at + PLACE;
    l->ring_end = card.ring_at + RING * PLACE;
    l->open = SRAM_AT(card.in[0]);
    l->both = l->open ^ SRAM_AT(card.in[1]);
    nic_write(DIR, TO_HOST);
    nic_arm(l->open, l->queue.frame);
}

LOOP_OF_CARD(struct fm1_firmware_loop)
