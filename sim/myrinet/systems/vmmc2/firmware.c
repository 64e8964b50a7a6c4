/* SPDX-License-Identifier: BSD-3-Clause
 *
 * VMMC-2 on the card (papers 000, section 5, and 004, address translation). A program names pages by references; the
 * card has some of their translations, and reads others from the kernel's table by DMA. Packets are kept until the
 * other card has acknowledged them, and all from the first one that is missing go again. A message whose buffer is
 * posted goes there, another one into the staging area of its export; without a free place there it is dropped, and so
 * comes again. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/vmmc2/layout.h"

volatile struct vmmc2_card card;
enum { NONE = 0xffff, IDLE = 0, FETCHING, DELIVERING, LOOKING, REPORTING, RECORDING, TAG_SHIFT = 16 };
#include "sim/myrinet/systems/vmmc2/kept.h"

/* ---- a process's sends ---- */

/* The page of a packet has come from the host: the packet becomes the last of those that are kept for its node. */
static void fetched(struct vmmc2_loop *l)
{
    uint32_t b = l->filling, to = l->fill_node;
    next_of[b] = NONE;
    packet[b][1] = number[to]++;
    if (oldest[to] == NONE)
        oldest[to] = b;
    else
        next_of[last[to]] = b;
    last[to] = b;
    if (unsent[to] == NONE)
        unsent[to] = b;
    want(l, to);
    l->filling = NONE;
    end_request(l, l->fill_process, l->fill_last);
}

FIRMWARE void start_fetch(struct vmmc2_loop *l, uint32_t i, uint32_t status)
{
    volatile struct vmmc2_request *e = head[i];
    uint32_t bytes = e->bytes, what = e->what, import = what & 0xffff, entry = 0, b = free_buffer[l->frees_at];
    if (import < VMMC2_IMPORTS)
        entry = process_of[i]->outgoing[import];
    uint32_t to = entry >> 16 & (VMMC2_NODES - 1), at = e->at;
    if (!(entry & VMMC2_VALID) || bytes > VMMC2_DATA || at >= l->page || bytes > l->page - at || (at & 3) ||
        e->reference > 0xffff) {
        card.errors++;
        end_request(l, i, what & VMMC2_LAST);
        return;
    }
    if (kept[to] >= VMMC2_WINDOW || !l->frees || (b == l->sending && !(status & SDONE)))
        return;
    uint32_t physical = translate(l, i, e->reference);
    if (!physical) {
        if (l->engine == IDLE) { /* there is none */
            l->looked = 0;
            card.errors++;
            end_request(l, i, what & VMMC2_LAST);
        }
        return;
    }
    l->frees--;
    l->frees_at = (l->frees_at + 1) & (VMMC2_BUFFERS - 1);
    l->turn = i + 1 < card.processes ? i + 1 : 0;
    volatile uint32_t *h = packet[b];
    nic_dma(physical + at, SRAM_AT(h + VMMC2_HEADER / 4), FROM_HOST, (bytes + 3) & ~3u);
    l->engine = FETCHING;
    l->filling = b;
    l->fill_process = i;
    l->fill_node = to;
    l->fill_last = what & VMMC2_LAST;
    l->bulk = bytes >= VMMC2_DATA / 4;
    kept[to]++;
    l->unacked++;
    h[0] = VMMC2_KIND_DATA << 24 | l->node << 16 | bytes;
    h[3] = (what & VMMC2_LAST) | (entry & 0xffff);
    h[4] = e->offset;
    h[5] = e->whole;
    bytes_of[b] = VMMC2_HEADER + ((bytes + 3) & ~3u);
}

FIRMWARE void look_for_request(struct vmmc2_loop *l, uint32_t status)
{
    uint32_t i = l->turn, attached = card.processes;
    for (uint32_t k = attached; k; k--) {
        if (RARELY(head[i]->bytes)) {
            start_fetch(l, i, status);
            if (l->engine != IDLE)
                return;
        }
        i = i + 1 < attached ? i + 1 : 0;
    }
}

/* ---- arrivals ---- */

