/* SPDX-License-Identifier: BSD-3-Clause
 *
 * U-Net's firmware written again for speed alone, with the translations of moves.h: a message is checked and its
 * transfer started in one turn, its header is made meanwhile, and it leaves in the turn in which it has come; one that
 * arrives goes on at once, its record is made while its data are on the bus, and a turn that finds nothing looks at the
 * status and at one queue. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/unet/layout.h"

volatile struct unet_card card;

enum { IDLE, FETCHING, DELIVERING, RECORDING, NO_PAGE = 1 };
#include "sim/myrinet/systems/unet/moves.h"

static uint32_t out_at, out_both, out_bytes,
    out_route;                      /* SRAM: the buffer that is filled next; xor with the other one */
static uint32_t open_at, open_both; /* the one that is open */
static uint32_t record_to, notify;  /* host address of the next record; whether it interrupts */
static uint32_t
    wakes; /* bits of the status that there is something to do for; with HDONE, SDONE no queue is looked at */

/* All of it, if it lies in one page whose translation is here; else 0. */
FIRMWARE uint32_t moved_at_once(struct unet_loop *l, uint32_t i, volatile struct unet_endpoint *e, uint32_t at,
                                uint32_t sram, uint32_t direction, uint32_t bytes)
{
    uint32_t page = at >> l->shift, slot = page & (UNET_TLB - 1), in_page = at & (l->page - 1);
    if (RARELY(e->tag[slot] != page + 1 || bytes > l->page - in_page))
        return 0;
    card.moving_endpoint = i;
    card.moving = page + 1;
    nic_dma(e->physical[slot] | in_page, sram, direction, bytes);
    l->engine = direction == TO_HOST ? DELIVERING : FETCHING;
    return 1;
}

/* ---- messages of endpoints ---- */

FIRMWARE void launch(struct unet_loop *l)
{
    nic_send(out_route, out_at, out_bytes);
    out_at ^= out_both;
    l->fetched = 0;
}

FIRMWARE void begin_send(struct unet_loop *l, uint32_t i, volatile struct unet_message *m, uint32_t bytes)
{
    uint32_t k = m->channel, at = m->at, padded = (bytes + 3) & ~3u;
    l->turn = RARELY(card.endpoints > 1) && i + 1 < card.endpoints ? i + 1 : 0;
    l->out.endpoint = i;
    if (RARELY(k >= UNET_CHANNELS || !(card.channel[k].valid & UNET_VALID) || card.channel[k].endpoint != i ||
               bytes > UNET_DATA || (at & 3))) {
        card.errors++; /* not its own */
        end_send(l);
        return;
    }
    volatile struct unet_channel *c = &card.channel[k];
    l->out.left = 0;
    if (RARELY(!moved_at_once(l, i, endpoint[i], at, out_at + UNET_HEADER, FROM_HOST, padded))) {
        l->out.at = at;
        l->out.left = padded;
        l->out.sram = out_at + UNET_HEADER;
    }
    WORDS_AT(out_at)[0] = l->node << 24 | bytes;
    WORDS_AT(out_at)[1] = c->tag;
    out_bytes = UNET_HEADER + padded;
    out_route = card.route[c->node & (UNET_NODES - 1)];
    l->sends = 1;
    wakes |= HDONE;
}

/* ---- arrivals ---- */

FIRMWARE void make_record(uint32_t i, volatile struct unet_endpoint *e, uint32_t buffer, uint32_t bytes, uint32_t k)
{
    uint32_t number = arrivals[i];
    arrivals[i] = number + 1;
    card.record[0] = number + 1;
    card.record[1] = buffer;
    card.record[2] = bytes;
    card.record[3] = k;
    record_to = e->records_at + (number & (UNET_RECORDS - 1)) * UNET_RECORD;
    notify = e->notify;
}

/* With the engine idle: the next part of what has arrived, and with the last one its record. */
static void deliver(struct unet_loop *l)
{
    if (move(l, &l->in, TO_HOST) == NO_PAGE) { /* the program's own mistake: the message is lost */
        card.errors++;
        l->arriving = 0;
    } else if (l->engine != IDLE && !l->in.left) {
        make_record(l->in.endpoint, endpoint[l->in.endpoint], l->buffer, l->in_bytes, l->in_channel);
    }
}

