/* SPDX-License-Identifier: BSD-3-Clause
 *
 * VMMC on the card, written for speed alone: the words of a short message are copied two at a time, and one alone
 * without a loop. */
#define VMMC_TUNED
#include "sim/myrinet/systems/vmmc/firmware.c"
