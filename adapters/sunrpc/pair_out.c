/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair_out.c - writing records. A record is a run of parts: the first three lie in their cells, later ones in the bulk
 * area, in pieces that grow, each handed over when it is full; so the peer reads while this side still writes. The peer
 * is rung at the end of a record and for each long piece, since a sleeper has no use for less. */
#include "pair_internal.h"

#include "host.h"

#include <string.h>

enum { PARTS_IN_LINES = 3, FIRST_BYTES = 4096, SECOND_BYTES = 16384, LATER_BYTES = 32768, PARTS_UNRUNG = 5 };

static bool broken(struct rnl_rpc_pair *p)
{
    p->link.broken = true;
    return true; /* nobody needs to wait any longer */
}

bool rnl_rpc_pair_has_room(struct rnl_rpc_pair *p)
{
    if (p->out_cell >= p->out_cell_stop) {
        /* pairs with the release in advertise() of the peer */
        uint64_t read = atomic_load_explicit(&p->out->cells_read, memory_order_acquire);
        if (p->out_cell - read > RNL_RPC_CELLS)
            return broken(p);
        p->out_cell_stop = read + RNL_RPC_CELLS;
    }
    if (p->out_bulk + p->part_bytes > p->out_bulk_stop) {
        /* pairs with the release in advertise() of the peer */
        uint64_t read = atomic_load_explicit(&p->out->bulk_read, memory_order_acquire);
        /* out_bulk has been rounded up, and read has not */
        if (p->out_bulk - read > RNL_RPC_BULK_BYTES + RNL_RPC_UNIT_BYTES)
            return broken(p);
        p->out_bulk_stop = read + RNL_RPC_BULK_BYTES;
    }
    return p->out_cell < p->out_cell_stop && p->out_bulk + p->part_bytes <= p->out_bulk_stop;
}

static void publish(struct rnl_rpc_pair *p, uint64_t flags)
{
    struct rnl_rpc_cell *cell = &p->out->cell[p->out_cell % RNL_RPC_CELLS];
    uint32_t n = (uint32_t)(p->link.out_at - p->part);
    p->link.out_bytes += n;
    if (p->part_bytes) {
        memcpy(cell->payload, &p->out_bulk, sizeof p->out_bulk);
        memcpy(cell->payload + sizeof p->out_bulk, &n, sizeof n);
        p->out_bulk += n;
        n = sizeof p->out_bulk + sizeof n;
        flags |= RNL_RPC_BULK;
    }
    uint64_t header =
        (uint32_t)(p->out_cell + 1) | (uint64_t)n << 32 | (uint64_t)(rnl_rpc_cpu() & 0xffff) << 40 | flags << 56;
    atomic_store_explicit(&cell->header, header,
                          memory_order_release); /* pairs with the acquire in rnl_rpc_pair_here */
    p->out_cell++;
    p->parts++;
    p->part = p->link.out_at = p->link.out_end = NULL;
    if (flags & RNL_RPC_LAST || p->parts > PARTS_UNRUNG)
        rnl_rpc_pair_ring(p, &p->out->record_armed, &p->rung_record);
}

static bool open_part(struct rnl_rpc_pair *p)
{
    struct rnl_rpc_link *link = &p->link;
    p->part_bytes = 0;
    if (p->parts >= PARTS_IN_LINES) {
        unsigned later = p->parts - PARTS_IN_LINES;
        uint32_t want = later == 0 ? FIRST_BYTES : later == 1 ? SECOND_BYTES : LATER_BYTES;
        p->out_bulk = (p->out_bulk + RNL_RPC_UNIT_BYTES - 1) & ~(uint64_t)(RNL_RPC_UNIT_BYTES - 1);
        uint32_t left = RNL_RPC_BULK_BYTES - (uint32_t)(p->out_bulk % RNL_RPC_BULK_BYTES);
        p->part_bytes = want < left ? want : left;
    }
    if (RNL_UNLIKELY(!rnl_rpc_pair_has_room(p))) {
        rnl_rpc_pair_ring(p, &p->out->record_armed, &p->rung_record); /* room comes only if the peer reads */
        uint64_t deadline = link->deadline_ns ? link->deadline_ns : rnl_rpc_now_ns() + rnl_rpc_rest_ns;
        if (!rnl_rpc_pair_wait(p, rnl_rpc_pair_has_room, deadline))
            link->broken = true; /* a record was begun that cannot be ended */
    }
    if (link->broken)
        return false;
    if (p->part_bytes) {
        p->part = p->out->bulk + p->out_bulk % RNL_RPC_BULK_BYTES;
        link->out_end = p->part + p->part_bytes;
    } else {
        p->part = p->out->cell[p->out_cell % RNL_RPC_CELLS].payload;
        link->out_end = p->part + RNL_RPC_PAYLOAD_BYTES;
    }
    link->out_at = p->part;
    link->out_room = (uint32_t)(link->out_end - link->out_at);
    return true;
}

bool rnl_rpc_pair_room(struct rnl_rpc_link *link)
{
    struct rnl_rpc_pair *p = rnl_rpc_pair_of(link);
    if (p->part)
        publish(p, 0);
    return open_part(p);
}

bool rnl_rpc_pair_end(struct rnl_rpc_link *link)
{
    struct rnl_rpc_pair *p = rnl_rpc_pair_of(link);
    if (!p->part && !open_part(p))
        return false;
    publish(p, RNL_RPC_LAST);
    p->parts = 0;
    link->out_bytes = 0;
    return !link->broken;
}

bool rnl_rpc_pair_drop(struct rnl_rpc_link *link)
{
    struct rnl_rpc_pair *p = rnl_rpc_pair_of(link);
    if (p->parts > 0)
        return false;
    p->part = link->out_at = link->out_end = NULL;
    return true;
}
