/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native_bip_tuned.c - the same host and network for the other firmware. */
#define SYSTEM "bip-tuned"
#include "sim/paper/systems/bip/firmware-tuned.c"

#include "paper/native_bip.c"
