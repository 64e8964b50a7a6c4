/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - the host's half of the simple protocol (paper 004, figure 1), and its side of experiments. Messages longer
 * than a packet are cut here, as the survey leaves it to users. */
#include "sim/myrinet/systems/simple/host.h"

#include <stddef.h>

enum { SLOT = SIMPLE_MAX, BUFFER = SIMPLE_MAX + 64, LIBRARY = 35, HANDLER = 12 }; /* host operations of a call */

#define AT(field) (s->card + (uint32_t)offsetof(struct simple_card, field))

/* Looks whether half of the ring is free again: descriptors are freed in order. */
static void want_descriptor(struct sni *s)
{
    if (s->known_free == 0) {
        uint32_t flag, ahead = (s->sent + SIMPLE_RING / 2 - 1) & (SIMPLE_RING - 1);
        if (myri_task_await(s->side->task, AT(send) + ahead * 16, SIMPLE_FREE, 0, &flag) < 0)
            return;
        s->known_free = SIMPLE_RING / 2;
    }
    s->known_free--;
}

void sni_send(struct sni *s, uint32_t to, uint32_t from, uint32_t bytes)
{
    struct myri_task *t = s->side->task;
    uint32_t slot = s->sent & (SIMPLE_RING - 1);
    myri_task_operate(t, LIBRARY, "library");
    want_descriptor(s);
    myri_task_copy(t, s->area + slot * SLOT, from, bytes);
    const uint32_t rest[3] = {to, bytes, slot * SLOT};
    myri_task_store_words(t, AT(send) + slot * 16 + 4, rest, 3);
    myri_task_store(t, AT(send) + slot * 16, SIMPLE_POSTED);
    s->sent++;
}

int sni_poll(struct sni *s, uint64_t until)
{
    struct myri_task *t = s->side->task;
    struct myri_host *h = s->side->host;
    uint32_t slot = s->next & (SIMPLE_RING - 1), end = s->buffers + slot * BUFFER + SIMPLE_MAX;
    uint32_t mark = myri_task_poll(t, end, 0, until);
    if (!mark)
        return 0;
    uint32_t bytes = mark & 0xffff, padded = (bytes + 3) & ~3u;
    myri_task_operate(t, HANDLER, "handler");
    s->handler(s->arg, mark >> 16 & 0x7fff, end - padded, bytes);
    myri_host_set_word(h, end, 0);
    myri_task_store(t, AT(receive) + slot * 4, s->buffers + slot * BUFFER);
    s->next++;
    return 1;
}

/* ---- experiments ---- */

struct simple_host_state {
    struct sni sni;
    uint32_t in, filled; /* a message being put together */
};

static void on_packet(void *arg, uint32_t from, uint32_t at, uint32_t bytes)
{
    struct myri_side *side = arg;
    struct simple_host_state *st = side->state;
    side->from = from;
    if (side->largest <= st->sni.packet) { /* used where it is */
        side->got = at;
    } else {
        myri_task_copy(side->task, st->in + st->filled, at, bytes);
        side->got = st->in;
    }
    st->filled += bytes;
}

static int open_side(struct myri_side *side)
{
    struct simple_host_state *st = side->state;
    struct sni *s = &st->sni;
    s->side = side;
    s->card = myri_card_symbol(side->hw, "card");
    s->packet = side->packet ? side->packet : 256;
    s->known_free = SIMPLE_RING;
    s->area = myri_host_take(side->host, SIMPLE_RING * SLOT, 1);
    s->buffers = myri_host_take(side->host, SIMPLE_RING * BUFFER, 1);
    st->in = myri_host_take(side->host, side->largest + side->hw->page, 0);
    s->handler = on_packet;
    s->arg = side;
    if (side->hw->fault[0])
        return -1;
    myri_card_poke(side->card, AT(area), s->area);
    for (uint32_t i = 0; i < SIMPLE_RING; i++)
        myri_card_poke(side->card, AT(receive) + 4 * i, s->buffers + i * BUFFER);
    s->next = 0;
    for (uint32_t i = 0; i < side->nodes; i++)
        myri_card_poke(side->card, AT(route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct simple_host_state *st = side->state;
    for (uint32_t at = 0; at < bytes; at += st->sni.packet)
        sni_send(&st->sni, to, side->out + at, bytes - at < st->sni.packet ? bytes - at : st->sni.packet);
}

static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct simple_host_state *st = side->state;
    while (st->filled < bytes) /* where the last call gave up, if it did */
        if (!sni_poll(&st->sni, until))
            return 0;
    uint32_t got = st->filled;
    st->filled = 0;
    return got;
}

static const struct myri_issues issues = {.transfer = "DMA, staging area",
                                          .translation = "offset in area",
                                          .protection = "none",
                                          .control = "poll",
                                          .reliability = "none: drops",
                                          .to_many = "no"};
#define SIMPLE_SYSTEM(id, called, titled, of)                                  \
    const struct myri_system myri_system_##id = {                              \
        .name = called,                                                        \
        .title = titled,                                                       \
        .source = "Bhoedjang et al. 1998, figure 1 and text",                  \
        .object = of,                                                          \
        .machines = "H-PP",                                                    \
        .state_bytes = sizeof(struct simple_host_state),                       \
        .most = 1 << 20,                                                       \
        .packet_least = 4,                                                     \
        .packet_most = SIMPLE_MAX,                                             \
        .piece = 256,                                                          \
        .lossy = 1,                                                            \
        .issues = &issues,                                                     \
        .on_crc = "the protocol itself is unreliable (Bhoedjang et al. 1998)", \
        .open = open_side,                                                     \
        .send = send_message,                                                  \
        .receive = receive_message,                                            \
    }
SIMPLE_SYSTEM(simple, "simple", "the survey's simple protocol", "systems/simple/firmware");
SIMPLE_SYSTEM(simple_tuned, "simple-tuned", "the survey's simple protocol with firmware written for speed alone",
              "systems/simple/firmware-tuned");
