/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.h - one process of a measuring pair: takes orders from the area (area.h), runs them over one interface
 * (struct bench_api) and answers. What is timed, warmed up, filled and verified is the same for every interface and for
 * the baselines; an interface gives only its loops. */
#ifndef RNL_BENCH_PROCESS_H
#define RNL_BENCH_PROCESS_H

#include "area.h"

struct rnl_endpoint; /* programs of peers are compiled without runnel.h */

struct bench_process {
    struct bench_area *area;
    struct bench_pair *pair;
    unsigned rank; /* 0 starts round trips and sends; 1 answers and receives */
    bool one_core; /* somebody else needs this processor too: yield */
    uint64_t meet_count;
    /* Handlers count here. */
    uint64_t got, sum; /* messages, and the sum of their first 8 bytes */
    uint64_t due;      /* how many of them the round trips so far took; more may have come already, while both met */
    /* Bulk messages go to slot got % slots of `to`; round trips use slot 0 of one. */
    unsigned char *to;
    uint64_t slots, bytes;
    bool asleep;                 /* round trips: wait in the kernel */
    unsigned char *pool, *spare; /* pool_bytes each: composed from, received into */
    size_t pool_bytes;
    void *own; /* of the interface */
    int status;
    char text[200];
};

/* An interface, or the role of a process in another test (below): then run stands for ping, stream, put and poll. One
 * with neither comes and goes: it is opened and closed, and nobody waits for it. All but open and close return 0, or
 * negative after bench_process_fail. Neither process runs another's loops meanwhile. */
struct bench_api {
    const char *name;
    bool moves_when_called; /* what it has sent over datagrams may need its calls until it is there; poll does */
    size_t most_bytes;      /* longest message; 0 = no limit */
    /* Joins; sets process->rank. May take its time: nothing is measured yet. */
    int (*open)(struct bench_process *);
    void (*close)(struct bench_process *);
    /* Before every order. variant: which of the baseline's ways. May be NULL. */
    int (*prepare)(struct bench_process *, const struct bench_order *);
    /* n round trips of process->bytes: rank 0 sends, rank 1 answers from its program once its handler has received the
     * bytes. Counts from `due`, to which it adds n. If h is not NULL each round trip goes into it (bench_lap). */
    int (*ping)(struct bench_process *, uint64_t n, struct rnl_hist *h);
    /* Rank 0 sends n messages of process->bytes whose first 8 bytes count from 0; rank 1 returns once process->got has
     * reached n. */
    int (*stream)(struct bench_process *, uint64_t n);
    /* One message to slot got % slots of the other process; one look at what has arrived. */
    int (*put)(struct bench_process *, const void *from, size_t n);
    int (*poll)(struct bench_process *);
    /* Before each window of `slots` messages, not timed: rank 1 may post its receives, rank 0 finish earlier sends. May
     * be NULL. */
    int (*expect)(struct bench_process *);
    /* What no other test does; fills in the answer. May be NULL. */
    int (*run)(struct bench_process *, const struct bench_order *, struct bench_answer *);
};

extern const struct bench_api bench_api_raw, bench_api_native, bench_api_fm, bench_api_fm1;
/* Bare sockets: the baseline over datagrams, and TCP beside it. */
extern const struct bench_api bench_api_udp, bench_api_tcp;

/* Records the sentence that ends this process; returns -1. */
int bench_process_fail(struct bench_process *, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Attaches as a process of pair number `index`, serves orders until BENCH_QUIT. rank: for an interface that does not
 * decide it itself (the baselines). The process's exit status: 0, or 1 after a failure, whose sentence is in the pair's
 * answer. */
int bench_process_run(struct bench_area *, unsigned index, const struct bench_api *, unsigned rank);

/* 0, or fails for a job of another size than the pair's. */
int bench_process_check_size(struct bench_process *, unsigned long ranks);
/* Processor time of this thread, ns. */
uint64_t bench_cpu_ns(void);

/* Every 8-byte word of a message differs from its neighbours and from the same word of other messages. */
void bench_fill(void *at, size_t n, uint64_t seed);
bool bench_filled(const void *at, size_t n, uint64_t seed);

static inline unsigned char *bench_slot(const struct bench_process *s)
{
    return s->to + (s->slots > 1 ? s->got % s->slots * s->bytes : 0);
}

static inline void bench_count(struct bench_process *s, const void *message, size_t n)
{
    uint64_t first = 0;
    if (n >= 8)
        memcpy(&first, message, 8);
    s->sum += first;
    s->got++;
}

/* A round trip that began at bench_ticks() == t0 is over. */
static inline void bench_lap(const struct bench_process *s, struct rnl_hist *h, uint64_t t0)
{
    rnl_hist_record(h, (uint64_t)((double)(bench_ticks() - t0) * s->area->ns_per_tick));
}

/* Between two polls of a loop that is not the interface's own. */
static inline void bench_relax(const struct bench_process *s)
{
    if (s->one_core)
        sched_yield();
    else
        bench_pause();
}

/* ---- connect.c: connects the ranks of a job by a message to handler 9, which is nobody else's ---- */

/* Every rank calls it, and returns when it is connected to all that it is to talk to: ranks below `hubs` to everybody,
 * the others to those. 0, or -1 after bench_process_fail. */
int bench_connect_native(struct bench_process *, struct rnl_endpoint *, unsigned hubs);
/* After FM_initialize; FM's error handler has to set process->status. */
int bench_connect_fm(struct bench_process *, unsigned hubs);

/* ---- job_sweep.c: from now on so many of a thousand packets that come to a process of a lossy pair are lost ---- */

enum { BENCH_AM_LOSS_SHIFT = 16 }; /* in the variant of an order to AM-2 for such a pair; below it is the depth */
/* 0, or -1 after bench_process_fail. */
int bench_lose(struct bench_process *, struct rnl_endpoint *, unsigned per_mille);

/* ---- role.c: what a process of a job can be, by the name that the coordinator wrote into its pair ---- */

extern const struct bench_api bench_role_idle_native, bench_role_idle_fm, bench_role_wake, bench_role_wake_fd,
    bench_role_barrier, bench_role_layer_fm, bench_role_layer_fm1, bench_role_startup, bench_role_memory, bench_role_am,
    bench_role_am_par, bench_role_put, bench_role_panda;

/* The role or interface of that name, or NULL. */
const struct bench_api *bench_role(const char *name);

#endif
