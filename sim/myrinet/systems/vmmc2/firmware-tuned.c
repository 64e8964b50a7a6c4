/* SPDX-License-Identifier: BSD-3-Clause
 *
 * VMMC-2's firmware written again for speed alone, with the tables and checks of kept.h: a packet leaves in the turn in
 * which its page has come, one that arrives starts its transfer before its sender is answered, the record of a message
 * is made while its data are on the bus, and a turn that finds nothing looks at three words. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/vmmc2/layout.h"

volatile struct vmmc2_card card;
enum { NONE = 0xffff, IDLE = 0, FETCHING, DELIVERING, LOOKING, REPORTING, RECORDING, TAG_SHIFT = 16 };
#include "sim/myrinet/systems/vmmc2/kept.h"

static uint32_t wakes;              /* bits of the status that there is something to do for */
static uint32_t at_wrong;           /* bits that a place in a page does not have */
static uint32_t open_at, open_both; /* SRAM: the open buffer; xor with the other one */
static uint32_t whole, record_to;   /* of the message that arrives; host address of its record */

/* ---- a process's sends ---- */

/* The page of a packet has come from the host. The status, without the bit of an engine that works now. */
FIRMWARE uint32_t fetched(struct vmmc2_loop *l, uint32_t status)
{
    uint32_t b = l->filling, to = l->fill_node, is = status;
    if (unsent[to] == NONE && !l->wants_n && (status & SDONE)) {
        packet[b][2] = expected[to];
        nic_send(card.route[to], SRAM_AT(packet[b]), bytes_of[b]);
        if (answer_due[to] == VMMC2_KIND_ACK)
            answer_due[to] = 0;
        l->sending = b;
        is &= ~(uint32_t)SDONE;
    } else {
        if (unsent[to] == NONE)
            unsent[to] = b;
        want(l, to);
    }
    next_of[b] = NONE;
    if (oldest[to] == NONE)
        oldest[to] = b;
    else
        next_of[last[to]] = b;
    last[to] = b;
    l->filling = NONE;
    end_request(l, l->fill_process, l->fill_last);
    return is;
}

FIRMWARE void start_fetch(struct vmmc2_loop *l, uint32_t i, uint32_t status)
{
    volatile struct vmmc2_request *e = head[i];
    uint32_t bytes = e->bytes, what = e->what, at = e->at, reference = e->reference, import = what & 0xffff, entry = 0;
    if (!RARELY(import >= VMMC2_IMPORTS))
        entry = process_of[i]->outgoing[import];
    if (RARELY((~entry & VMMC2_VALID) | (at & at_wrong) | reference >> 16 || bytes > VMMC2_DATA ||
               bytes > l->page - at)) {
        card.errors++;
        end_request(l, i, what & VMMC2_LAST);
        return;
    }
    uint32_t to = entry >> 16 & (VMMC2_NODES - 1), b = free_buffer[l->frees_at], padded = (bytes + 3) & ~3u;
    if (RARELY(kept[to] >= VMMC2_WINDOW || !l->frees || (b == l->sending && !(status & SDONE))))
        return;
    uint32_t physical = translate(l, i, reference);
    if (RARELY(!physical)) {
        if (l->engine == IDLE) { /* there is none */
            l->looked = 0;
            card.errors++;
            end_request(l, i, what & VMMC2_LAST);
        }
        return;
    }
    volatile uint32_t *h = packet[b];
    nic_dma(physical + at, SRAM_AT(h + VMMC2_HEADER / 4), FROM_HOST, padded);
    l->engine = FETCHING;
    h[0] = VMMC2_KIND_DATA << 24 | l->node << 16 | bytes;
    h[1] = number[to]++;
    h[3] = (what & VMMC2_LAST) | (entry & 0xffff);
    h[4] = e->offset;
    h[5] = e->whole;
    bytes_of[b] = VMMC2_HEADER + padded;
    l->filling = b;
    l->fill_process = i;
    l->fill_node = to;
    l->fill_last = what & VMMC2_LAST;
    l->bulk = bytes >= VMMC2_DATA / 4;
    l->frees--;
    l->frees_at = (l->frees_at + 1) & (VMMC2_BUFFERS - 1);
    l->turn = i + 1 < card.processes ? i + 1 : 0;
    kept[to]++;
    l->unacked++;
}

