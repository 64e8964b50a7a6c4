/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The first curve of paper 000's figure 3a: no more than it takes to operate the link's engines. Frames that lie in
 * the queue go out, what comes in is counted and stays on the card; nothing crosses the I/O bus. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/fm1/layout.h"

volatile struct fm1_card card;
volatile uint32_t came; /* frames, ever */
enum { QUEUE = FM1_QUEUE, WORDS = FM1_WORDS, FRAME = FM1_FRAME };
#define ROUTE_OF(word)    card.route[(word) >> 16 & (FM1_NODES - 1)]
#define BYTES_OF(q, word) ((((word) >> 24) + FM1_HEADER + 3) & ~3u)
#include "sim/myrinet/systems/fm1/queue.h"

struct fm1_link_loop {
    struct queue queue;
    uint32_t came;
    uint32_t open, both; /* buffer for what comes in; its address and the other one's, in one */
};

FIRMWARE void step(struct fm1_link_loop *l)
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
    if (RARELY(posted != l->queue.sent)) {
        if (status & SDONE)
            send_frame(&l->queue);
    }
}

FIRMWARE void init(struct fm1_link_loop *l)
{
    init_queue(&l->queue);
    l->came = 0;
    l->open = SRAM_AT(card.in[0]);
    l->both = l->open ^ SRAM_AT(card.in[1]);
    nic_arm(l->open, FM1_FRAME);
}

LOOP_OF_CARD(struct fm1_link_loop)
