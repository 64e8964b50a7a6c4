/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - what the host and the firmware of Trapeze share: one object, `card`, in SRAM, and its messages.
 *
 *  message   head: control bytes 23..16 | bytes of payload 15..0
 *            control part, up to 128 bytes
 *            mark: MARK | source 30..24 | as the head      the host looks for it: the last word of the record
 *            payload, up to a frame of 8 KB, in whole words
 *
 * A message to send lies in a place on the card, so that its payload begins at the same word of each: the host stores
 * what is before it, the card fetches the payload from a frame. At the receiving host the payload goes into the frame
 * that is attached to the ring's next place, and the control part with its mark into the record of that place, behind
 * it. A place without a frame is the host's: who comes upon it is dropped. */
#ifndef MYRI_TRAPEZE_LAYOUT_H
#define MYRI_TRAPEZE_LAYOUT_H

#include <stdint.h>

enum {
    TPZ_CONTROL = 128,
    TPZ_FRAME = 8192,
    TPZ_SENDS = 4,    /* places for messages to send */
    TPZ_RING = 16,    /* of what is received */
    TPZ_INS = 2,      /* messages that are on their way in, or wait on the card */
    TPZ_AHEAD = 8,    /* bytes before a payload, and a control part */
    TPZ_RECORD = 256, /* bytes in host memory: its mark is the last word */
    TPZ_NODES = 32,
    TPZ_PLACE = TPZ_AHEAD + TPZ_CONTROL + TPZ_FRAME
};
#define TPZ_MARK 0x80000000u

struct tpz_send {                      /* the host writes `posted` last, the card clears it */
    uint32_t posted, to, bytes, frame; /* bytes: control 23..16, payload 15..0, as in the head */
};
struct tpz_card {
    struct tpz_send send[TPZ_SENDS];
    uint32_t receive[TPZ_RING]; /* host address of the frame, 0: the host has the place */
    uint32_t records_at, notify;
    uint32_t fetched, sent; /* messages, ever: their payload is on the card; they have left */
    uint32_t dropped, errors;
    uint32_t route[TPZ_NODES];
    uint32_t out[TPZ_SENDS][TPZ_PLACE / 4], in[TPZ_INS][TPZ_PLACE / 4];
};

#endif
