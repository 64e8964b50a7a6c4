/* SPDX-License-Identifier: BSD-3-Clause
 *
 * card.h - one card of Intel's 8255x family, driven by this process: frames are composed where the card reads them and
 * read where it wrote them, without the kernel. One thread; no call blocks but rnl_i8255x_open, which takes some 10 ms.
 *
 * What comes from the wire is as hostile as any frame; what the card writes is believed no further than a block's
 * length. */
#ifndef RNL_NET_SOCKET_I8255X_CARD_H
#define RNL_NET_SOCKET_I8255X_CARD_H

#include <stdbool.h>

#include "net/socket/i8255x/grant.h"
#include "net/socket/i8255x/layout.h"

struct rnl_i8255x {
    volatile uint8_t *registers; /* each access is a trip to the card */
    uint8_t *memory;
    uint64_t bus; /* the card's address of that memory */
    uint8_t mac[6];
    bool gone;    /* it was pulled: nothing touches it again */
    bool link_up; /* a hint: a cable can be cut behind the next switch */
    bool link_asked;
    bool tx_stuck;   /* the oldest block is not done for several looks: the card does not reach the memory any more */
    bool rx_ran_out; /* the block with END was filled: the receive unit has stopped */
    uint32_t tx_next, tx_posted, rx_next, rx_ready, rx_tail;
    uint32_t tx_watched, tx_looks;     /* the oldest block that is not done, and at how many looks it was that one */
    uint64_t rx_restarts, tx_restarts; /* a receive unit that ran out of blocks, a command unit that stopped early */
};

/* Maps what the grant has, tests the card and starts it. The grant's descriptors stay the caller's.
 * 0, RNL_ERR_SYSTEM. */
int rnl_i8255x_open(struct rnl_i8255x *c, const struct rnl_i8255x_grant *g);
/* Stops both units of the card with these registers, whatever they are at, and its interrupts. */
void rnl_i8255x_reset(struct rnl_i8255x *c);
/* Stops the card, so that it writes into no memory any more, and unmaps it. */
void rnl_i8255x_close(struct rnl_i8255x *c);

/* Room for the next frame, RNL_I8255X_FRAME bytes; NULL: all blocks are under way. */
uint8_t *rnl_i8255x_room(struct rnl_i8255x *c);
/* The frame in that room, at least 60 bytes. It goes at the next kick, or before. */
void rnl_i8255x_post(struct rnl_i8255x *c, uint32_t bytes);
void rnl_i8255x_kick(struct rnl_i8255x *c);

/* The next frame, in place until it is freed; NULL: there is none, which costs one load. */
const uint8_t *rnl_i8255x_next(struct rnl_i8255x *c, uint32_t *bytes);
void rnl_i8255x_free(struct rnl_i8255x *c); /* the one that `next` returned */

/* Interrupts: a descriptor that is readable when one has come, or -1: the card has no line. It is the
 * caller's, or `device` itself: another descriptor of that file would outlive the memory (grant.h). */
int rnl_i8255x_interrupts(int device);
/* Lets one interrupt come, for the next frame, and takes from `event` that one has. True: a frame is there already. */
bool rnl_i8255x_arm(struct rnl_i8255x *c, int event, int device, int line);
void rnl_i8255x_disarm(struct rnl_i8255x *c);

/* What is due every millisecond: restarts a unit that has stopped, and looks at the cable. False: the card is gone. */
bool rnl_i8255x_tend(struct rnl_i8255x *c);

#endif
