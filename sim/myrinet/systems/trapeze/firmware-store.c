/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trapeze as it would be without cut-through: each stage of a message waits for the end of the one before it. */
#define STORE
#include "sim/myrinet/systems/trapeze/firmware.c"
