/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exit_twice.c - a job of 5 workers that poll, whose rank 3 ends it. Rank 1, between it and the others in the tree of
 * workers, hears so within the core, as at the last message of a barrier, and then ends the job too: the others must
 * hear of it. Run by test_spmd.sh. */
#include "api/amudp/amudp_internal.h"

#include <amudp_spmd.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    uint64_t key;
    eb_t eb;
    ep_t ep;
    if (AMUDP_SPMDStartup(&argc, &argv, 0, 0, NULL, &key, &eb, &ep) != AM_OK || AMUDP_SPMDBarrier() != AM_OK)
        return 9;
    int rank = AMUDP_SPMDMyProc();
    if (rank == 3)
        AMUDP_SPMDExit(0);
    for (int i = 0; rank == 1 && !rnl_amudp_spmd.ends && i < 60000; i++) {
        usleep(1000);
        if (rnl_am_poll(eb->core) != AM_OK)
            return 9;
    }
    if (rank == 1)
        AMUDP_SPMDExit(0);
    for (;;)
        if (AM_Poll(eb) != AM_OK)
            return 9;
}
