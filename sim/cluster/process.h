/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.h - a virtual process, a copy of the program: its slot of memory, its lives, and what is swapped when it
 * runs.
 *
 *   slot                      9 MiB            + image                      64 MiB to 1 GiB
 *   +-------+------------------+----------------+-----------------------------------+
 *   | guard | stack, down      | image: code    | struct vc_arena, heap up ...      |
 *   | 64 KiB|                  | shared, data   |          ... mapped memory, down  |
 *   +-------+------------------+----------------+-----------------------------------+
 *
 * Slots lie at the same addresses in every run. The top of the stack, the image and the beginning of the heap share one
 * page of page tables in a program of ordinary size. A life that ends leaves zeros: memory, stack and globals at once.
 */
#ifndef VC_PROCESS_H
#define VC_PROCESS_H

#include "runnel/runnel.h"

#include "base/error.h"
#include "sim/cluster/image.h"
#include "sim/engine/coro.h"

/* below every executable, and where sanitizers let programs be */
#define VC_PROCESS_BASE     ((uint64_t)0x550000000000)
#define VC_PROCESS_SPACE    ((uint64_t)256 << 30) /* for all slots */
#define VC_PROCESS_SLOT_MAX ((uint64_t)1 << 30)
enum {
    VC_PROCESS_GUARD = 64 << 10,
    VC_PROCESS_STACK_TOP = 9 << 20,
    VC_PROCESS_MAIN = 4 << 10, /* main is entered so far below the top, whatever compiled us */
    VC_PROCESS_FDS = 64,
    VC_PROCESS_LINE = 1024,
    VC_PROCESS_PID = 1000,
    VC_PROCESS_FD_ENDPOINT = -2 /* nobody's of ours: its endpoint's */
};

enum vc_process_state { VC_PROCESS_NEW = 0, VC_PROCESS_LIVES, VC_PROCESS_OVER };
enum vc_process_end { VC_END_EXIT, VC_END_SIGNAL }; /* detail: status, number */

struct vc_process {
    struct rnl_sim_coro coro; /* first */
    struct vc_cluster *cluster;
    struct vc_host *host;
    uint32_t rank, life; /* life: 1, 2 ... */
    unsigned char *slot, *image, *arena;
    struct rnl_sim_event restart;
    uint8_t state;        /* enum vc_process_state */
    uint8_t asked;        /* time is up: it says where it stands, and goes no further */
    uint8_t ending;       /* it has ended; what is left of it is taken away when it has been left */
    uint8_t injected;     /* it has ended because the scenario says so */
    uint8_t known_frames; /* to the unwinder */
    int end, detail;      /* enum vc_process_end */
    int fault;            /* the signal that is ending it */
    /* -- what a process has for itself, while another runs -- */
    int sys_errno;
    unsigned char *ifaces; /* state of the interfaces: ifaces.c */
    struct rnl_error error;
    /* -- time -- */
    uint64_t debt_ns;           /* of host time that it has used and not yet passed */
    uint64_t calls;             /* of shims since it last waited */
    uint64_t clock_reads;       /* reads of its clock in a row */
    uint64_t steps, crash_step; /* what the library has asked of its env; it crashes at the crash_step-th, */
    uint64_t crash_restart_ns;  /* and starts again after so long; UINT64_MAX = never */
    /* -- the world -- */
    struct vc_env *env;        /* while it is in the job */
    struct vc_alone *alone;    /* its endpoints alone */
    uint64_t drawn, drawn_env; /* ordinals of its streams of chance */
    uint64_t rand_seed;
    int fds[VC_PROCESS_FDS]; /* ours behind its numbers; -1, VC_PROCESS_FD_ENDPOINT */
    struct vc_process_line {
        char text[VC_PROCESS_LINE];
        size_t n;
    } line[2];
};

/* The one that runs: for shims, which are given nothing to know it by. NULL: the simulator itself runs. */
extern struct vc_process *vc_process_now;

/* Maps its slot. 0, RNL_ERR_SYSTEM. */
int vc_process_init(struct vc_process *, struct vc_cluster *, uint32_t rank);
void vc_process_fini(struct vc_process *);
/* All that it may have written reads as zeros again. What it had mapped from elsewhere in the arena goes, too. */
void vc_process_wipe(struct vc_process *);
/* The scenario's doing: like kill -9. restart_ns: after so much virtual time it starts again; UINT64_MAX = never. */
void vc_process_crash(struct vc_cluster *, struct vc_process *, uint64_t restart_ns);
/* Ends a process: by itself (the call does not return then), or while it waits. */
void vc_process_end(struct vc_process *, enum vc_process_end end, int detail);

/* exit(status): what it wants done at its end is done, then it ends. Called by itself. */
void vc_process_exit(int status);

/* Gives the rest of what it has used of time its due: parks. */
void vc_process_pay(struct vc_process *);
/* ns more are used; passes them when there are enough to be worth a switch. */
void vc_process_charge(struct vc_process *, uint64_t ns);
/* Sleeps until `tick`, or until woken by vc_process_wake; what that gave. */
uint64_t vc_process_sleep(struct vc_process *, uint64_t tick);
int vc_process_wake(struct vc_process *, struct rnl_sim_coro_ticket, uint64_t tick, uint64_t value);
/* As getpid says there. */
int32_t vc_process_pid(const struct vc_process *);
/* What its host's clock shows it. */
uint64_t vc_process_ns(const struct vc_process *);
/* Each shim says so: somebody who calls and calls without ever waiting is ended. */
void vc_process_called(struct vc_process *);
/* Bytes it writes; stream 1 or 2. */
void vc_process_write(struct vc_process *, int stream, const char *bytes, size_t n);
void vc_process_flush(struct vc_process *);
/* "spin+0x4" for an address in its image; else where it is. */
const char *vc_process_place(const struct vc_process *, const void *at, char *buf, size_t n);

#endif
