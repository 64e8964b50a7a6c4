/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - BIP's blocking calls. Lengths are in words; user buffers lie anywhere. Nothing protects one user from
 * another, and there are no credits: whoever sends more short messages than the ring holds before the receiver takes
 * them overwrites some (the manual leaves that to its users); the machine reports it. */
#ifndef MYRI_BIP_HOST_H
#define MYRI_BIP_HOST_H

#include "sim/myrinet/systems/bip/layout.h"
#include "sim/myrinet/systems/system.h"

struct bip {
    struct myri_side *side;
    uint32_t card, ring, status, packet;
    uint32_t shorts, known_free, next; /* sent; buffers on the card; slot of the ring */
    uint32_t sent, received;           /* long ones */
};

int bip_init(struct bip *, struct myri_side *);
void bip_send(struct bip *, uint32_t to, uint32_t from, uint32_t words);
/* `words` decides, like on the sending side, which of the two protocols it is. The length in words, or 0. */
uint32_t bip_recv(struct bip *, uint32_t from, uint32_t to, uint32_t words, uint64_t until);

#endif
