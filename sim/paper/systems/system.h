/* SPDX-License-Identifier: BSD-3-Clause
 *
 * system.h - a communication system on the papers' machine: its firmware, and what experiments do with its host
 * library. Each folder here has one; its host.h is the library's own interface, as its paper has it, for programs of
 * tasks.
 *
 * A side is one process. Experiments write a message into `out`, the last word of it counting up, and look for it where
 * `receive` says that it is. What a system needs beside (posting, exporting) its functions here do. */
#ifndef RNL_PAPER_SYSTEM_H
#define RNL_PAPER_SYSTEM_H

#include "sim/paper/hw/hw.h"

struct rnl_side {
    const struct rnl_system *system;
    struct rnl_hw *hw;
    struct rnl_host *host;
    struct rnl_card *card;
    struct rnl_task *task;
    uint32_t node, nodes, process, processes; /* process: of those on this node that use the card */
    uint32_t packet;                          /* bytes, where a system lets one choose; 0 = its own */
    uint32_t buffers;                         /* for what arrives, where a system lets one choose; 0 = its own */
    int notify;                               /* what arrives interrupts this host */
    int cold;                                 /* caches of translations are empty at first */
    uint32_t largest;                         /* message of this run */
    uint32_t out, got;                        /* host addresses; got: where the last message is */
    uint32_t reach;                           /* bytes from the first `out` on that messages are sent from */
    uint32_t from;                            /* who sent it */
    void *state;                              /* the system's, state_bytes, zero at first */
};

struct rnl_system {
    const char *name, *title, *source; /* source: paper and place */
    const char *object;                /* name in data.h, without .hex */
    const char *machines;              /* where its paper measured it: names with blanks between */
    size_t state_bytes;
    uint32_t most;                        /* bytes of a message */
    uint32_t buffers_least, buffers_most; /* for what arrives; least: for each node that there is; 0: no choice */
    int overwrites;                       /* a message lies where the one before it of that sender did */
    uint32_t several_most; /* bytes of a message of several senders, as who receives longer ones names one; 0: any */
    uint32_t piece; /* bytes of a message that come as one: what is longer is put together for one sender; 0: for any */
    int by_page;    /* no piece has parts of two pages */
    int lossy;      /* its own protocol may drop messages */
    uint32_t packet_least, packet_most; /* bytes of a packet, whole words; 0: no choice */
    uint32_t processes_most;            /* that can have a node's card attached; 0: one */
    int translates;                     /* its card has a cache of translations: side.cold */
    int notifies;                       /* a message can interrupt its receiver's host: side.notify */
    uint32_t look;                      /* host operations of a look that finds nothing; 0: a cached word is polled */
    const char *on_crc; /* why it does not recover from a wrong CRC, and who says so; NULL where no packets go */
    /* Without time: what daemons, drivers and initialisation have done. Called for each side, then `joined`. */
    int (*open)(struct rnl_side *);
    void (*joined)(struct rnl_side *side, uint32_t n); /* all n of them; or NULL */
    /* Inside the side's task. The buffer `out` may be used again when `send` returns; `post` may leave it in use. */
    void (*send)(struct rnl_side *, uint32_t to, uint32_t bytes);
    void (*post)(struct rnl_side *, uint32_t to, uint32_t bytes); /* or NULL: send */
    /* The next message, of `bytes` at most: its length, or 0 when none has come by the tick. */
    uint32_t (*receive)(struct rnl_side *, uint32_t bytes, uint64_t until);
    void (*finish)(struct rnl_side *); /* before the task ends: what it owes others; or NULL */
    void (*close)(struct rnl_side *); /* after all, also of a side that failed to open: what the state holds; or NULL */
};

extern const struct rnl_system *const rnl_systems[]; /* ends with NULL */
const struct rnl_system *rnl_system_find(const char *name);

#endif
