/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - BIP's library: blocking send and receive of words, as its manual has them; see host.h. */
#include "sim/myrinet/systems/bip/host.h"

#include <stddef.h>

enum { LIBRARY = 35, HANDLER = 12 }; /* host operations of a call */

#define IN_CARD(b, field) ((b)->card + (uint32_t)offsetof(struct bip_card, field))

/* Bytes of a packet of a message of so many: short ones so that fetching, sending and delivering overlap, long ones so
 * that starting the engines does not matter. The manual says that sizes adapt, from 256 bytes to 4 KB; the rule is
 * ours. */
static uint32_t packet_for(const struct bip *b, uint32_t bytes)
{
    if (b->packet)
        return b->packet;
    return bytes <= 4096 ? 1024 : bytes <= 32768 ? 2048 : BIP_PACKET;
}

static void send_short(struct bip *b, uint32_t to, uint32_t from, uint32_t words)
{
    struct myri_task *t = b->side->task;
    uint32_t packet[BIP_SMALL + 3] = {BIP_SHORT << 16 | b->side->node, words}, k = b->shorts & 1;
    if (b->known_free == 0) { /* this one has left the card when the one behind it has been started, no sooner */
        uint32_t busy;
        if (myri_task_await(t, IN_CARD(b, go) + 8 * !k + 4, 0, 0, &busy) < 0)
            return;
        b->known_free = 1;
    }
    b->known_free--;
    myri_task_gather(t, from, packet + 2, words);
    packet[2 + words] = BIP_MARK | b->side->node << 16 | words;
    myri_task_combine(t, IN_CARD(b, small) + k * (uint32_t)sizeof(uint32_t) * (BIP_SMALL + 3), packet, words + 3);
    const uint32_t go[2] = {to, words * 4 + 12};
    myri_task_store_words(t, IN_CARD(b, go) + 8 * k, go, 2);
    b->shorts++;
}

static void wait_status(struct bip *b, uint32_t at, uint32_t count)
{
    uint32_t now;
    while ((now = myri_host_word(b->side->host, at)) != count && !b->side->hw->fault[0])
        myri_task_poll(b->side->task, at, now, RNL_SIM_NEVER);
}

/* The module of the kernel has translated and pinned these pages before: it keeps what it has done. */
static void pinned(struct bip *b, uint32_t at, uint32_t bytes)
{
    for (uint32_t page = at / b->side->hw->page; page <= (at + bytes - 1) / b->side->hw->page; page++)
        b->side->host->pins[page] = 1;
}

void bip_send(struct bip *b, uint32_t to, uint32_t from, uint32_t words)
{
    myri_task_operate(b->side->task, LIBRARY, "library");
    if (words <= BIP_SMALL) {
        send_short(b, to, from, words);
        return;
    }
    pinned(b, from, 4 * words);
    const uint32_t what[5] = {to, from, packet_for(b, 4 * words), b->status, 4 * words};
    myri_task_store_words(b->side->task, IN_CARD(b, send), what, 5);
    b->sent++;
    wait_status(b, b->status, b->sent);
}

uint32_t bip_recv(struct bip *b, uint32_t from, uint32_t to, uint32_t words, uint64_t until)
{
    struct myri_task *t = b->side->task;
    if (words <= BIP_SMALL) {
        uint32_t end = b->ring + b->next * BIP_SLOT + BIP_SLOT - 4, mark = myri_task_poll(t, end, 0, until);
        if (!mark)
            return 0;
        uint32_t n = mark & 0xffff;
        myri_task_operate(t, HANDLER, "handler");
        myri_task_copy(t, to, end - 4 * n, 4 * n);
        myri_host_set_word(b->side->host, end, 0);
        b->next = (b->next + 1) % BIP_RING;
        return n;
    }
    pinned(b, to, 4 * words);
    myri_task_operate(t, LIBRARY, "library");
    const uint32_t what[4] = {from, to, b->status + 64, 4 * words};
    myri_task_store_words(t, IN_CARD(b, receive), what, 4);
    b->received++;
    wait_status(b, b->status + 64, b->received);
    return words;
}

int bip_init(struct bip *b, struct myri_side *side)
{
    b->side = side;
    b->card = myri_card_symbol(side->hw, "card");
    b->packet = side->packet;
    b->known_free = 2;
    b->ring = myri_host_take(side->host, BIP_RING * BIP_SLOT, 1);
    b->status = myri_host_take(side->host, side->hw->page, 1);
    if (side->hw->fault[0])
        return -1;
    myri_host_ring(side->host, b->ring, BIP_SLOT, BIP_RING);
    myri_card_poke(side->card, IN_CARD(b, ring_at), b->ring);
    myri_card_poke(side->card, IN_CARD(b, page), side->hw->page);
    for (uint32_t i = 0; i < side->nodes; i++)
        myri_card_poke(side->card, IN_CARD(b, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

/* ---- experiments ---- */

struct bip_host_state {
    struct bip bip;
    uint32_t in;
};

static int open_side(struct myri_side *side)
{
    struct bip_host_state *st = side->state;
    st->in = myri_host_take(side->host, side->largest, 0);
    return bip_init(&st->bip, side);
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct bip_host_state *st = side->state;
    bip_send(&st->bip, to, side->out, bytes / 4);
}

static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct bip_host_state *st = side->state;
    side->got = st->in;
    return 4 * bip_recv(&st->bip, !side->node, st->in, bytes / 4, until);
}

static const struct myri_issues issues = {.transfer = "stores to 1 KB, DMA",
                                          .translation = "user does",
                                          .protection = "none",
                                          .control = "poll",
                                          .reliability = "rendezvous",
                                          .to_many = "no"};
#define BIP_SYSTEM(called, words, firmware)                                                                      \
    {                                                                                                            \
        .name = called, .title = words, .source = "Bhoedjang et al. 1998, text, and BIP's manual",               \
        .object = "systems/bip/" firmware, .machines = "H-PP", .state_bytes = sizeof(struct bip_host_state),     \
        .most = 1 << 20, .open = open_side, .send = send_message, .receive = receive_message, .packet_least = 4, \
        .packet_most = BIP_PACKET, .several_most = 4 * BIP_SMALL, .overrun = 1, .issues = &issues,               \
        .on_crc = "its reliability is rendezvous and back-pressure (Bhoedjang et al. 1998)"                      \
    }
const struct myri_system myri_system_bip = BIP_SYSTEM("bip", "BIP, Basic Interface for Parallelism", "firmware");
const struct myri_system myri_system_bip_tuned =
    BIP_SYSTEM("bip-tuned", "BIP with firmware written for speed alone", "firmware-tuned");
