/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - AM-II (paper 004, table 1): active messages between endpoints, handed over exactly once, or returned with a
 * reason, on a network that may lose packets. Not in order, as AM-2 has it. A node has more endpoints than its card has
 * frames: the kernel (kernel.h) moves them. All addresses are of the process's space. Handlers may not send. */
#ifndef MYRI_AM2_HOST_H
#define MYRI_AM2_HOST_H

#include "sim/myrinet/systems/am2/kernel.h"
#include "sim/myrinet/systems/system.h"

struct am2;
/* `from`: number of the sender's name here, or AM2_NAMES: it has none. `at`: in the space. */
typedef void am2_handler(struct am2 *, uint32_t from, uint32_t at, uint32_t bytes);
/* Handler 0 of AM-2: a message to that name came back, for one of the reasons of layout.h. */
typedef void am2_returned(struct am2 *, uint32_t to, uint32_t reason);

struct am2 {
    struct am2_resident resident;
    struct am2_kernel kernel; /* of the node's first endpoint, which lives as long as the machine: used */
    struct myri_hw *hw;
    void *owner;
    uint32_t out, in, words;             /* areas, and where a short one is read to */
    uint32_t next, looked, ready, taken; /* slot that is used next, looked at next; messages known to be here; taken */
    uint32_t used[AM2_SLOTS], to[AM2_SLOTS], carried[AM2_SLOTS]; /* of slots: a message is there; its name, credits */
    uint32_t counted[AM2_SLOTS];                                 /* it is one of the window's */
    uint32_t window;                                             /* 0: senders are not held back */
    uint32_t sent[AM2_NAMES], owed[AM2_NAMES];                   /* messages not handled there; handled here, unsaid */
    uint32_t owes;                                               /* names to which credits are to be sent, a bit each */
    uint8_t number[AM2_NODES][AM2_ENDPOINTS];                    /* + 1, of the name of that endpoint */
    am2_handler *handler[256];
    am2_returned *returned;
    uint32_t handled;
    uint32_t back, why; /* messages that came back, and the reason of the last one */
    uint32_t held_back; /* times that a request found the window closed */
};

/* Set-up, without time. AM_AllocateEndpoint: 0, or -1: there is such an endpoint, or a fault of the machine. */
int am2_open(struct am2 *, struct myri_hw *, uint32_t node, uint32_t endpoint, struct myri_space *);
/* AM_Map: that endpoint gets number k here. */
void am2_map(struct am2 *, uint32_t k, uint32_t node, uint32_t endpoint);

/* -- inside the task, which has been set -- */

/* AM_RequestI: a message of up to 8 KB; waits for a slot and for the window, and polls meanwhile. */
void am2_request(struct am2 *, uint32_t to, uint32_t handler, uint32_t from, uint32_t bytes);
/* AM_Poll: handlers of what is here, and of what came back; how many. It looks across the bus. */
uint32_t am2_poll(struct am2 *);
/* AM_FreeEndpoint: what is in its slots is forgotten, what comes for it goes back. */
void am2_close(struct am2 *);

#endif
