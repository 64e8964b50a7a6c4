/* SPDX-License-Identifier: BSD-3-Clause
 *
 * below.h - Panda with the Fast Messages below it; see panda.h. */
#ifndef MYRI_PANDA_BELOW_H
#define MYRI_PANDA_BELOW_H

#include "sim/myrinet/os/ether.h"
#include "sim/myrinet/systems/fm1/host.h"
#include "sim/myrinet/systems/fmmc/host.h"
#include "sim/myrinet/systems/panda/panda.h"

/* A node's kernel, and where a datagram is that it hands over. */
struct panda_flip {
    struct myri_ether_port port;
    uint32_t in;
};

struct panda_on {
    struct panda panda; /* first */
    union {
        struct fm1 fm1;
        struct fmmc fmmc;
        struct panda_flip flip;
    };
};

enum panda_below { PANDA_ON_FMMC, PANDA_ON_FM1, PANDA_ON_FLIP };

/* Panda on FM/MC, on FM 1.1, whose sends look for messages, or on the kernel's datagrams. -1 with a fault. */
int panda_open_on(struct panda_on *, struct myri_side *, enum panda_below);

#endif
