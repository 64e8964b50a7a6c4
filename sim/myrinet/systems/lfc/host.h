/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - LFC (paper 004; names of its user guide): packets of up to 1 KB, to one or to all, reliable and in order by
 * credits between cards; an upcall for each, which may keep it; a watchdog that interrupts who does not poll;
 * fetch-and-add on a card. Upcalls may not send. */
#ifndef MYRI_LFC_HOST_H
#define MYRI_LFC_HOST_H

#include "sim/myrinet/systems/lfc/layout.h"
#include "sim/myrinet/systems/system.h"

#define LFC_ON_CRC "LFC takes the network to be reliable (Bhoedjang et al. 1998, table 1)"

struct lfc;
struct lfc_packet {
    uint32_t place;
};
/* Not 0: the packet stays until lfc_packet_free. Places are used again in their order, so who keeps one for long stops
 * what comes behind it. */
typedef int lfc_upcall(struct lfc *, uint32_t from, uint32_t at, uint32_t bytes, struct lfc_packet);

struct lfc {
    struct myri_side *side;
    void *owner;
    uint32_t card, ring, value; /* SRAM; host addresses */
    uint32_t next, taken, told; /* places that have been looked at, that are done with, that the card knows of */
    uint32_t posted, asked;
    uint8_t kept[LFC_RING];
    lfc_upcall *upcall;
    uint32_t handled, disabled;
};

int lfc_start(struct lfc *, struct myri_side *);
/* A slot of the card that is free; drains the network while it waits. */
uint32_t lfc_send_alloc(struct lfc *);
/* Copies `bytes` from host memory into the slot, and sends them. */
void lfc_ucast_launch(struct lfc *, uint32_t to, uint32_t slot, uint32_t from, uint32_t bytes);
void lfc_bcast_launch(struct lfc *, uint32_t slot, uint32_t from, uint32_t bytes);
/* Upcalls for what is here; how many. */
uint32_t lfc_poll(struct lfc *);
void lfc_packet_free(struct lfc *, struct lfc_packet);
/* These two nest: the outermost call acts. */
void lfc_intr_disable(struct lfc *);
void lfc_intr_enable(struct lfc *);
/* What the variable of that node's card was before. */
uint32_t lfc_fetch_and_add(struct lfc *, uint32_t node, uint32_t variable, uint32_t addend);

#endif
