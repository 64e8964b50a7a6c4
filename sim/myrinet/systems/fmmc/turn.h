/* SPDX-License-Identifier: BSD-3-Clause
 *
 * turn.h - a turn of FM/MC's card, with what tree.h has for multicasts. */

FIRMWARE void send_frame(struct tree_loop *l)
{
    volatile uint32_t *end = l->next_end;
#ifndef NO_MULTICAST
    uint32_t mark = end[-1];
    if (RARELY(mark & (FMMC_MULTICAST | FMMC_ASK))) {
        send_special(l, end, mark);
        return;
    }
#endif
    nic_write(SRT, card.route[end[-2] >> 16 & (FMMC_NODES - 1)]);
    nic_write(SMP, SRAM_AT(end) - l->frame);
    nic_write(SMLT, SRAM_AT(end));
    next_of_queue(l, end);
}

FIRMWARE void arrived(struct tree_loop *l)
{
    uint32_t here = l->open, bytes = l->frame;
#ifndef NO_MULTICAST
    if (RARELY(nic_read(RLEN) != bytes)) {
        control_came(l, WORDS_AT(here));
        nic_arm(here, bytes);
        return;
    }
#endif
#ifndef ONE_DIRECTION
    nic_write(DIR, TO_HOST);
#endif
    nic_write(LAR, here);
    nic_write(EAR, l->place_end - bytes);
    nic_write(CTR, bytes);
    l->notify = card.interrupt;
#ifndef NO_MULTICAST
    uint32_t mark = WORDS_AT(here)[(bytes >> 2) - 1];
    if (RARELY(mark & FMMC_MULTICAST)) {
        uint32_t other = l->other;
        l->other = here;
        pass_on(l, here, mark);
        l->open = other;
    } else
#endif
    {
        l->open = l->other;
        l->other = here;
    }
    nic_arm(l->open, bytes);
    if (l->place_end == l->ring_end)
        l->place_end -= FMMC_RING * FMMC_FRAGMENT;
    l->place_end += FMMC_FRAGMENT;
}

FIRMWARE void step(struct tree_loop *l)
{
    uint32_t status = nic_read(ISR), posted = card.posted;
    if (RARELY((status & (RECV | HDONE)) == (RECV | HDONE))) {
        if (RARELY(status & CRCERR)) { /* the network is taken to be reliable: paper 003, 4.2 */
            card.errors++;
            nic_arm(l->open, l->frame);
        } else {
            arrived(l);
        }
    }
    if (RARELY(l->notify) && (status & HDONE)) {
        nic_write(HIRQ, 1);
        l->notify = 0;
    }
#ifndef NO_MULTICAST
    if (RARELY(l->forwards | l->controls | l->leaving | l->asking)) {
        if (l->asking)
            serve(l);
        if (!(status & SDONE) || send_waiting(l))
            return;
    }
#endif
    if (RARELY(posted != l->sent)) {
        if (status & SDONE)
            send_frame(l);
    }
}

LOOP_OF_CARD(struct tree_loop)
