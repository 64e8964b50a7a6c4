/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trapeze written for speed alone, as it would be without cut-through. */
#define STORE
#include "sim/myrinet/systems/trapeze/firmware-tuned.c"
