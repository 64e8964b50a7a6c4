/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - what the host and the firmware of the simple protocol share: one object, `card`, in SRAM.
 *
 *  send ring      16 x { flag | destination | bytes | offset in the DMA area }   host fills, card clears the flag
 *  receive ring   16 x   host address of a free buffer, 0 = none                 host fills, card clears
 *  packet         payload, padded to words | one word: MARK, source, bytes       the last word of the same DMA is the
 * flag */
#ifndef MYRI_SIMPLE_LAYOUT_H
#define MYRI_SIMPLE_LAYOUT_H

#include <stdint.h>

enum { SIMPLE_RING = 16, SIMPLE_MAX = 4096, SIMPLE_NODES = 64 };
#define SIMPLE_MARK 0x80000000u

enum { SIMPLE_FREE, SIMPLE_POSTED, SIMPLE_TAKEN };
struct simple_descriptor {
    uint32_t flag, to, bytes, offset;
};

struct simple_card {
    struct simple_descriptor send[SIMPLE_RING];
    uint32_t receive[SIMPLE_RING];
    uint32_t route[SIMPLE_NODES];
    uint32_t area; /* host address of the DMA area */
    uint32_t dropped, errors;
    uint32_t out[2][SIMPLE_MAX / 4 + 1], in[2][SIMPLE_MAX / 4 + 1];
};

#endif
