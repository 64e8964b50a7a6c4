/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - the host's half of my_credits, and what experiments do with it. Time passes in the calls myri_task_...
 * alone: each takes what it takes on the machine. runnel-paper-tutorial(7) has a table of them; hw.h, below
 * include/runnel/paper/sim/myrinet/hw where runnel is installed, has all. */
#include "layout.h"
#include "sim/myrinet/systems/system.h"

#include <stddef.h>

enum {
    SLOT = PACKET,        /* bytes of the area for each descriptor */
    BUFFER = PACKET + 64, /* bytes of a buffer: the payload ends, and the mark lies, behind PACKET bytes */
    CALL = 35,            /* operations of the host's processor for a call of the library */
    HANDLER = 12          /* and for handing a packet over */
};

struct state {
    uint32_t card, area, buffers; /* addresses: of `card` in the card's memory; in the host's memory */
    uint32_t packet;              /* bytes of payload that this run cuts messages into */
    uint32_t sent, known_free;    /* descriptors used ever; of which this many may be used without a look */
    uint32_t taken;               /* packets, ever */
    uint32_t share;               /* buffers that each node has here, and this one at each */
    uint32_t used[NODES];         /* buffers there that packets of ours went into, ever */
    uint32_t known[NODES];        /* of them, as far as we know, given back */
    uint32_t owed[NODES];         /* buffers here that their packets came in, and that they may use again */
    uint32_t message, filled;     /* host address of a message that is put together; bytes that are there */
};

/* The address of a field of `card`. */
#define AT(field) (s->card + (uint32_t)offsetof(struct card, field))

/* ---- sending ---- */

/* Descriptors are freed in order, so one look across the bus, half a ring ahead, is enough for eight. */
static void want_descriptor(struct myri_task *t, struct state *s)
{
    if (s->known_free == 0) {
        uint32_t flag, ahead = (s->sent + RING / 2 - 1) & (RING - 1);
        if (myri_task_await(t, AT(send) + ahead * (uint32_t)sizeof(struct descriptor), FREE, 0, &flag) < 0)
            return;
        s->known_free = RING / 2;
    }
    s->known_free--;
}

/* No packet goes before there is a buffer for it. */
static void want_credit(struct myri_task *t, struct state *s, uint32_t to)
{
    if (s->used[to] - s->known[to] == s->share)
        myri_task_await(t, AT(returned) + 4 * to, s->known[to] + 1, 1, &s->known[to]);
    s->used[to]++;
}

/* With it goes what is owed to that node. No bytes: for the sake of that alone. */
static void send_packet(struct myri_side *side, uint32_t to, uint32_t from, uint32_t bytes)
{
    struct state *s = side->state;
    struct myri_task *t = side->task;
    uint32_t slot = s->sent & (RING - 1), at = AT(send) + slot * (uint32_t)sizeof(struct descriptor);
    myri_task_operate(t, CALL, "library");
    if (bytes)
        want_credit(t, s, to);
    want_descriptor(t, s);
    myri_task_copy(t, s->area + slot * SLOT, from, bytes); /* only the area is pinned, so that a card may read it */
    const uint32_t rest[4] = {to, bytes, slot * SLOT, s->owed[to]};
    myri_task_store_words(t, at + 4, rest, 4);
    myri_task_store(t, at, POSTED); /* last: the card looks at the flag */
    s->owed[to] = 0;
    s->sent++;
}

static void send(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct state *s = side->state;
    for (uint32_t at = 0; at < bytes; at += s->packet)
        send_packet(side, to, side->out + at, bytes - at < s->packet ? bytes - at : s->packet);
}

/* ---- receiving ---- */

/* The next packet, if it has come by that tick. One that is a whole message is used where it lies. */
static int take_packet(struct myri_side *side, uint64_t until)
{
    struct state *s = side->state;
    struct myri_task *t = side->task;
    uint32_t slot = s->taken & (RING - 1), buffer = s->buffers + slot * BUFFER, end = buffer + PACKET;
    uint32_t mark = myri_task_poll(t, end, 0, until);
    if (!mark)
        return 0;
    uint32_t bytes = MARK_BYTES(mark), payload = end - ((bytes + 3) & ~3u);
    myri_task_operate(t, HANDLER, "handler");
    side->from = MARK_NODE(mark);
    side->got = payload;
    if (side->largest > s->packet) {
        myri_task_copy(t, s->message + s->filled, payload, bytes);
        side->got = s->message;
    }
    s->filled += bytes;
    myri_host_set_word(side->host, end, 0);
    myri_task_store(t, AT(receive) + slot * 4, buffer);
    s->taken++;
    if (++s->owed[side->from] > s->share / 2) /* not for each: every packet costs, and what goes there takes it along */
        send_packet(side, side->from, 0, 0);
    return 1;
}

static uint32_t receive(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct state *s = side->state;
    while (s->filled < bytes) /* goes on where the last call gave up, if it did */
        if (!take_packet(side, until))
            return 0;
    uint32_t got = s->filled;
    s->filled = 0;
    return got;
}

/* ---- before the run ---- */

static int open(struct myri_side *side)
{
    struct state *s = side->state;
    s->card = myri_card_symbol(side->hw, "card");
    s->packet = side->packet ? side->packet : PACKET;
    s->known_free = RING;
    s->share = RING / (side->nodes - 1);
    if (s->share == 0)
        myri_hw_fault(side->hw, "%d buffers are too few for %u senders: make RING of layout.h larger", RING,
                      side->nodes - 1);
    s->area = myri_host_take(side->host, RING * SLOT, 1);
    s->buffers = myri_host_take(side->host, RING * BUFFER, 1);
    s->message = myri_host_take(side->host, side->largest + s->packet, 0);
    if (side->hw->fault[0])
        return -1;
    myri_card_poke(side->card, AT(area), s->area);
    for (uint32_t i = 0; i < RING; i++)
        myri_card_poke(side->card, AT(receive) + 4 * i, s->buffers + i * BUFFER);
    return 0;
}

const struct myri_system myri_system_here = {
    .name = "my_credits",
    .title = "my_credits",
    .machines = "H-PP", /* where it runs if nothing else is said: runnel paper machine H-PP */
    .state_bytes = sizeof(struct state),
    .most = 1 << 20, /* bytes of a message */
    .packet_least = 4,
    .packet_most = PACKET,
    .piece = PACKET, /* what comes at once, and so may come from several */
    .on_crc = "my_credits takes the network to be reliable",
    .open = open,
    .send = send,
    .receive = receive,
};
