/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - FM 2.x's queue in the card's SRAM, and its packets. No paper prints them; sizes are ours, save that
 * paper 002 says 128 bytes for FM 2.0 on its machine. The header is as long as FM 1.1's.
 *
 *  packet, of a length that is one for all:  whatever was there before
 *                                            data, padded to words
 *                                            bytes of data 31..16 | destination 15..8 | credits given back 7..0
 *                                            VALID 31 | source 30..24 | handler 23..16 | FIRST 1 | LAST 0
 *  A host stores the words that it uses, the cards carry whole packets: it is PM that has packets of variable size,
 * says 000 (5), FM 1.1's did so in 003, and 002 (7) finds FM 2.0's latency low because its buffers are small. A packet
 * ends at the end of its place, so VALID comes last. */
#ifndef MYRI_FM2_LAYOUT_H
#define MYRI_FM2_LAYOUT_H

#include <stdint.h>

enum {
    FM2_DATA = 1024,    /* at most */
    FM2_COMBINED = 512, /* where hosts combine writes: the least power of two with which an engine that needs 1.9 us for
                           itself can bring 77 MB/s (row 9b, which is leaked) */
    FM2_TRAILER = 8,
    FM2_WORDS = (FM2_DATA + FM2_TRAILER) / 4,
    FM2_SLOT = 2048, /* of the host's ring: a power of two, so that none crosses a page */
    FM2_QUEUE = 16,
    FM2_BUFFERS = 64, /* packets that others have credits for, where nobody asks for another number */
    FM2_RING = 256,   /* packets in the host's ring: as many at most */
    FM2_NODES = 64
};
#define FM2_VALID 0x80000000u
enum { FM2_LAST = 1, FM2_FIRST = 2 };

struct fm2_card {
    uint32_t posted, sent, ring_at, errors;
    uint32_t frame; /* bytes of each packet, what is behind its data included */
    uint32_t route[FM2_NODES];
    uint32_t queue[FM2_QUEUE][FM2_WORDS];
    uint32_t in[2][FM2_WORDS];
};
_Static_assert(sizeof(struct fm2_card) == 20 + 4 * FM2_NODES + (FM2_QUEUE + 2) * 4 * FM2_WORDS, "the card's memory");

#endif
