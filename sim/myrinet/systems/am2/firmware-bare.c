/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AM-II on the card without answers and timers: what the survey says that these cost is measured against it. A message
 * has been sent when it has left; one that is lost, or finds no room, is lost. */
#define AM2_BARE
#include "sim/myrinet/systems/am2/firmware.c"
