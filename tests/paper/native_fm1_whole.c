/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native_fm1_whole.c - the same host and network for the firmware whose frames are all of one length. */
#define SYSTEM "fm1-whole"
#include "sim/paper/systems/fm1/firmware-whole.c"

#include "paper/native_fm1.c"
