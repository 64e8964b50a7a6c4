/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tuned firmware of AM-II without answers and timers, as firmware-bare.c is of the plain one. */
#define AM2_BARE
#include "sim/myrinet/systems/am2/firmware-tuned.c"
