/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numbers.h - what both of PM's firmwares know of messages under way: each pair of nodes counts its messages, and an
 * answer frees a place of the send ring, or has it sent again. Who includes it has `card`. */
static uint32_t sequence_of[PM_RING], next_sequence[PM_NODES]; /* of what is sent */
static uint32_t expected[PM_NODES];                            /* of what comes */

#ifdef PM_TURNS
/* A job that is stopped may have receivers that are full, and stay so: nothing of it goes again until it runs. */
#define AFTER_REFUSAL card.after_refusal
#else
#define AFTER_REFUSAL PM_POSTED
#endif

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

/* The host has the place again with the last store: what it posts there has no number yet, so neither what is oldest
 * nor what is looked at next may still be at that place then. 1: the latter was; who calls goes on at the oldest. */
FIRMWARE uint32_t accepted(uint32_t slot, uint32_t *oldest, uint32_t newest, uint32_t look)
{
    uint32_t first = *oldest, passed = 0;
    if ((first & (PM_RING - 1)) == slot) {
        do {
            passed |= first == look;
            first++;
        } while (first != newest && card.send[first & (PM_RING - 1)].state == PM_FREE);
        *oldest = first;
    }
    card.done++;
    card.send[slot].state = PM_FREE;
    return passed;
}

/* Again, and in order: the oldest first, to which the caller goes back. */
FIRMWARE void refused(uint32_t slot)
{
    card.send[slot].state = AFTER_REFUSAL;
    card.resent++;
}
