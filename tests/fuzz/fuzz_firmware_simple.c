/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_firmware_simple.c - what the firmware of simple makes of any packets, entries of the host, and engines' pace:
 * see native.h. */
#define FUZZED
#include "paper/native_simple.c"
