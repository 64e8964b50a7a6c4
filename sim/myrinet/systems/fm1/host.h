/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - Fast Messages 1.1 (paper 000, table 1; paper 003, section 3): messages of any length with a handler each,
 * reliable and in order, by credits that hosts keep for frames in each other's rings. One process per card. A send that
 * has no credit takes frames in until it has one. Other sends do not look for messages, says paper 000 (3.1); the
 * library that paper 003 ran did (its section 2.2): `polls`. */
#ifndef MYRI_FM1_HOST_H
#define MYRI_FM1_HOST_H

#include "sim/myrinet/systems/fm1/layout.h"
#include "sim/myrinet/systems/system.h"

#define FM1_ON_CRC "FM takes Myrinet to be reliable (Lauria et al. 1998, section 3.1)"

struct fm1;
/* `at` is valid until the handler returns. Handlers may not send. */
typedef void fm1_handler(struct fm1 *, uint32_t from, uint32_t at, uint32_t bytes);
enum { FM1_HANDLERS = 256 };

struct fm1 {
    struct myri_side *side;
    void *owner;
    uint32_t card, ring, next; /* SRAM, host address, frame of the ring that comes next */
    uint32_t posted, known_sent;
    fm1_handler *handler[FM1_HANDLERS];
    uint32_t credit[MYRI_HW_NODES], owed[MYRI_HW_NODES], share; /* frames */
    struct {
        uint32_t at, filled; /* where a message of several frames is put together */
    } partial[MYRI_HW_NODES];
    uint32_t messages;
    int polls;
    int unlimited; /* no flow control: for figure 3a alone */
};

int fm1_initialize(struct fm1 *, struct myri_side *);
void fm1_send_4(struct fm1 *, uint32_t to, uint32_t handler, const uint32_t words[4]);
void fm1_send(struct fm1 *, uint32_t to, uint32_t handler, uint32_t from, uint32_t bytes);
/* Runs the handlers of all messages that are here; how many there were. */
uint32_t fm1_extract(struct fm1 *);

#endif
