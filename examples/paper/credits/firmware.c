/* SPDX-License-Identifier: BSD-3-Clause
 *
 * firmware.c - the program of the card: one endless loop, each turn of which looks at the status of the three engines
 * (host DMA, send, receive) and starts what can be started. It never waits. It has no library, and the processor
 * neither multiplies nor divides.
 *
 * nic.h, below include/runnel/paper/sim/myrinet/hw where runnel is installed, says which registers there are. What host
 * and card share lies in `card`; all else belongs into `struct loop`, which the compiler keeps in registers. */
#include "layout.h"
#include "sim/myrinet/hw/nic.h"

volatile struct card card;

enum { NOTHING, FETCH, DELIVER }; /* what the host DMA engine does */
struct loop {
    uint32_t node, area;
    uint32_t engine;
    uint32_t out_bytes, out_route; /* of the packet in card.out; out_bytes 0: there is none */
    uint32_t sending;              /* it is on its way out */
    uint32_t in_bytes;             /* of the packet in card.in; 0: there is none */
    uint32_t fetch_at, free_at;    /* the next descriptor to fetch, and to free */
    uint32_t deliver_at;           /* the next buffer of the host */
};

/* The card takes the next packet from the network. */
FIRMWARE void open_port(struct loop *l)
{
    l->in_bytes = 0;
    nic_arm(SRAM_AT(card.in), sizeof card.in);
}

/* A packet has come into card.in. Its status stays until the port is opened again. Credits are counted here, and need
 * neither a buffer of the host nor a transfer. */
FIRMWARE void receive(struct loop *l, uint32_t status)
{
    if (status & CRCERR) {
        card.errors++;
        open_port(l);
        return;
    }
    uint32_t bytes = nic_read(RLEN), mark = card.in[(bytes >> 2) - 1];
    if (MARK_CREDITS(mark))
        card.returned[MARK_NODE(mark)] += MARK_CREDITS(mark);
    if (MARK_BYTES(mark)) {
        l->in_bytes = bytes;
    } else {
        card.bare++;
        open_port(l);
    }
}

/* From card.in to the host. The mark comes to the same place of every buffer, the payload in front of it. */
FIRMWARE void deliver(struct loop *l)
{
    uint32_t to = card.receive[l->deliver_at];
    if (to) {
        card.receive[l->deliver_at] = 0; /* before the transfer: who sees its end gives a buffer back */
        l->deliver_at = (l->deliver_at + 1) & (RING - 1);
        nic_dma(to + PACKET - (l->in_bytes - 4), SRAM_AT(card.in), TO_HOST, l->in_bytes);
        l->engine = DELIVER;
    } else {
        card.dropped++;
        open_port(l);
    }
}

FIRMWARE void send_out(struct loop *l)
{
    nic_send(l->out_route, SRAM_AT(card.out), l->out_bytes);
    l->sending = 1;
}

/* The payload of the next descriptor, from the host to card.out. What has none goes at once. */
FIRMWARE void fetch(struct loop *l)
{
    volatile struct descriptor *d = &card.send[l->fetch_at];
    if (d->flag != POSTED)
        return;
    uint32_t bytes = d->bytes, padded = (bytes + 3) & ~3u;
    if (bytes) {
        nic_dma(l->area + d->offset, SRAM_AT(card.out), FROM_HOST, padded);
        l->engine = FETCH;
    }
    d->flag = TAKEN;
    l->fetch_at = (l->fetch_at + 1) & (RING - 1);
    l->out_bytes = padded + 4;
    l->out_route = ROUTE_VALID | (d->to & 31);
    card.out[padded >> 2] = MARK_OF(d->credits, l->node, bytes);
    if (!bytes)
        send_out(l);
}

/* One turn of the loop. RARELY keeps what is not always so out of its straight way. */
FIRMWARE void step(struct loop *l)
{
    uint32_t status = nic_read(ISR);
    if ((status & RECV) && !l->in_bytes)
        receive(l, status);
    if (RARELY(l->engine) && (status & HDONE)) {
        if (l->engine == DELIVER)
            open_port(l);
        else
            send_out(l);
        l->engine = NOTHING;
    } else if (RARELY(l->sending) && (status & SDONE)) { /* it has left: its descriptor is free */
        card.send[l->free_at].flag = FREE;
        l->free_at = (l->free_at + 1) & (RING - 1);
        l->sending = 0;
        l->out_bytes = 0;
    }
    if (!l->engine) {
        if (l->in_bytes)
            deliver(l);
        else if (!l->out_bytes)
            fetch(l);
    }
}

FIRMWARE void init(struct loop *l)
{
    *l = (struct loop){0};
    l->node = nic_read(NODE);
    l->area = card.area;
    open_port(l);
}

LOOP_OF_CARD(struct loop)
