/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - FM 2.x's queue in the card's SRAM, and its packets. No paper prints them; sizes are ours, save that
 * paper 002 says 128 bytes for FM 2.0 on its machine. The header is as long as FM 1.1's.
 *
 *  packet, of the length that it has:  data, padded to words
 *                                      bytes of data 31..16 | destination 15..8 | credits given back 7..0
 *                                      VALID 31 | source 30..24 | handler 23..16 | FIRST 1 | LAST 0
 *  In the queue and in the host's ring a packet ends at the end of its slot, so that VALID has one place, and comes
 *  last. */
#ifndef RNL_PAPER_FM2_LAYOUT_H
#define RNL_PAPER_FM2_LAYOUT_H

#include <stdint.h>

enum {
    FM2_DATA = 1024, /* at most */
    FM2_TRAILER = 8,
    FM2_WORDS = (FM2_DATA + FM2_TRAILER) / 4,
    FM2_SLOT = 2048, /* of the host's ring: a power of two, so that none crosses a page */
    FM2_QUEUE = 16,
    FM2_RING = 64,
    FM2_NODES = 64
};
#define FM2_VALID 0x80000000u
enum { FM2_LAST = 1, FM2_FIRST = 2 };

struct fm2_card {
    uint32_t posted, sent, ring_at, errors;
    uint32_t route[FM2_NODES];
    uint32_t queue[FM2_QUEUE][FM2_WORDS];
    uint32_t in[2][FM2_WORDS];
};
_Static_assert(sizeof(struct fm2_card) == 16 + 4 * FM2_NODES + (FM2_QUEUE + 2) * 4 * FM2_WORDS, "the card's memory");

#endif
