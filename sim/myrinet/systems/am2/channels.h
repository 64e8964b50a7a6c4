/* SPDX-License-Identifier: BSD-3-Clause
 *
 * channels.h - AM-II's protocol on the card, which both firmwares have: channels and their bits, answers, slots of
 * frames, and what waits for the host. Each firmware has `card` and its own loop. */
#ifndef MYRI_AM2_CHANNELS_H
#define MYRI_AM2_CHANNELS_H

#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/am2/layout.h"

enum { AM2_PAIRS = AM2_NODES * AM2_CHANNELS, AM2_CLOSED = AM2_ALL_SLOTS + 1 };
enum { AM2_ARRIVING = AM2_ALL_SLOTS, AM2_MOVING_OUT, AM2_MOVING_IN, AM2_NONE };   /* the engine's, or a slot */
enum { AM2_IDLE, AM2_FETCHING, AM2_FETCHED, AM2_WAITS, AM2_AWAY };                /* what the card does with a slot */
static uint32_t busy[AM2_PAIRS], bit[AM2_PAIRS], expected[AM2_PAIRS];             /* channels: slot + 1; next bit */
static uint32_t channel[AM2_ALL_SLOTS], age[AM2_ALL_SLOTS], tries[AM2_ALL_SLOTS]; /* of slots */
static uint32_t does[AM2_ALL_SLOTS], due[AM2_ALL_SLOTS], copies[AM2_ALL_SLOTS];   /* due: to be sent */
static uint32_t header[AM2_ALL_SLOTS], said[AM2_ALL_SLOTS], leaves_at[AM2_ALL_SLOTS]; /* header; where it lies */
static uint32_t taken_in[AM2_FRAMES], flying[AM2_FRAMES]; /* messages accepted; slots with a transfer or no answer */
static volatile struct am2_slot *slot_of[AM2_ALL_SLOTS];
static volatile struct am2_frame *frame_of[AM2_FRAMES];

struct am2_loop {
    uint32_t node, nodes;
    uint32_t at, slots, active;        /* the slot that is looked at next; all of them; those with a message */
    uint32_t engine, room;             /* what it moves; the room that is open */
    uint32_t arriving, place, arrives; /* frame + 1 of a long message; where it goes, and from which room */
    uint32_t leaving;                  /* frame + 1 that the kernel wants out */
    uint32_t answers, answer_at, ticking;
#ifdef AM2_BARE
    uint32_t sending; /* AM2_NONE, or the slot whose message is on its way out */
#endif
};

FIRMWARE void open_next(struct am2_loop *l)
{
    nic_arm(SRAM_AT(card.in[l->room]), sizeof card.in[0]);
}

#ifndef AM2_BARE
FIRMWARE void put_answer(struct am2_loop *l, uint32_t to, uint32_t what, uint32_t reason)
{
    uint32_t at = (l->answer_at + l->answers) & (AM2_ANSWERS - 1);
    if (l->answers == AM2_ANSWERS)
        return; /* as if the network had lost it */
    card.answer[at][0] = to;
    card.answer[at][1] = what;
    card.answer[at][2] = reason;
    l->answers++;
}

FIRMWARE void send_answer(struct am2_loop *l, uint32_t *status)
{
    volatile uint32_t *a = card.answer[l->answer_at];
    l->answer_at = (l->answer_at + 1) & (AM2_ANSWERS - 1);
    l->answers--;
    nic_send(card.route[a[0] & (AM2_NODES - 1)], SRAM_AT(&a[1]), 8);
    *status &= ~(uint32_t)SDONE;
}

/* At once, if the wire is free and no other answer waits for it. */
FIRMWARE void answer(struct am2_loop *l, uint32_t *status, uint32_t to, uint32_t what, uint32_t reason)
{
    volatile uint32_t *a = card.answer[0];
    if (l->answers || !(*status & SDONE)) {
        put_answer(l, to, what, reason);
        return;
    }
    a[1] = what;
    a[2] = reason;
    nic_send(card.route[to], SRAM_AT(&a[1]), 8);
    *status &= ~(uint32_t)SDONE;
}
#endif

FIRMWARE void give_back(struct am2_loop *l, uint32_t slot, uint32_t state, uint32_t reason)
{
    volatile struct am2_slot *s = slot_of[slot];
    does[slot] = l->leaving == slot / AM2_SLOTS + 1 ? AM2_AWAY : AM2_IDLE;
    s->reason = reason;
    s->state = state;
}

FIRMWARE void finish(struct am2_loop *l, uint32_t slot, uint32_t state, uint32_t reason)
{
    busy[channel[slot]] = 0;
    due[slot] = 0;
    flying[slot / AM2_SLOTS]--;
    l->active--;
    give_back(l, slot, state, reason);
}

