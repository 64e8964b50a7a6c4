/* SPDX-License-Identifier: BSD-3-Clause
 *
 * channels.h - AM-II's protocol on the card, which both firmwares have: channels and their bits, answers, slots, and
 * what waits for the host. Each firmware has `card` and its own loop. */
#ifndef MYRI_AM2_CHANNELS_H
#define MYRI_AM2_CHANNELS_H

#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/am2/layout.h"

enum { AM2_NONE = 0xff, AM2_PAIRS = AM2_NODES * AM2_CHANNELS, AM2_CLOSED = AM2_SLOTS + 1 };
static uint32_t busy[AM2_PAIRS], bit[AM2_PAIRS], expected[AM2_PAIRS]; /* of a channel: slot + 1; the next bit */
static uint32_t channel[AM2_SLOTS], age[AM2_SLOTS], tries[AM2_SLOTS], due[AM2_SLOTS]; /* due: to be sent */

struct am2_loop {
    uint32_t node, nodes;
    uint32_t at, active; /* the slot that is looked at next; slots with a message */
    uint32_t taken_in;   /* messages that have been accepted */
    uint32_t ready;      /* of them, those that the host may read */
    uint32_t engine;     /* AM2_NONE; AM2_SLOTS: data of what came goes into the host; or the slot that is filled */
    uint32_t answers, answer_at, ticking;
#ifdef AM2_BARE
    uint32_t leaving; /* AM2_NONE, or the slot whose message is on its way out */
#endif
};

static void open_next(struct am2_loop *l)
{
    nic_arm(SRAM_AT(card.ring[l->taken_in & (AM2_RING - 1)]), sizeof card.ring[0]);
}

#ifndef AM2_BARE
static void put_answer(struct am2_loop *l, uint32_t to, uint32_t what, uint32_t reason)
{
    uint32_t at = (l->answer_at + l->answers) & (AM2_ANSWERS - 1);
    if (l->answers == AM2_ANSWERS)
        return; /* as if the network had lost it */
    card.answer[at][0] = to;
    card.answer[at][1] = what;
    card.answer[at][2] = reason;
    l->answers++;
}
#endif

static void finish(struct am2_loop *l, uint32_t slot, uint32_t state, uint32_t reason)
{
    busy[channel[slot]] = 0;
    card.reason[slot] = reason;
    card.state[slot] = state;
    due[slot] = 0;
    l->active--;
}

#ifndef AM2_BARE
static void answered(struct am2_loop *l, uint32_t c, uint32_t kind, uint32_t its_bit, uint32_t reason)
{
    uint32_t slot = busy[c] - 1;
    if (!busy[c] || busy[c] == AM2_CLOSED || its_bit != bit[c])
        return; /* of an earlier one */
    if (kind == AM2_ACK) {
        bit[c] ^= 1;
        finish(l, slot, AM2_FREE, 0);
    } else if (reason != AM2_FULL) { /* it was not taken, and the bit stays */
        finish(l, slot, AM2_RETURNED, reason);
    } else {
        card.nacks++;
        age[slot] = card.patience - 1; /* again, with the next tick but one */
    }
}
#endif

#ifdef AM2_BARE
/* Nobody answers: what finds no room is lost. */
static void message_came(struct am2_loop *l, uint32_t n)
{
    uint32_t bytes = card.ring[l->taken_in & (AM2_RING - 1)][1] & 0xffff;
    if (bytes > AM2_DATA || ((bytes + 3) & ~3u) + 8 != n || !card.open || l->taken_in - card.taken >= AM2_RING - 1)
        card.errors++;
    else
        l->taken_in++;
}
#else
static void message_came(struct am2_loop *l, uint32_t first, uint32_t from, uint32_t c, uint32_t n)
{
    uint32_t back = l->node << 24 | (first & 0xff01);
    volatile uint32_t *at = card.ring[l->taken_in & (AM2_RING - 1)];
    uint32_t bytes = at[1] & 0xffff;
    if (bytes > AM2_DATA || ((bytes + 3) & ~3u) + 8 != n) {
        card.errors++;
    } else if ((first & 1) != expected[c]) {
        card.duplicates++;
        put_answer(l, from, back | AM2_ACK << 16, 0);
    } else if (!card.open) {
        put_answer(l, from, back | AM2_NACK << 16, AM2_BAD_ENDPOINT);
    } else if (l->taken_in - card.taken >= AM2_RING - 1) {
        put_answer(l, from, back | AM2_NACK << 16, AM2_FULL);
    } else {
        expected[c] ^= 1;
        l->taken_in++;
        put_answer(l, from, back | AM2_ACK << 16, 0);
    }
}
#endif

