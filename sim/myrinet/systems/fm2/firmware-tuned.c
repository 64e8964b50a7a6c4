/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM 2.x's firmware written again for speed alone: a packet goes to the host while it still arrives, as far as the mark
 * says that it has come, but for its last word, which the host looks at: that goes when the CRC is known, and is no
 * more VALID if it was wrong. Sends are as in firmware.c. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/fm2/layout.h"

volatile struct fm2_card card;
enum { QUEUE = FM2_QUEUE, WORDS = FM2_WORDS };
#define FRAME             card.frame
#define ROUTE_OF(word)    card.route[(word) >> 8 & (FM2_NODES - 1)]
#define BYTES_OF(q, word) ((q)->frame)
#include "sim/myrinet/systems/fm1/queue.h"

struct fm2_tuned_loop {
    struct queue queue;
    uint32_t place, ring_end; /* host addresses: of the next packet, of the last place's */
    uint32_t open, both;      /* buffer for what comes in; its address and the other one's, in one */
    uint32_t rest;            /* bytes in front of a packet's last word */
    uint32_t limit;           /* SRAM: up to where the packet that still arrives may go up; 0: none does */
};

FIRMWARE void start(struct fm2_tuned_loop *l)
{
    nic_write(LAR, l->open);
    nic_write(EAR, l->place);
    nic_write(CTR, l->queue.frame);
}

FIRMWARE void open_other(struct fm2_tuned_loop *l)
{
    l->open ^= l->both;
    nic_arm(l->open, l->queue.frame);
}

FIRMWARE void next_place(struct fm2_tuned_loop *l)
{
    if (l->place == l->ring_end)
        l->place -= FM2_RING * FM2_SLOT;
    l->place += FM2_SLOT;
}

FIRMWARE void go_up(struct fm2_tuned_loop *l, uint32_t status, uint32_t mark)
{
    if (!(status & RECV)) {
        l->limit = l->open + (mark < l->rest ? mark : l->rest);
        nic_write(HML, l->limit);
        start(l);
    } else if (RARELY(status & CRCERR)) { /* the network is taken to be reliable: paper 000, 3.1 */
        card.errors++;
        nic_arm(l->open, l->queue.frame);
    } else {
        start(l);
        open_other(l);
        next_place(l);
    }
}

/* The rest of one whose beginning goes up already. */
FIRMWARE void follow(struct fm2_tuned_loop *l, uint32_t status, uint32_t mark)
{
    if (!(status & RECV)) {
        uint32_t limit = l->open + (mark < l->rest ? mark : l->rest);
        if (limit != l->limit)
            nic_write(HML, limit);
        l->limit = limit;
        return;
    }
    uint32_t bad = status & CRCERR;
    if (RARELY(bad)) {
        card.errors++;
        WORDS_AT(l->open + l->rest)[0] = 0;
    }
    nic_write(HML, l->open + l->queue.frame);
    l->limit = 0;
    open_other(l);
    if (!bad)
        next_place(l);
}

FIRMWARE void step(struct fm2_tuned_loop *l)
{
    uint32_t status = nic_read(ISR), mark = nic_read(RMARK), posted = card.posted;
    if (RARELY(mark)) {
        if (l->limit)
            follow(l, status, mark);
        else if (status & HDONE)
            go_up(l, status, mark);
    }
    if (RARELY(posted != l->queue.sent) && (status & SDONE))
        send_frame(&l->queue);
}

FIRMWARE void init(struct fm2_tuned_loop *l)
{
    init_queue(&l->queue);
    l->place = card.ring_at + FM2_SLOT - l->queue.frame;
    l->ring_end = l->place + (FM2_RING - 1) * FM2_SLOT;
    l->open = SRAM_AT(card.in[0]);
    l->both = l->open ^ SRAM_AT(card.in[1]);
    l->rest = l->queue.frame - 4;
    l->limit = 0;
    nic_write(DIR, TO_HOST);
    nic_arm(l->open, l->queue.frame);
}

LOOP_OF_CARD(struct fm2_tuned_loop)
