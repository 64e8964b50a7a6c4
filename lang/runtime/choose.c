/* SPDX-License-Identifier: BSD-3-Clause
 *
 * choose.c - which run-time system a program gets: that of one rank, or that of a job of several. */
#include "rts.h"
#include "runnel/panda.h"

static bool joined;

void orc_choose_system(void)
{
    orc_system = &orc_local;
    if (orc_cpus_wanted > 1)
        return;
    if (pan_init(NULL, NULL) < 0)
        orc_fail(0, "%s", rnl_last_error()->text);
    joined = true;
    if (pan_nr_processes() > 1)
        orc_system = &orc_cluster;
}

void orc_leave_system(void)
{
    if (joined)
        (void)!pan_end();
}
