/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.h - processes of a host on n processors, on the tasks of hw/: a task that joins runs only while it has one of
 * the processors, for a quantum at a time if others are ready. A switch costs what the machine says. Who sleeps gives
 * its processor away; who polls keeps it. Time adds up: what processes ran, and switches took, is what processors had,
 * but for when nobody was ready. */
#ifndef MYRI_PROCESS_H
#define MYRI_PROCESS_H

#include "sim/myrinet/hw/hw.h"

enum { MYRI_OS_PROCESSES = MYRI_HW_TASKS };

struct myri_os {
    struct myri_host *host;
    uint32_t processors, busy;
    uint64_t quantum_ps, switch_ps, signal_ps;
    uint64_t ran_ps, switched_ps; /* by processes, by switches, ever */
    uint32_t switches, ready_n;
    struct myri_process *ready[MYRI_OS_PROCESSES];
};

struct myri_process {
    struct myri_os *os;
    struct myri_task *task;
    int first;                  /* a daemon: when it is woken, it has the processor before others, and of one of them */
    int has;                    /* a processor */
    int yields;                 /* its processor is another's as soon as it can be */
    int stopped, off;           /* off: it would be ready if it were not stopped */
    int sleeps, woken;          /* woken: before it slept */
    struct rnl_sim_event alarm; /* of a sleep that ends by itself */
    uint64_t left_ps, since_ps; /* of its quantum; since when it has been charged for what it runs */
    uint64_t ran_ps;
    uint32_t signals;             /* that have come and were not handled */
    uint32_t blocked;             /* how often: signals wait */
    int handles;                  /* one now; the next waits until it is over */
    void (*on_signal)(void *arg); /* runs in the process, with its processor, also in the middle of what it computes */
    void *signal_arg;
};

void myri_os_init(struct myri_os *, struct myri_host *, uint32_t processors);
/* Inside the task, first: from now on it is a process of that host. */
void myri_process_join(struct myri_process *, struct myri_os *, struct myri_task *);
/* Inside it, last: others have its processor. */
void myri_process_leave(struct myri_process *);
/* Inside it: gives its processor away until it is woken; a wake that has come before is one. */
void myri_process_sleep(struct myri_process *);
/* Sleeps as above, until that tick at most. */
void myri_process_sleep_until(struct myri_process *, uint64_t until);
/* Inside it, in the time of a system call: signals wait until it has been unblocked as often. */
void myri_process_block(struct myri_process *);
void myri_process_unblock(struct myri_process *);
/* From anywhere. */
void myri_process_wake(struct myri_process *);
void myri_process_signal(struct myri_process *); /* wakes it, too */
/* A process that is stopped has no processor until it is resumed. If it runs just now, it gives its processor away with
 * what it is at: `has` says so. What it sleeps for may come meanwhile. */
void myri_process_stop(struct myri_process *);
void myri_process_resume(struct myri_process *);

/* -- for hw/host.c -- */

/* Time that is run on its processor, from now on; waits for one, and gives it away when its quantum is over. */
void myri_process_spend(struct myri_process *, uint64_t ps);
/* Accounts for what the process has run since the last call, by waiting for the bus or by polling; may wait for a
 * processor. */
void myri_process_account(struct myri_process *);
/* Until when it may poll before others run, if there are any. */
uint64_t myri_process_quantum_end(const struct myri_process *);

#endif
