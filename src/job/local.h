/* SPDX-License-Identifier: BSD-3-Clause
 *
 * local.h - what the ranks of one host share in a job that has no agent: one memory file, made by the lowest of them,
 * opened by the others through /proc, and held by each of them until it leaves. It carries what an agent would:
 *
 *   doorbells     lie in the file; an event is announced to a rank by its news word, its wait descriptor (if any)
 *                 and its doorbell, in this order
 *   connections   a byte for each ordered pair holds what one rank reports to the other: that it has opened the segment
 *                 of the pair, or has disconnected from it
 *   segments      lie in the file, one for each pair; the file grows when one is opened, and can never shrink
 *   deaths        each rank holds a record lock on a byte of the file, which the kernel releases when its process ends
 *
 *   0      4         8       12     16        32            40
 *   +------+---------+-------+------+---------+-------------+-----------+
 *   | RNLN | version | ranks | 0    | nonce   | pair bytes  | 0         | 128
 *   +------+---------+-------+------+---------+-------------+-----------+
 *   records, 256 bytes a rank: | bell 128 | news 4 | state 4 | 0 120 |
 *   ranks * ranks bytes, [to * ranks + from] | up to a page's end | segments; of (low, high): high (high + 1) / 2 + low
 *
 * Every rank of the host can write the whole file, so unlike below an agent, a faulty rank can make others hold a third
 * one for dead. Wherever a wrong value could do more harm than that, it is checked like any value of a peer.
 *
 * The functions are for one thread, except rnl_local_notify. */
#ifndef RNL_JOB_LOCAL_H
#define RNL_JOB_LOCAL_H

#include "job/rank_env.h"

#include <assert.h>

enum { RNL_LOCAL_MAGIC = 0x4e4c4e52 /* "RNLN" */, RNL_LOCAL_VERSION = 2, RNL_LOCAL_NONCE = 16 };

enum rnl_local_state {
    RNL_LOCAL_ABSENT = 0,
    RNL_LOCAL_JOINED,
    RNL_LOCAL_LEFT /* left after its close had ended, which is no death */
};
struct rnl_local_rank {
    struct rnl_bell bell;
    _Atomic uint32_t news; /* counts announced events; alone in its cache line, since its owner polls it */
    _Atomic uint32_t state;
    unsigned char zero[120];
};
static_assert(sizeof(struct rnl_local_rank) == 256, "record of a local rank");
struct rnl_local_page {
    uint32_t magic, version, ranks, zero;
    unsigned char nonce[RNL_LOCAL_NONCE];
    _Atomic uint64_t pair_bytes; /* the size of each segment, set by the rank that opens the first one */
    unsigned char zeros[88];
    struct rnl_local_rank rank[];
};
static_assert(offsetof(struct rnl_local_page, rank) == 128, "head of the page");

struct rnl_local {
    struct rnl_rank_env base; /* first; its `file` is the memory file, a segment's number the index of the other rank */
    uint32_t count, index;    /* the number of ranks on this host; the index of this one among them */
    uint32_t *rank, *index_of; /* ranks by index; indices by rank, UINT32_MAX = on another host */
    struct rnl_local_page *page;
    _Atomic uint8_t *flags;
    bool *gone;         /* by index: it left or is dead */
    uint64_t looked_ns; /* when deaths were last looked for */
    uint32_t deaths;    /* the number of deaths found so far */
};

/* `rank` lists the `count` ranks of this host, ascending, this one among them. The caller has begun `base` and set
 * rank and size in its env. 0, RNL_ERR_NO_MEMORY. */
int rnl_local_init(struct rnl_local *, const uint32_t *rank, uint32_t count);
/* Makes the file; for the lowest rank of the host. 0, RNL_ERR_SYSTEM. */
int rnl_local_create(struct rnl_local *, const unsigned char nonce[RNL_LOCAL_NONCE]);
/* Opens that file, descriptor `fd` of process `pid`. RNL_ERR_JOB: this user may not open it, or it is another file. */
int rnl_local_open(struct rnl_local *, pid_t pid, int fd, const unsigned char nonce[RNL_LOCAL_NONCE]);
/* Takes the record lock by which the others find this rank's death. 0; RNL_ERR_JOB: another process is this rank. */
int rnl_local_join(struct rnl_local *);
/* Frees all. `left`: the close had ended; otherwise the others will find this rank dead. */
void rnl_local_close(struct rnl_local *, bool left);

/* Announces an event to the rank of that index. Any thread may call it. */
void rnl_local_notify(struct rnl_local *, uint32_t index);
/* Operations of an env (base/env.h). */
int rnl_local_event(struct rnl_env *, struct rnl_event *out);
int rnl_local_disconnect(struct rnl_env *, uint32_t rank, int why);
struct rnl_bell *rnl_local_bell_of(struct rnl_env *, uint32_t rank);
int rnl_local_segment_open(struct rnl_env *, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment);

#endif
