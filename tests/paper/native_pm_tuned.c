/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native_pm_tuned.c - the same host and network for the other firmware. */
#define SYSTEM "pm-tuned"
#include "sim/paper/systems/pm/firmware-tuned.c"

#include "paper/native_pm.c"
