/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM/MC on the card: see tree.h. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/fmmc/layout.h"

volatile struct fmmc_card card;
#include "sim/myrinet/systems/fmmc/tree.h"
#include "sim/myrinet/systems/fmmc/turn.h"
