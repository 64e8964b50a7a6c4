/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AM-II's firmware written again for speed alone: the same protocol and memory as firmware.c. The slot that the host
 * should fill next is looked at in each turn, of one frame after the other, beside one of the other slots; a short
 * message that has a channel and the wire leaves in the turn that finds it; one that came is the host's, and is
 * answered, in the turn in which it came. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/am2/layout.h"

volatile struct am2_card card;

#include "sim/myrinet/systems/am2/channels.h"

static uint32_t next[AM2_FRAMES]; /* the slot that the host fills next */
static uint32_t looked_at;        /* the frame that is looked at */

FIRMWARE uint32_t after(uint32_t slot)
{
    return (slot & (AM2_SLOTS - 1)) == AM2_SLOTS - 1 ? slot + 1 - AM2_SLOTS : slot + 1;
}

FIRMWARE uint32_t is_filled(uint32_t state)
{
    _Static_assert(AM2_FETCH == AM2_POSTED + 1, "one comparison");
    return state - AM2_POSTED <= AM2_FETCH - AM2_POSTED;
}

FIRMWARE void next_is_filled(struct am2_loop *l, uint32_t slot, uint32_t status, uint32_t state)
{
    next[looked_at] = after(slot);
    take_up(l, slot, status, state);
    if (due[slot] && status & SDONE && !l->answers)
        send_slot(l, slot);
}

/* A short message that nothing speaks against is the host's at once. */
FIRMWARE uint32_t take_at_once(struct am2_loop *l, uint32_t *status)
{
    volatile uint32_t *h = card.in[l->room];
    uint32_t word = h[0], it = h[1], bytes = it & AM2_BYTES, from = word >> 24 & (AM2_NODES - 1);
    uint32_t endpoint = it >> 16 & 0xff;
    if ((word >> 16 & 3) != AM2_MESSAGE || *status & CRCERR || from >= l->nodes || from == l->node)
        return 0;
    if (bytes > AM2_SHORT || ((bytes + 3) & ~3u) + 8 != nic_read(RLEN) || endpoint >= AM2_ENDPOINTS)
        return 0;
    uint32_t f = card.where[endpoint] - AM2_IN_FRAME;
    if (f >= AM2_FRAMES || taken_in[f] - frame_of[f]->taken >= AM2_RING)
        return 0;
#ifndef AM2_BARE
    uint32_t c = from * AM2_CHANNELS + (word >> 8 & (AM2_CHANNELS - 1));
    if ((word & 1) != expected[c])
        return 0;
    expected[c] = ~word & 1;
#endif
    accept(l, f, bytes);
#ifndef AM2_BARE
    answer(l, status, from, l->node << 24 | (word & 0xfcffff) | AM2_ACK << 16, 0);
#endif
    open_next(l);
    return 1;
}

/* One in turn. */
FIRMWARE void look_at_others(struct am2_loop *l, uint32_t status)
{
    uint32_t slot = l->at, is = does[slot];
    if (slot + 1 == l->slots || (is == AM2_IDLE ? is_filled(slot_of[slot]->state) : is == AM2_FETCHED || due[slot])) {
        look_at_slot(l, status);
        if (is == AM2_IDLE && does[slot] != AM2_IDLE)
            next[slot / AM2_SLOTS] = after(slot);
    } else {
        l->at = slot + 1;
    }
}

FIRMWARE void step(struct am2_loop *l)
{
    uint32_t slot = next[looked_at], status = nic_read(ISR), state;
#ifdef AM2_BARE
    if (RARELY(l->sending != AM2_NONE) && status & SDONE) {
        finish(l, l->sending, AM2_FREE, 0);
        l->sending = AM2_NONE;
    }
#else
    if (RARELY(l->answers) && status & SDONE)
        send_answer(l, &status);
#endif
    if (RARELY(status & RECV) && !take_at_once(l, &status))
        arrived(l, &status);
    if (RARELY(l->engine != AM2_NONE) && status & HDONE)
        engine_is_done(l);
    state = slot_of[slot]->state; /* not sooner: what has just been answered is filled no more */
    if (RARELY(l->arriving) && l->engine == AM2_NONE && status & HDONE) {
        put_into_host(l);
    } else if (RARELY(is_filled(state)) && does[slot] == AM2_IDLE) {
        next_is_filled(l, slot, status, state);
    } else {
        look_at_others(l, status);
        if (RARELY(l->slots > AM2_SLOTS))
            looked_at = (looked_at + 1) * AM2_SLOTS < l->slots ? looked_at + 1 : 0;
    }
#ifndef AM2_BARE
    if (RARELY(status & TIMER)) {
        tick(l);
    } else if (RARELY(l->active) && !l->ticking) {
        l->ticking = 1;
        nic_write(TMR, card.tick);
    }
#endif
}

FIRMWARE void init(struct am2_loop *l)
{
    begin_channels(l);
    looked_at = 0;
    for (uint32_t f = 0; f < AM2_FRAMES; f++)
        next[f] = f * AM2_SLOTS;
}

LOOP_OF_CARD(struct am2_loop)
