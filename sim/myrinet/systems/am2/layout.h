/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - what AM-II's library and cards share, and its packets.
 *
 *  message:  source 31..24 | kind 23..16 | channel 15..8 | bit 0
 *            handler 31..24 | bytes of data 15..0
 *            data, padded to words
 *  answer:   source 31..24 | kind 23..16 | channel 15..8 | bit 0, and a reason
 *
 * The host stores a short message into a free slot, of a long one its two words, and its data into the slot's part of
 * the DMA area; then `state`. What arrives stays in the card's ring, where the host reads short ones across the bus;
 * the data of a long one is put into the host before `ready` counts it. */
#ifndef MYRI_AM2_LAYOUT_H
#define MYRI_AM2_LAYOUT_H

#include <stdint.h>

enum {
    AM2_SHORT = 128, /* bytes that go by stores, and are read by loads */
    AM2_DATA = 8192, /* of a message at most: the least that AM-2 lets a long one be */
    AM2_WORDS = AM2_DATA / 4 + 2,
    AM2_SLOTS = 8,
    AM2_RING = 16,    /* of them one stands open */
    AM2_PLACE = 8192, /* of an area, each */
    AM2_CHANNELS = 4, /* between two nodes, each way: a message on each at a time */
    AM2_NODES = 32,
    AM2_ANSWERS = 64
};
enum { AM2_MESSAGE = 1, AM2_ACK, AM2_NACK };
enum { AM2_FREE, AM2_POSTED, AM2_FETCH, AM2_FETCHING, AM2_WAITS, AM2_RETURNED }; /* states of a slot */
enum { AM2_FULL = 1, AM2_BAD_ENDPOINT, AM2_UNREACHABLE };                        /* reasons */

struct am2_card {
    uint32_t out_at, in_at; /* host addresses: an area for each slot, and for each place of the ring */
    uint32_t nodes, tick;   /* half microseconds */
    uint32_t patience;      /* ticks without an answer until a message goes again */
    uint32_t tries;         /* until it is returned */
    uint32_t open;          /* not 0: this node has an endpoint. The host writes it */
    uint32_t ready, taken;  /* messages that the host may read; that it is done with: it writes that */
    uint32_t resent, duplicates, errors, nacks;
    uint32_t route[AM2_NODES];
    uint32_t state[AM2_SLOTS], to[AM2_SLOTS], reason[AM2_SLOTS]; /* of a slot: the host writes state and to */
    uint32_t answer[AM2_ANSWERS][3];                             /* node, two words */
    uint32_t slot[AM2_SLOTS][AM2_WORDS];
    uint32_t ring[AM2_RING][AM2_WORDS];
};

#endif
