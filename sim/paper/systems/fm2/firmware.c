/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM 2.x on the card: packets of the queue go out as the host has stored them, arrived ones go to the next slot of the
 * host's ring. One buffer is filled from the wire while the other one crosses the bus. */
#include "sim/paper/hw/nic.h"
#include "sim/paper/systems/fm2/layout.h"

volatile struct fm2_card card;

static uint32_t sent, room, slot_end, slots_left;
static volatile struct fm2_slot *next;

FIRMWARE void open_for_packet(void)
{
    nic_arm(SRAM_AT(card.in[room]), sizeof card.in[0]);
}

FIRMWARE void arrived(uint32_t status)
{
    uint32_t bytes = nic_read(RLEN);
    if (status & CRCERR) {
        card.errors++;
    } else {
        nic_dma(slot_end - bytes, SRAM_AT(card.in[room]), TO_HOST, bytes);
        room ^= 1;
        slot_end += FM2_SLOT;
        if (--slots_left == 0) {
            slots_left = FM2_RING;
            slot_end -= FM2_RING * FM2_SLOT;
        }
    }
    open_for_packet();
}

FIRMWARE void send(void)
{
    volatile struct fm2_slot *slot = next;
    nic_send(slot->route, SRAM_AT(slot->word), slot->bytes);
    card.sent = sent++; /* those before it have left; this one's slot may not be written yet */
    slot++;
    next = slot == card.queue + FM2_QUEUE ? card.queue : slot;
}

FIRMWARE void step(void)
{
    uint32_t status = nic_read(ISR);
    if ((status & (RECV | HDONE)) == (RECV | HDONE))
        arrived(status);
    if (card.posted != sent && (status & SDONE))
        send();
}

void fw_init(void);
void fw_init(void)
{
    slot_end = card.ring_at + FM2_SLOT;
    slots_left = FM2_RING;
    next = card.queue;
    open_for_packet();
}

void fw_step(void);
void fw_step(void)
{
    step();
}

void fw_main(void);
void fw_main(void)
{
    fw_init();
    for (;;)
        step();
}
