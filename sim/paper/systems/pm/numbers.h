/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numbers.h - the sequences of both of PM's firmwares: each pair of nodes counts its messages. */
static uint32_t sequence_of[PM_RING], next_sequence[PM_NODES]; /* of what is sent */
static uint32_t expected[PM_NODES];                            /* of what comes */

/* The message of a slot is sent for the first time. */
FIRMWARE void number(uint32_t slot, uint32_t to)
{
    sequence_of[slot] = next_sequence[to];
    next_sequence[to] = (next_sequence[to] + 1) & PM_SEQUENCE;
}
