/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - FM 1.1's queue in the card's SRAM, its frames, and its ring in the host's memory.
 *
 *  frame:  data, padded to words
 *          bytes of data 31..24 | destination 23..16 | credits given back 15..0
 *          VALID 31 | source 30..24 | handler 23..16 | LAST 0
 *  In the send queue and in the host's ring a frame ends at the end of its place: so VALID has one place, and comes
 *  last over the bus; who sees it has the frame. Hosts store the words that they use. Paper 000's cards carry those
 *  (firmware.c), as its latency, of class fit, wants; paper 003's carry all frames whole (firmware-whole.c): with
 *  fragments of twice the size, messages of 16 bytes took 10 us more there and back (5.1.1).
 *
 * A header of 8 bytes: paper 003 (5.1.1) puts 248 bytes of data into a fragment of 256. 128 bytes of data: it also says
 * that 248 bytes went in two fragments of FM 1.1, which 120 bytes of data in 128 could not hold. The card finds the
 * route itself: each word that a host need not store is a third of a microsecond. */
#ifndef MYRI_FM1_LAYOUT_H
#define MYRI_FM1_LAYOUT_H

#include <stdint.h>

enum {
    FM1_DATA = 128,
    FM1_HEADER = 8,
    FM1_FRAME = FM1_DATA + FM1_HEADER,
    FM1_WORDS = FM1_FRAME / 4,
    FM1_QUEUE = 32, /* frames to send, in SRAM */
    FM1_RING = 256, /* frames in the host's ring; others have credits for all of them, or for fewer */
    FM1_NODES = 64
};
#define FM1_VALID 0x80000000u
enum { FM1_LAST = 1 };

struct fm1_card {
    uint32_t posted;  /* frames that the host has put into the queue, ever */
    uint32_t sent;    /* of them, those that have left */
    uint32_t ring_at; /* host address */
    uint32_t errors;
    uint32_t route[FM1_NODES];
    uint32_t queue[FM1_QUEUE][FM1_WORDS];
    uint32_t in[2][FM1_WORDS];
};
_Static_assert(sizeof(struct fm1_card) == 16 + 4 * FM1_NODES + (FM1_QUEUE + 2) * FM1_FRAME, "the card's memory");

#endif
