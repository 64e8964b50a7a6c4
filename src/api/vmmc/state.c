/* SPDX-License-Identifier: BSD-3-Clause
 *
 * state.c - the state of VMMC's session, and what all files of this folder ask of it. */
#include "api/vmmc/session.h"

#include <unistd.h>

struct rnl_vmmc rnl_vmmc;

size_t rnl_vmmc_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

int rnl_vmmc_enter(const char *function)
{
    if (RNL_UNLIKELY(!rnl_vmmc.ep))
        return rnl_fail(RNL_ERR_CLOSED, "%s was called before VMMC_Init or after VMMC_Exit: call it between the two",
                        function);
    if (RNL_UNLIKELY(rnl_ep_forked(rnl_vmmc.ep)))
        return rnl_fail(RNL_ERR_FORKED, "this process was forked from the one that has the VMMC session; it has none");
    return 0;
}

int VMMC_ProcessOf(VMMC_NodeID node, VMMC_Process *process)
{
    struct rnl_peer_info info;
    int status = rnl_vmmc_enter("VMMC_ProcessOf");
    if (status == 0)
        status = rnl_peer(rnl_vmmc.ep, node, &info);
    if (status == 0)
        *process = info.incarnation;
    return status;
}

int rnl_vmmc_is_there(VMMC_NodeID node, VMMC_Process process)
{
    VMMC_Process now = 0;
    int status = process ? VMMC_ProcessOf(node, &now) : 0;
    if (process == 0 || status < 0 || now == process)
        return status;
    return rnl_fail(RNL_ERR_PEER_DEAD, "process %llu of node %u is not there: the one that has that node is %llu",
                    (unsigned long long)process, node, (unsigned long long)now);
}
