/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LFC's firmware written again for speed alone: the same protocol and memory as firmware.c. A packet of the host's to
 * one card that finds credit and a free wire leaves in the turn that finds it, and one for this host alone that finds
 * the engine free and a place starts its transfer before anything else is noted; neither goes through a queue. Turns
 * that find nothing look at what can change, and at nothing else. Everything else is what firmware.c does. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/lfc/layout.h"

volatile struct lfc_card card;

#include "sim/myrinet/systems/lfc/credits.h"

/* Sends the next packet that the host has posted at once, if nothing is queued before it. */
FIRMWARE uint32_t post_at_once(struct lfc_loop *l)
{
    uint32_t slot = l->seen & (LFC_SLOTS - 1), what = card.what[slot], to = what >> 16 & 0xff, bytes = what & 0xffff;
    volatile uint32_t *at = card.packet[OF_SLOT + slot];
    if (what >> 24 & 1 || to >= l->nodes || to == l->node || bytes > LFC_DATA || !credit[to])
        return 0;
    if (l->controls || l->ready != LFC_NONE)
        return 0;
    uint32_t before = l->sending, p = OF_SLOT + slot;
    at[0] = l->node << 24 | LFC_PACKET << 16 | owed[to];
    nic_send(card.route[to], SRAM_AT(at), ((bytes + 3) & ~3u) + 12);
    credit[to]--;
    owed[to] = 0;
    users[p] = 1;
    l->sending = p;
    l->seen++;
    if (before != LFC_NONE)
        done_with(l, before);
    return 1;
}

/* Puts an arrived packet into the host at once, if nothing is queued before it and the tree has no further card. */
FIRMWARE uint32_t put_at_once(struct lfc_loop *l)
{
    uint32_t p = l->open, n = nic_read(RLEN), before = l->putting;
    volatile uint32_t *at = packet_at(p);
    uint32_t hop = at[0], from = hop >> 24, came = hop & 0xffff;
    if ((hop >> 16 & 0xff) != LFC_PACKET || from == l->node || from >= l->nodes || n < 12 || !l->frees)
        return 0;
    if (l->has_value || l->hosts || l->put - card.taken >= LFC_RING || at[(n >> 2) - 1] & LFC_TO_ALL)
        return 0;
    nic_dma(l->place_end - (n - 4), SRAM_AT(at + 1), TO_HOST, n - 4);
    l->open = free_buffer[--l->frees];
    nic_arm(SRAM_AT(packet_at(l->open)), sizeof card.packet[0]);
    if (l->place_end == l->ring_end)
        l->place_end -= LFC_RING * LFC_PLACE;
    l->place_end += LFC_PLACE;
    l->put++;
    l->putting = p;
    source_of[p] = from;
    users[p] = 1;
    if (came)
        credits_came(l, from, came);
    if (before != LFC_NONE)
        put_away(l, before);
    return 1;
}

FIRMWARE void step(struct lfc_loop *l)
{
    uint32_t wakes = RECV | TIMER, seen = l->seen, asked = l->asked, status;
    if (l->sending != LFC_NONE || l->controls || l->ready != LFC_NONE)
        wakes |= SDONE;
    if (l->putting != LFC_NONE || l->has_value || l->hosts)
        wakes |= HDONE;
    do
        status = nic_read(ISR);
    while (!(status & wakes) && card.posted == seen && card.question == asked);
    if (card.posted != seen && !((status & SDONE) && post_at_once(l)))
        posted(l);
    if (status & RECV) {
        if (RARELY(status & CRCERR)) {
            card.errors++;
            nic_arm(SRAM_AT(packet_at(l->open)), sizeof card.packet[0]);
        } else if (!((status & HDONE) && put_at_once(l))) {
            arrived(l);
        }
    }
    if (RARELY(card.question != asked))
        question(l);
    status &= nic_read(ISR) | ~(uint32_t)(SDONE | HDONE); /* what has been started above is not done */
    if ((status & SDONE) && (l->sending != LFC_NONE || l->controls || l->ready != LFC_NONE))
        send_next(l);
    if ((status & HDONE) && (l->putting != LFC_NONE || l->has_value || l->hosts))
        put_next(l);
    if (RARELY(status & TIMER))
        timer(l);
}

LOOP_OF_CARD(struct lfc_loop)
