/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon.h - VMMC with its daemons as processes (paper 002, sections 2, 4.1 and 4.4): one on each node, which shares
 * the node's processor with the programs. A program asks its daemon to export or import a buffer; daemons match the two
 * over Ethernet, pin pages and write the tables of their cards, all in its time. An import waits until the buffer is
 * exported, or is refused with a reason.
 *
 * Notifications: behind a message that asks for one goes a note, into a page that the receiver has for that sender. A
 * note interrupts; the driver takes all that are there into a queue that grows, and signals the process, in which the
 * handler runs once for each. Notes of one sender are handled in order; while they are blocked (myri_process_block of
 * `process`), or a handler runs, they wait. A note that a newer one has overwritten is a fault of the machine. */
#ifndef MYRI_VMMC_DAEMON_H
#define MYRI_VMMC_DAEMON_H

#include "sim/myrinet/os/mail.h"
#include "sim/myrinet/systems/vmmc/host.h"

enum vmmc_answer {
    VMMC_GRANTED,
    VMMC_NO_NODE,      /* there is no such node, or no such process on it can be */
    VMMC_NO_PAGES,     /* whole pages of the host's memory are exported */
    VMMC_TAKEN,        /* the process exports a buffer of that number already */
    VMMC_TOO_MANY,     /* the daemon keeps no more of a process, or importers of a buffer */
    VMMC_FORBIDDEN,    /* exported, but not to this process */
    VMMC_NO_ROOM,      /* the outgoing table of the process is full */
    VMMC_NOT_EXPORTED, /* until the tick, or by this process */
    VMMC_ANSWERS
};
const char *vmmc_answer_text(enum vmmc_answer);

struct vmmc_note {
    uint32_t id, offset, bytes, number; /* number: last, from 1 */
};
struct vmmc_user;
/* Runs in the process, may send, and asks the daemon for nothing. `offset` and `bytes` are of the message in buffer
 * `id`. */
typedef void vmmc_handler(struct vmmc_user *, uint32_t id, uint32_t offset, uint32_t bytes, struct vmmc_importer from);

/* A process that uses VMMC. */
struct vmmc_user {
    struct vmmc vmmc;
    struct vmmc_node *node;
    struct myri_process process;
    struct myri_mailbox box; /* the daemon's answers */
    void *arg;               /* the program's own */
    struct {
        uint32_t id, at, bytes; /* bytes 0: free */
        vmmc_handler *handler;
    } exported[VMMC_EXPORTS];
    struct {
        uint32_t node, process, id, proxy, bytes;
    } imported[VMMC_EXPORTS];
    uint32_t imports;
    vmmc_handler *asked; /* of the buffer that its daemon exports just now */
    /* Notifications. */
    uint32_t inbox;                                                                     /* a page for each sender */
    uint32_t seen[MYRI_HW_NODES][VMMC_PROCESSES], noted[MYRI_HW_NODES][VMMC_PROCESSES]; /* from, and to */
    uint32_t note_proxy[MYRI_HW_NODES][VMMC_PROCESSES], scratch; /* scratch: a note that is being sent */
    struct vmmc_queued {
        struct vmmc_note note;
        struct vmmc_importer from;
    } * queue;
    uint32_t first, queued, room;
    uint64_t handled, dropped; /* dropped: of buffers that are exported no more */
};

struct vmmc_node {
    struct vmmc_daemons *all;
    uint32_t id;
    struct myri_os os;
    struct myri_process daemon;
    struct myri_mailbox box;
    struct vmmc_user *user[VMMC_PROCESSES];
    struct myri_letter waits[VMMC_EXPORTS]; /* imports whose buffer is not exported yet; kind 0: none */
};
struct vmmc_daemons {
    struct myri_hw *hw;
    struct vmmc_node node[MYRI_HW_NODES];
};

/* Without time: what runs when the machine has been booted. Each host has so many processors. */
void vmmc_daemons_init(struct vmmc_daemons *, struct myri_hw *, uint32_t processors);
/* Process number `process` of that node. 0, or -1 with a fault of the machine. */
int vmmc_user_open(struct vmmc_user *, struct vmmc_daemons *, uint32_t node, uint32_t process);
void vmmc_user_close(struct vmmc_user *);
/* Inside the user's task, first and last. */
void vmmc_user_join(struct vmmc_user *, struct myri_task *);
void vmmc_user_leave(struct vmmc_user *);

/* Inside the task, by the daemon. `handler` may be NULL: notifications of this buffer are dropped. */
enum vmmc_answer vmmc_user_export(struct vmmc_user *, uint32_t id, uint32_t at, uint32_t bytes, vmmc_handler *,
                                  const struct vmmc_importer *only, uint32_t n);
enum vmmc_answer vmmc_user_unexport(struct vmmc_user *, uint32_t id);
/* Waits until that process exports the buffer, or until the tick. */
enum vmmc_answer vmmc_user_import(struct vmmc_user *, uint32_t node, uint32_t process, uint32_t id, uint64_t until,
                                  uint32_t *proxy, uint32_t *bytes);
/* vmmc_send, while which no handler of the process runs: handlers may send by it, too. */
void vmmc_user_send(struct vmmc_user *, uint32_t from, uint32_t proxy, uint32_t bytes);
/* Sends as vmmc_user_send does; the receiver's handler runs when the data are there. -1: nothing is imported there. */
int vmmc_user_notify(struct vmmc_user *, uint32_t from, uint32_t proxy, uint32_t bytes);

#endif
