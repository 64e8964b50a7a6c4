/* SPDX-License-Identifier: BSD-3-Clause
 *
 * status.h - the job's status page on one host: a sealed memfd that only the agent can write and every rank maps
 * read-only. It tells ranks that events wait in their sockets, where the datagrams of each rank go, and shows tools the
 * state of the job.
 *
 *   0       4         8      12           16                   one record a rank, from 128 on
 *   +-------+---------+------+------------+--------------------+
 *   | magic | version | size | silence_ms | 0                  |
 *   +-------+---------+------+------------+--------------------+
 *   record of 192: | news 4 | state 4 | incarnation 8 | why 4 | detail 4 | pid 4 | 0 4 | liveness 8 |
 *                  | address 24 | further IP addresses 3 * 16 | host 4 | same kernel 4 | cards 4 * 6 | 0 48 |
 *
 * Ranks with equal host numbers share memory, others never do. Addresses are those by which this host reaches the
 * others. They never change: the agent, which opened the sockets (job/net.h), writes them before the first rank starts.
 * The address of a rank of the reader's own host is zeros. Further addresses have the same port and serve as alternate
 * paths; zeros = no more. Cards are the hardware addresses of those that the rank drives, by wire: whoever drives one
 * on the same wire sends to it before all other addresses; zeros = none. Same kernel: 1 = the rank runs under the
 * kernel of the reader, in another network namespace or container; 0 = it does not, or this is not known. */
#ifndef RNL_JOB_STATUS_H
#define RNL_JOB_STATUS_H

#include "job/membership.h"
#include "job/proto.h"
#include "net/socket/socket.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { RNL_STATUS_MAGIC = 0x534c4e52 /* "RNLS" */, RNL_STATUS_VERSION = 5, RNL_RANK_ALTERNATES = 3 };

struct rnl_rank_location {
    struct rnl_socket_addr at;
    uint8_t further[RNL_RANK_ALTERNATES][16];
    uint32_t host, same_kernel;
    uint8_t card[RNL_JOB_CARDS_MAX][6];
};
struct rnl_status_rank {
    _Atomic uint32_t news;  /* counts what was sent; its owner polls it, so its cache line changes for little else */
    _Atomic uint32_t state; /* enum rnl_rank_state */
    _Atomic uint64_t incarnation;
    _Atomic int32_t why, detail; /* valid once state is DEAD */
    _Atomic uint32_t pid;        /* the process that joined; 0 = none, or it is in another pid namespace */
    uint32_t zero;
    _Atomic uint64_t attested_ns; /* when this rank of another host was last attested to live and be reachable */
    struct rnl_rank_location place;
    unsigned char zeros[48];
};
struct rnl_status_page {
    uint32_t magic, version, size;
    uint32_t silence_ms; /* of the job, for ranks that ask for none of their own; 0 = the default */
    unsigned char zero[112];
    struct rnl_status_rank rank[];
};
static_assert(sizeof(struct rnl_status_rank) == 192, "status record");
static_assert(offsetof(struct rnl_status_rank, attested_ns) == 32, "status.liveness");
static_assert(offsetof(struct rnl_status_rank, place) == 40, "status.address");
static_assert(offsetof(struct rnl_rank_location, host) == 72, "status.host");
static_assert(offsetof(struct rnl_rank_location, card) == 80, "status.cards");
static_assert(offsetof(struct rnl_status_page, rank) == 128, "status.rank");

static inline size_t rnl_status_bytes(uint32_t size)
{
    const size_t page = 4096;
    return (sizeof(struct rnl_status_page) + size * sizeof(struct rnl_status_rank) + page - 1) / page * page;
}

#endif
