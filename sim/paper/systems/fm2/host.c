/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - FM 2.x's library; see host.h. One message is taken in at a time: packets of other senders wait in the ring
 * behind it, as they came, for there is one order on the wire into a card and no two messages of one pair interleave.
 */
#include "sim/paper/systems/fm2/host.h"

#include <stddef.h>

enum { LIBRARY = 35, PACKET = 15, HANDLER = 12, CREDIT_HANDLER = 255 }; /* host operations: of a call, of a packet */

#define IN_CARD(f, field) ((f)->card + (uint32_t)offsetof(struct fm2_card, field))

static uint32_t mark_at(const struct fm2 *f)
{
    return f->ring + f->next * FM2_SLOT + FM2_SLOT - 4;
}

static void release_slot(struct fm2 *f)
{
    rnl_host_set_word(f->side->host, mark_at(f), 0);
    f->next = (f->next + 1) % FM2_RING;
}

static void post(struct fm2 *f, uint32_t to, uint32_t handler, const uint32_t *words, uint32_t bytes, uint32_t flags)
{
    struct rnl_task *t = f->side->task;
    uint32_t n = (bytes + 3) / 4, packet[FM2_WORDS];
    if (f->posted - f->known_sent >= FM2_QUEUE &&
        rnl_task_await(t, IN_CARD(f, sent), f->posted - FM2_QUEUE * 3 / 4, 1, &f->known_sent) < 0)
        return;
    uint32_t end = IN_CARD(f, queue) + (f->posted % FM2_QUEUE + 1) * 4 * FM2_WORDS;
    for (uint32_t i = 0; i < n; i++)
        packet[i] = words[i];
    packet[n] = bytes << 16 | to << 8 | f->owed[to];
    packet[n + 1] = FM2_VALID | f->side->node << 24 | handler << 16 | flags;
    f->owed[to] = 0;
    rnl_task_operate(t, PACKET, "packet");
    rnl_task_combine(t, end - FM2_TRAILER - 4 * n, packet, n + 2);
    rnl_task_store(t, IN_CARD(f, posted), ++f->posted);
}

/* The packet in the next slot: one that only gives credit back is done with here. Returns its mark, or 0: nothing by
 * the tick, or, if `credit` is given, there is some now. */
static uint32_t next_packet(struct fm2 *f, uint64_t until, const uint32_t *credit)
{
    while (!credit || *credit == 0) {
        uint32_t mark = rnl_task_poll_by_call(f->side->task, mark_at(f), 0, until, f->receiving ? 0 : LIBRARY), lengths;
        uint32_t from = mark >> 24 & 0x7f;
        if (!mark || from >= f->side->nodes)
            return 0;
        rnl_task_operate(f->side->task, PACKET, "packet");
        lengths = rnl_host_word(f->side->host, mark_at(f) - 4);
        f->credit[from] += lengths & 0xff;
        rnl_host_set_word(f->side->host, mark_at(f) - 4, lengths & 0xffffff00u); /* taken once */
        if ((mark >> 16 & 0xff) != CREDIT_HANDLER)
            return mark;
        release_slot(f);
    }
    return 0;
}

static void done_with_packet(struct fm2 *f, uint32_t from)
{
    release_slot(f);
    if (++f->owed[from] >= f->share / 2)
        post(f, from, CREDIT_HANDLER, NULL, 0, 0);
}

static void handle_one(struct fm2 *f, uint32_t mark);

static void flush(struct fm2_stream *s, uint32_t flags)
{
    struct fm2 *f = s->fm;
    uint32_t *credit = &f->credit[s->peer], mark;
    while (*credit == 0 && !f->side->hw->fault[0]) { /* only what comes in can bring some */
        mark = next_packet(f, RNL_SIM_NEVER, credit);
        if (mark && f->receiving) {
            rnl_hw_fault(f->side->hw, "node %u: a handler sends without credit", f->side->node);
            return;
        }
        if (mark)
            handle_one(f, mark);
    }
    (*credit)--;
    post(f, s->peer, s->handler, s->words, s->filled, flags | (s->first ? FM2_FIRST : 0));
    s->filled = s->first = 0;
}

struct fm2_stream *fm2_begin_message(struct fm2 *f, uint32_t to, uint32_t handler)
{
    rnl_task_operate(f->side->task, LIBRARY, "library");
    f->out.fm = f;
    f->out.peer = to;
    f->out.handler = handler;
    f->out.filled = 0;
    f->out.first = 1;
    return &f->out;
}

void fm2_send_piece(struct fm2_stream *s, uint32_t from, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += 4) {
        if (s->filled == s->fm->packet)
            flush(s, 0);
        s->words[s->filled / 4] = rnl_host_word(s->fm->side->host, from + at);
        s->filled += 4;
    }
}

void fm2_end_message(struct fm2_stream *s)
{
    flush(s, FM2_LAST);
}

/* ---- receiving ---- */

