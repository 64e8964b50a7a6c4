/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_firmware_fm2.c - what the firmware of fm2 makes of any packets, entries of the host, and engines' pace: see
 * native.h. */
#define FUZZED
#include "paper/native_fm2.c"
