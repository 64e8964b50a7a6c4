/* SPDX-License-Identifier: BSD-3-Clause
 *
 * status.h - the job's status on one host: a sealed memfd that its agent alone can write and every rank maps read-only.
 * It says which ranks have news waiting in their sockets, and shows tools how the job stands.
 *
 *   0       4         8      12          64                    one record a rank, from 128 on
 *   +-------+---------+------+-----------+---------------------+
 *   | magic | version | size | 0         | 0                   |
 *   +-------+---------+------+-----------+---------------------+
 *   record of 128: | news 4 | state 4 | incarnation 8 | why 4 | detail 4 | pid 4 | 0 4 | vouched 8 | 0 24 | host 64 |
 */
#ifndef RNL_JOB_STATUS_H
#define RNL_JOB_STATUS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { RNL_STATUS_MAGIC = 0x534c4e52 /* "RNLS" */, RNL_STATUS_VERSION = 2 };

enum rnl_rank_state {
    RNL_RANK_STARTING = 0, /* its process lives and has not joined */
    RNL_RANK_JOINED,
    RNL_RANK_LEFT, /* after a close */
    RNL_RANK_DEAD
};

struct rnl_status_rank {
    _Atomic uint32_t news; /* a line that its owner polls and that is written only with news */
    _Atomic uint32_t state;
    _Atomic uint64_t incarnation;
    _Atomic int32_t why, detail; /* valid once state is DEAD */
    _Atomic uint32_t pid;        /* that joined; 0 = none, or in another namespace */
    uint32_t zero;
    _Atomic uint64_t vouched_ns; /* it lives, runs, and could be reached then; of others than ours */
    unsigned char zeros[24];
    char host[64];
};
struct rnl_status_page {
    uint32_t magic, version, size;
    unsigned char zero[116];
    struct rnl_status_rank rank[];
};
static_assert(sizeof(struct rnl_status_rank) == 128, "status record");
static_assert(offsetof(struct rnl_status_rank, vouched_ns) == 32, "status.vouched");
static_assert(offsetof(struct rnl_status_rank, host) == 64, "status.host");
static_assert(offsetof(struct rnl_status_page, rank) == 128, "status.rank");

static inline size_t rnl_status_bytes(uint32_t size)
{
    const size_t page = 4096;
    return (sizeof(struct rnl_status_page) + size * sizeof(struct rnl_status_rank) + page - 1) / page * page;
}

#endif
