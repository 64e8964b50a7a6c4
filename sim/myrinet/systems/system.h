/* SPDX-License-Identifier: BSD-3-Clause
 *
 * system.h - a communication system on the papers' machine: its firmware, and what experiments do with its host
 * library. Each folder here has one; its host.h is the library's own interface, as its paper has it, for programs of
 * tasks.
 *
 * A side is one process. Experiments write a message into `out`, the last word of it counting up, and look for it where
 * `receive` says that it is. What a system needs beside (posting, exporting) its functions here do. */
#ifndef MYRI_SYSTEM_H
#define MYRI_SYSTEM_H

#include "sim/myrinet/os/space.h"

struct myri_side {
    const struct myri_system *system;
    struct myri_hw *hw;
    struct myri_host *host;
    struct myri_card *card;
    struct myri_task *task;
    uint32_t node, nodes, process, processes; /* process: of those on this node that use the card */
    uint32_t packet;                          /* bytes, where a system lets one choose; 0 = its own */
    uint32_t buffers;                         /* for what arrives, where a system lets one choose; 0 = its own */
    int notify;                               /* what arrives interrupts this host */
    int cold;                                 /* caches of translations are empty at first */
    uint32_t largest;                         /* message of this run */
    uint32_t out, got;                        /* host addresses; got: where the last message is */
    struct myri_space *space; /* NULL, or what these two are addresses of, instead of the host's memory */
    uint32_t reach;           /* bytes from the first `out` on that messages are sent from */
    uint32_t from;            /* who sent it */
    /* Called without time, in a handler that serves a call or a multicast: it lies at `got`, and a reply in `out`. */
    void (*handled)(struct myri_side *, uint32_t bytes);
    void *handled_arg;
    void *state; /* the system's, state_bytes, zero at first */
};

/* Jobs that take turns on all nodes (gang scheduling): each has a process, and so a side, on each node. */
struct myri_turns {
    uint32_t most; /* jobs */
    /* Without time, instead of the system's: side[job * nodes + node], whose tasks are set afterwards. NULL: with a
     * fault of the machine, or no memory. It is the caller's, to free. */
    void *(*open)(struct myri_hw *, struct myri_side *side, uint32_t jobs);
    /* Inside a side's task, first and last. */
    void (*join)(void *, uint32_t job, struct myri_side *);
    void (*leave)(void *, uint32_t job, struct myri_side *);
    /* How many turns there were; in all, of one node, saving and restoring, and from the ends of quanta until the next
     * job went on. */
    uint32_t (*taken)(const void *, double *exchange_us, double *turn_us);
};

/* The survey's six issues, and multicast, in a word or two each, as `runnel paper matrix` prints them. */
struct myri_issues {
    const char *transfer, *translation, *protection, *control, *reliability, *to_many;
};

struct myri_system {
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
    int overrun;    /* nothing stops senders of more than a receiver's ring holds, which ends a run */
    int any_order;  /* its packets may overtake each other; else the first that does ends a run */
    uint32_t packet_least, packet_most; /* bytes of a packet, whole words; 0: no choice */
    uint32_t processes_most;            /* that can have a node's card attached; 0: one */
    int translates;                     /* its card has a cache of translations: side.cold */
    int by_place;                       /* a host caches what it knows of pages: where a message lies matters */
    int looks_across;                   /* its host looks for messages across the bus, and polls no cached word */
    int ahead; /* a receive may take in all that comes before it returns: a stream's rate counts from its first send */
    int notifies;                     /* a message can interrupt its receiver's host: side.notify */
    uint32_t look;                    /* host operations of a look that finds nothing; 0: a cached word is polled */
    int virtual;                      /* programs have address spaces: side.space */
    int recovers;                     /* from lost packets and wrong CRCs: each message arrives once */
    const struct myri_turns *turns;   /* or NULL */
    const struct myri_issues *issues; /* NULL: not in the matrix, as variants that share the first one's are not */
    const char *on_crc; /* why it does not recover from a wrong CRC, and who says so; NULL where no packets go */
    /* Without time: what daemons, drivers and initialisation have done. Called for each side, then `joined`. */
    int (*open)(struct myri_side *);
    void (*joined)(struct myri_side *side, uint32_t n); /* all n of them; or NULL */
    /* Inside the side's task. The buffer `out` may be used again when `send` returns; `post` may leave it in use. */
    void (*send)(struct myri_side *, uint32_t to, uint32_t bytes);
    void (*post)(struct myri_side *, uint32_t to, uint32_t bytes); /* or NULL: send */
    /* Without time: the operating system wants the memory of that page of the space back, so that the system's kernel
     * takes it from the card first. 0, or -1: it stays, as it is in use or pinned. NULL: the space alone decides. */
    int (*page_out)(struct myri_side *, uint32_t at);
    /* Without time, after a run: how many messages were handed back to this side, and why the last one; or NULL. */
    uint32_t (*returned)(const struct myri_side *, const char **why);
    /* The next message, of `bytes` at most: its length, or 0 when none has come by the tick. */
    uint32_t (*receive)(struct myri_side *, uint32_t bytes, uint64_t until);
    void (*to_all)(struct myri_side *, uint32_t bytes); /* what lies in `out`, to all other nodes; or NULL */
    /* The next sequence number, had from the card of node 0, whoever asks: 0 first, then each one more; or NULL. */
    uint32_t (*fetch)(struct myri_side *);
    int numbers; /* to_all fetches one first, and all nodes take such messages in that order */
    /* A call, until its reply, of as many bytes, is at `got`: its length; or NULL. */
    uint32_t (*call)(struct myri_side *, uint32_t to, uint32_t bytes);
    /* Until handlers of this side have served so many, the multicasts being those of all sides: whether they have; or
     * NULL. */
    int (*serve)(struct myri_side *, uint32_t calls, uint32_t multicasts);
    /* Jacobi's method on a shared vector of so many bytes: a sum of the bits of what it comes to; or NULL. */
    uint32_t (*jacobi)(struct myri_side *, uint32_t bytes, uint32_t iterations);
    void (*finish)(struct myri_side *); /* before the task ends: what it owes others; or NULL */
    /* after all, also of a side that failed to open: what the state holds; or NULL */
    void (*close)(struct myri_side *);
};

extern const struct myri_system *const myri_systems[]; /* ends with NULL */
const struct myri_system *myri_system_find(const char *name);
/* The same with the second firmware, whose name has "-tuned" after the first, the second or the last of its words; or
 * NULL. */
const struct myri_system *myri_system_tuned(const char *name);

/* Before a side is opened: its space, if it has one, and `out` with so many bytes. 0, or -1 with a fault. */
int myri_side_begin(struct myri_side *, uint32_t bytes);
void myri_side_end(struct myri_side *);
/* Words where `out` and `got` are, without time. */
uint32_t myri_side_word(const struct myri_side *, uint32_t at);
void myri_side_set_word(const struct myri_side *, uint32_t at, uint32_t value);
/* The operating system takes that page of the side's space back: 0, or -1: it stays. */
int myri_side_page_out(struct myri_side *, uint32_t at);
/* What a program copies there, in the time of a copy. */
void myri_side_copy(const struct myri_side *, uint32_t to, uint32_t from, uint32_t bytes);

#endif
