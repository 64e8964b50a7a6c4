/* SPDX-License-Identifier: BSD-3-Clause
 *
 * choose.c - which run-time system a program gets: that of one rank, or that of a job of several. */
#include "rts.h"

void orc_choose_system(void)
{
    orc_system = &orc_local;
}
