/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - what host and card share: one object in the card's memory, `card`, and the form of a packet.
 *
 *     send ring      a descriptor for each packet that is to go: the host fills it, the card clears its flag
 *     receive ring   host addresses of free buffers, 0 = none: the host fills them in, the card takes them
 *     returned       buffers that each other node has given back, ever: the card counts, the host looks
 *     packet         the payload, padded to whole words | one word, the mark
 *
 * The mark is the last word of a packet, so it comes into the host's memory last: who sees it has all of the packet. */
#ifndef LAYOUT_H
#define LAYOUT_H

#include <stdint.h>

enum {
    NODES = 32,   /* of a network, at most */
    RING = 16,    /* descriptors, and buffers for what arrives; a power of two, as they are counted with a mask */
    PACKET = 1024 /* bytes of payload at most */
};

_Static_assert((RING & (RING - 1)) == 0, "RING has to be a power of two, as it is counted with a mask");

/* A mark is never 0: MARK, how many buffers the sender gives back, the sender's number, and the bytes of the payload.
 * A packet without payload is for the card alone. */
#define MARK                      0x80000000u
#define MARK_OF(credits, node, n) (MARK | (credits) << 24 | (node) << 16 | (n))
#define MARK_CREDITS(mark)        ((mark) >> 24 & 127)
#define MARK_NODE(mark)           ((mark) >> 16 & 31)
#define MARK_BYTES(mark)          ((mark)&0xffff)

enum { FREE, POSTED, TAKEN }; /* flags of a descriptor; FREE is 0, as the card's memory is at first */
struct descriptor {
    uint32_t flag;
    uint32_t to, bytes; /* node; bytes of payload */
    uint32_t offset;    /* where the payload lies in the area */
    uint32_t credits;   /* buffers that are given back with it */
};

struct card {
    struct descriptor send[RING];
    uint32_t receive[RING];
    uint32_t returned[NODES];
    uint32_t area;            /* host address of pinned memory that payloads are sent from */
    uint32_t dropped, errors; /* packets for which no buffer was free; packets with a wrong CRC */
    uint32_t bare;            /* packets without payload */
    uint32_t out[PACKET / 4 + 1], in[PACKET / 4 + 1]; /* a packet that goes, and one that has come */
};

#endif