FIRMWARE void arrived(struct unet_loop *l, uint32_t status)
{
    volatile uint32_t *h = WORDS_AT(open_at);
    uint32_t first = h[0], k = h[1], from = first >> 24, bytes = first & 0xffff, padded = (bytes + 3) & ~3u;
    if (RARELY(status & CRCERR || nic_read(RLEN) != UNET_HEADER + padded || !bytes || bytes > UNET_DATA ||
               k >= UNET_CHANNELS || !(card.channel[k].valid & UNET_VALID) || card.channel[k].node != from)) {
        card.errors++;
        nic_arm(open_at, sizeof card.in[0]);
        return;
    }
    uint32_t i = card.channel[k].endpoint & (UNET_ENDPOINTS - 1);
    volatile struct unet_endpoint *e = endpoint[i];
    uint32_t used = e->used, here = open_at;
    if (RARELY(e->freed == used)) {
        card.dropped++;
        nic_arm(here, sizeof card.in[0]);
        return;
    }
    uint32_t buffer = e->free[used & (UNET_FREE - 1)];
    if (l->engine == IDLE && moved_at_once(l, i, e, buffer & ~3u, here + UNET_HEADER, TO_HOST, padded)) {
        make_record(i, e, buffer, bytes, k);
        l->in.left = 0;
    } else {
        l->in.endpoint = i;
        l->in.at = buffer & ~3u;
        l->in.left = padded;
        l->in.sram = here + UNET_HEADER;
        l->buffer = buffer;
        l->in_bytes = bytes;
        l->in_channel = k;
    }
    l->arriving = 1;
    e->used = used + 1;
    open_at = here ^ open_both;
    nic_arm(open_at, sizeof card.in[0]);
}

/* The status, without the bit of an engine that works now. */
FIRMWARE uint32_t engine_is_done(struct unet_loop *l, uint32_t status)
{
    uint32_t was = l->engine, is = status;
    l->engine = IDLE;
    if (was == DELIVERING) {
        if (!l->in.left) {
            nic_dma(record_to, SRAM_AT(card.record), TO_HOST, UNET_RECORD);
            l->engine = RECORDING;
            l->arriving = 0;
        }
        card.moving = 0;
    } else if (was == FETCHING) {
        card.moving = 0;
        if (l->out.left)
            return is;
        l->fetched = 1;
        if (status & SDONE) {
            launch(l);
            is &= ~(uint32_t)SDONE;
        }
        end_send(l);
    } else if (notify) {
        nic_write(HIRQ, 2);
    }
    return is;
}

/* What the status has a bit for. */
FIRMWARE void attend(struct unet_loop *l, uint32_t now)
{
    uint32_t status = now;
    if (l->engine != IDLE && (status & HDONE))
        status = engine_is_done(l, status);
    if ((status & RECV) && !l->arriving)
        arrived(l, status);
    if (RARELY(l->fetched) && (status & SDONE))
        launch(l);
    if (l->engine == IDLE && RARELY(l->arriving | l->sends)) {
        if (l->arriving) {
            deliver(l);
        } else if (move(l, &l->out, FROM_HOST) == NO_PAGE) {
            card.errors++;
            end_send(l);
        }
    }
    wakes = (l->arriving ? HDONE : RECV) | (l->engine | l->sends ? HDONE : 0) | (l->fetched ? SDONE : 0);
}

FIRMWARE void step(struct unet_loop *l)
{
    uint32_t status = nic_read(ISR), i = l->turn, awake = wakes, bytes;
    if (RARELY(status & awake)) {
        attend(l, status);
    } else if (!(awake & (HDONE | SDONE))) {
        volatile struct unet_message *m = head[i];
        if (RARELY(bytes = m->bytes))
            begin_send(l, i, m, bytes);
        else if (RARELY(card.endpoints > 1))
            l->turn = i + 1 < card.endpoints ? i + 1 : 0;
    }
}

static void init_tuned(struct unet_loop *l)
{
    init(l);
    wakes = RECV;
    notify = 0;
    out_at = SRAM_AT(card.out[0]);
    out_both = out_at ^ SRAM_AT(card.out[1]);
    open_at = SRAM_AT(card.in[0]);
    open_both = open_at ^ SRAM_AT(card.in[1]);
}
#define init init_tuned
LOOP_OF_CARD(struct unet_loop)