static void enter_packet(struct fm2_stream *s, uint32_t mark)
{
    struct fm2 *f = s->fm;
    uint32_t bytes = rnl_host_word(f->side->host, mark_at(f) - 4) >> 16;
    s->left = bytes;
    s->at = mark_at(f) - 4 - ((bytes + 3) & ~3u);
    s->last = mark & FM2_LAST;
}

uint32_t fm2_receive(uint32_t to, struct fm2_stream *s, uint32_t bytes)
{
    struct fm2 *f = s->fm;
    uint32_t got = 0;
    while (got < bytes && !f->side->hw->fault[0]) {
        uint32_t n = bytes - got < s->left ? bytes - got : s->left;
        rnl_task_copy(f->side->task, to + got, s->at, n);
        got += n;
        s->at += n;
        s->left -= n;
        if (s->left || got == bytes || s->last)
            break;
        done_with_packet(f, s->peer);
        uint32_t mark = next_packet(f, RNL_SIM_NEVER, NULL);
        if (!mark)
            return got;
        enter_packet(s, mark);
    }
    return got;
}

static void handle_one(struct fm2 *f, uint32_t mark)
{
    struct fm2_stream *s = &f->in;
    s->fm = f;
    s->peer = mark >> 24 & 0x7f;
    s->handler = mark >> 16 & 0xff;
    f->receiving = 1;
    enter_packet(s, mark);
    rnl_task_operate(f->side->task, HANDLER, "handler");
    f->handler[s->handler](s, s->peer);
    while (!s->last) { /* what the handler did not take */
        done_with_packet(f, s->peer);
        mark = next_packet(f, RNL_SIM_NEVER, NULL);
        if (!mark)
            return;
        enter_packet(s, mark);
    }
    done_with_packet(f, s->peer);
    f->receiving = 0;
}

uint32_t fm2_extract(struct fm2 *f, uint32_t bytes, uint64_t until)
{
    uint32_t handled = 0;
    do {
        uint32_t mark = next_packet(f, until, NULL);
        if (!mark)
            break;
        handled += rnl_host_word(f->side->host, mark_at(f) - 4) >> 16;
        handle_one(f, mark);
        until = 0; /* only what is here */
    } while (handled < bytes);
    return handled;
}

int fm2_initialize(struct fm2 *f, struct rnl_side *side)
{
    f->side = side;
    f->card = rnl_card_symbol(side->hw, "card");
    f->packet = side->packet ? side->packet & ~3u : side->hw->machine.v[RNL_M_combined_rate] > 0 ? FM2_DATA : 128;
    if (f->packet > FM2_DATA || f->packet < 16)
        f->packet = FM2_DATA;
    f->ring = rnl_host_take(side->host, FM2_RING * FM2_SLOT, 1);
    f->share = FM2_RING / (side->nodes > 1 ? side->nodes - 1 : 1);
    for (uint32_t i = 0; i < side->nodes; i++)
        f->credit[i] = f->share - 1; /* one is for a packet that only gives credit back */
    if (side->hw->fault[0])
        return -1;
    rnl_host_ring(side->host, f->ring, FM2_SLOT, FM2_RING);
    rnl_card_poke(side->card, IN_CARD(f, ring_at), f->ring);
    for (uint32_t i = 0; i < side->nodes; i++)
        rnl_card_poke(side->card, IN_CARD(f, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

/* ---- experiments ---- */

struct state {
    struct fm2 fm;
    uint32_t in, got, length;
};

static void on_message(struct fm2_stream *s, uint32_t from)
{
    struct state *st = s->fm->owner;
    s->fm->side->from = from;
    st->length = fm2_receive(st->in, s, s->fm->side->largest);
    st->got++;
}

static int open_side(struct rnl_side *side)
{
    struct state *st = side->state;
    st->in = rnl_host_take(side->host, side->largest, 0);
    st->fm.owner = st;
    st->fm.handler[1] = on_message;
    return fm2_initialize(&st->fm, side);
}

static void send_message(struct rnl_side *side, uint32_t to, uint32_t bytes)
{
    struct state *st = side->state;
    struct fm2_stream *s = fm2_begin_message(&st->fm, to, 1);
    fm2_send_piece(s, side->out, bytes);
    fm2_end_message(s);
}

static uint32_t receive_message(struct rnl_side *side, uint32_t bytes, uint64_t until)
{
    struct state *st = side->state;
    st->got = 0;
    while (!st->got)
        if (fm2_extract(&st->fm, bytes ? 1 : 0, until) == 0)
            return 0;
    side->got = st->in;
    return st->length;
}

const struct rnl_system rnl_system_fm2 = {
    .name = "fm2",
    .title = "Fast Messages 2.x",
    .source = "papers 000, sections 4 and 5, and 002, section 7",
    .object = "systems/fm2/firmware",
    .machines = "H-FM2 H-P",
    .state_bytes = sizeof(struct state),
    .most = 65536,
    .on_crc = FM2_ON_CRC,
    .open = open_side,
    .send = send_message,
    .receive = receive_message,
};
