/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AM-II's firmware written again for speed alone: the same protocol and memory as firmware.c. The slot that the host
 * should fill next is looked at in each turn, beside one of the others; a short message that has a channel and the wire
 * leaves in the turn that finds it; one that came is the host's, and is answered, in the turn in which it came. Slots
 * and places are found in tables instead of by multiplication. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/am2/layout.h"

volatile struct am2_card card;

#include "sim/myrinet/systems/am2/channels.h"

static uint32_t slot_at[AM2_SLOTS], ring_at[AM2_RING]; /* SRAM */
static uint32_t next;                                  /* the slot that the host fills next */

FIRMWARE void send_slot(struct am2_loop *l, uint32_t slot, uint32_t bytes)
{
    due[slot] = 0;
#ifdef AM2_BARE
    l->leaving = slot;
#endif
    nic_send(card.route[card.to[slot] & (AM2_NODES - 1)], slot_at[slot], bytes + 8);
    (void)l;
}

/* The host has filled the slot. */
static void next_is_filled(struct am2_loop *l, uint32_t status, uint32_t state)
{
    uint32_t slot = next, bytes = WORDS_AT(slot_at[slot])[1] & 0xffff;
    next = slot + 1 == AM2_SLOTS ? 0 : slot + 1;
    bytes = ((bytes > AM2_DATA ? AM2_DATA : bytes) + 3) & ~3u;
    if (state == AM2_POSTED) {
        assign(l, slot);
        if (due[slot] && status & SDONE && !l->answers)
            send_slot(l, slot, bytes);
    } else if (status & HDONE && l->engine == AM2_NONE && bytes) {
        l->engine = slot;
        nic_dma(card.out_at + slot * AM2_PLACE, slot_at[slot] + 8, FROM_HOST, bytes);
        card.state[slot] = AM2_FETCHING;
    }
}

#ifndef AM2_BARE
FIRMWARE void send_answer(struct am2_loop *l)
{
    volatile uint32_t *a = card.answer[l->answer_at];
    nic_send(card.route[a[0] & (AM2_NODES - 1)], SRAM_AT(&a[1]), 8);
    l->answer_at = (l->answer_at + 1) & (AM2_ANSWERS - 1);
    l->answers--;
}
#endif

/* A short message that nothing speaks against, and before which nothing waits, is the host's at once. */
FIRMWARE uint32_t take_at_once(struct am2_loop *l, uint32_t *status)
{
    volatile uint32_t *at = WORDS_AT(ring_at[l->taken_in & (AM2_RING - 1)]);
    uint32_t first = at[0], bytes = at[1] & 0xffff, from = first >> 24 & (AM2_NODES - 1);
    uint32_t c = from * AM2_CHANNELS + (first >> 8 & (AM2_CHANNELS - 1));
    if ((first >> 16 & 0xff) != AM2_MESSAGE || *status & CRCERR || from >= l->nodes || from == l->node)
        return 0;
    if (bytes > AM2_SHORT || ((bytes + 3) & ~3u) + 8 != nic_read(RLEN) || !card.open ||
        l->taken_in - card.taken >= AM2_RING - 1)
        return 0;
#ifndef AM2_BARE
    if ((first & 1) != expected[c])
        return 0;
#endif
    if (l->ready != l->taken_in || l->engine != AM2_NONE)
        return 0;
    card.ready = ++l->ready;
    l->taken_in = l->ready;
#ifdef AM2_BARE
    (void)c;
#else
    expected[c] = ~first & 1;
    first = l->node << 24 | AM2_ACK << 16 | (first & 0xff01);
    if (*status & SDONE && !l->answers) {
        volatile uint32_t *a = card.answer[0];
        a[1] = first;
        a[2] = 0;
        nic_send(card.route[from], SRAM_AT(&a[1]), 8);
        *status &= ~(uint32_t)SDONE;
    } else {
        put_answer(l, from, first, 0);
    }
#endif
    nic_arm(ring_at[l->ready & (AM2_RING - 1)], sizeof card.ring[0]);
    return 1;
}

FIRMWARE uint32_t is_filled(uint32_t state)
{
    _Static_assert(AM2_FETCH == AM2_POSTED + 1, "one comparison");
    return state - AM2_POSTED <= AM2_FETCH - AM2_POSTED;
}

/* One in turn. */
FIRMWARE void look_at_others(struct am2_loop *l, uint32_t status)
{
    uint32_t slot = l->at;
    if (RARELY(is_filled(card.state[slot]) || due[slot])) {
        look_at_slot(l, status);
        next = slot + 1 == AM2_SLOTS ? 0 : slot + 1;
    } else {
        l->at = slot + 1 == AM2_SLOTS ? 0 : slot + 1;
    }
}

FIRMWARE void step(struct am2_loop *l)
{
    volatile uint32_t *filled = &card.state[next];
    uint32_t status = nic_read(ISR), state = *filled;
#ifdef AM2_BARE
    if (RARELY(l->leaving != AM2_NONE) && status & SDONE) {
        finish(l, l->leaving, AM2_FREE, 0);
        l->leaving = AM2_NONE;
    }
#endif
    if (RARELY(status & RECV)) {
        if (!take_at_once(l, &status))
            arrived(l, status);
    }
    if (RARELY(l->engine != AM2_NONE) && status & HDONE) {
        if (l->engine == AM2_SLOTS)
            card.ready = ++l->ready;
        else
            card.state[l->at = l->engine] = AM2_POSTED;
        l->engine = AM2_NONE;
    }
    if (RARELY(l->ready != l->taken_in) && l->engine == AM2_NONE && status & HDONE)
        put_into_host(l);
    else if (RARELY(is_filled(state)))
        next_is_filled(l, status, state);
    else
        look_at_others(l, status);
#ifndef AM2_BARE
    if (RARELY(l->answers) && nic_read(ISR) & SDONE)
        send_answer(l);
    if (RARELY(status & TIMER)) {
        tick(l);
    } else if (RARELY(l->active) && !l->ticking) {
        l->ticking = 1;
        nic_write(TMR, card.tick);
    }
#endif
}

static void init(struct am2_loop *l)
{
    begin_channels(l);
    next = 0;
    for (uint32_t i = 0; i < AM2_SLOTS; i++)
        slot_at[i] = SRAM_AT(card.slot[i]);
    for (uint32_t i = 0; i < AM2_RING; i++)
        ring_at[i] = SRAM_AT(card.ring[i]);
}

LOOP_OF_CARD(struct am2_loop)
