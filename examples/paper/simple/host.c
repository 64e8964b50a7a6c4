/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - the host's half of my_simple, and what experiments do with it. Time passes in the calls myri_task_...
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

static void send_packet(struct myri_side *side, uint32_t to, uint32_t from, uint32_t bytes)
{
    struct state *s = side->state;
    struct myri_task *t = side->task;
    uint32_t slot = s->sent & (RING - 1), at = AT(send) + slot * (uint32_t)sizeof(struct descriptor);
    myri_task_operate(t, CALL, "library");
    want_descriptor(t, s);
    myri_task_copy(t, s->area + slot * SLOT, from, bytes); /* only the area is pinned, so that a card may read it */
    const uint32_t rest[3] = {to, bytes, slot * SLOT};
    myri_task_store_words(t, at + 4, rest, 3);
    myri_task_store(t, at, POSTED); /* last: the card looks at the flag */
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
    s->area = myri_host_take(side->host, RING * SLOT, 1);
    s->buffers = myri_host_take(side->host, RING * BUFFER, 1);
    s->message = myri_host_take(side->host, side->largest + s->packet, 0);
    if (side->hw->fault[0]) /* one of these has not been there */
        return -1;
    myri_card_poke(side->card, AT(area), s->area);
    for (uint32_t i = 0; i < RING; i++)
        myri_card_poke(side->card, AT(receive) + 4 * i, s->buffers + i * BUFFER);
    return 0;
}

const struct myri_system myri_system_here = {
    .name = "my_simple",
    .title = "my_simple",
    .machines = "H-PP", /* where it runs if nothing else is said: runnel paper machine H-PP */
    .state_bytes = sizeof(struct state),
    .most = 1 << 20, /* bytes of a message */
    .packet_least = 4,
    .packet_most = PACKET,
    .piece = PACKET, /* what comes at once, and so may come from several */
    .lossy = 1,      /* packets are dropped where no buffer is free */
    .on_crc = "my_simple sends nothing again",
    .open = open,
    .send = send,
    .receive = receive,
};
