/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - the simple protocol's host library. The survey prints no names; these are ours. */
#ifndef MYRI_SIMPLE_HOST_H
#define MYRI_SIMPLE_HOST_H

#include "sim/myrinet/systems/simple/layout.h"
#include "sim/myrinet/systems/system.h"

typedef void sni_handler(void *arg, uint32_t from, uint32_t at, uint32_t bytes);

struct sni {
    struct myri_side *side;
    uint32_t card, area, buffers; /* SRAM; host */
    uint32_t sent, known_free;    /* descriptors used; of which this many may still be used without a look */
    uint32_t next;                /* receive ring */
    uint32_t packet;
    sni_handler *handler;
    void *arg;
};

/* A packet of 1 to sni.packet bytes from host memory; waits while the send ring is full. */
void sni_send(struct sni *, uint32_t to, uint32_t from, uint32_t bytes);
/* Runs the handler for the next packet if it has come by the tick: 1, else 0. The packet is gone when it returns. */
int sni_poll(struct sni *, uint64_t until);

#endif
