/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guest.h - one copy of the program: its slot of memory, its lives, and what is swapped when it runs.
 *
 *   slot                      9 MiB            + image                      64 MiB to 1 GiB
 *   +-------+------------------+----------------+-----------------------------------+
 *   | guard | stack, down      | image: code    | struct rnl_arena, heap up ...     |
 *   | 64 KiB|                  | shared, data   |          ... mapped memory, down  |
 *   +-------+------------------+----------------+-----------------------------------+
 *
 * Slots lie at the same addresses in every run. The top of the stack, the image and the beginning of the heap share one
 * page of page tables in a program of ordinary size. A life that ends leaves zeros: memory, stack and globals at once.
 */
#ifndef RNL_CLUSTER_GUEST_H
#define RNL_CLUSTER_GUEST_H

#include "runnel/runnel.h"

#include "am/process.h"
#include "fm/process.h"
#include "sim/cluster/image.h"
#include "sim/engine/coro.h"

#define RNL_GUEST_BASE     ((uint64_t)0x550000000000) /* below every executable, and where sanitizers let programs be */
#define RNL_GUEST_SPACE    ((uint64_t)256 << 30)      /* for all slots */
#define RNL_GUEST_SLOT_MAX ((uint64_t)1 << 30)
enum {
    RNL_GUEST_GUARD = 64 << 10,
    RNL_GUEST_STACK_TOP = 9 << 20,
    RNL_GUEST_MAIN = 4 << 10, /* main is entered so far below the top, whatever compiled us */
    RNL_GUEST_FDS = 64,
    RNL_GUEST_LINE = 1024,
    RNL_GUEST_PID = 1000,
    RNL_GUEST_FD_ENDPOINT = -2 /* nobody's of ours: its endpoint's */
};

enum rnl_guest_state { RNL_GUEST_NEW = 0, RNL_GUEST_LIVES, RNL_GUEST_OVER };
enum rnl_guest_end { RNL_END_EXIT, RNL_END_SIGNAL }; /* detail: status, number */

struct rnl_guest {
    struct rnl_sim_coro coro; /* first */
    struct rnl_cluster *cluster;
    struct rnl_vhost *host;
    uint32_t rank, life; /* life: 1, 2 ... */
    unsigned char *slot, *image, *arena;
    struct rnl_sim_event restart;
    uint8_t state;        /* enum rnl_guest_state */
    uint8_t asked;        /* time is up: it says where it stands, and goes no further */
    uint8_t ending;       /* it has ended; what is left of it is taken away when it has been left */
    uint8_t injected;     /* ... since the scenario wanted it */
    uint8_t known_frames; /* to the unwinder */
    int end, detail;      /* enum rnl_guest_end */
    int fault;            /* the signal that is ending it */
    /* -- what a process has for itself, while another runs -- */
    int sys_errno;
    struct rnl_fm fm;
    struct rnl_am am;
    struct rnl_error error;
    /* -- time -- */
    uint64_t debt_ns;           /* of host time that it has used and not yet passed */
    uint64_t calls;             /* of stand-ins since it last waited */
    uint64_t clock_reads;       /* ... in a row, of its clock */
    uint64_t steps, crash_step; /* what the library has asked of its env; it crashes at the crash_step-th, */
    uint64_t crash_restart_ns;  /* and starts again after so long; UINT64_MAX = never */
    /* -- the world -- */
    struct rnl_venv *env;      /* while it is in the job */
    struct rnl_endpoint *ep;   /* ... and has an endpoint, of the native interface */
    uint64_t drawn, drawn_env; /* ordinals of its streams of chance */
    uint64_t rand_seed;
    int fds[RNL_GUEST_FDS]; /* ours behind its numbers; -1, RNL_GUEST_FD_ENDPOINT */
    struct rnl_guest_line {
        char text[RNL_GUEST_LINE];
        size_t n;
    } line[2];
};

/* The one that runs: for stand-ins, which are given nothing to know it by. NULL: the simulator itself runs. */
extern struct rnl_guest *rnl_guest_now;

/* Maps its slot. 0, RNL_ERR_SYSTEM. */
int rnl_guest_init(struct rnl_guest *, struct rnl_cluster *, uint32_t rank);
void rnl_guest_fini(struct rnl_guest *);
/* A new life begins at tick `at`. 0, RNL_ERR_NO_MEMORY. */
int rnl_guest_start(struct rnl_guest *, uint64_t at);
/* It ends: by itself (does not return then), or while it waits. */
void rnl_guest_end(struct rnl_guest *, enum rnl_guest_end end, int detail);

/* exit(status): what it wants done at its end is done, then it ends. Called by itself. */
void rnl_guest_exit(int status);

/* Gives the rest of what it has used of time its due: parks. */
void rnl_guest_pay(struct rnl_guest *);
/* ns more are used; passes them when there are enough to be worth a switch. */
void rnl_guest_charge(struct rnl_guest *, uint64_t ns);
/* Sleeps until `tick`, or until woken by rnl_guest_wake; what that gave. */
uint64_t rnl_guest_sleep(struct rnl_guest *, uint64_t tick);
int rnl_guest_wake(struct rnl_guest *, struct rnl_sim_coro_ticket, uint64_t tick, uint64_t value);
/* What its host's clock shows it. */
uint64_t rnl_guest_ns(const struct rnl_guest *);
/* Each stand-in says so: somebody who calls and calls without ever waiting is ended. */
void rnl_guest_called(struct rnl_guest *);
/* Bytes it writes; stream 1 or 2. */
void rnl_guest_write(struct rnl_guest *, int stream, const char *bytes, size_t n);
void rnl_guest_flush(struct rnl_guest *);
/* "spin+0x4" for an address in its image; else where it is. */
const char *rnl_guest_place(const struct rnl_guest *, const void *at, char *buf, size_t n);

#endif