static void arrived(struct vmmc2_loop *l, uint32_t status)
{
    volatile uint32_t *h = card.in[l->room];
    uint32_t n = nic_read(RLEN), kind = h[0] >> 24, from = h[0] >> 16 & 0xff, bytes = h[0] & 0xffff;
    if (status & CRCERR || n < VMMC2_ANSWER || from >= l->nodes || from == l->node) {
        card.errors++; /* as if it were lost: it comes again */
    } else if (kind == VMMC2_KIND_ACK || kind == VMMC2_KIND_GAP) {
        acknowledged(l, from, h[2]);
        if (kind == VMMC2_KIND_GAP)
            again(l, from);
    } else if (kind != VMMC2_KIND_DATA || n != VMMC2_HEADER + ((bytes + 3) & ~3u) || !bytes || bytes > VMMC2_DATA ||
               bytes > l->page) {
        card.errors++;
    } else {
        acknowledged(l, from, h[2]);
        if (h[1] != expected[from]) {
            uint32_t gap = (int32_t)(h[1] - expected[from]) > 0;
            card.gaps += gap; /* of those that follow one that is missing, the first says so */
            if (!dropping[from] || !gap)
                answer(l, from, gap && h[1] == expected[from] + 1 ? VMMC2_KIND_GAP : VMMC2_KIND_ACK);
        } else if (place(l, h, from)) {
            expected[from]++;
            dropping[from] = 0;
            answer(l, from, VMMC2_KIND_ACK);
            if (l->arriving)
                l->room ^= 1;
        } else {
            card.dropped++;
            dropping[from] = 1; /* it comes again when its sender's patience is over, and those behind it, too */
        }
    }
    nic_arm(SRAM_AT(card.in[l->room]), sizeof card.in[0]);
}

static void deliver(struct vmmc2_loop *l)
{
    uint32_t k = l->in_export;
    if (l->in_left) {
        uint32_t physical = translate(l, l->in_process, l->in_reference), fits = l->page - l->in_at;
        if (!physical) {
            if (l->engine == IDLE) { /* the program has posted a page that it has not referred to */
                l->looked = 0;
                card.refused++;
                l->in_left = 0;
                begun[k] = 1 + VMMC2_REFUSED;
            }
            return;
        }
        fits = l->in_left < fits ? l->in_left : fits;
        nic_dma(physical + l->in_at, l->in_from, TO_HOST, fits);
        l->engine = DELIVERING;
        l->in_left -= fits;
        l->in_from += fits;
        l->in_at = 0;
        l->in_reference++;
        return;
    }
    l->arriving = 0;
    if (!l->in_last)
        return;
    uint32_t m = message[k]++;
    card.record[0] = m + 1;
    card.record[1] = begun[k] - 1;
    card.record[2] = card.in[l->room ^ 1][5];
    begun[k] = 0;
    nic_dma(card.export[k].record_at + (m & (VMMC2_RECORDS - 1)) * VMMC2_RECORD, SRAM_AT(card.record), TO_HOST,
            VMMC2_RECORD);
    l->engine = RECORDING;
}

static void engine_is_done(struct vmmc2_loop *l)
{
    uint32_t was = l->engine;
    l->engine = IDLE;
    if (was == FETCHING)
        fetched(l);
    else if (was == LOOKING)
        looked_up(l);
    else if (was == RECORDING && card.export[l->in_export].notify)
        nic_write(HIRQ, 1);
}

FIRMWARE void step(struct vmmc2_loop *l)
{
    uint32_t status = nic_read(ISR);
    if (RARELY(l->engine != IDLE) && (status & HDONE))
        engine_is_done(l);
    if (RARELY(status & RECV) && !l->arriving)
        arrived(l, status);
    if (RARELY(l->wants_n) && (status & SDONE) && !l->bulk) { /* what is short leaves before anything else is begun */
        send_packet(l);
        return;
    }
    if (l->engine == IDLE) {
        if (RARELY(l->arriving)) {
            deliver(l);
        } else if (RARELY(l->report)) {
            volatile struct vmmc2_process *p = process_of[l->report - 1];
            l->report = 0;
            l->engine = REPORTING;
            card.line[0] = p->done; /* a copy: the process goes on */
            nic_dma(p->status_at, SRAM_AT(card.line), TO_HOST, 4);
        } else {
            look_for_request(l, status);
        }
    }
    if (RARELY(l->answers_n | l->wants_n) && (status & SDONE)) {
        if (l->wants_n)
            send_packet(l);
        else
            send_answer(l);
    }
    if (RARELY(status & TIMER))
        tick(l);
    else if (RARELY(l->unacked) && !l->ticking) {
        l->ticking = 1;
        nic_write(TMR, card.tick);
    }
}

LOOP_OF_CARD(struct vmmc2_loop)
