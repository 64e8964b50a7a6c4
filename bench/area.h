/* SPDX-License-Identifier: BSD-3-Clause
 *
 * area.h - the memory through which `runnel bench` steers pairs of processes that measure.
 *
 * A coordinator owns the area (a memfd). Each interface, and the raw baselines, is a pair of processes of its own, both
 * pinned; all pairs sleep on their `turn` while one runs an order. So interfaces that cannot live in one process are
 * measured within milliseconds of each other, on the same two cores, and one that crashes takes nothing along. The
 * coordinator sleeps while a pair runs.
 *
 * Nothing here is the product's data path: it only starts, synchronises and collects. */
#ifndef RNL_BENCH_AREA_H
#define RNL_BENCH_AREA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hist.h"
#include "net.h"
#include "raw.h"

enum bench_test {
    BENCH_PROBE, /* one cache line to and fro; the baselines' pair only */
    BENCH_LATENCY,
    BENCH_RATE,
    BENCH_BANDWIDTH,       /* a window of messages */
    BENCH_BANDWIDTH_ALONE, /* one message at a time */
    BENCH_FRESH,           /* a window of messages that the sender writes and the receiver reads, every byte */
    BENCH_FRESH_ALONE,     /* one such message at a time */
    BENCH_WAITING,         /* latency, of two that sleep while they wait; over datagrams only */
    /* The scenarios' (scenario.h). */
    BENCH_PEERS,
    BENCH_IDLE_WAIT,
    BENCH_IDLE_POLL,
    BENCH_IDLE_EXTRACT,
    BENCH_WAKE_WAIT,
    BENCH_WAKE_POLL,
    BENCH_WAKE_UNARMED,
    BENCH_WAKE_ARMED,
    BENCH_BARRIER,
    BENCH_LAYERED,
    BENCH_LAYERED_STREAM,
    BENCH_STARTUP_RUN,
    BENCH_STARTUP_JOB,
    BENCH_MEMORY_PEER,
    BENCH_MEMORY_ALL,
    BENCH_LOSS_STREAM,
    BENCH_LOSS_TRIP,
    BENCH_AM_TRIP,
    BENCH_AM_RATE,
    BENCH_AM_BULK,
    BENCH_AM_WAITING,
    BENCH_AM_LOSS_TRIP,
    BENCH_AM_LOSS_RATE,
    BENCH_AM_LOSS_BULK,
    BENCH_AM_CALL,
    BENCH_PUT_LANDED,
    BENCH_PUT_USED,
    BENCH_PUT_NOTIFY,
    BENCH_PUT_ADD,
    BENCH_PUT_GET,
    BENCH_PUT_IMPORT,
    BENCH_RPC_NULL,
    BENCH_RPC_SEND,
    BENCH_RPC_ONCE,
    BENCH_PANDA_CALL,
    BENCH_PANDA_GROUP,
    BENCH_PANDA_STREAM,
    BENCH_ORCA_ROI,
    BENCH_ORCA_INC,
    BENCH_ORCA_GOI,
    BENCH_ORCA_PUT,
    BENCH_ORCA_ALL,
    BENCH_ORCA_READ,
    BENCH_QUIT
};

struct bench_order {
    uint32_t test;
    uint32_t variant; /* of a baseline */
    uint64_t bytes;
    uint64_t count;  /* round trips, messages, messages alone, windows, or what the test says */
    uint64_t end_ns; /* those of AM-2 stop then, and count as far as they went; 0 = never */
};

struct bench_answer {
    double value; /* latency: ns one way; rate: million messages/s; bandwidth: GB/s. Of the process that measures it. */
    double elapsed_ns;  /* of the whole order */
    double cpu_ns;      /* of this process, per message; latency and rate only */
    uint64_t preempted; /* involuntary context switches in it */
    uint32_t cut;       /* it went on to the order's end_ns */
    char text[200];     /* why this process failed */
};

