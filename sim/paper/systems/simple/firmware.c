/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The survey's simple protocol on the card: DMA both ways, dropped when no host buffer is free. Two buffers each way,
 * so that fetching one packet, sending the one before and putting an arrived one into the host overlap. */
#include "sim/paper/hw/nic.h"
#include "sim/paper/systems/simple/layout.h"

volatile struct simple_card card;

static uint32_t engine; /* who has the host DMA engine: nobody, FETCH or DELIVER */
enum { NOBODY, FETCH, DELIVER };
static uint32_t node, area;
static uint32_t fetch_at, release_at, first, full, sending, out_bytes[2], out_route[2];
static uint32_t deliver_at, filled, filling, leaving, in_bytes[2];

FIRMWARE void open_for_packet(void)
{
    nic_arm(SRAM_AT(card.in[filling]), sizeof card.in[0]);
}

FIRMWARE void receive(uint32_t status)
{
    if (!(status & RECV))
        return;
    if (status & CRCERR) {
        card.errors++;
        open_for_packet();
    } else if (filled < 2) {
        in_bytes[filling] = nic_read(RLEN);
        filled++;
        filling ^= 1;
        if (filled < 2)
            open_for_packet();
    }
}

/* The buffer that was leaving is free. */
FIRMWARE void release_buffer(void)
{
    leaving ^= 1;
    if (filled-- == 2)
        open_for_packet();
}

FIRMWARE void deliver(void)
{
    uint32_t to = card.receive[deliver_at], bytes = in_bytes[leaving];
    if (to) {
        card.receive[deliver_at] = 0; /* before the transfer: who has seen its end gives the entry a buffer again */
        deliver_at = (deliver_at + 1) & (SIMPLE_RING - 1);
        /* the payload ends where the flag begins, at the same place of each buffer */
        nic_dma(to + SIMPLE_MAX - (bytes - 4), SRAM_AT(card.in[leaving]), TO_HOST, bytes);
        engine = DELIVER;
    } else {
        card.dropped++;
        release_buffer();
    }
}

FIRMWARE void fetch(void)
{
    volatile struct simple_descriptor *d = &card.send[fetch_at];
    if (d->flag != SIMPLE_POSTED)
        return;
    uint32_t bytes = (d->bytes + 3) & ~3u, buffer = first ^ (full & 1);
    nic_dma(area + d->offset, SRAM_AT(card.out[buffer]), FROM_HOST, bytes);
    engine = FETCH;
    d->flag = SIMPLE_TAKEN;
    fetch_at = (fetch_at + 1) & (SIMPLE_RING - 1);
    out_bytes[buffer] = bytes + 4;
    out_route[buffer] = card.route[d->to & (SIMPLE_NODES - 1)];
    card.out[buffer][bytes >> 2] = SIMPLE_MARK | node << 16 | d->bytes;
}

FIRMWARE void step(void)
{
    uint32_t status = nic_read(ISR);
    receive(status);
    if (engine && (status & HDONE)) {
        if (engine == DELIVER)
            release_buffer();
        else
            full++;
        engine = NOBODY;
    }
    if (sending && (status & SDONE)) { /* it has left: its descriptor is free */
        card.send[release_at].flag = SIMPLE_FREE;
        release_at = (release_at + 1) & (SIMPLE_RING - 1);
        sending = 0;
        full--;
        first ^= 1;
    }
    if (full && !sending) {
        nic_send(out_route[first], SRAM_AT(card.out[first]), out_bytes[first]);
        sending = 1;
    }
    if (!engine) {
        if (filled)
            deliver();
        else if (full < 2)
            fetch();
    }
}

void fw_init(void);
void fw_init(void)
{
    node = nic_read(NODE);
    area = card.area;
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
