/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM 1.x on the card, written for speed alone: see carry-tuned.h. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/fm1/layout.h"

volatile struct fm1_card card;
enum { QUEUE = FM1_QUEUE, WORDS = FM1_WORDS, RING = FM1_RING, PLACE = FM1_FRAME, FRAME = FM1_FRAME };
#define ROUTE_OF(word)    card.route[(word) >> 16 & (FM1_NODES - 1)]
#define BYTES_OF(q, word) ((((word) >> 24) + FM1_HEADER + 3) & ~3u)
#define ARRIVED(q)        nic_read(RLEN)
#include "sim/myrinet/systems/fm1/carry-tuned.h"
