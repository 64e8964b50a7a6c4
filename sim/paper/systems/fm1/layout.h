/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - FM 1.1's queue in the card's SRAM, its frames, and its ring in the host's memory.
 *
 *  frame on the wire and in the host's ring, always of this size:
 *     0 .. 127  data
 *   128         bytes of the whole message (16) | credits given back (16)
 *   132         VALID 31 | source 30..24 | handler 23..16 | position of the frame in its message 15..0
 *  in the send queue the word behind it is its route, which is not sent
 *
 * VALID comes last over the bus: who sees it has the frame. 128 bytes of data: paper 003 says that 248 bytes went in
 * two fragments of FM 1.1, which 120 bytes of data in 128 could not hold. */
#ifndef RNL_PAPER_FM1_LAYOUT_H
#define RNL_PAPER_FM1_LAYOUT_H

#include <stdint.h>

enum {
    FM1_DATA = 128,
    FM1_FRAME = FM1_DATA + 8,
    FM1_WORDS = FM1_FRAME / 4,
    FM1_QUEUE = 32,   /* frames to send, in SRAM */
    FM1_ARRIVED = 16, /* frames that wait for the host DMA engine, in SRAM */
    FM1_RING = 256    /* frames in the host's ring */
};
#define FM1_VALID 0x80000000u

struct fm1_slot {
    uint32_t word[FM1_WORDS], route;
};
struct fm1_card {
    uint32_t posted;  /* frames that the host has put into the queue, ever */
    uint32_t sent;    /* of them, those that have left */
    uint32_t ring_at; /* host address */
    uint32_t errors;
    struct fm1_slot queue[FM1_QUEUE];
    uint32_t arrived[FM1_ARRIVED][FM1_WORDS];
};

#endif