FIRMWARE void look_for_request(struct vmmc2_loop *l, uint32_t status)
{
    uint32_t i = l->turn, attached = card.processes;
    for (uint32_t k = attached; k; k--) {
        if (head[i]->bytes) {
            start_fetch(l, i, status);
            if (l->engine != IDLE)
                return;
        }
        i = i + 1 < attached ? i + 1 : 0;
    }
}

/* ---- arrivals ---- */

FIRMWARE void make_record(struct vmmc2_loop *l)
{
    uint32_t k = l->in_export, m = message[k];
    card.record[0] = m + 1;
    card.record[1] = begun[k] - 1;
    card.record[2] = whole;
    record_to = card.export[k].record_at + (m & (VMMC2_RECORDS - 1)) * VMMC2_RECORD;
}

FIRMWARE void send_record(struct vmmc2_loop *l)
{
    nic_dma(record_to, SRAM_AT(card.record), TO_HOST, VMMC2_RECORD);
    l->engine = RECORDING;
    l->arriving = 0;
    message[l->in_export]++;
    begun[l->in_export] = 0;
}

/* With the engine idle: what has arrived goes on to the host. */
static void deliver(struct vmmc2_loop *l)
{
    if (l->in_left) {
        uint32_t physical = translate(l, l->in_process, l->in_reference), fits = l->page - l->in_at;
        if (RARELY(!physical)) {
            if (l->engine == IDLE) { /* the program has posted a page that it has not referred to */
                l->looked = 0;
                card.refused++;
                l->in_left = 0;
                begun[l->in_export] = 1 + VMMC2_REFUSED;
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
        if (!l->in_left && l->in_last)
            make_record(l);
        return;
    }
    if (l->in_last) {
        make_record(l);
        send_record(l);
    }
    l->arriving = 0;
}

/* What is not the next packet of data. */
static void others(struct vmmc2_loop *l, volatile uint32_t *h, uint32_t from, uint32_t kind)
{
    if (kind == VMMC2_KIND_ACK || kind == VMMC2_KIND_GAP) {
        acknowledged(l, from, h[2]);
        if (kind == VMMC2_KIND_GAP)
            again(l, from);
        return;
    }
    acknowledged(l, from, h[2]);
    uint32_t gap = (int32_t)(h[1] - expected[from]) > 0;
    card.gaps += gap; /* of those that follow one that is missing, the first says so */
    if (!dropping[from] || !gap)
        answer(l, from, gap && h[1] == expected[from] + 1 ? VMMC2_KIND_GAP : VMMC2_KIND_ACK);
}

static void arrived(struct vmmc2_loop *l, uint32_t status)
{
    volatile uint32_t *h = WORDS_AT(open_at);
    uint32_t n = nic_read(RLEN), first = h[0], kind = first >> 24, from = first >> 16 & 0xff, bytes = first & 0xffff;
    if (RARELY(status & CRCERR || n < VMMC2_ANSWER || from >= l->nodes || from == l->node)) {
        card.errors++; /* as if it were lost: it comes again */
    } else if (kind == VMMC2_KIND_DATA) {
        if (RARELY(n != VMMC2_HEADER + ((bytes + 3) & ~3u) || !bytes || bytes > VMMC2_DATA || bytes > l->page)) {
            card.errors++;
        } else if (RARELY(h[1] != expected[from])) {
            others(l, h, from, kind);
        } else if (place(l, h, from)) {
            if (l->arriving) {
                whole = h[5];
                if (l->engine == IDLE)
                    deliver(l);
                open_at ^= open_both;
            }
            nic_arm(open_at, sizeof card.in[0]);
            expected[from]++;
            dropping[from] = 0;
            answer(l, from, VMMC2_KIND_ACK);
            acknowledged(l, from, h[2]);
            return;
        } else {
            acknowledged(l, from, h[2]);
            card.dropped++;
            dropping[from] = 1; /* it comes again when its sender's patience is over, and those behind it, too */
        }
    } else if (kind == VMMC2_KIND_ACK || kind == VMMC2_KIND_GAP) {
        others(l, h, from, kind);
    } else {
        card.errors++;
    }
    nic_arm(open_at, sizeof card.in[0]);
}

/* The status, without the bit of an engine that works now. */
FIRMWARE uint32_t engine_is_done(struct vmmc2_loop *l, uint32_t status)
{
    uint32_t was = l->engine;
    l->engine = IDLE;
    if (was == FETCHING)
        return fetched(l, status);
    if (was == DELIVERING) {
        if (!l->in_left) {
            if (l->in_last)
                send_record(l);
            l->arriving = 0;
        }
    } else if (was == LOOKING) {
        looked_up(l);
    } else if (was == RECORDING && card.export[l->in_export].notify) {
        nic_write(HIRQ, 1);
    }
    return status;
}

static void whole_turn(struct vmmc2_loop *l, uint32_t now)
{
    uint32_t status = now;
    if (l->engine != IDLE && (status & HDONE))
        status = engine_is_done(l, status);
    if (RARELY(status & RECV) && !l->arriving)
        arrived(l, status);
    if (RARELY(l->wants_n) && (status & SDONE) && !l->bulk) { /* what is short leaves before anything else is begun */
        send_packet(l);
        status &= ~(uint32_t)SDONE;
    }
    if (l->engine == IDLE) {
        if (l->arriving) {
            deliver(l);
        } else if (RARELY(l->report)) {
            volatile struct vmmc2_process *p = process_of[l->report - 1];
            l->report = 0;
            l->engine = REPORTING;
            card.line[0] = p->done; /* a copy: the process goes on */
            nic_dma(p->status_at, SRAM_AT(card.line), TO_HOST, 4);
        } else {
            look_for_request(l, status);
            if (l->engine != IDLE && l->ticking && !(status & TIMER) && !(l->answers_n | l->wants_n)) {
                wakes = TIMER | RECV | HDONE;
                return;
            }
        }
    }
    if (RARELY(l->answers_n | l->wants_n) && (status & SDONE)) {
        if (l->wants_n)
            send_packet(l);
        else
            send_answer(l);
    }
    if (RARELY(status & TIMER)) {
        tick(l);
    } else if (RARELY(l->unacked) && !l->ticking) {
        l->ticking = 1;
        nic_write(TMR, card.tick);
    }
    wakes = TIMER | (l->arriving ? 0 : RECV) | (l->engine | l->arriving | l->report ? HDONE : 0) |
            (l->answers_n | l->wants_n ? SDONE : 0);
}

FIRMWARE void step(struct vmmc2_loop *l)
{
    uint32_t status = nic_read(ISR), i = l->turn, is = status & wakes, idle = !(wakes & HDONE);
    if (idle)
        is |= head[i]->bytes;
    if (RARELY(is))
        whole_turn(l, status);
    else if (RARELY(card.processes > 1) && idle)
        l->turn = i + 1 < card.processes ? i + 1 : 0;
}

static void init_tuned(struct vmmc2_loop *l)
{
    init(l);
    wakes = TIMER | RECV;
    at_wrong = ~(l->page - 1) | 3;
    open_at = SRAM_AT(card.in[0]);
    open_both = open_at ^ SRAM_AT(card.in[1]);
}
#define init init_tuned
LOOP_OF_CARD(struct vmmc2_loop)
