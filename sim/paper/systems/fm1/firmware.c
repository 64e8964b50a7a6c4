/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM 1.x on the card: frames of the queue go out as they are; arrived ones go to the host's ring, all that wait in a
 * row by one DMA. Credits are the hosts' business. Queues are walked by pointer, as there is no multiplication. */
#include "sim/paper/hw/nic.h"
#include "sim/paper/systems/fm1/layout.h"

volatile struct fm1_card card;
#define ARRIVED_END (card.arrived[0] + FM1_ARRIVED * FM1_WORDS)

static uint32_t sent, got, moving, ring_at, ring_left;
static volatile struct fm1_slot *next;
static volatile uint32_t *fill, *drain;

FIRMWARE void open_for_frame(void)
{
    nic_arm(SRAM_AT(fill), FM1_FRAME);
}

FIRMWARE volatile uint32_t *after(volatile uint32_t *frame)
{
    frame += FM1_WORDS;
    return frame == ARRIVED_END ? card.arrived[0] : frame;
}

FIRMWARE void moved(uint32_t bytes)
{
    ring_at += bytes;
    if (!ring_left) {
        ring_left = FM1_RING;
        ring_at -= FM1_RING * FM1_FRAME;
    }
}

/* As many of those that wait as lie in a row, here and in the ring. */
FIRMWARE void deliver(void)
{
    uint32_t bytes = 0;
    volatile uint32_t *end = drain;
    do {
        bytes += FM1_FRAME;
        end += FM1_WORDS;
        moving++;
        ring_left--;
    } while (end != ARRIVED_END && moving < got && ring_left);
    nic_dma(ring_at, SRAM_AT(drain), TO_HOST, bytes);
    drain = end == ARRIVED_END ? card.arrived[0] : end;
    moved(bytes);
}

/* The frame goes first, whatever is to be noted about it later. */
FIRMWARE void arrived(uint32_t status)
{
    if (status & CRCERR) {
        card.errors++;
        open_for_frame();
        return;
    }
    if (!got) { /* nothing waits, so the engine is idle */
        nic_dma(ring_at, SRAM_AT(fill), TO_HOST, FM1_FRAME);
        fill = drain = after(fill);
        open_for_frame();
        got = moving = 1;
        ring_left--;
        moved(FM1_FRAME);
    } else if (got < FM1_ARRIVED - 1) {
        got++;
        fill = after(fill);
        open_for_frame();
    }
}

FIRMWARE void send(void)
{
    volatile struct fm1_slot *slot = next;
    nic_send(slot->route, SRAM_AT(slot), FM1_FRAME);
    card.sent = sent++; /* those before it have left; this one's slot may not be written yet */
    slot++;
    next = slot == card.queue + FM1_QUEUE ? card.queue : slot;
}

FIRMWARE void step(void)
{
    uint32_t status = nic_read(ISR);
    if (status & RECV)
        arrived(status);
    if (card.posted != sent && (status & SDONE))
        send();
    if (moving && (status & HDONE)) {
        status = nic_read(ISR); /* it may be the one that has just been started */
        if (status & HDONE) {
            got -= moving;
            moving = 0;
            if (got)
                deliver();
        }
    }
}

void fw_init(void);
void fw_init(void)
{
    ring_at = card.ring_at;
    ring_left = FM1_RING;
    next = card.queue;
    fill = drain = card.arrived[0];
    open_for_frame();
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
