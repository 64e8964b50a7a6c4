/* SPDX-License-Identifier: BSD-3-Clause
 *
 * PM 1 on the card: pinned buffers of 8 KB, modified ACK/NACK. A receiver without a buffer refuses, and refuses what
 * comes later from that sender until the refused one comes again; so order is kept without a timer. Each packet is
 * answered once, and answers are never refused: one is done with before the next packet is let in. */
#include "sim/paper/hw/nic.h"
#include "sim/paper/systems/pm/layout.h"

volatile struct pm_card card;

enum { IDLE, FETCH, DELIVER };
static uint32_t engine, node;
static uint32_t look, oldest, newest; /* of the send ring, counting on: to look at, without its ACK, never sent yet */
static uint32_t sequence_of[PM_RING], next_sequence[PM_NODES]; /* of what is sent */
static uint32_t expected[PM_NODES];                            /* of what comes */
static uint32_t fill, ready, ready_bytes, ready_route;         /* the outgoing packet that is here */
static uint32_t room, buffer;                                  /* incoming; entry of the receive ring */
static uint32_t answer, answer_route;                          /* answer_route: one waits for the wire */

FIRMWARE void open_for_packet(void)
{
    nic_arm(SRAM_AT(card.in[room]), PM_HEADER + PM_BUFFER);
}

FIRMWARE void send_answer(void)
{
    nic_send(answer_route, SRAM_AT(card.answer[answer]), PM_HEADER);
    answer ^= 1;
    answer_route = 0;
}

FIRMWARE void receive(uint32_t status)
{
    volatile uint32_t *p = card.in[room];
    uint32_t first = p[0], kind = first >> 28, from = p[1] & (PM_NODES - 1), bytes = p[2];
    if (status & CRCERR) {
        card.errors++;
        open_for_packet();
        return;
    }
    if (kind == PM_DATA) {
        uint32_t to = card.receive[buffer], sequence = first & PM_SEQUENCE;
        uint32_t taken = to && sequence == expected[from] && bytes <= PM_BUFFER;
        if (taken) {
            uint32_t words = (bytes + 3) >> 2;
            expected[from] = (sequence + 1) & PM_SEQUENCE;
            p[PM_HEADER / 4 + words] = PM_MARK | from << 16 | bytes;
            nic_dma(to + PM_BUFFER - 4 * words, SRAM_AT(p + PM_HEADER / 4), TO_HOST, 4 * words + 4);
            engine = DELIVER;
            card.receive[buffer] = 0;
            buffer = (buffer + 1) & (PM_RING - 1);
            room ^= 1;
        } else {
            card.refused++;
        }
        volatile uint32_t *a = card.answer[answer];
        a[0] = (taken ? PM_ACK : PM_NACK) << 28 | (first & 0xfffffff);
        a[1] = node;
        a[2] = 0;
        answer_route = card.route[from];
        if (status & SDONE)
            send_answer();
        open_for_packet();
        return;
    }
    uint32_t slot = first >> 24 & (PM_RING - 1);
    if (card.send[slot].state != PM_FLYING) { /* an answer to nothing */
        card.errors++;
        open_for_packet();
        return;
    }
    card.outstanding--;
    if (kind == PM_ACK) {
        card.send[slot].state = PM_FREE;
        while (oldest != newest && card.send[oldest & (PM_RING - 1)].state == PM_FREE)
            oldest++;
    } else {
        card.send[slot].state = PM_POSTED; /* again, and in order: the oldest first */
        card.resent++;
        look = oldest;
    }
    open_for_packet();
}

FIRMWARE void fetch(void)
{
    uint32_t slot = look & (PM_RING - 1);
    volatile struct pm_descriptor *d = &card.send[slot];
    if (d->state != PM_POSTED) {
        if (look != newest) /* one that was refused may lie behind it */
            look++;
        return;
    }
    uint32_t bytes = d->bytes, to = d->to & (PM_NODES - 1);
    volatile uint32_t *p = card.out[fill];
    ready_bytes = (bytes + 3) & ~3u;
    nic_dma(d->at, SRAM_AT(p + PM_HEADER / 4), FROM_HOST, ready_bytes);
    engine = FETCH;
    d->state = PM_FLYING;
    card.outstanding++;
    ready_route = card.route[to];
    if (look == newest) {
        newest++;
        sequence_of[slot] = next_sequence[to];
        next_sequence[to] = (next_sequence[to] + 1) & PM_SEQUENCE;
    }
    p[0] = PM_DATA << 28 | slot << 24 | sequence_of[slot];
    p[1] = node;
    p[2] = bytes;
    look++;
}

FIRMWARE void step(void)
{
    uint32_t status = nic_read(ISR);
    if (engine && (status & HDONE)) {
        if (engine == FETCH)
            ready = 1;
        engine = IDLE;
    }
    if (answer_route && (status & SDONE)) { /* before anything else is let out or in */
        send_answer();
        return;
    }
    if ((status & RECV) && !engine && !answer_route) {
        receive(status);
        return;
    }
    if (ready && (status & SDONE) && !answer_route) {
        nic_send(ready_route, SRAM_AT(card.out[fill]), PM_HEADER + ready_bytes);
        fill ^= 1;
        ready = 0;
    }
    if (!engine && !ready)
        fetch();
}

void fw_init(void);
void fw_init(void)
{
    node = nic_read(NODE);
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
