/* SPDX-License-Identifier: BSD-3-Clause
 *
 * carry-tuned.h - carry.h written again for speed alone: a turn that finds nothing has an instruction less, one test
 * finds what is whole, right and can go up, and the word that says where a frame goes is read before the send engine is
 * looked at. Who includes it has named what carry.h wants. */
#include "sim/myrinet/systems/fm1/queue.h"

struct fm1_tuned_loop {
    struct queue queue;
    uint32_t place_end, ring_end; /* host addresses: of the next place, of the last one */
    uint32_t open, both;          /* buffer for what comes in; its address and the other one's, in one */
};

FIRMWARE void arrived(struct fm1_tuned_loop *l)
{
    uint32_t bytes = ARRIVED(&l->queue), here = l->open;
    nic_write(LAR, here);
    nic_write(EAR, l->place_end - bytes);
    nic_write(CTR, bytes);
    l->open = here ^ l->both;
    nic_arm(l->open, FRAME);
    if (l->place_end == l->ring_end)
        l->place_end -= RING * PLACE;
    l->place_end += PLACE;
}

FIRMWARE void step(struct fm1_tuned_loop *l)
{
    uint32_t status = nic_read(ISR), posted = card.posted;
    if (RARELY(status & (RECV | CRCERR))) {
        uint32_t is = status & (RECV | CRCERR | HDONE);
        if (is == (RECV | HDONE)) {
            arrived(l);
        } else if (RARELY(is == (RECV | CRCERR | HDONE))) { /* the network is taken to be reliable: paper 000, 3.1 */
            card.errors++;
            nic_arm(l->open, FRAME);
        }
    }
    if (RARELY(posted != l->queue.sent)) {
        volatile uint32_t *end = l->queue.next_end;
        uint32_t word = end[-2], bytes = BYTES_OF(&l->queue, word);
        if (status & SDONE) {
            nic_write(SMP, SRAM_AT(end) - bytes);
            nic_write(SRT, ROUTE_OF(word));
            nic_write(SMLT, SRAM_AT(end));
            card.sent = l->queue.sent++; /* those before it have left; this one's place may not be written yet */
            if (end == QUEUE_END)
                end = card.queue[0];
            l->queue.next_end = end + WORDS;
        }
    }
}

FIRMWARE void init(struct fm1_tuned_loop *l)
{
    init_queue(&l->queue);
    l->place_end = card.ring_at + PLACE;
    l->ring_end = card.ring_at + RING * PLACE;
    l->open = SRAM_AT(card.in[0]);
    l->both = l->open ^ SRAM_AT(card.in[1]);
    nic_write(DIR, TO_HOST);
    nic_arm(l->open, FRAME);
}

LOOP_OF_CARD(struct fm1_tuned_loop)
