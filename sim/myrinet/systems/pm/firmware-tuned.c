/* SPDX-License-Identifier: BSD-3-Clause
 *
 * PM's firmware written again for speed alone: the same protocol and memory as firmware.c. A transfer is started
 * before anything else is noted, its packet's header is made while it runs, and the packet begins to leave then, with
 * what the transfer's mark says that is there (immediate sending). What is addressed by counting there is walked by
 * pointer here. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/pm/layout.h"

volatile struct pm_card card;

enum { IDLE, FETCH, DELIVER };
static uint32_t node;
#include "sim/myrinet/systems/pm/numbers.h"

struct pm_tuned_loop {
    uint32_t engine;
    volatile struct pm_descriptor *look;
    uint32_t looked, newest; /* counting on; what `look` points to, and the first that was never sent */
    uint32_t oldest;
    volatile uint32_t *out; /* the outgoing packet */
    uint32_t out_both, out_bytes, out_route;
    uint32_t data, leaves;     /* SRAM: where its data begin; up to where it may leave, 0: it waits for the wire */
    volatile uint32_t *buffer; /* entry of the receive ring */
    uint32_t in, in_both;
    uint32_t answer, answer_both, answer_route; /* answer_route: one waits for the wire */
};

FIRMWARE void open_again(struct pm_tuned_loop *l)
{
    nic_arm(l->in, PM_HEADER + PM_BUFFER);
}

FIRMWARE void send_answer(struct pm_tuned_loop *l)
{
    nic_send(l->answer_route, l->answer, PM_HEADER);
    l->answer ^= l->answer_both;
    l->answer_route = 0;
}

FIRMWARE void answered(struct pm_tuned_loop *l, uint32_t first)
{
    uint32_t slot = first >> 24 & (PM_RING - 1);
    if (!waits_for_answer(slot))
        return;
    if (first >> 28 == PM_ACK) {
        if (!accepted(slot, &l->oldest, l->newest, l->looked))
            return;
    } else {
        refused(slot);
    }
    l->looked = l->oldest;
    l->look = &card.send[l->oldest & (PM_RING - 1)];
}

FIRMWARE void receive(struct pm_tuned_loop *l, uint32_t status)
{
    volatile uint32_t *p = WORDS_AT(l->in);
    uint32_t first = p[0], from = p[1] & (PM_NODES - 1), bytes = p[2], to = *l->buffer;
    if (RARELY(status & CRCERR)) {
        card.errors++;
        open_again(l);
        return;
    }
    if (first >> 28 != PM_DATA) {
        answered(l, first);
        open_again(l);
        return;
    }
    volatile uint32_t *a = WORDS_AT(l->answer);
    if (to && (first & PM_SEQUENCE) == expected[from] && bytes <= PM_BUFFER) {
        uint32_t padded = (bytes + 3) & ~3u;
        WORDS_AT(l->in + PM_HEADER + padded)[0] = PM_MARK | from << 16 | bytes;
        nic_dma(to + PM_BUFFER - padded, l->in + PM_HEADER, TO_HOST, padded + 4);
        l->in ^= l->in_both;
        open_again(l);
        l->engine = DELIVER;
        a[0] = PM_ACK << 28 | (first & 0xfffffff);
        expected[from] = (first + 1) & PM_SEQUENCE;
        *l->buffer = 0;
        l->buffer = l->buffer + 1 == card.receive + PM_RING ? card.receive : l->buffer + 1;
    } else {
        card.refused++;
        a[0] = PM_NACK << 28 | (first & 0xfffffff);
        open_again(l);
    }
    a[1] = node;
    a[2] = 0;
    l->answer_route = card.route[from];
    if (status & SDONE)
        send_answer(l);
}

/* The packet whose transfer is under way, up to there. */
FIRMWARE void launch(struct pm_tuned_loop *l, uint32_t reach)
{
    nic_send_up_to(l->out_route, SRAM_AT(l->out), PM_HEADER + l->out_bytes, reach);
    l->leaves = reach;
}

FIRMWARE void fetch(struct pm_tuned_loop *l, uint32_t status)
{
    volatile struct pm_descriptor *d = l->look;
    uint32_t bytes = d->bytes, to = d->to & (PM_NODES - 1), slot = l->looked & (PM_RING - 1);
    l->out_bytes = (bytes + 3) & ~3u;
    nic_dma(d->at, SRAM_AT(l->out) + PM_HEADER, FROM_HOST, l->out_bytes);
    l->engine = FETCH;
    d->state = PM_FLYING;
    l->out_route = card.route[to];
    if (l->looked == l->newest) {
        l->newest++;
        number(slot, to);
    }
    l->out[0] = PM_DATA << 28 | slot << 24 | sequence_of[slot];
    l->out[1] = node;
    l->out[2] = bytes;
    l->data = SRAM_AT(l->out) + PM_HEADER;
    if (status & SDONE)
        launch(l, l->data);
    l->looked++;
    l->look = d + 1 == card.send + PM_RING ? card.send : d + 1;
}

/* The transfer of what is to leave goes on, or has ended. The status, without the bit of an engine that works now. */
FIRMWARE uint32_t send_on(struct pm_tuned_loop *l, uint32_t status)
{
    uint32_t is = status;
    uint32_t reach = l->data + (status & HDONE ? l->out_bytes : nic_read(HMARK));
    if (!l->leaves) {
        if (!(status & SDONE))
            return is;
        launch(l, reach);
        is &= ~(uint32_t)SDONE;
    } else if (reach != l->leaves) {
        nic_write(SML, reach);
        l->leaves = reach;
    }
    if (status & HDONE) {
        l->out = WORDS_AT(SRAM_AT(l->out) ^ l->out_both);
        l->leaves = 0;
        l->engine = IDLE;
    }
    return is;
}

FIRMWARE void step(struct pm_tuned_loop *l)
{
    uint32_t status = nic_read(ISR), state = l->look->state;
    if (RARELY(l->engine)) {
        if (l->engine == FETCH) {
            status = send_on(l, status);
        } else if (status & HDONE) {
            l->engine = IDLE;
        }
    }
    if (RARELY(l->answer_route)) { /* before anything else is let out or in */
        if (status & SDONE)
            send_answer(l);
        return;
    }
    if (RARELY(l->engine)) {
        if ((status & RECV) && WORDS_AT(l->in)[0] >> 28 != PM_DATA) /* it needs no engine */
            receive(l, status);
        return;
    }
    if (RARELY(status & RECV)) {
        receive(l, status);
        return;
    }
    if (RARELY(state == PM_POSTED)) {
        fetch(l, status);
    } else if (RARELY(l->looked != l->newest)) { /* one that was refused may lie behind it */
        l->looked++;
        l->look = l->look + 1 == card.send + PM_RING ? card.send : l->look + 1;
    }
}

FIRMWARE void init(struct pm_tuned_loop *l)
{
    *l = (struct pm_tuned_loop){0};
    node = nic_read(NODE);
    l->look = card.send;
    l->out = card.out[0];
    l->out_both = SRAM_AT(card.out[0]) ^ SRAM_AT(card.out[1]);
    l->buffer = card.receive;
    l->in = SRAM_AT(card.in[0]);
    l->in_both = l->in ^ SRAM_AT(card.in[1]);
    l->answer = SRAM_AT(card.answer[0]);
    l->answer_both = l->answer ^ SRAM_AT(card.answer[1]);
    open_again(l);
}

LOOP_OF_CARD(struct pm_tuned_loop)
