/* SPDX-License-Identifier: BSD-3-Clause
 *
 * near.c - runnel run -n N multi-near: rank 0 prints of how many ranks it is told that datagrams go to them, and of how
 * many of these that they run under its own kernel. */
#include <stdio.h>

#include "endpoint/endpoint.h"
#include "multi/fm_check.h"
#include "runnel/runnel.h"

int main(void)
{
    rnl_endpoint *ep;
    unsigned away = 0, same = 0;
    CHECK(rnl_open(&ep, NULL) == 0);
    check_rank = ep->rank;
    for (uint32_t rank = 0; rank < ep->size; rank++) {
        struct rnl_rank_address place;
        if (rank == ep->rank || !ep->env->ops->rank_address || ep->env->ops->rank_address(ep->env, rank, &place) != 1)
            continue;
        away++;
        same += place.same_kernel == 1;
    }
    if (ep->rank == 0)
        printf("%u by datagrams, %u of them under one kernel\n", away, same);
    CHECK(rnl_close(ep) == 0);
    return 0;
}
