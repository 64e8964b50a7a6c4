/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BIP on the card: short messages go out as the host has stored them, arrived ones into a ring; long ones wait until
 * the receiver has said where they go, then both DMA engines and the wire work on successive packets. */
#include "sim/paper/hw/nic.h"
#include "sim/paper/systems/bip/layout.h"

volatile struct bip_card card;

enum { IDLE, FETCH, DELIVER, REPORT };
static uint32_t engine, node;
static uint32_t small;                                      /* the next of the two short buffers */
static uint32_t ring_at, ring_left;                         /* end of the next slot */
static uint32_t from_at, left, fill, fetched, bytes, going; /* the long message that goes out */
static uint32_t room, to_at, expected, asked;               /* the one that comes in */
static uint32_t ready_from[BIP_NODES];                      /* receivers that have posted */

FIRMWARE void open_for_packet(void)
{
    nic_arm(SRAM_AT(card.in[room]), sizeof card.in[0]);
}

FIRMWARE void receive(uint32_t status)
{
    volatile uint32_t *p = card.in[room];
    uint32_t kind = p[0] >> 16, n = p[1];
    if (status & CRCERR) {
        card.errors++;
    } else if (kind == BIP_SHORT) {
        uint32_t size = n * 4 + 12;
        if (n > BIP_SMALL) {
            card.errors++;
            open_for_packet();
            return;
        }
        nic_dma(ring_at - size, SRAM_AT(p), TO_HOST, size);
        engine = DELIVER;
        ring_at += BIP_SLOT;
        if (--ring_left == 0) {
            ring_left = BIP_RING;
            ring_at -= BIP_RING * BIP_SLOT;
        }
    } else if (kind == BIP_READY) {
        ready_from[p[0] & (BIP_NODES - 1)]++;
        open_for_packet();
        return;
    } else if (n && n <= expected) {
        uint32_t fits = BIP_PAGE - (to_at & (BIP_PAGE - 1));
        if (n <= fits) {
            nic_dma(to_at, SRAM_AT(p + 2), TO_HOST, n);
            engine = DELIVER;
            to_at += n;
            expected -= n;
        }
    } else {
        card.early++;
    }
    room ^= 1;
    open_for_packet();
}

FIRMWARE void fetch(void)
{
    uint32_t fits = BIP_PAGE - (from_at & (BIP_PAGE - 1)), n = card.send.packet;
    if (n > left)
        n = left;
    if (n > fits)
        n = fits;
    nic_dma(from_at, SRAM_AT(card.out[fill] + 2), FROM_HOST, n);
    engine = FETCH;
    bytes = n;
    from_at += n;
    left -= n;
}

FIRMWARE void report(uint32_t at, volatile uint32_t *word)
{
    (*word)++;
    nic_dma(at, SRAM_AT(word), TO_HOST, 4);
    engine = REPORT;
}

FIRMWARE void go_on(uint32_t status)
{
    if (!(status & SDONE))
        return;
    volatile uint32_t *p = card.out[fill];
    uint32_t n = bytes;
    fetched = 0;
    fill ^= 1;
    if (left && engine == IDLE)
        fetch();
    p[0] = BIP_DATA << 16 | node;
    p[1] = n;
    nic_send(card.route[card.send.to & (BIP_NODES - 1)], SRAM_AT(p), n + 8);
}

FIRMWARE void step(void)
{
    uint32_t status = nic_read(ISR), n = card.go[small].bytes;
    if (n && (status & SDONE)) {
        nic_send(card.route[card.go[small].to & (BIP_NODES - 1)], SRAM_AT(card.small[small]), n);
        card.go[small].bytes = 0;
        small ^= 1;
        return;
    }
    if (engine && (status & HDONE)) {
        fetched = engine == FETCH;
        engine = IDLE;
    }
    if ((status & RECV) && !engine) {
        receive(status);
        return;
    }
    if (fetched) {
        go_on(status);
        return;
    }
    if (going) {
        if (!engine) {
            if (left) {
                fetch();
            } else {
                going = 0;
                report(card.send.status_at, &card.sent);
                card.send.bytes = 0;
            }
        }
        return;
    }
    if (asked && !expected) {
        if (!engine) {
            asked = 0;
            report(card.receive.status_at, &card.received);
            card.receive.bytes = 0;
        }
        return;
    }
    if (card.receive.bytes && !asked && (status & SDONE)) {
        to_at = card.receive.at;
        expected = card.receive.bytes;
        asked = 1;
        card.ready[0] = BIP_READY << 16 | node;
        nic_send(card.route[card.receive.from & (BIP_NODES - 1)], SRAM_AT(card.ready), 4);
        return;
    }
    if (card.send.bytes && ready_from[card.send.to & (BIP_NODES - 1)]) {
        ready_from[card.send.to & (BIP_NODES - 1)]--;
        from_at = card.send.at;
        left = card.send.bytes;
        going = 1;
    }
}

void fw_init(void);
void fw_init(void)
{
    node = nic_read(NODE);
    ring_at = card.ring_at + BIP_SLOT;
    ring_left = BIP_RING;
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
