/* SPDX-License-Identifier: BSD-3-Clause
 *
 * common.h - what the programs that measure other libraries share. Each is one process of a pair (process.h) whose
 * interface is that library, used as its own benchmarks use it. So what is timed, rewritten and verified is the same as
 * for Runnel. They are compiled by `runnel bench --peer` (peer.h) with what that library's packages bring: building
 * Runnel needs none of them. Nothing of Runnel but the measuring is linked in. */
#ifndef RNL_BENCH_PEERS_COMMON_H
#define RNL_BENCH_PEERS_COMMON_H

#include "process.h"

enum {
    PEER_PUSHES = 64, /* one look of a sender: a rendezvous may need it several times */
    PEER_DEPTH = 64,  /* messages in flight or receives posted: what the peers' own benchmarks use */
    PEER_BOARD = 4096
};

struct peer_args {
    struct bench_area *area;
    unsigned pair, rank;
    const char *way; /* one of several ways to use the library */
};

/* PROGRAM AREA PAIR WAY RANK. Exits with a sentence on standard error if that does not work. */
struct peer_args peer_start(int argc, char **argv);

/* Memory for rank's words to the other before both attach, PEER_BOARD bytes; pairs with peer_meet. */
unsigned char *peer_board(const struct bench_process *, unsigned rank);
void peer_meet(struct bench_process *);

/* As peer_meet, for libraries that move only when they are called: what one waits for may need a last push by the
 * other. progress returns 0, or negative to give up, which is then returned. */
int peer_settle(struct bench_process *, int (*progress)(struct bench_process *));

/* Both processes, in open: tries whether rank 1 may read rank 0's memory (process_vm_readv), as single-copy ways do. */
bool peer_may_read(struct bench_process *);
/* Rank 0, in open: says what is measured. */
void peer_about(struct bench_process *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Messages of s->bytes, for which the buffers have room side by side; at most PEER_DEPTH. */
static inline uint64_t peer_depth(const struct bench_process *s)
{
    uint64_t most = s->bytes ? s->pool_bytes / s->bytes : PEER_DEPTH;
    return most < 1 ? 1 : most < PEER_DEPTH ? most : PEER_DEPTH;
}

#endif
