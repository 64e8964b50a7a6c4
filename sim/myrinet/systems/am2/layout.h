/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - what AM-II's library, kernel and cards share, and its packets.
 *
 *  message:  source 31..24 | copy 23..18 | kind 17..16 | channel 15..8 | its endpoint 7..1 | bit 0
 *            handler 31..24 | endpoint 23..16 | credits 15..14 | bytes of data 13..0
 *            data, padded to words
 *  answer:   source 31..24 | the message's other bits, with its own kind; and a reason
 *
 * An endpoint that is on the card lies in a frame. Of that a process sees what is from `ready` on: it stores a short
 * message into a free slot, of a long one its second word, and the data into the slot's part of its DMA area; then
 * `state`. Short messages that have come lie in the frame's ring, where the host reads them across the bus; the data of
 * long ones are in the DMA area before `ready` counts them. The other words are the kernel's and the card's. */
#ifndef MYRI_AM2_LAYOUT_H
#define MYRI_AM2_LAYOUT_H

#include <stdint.h>

enum {
    AM2_SHORT = 128, /* bytes that go by stores, and are read by loads */
    AM2_DATA = 8192, /* of a message at most: the least that AM-2 lets a long one be */
    AM2_SHORT_WORDS = AM2_SHORT / 4 + 2,
    AM2_WORDS = AM2_DATA / 4 + 2,
    AM2_FRAMES = 4,
    AM2_ENDPOINTS = 16, /* of a node */
    AM2_NAMES = 32,     /* endpoints that one can send to */
    AM2_SLOTS = 8,      /* of a frame */
    AM2_ALL_SLOTS = AM2_FRAMES * AM2_SLOTS,
    AM2_RING = 16,
    AM2_PLACE = 8192, /* of an area, each */
    AM2_CHANNELS = 4, /* between two nodes, each way: a message on each at a time */
    AM2_NODES = 32,
    AM2_ANSWERS = 64
};
#define AM2_VALID 0x80000000u /* a name: this, the node in bits 15..8, and its endpoint */
#define AM2_BYTES 0x3fffu

enum { AM2_MESSAGE = 1, AM2_ACK, AM2_NACK };
enum { AM2_FREE, AM2_POSTED, AM2_FETCH, AM2_RETURNED };               /* states of a slot */
enum { AM2_FULL = 1, AM2_BAD_ENDPOINT, AM2_UNREACHABLE, AM2_ABSENT }; /* reasons */
enum { AM2_NO_ENDPOINT, AM2_IN_HOST, AM2_IN_FRAME };                  /* where one is; in a frame: plus that */
enum { AM2_MOVE_OUT = 1, AM2_MOVE_IN };                               /* orders */
enum { AM2_INTERRUPT_WANTED = 1, AM2_INTERRUPT_MOVED = 2 };
enum { AM2_CREDITS_ONLY = 255, AM2_CREDITS_MOST = 3, AM2_WINDOW = 8 }; /* a handler; in a message; unhandled ones */

struct am2_slot {
    uint32_t state, to, reason, word[AM2_SHORT_WORDS]; /* to: number of a name */
};
struct am2_frame {
    uint32_t endpoint, taken_in; /* messages that have been accepted, while it is in the host */
    uint32_t out_at, in_at;      /* host addresses: an area for each slot, and for each place of the ring */
    uint32_t name[AM2_NAMES];
    uint32_t ready, taken; /* messages that the host may read; that it is done with */
    struct am2_slot slot[AM2_SLOTS];
    uint32_t ring[AM2_RING][AM2_SHORT_WORDS];
};
struct am2_card {
    uint32_t nodes, tick; /* half microseconds */
    uint32_t patience;    /* ticks without an answer until a message goes again */
    uint32_t tries;       /* until it is returned */
    uint32_t frames;      /* that have an endpoint when the card begins */
    uint32_t wanted;      /* endpoint + 1 of a message that found it in the host; the kernel clears it */
    uint32_t order, order_frame, order_at; /* the kernel's; the card clears `order` when it has obeyed */
    uint32_t resent, duplicates, errors, nacks;
    uint32_t where[AM2_ENDPOINTS];
    uint32_t route[AM2_NODES];
    uint32_t answer[AM2_ANSWERS][3]; /* node, two words */
    struct am2_frame frame[AM2_FRAMES];
    uint32_t in[2][AM2_WORDS];
    uint32_t out[AM2_ALL_SLOTS][AM2_WORDS]; /* long messages */
};

#endif
