/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM/MC written for speed alone, as far as single messages need it: the turn of turn.h has nothing that could be left
 * out but the direction of the host DMA engine, which is told once, as it brings fragments up and does nothing else. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/fmmc/layout.h"

volatile struct fmmc_card card;
#define NO_MULTICAST
#define ONE_DIRECTION
#include "sim/myrinet/systems/fmmc/tree.h"
#include "sim/myrinet/systems/fmmc/turn.h"
