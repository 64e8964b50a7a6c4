/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - FM/MC's queue and buffers in the card's SRAM, its fragments, and its ring in the host's memory. It is FM
 * 1.1's (../fm1/layout.h) with a fragment of another size, and with what multicasts need.
 *
 *  fragment:  data, padded to words
 *             bytes of data 31..24 | destination 23..16 | credits given back, of a multicast its number 15..0
 *             VALID 31 | source 30..24 | handler 23..16 | ASK 2 | MULTICAST 1 | LAST 0
 *  control, from card to card, shorter than any fragment: value, kind 31..24 | credits 23..8 | source 7..0
 *
 * A fragment ends at the end of its place, and goes out whole. One of the host's with ASK goes nowhere: it asks for a
 * number (bit 16 of its last word but one) and credits (15..0 of it), which come back by a transfer of three words: the
 * number, credits that the card has, the mark.
 *
 * A credit is a buffer for one multicast fragment at every node: FMMC_CREDITS places of the host's ring, and as many
 * buffers of the card, are kept for them. The rest of the ring is what senders of single messages have credits for. */
#ifndef MYRI_FMMC_LAYOUT_H
#define MYRI_FMMC_LAYOUT_H

#include <stdint.h>

enum {
    FMMC_FRAGMENT = 256, /* at most, with its header: paper 003, 5.1.1 */
    FMMC_HEADER = 8,
    FMMC_WORDS = FMMC_FRAGMENT / 4,
    FMMC_QUEUE = 32,
    FMMC_RING = 256,
    FMMC_CREDITS = 64,
    FMMC_POOL = FMMC_CREDITS + 2, /* and two that stand open */
    FMMC_NODES = 32,
    FMMC_CONTROLS = 64, /* that wait to be sent: one a node and the token, at most */
    FMMC_MANAGER = 0    /* the card that has numbers and spare credits */
};
#define FMMC_VALID 0x80000000u
enum { FMMC_LAST = 1, FMMC_MULTICAST = 2, FMMC_ASK = 4 };
enum { FMMC_REQUEST = 1, FMMC_GRANT, FMMC_TOKEN };

struct fmmc_control {
    uint32_t to, value, what;
};

struct fmmc_card {
    uint32_t posted;    /* fragments that the host has put into the queue, ever */
    uint32_t sent;      /* of them, those that have left */
    uint32_t ring_at;   /* host addresses: of the ring, */
    uint32_t answer_at; /* and of the three words of an answer */
    uint32_t nodes, frame;
    uint32_t freed; /* multicast fragments that this host is done with, its own included, ever: the host writes it */
    uint32_t interrupt; /* not 0: what arrives interrupts. The host writes it */
    uint32_t credits;   /* of this node. The host writes them before it starts */
    uint32_t stock;     /* of the manager, the same */
    uint32_t errors;
    uint32_t route[FMMC_NODES];
    uint32_t answer[3];
    struct fmmc_control control[FMMC_CONTROLS];
    uint32_t queue[FMMC_QUEUE][FMMC_WORDS];
    uint32_t pool[FMMC_POOL][FMMC_WORDS];
};

#endif
