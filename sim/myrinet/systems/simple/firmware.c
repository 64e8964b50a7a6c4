/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The survey's simple protocol on the card: DMA both ways, dropped when no host buffer is free. Two buffers each way,
 * so that fetching one packet, sending the one before and putting an arrived one into the host overlap. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/simple/layout.h"

volatile struct simple_card card;

enum { NOBODY, FETCH, DELIVER };
static uint32_t out_bytes[2], out_route[2];
static uint32_t in_bytes[2];

struct simple_firmware_loop {
    uint32_t engine; /* who has the host DMA engine: nobody, FETCH or DELIVER */
    uint32_t node, area;
    uint32_t fetch_at, release_at, first, full, sending;
    uint32_t deliver_at, filled, filling, leaving;
};

FIRMWARE void open_for_packet(struct simple_firmware_loop *l)
{
    nic_arm(SRAM_AT(card.in[l->filling]), sizeof card.in[0]);
}

FIRMWARE void receive(struct simple_firmware_loop *l, uint32_t status)
{
    if (!(status & RECV))
        return;
    if (status & CRCERR) {
        card.errors++;
        open_for_packet(l);
    } else if (l->filled < 2) {
        in_bytes[l->filling] = nic_read(RLEN);
        l->filled++;
        l->filling ^= 1;
        if (l->filled < 2)
            open_for_packet(l);
    }
}

/* The buffer that was leaving is free. */
FIRMWARE void release_buffer(struct simple_firmware_loop *l)
{
    l->leaving ^= 1;
    if (l->filled-- == 2)
        open_for_packet(l);
}

FIRMWARE void deliver(struct simple_firmware_loop *l)
{
    uint32_t to = card.receive[l->deliver_at], bytes = in_bytes[l->leaving];
    if (to) {
        card.receive[l->deliver_at] = 0; /* before the transfer: who has seen its end gives the entry a buffer again */
        l->deliver_at = (l->deliver_at + 1) & (SIMPLE_RING - 1);
        /* the payload ends where the flag begins, at the same place of each buffer */
        nic_dma(to + SIMPLE_MAX - (bytes - 4), SRAM_AT(card.in[l->leaving]), TO_HOST, bytes);
        l->engine = DELIVER;
    } else {
        card.dropped++;
        release_buffer(l);
    }
}

FIRMWARE void fetch(struct simple_firmware_loop *l)
{
    volatile struct simple_descriptor *d = &card.send[l->fetch_at];
    if (d->flag != SIMPLE_POSTED)
        return;
    uint32_t bytes = (d->bytes + 3) & ~3u, buffer = l->first ^ (l->full & 1);
    nic_dma(l->area + d->offset, SRAM_AT(card.out[buffer]), FROM_HOST, bytes);
    l->engine = FETCH;
    d->flag = SIMPLE_TAKEN;
    l->fetch_at = (l->fetch_at + 1) & (SIMPLE_RING - 1);
    out_bytes[buffer] = bytes + 4;
    out_route[buffer] = card.route[d->to & (SIMPLE_NODES - 1)];
    card.out[buffer][bytes >> 2] = SIMPLE_MARK | l->node << 16 | d->bytes;
}

FIRMWARE void step(struct simple_firmware_loop *l)
{
    uint32_t status = nic_read(ISR);
    receive(l, status);
    if (RARELY(l->engine) && (status & HDONE)) {
        if (l->engine == DELIVER)
            release_buffer(l);
        else
            l->full++;
        l->engine = NOBODY;
    }
    if (RARELY(l->sending) && (status & SDONE)) { /* it has left: its descriptor is free */
        card.send[l->release_at].flag = SIMPLE_FREE;
        l->release_at = (l->release_at + 1) & (SIMPLE_RING - 1);
        l->sending = 0;
        l->full--;
        l->first ^= 1;
    }
    if (RARELY(l->full) && !l->sending) {
        nic_send(out_route[l->first], SRAM_AT(card.out[l->first]), out_bytes[l->first]);
        l->sending = 1;
    }
    if (!l->engine) {
        if (l->filled)
            deliver(l);
        else if (l->full < 2)
            fetch(l);
    }
}

FIRMWARE void init(struct simple_firmware_loop *l)
{
    *l = (struct simple_firmware_loop){0};
    l->node = nic_read(NODE);
    l->area = card.area;
    open_for_packet(l);
}

LOOP_OF_CARD(struct simple_firmware_loop)
