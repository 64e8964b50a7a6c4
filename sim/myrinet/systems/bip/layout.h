/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - BIP's memory on the card. BIP's firmware was never published: kinds, rings and sizes are ours.
 *
 *  short packet   { SHORT, source | words | data ... | MARK, source, words }     ends at the end of a slot of the ring
 *  long message   receiver posts -> READY to the sender -> DATA packets -> a count to the receiver's status word
 *  DATA packet    { DATA, source | bytes | data ... } */
#ifndef MYRI_BIP_LAYOUT_H
#define MYRI_BIP_LAYOUT_H

#include <stdint.h>

enum { BIP_SMALL = 256, BIP_RING = 16, BIP_SLOT = 2048, BIP_NODES = 64, BIP_PACKET = 4096 };
enum { BIP_SHORT = 1, BIP_READY, BIP_DATA };
#define BIP_MARK 0x80000000u

struct bip_card {
    uint32_t route[BIP_NODES];
    struct {
        uint32_t to,
            bytes; /* bytes of the packet; not 0: send it. The host writes it last, the card clears it when it starts */
    } go[2];
    uint32_t small[2][BIP_SMALL + 3];
    uint32_t ring_at; /* host address of the ring for short messages */
    uint32_t page;    /* bytes of the host's pages: none is followed by the next one */
    struct {
        uint32_t to, at, packet, status_at, bytes; /* bytes last */
    } send;
    struct {
        uint32_t from, at, status_at, bytes; /* bytes last */
    } receive;
    uint32_t sent, received; /* long messages: the words that are reported */
    uint32_t errors, early;  /* early: data for which nothing was posted */
    uint32_t in[2][BIP_PACKET / 4 + 2], out[2][BIP_PACKET / 4 + 2], ready[1];
};

#endif
