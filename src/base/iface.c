/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface.c - the counters of interfaces, and the hook by which the simulator takes over their output and exit. */
#include "base/iface.h"

const struct rnl_iface_host *rnl_iface_host;

int rnl_iface_counters(const struct rnl_iface *iface, struct rnl_counters *c, uint64_t **out)
{
    return rnl_counters_add(c, iface->name, iface->counters, out);
}
