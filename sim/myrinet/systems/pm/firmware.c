/* SPDX-License-Identifier: BSD-3-Clause
 *
 * PM 1 on the card: pinned buffers of 8 KB, modified ACK/NACK. A receiver without a buffer refuses, and refuses what
 * comes later from that sender until the refused one comes again; so order is kept without a timer. Each packet is
 * answered once, and answers are never refused: one is done with before the next packet is let in. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/pm/layout.h"

volatile struct pm_card card;

enum { IDLE, FETCH, DELIVER };
#include "sim/myrinet/systems/pm/numbers.h"

struct pm_firmware_loop {
    uint32_t engine, node;
    uint32_t after;                /* of the send ring: the one behind what has been fetched last */
    uint32_t look, oldest, newest; /* of the send ring, counting on: to look at, without its ACK, never sent yet */
    uint32_t fill, ready, ready_bytes, ready_route; /* the outgoing packet that is here */
    uint32_t room, buffer;                          /* incoming; entry of the receive ring */
    uint32_t answer, answer_route;                  /* answer_route: one waits for the wire */
};

FIRMWARE void open_for_packet(struct pm_firmware_loop *l)
{
    nic_arm(SRAM_AT(card.in[l->room]), PM_HEADER + PM_BUFFER);
}

FIRMWARE void send_answer(struct pm_firmware_loop *l)
{
    nic_send(l->answer_route, SRAM_AT(card.answer[l->answer]), PM_HEADER);
    l->answer ^= 1;
    l->answer_route = 0;
}

FIRMWARE void receive(struct pm_firmware_loop *l, uint32_t status)
{
    volatile uint32_t *p = card.in[l->room];
    uint32_t first = p[0], kind = first >> 28, from = p[1] & (PM_NODES - 1), bytes = p[2];
    if (status & CRCERR) {
        card.errors++;
        open_for_packet(l);
        return;
    }
    if (kind == PM_DATA) {
        uint32_t to = card.receive[l->buffer], sequence = first & PM_SEQUENCE;
        uint32_t taken = to && sequence == expected[from] && bytes <= PM_BUFFER;
        if (taken) {
            uint32_t words = (bytes + 3) >> 2;
            expected[from] = (sequence + 1) & PM_SEQUENCE;
            p[PM_HEADER / 4 + words] = PM_MARK | from << 16 | bytes;
            nic_dma(to + PM_BUFFER - 4 * words, SRAM_AT(p + PM_HEADER / 4), TO_HOST, 4 * words + 4);
            l->engine = DELIVER;
            card.receive[l->buffer] = 0;
            l->buffer = (l->buffer + 1) & (PM_RING - 1);
            l->room ^= 1;
        } else {
            card.refused++;
        }
        volatile uint32_t *a = card.answer[l->answer];
        a[0] = (taken ? PM_ACK : PM_NACK) << 28 | (first & 0xfffffff);
        a[1] = l->node;
        a[2] = 0;
        l->answer_route = card.route[from];
        if (status & SDONE)
            send_answer(l);
        open_for_packet(l);
        return;
    }
    uint32_t slot = first >> 24 & (PM_RING - 1);
    if (!waits_for_answer(slot)) {
        open_for_packet(l);
        return;
    }
    if (kind == PM_ACK) {
        if (accepted(slot, &l->oldest, l->newest, l->look))
            l->look = l->oldest;
    } else {
        refused(slot);
        l->look = l->oldest;
    }
    open_for_packet(l);
}

FIRMWARE void fetch(struct pm_firmware_loop *l, uint32_t status)
{
    uint32_t slot = l->look & (PM_RING - 1);
    volatile struct pm_descriptor *d = &card.send[slot];
    if (d->state != PM_POSTED) {
        if (l->look != l->newest) /* one that was refused may lie behind it */
            l->look++;
        return;
    }
    uint32_t bytes = d->bytes, to = d->to & (PM_NODES - 1), same = RARELY(d->to & PM_SAME) && l->look == l->after;
    if (same) { /* what the buffer that left last still holds */
        if (!(status & SDONE))
            return;
        l->fill ^= 1;
    } else {
        l->ready_bytes = (bytes + 3) & ~3u;
        nic_dma(d->at, SRAM_AT(card.out[l->fill] + PM_HEADER / 4), FROM_HOST, l->ready_bytes);
        l->engine = FETCH;
    }
    volatile uint32_t *p = card.out[l->fill];
    d->state = PM_FLYING;
    l->ready_route = card.route[to];
    if (l->look == l->newest) {
        l->newest++;
        number(slot, to);
    }
    p[0] = PM_DATA << 28 | slot << 24 | sequence_of[slot];
    l->look++;
    l->after = l->look;
    if (same) { /* only the number and the route are others, nothing has to be fetched, and the wire is free */
        nic_send(l->ready_route, SRAM_AT(p), PM_HEADER + l->ready_bytes);
        l->fill ^= 1;
        return;
    }
    p[1] = l->node;
    p[2] = bytes;
}

FIRMWARE void step(struct pm_firmware_loop *l)
{
    uint32_t status = nic_read(ISR);
    if (RARELY(l->engine) && (status & HDONE)) {
        if (l->engine == FETCH)
            l->ready = 1;
        l->engine = IDLE;
    }
    if (RARELY(l->answer_route) && (status & SDONE)) { /* before anything else is let out or in */
        send_answer(l);
        return;
    }
    if (RARELY(status & RECV) && !l->answer_route) {
        if (!l->engine || card.in[l->room][0] >> 28 != PM_DATA) { /* an answer needs no engine */
            receive(l, status);
            return;
        }
    }
    if (RARELY(l->ready) && (status & SDONE) && !l->answer_route) {
        nic_send(l->ready_route, SRAM_AT(card.out[l->fill]), PM_HEADER + l->ready_bytes);
        l->fill ^= 1;
        l->ready = 0;
        status &= ~(uint32_t)SDONE;
    }
    if (!l->engine && !l->ready)
        fetch(l, status);
}

#ifdef PM_TURNS
/* The processor was reset while the network held nothing: the channel here is another job's since. What comes waits at
 * the port, and what that job was refused waits here, until it runs on all nodes. */
FIRMWARE void take_over(struct pm_firmware_loop *l)
{
    while (!(nic_read(ISR) & HDONE)) /* what came last for the other job has its ACK, but may be on its way to memory */
        ;
    card.turn.ready = 1;
    while (nic_read(ISR), card.after_refusal == PM_HELD)
        ;
    l->oldest = l->look = card.turn.oldest;
    l->newest = card.turn.newest;
    l->buffer = card.turn.buffer;
    l->after = l->oldest - 1; /* what the outgoing buffers hold is not this job's */
    for (uint32_t i = 0; i < PM_RING; i++)
        if (card.send[i].state == PM_HELD)
            card.send[i].state = PM_POSTED;
}
#endif

FIRMWARE void init(struct pm_firmware_loop *l)
{
    *l = (struct pm_firmware_loop){0};
    l->node = nic_read(NODE);
    open_for_packet(l);
#ifdef PM_TURNS
    take_over(l);
#endif
}

LOOP_OF_CARD(struct pm_firmware_loop)
