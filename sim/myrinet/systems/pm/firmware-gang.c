/* SPDX-License-Identifier: BSD-3-Clause
 *
 * PM's firmware for jobs that take turns: what is refused while its job is stopped waits for its next turn, and a
 * program that begins again goes on with the channel that it finds. It is an object of its own because the compiler
 * lays out the rest a little differently with it, and the published figures are of one job. */
#define PM_TURNS
#include "sim/myrinet/systems/pm/firmware.c"
