/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_firmware_vmmc.c - what the firmware of vmmc makes of any packets, entries of the host, and engines' pace: see
 * native.h. */
#define FUZZED
#include "sim/myrinet/systems/vmmc/native.c"
