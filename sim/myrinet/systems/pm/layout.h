/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - PM's memory on the card. Only the rules of its ACK/NACK protocol are published; the layout is ours.
 *
 *  packet   { kind 31..28, slot 27..24, sequence 23..0 | source | bytes | data ... }; kinds DATA, ACK, NACK
 *  in the host's buffer: the data, then one word MARK | source | bytes, which the receiving card adds;
 *  it lies at the end of the buffer, and the data before it */
#ifndef MYRI_PM_LAYOUT_H
#define MYRI_PM_LAYOUT_H

#include <stdint.h>

#define PM_MARK 0x80000000u

enum { PM_RING = 8, PM_BUFFER = 8192, PM_NODES = 64, PM_HEADER = 12, PM_SEQUENCE = 0xffffff };
enum { PM_DATA = 1, PM_ACK, PM_NACK };
/* HELD: refused while its job is stopped; it goes again when the job does. */
enum { PM_FREE, PM_POSTED, PM_FLYING, PM_HELD };

/* With `to`: the data are those of the descriptor before, which the card may still have (multi-send). */
#define PM_SAME 0x80000000u

struct pm_descriptor {
    uint32_t state, to, bytes, at; /* state: the host writes POSTED last, the card FREE */
};
struct pm_card {
    struct pm_descriptor send[PM_RING];
    uint32_t receive[PM_RING]; /* in turn, host addresses of free buffers; 0 = none */
    uint32_t route[PM_NODES];
    uint32_t done; /* messages that have their ACK, ever: when it is all, the network holds nothing of this node's */
    uint32_t resent, refused, errors;
    /* one more word behind the data: a mark for the receiving host, so that one DMA brings both */
    uint32_t out[2][PM_HEADER / 4 + PM_BUFFER / 4], in[2][PM_HEADER / 4 + PM_BUFFER / 4 + 1], answer[2][PM_HEADER / 4];
    /* Only the firmware whose jobs take turns uses this one. */
    uint32_t
        after_refusal; /* state of a message that was refused: POSTED, or HELD from when its job is stopped on until
                             * the next one runs */
    struct {
        uint32_t oldest, newest; /* of the send ring, counting on: where the card goes on when it begins again */
        uint32_t buffer;         /* entry of the receive ring */
        uint32_t ready;          /* the card has begun again */
    } turn;
};

#endif
