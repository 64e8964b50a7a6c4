/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The first curve of paper 000's figure 3a: no more than it takes to operate the link's engines. Frames that lie in
 * the queue go out, what comes in is counted and stays on the card; nothing crosses the I/O bus. */
#include "sim/paper/hw/nic.h"
#include "sim/paper/systems/fm1/layout.h"

volatile struct fm1_card card;
volatile uint32_t came; /* frames, ever */
#define QUEUE_END (card.queue[0] + FM1_QUEUE * FM1_WORDS)

struct loop {
    uint32_t sent, came;
    volatile uint32_t *next_end; /* of the next frame of the queue */
    uint32_t open, both;         /* buffer for what comes in; its address and the other one's, in one */
};

FIRMWARE void send(struct loop *l)
{
    volatile uint32_t *end = l->next_end;
    uint32_t first = end[-2], bytes = ((first >> 24) + FM1_HEADER + 3) & ~3u;
    nic_write(SRT, card.route[first >> 16 & (FM1_NODES - 1)]);
    nic_write(SMP, SRAM_AT(end) - bytes);
    nic_write(SMLT, SRAM_AT(end));
    card.sent = l->sent++;
    if (end == QUEUE_END)
        end = card.queue[0];
    l->next_end = end + FM1_WORDS;
}

FIRMWARE void step(struct loop *l)
{
    uint32_t status = nic_read(ISR), posted = card.posted;
    if (RARELY(status & RECV)) {
        if (status & CRCERR)
            card.errors++;
        else
            came = ++l->came;
        l->open ^= l->both;
        nic_arm(l->open, FM1_FRAME);
    }
    if (RARELY(posted != l->sent)) {
        if (status & SDONE)
            send(l);
    }
}

FIRMWARE void init(struct loop *l)
{
    l->sent = l->came = 0;
    l->next_end = card.queue[0] + FM1_WORDS;
    l->open = SRAM_AT(card.in[0]);
    l->both = l->open ^ SRAM_AT(card.in[1]);
    nic_arm(l->open, FM1_FRAME);
}

LOOP_OF_CARD(struct loop)
