/* SPDX-License-Identifier: BSD-3-Clause
 *
 * U-Net on the card (papers 000, section 5, and 004): messages of endpoints go to channels, whose tags say at the other
 * end whose they are. Nothing holds senders back: without a free buffer of its endpoint a message is dropped. A page
 * without a translation interrupts the host, whose kernel pins it and supplies one (U-Net/MM); an endpoint whose pages
 * are all pinned has them from the beginning. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/unet/layout.h"

volatile struct unet_card card;

enum { IDLE, FETCHING, DELIVERING, RECORDING, NO_PAGE = 1 };
#include "sim/myrinet/systems/unet/moves.h"

static void begin_send(struct unet_loop *l, uint32_t i)
{
    volatile struct unet_message *m = head[i];
    uint32_t bytes = m->bytes, k = m->channel;
    l->turn = i + 1 < card.endpoints ? i + 1 : 0;
    l->out.endpoint = i;
    if (k >= UNET_CHANNELS || !(card.channel[k].valid & UNET_VALID) || card.channel[k].endpoint != i ||
        bytes > UNET_DATA || (m->at & 3)) { /* not its own */
        card.errors++;
        end_send(l);
        return;
    }
    l->sends = 1;
    l->send_bytes = bytes;
    l->send_channel = k;
    l->out.at = m->at;
    l->out.left = (bytes + 3) & ~3u;
    l->out.sram = SRAM_AT(card.out[l->fill]) + UNET_HEADER;
}

FIRMWARE void look_for_message(struct unet_loop *l)
{
    uint32_t i = l->turn, n = card.endpoints;
    for (uint32_t k = n; k; k--) {
        if (RARELY(head[i]->bytes)) {
            begin_send(l, i);
            return;
        }
        i = i + 1 < n ? i + 1 : 0;
    }
}

static void launch(struct unet_loop *l)
{
    volatile uint32_t *h = card.out[l->fill];
    volatile struct unet_channel *c = &card.channel[l->send_channel];
    h[0] = l->node << 24 | l->send_bytes;
    h[1] = c->tag;
    l->fetched = 0;
    l->fill ^= 1;
    nic_send(card.route[c->node & (UNET_NODES - 1)], SRAM_AT(h), UNET_HEADER + ((l->send_bytes + 3) & ~3u));
}

static void arrived(struct unet_loop *l, uint32_t status)
{
    volatile uint32_t *h = card.in[l->room];
    uint32_t from = h[0] >> 24, bytes = h[0] & 0xffff, k = h[1];
    if (status & CRCERR || nic_read(RLEN) != UNET_HEADER + ((bytes + 3) & ~3u) || !bytes || bytes > UNET_DATA ||
        k >= UNET_CHANNELS || !(card.channel[k].valid & UNET_VALID) || card.channel[k].node != from) {
        card.errors++;
    } else {
        uint32_t i = card.channel[k].endpoint & (UNET_ENDPOINTS - 1);
        volatile struct unet_endpoint *e = endpoint[i];
        if (e->freed == e->used) {
            card.dropped++;
        } else {
            l->buffer = e->free[e->used & (UNET_FREE - 1)];
            e->used++;
            l->in.endpoint = i;
            l->in.at = l->buffer & ~3u;
            l->in.left = (bytes + 3) & ~3u;
            l->in.sram = SRAM_AT(h) + UNET_HEADER;
            l->in_bytes = bytes;
            l->in_channel = k;
            l->arriving = 1;
            l->room ^= 1;
        }
    }
    nic_arm(SRAM_AT(card.in[l->room]), sizeof card.in[0]);
}

static void deliver(struct unet_loop *l)
{
    uint32_t i = l->in.endpoint;
    volatile struct unet_endpoint *e = endpoint[i];
    if (l->in.left) {
        if (move(l, &l->in, TO_HOST) == NO_PAGE) { /* the program's own mistake: the message is lost */
            card.errors++;
            l->arriving = 0;
        }
        return;
    }
    card.record[0] = ++arrivals[i];
    card.record[1] = l->buffer;
    card.record[2] = l->in_bytes;
    card.record[3] = l->in_channel;
    nic_dma(e->records_at + ((arrivals[i] - 1) & (UNET_RECORDS - 1)) * UNET_RECORD, SRAM_AT(card.record), TO_HOST,
            UNET_RECORD);
    l->engine = RECORDING;
    l->arriving = 0;
}

static void engine_is_done(struct unet_loop *l)
{
    uint32_t was = l->engine;
    card.moving = 0;
    l->engine = IDLE;
    if (was == FETCHING && !l->out.left) {
        end_send(l);
        l->fetched = 1;
    } else if (was == RECORDING && endpoint[l->in.endpoint]->notify) {
        nic_write(HIRQ, 2);
    }
}

FIRMWARE void step(struct unet_loop *l)
{
    uint32_t status = nic_read(ISR);
    if (RARELY(l->engine != IDLE) && (status & HDONE))
        engine_is_done(l);
    if (RARELY(l->fetched) && (status & SDONE))
        launch(l);
    if (RARELY(status & RECV) && !l->arriving && l->engine != RECORDING)
        arrived(l, status);
    if (l->engine != IDLE)
        return;
    if (RARELY(l->arriving))
        deliver(l);
    if (l->engine != IDLE)
        return;
    if (RARELY(l->sends)) {
        if (move(l, &l->out, FROM_HOST) == NO_PAGE) {
            card.errors++;
            end_send(l);
        }
    } else if (!l->fetched) {
        look_for_message(l);
    }
}

LOOP_OF_CARD(struct unet_loop)
