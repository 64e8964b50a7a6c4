/* SPDX-License-Identifier: BSD-3-Clause
 *
 * below.h - Panda with the Fast Messages below it; see panda.h. */
#ifndef MYRI_PANDA_BELOW_H
#define MYRI_PANDA_BELOW_H

#include "sim/myrinet/systems/fm1/host.h"
#include "sim/myrinet/systems/fmmc/host.h"
#include "sim/myrinet/systems/panda/panda.h"

struct panda_on {
    struct panda panda; /* first */
    union {
        struct fm1 fm1;
        struct fmmc fmmc;
    };
};

/* Panda on FM/MC, or with `initial` on FM 1.1, whose sends look for messages. -1 with a fault. */
int panda_open_on(struct panda_on *, struct myri_side *, int initial);

#endif
