/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native_fm1_link.c - the same host and network for the firmware of figure 3a's first curve. */
#define SYSTEM "fm1-link"
#define STAYS_ON_CARD
#include "sim/paper/systems/fm1/firmware-link.c"

#include "paper/native_fm1.c"