/* A pair is two processes, unless it says otherwise. */
struct bench_pair {
    _Alignas(128) _Atomic uint32_t turn; /* coordinator: number of the order below; futex */
    struct bench_order order;
    _Alignas(128) _Atomic uint32_t done; /* +1 by each process after a turn, and once when attached; futex */
    _Atomic uint32_t failed;             /* processes: bit of a rank that gave up; its answer says why */
    _Alignas(128) _Atomic uint64_t meet; /* processes: barrier */
    _Alignas(128) _Atomic uint64_t ball; /* processes: the probe's line */
    _Alignas(128) _Atomic uint64_t ack;  /* rank 1: messages taken in */
    _Alignas(128) struct bench_answer answer[2];
    struct rnl_hist hist;                   /* latency: round trips, wake, barrier: single times; written by rank 0 */
    char role[16];                          /* what its processes are (role.h); "" = not started as a job */
    uint32_t ranks;                         /* that take orders; 0 = 2 */
    uint32_t by_kernel, lossy;              /* its datagrams stay out of net.via; they can be lost (job_sweep.c) */
    uint32_t resting;                       /* ranks beyond them, which stay connected and sleep until it is over */
    _Atomic uint32_t over;                  /* coordinator: 1 with BENCH_QUIT; futex */
    _Atomic uint32_t compiled;              /* of a peer: its program is there, so its time to start begins; futex */
    char about[160];                        /* of a peer: what rank 0 says of it before it attaches; may stay empty */
    _Alignas(128) unsigned char board[512]; /* zeroed; words that the processes of one test share */
};

enum { BENCH_WAITS = 10 };  /* variants of the baseline for latency */
enum { BENCH_LONG = 4096 }; /* above it the variants for latency, too, are those of the copies */
enum { BENCH_MAX_PAIRS = 32, BENCH_AREA_MAGIC = 0x524e4c42 };

struct bench_area {
    uint32_t magic, bytes; /* an area of another build does not match */
    int32_t cpu[2];
    uint32_t one_core; /* both processes on one processor: yield instead of spinning */
    double ns_per_tick;
    uint64_t most_bytes;          /* longest message of the plan */
    struct bench_net net, beside; /* beside: of the pairs by_kernel */
    struct bench_pair pair[BENCH_MAX_PAIRS];
    _Alignas(4096) struct raw_direction direction[2]; /* the baselines' rings: direction[i] is written by rank i */
};

/* Coordinator: a zeroed area and its descriptor, which others open as /proc/PID/fd/FD. 0, or -errno. */
int bench_area_create(struct bench_area **out, int *fd);
void bench_area_free(struct bench_area *, int fd);
/* Worker: maps the area behind path. 0, -errno, or -EPROTO: made by another build. */
int bench_area_attach(const char *path, struct bench_area **out);

/* Coordinator. Hands out an order and wakes both processes; then waits until they are done, at most timeout_ms. alive,
 * if not NULL, is asked now and then. 0, -EPROTO: a process failed (bench_pair_failure), -ETIMEDOUT, or what alive
 * returned if not 0. */
void bench_pair_order(struct bench_pair *, const struct bench_order *);
int bench_pair_wait(struct bench_pair *, unsigned timeout_ms, int (*alive)(void *), void *arg);
/* The sentence of a process that failed, or NULL. */
const char *bench_pair_failure(const struct bench_pair *);

/* Worker. Says that it has attached; sleeps until the next order after `turn`, which it returns. */
void bench_pair_attach(struct bench_pair *);
uint32_t bench_pair_next(struct bench_pair *, uint32_t turn, struct bench_order *out);
void bench_pair_done(struct bench_pair *);
/* A resting rank, attached: sleeps until the pair is told to quit. */
void bench_pair_rest(struct bench_pair *);
/* Gives up: the pair is of no use any more. */
void bench_pair_fail(struct bench_pair *, unsigned rank, const char *sentence);

/* Worker: all processes of a pair arrive before any leaves. *count is private to the process and starts at 0. */
void bench_meet(struct bench_pair *, uint64_t *count, bool one_core);
/* bench_meet in two steps, for a process with something to do meanwhile: it arrives, and asks whether all are here. */
void bench_meet_begin(struct bench_pair *, uint64_t *count);
bool bench_met(const struct bench_pair *, uint64_t count);

static inline uint32_t bench_pair_ranks(const struct bench_pair *p)
{
    return p->ranks ? p->ranks : 2;
}

/* Bare futexes, also for the baselines that are made of them. */
long bench_futex_wait(_Atomic uint32_t *word, uint32_t expected, unsigned ms);
void bench_futex_wake_all(_Atomic uint32_t *word);

#endif
