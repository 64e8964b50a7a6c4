/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair_in.c - reading records. A cell is copied before anything in it is looked at. What lies in the bulk area is read
 * in place, where the peer can still change it, so the stream fetches each byte there once. */
#include "pair_internal.h"

#include "host.h"

#include <string.h>

enum { ADVERTISE_CELLS = RNL_RPC_CELLS / 4, ADVERTISE_BYTES = RNL_RPC_BULK_BYTES / 8 };

static uint64_t head_of(struct rnl_rpc_pair *p)
{
    /* pairs with the release in publish() of the peer */
    return atomic_load_explicit(&p->in->cell[p->in_cell % RNL_RPC_CELLS].header, memory_order_acquire);
}

bool rnl_rpc_pair_here(struct rnl_rpc_pair *p)
{
    return (uint32_t)head_of(p) == (uint32_t)(p->in_cell + 1);
}

/* Advertises late and in large steps what was read: each time costs it a cache miss. */
static void advertise(struct rnl_rpc_pair *p)
{
    if (RNL_LIKELY(p->in_cell - p->in_cell_advertised < ADVERTISE_CELLS &&
                   p->in_bulk - p->in_bulk_advertised < ADVERTISE_BYTES))
        return;
    p->in_cell_advertised = p->in_cell;
    p->in_bulk_advertised = p->in_bulk;
    /* both pair with the acquires in rnl_rpc_pair_has_room of the peer */
    atomic_store_explicit(&p->in->bulk_read, p->in_bulk, memory_order_release);
    atomic_store_explicit(&p->in->cells_read, p->in_cell, memory_order_release);
    rnl_rpc_pair_ring(p, &p->in->room_armed, &p->rung_room);
}

static void leave_part(struct rnl_rpc_pair *p)
{
    if (p->in_part_end) {
        p->in_bulk = p->in_part_end;
        p->in_part_end = 0;
    }
    p->link.in_at = p->link.in_end = NULL;
    advertise(p);
}

static bool impossible(struct rnl_rpc_link *link)
{
    link->broken = true;
    link->in_at = link->in_end = NULL;
    return false;
}

bool rnl_rpc_pair_peek(struct rnl_rpc_link *link, void *to, size_t n)
{
    struct rnl_rpc_pair *p = rnl_rpc_pair_of(link);
    uint64_t header = head_of(p);
    if (link->in_open || (uint32_t)header != (uint32_t)(p->in_cell + 1) || (header >> 32 & 0xff) < n ||
        n > RNL_RPC_PAYLOAD_BYTES || header >> 56 & RNL_RPC_BULK)
        return false;
    memcpy(to, p->in->cell[p->in_cell % RNL_RPC_CELLS].payload, n);
    return true;
}

bool rnl_rpc_pair_next(struct rnl_rpc_link *link)
{
    struct rnl_rpc_pair *p = rnl_rpc_pair_of(link);
    if (link->in_open && link->in_last)
        return false;
    leave_part(p);
    if (RNL_UNLIKELY(!rnl_rpc_pair_here(p))) {
        uint64_t deadline = link->deadline_ns ? link->deadline_ns : rnl_rpc_now_ns() + rnl_rpc_rest_ns;
        if (!rnl_rpc_pair_wait(p, rnl_rpc_pair_here, deadline))
            return impossible(link);
    }
    uint64_t header = head_of(p);
    unsigned n = header >> 32 & 0xff, flags = (unsigned)(header >> 56);
    memcpy(p->copy, p->in->cell[p->in_cell % RNL_RPC_CELLS].payload, RNL_RPC_PAYLOAD_BYTES);
    p->in_cell++;
    link->peer_cpu = (uint32_t)(header >> 40) & 0xffff;
    link->in_open = true;
    link->in_last = (flags & RNL_RPC_LAST) != 0;
    if (flags & RNL_RPC_BULK) {
        uint64_t start;
        uint32_t bytes;
        memcpy(&start, p->copy, sizeof start);
        memcpy(&bytes, p->copy + sizeof start, sizeof bytes);
        uint32_t at = (uint32_t)(start % RNL_RPC_BULK_BYTES);
        if (start - p->in_bulk > RNL_RPC_BULK_BYTES || bytes > RNL_RPC_BULK_BYTES - at || at % RNL_RPC_UNIT_BYTES != 0)
            return impossible(link);
        link->in_private = false;
        link->in_at = p->in->bulk + at;
        link->in_end = link->in_at + bytes;
        p->in_part_end = start + bytes;
    } else {
        if (n > RNL_RPC_PAYLOAD_BYTES)
            return impossible(link);
        link->in_private = true;
        link->in_at = p->copy;
        link->in_end = p->copy + n;
    }
    return true;
}

bool rnl_rpc_pair_leave(struct rnl_rpc_link *link)
{
    struct rnl_rpc_pair *p = rnl_rpc_pair_of(link);
    while (link->in_open && !link->in_last)
        if (!rnl_rpc_pair_next(link))
            return false;
    leave_part(p);
    link->in_open = link->in_last = false;
    return true;
}
