/* SPDX-License-Identifier: BSD-3-Clause
 *
 * places.h - which rank of a job is on which host, and where its datagrams go: a sealed memfd that every rank of a host
 * maps. Written once, before the first rank starts, by who opened the sockets (job/net.h): so the answer never changes,
 * and nobody waits for it. Addresses are those by which *this* host reaches the others.
 *
 *   0       4         8      12          64                    one record a rank, from 64 on
 *   +-------+---------+------+-----------+---------------------+
 *   | magic | version | size | 0         | 0                   |
 *   +-------+---------+------+-----------+---------------------+
 *   record of 96: | host 4 | same kernel 4 | incarnation 8 | address 24 | further IP addresses 3 * 16 | 0 8 |
 *
 * Ranks with one host number share memory, others never do. The address of a rank of the reader's own host is zeros.
 * Further addresses, with the same port, are used when the first is dead; zeros = no more. Same kernel: 1 = the rank
 * runs under the kernel of the reader, in another network namespace or container; 0 = not, or it is not known. */
#ifndef RNL_JOB_PLACES_H
#define RNL_JOB_PLACES_H

#include "transport/socket.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum { RNL_PLACES_MAGIC = 0x504c4e52 /* "RNLP" */, RNL_PLACES_VERSION = 3, RNL_PLACE_FURTHER = 3 };

struct rnl_place_rank {
    uint32_t host, same_kernel;
    uint64_t incarnation;
    struct rnl_socket_addr at;
    uint8_t further[RNL_PLACE_FURTHER][16];
    unsigned char zeros[8];
};
struct rnl_places {
    uint32_t magic, version, size;
    unsigned char zeros[52];
    struct rnl_place_rank rank[];
};
static_assert(sizeof(struct rnl_place_rank) == 96, "record of a place");
static_assert(offsetof(struct rnl_place_rank, same_kernel) == 4, "place.kernel");
static_assert(offsetof(struct rnl_place_rank, at) == 16, "place.address");
static_assert(offsetof(struct rnl_place_rank, further) == 40, "place.further");
static_assert(offsetof(struct rnl_places, rank) == 64, "places.rank");

static inline size_t rnl_places_bytes(uint32_t size)
{
    return sizeof(struct rnl_places) + size * sizeof(struct rnl_place_rank);
}

/* A sealed file of these records. 0 or -errno. */
int rnl_places_new(uint32_t size, const struct rnl_place_rank *ranks, int *fd);
/* Maps it, for a job of `size`. 0; -EINVAL: not sealed, or not such a page; another -errno. The descriptor stays the
 * caller's. */
int rnl_places_map(int fd, uint32_t size, const struct rnl_places **out);
void rnl_places_unmap(const struct rnl_places *, uint32_t size);

#endif
