/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BIP's firmware written again for speed alone, as its authors tuned theirs (paper 004: "highly optimized"): the same
 * protocol and memory as firmware.c, but the ways of a short message come first and start their engine before anything
 * is noted, and a chunk of a long one goes from transfer to wire within one turn. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/bip/layout.h"

volatile struct bip_card card;

enum { IDLE, FETCH, DELIVER, REPORT };
#include "sim/myrinet/systems/bip/chunk.h"
static uint32_t node, page;

struct bip_tuned_loop {
    uint32_t engine;
    uint32_t small, small_both, go_both; /* the short buffer that is next; xor with the other one */
    volatile uint32_t *go;               /* its { to, bytes } */
    uint32_t ring_at, ring_end;          /* end of the next slot, of the last one */
    uint32_t in, in_both;                /* buffer that is open */
    uint32_t going, from_at, left;       /* the long message that goes out */
    uint32_t out, out_both, bytes;       /* its buffer, what is being fetched into it */
    uint32_t asked, to_at, expected;     /* the one that comes in */
};

FIRMWARE void dma(struct bip_tuned_loop *l, uint32_t host, uint32_t at, uint32_t direction, uint32_t bytes,
                  uint32_t what)
{
    nic_dma(host, at, direction, bytes);
    l->engine = what;
}

FIRMWARE void open_other(struct bip_tuned_loop *l)
{
    l->in ^= l->in_both;
    nic_arm(l->in, sizeof card.in[0]);
}

FIRMWARE void receive(struct bip_tuned_loop *l, uint32_t status)
{
    uint32_t bytes = nic_read(RLEN), first = WORDS_AT(l->in)[0];
    if (!(status & CRCERR) && first >> 16 == BIP_SHORT && bytes <= 4 * BIP_SMALL + 12) {
        dma(l, l->ring_at - bytes, l->in, TO_HOST, bytes, DELIVER);
        open_other(l);
        if (l->ring_at == l->ring_end)
            l->ring_at -= BIP_RING * BIP_SLOT;
        l->ring_at += BIP_SLOT;
        return;
    }
    uint32_t n = WORDS_AT(l->in)[1];
    if (!(status & CRCERR) && first >> 16 == BIP_DATA && n && n <= l->expected && n <= page - (l->to_at & (page - 1))) {
        dma(l, l->to_at, l->in + 8, TO_HOST, n, DELIVER);
        open_other(l);
        l->to_at += n;
        l->expected -= n;
        return;
    }
    if (!(status & CRCERR) && first >> 16 == BIP_READY)
        ready_from[first & (BIP_NODES - 1)]++;
    else if (status & CRCERR || first >> 16 == BIP_SHORT)
        card.errors++;
    else
        card.early++;
    nic_arm(l->in, sizeof card.in[0]);
}

FIRMWARE void fetch(struct bip_tuned_loop *l)
{
    uint32_t n = chunk(l->from_at, l->left, page);
    dma(l, l->from_at, l->out + 8, FROM_HOST, n, FETCH);
    l->bytes = n;
    l->from_at += n;
    l->left -= n;
}

FIRMWARE void report(struct bip_tuned_loop *l, uint32_t at, volatile uint32_t *word)
{
    (*word)++;
    dma(l, at, SRAM_AT(word), TO_HOST, 4, REPORT);
}

/* A chunk is here and the wire is free: the next transfer first, whatever it is, then this chunk leaves. */
FIRMWARE void go_on(struct bip_tuned_loop *l)
{
    uint32_t at = l->out, n = l->bytes;
    volatile uint32_t *p = WORDS_AT(at);
    l->out ^= l->out_both;
    if (l->left) {
        fetch(l);
    } else {
        l->going = 0;
        report(l, card.send.status_at, &card.sent);
        card.send.bytes = 0;
    }
    p[0] = BIP_DATA << 16 | node;
    p[1] = n;
    nic_send(card.route[card.send.to & (BIP_NODES - 1)], at, n + 8);
}

FIRMWARE void long_messages(struct bip_tuned_loop *l, uint32_t status)
{
    if (l->engine == FETCH) {
        if (status & SDONE)
            go_on(l);
        return;
    }
    if (l->going) { /* the engine was taken by what came in */
        fetch(l);
    } else if (l->asked && !l->expected) {
        l->asked = 0;
        report(l, card.receive.status_at, &card.received);
        card.receive.bytes = 0;
    } else if (card.receive.bytes && !l->asked && (status & SDONE)) {
        l->to_at = card.receive.at;
        l->expected = card.receive.bytes;
        l->asked = 1;
        card.ready[0] = BIP_READY << 16 | node;
        nic_send(card.route[card.receive.from & (BIP_NODES - 1)], SRAM_AT(card.ready), 4);
    } else if (card.send.bytes && ready_from[card.send.to & (BIP_NODES - 1)]) {
        ready_from[card.send.to & (BIP_NODES - 1)]--;
        l->from_at = card.send.at;
        l->left = card.send.bytes;
        l->going = 1;
        fetch(l);
    }
}

FIRMWARE void step(struct bip_tuned_loop *l)
{
    uint32_t status = nic_read(ISR), bytes = l->go[1];
    if (RARELY(bytes) && (status & SDONE)) {
        nic_send(card.route[l->go[0] & (BIP_NODES - 1)], l->small, bytes);
        l->go[1] = 0;
        l->small ^= l->small_both;
        l->go = WORDS_AT(SRAM_AT(l->go) ^ l->go_both);
        return;
    }
    if (RARELY(!(status & HDONE))) /* all that follows waits for the engine: look again soon */
        return;
    if (RARELY(status & RECV) && l->engine != FETCH) {
        receive(l, status);
        return;
    }
    if (RARELY(card.send.bytes | card.receive.bytes))
        long_messages(l, status);
}

FIRMWARE void init(struct bip_tuned_loop *l)
{
    *l = (struct bip_tuned_loop){0};
    node = nic_read(NODE);
    page = card.page;
    l->ring_at = card.ring_at + BIP_SLOT;
    l->ring_end = card.ring_at + BIP_RING * BIP_SLOT;
    l->small = SRAM_AT(card.small[0]);
    l->small_both = l->small ^ SRAM_AT(card.small[1]);
    l->go = &card.go[0].to;
    l->go_both = SRAM_AT(&card.go[0]) ^ SRAM_AT(&card.go[1]);
    l->in = SRAM_AT(card.in[0]);
    l->in_both = l->in ^ SRAM_AT(card.in[1]);
    l->out = SRAM_AT(card.out[0]);
    l->out_both = l->out ^ SRAM_AT(card.out[1]);
    nic_arm(l->in, sizeof card.in[0]);
}

LOOP_OF_CARD(struct bip_tuned_loop)
