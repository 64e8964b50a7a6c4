/* SPDX-License-Identifier: BSD-3-Clause
 *
 * panda.h - the part of Panda that Orca stands on (paper 003, sections 3.1, 4 and 5.1.2): threads, remote procedure
 * calls, messages, and multicasts that all members get in one order, on FM/MC, on FM 1.1, or on the kernel's FLIP over
 * Ethernet. Names are Panda's, without pan_.
 *
 * A node has one thread of the program, and threads of Panda's own for what comes. What its scheduler would do is done
 * where the program waits: `wait` takes messages in, and a switch of threads is paid where one would be.
 *
 * A handler is called for each message, one after another, also where it was taken in by a send of another handler's.
 * Handlers may send, and must not wait. A handler owns the message until it frees it, then or later. */
#ifndef MYRI_PANDA_H
#define MYRI_PANDA_H

#include "sim/myrinet/systems/system.h"

/* Behind the data, where whoever sends leaves room for it: what a message is, ticket or number, multicasts that the
 * sender has handled, bytes. And behind each fragment of it, where Panda makes fragments. */
enum { PANDA_TRAILER = 16, PANDA_ROOM = 2 * PANDA_TRAILER, PANDA_FRAGMENT = 8192 };
enum { PANDA_MESSAGES = 256, PANDA_TICKETS = 8, PANDA_POOL_BYTES = 3 << 20 };

/* The optimizations of paper 003's section 4 that a system lacks. */
struct panda_lacks {
    unsigned threads : 1;   /* 4.1: kernel threads, one of which polls */
    unsigned multicast : 1; /* 4.2: hosts forward multicasts, and one of them has the numbers */
    unsigned buffers : 1;   /* 4.3: what comes is copied, as FM's buffer is FM's again when its handler returns */
    unsigned whole : 1;     /* 4.3: Panda cuts messages into fragments of its own */
    unsigned flat : 1;      /* 4.3: functions use register windows */
};

#define PANDA_INITIAL ((struct panda_lacks){1, 1, 1, 1, 1})

struct panda;
struct panda_message {
    uint32_t at, bytes, from; /* bytes without the trailer */
    uint32_t kind, source, number, handled;
    void *below; /* FM's, which this one stands for; NULL: it lies in Panda's pool */
    struct panda_message *link;
};
typedef void panda_handler(struct panda *, struct panda_message *);

/* What lies below. */
struct panda_fm {
    void (*send)(struct panda *, uint32_t to, uint32_t at, uint32_t bytes);
    void (*extract)(struct panda *);
    uint32_t (*flag)(const struct panda *); /* the word that is not 0 when something has come */
    void (*free)(struct panda *, void *);
    void (*interrupts)(struct panda *, int on);                     /* NULL: there are none */
    void (*multicast)(struct panda *, uint32_t at, uint32_t bytes); /* numbered, in order everywhere; or NULL */
    void (*broadcast)(struct panda *, uint32_t at, uint32_t bytes); /* to all others, with no number; or NULL */
    uint32_t frames;                                                /* calls below one another, in a send */
    int kernel; /* it is the kernel's: it needs no lock, and who waits for it sleeps */
};

struct panda {
    struct myri_side *side;
    void *owner;
    const struct panda_fm *fm;
    void *below;
    struct panda_lacks lacks;
    panda_handler *on_request, *on_message, *on_multicast; /* of the program */
    struct panda_message message[PANDA_MESSAGES], *unused, *arrived, **last;
    uint32_t slot, slots, free_slots, slot_at[PANDA_MESSAGES]; /* bytes; where messages are that Panda copies */
    uint32_t frames; /* that a program has above Panda's beside one, or beside its handler's */
    int within;      /* calls of FM, in which nothing is handled */
    int handling;
    int busy;         /* the program's thread runs: what comes interrupts */
    uint32_t handled; /* multicasts, ever */
    struct {
        int used, done;
        struct panda_message *reply;
    } ticket[PANDA_TICKETS];
    uint32_t number, given;      /* of the multicast that is handled next; by the sequencer */
    int came_back;               /* the own multicast, where the sequencer broadcasts it */
    struct panda_message *early; /* multicasts whose turn has not come */
    struct panda_message *partial[MYRI_HW_NODES], *partial_many[MYRI_HW_NODES]; /* that come in fragments: multicasts */
    uint32_t small; /* a place for messages of Panda's own */
    uint64_t interrupts_seen;
};

/* After `owner`, `fm`, `below`, `lacks` and the handlers have been set. -1 with a fault. */
int panda_init(struct panda *, struct myri_side *);

/* -- threads -- */

/* Until it is not 0, or the tick: whether it is not. What comes meanwhile is handled. */
int panda_wait(struct panda *, const int *done, uint64_t until);
/* In a handler: the program's thread, which may wait, can run. */
void panda_signal(struct panda *, int *done);
/* A mutex is taken, and given back. */
void panda_mutex(struct panda *);
/* The program computes so long, and what comes meanwhile interrupts it. */
void panda_compute(struct panda *, uint64_t ps);

/* -- messages, calls, multicasts: of bytes at `at`, with PANDA_ROOM behind them, which are kept as they are -- */

void panda_send(struct panda *, uint32_t to, uint32_t at, uint32_t bytes);
/* The reply, which is the caller's to free; NULL with a fault. */
struct panda_message *panda_rpc_trans(struct panda *, uint32_t to, uint32_t at, uint32_t bytes);
/* In the handler of the request, or later; the request is to be freed afterwards. */
void panda_rpc_reply(struct panda *, const struct panda_message *request, uint32_t at, uint32_t bytes);
/* To all, this node included. */
void panda_group_send(struct panda *, uint32_t at, uint32_t bytes);
void panda_free(struct panda *, struct panda_message *);

/* -- among the files of this folder -- */

enum panda_kind {
    PANDA_REQUEST = 1,
    PANDA_REPLY,
    PANDA_MESSAGE,
    PANDA_MULTICAST,
    PANDA_ASK,
    PANDA_NUMBER,
    PANDA_ORDER
};
/* Host operations, as everywhere: of a call, of a handler; and half of FM's LOCKS, a mutex. */
enum { PANDA_CALL = 35, PANDA_HANDLER = 12, PANDA_MUTEX = 17 };

/* FM has a message, whose trailer is its last words; `object`, if it can be kept. */
void panda_arrive(struct panda *, uint32_t from, uint32_t at, uint32_t bytes, void *object);
/* Handles what has come, unless that is being done. */
void panda_handle(struct panda *);
void panda_dispatch(struct panda *);
void panda_put(struct panda *, uint32_t to, uint32_t kind, uint32_t number, uint32_t at, uint32_t bytes);
/* A multicast of the source's: to the card, to the Ethernet, or down this node's tree. */
void panda_put_all(struct panda *, uint32_t source, uint32_t number, uint32_t at, uint32_t bytes);
/* A copy of what this node multicasts, as if it had come. */
struct panda_message *panda_own(struct panda *, uint32_t number, uint32_t at, uint32_t bytes);
/* For what waits for an answer: taken, and given back with it when it is there. */
uint32_t panda_take_ticket(struct panda *);
struct panda_message *panda_use_ticket(struct panda *, uint32_t ticket);
void panda_rpc_take(struct panda *, struct panda_message *);
void panda_group_take(struct panda *, struct panda_message *);
/* A call that lies so deep; without register windows it costs no more for that. */
void panda_deep(struct panda *, uint32_t frames);

#endif
