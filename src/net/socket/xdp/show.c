/* SPDX-License-Identifier: BSD-3-Clause
 *
 * show.c - composes the lines. */
#include "net/socket/xdp/show.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/socket/xdp/queue.h"

enum { LINE = 256 };

/* Counts the destinations by the rings and by the kernel. */
static void count_routes(const struct rnl_xdp_routes *r, unsigned *by_rings, unsigned *by_kernel)
{
    *by_rings = *by_kernel = 0;
    for (uint32_t i = 0; i < RNL_XDP_ROUTES; i++) {
        *by_rings += r->route[i].used && !r->route[i].why;
        *by_kernel += r->route[i].used && r->route[i].why;
    }
}

/* Lines of destinations by the kernel, as many as there is room for. */
static size_t list_routes(const struct rnl_xdp_routes *r, char *text, size_t room)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    size_t used = 0;
    for (uint32_t i = 0; i < RNL_XDP_ROUTES && room - used >= LINE; i++) {
        const struct rnl_xdp_route *d = &r->route[i];
        char ip[INET6_ADDRSTRLEN];
        if (!d->used || !d->why)
            continue;
        const bool v4 = memcmp(d->to.ip, mapped, sizeof mapped) == 0;
        (void)inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? d->to.ip + sizeof mapped : d->to.ip, ip, sizeof ip);
        used +=
            (size_t)snprintf(text + used, LINE, "AF_XDP: %s port %u goes by the kernel: %s\n", ip, d->to.port, d->why);
    }
    return used;
}

void rnl_xdp_show(struct rnl_notes **notes, const struct rnl_xdp_facts *f, const struct rnl_xdp_routes *r)
{
    char *text = malloc(RNL_NOTES_TEXT_MAX), name[IF_NAMESIZE] = "?";
    unsigned by_rings, by_kernel;
    size_t used;
    if (!text)
        return;
    if (f->works) {
        count_routes(r, &by_rings, &by_kernel);
        (void)if_indextoname(f->interface, name);
        used = (size_t)snprintf(text, LINE, "AF_XDP: queue %u of %s, %s: rings to %u addresses, the kernel to %u\n",
                                f->queue, name, rnl_xdp_mode_text(f->mode), by_rings, by_kernel);
        used += list_routes(r, text + used, RNL_NOTES_TEXT_MAX - used);
    } else {
        used = (size_t)snprintf(text, LINE, "AF_XDP: all datagrams go by the kernel: %s\n", f->why);
    }
    (void)rnl_notes_set(notes, text, used);
    free(text);
}
