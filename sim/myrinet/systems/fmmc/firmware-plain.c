/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM/MC on the card, as far as single messages need it: see tree.h. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/fmmc/layout.h"

volatile struct fmmc_card card;
#define NO_MULTICAST
#include "sim/myrinet/systems/fmmc/tree.h"
#include "sim/myrinet/systems/fmmc/turn.h"