/* As the host posted it: it is sent when its frame is on the card again. */
static uint32_t posted(uint32_t slot)
{
    return (said[slot] & AM2_BYTES) > AM2_SHORT ? AM2_FETCH : AM2_POSTED;
}

#ifndef AM2_BARE
FIRMWARE void answered(struct am2_loop *l, uint32_t c, uint32_t kind, uint32_t its, uint32_t reason)
{
    uint32_t slot = busy[c] - 1;
    if (!busy[c] || busy[c] == AM2_CLOSED || (its & 1) != bit[c])
        return; /* of an earlier one */
    if (kind == AM2_ACK) {
        bit[c] ^= 1;
        finish(l, slot, AM2_FREE, 0);
    } else if ((its >> 18 & 63) != copies[slot]) {
        return; /* another copy of it is on its way, and could still be taken */
    } else if (reason != AM2_FULL && reason != AM2_ABSENT) { /* it was not taken, and the bit stays */
        finish(l, slot, AM2_RETURNED, reason);
    } else if (l->leaving == slot / AM2_SLOTS + 1) {
        finish(l, slot, posted(slot), 0);
    } else {
        card.nacks++;
        age[slot] = card.patience - 1; /* again, with the next tick but one */
        if (reason == AM2_ABSENT)
            tries[slot] = 0;
    }
}
#endif

static void want(uint32_t endpoint)
{
    if (card.wanted)
        return;
    card.wanted = endpoint + 1;
    nic_write(HIRQ, AM2_INTERRUPT_WANTED);
}

/* What came is the frame's: a short one is put into its ring, a long one waits where it is for the engine. */
FIRMWARE void accept(struct am2_loop *l, uint32_t f, uint32_t bytes)
{
    volatile struct am2_frame *to = frame_of[f];
    volatile uint32_t *h = card.in[l->room];
    uint32_t k = taken_in[f]++ & (AM2_RING - 1), words = bytes <= AM2_SHORT ? 2 + ((bytes + 3) >> 2) : 2;
    volatile uint32_t *at = to->ring[k];
    for (uint32_t i = 0; i < words; i++)
        at[i] = h[i];
    if (bytes > AM2_SHORT) {
        l->arriving = f + 1;
        l->place = to->in_at + k * AM2_PLACE;
        l->arrives = l->room;
        l->room ^= 1;
    } else if (l->arriving != f + 1) {
        to->ready = taken_in[f];
    }
}

FIRMWARE void message_came(struct am2_loop *l, uint32_t *status, uint32_t word, uint32_t from, uint32_t c, uint32_t n)
{
    uint32_t it = card.in[l->room][1], bytes = it & AM2_BYTES, endpoint = it >> 16 & 0xff;
    uint32_t where = endpoint < AM2_ENDPOINTS ? card.where[endpoint] : AM2_NO_ENDPOINT;
    uint32_t f = where - AM2_IN_FRAME, fits = where >= AM2_IN_FRAME && taken_in[f] - frame_of[f]->taken < AM2_RING;
    if (bytes > AM2_DATA || ((bytes + 3) & ~3u) + 8 != n) {
        card.errors++;
        return;
    }
#ifdef AM2_BARE /* nobody answers: what finds no room is lost */
    (void)status, (void)word, (void)from, (void)c;
    if (where == AM2_IN_HOST)
        want(endpoint);
    if (fits)
        accept(l, f, bytes);
    else
        card.errors++;
#else
    uint32_t kind = AM2_NACK, reason = 0;
    if ((word & 1) != expected[c]) {
        card.duplicates++;
        kind = AM2_ACK;
    } else if (where == AM2_NO_ENDPOINT) {
        reason = AM2_BAD_ENDPOINT;
    } else if (where == AM2_IN_HOST) {
        want(endpoint);
        reason = AM2_ABSENT;
    } else if (!fits) {
        reason = AM2_FULL;
    } else {
        expected[c] ^= 1;
        kind = AM2_ACK;
        accept(l, f, bytes);
    }
    answer(l, status, from, l->node << 24 | (word & 0xfcffff) | kind << 16, reason);
#endif
}

FIRMWARE void arrived(struct am2_loop *l, uint32_t *status)
{
    volatile uint32_t *at = card.in[l->room];
    uint32_t word = at[0], n = nic_read(RLEN), from = word >> 24 & (AM2_NODES - 1), kind = word >> 16 & 3;
    uint32_t c = from * AM2_CHANNELS + (word >> 8 & (AM2_CHANNELS - 1));
    if (*status & CRCERR || n < 8 || from >= l->nodes || from == l->node) {
        card.errors++; /* as if it were lost: it comes again */
    } else if (kind == AM2_MESSAGE) {
        if (l->arriving && n > AM2_SHORT + 8)
            return; /* it waits for the one before it */
        message_came(l, status, word, from, c, n);
    }
#ifndef AM2_BARE
    else if (kind == AM2_ACK || kind == AM2_NACK)
        answered(l, c, kind, word, at[1]);
#endif
    else
        card.errors++;
    open_next(l);
}

