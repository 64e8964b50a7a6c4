/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numbers.h - what both of PM's firmwares know of messages under way: each pair of nodes counts its messages, and an
 * answer frees a place of the send ring, or has it sent again. Who includes it has `card`. */
static uint32_t sequence_of[PM_RING], next_sequence[PM_NODES]; /* of what is sent */
static uint32_t expected[PM_NODES];                            /* of what comes */

/* The message of a slot is sent for the first time. */
FIRMWARE void number(uint32_t slot, uint32_t to)
{
    sequence_of[slot] = next_sequence[to];
    next_sequence[to] = (next_sequence[to] + 1) & PM_SEQUENCE;
}

/* An answer has come for this place: 0, it is one to nothing. */
FIRMWARE uint32_t waits_for_answer(uint32_t slot)
{
    if (card.send[slot].state == PM_FLYING)
        return 1;
    card.errors++;
    return 0;
}

FIRMWARE void accepted(uint32_t slot, uint32_t *oldest, uint32_t newest)
{
    card.send[slot].state = PM_FREE;
    card.done++;
    while (*oldest != newest && card.send[*oldest & (PM_RING - 1)].state == PM_FREE)
        (*oldest)++;
}

/* Again, and in order: the oldest first, to which the caller goes back. */
FIRMWARE void refused(uint32_t slot)
{
    card.send[slot].state = PM_POSTED;
    card.resent++;
}
