/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface.c - registers VMMC as an interface (base/iface.h): its process state, counters and `runnel info`. */
#include "api/vmmc/session.h"

/* Windows and imports are the endpoint's, and go with it. */
static void abandon(struct rnl_endpoint *ep)
{
    if (rnl_vmmc.ep == ep)
        rnl_vmmc_free(false);
}

static const struct rnl_counter_text counters[] = {
    [RNL_VMMC_EXPORTED] = {"exported", "receive buffers that were exported"},
    [RNL_VMMC_IMPORTED] = {"imported", "receive buffers of others that were imported"},
    [RNL_VMMC_NOTIFIED] = {"notified", "notifications whose handler ran"},
    [RNL_VMMC_COUNTERS] = {NULL, NULL},
};
static const struct rnl_iface_row info[] = {
    {"interface", "VMMC", 0, "runnel/vmmc.h"},
    {NULL, NULL, 0, NULL},
};

const struct rnl_iface rnl_vmmc_iface = {
    .name = "VMMC",
    .state = &rnl_vmmc,
    .state_bytes = sizeof rnl_vmmc,
    .abandon = abandon,
    .counters = counters,
    .info = info,
};
