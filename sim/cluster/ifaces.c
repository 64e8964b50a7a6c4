/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ifaces.c - the process-wide state of the library's interfaces, of which there is one set in this real process and one
 * for each virtual process. Nothing is known of it here but where it is and how many bytes it has: base/iface.h. A
 * virtual process keeps the states one after the other, in the order of rnl_ifaces. */
#include "sim/cluster/cluster_internal.h"

#include <string.h>

#include "base/bug.h"
#include "base/iface.h"

size_t vc_ifaces_bytes(void)
{
    size_t bytes = 0;
    for (const struct rnl_iface *const *i = rnl_ifaces; *i; i++)
        bytes += (*i)->state_bytes;
    return bytes;
}

void vc_ifaces_reset(unsigned char *kept)
{
    for (const struct rnl_iface *const *i = rnl_ifaces; *i; kept += (*i)->state_bytes, i++)
        if ((*i)->initial)
            memcpy(kept, (*i)->initial, (*i)->state_bytes);
        else
            memset(kept, 0, (*i)->state_bytes);
}

void vc_ifaces_enter(const unsigned char *kept)
{
    for (const struct rnl_iface *const *i = rnl_ifaces; *i; kept += (*i)->state_bytes, i++)
        if ((*i)->state_bytes && !RNL_BUG(iface_state_shared))
            memcpy((*i)->state, kept, (*i)->state_bytes);
}

void vc_ifaces_leave(unsigned char *kept)
{
    for (const struct rnl_iface *const *i = rnl_ifaces; *i; kept += (*i)->state_bytes, i++)
        if ((*i)->state_bytes)
            memcpy(kept, (*i)->state, (*i)->state_bytes);
}

static void exchange(unsigned char *a, unsigned char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = a[i];
        a[i] = b[i];
        b[i] = c;
    }
}

void vc_ifaces_abandon(unsigned char *kept, struct rnl_endpoint *ep)
{
    for (const struct rnl_iface *const *i = rnl_ifaces; *i; kept += (*i)->state_bytes, i++) {
        if (!(*i)->abandon)
            continue;
        exchange((*i)->state, kept, (*i)->state_bytes); /* another process may be running */
        (*i)->abandon(ep);
        exchange((*i)->state, kept, (*i)->state_bytes);
    }
}
