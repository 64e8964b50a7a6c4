/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM 2.x on the card: what FM 1.1's does (carry.h), with frames of a length that the host has chosen. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/fm2/layout.h"

volatile struct fm2_card card;
enum { QUEUE = FM2_QUEUE, WORDS = FM2_WORDS, RING = FM2_RING, PLACE = FM2_SLOT };
#define FRAME             card.frame
#define ROUTE_OF(word)    card.route[(word) >> 8 & (FM2_NODES - 1)]
#define BYTES_OF(q, word) ((q)->frame)
#define ARRIVED(q)        ((q)->frame)
#include "sim/myrinet/systems/fm1/carry.h"
