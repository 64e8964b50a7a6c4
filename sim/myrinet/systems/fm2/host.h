/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - Fast Messages 2.x (paper 000, table 2): a message is a stream of pieces; its handler starts with the first
 * packet and takes the bytes in pieces of its own choosing; extract says how much it is willing to take. Reliable and
 * in order by credits. Each handler has a stack of its own (000, 4.1: transparent handler multithreading): one that
 * waits for bytes is left where it stands, packets of other senders start and continue theirs, and it goes on in the
 * extract that finds its next packet. */
#ifndef MYRI_FM2_HOST_H
#define MYRI_FM2_HOST_H

#include "sim/myrinet/systems/fm2/layout.h"
#include "sim/myrinet/systems/system.h"

#define FM2_ON_CRC "FM takes Myrinet to be reliable (Lauria et al. 1998, section 3.1)"

struct fm2;
struct rnl_coro;
struct fm2_stream {
    struct fm2 *fm;
    uint32_t peer, handler;
    uint32_t filled, first;   /* sending: bytes in the packet that is composed */
    uint32_t at, left, last;  /* receiving: what is left of the packet in the ring */
    struct rnl_coro *on;      /* the stack of its handler, */
    struct rnl_coro *waiting; /* and while that is suspended, it again */
    uint32_t words[FM2_DATA / 4];
};
typedef void fm2_handler(struct fm2_stream *, uint32_t from);

struct fm2 {
    struct myri_side *side;
    void *owner;
    uint32_t card, ring, next, packet, posted, known_sent, share;
    fm2_handler *handler[256];
    uint32_t credit[MYRI_HW_NODES], owed[MYRI_HW_NODES];
    struct fm2_stream out, in[MYRI_HW_NODES];
    struct rnl_coro_pool *stacks;
    int handling; /* a handler runs */
};

int fm2_initialize(struct fm2 *, struct myri_side *);
void fm2_finalize(struct fm2 *); /* handlers that wait are given up */
/* One message at a time. */
struct fm2_stream *fm2_begin_message(struct fm2 *, uint32_t to, uint32_t handler);
void fm2_send_piece(struct fm2_stream *, uint32_t from, uint32_t bytes);
void fm2_end_message(struct fm2_stream *);
/* Takes packets in until so many bytes have been handled (rounded up to a packet) or nothing is here; waits for the
 * first one until the tick. How many bytes. */
uint32_t fm2_extract(struct fm2 *, uint32_t bytes, uint64_t until);
/* Inside a handler: copies the next bytes of its message, waiting for them; fewer when it has no more. */
uint32_t fm2_receive(uint32_t to, struct fm2_stream *, uint32_t bytes);

#endif