/* A free channel to its node; without one it waits. */
FIRMWARE void assign(struct am2_loop *l, uint32_t slot, uint32_t word)
{
    volatile struct am2_slot *s = slot_of[slot];
    volatile struct am2_frame *f = frame_of[slot / AM2_SLOTS];
    uint32_t k = s->to, name = k < AM2_NAMES ? f->name[k] : 0, to = name >> 8 & 0xff, c = to * AM2_CHANNELS;
    if (!(name & AM2_VALID) || to >= l->nodes || to == l->node) {
        give_back(l, slot, AM2_RETURNED, AM2_BAD_ENDPOINT);
        return;
    }
    uint32_t closed = 0;
    for (uint32_t i = 0; i < AM2_CHANNELS; i++, c++) {
        closed += busy[c] == AM2_CLOSED;
        if (busy[c])
            continue;
        busy[c] = slot + 1;
        channel[slot] = c;
        age[slot] = tries[slot] = 0;
        due[slot] = 1;
        header[slot] = l->node << 24 | AM2_MESSAGE << 16 | i << 8 | f->endpoint << 1 | bit[c];
        said[slot] = (word & 0xff00ffff) | (name & 0xff) << 16;
        leaves_at[slot] = (word & AM2_BYTES) > AM2_SHORT ? SRAM_AT(card.out[slot]) : SRAM_AT(s->word);
        does[slot] = AM2_WAITS;
        flying[slot / AM2_SLOTS]++;
        l->active++;
        return;
    }
    if (closed == AM2_CHANNELS)
        give_back(l, slot, AM2_RETURNED, AM2_UNREACHABLE);
}

/* The process may have written anything: its state is read once, and its word once for each message. */
FIRMWARE void take_up(struct am2_loop *l, uint32_t slot, uint32_t status, uint32_t state)
{
    volatile struct am2_slot *s = slot_of[slot];
    uint32_t word = s->word[1], bytes = word & AM2_BYTES;
    if (state == AM2_POSTED && bytes <= AM2_SHORT) {
        assign(l, slot, word);
    } else if (state != AM2_FETCH || bytes <= AM2_SHORT || bytes > AM2_DATA) {
        give_back(l, slot, AM2_RETURNED, AM2_BAD_ENDPOINT);
    } else if (status & HDONE && l->engine == AM2_NONE) {
        l->engine = slot;
        does[slot] = AM2_FETCHING;
        flying[slot / AM2_SLOTS]++;
        said[slot] = word;
        nic_dma(frame_of[slot / AM2_SLOTS]->out_at + (slot & (AM2_SLOTS - 1)) * AM2_PLACE, SRAM_AT(&card.out[slot][2]),
                FROM_HOST, (bytes + 3) & ~3u);
    }
}

/* Its header is written in the turn in which it leaves, as a process could write there. */
FIRMWARE void send_slot(struct am2_loop *l, uint32_t slot)
{
    volatile uint32_t *at = WORDS_AT(leaves_at[slot]);
    uint32_t word = said[slot];
    copies[slot] = (copies[slot] + 1) & 63;
    at[0] = header[slot] | copies[slot] << 18;
    at[1] = word;
    due[slot] = 0;
#ifdef AM2_BARE
    l->sending = slot;
#endif
    nic_send(card.route[channel[slot] / AM2_CHANNELS], leaves_at[slot], 8 + (((word & AM2_BYTES) + 3) & ~3u));
    (void)l;
}

/* ---- frames ---- */

/* The kernel wants a frame out: what has not left stays posted, what has is waited for. */
FIRMWARE void begin_to_leave(struct am2_loop *l, uint32_t f)
{
    l->leaving = f + 1;
    card.where[frame_of[f]->endpoint & (AM2_ENDPOINTS - 1)] = AM2_IN_HOST;
    for (uint32_t slot = f * AM2_SLOTS; slot < (f + 1) * AM2_SLOTS; slot++) {
        if (does[slot] == AM2_FETCHED)
            give_back(l, slot, posted(slot), 0);
        if (does[slot] == AM2_IDLE)
            does[slot] = AM2_AWAY;
    }
}

