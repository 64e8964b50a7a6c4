/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment.h - the memory that a client and a server share: a memfd of fixed size, sealed against changing it. Both map
 * all of it writable, so whatever one reads there is untrusted: pair_in.c and pair_out.c load each word once and check
 * the copy.
 *
 *        0 +-------------------------------+
 *          | calls:   the client writes    |   struct rnl_rpc_ring
 *  1056768 +-------------------------------+
 *          | replies: the server writes    |   struct rnl_rpc_ring
 *          +-------------------------------+
 *
 * One ring, with who writes each part:
 *
 *        0 +----------------------------------------------------------------+
 *          | 64 cells of 64 bytes                                    writer |
 *     4096 +-------------------+-------------------+------------------------+
 *          | cells read        | bulk bytes read   |                 reader |
 *     4224 +-------------------+-------------------+------------------------+
 *          | armed: a record   |                                     reader |
 *     4352 +-------------------+--------------------------------------------+
 *          | armed: room       |                                     writer |
 *     8192 +-------------------+--------------------------------------------+
 *          | bulk area, 1 MiB                                        writer |
 *          +----------------------------------------------------------------+
 *
 * A cell. Its number counts from 1 and names its place, so an old cell never matches and nobody clears one:
 *
 *          0               4   5       7   8                                64
 *          +---------------+---+-------+---+---------------------------------+
 *          | number        | n |  cpu  | f | n bytes of the record           |
 *          +---------------+---+-------+---+---------------------------------+
 *      f & RNL_RPC_BULK:                   | position      8 | bytes       4 |   of the part, in the bulk area
 *
 * cpu is 1 + the processor it was written on. Positions count from 0 without end; a part lies at position modulo the
 * size of the area, begins at a multiple of 64 and does not wrap. RNL_RPC_LAST ends a record. */
#ifndef RNL_RPC_SEGMENT_H
#define RNL_RPC_SEGMENT_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RNL_RPC_CELLS = 64,
    RNL_RPC_CELL_BYTES = 64,
    RNL_RPC_PAYLOAD_BYTES = 56,
    RNL_RPC_BULK_BYTES = 1 << 20,
    RNL_RPC_UNIT_BYTES = 64 /* parts in the bulk area begin on a multiple of it */
};
enum rnl_rpc_cell_flags { RNL_RPC_LAST = 1, RNL_RPC_BULK = 2 };
enum { RNL_RPC_CALLS = 0, RNL_RPC_REPLIES = 1 };

struct rnl_rpc_cell {
    _Atomic uint64_t header; /* number | n << 32 | cpu << 40 | flags << 56 */
    unsigned char payload[RNL_RPC_PAYLOAD_BYTES];
};
struct rnl_rpc_ring {
    struct rnl_rpc_cell cell[RNL_RPC_CELLS];
    alignas(128) _Atomic uint64_t cells_read;
    _Atomic uint64_t bulk_read;
    alignas(128) _Atomic uint32_t record_armed; /* 0, or a number that changes with each arming */
    alignas(128) _Atomic uint32_t room_armed;
    alignas(4096) unsigned char bulk[RNL_RPC_BULK_BYTES];
};
struct rnl_rpc_segment {
    struct rnl_rpc_ring ring[2];
};

static_assert(sizeof(struct rnl_rpc_cell) == RNL_RPC_CELL_BYTES, "one cache line");
static_assert(offsetof(struct rnl_rpc_cell, payload) == 8, "after the header");
static_assert(offsetof(struct rnl_rpc_ring, cells_read) == 4096, "as drawn");
static_assert(offsetof(struct rnl_rpc_ring, bulk_read) == 4104, "as drawn");
static_assert(offsetof(struct rnl_rpc_ring, record_armed) == 4224, "as drawn");
static_assert(offsetof(struct rnl_rpc_ring, room_armed) == 4352, "as drawn");
static_assert(offsetof(struct rnl_rpc_ring, bulk) == 8192, "as drawn");
static_assert(offsetof(struct rnl_rpc_segment, ring[1]) == 1056768, "as drawn");

/* Makes the memory, zeroed and sealed. Returns a descriptor that is close-on-exec, or -1 with errno set. */
int rnl_rpc_segment_new(void);
/* Maps what a peer has sent, if it has the right size and the seals that keep it so. Returns NULL otherwise. The
 * descriptor stays the caller's. */
struct rnl_rpc_segment *rnl_rpc_segment_map(int fd);
void rnl_rpc_segment_unmap(struct rnl_rpc_segment *);

#endif