static void arrived(struct am2_loop *l, uint32_t status)
{
    volatile uint32_t *at = card.ring[l->taken_in & (AM2_RING - 1)];
    uint32_t first = at[0], n = nic_read(RLEN), from = first >> 24 & (AM2_NODES - 1), kind = first >> 16 & 0xff;
#ifndef AM2_BARE
    uint32_t c = from * AM2_CHANNELS + (first >> 8 & (AM2_CHANNELS - 1));
#endif
    if (status & CRCERR || n < 8 || from >= l->nodes || from == l->node)
        card.errors++; /* as if it were lost: it comes again */
#ifdef AM2_BARE
    else if (kind == AM2_MESSAGE)
        message_came(l, n);
#else
    else if (kind == AM2_MESSAGE)
        message_came(l, first, from, c, n);
    else if (kind == AM2_ACK || kind == AM2_NACK)
        answered(l, c, kind, first & 1, at[1]);
#endif
    else
        card.errors++;
    open_next(l);
}

/* A free channel to its node; without one it waits. */
static void assign(struct am2_loop *l, uint32_t slot)
{
    uint32_t to = card.to[slot], c = to * AM2_CHANNELS;
    if (to >= l->nodes || to == l->node) {
        card.reason[slot] = AM2_BAD_ENDPOINT;
        card.state[slot] = AM2_RETURNED;
        return;
    }
    uint32_t closed = 0;
    for (uint32_t k = 0; k < AM2_CHANNELS; k++, c++) {
        closed += busy[c] == AM2_CLOSED;
        if (busy[c])
            continue;
        busy[c] = slot + 1;
        channel[slot] = c;
        age[slot] = tries[slot] = 0;
        due[slot] = 1;
        card.slot[slot][0] = l->node << 24 | AM2_MESSAGE << 16 | k << 8 | bit[c];
        card.state[slot] = AM2_WAITS;
        l->active++;
        return;
    }
    if (closed == AM2_CHANNELS) {
        card.reason[slot] = AM2_UNREACHABLE;
        card.state[slot] = AM2_RETURNED;
    }
}

static void look_at_slot(struct am2_loop *l, uint32_t status)
{
    uint32_t slot = l->at, state = card.state[slot], bytes = card.slot[slot][1] & 0xffff;
    bytes = ((bytes > AM2_DATA ? AM2_DATA : bytes) + 3) & ~3u;
    if (state == AM2_POSTED) {
        assign(l, slot);
        if (due[slot])
            return; /* it is sent in the next turn */
    } else if (state == AM2_FETCH && status & HDONE && l->engine == AM2_NONE && bytes) {
        l->engine = slot;
        card.state[slot] = AM2_FETCHING;
        nic_dma(card.out_at + slot * AM2_PLACE, SRAM_AT(&card.slot[slot][2]), FROM_HOST, bytes);
    } else if (due[slot] && status & SDONE && !l->answers) {
        due[slot] = 0;
#ifdef AM2_BARE
        l->leaving = slot;
#endif
        nic_send(card.route[card.to[slot] & (AM2_NODES - 1)], SRAM_AT(card.slot[slot]), bytes + 8);
    }
    l->at = slot + 1 == AM2_SLOTS ? 0 : slot + 1;
}

#ifndef AM2_BARE
/* Sends each packet again that has waited long enough for its acknowledgement, or returns it to its sender. */
static void tick(struct am2_loop *l)
{
    for (uint32_t slot = 0; slot < AM2_SLOTS; slot++)
        if (card.state[slot] == AM2_WAITS && !due[slot] && ++age[slot] > card.patience) {
            age[slot] = 0;
            due[slot] = 1;
            card.resent++;
            if (++tries[slot] >= card.tries) {
                finish(l, slot, AM2_RETURNED, AM2_UNREACHABLE);
                busy[channel[slot]] = AM2_CLOSED; /* whether it has been taken is not known, nor then the next bit */
            }
        }
    l->ticking = l->active != 0;
    nic_write(TMR, l->active ? card.tick : 0);
}
#endif

static void put_into_host(struct am2_loop *l)
{
    uint32_t k = l->ready & (AM2_RING - 1), bytes = card.ring[k][1] & 0xffff;
    if (bytes <= AM2_SHORT) {
        card.ready = ++l->ready;
        return;
    }
    l->engine = AM2_SLOTS;
    nic_dma(card.in_at + k * AM2_PLACE, SRAM_AT(&card.ring[k][2]), TO_HOST, (bytes + 3) & ~3u);
}

static void begin_channels(struct am2_loop *l)
{
    l->node = nic_read(NODE);
    l->nodes = card.nodes;
    l->at = l->active = l->taken_in = l->ready = l->answers = l->answer_at = l->ticking = 0;
    l->engine = AM2_NONE;
#ifdef AM2_BARE
    l->leaving = AM2_NONE;
#endif
    for (uint32_t i = 0; i < AM2_PAIRS; i++)
        busy[i] = bit[i] = expected[i] = 0;
    for (uint32_t i = 0; i < AM2_SLOTS; i++)
        channel[i] = age[i] = tries[i] = due[i] = 0;
    open_next(l);
}

#endif