FIRMWARE void obey(struct am2_loop *l, uint32_t order, uint32_t status)
{
    uint32_t f = card.order_frame & (AM2_FRAMES - 1);
    volatile struct am2_frame *frame = frame_of[f];
    if (order == AM2_MOVE_OUT && !l->leaving)
        begin_to_leave(l, f);
    if (l->engine != AM2_NONE || !(status & HDONE))
        return;
    if (order == AM2_MOVE_IN) {
        l->engine = AM2_MOVING_IN;
        nic_dma(card.order_at, SRAM_AT(frame), FROM_HOST, sizeof *frame);
    } else if (!flying[f] && l->arriving != f + 1) {
        frame->taken_in = taken_in[f];
        l->engine = AM2_MOVING_OUT;
        nic_dma(card.order_at, SRAM_AT(frame), TO_HOST, sizeof *frame);
    }
}

FIRMWARE void begin_frame(struct am2_loop *l, uint32_t f)
{
    frame_of[f]->ready = taken_in[f] = frame_of[f]->taken_in;
    for (uint32_t slot = f * AM2_SLOTS; slot < (f + 1) * AM2_SLOTS; slot++)
        does[slot] = AM2_IDLE;
    if (l->slots < (f + 1) * AM2_SLOTS)
        l->slots = (f + 1) * AM2_SLOTS;
}

FIRMWARE void moved(struct am2_loop *l, uint32_t in)
{
    uint32_t f = card.order_frame & (AM2_FRAMES - 1);
    l->leaving = 0;
    if (in) {
        begin_frame(l, f);
        card.where[frame_of[f]->endpoint & (AM2_ENDPOINTS - 1)] = AM2_IN_FRAME + f;
    }
    card.order = 0;
    nic_write(HIRQ, AM2_INTERRUPT_MOVED);
}

FIRMWARE void engine_is_done(struct am2_loop *l)
{
    uint32_t was = l->engine;
    l->engine = AM2_NONE;
    if (was == AM2_ARRIVING) {
        frame_of[l->arriving - 1]->ready = taken_in[l->arriving - 1];
        l->arriving = 0;
    } else if (was >= AM2_MOVING_OUT) {
        moved(l, was == AM2_MOVING_IN);
    } else {
        flying[was / AM2_SLOTS]--;
        does[was] = AM2_FETCHED;
        if (l->leaving == was / AM2_SLOTS + 1)
            give_back(l, was, AM2_FETCH, 0);
        else
            l->at = was;
    }
}

FIRMWARE void put_into_host(struct am2_loop *l)
{
    volatile uint32_t *h = card.in[l->arrives];
    l->engine = AM2_ARRIVING;
    nic_dma(l->place, SRAM_AT(h + 2), TO_HOST, ((h[1] & AM2_BYTES) + 3) & ~3u);
}

FIRMWARE void look_at_slot(struct am2_loop *l, uint32_t status)
{
    uint32_t slot = l->at, is = does[slot];
    if (is == AM2_IDLE) {
        uint32_t state = slot_of[slot]->state;
        if (state == AM2_POSTED || state == AM2_FETCH)
            take_up(l, slot, status, state);
    } else if (is == AM2_FETCHED) {
        assign(l, slot, said[slot]);
    } else if (due[slot] && status & SDONE && !l->answers) {
        send_slot(l, slot);
    }
    if (due[slot] && is != AM2_WAITS)
        return; /* it is sent in the next turn */
    l->at = slot + 1;
    if (l->at >= l->slots) {
        uint32_t order = card.order;
        l->at = 0;
        if (RARELY(order))
            obey(l, order, status);
    }
}

#ifndef AM2_BARE
/* Sends each packet again that has waited long enough for its acknowledgement, or returns it to its sender. */
FIRMWARE void tick(struct am2_loop *l)
{
    for (uint32_t slot = 0; slot < l->slots; slot++)
        if (does[slot] == AM2_WAITS && !due[slot] && ++age[slot] > card.patience) {
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

FIRMWARE void begin_channels(struct am2_loop *l)
{
    l->node = nic_read(NODE);
    l->nodes = card.nodes;
    l->at = l->active = l->room = l->arriving = l->place = l->arrives = l->leaving = 0;
    l->answers = l->answer_at = l->ticking = 0;
    l->slots = AM2_SLOTS;
    l->engine = AM2_NONE;
#ifdef AM2_BARE
    l->sending = AM2_NONE;
#endif
    for (uint32_t i = 0; i < AM2_PAIRS; i++)
        busy[i] = bit[i] = expected[i] = 0;
    for (uint32_t i = 0; i < AM2_ALL_SLOTS; i++) {
        channel[i] = age[i] = tries[i] = due[i] = copies[i] = header[i] = said[i] = leaves_at[i] = 0;
        does[i] = AM2_AWAY;
        slot_of[i] = &card.frame[i / AM2_SLOTS].slot[i & (AM2_SLOTS - 1)];
    }
    for (uint32_t f = 0; f < AM2_FRAMES; f++) {
        frame_of[f] = &card.frame[f];
        flying[f] = taken_in[f] = 0;
        if (f < card.frames)
            begin_frame(l, f);
    }
    open_next(l);
}

#endif
