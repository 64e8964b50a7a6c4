/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gang.h - PM's gang scheduler: jobs take turns on all nodes at once, and the one that runs has each node's card for
 * itself (paper 002, section 7). A daemon on each node, and the first of them decides. At the end of a quantum (the
 * machine's) it has all of them stop the job's processes and wait until their cards have no message without an answer:
 * then the network holds nothing of the job's. Each daemon then reads what its card knows of the job, word by word, and
 * writes what it knew of the next one; when all have, that job's processes go on, and when all do, its quantum begins.
 *
 * A process is stopped wherever it is, also between two stores to the card: what it has stored there is saved, too. */
#ifndef MYRI_PM_GANG_H
#define MYRI_PM_GANG_H

#include "sim/myrinet/os/mail.h"
#include "sim/myrinet/systems/pm/host.h"

/* A job's part on one node is a process and its channel. */
enum { PM_JOBS = 4 };
/* Words of a channel: both rings, the messages that have their ACK, the numbers of those under way, and of the next one
 * to and from each node. */
enum { PM_CHANNEL = (sizeof(struct pm_descriptor) + 4) / 4 * PM_RING + 1 + PM_RING + 2 * PM_NODES };

struct pm_gang {
    struct myri_hw *hw;
    uint32_t nodes, jobs;
    uint64_t quantum_ps;
    struct pm_gang_node {
        struct pm_gang *gang;
        uint32_t id, runs; /* runs: whose channel the card has */
        struct myri_os os;
        struct myri_process daemon;
        struct myri_mailbox box;
        struct {
            struct pm *pm;
            struct myri_process process;
            uint32_t saved; /* host address of its channel while another's is on the card */
            int left;       /* it is about to end, and is not stopped any more */
        } job[PM_JOBS];
    } node[MYRI_HW_NODES];
    uint32_t ended[PM_JOBS]; /* processes of each job, as the first daemon knows */
    /* What it came to. */
    uint32_t turns;
    uint64_t exchanged_ps; /* saving and restoring, of all nodes together */
    uint64_t turned_ps;    /* from the ends of quanta until the next job's processes go on, on all nodes */
    uint64_t resumed_ps;   /* when the last of them went on */
};

/* Before any of them is opened: a machine of which all cards run PM's firmware for jobs that take turns. 0, or a
 * negative status: there are too many jobs. */
int pm_gang_init(struct pm_gang *, struct myri_hw *, uint32_t jobs);
/* Instead of pm_open, without time. Job 0 begins. 0, or -1 with a fault of the machine. */
int pm_gang_open(struct pm_gang *, uint32_t job, struct pm *, struct myri_side *);
/* When all are opened: the daemons, each a task of its node. */
void pm_gang_start(struct pm_gang *);
/* Inside the task of a job's process, first and last. A job has ended when its last process has left. */
void pm_gang_join(struct pm_gang *, uint32_t job, struct myri_side *);
void pm_gang_leave(struct pm_gang *, uint32_t job, struct myri_side *);

#endif
