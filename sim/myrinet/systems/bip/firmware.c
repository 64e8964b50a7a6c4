/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BIP on the card: short messages go out as the host has stored them, arrived ones into a ring; long ones wait until
 * the receiver has said where they go, then both DMA engines and the wire work on successive packets. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/bip/layout.h"

volatile struct bip_card card;

enum { IDLE, FETCH, DELIVER, REPORT };
#include "sim/myrinet/systems/bip/chunk.h"

struct bip_firmware_loop {
    uint32_t engine, node, page;
    uint32_t small;                                      /* the next of the two short buffers */
    uint32_t ring_at, ring_left;                         /* end of the next slot */
    uint32_t from_at, left, fill, fetched, bytes, going; /* the long message that goes out */
    uint32_t room, to_at, expected, asked;               /* the one that comes in */
};

FIRMWARE void open_for_packet(struct bip_firmware_loop *l)
{
    nic_arm(SRAM_AT(card.in[l->room]), sizeof card.in[0]);
}

FIRMWARE void receive(struct bip_firmware_loop *l, uint32_t status)
{
    volatile uint32_t *p = card.in[l->room];
    uint32_t kind = p[0] >> 16, n = p[1];
    if (status & CRCERR) {
        card.errors++;
    } else if (kind == BIP_SHORT) {
        uint32_t size = n * 4 + 12;
        if (n > BIP_SMALL) {
            card.errors++;
            open_for_packet(l);
            return;
        }
        nic_dma(l->ring_at - size, SRAM_AT(p), TO_HOST, size);
        l->engine = DELIVER;
        l->ring_at += BIP_SLOT;
        if (--l->ring_left == 0) {
            l->ring_left = BIP_RING;
            l->ring_at -= BIP_RING * BIP_SLOT;
        }
    } else if (kind == BIP_READY) {
        ready_from[p[0] & (BIP_NODES - 1)]++;
        open_for_packet(l);
        return;
    } else if (n && n <= l->expected) {
        uint32_t fits = l->page - (l->to_at & (l->page - 1));
        if (n <= fits) {
            nic_dma(l->to_at, SRAM_AT(p + 2), TO_HOST, n);
            l->engine = DELIVER;
            l->to_at += n;
            l->expected -= n;
        }
    } else {
        card.early++;
    }
    l->room ^= 1;
    open_for_packet(l);
}

FIRMWARE void fetch(struct bip_firmware_loop *l)
{
    uint32_t n = chunk(l->from_at, l->left, l->page);
    nic_dma(l->from_at, SRAM_AT(card.out[l->fill] + 2), FROM_HOST, n);
    l->engine = FETCH;
    l->bytes = n;
    l->from_at += n;
    l->left -= n;
}

FIRMWARE void report(struct bip_firmware_loop *l, uint32_t at, volatile uint32_t *word)
{
    (*word)++;
    nic_dma(at, SRAM_AT(word), TO_HOST, 4);
    l->engine = REPORT;
}

FIRMWARE void go_on(struct bip_firmware_loop *l, uint32_t status)
{
    if (!(status & SDONE))
        return;
    volatile uint32_t *p = card.out[l->fill];
    uint32_t n = l->bytes;
    l->fetched = 0;
    l->fill ^= 1;
    if (l->left && l->engine == IDLE)
        fetch(l);
    p[0] = BIP_DATA << 16 | l->node;
    p[1] = n;
    nic_send(card.route[card.send.to & (BIP_NODES - 1)], SRAM_AT(p), n + 8);
}

FIRMWARE void step(struct bip_firmware_loop *l)
{
    uint32_t status = nic_read(ISR), n = card.go[l->small].bytes;
    if (RARELY(n) && (status & SDONE)) {
        nic_send(card.route[card.go[l->small].to & (BIP_NODES - 1)], SRAM_AT(card.small[l->small]), n);
        card.go[l->small].bytes = 0;
        l->small ^= 1;
        return;
    }
    if (RARELY(l->engine)) {
        if (!(status & HDONE)) /* all that follows waits for the engine: look again soon */
            return;
        if (l->engine == FETCH) /* a chunk may have waited for the wire while what came in had the engine */
            l->fetched = 1;
        l->engine = IDLE;
    }
    if (RARELY(status & RECV)) {
        receive(l, status);
        return;
    }
    if (RARELY(l->fetched)) {
        go_on(l, status);
        return;
    }
    if (RARELY(l->asked && !l->expected)) {
        l->asked = 0;
        report(l, card.receive.status_at, &card.received);
        card.receive.bytes = 0;
        return;
    }
    if (RARELY(card.send.bytes) && !l->going && ready_from[card.send.to & (BIP_NODES - 1)]) {
        ready_from[card.send.to & (BIP_NODES - 1)]--;
        l->from_at = card.send.at;
        l->left = card.send.bytes;
        l->going = 1;
    }
    if (RARELY(l->going)) {
        if (l->left) {
            fetch(l);
        } else {
            l->going = 0;
            report(l, card.send.status_at, &card.sent);
            card.send.bytes = 0;
        }
        return;
    }
    if (RARELY(card.receive.bytes) && !l->asked && (status & SDONE)) {
        l->to_at = card.receive.at;
        l->expected = card.receive.bytes;
        l->asked = 1;
        card.ready[0] = BIP_READY << 16 | l->node;
        nic_send(card.route[card.receive.from & (BIP_NODES - 1)], SRAM_AT(card.ready), 4);
    }
}

FIRMWARE void init(struct bip_firmware_loop *l)
{
    *l = (struct bip_firmware_loop){0};
    l->node = nic_read(NODE);
    l->page = card.page;
    l->ring_at = card.ring_at + BIP_SLOT;
    l->ring_left = BIP_RING;
    open_for_packet(l);
}

LOOP_OF_CARD(struct bip_firmware_loop)
