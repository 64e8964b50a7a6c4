/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session.c - VMMC's session: its beginning and end, progress. */
#include "api/vmmc/session.h"

int VMMC_Init(rnl_endpoint *ep)
{
    bool own = !ep;
    uint64_t *count = NULL;
    if (rnl_vmmc.ep) {
        int forked = rnl_vmmc_enter("VMMC_Init");
        return forked < 0 ? forked : rnl_fail(RNL_ERR_CONTEXT, "VMMC_Init was called twice");
    }
    int status = own ? rnl_open(&ep, NULL) : 0;
    if (status < 0)
        return status;
    status = rnl_iface_counters(&rnl_vmmc_iface, ep->c, &count);
    if (status < 0) {
        if (own)
            (void)!rnl_close(ep);
        return status;
    }
    rnl_vmmc = (struct rnl_vmmc){.ep = ep, .own = own, .count = count};
    return 0;
}

void rnl_vmmc_free(bool windows)
{
    rnl_vmmc_free_imports(windows);
    rnl_vmmc_free_exports(windows);
    rnl_vmmc = (struct rnl_vmmc){.ep = NULL};
}

int VMMC_Exit(void)
{
    int status = rnl_vmmc_enter("VMMC_Exit");
    if (status < 0)
        return status;
    if (rnl_vmmc.in_handler)
        return rnl_fail(RNL_ERR_CONTEXT, "VMMC_Exit was called in a handler; call it from the program");
    for (; rnl_vmmc.blocked > 0; rnl_vmmc.blocked--) /* or what waits would never run, and its senders be held up */
        (void)rnl_notify_unblock(rnl_vmmc.ep);
    if (!rnl_vmmc.own) {
        rnl_vmmc_free(true);
        return 0;
    }
    status = rnl_close(rnl_vmmc.ep); /* notifications may still come in it */
    if (status != RNL_ERR_CONTEXT && status != RNL_ERR_FORKED)
        rnl_vmmc_free(false);
    return status;
}

rnl_endpoint *VMMC_Endpoint(void)
{
    return rnl_vmmc.ep;
}

VMMC_NodeID VMMC_Node(void)
{
    return rnl_vmmc_enter("VMMC_Node") < 0 ? 0 : rnl_rank(rnl_vmmc.ep);
}

unsigned VMMC_Nodes(void)
{
    return rnl_vmmc_enter("VMMC_Nodes") < 0 ? 0 : rnl_size(rnl_vmmc.ep);
}

int VMMC_Poll(void)
{
    int status = rnl_vmmc_enter("VMMC_Poll");
    if (status < 0)
        return status;
    int64_t got = rnl_extract(rnl_vmmc.ep, ~(size_t)0);
    if (rnl_vmmc.requests)
        rnl_vmmc_drain();
    return got < 0 ? (int)got : 0;
}

int VMMC_Wait(int64_t timeout_ns)
{
    int status = rnl_vmmc_enter("VMMC_Wait");
    if (status < 0)
        return status;
    int64_t got = rnl_wait(rnl_vmmc.ep, timeout_ns);
    if (got != RNL_ERR_FORKED && rnl_vmmc.requests)
        rnl_vmmc_drain();
    return got < 0 ? (int)got : 0;
}
