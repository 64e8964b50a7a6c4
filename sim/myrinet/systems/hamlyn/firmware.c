/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hamlyn on the card (paper 004; Buzzard et al. 1996): the sender says where in a slot of the receiver its bytes
 * belong, and shows the slot's key. The card puts them there, in whatever order packets come, and refuses what has not
 * the key or leaves the slot; it counts that, and tells the slot's process. Nothing but the network holds senders back:
 * of two buffers one is open until both wait for the bus. What a process has asked for is read once, so that it changes
 * nothing that has been checked. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/hamlyn/layout.h"

volatile struct ham_card card;

enum { IDLE, FETCHING, DELIVERING, RECORDING, TELLING };
#include "sim/myrinet/systems/hamlyn/stages.h"

FIRMWARE void arrived(struct ham_loop *l, uint32_t status)
{
    volatile uint32_t *h = card.in[l->room];
    uint32_t source = h[0], what = h[1], offset = h[4], begins = h[6], whole = h[7];
    uint32_t bytes = source & 0xffff, i = what >> 16 & 0xff, k = what & 0xffff;
    if (status & CRCERR || nic_read(RLEN) != HAM_HEADER + bytes || !bytes || i >= l->processes ||
        source >> 24 >= l->nodes || (source >> 16 & 0xff) >= HAM_PROCESSES) {
        card.errors++;
        open_for_packet(l);
        return;
    }
    volatile struct ham_process *p = process[i];
    volatile struct ham_slot *s = &p->slot[k & (HAM_SLOTS - 1)];
    uint32_t reason = HAM_OUT_OF_BOUNDS, is_last = 1, records = what >> 24 & HAM_WITH_RECORD;
    card.moving = (i << 16 | k) + 1; /* first: the kernel takes a slot back, and looks at this then */
    if (k >= HAM_SLOTS || !s->valid)
        reason = HAM_BAD_SLOT;
    else if (s->key[0] != h[2] || s->key[1] != h[3])
        reason = HAM_BAD_KEY;
    else if (!(offset & 3) && begins <= s->bytes && whole <= s->bytes - begins && offset >= begins &&
             offset - begins <= whole && bytes <= whole - (offset - begins))
        reason = 0;
    if (RARELY(reason)) {
        refuse(l, i, reason, h);
        return;
    }
    if (bytes != whole) {
        reason = count(l, i, h);
        is_last = !counter_of(h)->left;
        records = counter_of(h)->reserved; /* what its first packet wanted */
    } else if (records) {
        reason = queue_is_full(p) ? HAM_QUEUE_FULL : 0;
        p->promised += !reason;
    }
    if (RARELY(reason)) {
        refuse(l, i, reason, h);
        return;
    }
    nic_dma(s->at + offset, SRAM_AT(h) + HAM_HEADER, TO_HOST, bytes);
    l->engine = DELIVERING;
    l->record_at = l->interrupts = 0;
    if (is_last) {
        l->interrupts = what >> 24 & HAM_WITH_INTERRUPT ? p->notify : 0;
        if (records) {
            l->record_at = p->records_at + (p->posted & (HAM_RECORDS - 1)) * HAM_RECORD;
            card.record[0] = ++p->posted;
            card.record[1] = source >> 16;
            card.record[2] = k;
            card.record[3] = begins;
            card.record[4] = whole;
        }
    }
    l->room ^= 1;
    open_for_packet(l);
}

static void engine_is_done(struct ham_loop *l)
{
    uint32_t was = l->engine;
    l->engine = IDLE;
    if (was == FETCHING) {
        l->fetched = 1;
        if (!active[l->fetching].left)
            end_request(l->fetching);
        return;
    }
    if (was == DELIVERING) {
        card.moving = 0;
        if (l->record_at) {
            nic_dma(l->record_at, SRAM_AT(card.record), TO_HOST, sizeof card.record);
            l->engine = RECORDING;
            return;
        }
    }
    if (was != TELLING && l->interrupts)
        nic_write(HIRQ, 1);
}

FIRMWARE void launch(struct ham_loop *l)
{
    uint32_t at = SRAM_AT(card.out[l->fill]);
    l->fetched = 0;
    l->fill ^= 1;
    nic_send(card.route[l->to], at, HAM_HEADER + l->bytes);
}

FIRMWARE void begin_send(struct ham_loop *l, uint32_t i)
{
    volatile struct ham_request *r = head[i];
    volatile struct ham_process *p = process[i];
    uint32_t bytes = r->bytes, to = r->to, what = r->what, at = r->at;
    if (what & HAM_STORED) {
        volatile uint32_t *h = card.out[l->fill];
        uint32_t offset = r->offset, words = (bytes + 3) >> 2;
        if (!bytes || bytes > HAM_SHORT || to >> 24 >= l->nodes || to >> 24 == l->node)
            goto wrong;
        h[0] = l->node << 24 | i << 16 | bytes;
        h[1] = what << 24 | (to & 0xffffff);
        h[2] = r->key[0];
        h[3] = r->key[1];
        h[4] = h[6] = offset;
        h[7] = bytes;
        for (uint32_t k = 0; k < words; k++)
            h[HAM_HEADER / 4 + k] = r->data[k];
        l->fetched = 1;
        l->bytes = bytes;
        l->to = to >> 24;
        end_request(i);
        return;
    }
    if (l->engine != IDLE)
        return; /* it has its turn when the engine has */
    if (!bytes || to >> 24 >= l->nodes || to >> 24 == l->node || at & 3 || at > p->area_bytes ||
        bytes > p->area_bytes - at)
        goto wrong;
    active[i].at = at;
    active[i].left = active[i].bytes = bytes;
    active[i].done = 0;
    active[i].to = to;
    active[i].what = what & (HAM_WITH_RECORD | HAM_WITH_INTERRUPT);
    active[i].key[0] = r->key[0];
    active[i].key[1] = r->key[1];
    active[i].offset = r->offset;
    active[i].number = bytes > l->packet ? ++numbers[i << 5 | (to >> 24)] : 0;
    fetch(l, i);
    return;
wrong:
    card.errors++;
    end_request(i);
}

/* Processes take turns by packets. */
FIRMWARE void look_for_message(struct ham_loop *l)
{
    uint32_t i = l->turn;
    for (uint32_t k = l->processes; k; k--) {
        uint32_t next = i + 1 < l->processes ? i + 1 : 0;
        if (RARELY(active[i].left)) {
            if (l->engine == IDLE) {
                l->turn = next;
                fetch(l, i);
                return;
            }
        } else if (RARELY(head[i]->bytes)) {
            l->turn = next;
            begin_send(l, i);
            return;
        }
        i = next;
    }
}

FIRMWARE void step(struct ham_loop *l)
{
    uint32_t status = nic_read(ISR);
    if (RARELY(l->engine != IDLE) && (status & HDONE))
        engine_is_done(l);
    if (RARELY(l->fetched) && (status & SDONE))
        launch(l);
    if (RARELY(status & RECV) && l->engine == IDLE)
        arrived(l, status);
    else if (RARELY(l->troubles) && l->engine == IDLE)
        tell_host(l);
    else if (!l->fetched && l->engine != FETCHING)
        look_for_message(l);
}

LOOP_OF_CARD(struct ham_loop)
