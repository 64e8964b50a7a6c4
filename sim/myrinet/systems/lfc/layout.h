/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - what LFC's library and cards share, and its packets.
 *
 *  packet:  of this hop: source 31..24 | kind 23..16 | credits given back 15..0
 *           data, padded to words
 *           bytes of data
 *           VALID 31 | who sent it first 30..24 | TO_ALL 1
 *  other kinds have two words: the first as above, and a value
 *
 * The host stores data and the two words behind them into a free slot, then what it is (`what`: bytes 15..0,
 * destination 23..16, TO_ALL 24), then `posted`; the slot is free again when the card has cleared its `what`. A place
 * of the host's ring ends with the packet's last word. */
#ifndef MYRI_LFC_LAYOUT_H
#define MYRI_LFC_LAYOUT_H

#include <stdint.h>

enum {
    LFC_DATA = 1024,
    LFC_WORDS = LFC_DATA / 4 + 3,
    LFC_SLOTS = 16,
    LFC_BUFFERS = 128, /* of a card: divided among all that send to it, but for two that stand open */
    LFC_RING = 128,    /* places of the host */
    LFC_PLACE = 2048,  /* so that none crosses a page */
    LFC_NODES = 32,
    LFC_ENTRIES = 2 * (LFC_BUFFERS + LFC_SLOTS), /* a packet and a hop */
    LFC_CONTROLS = 128,                          /* one credit and one value for each node, and a question */
    LFC_VARIABLES = 8
};
#define LFC_VALID  0x80000000u
#define LFC_TO_ALL 1u
enum { LFC_PACKET, LFC_CREDIT, LFC_FETCH, LFC_VALUE };

struct lfc_card {
    uint32_t posted;             /* slots that the host has filled, ever */
    uint32_t taken;              /* places that the host is done with, ever: it says so when it has polled */
    uint32_t ring_at;            /* host addresses */
    uint32_t value_at;           /* two words: a value, the mark */
    uint32_t nodes, credits;     /* credits: for each pair of cards */
    uint32_t interrupt;          /* not 0: wanted, if nobody polls in time. The host writes it */
    uint32_t watchdog;           /* in time: half microseconds */
    uint32_t question;           /* counts up: the host asks for a value, */
    uint32_t ask_node, ask_what; /* of this node's variable, and adds: variable 31..24 | addend 23..0 */
    uint32_t errors;
    uint32_t variable[LFC_VARIABLES];
    uint32_t what[LFC_SLOTS];
    uint32_t route[LFC_NODES];
    uint32_t value[2];
    uint32_t control[LFC_CONTROLS][3];                   /* node, two words */
    uint32_t packet[LFC_BUFFERS + LFC_SLOTS][LFC_WORDS]; /* buffers for what comes in, then the host's slots */
};

#endif
