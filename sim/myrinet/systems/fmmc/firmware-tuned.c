/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM/MC written again for speed alone: what single messages need lies in registers, apart from what tree.h keeps for
 * multicasts, and one word says whether there is anything of that, so a turn that finds nothing tests three words. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/fmmc/layout.h"

volatile struct fmmc_card card;

#include "sim/myrinet/systems/fmmc/tree.h"

static struct tree_loop tree;

struct fmmc_tuned_loop {
    uint32_t sent;
    volatile uint32_t *next_end; /* of the next fragment of the queue */
    uint32_t frame;
    uint32_t place_end, ring_end; /* host addresses: of the next place, of the last one */
    uint32_t open, other;         /* buffer for what comes in, and the one that is being put into the host */
    uint32_t notify;              /* the host is interrupted when the transfer is over */
    uint32_t waits;               /* that, or something of the tree's */
};

FIRMWARE void note(struct fmmc_tuned_loop *l)
{
    l->waits = l->notify | tree.forwards | tree.controls | tree.leaving | tree.asking;
}

FIRMWARE void interrupt(struct fmmc_tuned_loop *l)
{
    nic_write(HIRQ, 1);
    l->notify = 0;
}

FIRMWARE void arrived(struct fmmc_tuned_loop *l)
{
    uint32_t here = l->open, bytes = l->frame, open = l->other;
    if (RARELY(nic_read(RLEN) != bytes)) {
        control_came(&tree, WORDS_AT(here));
        nic_arm(here, bytes);
        note(l);
        return;
    }
    nic_write(LAR, here);
    nic_write(EAR, l->place_end - bytes);
    nic_write(CTR, bytes);
    l->notify = card.interrupt;
    nic_arm(open, bytes);
    l->open = open;
    l->other = here;
    if (l->place_end == l->ring_end)
        l->place_end -= FMMC_RING * FMMC_FRAGMENT;
    l->place_end += FMMC_FRAGMENT;
    uint32_t mark = WORDS_AT(here)[(bytes >> 2) - 1];
    if (RARELY(mark & FMMC_MULTICAST)) {
        tree.other = here;
        pass_on(&tree, here, mark);
        l->other = tree.other;
        note(l);
    }
    l->waits |= l->notify;
}

/* The status afterwards; without SDONE also where what the tree has goes before the queue's next fragment. */
FIRMWARE uint32_t attend(struct fmmc_tuned_loop *l, uint32_t was)
{
    uint32_t sends = 0, status;
    if (tree.asking)
        serve(&tree);
    if (was & SDONE)
        sends = (uint32_t)send_waiting(&tree);
    status = nic_read(ISR);
    if (l->notify && (status & HDONE)) /* before another fragment begins to go up */
        interrupt(l);
    note(l);
    return sends ? status & ~(uint32_t)SDONE : status;
}

/* `word` is the fragment's last but one. */
FIRMWARE void send_frame(struct fmmc_tuned_loop *l, volatile uint32_t *end, uint32_t word)
{
    uint32_t mark = end[-1];
    if (RARELY(mark & (FMMC_MULTICAST | FMMC_ASK))) {
        tree.sent = l->sent;
        tree.next_end = end;
        send_special(&tree, end, mark);
        l->sent = tree.sent;
        l->next_end = tree.next_end;
        note(l);
        return;
    }
    nic_write(SRT, card.route[word >> 16 & (FMMC_NODES - 1)]);
    nic_write(SMP, SRAM_AT(end) - l->frame);
    nic_write(SMLT, SRAM_AT(end));
    card.sent = l->sent++; /* those before it have left; this one's place may not be written yet */
    if (end == (volatile uint32_t *)card.queue + FMMC_QUEUE * FMMC_WORDS)
        end = card.queue[0];
    l->next_end = end + FMMC_WORDS;
}

FIRMWARE void step(struct fmmc_tuned_loop *l)
{
    uint32_t status = nic_read(ISR), posted = card.posted;
    if (RARELY(l->waits))
        status = attend(l, status);
    if (RARELY((status & (RECV | HDONE)) == (RECV | HDONE))) {
        if (RARELY(status & CRCERR)) { /* the network is taken to be reliable: paper 003, 4.2 */
            card.errors++;
            nic_arm(l->open, l->frame);
        } else {
            arrived(l);
        }
    }
    if (RARELY(posted != l->sent)) {
        uint32_t word = l->next_end[-2];
        if (status & SDONE)
            send_frame(l, l->next_end, word);
    }
}

static void init_tuned(struct fmmc_tuned_loop *l)
{
    struct tree_loop t;
    init(&t);
    tree = t;
    l->sent = l->notify = 0;
    note(l);
    l->frame = t.frame;
    l->next_end = t.next_end;
    l->place_end = t.place_end;
    l->ring_end = t.ring_end;
    l->open = t.open;
    l->other = t.other;
    nic_write(DIR, TO_HOST);
}
#define init init_tuned
LOOP_OF_CARD(struct fmmc_tuned_loop)
