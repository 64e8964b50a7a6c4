/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The survey's simple protocol written again for speed alone: a turn that finds nothing looks at the status and at one
 * descriptor; what has been fetched leaves in the turn that finds it there, and what has come goes on to the host in
 * the turn that finds that, while the other buffer stands open. A packet that comes while the engine works waits where
 * it is. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/simple/layout.h"

volatile struct simple_card card;

enum { READY = 1 << 30 }; /* no bit of the status: a packet is fetched, and waits until the one before it has left */

struct simple_tuned_loop {
    uint32_t wakes; /* bits of the status that there is something to do for, with HDONE while the engine works; READY */
    uint32_t fetching; /* the engine does that; else it delivers, or nothing */
    uint32_t node, area;
    volatile struct simple_descriptor *head, *leaving; /* the next to be fetched; to be freed */
    volatile uint32_t *place;                          /* of the next free host buffer */
    uint32_t fill, out_both;                           /* SRAM: buffer that is filled next; xor with the other one */
    uint32_t bytes, route;                             /* of the packet in it */
    uint32_t open, in_both;                            /* the one that is open */
};

FIRMWARE void launch(struct simple_tuned_loop *l)
{
    nic_send(l->route, l->fill, l->bytes);
    l->fill ^= l->out_both;
    l->wakes |= SDONE;
}

FIRMWARE void fetch(struct simple_tuned_loop *l)
{
    volatile struct simple_descriptor *d = l->head;
    uint32_t bytes = d->bytes, padded = (bytes + 3) & ~3u, at = l->fill;
    nic_dma(l->area + d->offset, at, FROM_HOST, padded);
    l->fetching = 1;
    l->wakes ^= HDONE | RECV;
    d->flag = SIMPLE_TAKEN;
    WORDS_AT(at)[padded >> 2] = SIMPLE_MARK | l->node << 16 | bytes;
    l->bytes = padded + 4;
    l->route = card.route[d->to & (SIMPLE_NODES - 1)];
    l->head = d == &card.send[SIMPLE_RING - 1] ? card.send : d + 1;
}

FIRMWARE void arrived(struct simple_tuned_loop *l, uint32_t status)
{
    uint32_t to = *l->place, here = l->open, bytes = nic_read(RLEN);
    if (RARELY(status & CRCERR || !to)) {
        if (status & CRCERR)
            card.errors++;
        else
            card.dropped++;
        nic_arm(here, sizeof card.in[0]);
        return;
    }
    *l->place = 0; /* before the transfer: who has seen its end gives the entry a buffer again */
    /* the payload ends where the flag begins, at the same place of each buffer */
    nic_dma(to + SIMPLE_MAX - (bytes - 4), here, TO_HOST, bytes);
    l->wakes ^= HDONE | RECV;
    l->open = here ^ l->in_both;
    nic_arm(l->open, sizeof card.in[0]);
    l->place = l->place == &card.receive[SIMPLE_RING - 1] ? card.receive : l->place + 1;
}

/* What the status has a bit for. */
FIRMWARE void attend(struct simple_tuned_loop *l, uint32_t status)
{
    uint32_t now = status & l->wakes, waits = 0;
    if (now & SDONE) { /* it has left: its descriptor is free */
        volatile struct simple_descriptor *d = l->leaving;
        l->wakes &= ~(uint32_t)SDONE;
        waits = l->wakes & READY;
        d->flag = SIMPLE_FREE;
        l->leaving = d == &card.send[SIMPLE_RING - 1] ? card.send : d + 1;
    }
    if (now & HDONE) {
        l->wakes ^= HDONE | RECV;
        if (l->fetching) {
            l->fetching = 0;
            waits = !(l->wakes & SDONE);
            l->wakes |= READY;
        }
    }
    if (waits) {
        launch(l);
        l->wakes &= ~(uint32_t)READY;
    }
    if (status & l->wakes & RECV)
        arrived(l, status);
}

FIRMWARE void step(struct simple_tuned_loop *l)
{
    uint32_t status = nic_read(ISR);
    if (RARELY(status & l->wakes))
        attend(l, status);
    else if (!(l->wakes & (HDONE | READY)) && RARELY(l->head->flag == SIMPLE_POSTED))
        fetch(l);
}

FIRMWARE void init(struct simple_tuned_loop *l)
{
    l->wakes = RECV;
    l->fetching = l->bytes = l->route = 0;
    l->node = nic_read(NODE);
    l->area = card.area;
    l->head = l->leaving = card.send;
    l->place = card.receive;
    l->fill = SRAM_AT(card.out[0]);
    l->out_both = l->fill ^ SRAM_AT(card.out[1]);
    l->open = SRAM_AT(card.in[0]);
    l->in_both = l->open ^ SRAM_AT(card.in[1]);
    nic_arm(l->open, sizeof card.in[0]);
}

LOOP_OF_CARD(struct simple_tuned_loop)
