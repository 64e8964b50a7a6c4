/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.h - one experiment on one system: who sends what to whom, and what is measured. Every one builds a machine of its
 * own, so experiments share nothing and each is the same each time. */
#ifndef MYRI_RUN_H
#define MYRI_RUN_H

#include "sim/myrinet/systems/system.h"

enum myri_measure {
    MYRI_ONE_WAY,     /* us: half of a round trip, the mean */
    MYRI_ROUND_TRIP,  /* us */
    MYRI_PING_RATE,   /* MB/s: bytes in one way of a ping-pong */
    MYRI_STREAM_RATE, /* MB/s: messages one behind the other, at the receiver */
    MYRI_BOTH_RATE,   /* MB/s in all, both ways: each sends one, and waits for the other's */
    MYRI_SEND_COST,   /* us: until `send` returns, nothing else going on */
    MYRI_POST_COST,   /* us: until `post` returns */
    MYRI_LOCAL_RATE,  /* MB/s: transfers to the own card */
    MYRI_COPY_RATE,   /* MB/s: a copy first, then the transfer */
    MYRI_STORE_RATE,  /* MB/s: the processor stores into SRAM, through write combining where there is some */
    MYRI_PLAIN_RATE,  /* MB/s: without write combining */
    MYRI_PIN_RATE,    /* MB/s: a system call and pinning before each transfer */
    MYRI_GOODPUT,     /* MB/s: as STREAM_RATE, of several senders, of what arrived; receivers may be slow */
    MYRI_ANSWER,      /* us: of a question to a host that computes, until the answer is there */
    MYRI_ANSWER_COST, /* us of computing that each question costs that host, its polls included */
    MYRI_WIRE_COST,   /* bytes on the wire for each byte that a program received: as GOODPUT, what else it cost */
    MYRI_TO_ALL,      /* us: from a message to several, `receivers`, until the last of them has it */
    MYRI_ALL_RATE,    /* MB/s of such messages one behind the other, at the last of them */
    MYRI_FETCH,       /* us: the next sequence number is had from another node's card */
    MYRI_TAKE_COST,   /* us: until `receive` returns, of a message that came long ago, nothing else going on */
    MYRI_CALL,        /* us: of a call, until its reply is there */
    MYRI_CALL_RATE,   /* MB/s: calls one behind the other, bytes of request and reply */
    MYRI_JACOBI, /* us an iteration of Jacobi's method on `receivers` and one nodes; bytes are those of its vector */
    MYRI_TURNS,  /* us a multicast: two of `receivers` and one multicast in turn, in the mean over all pairs */
    MYRI_SWITCH_COST, /* us: saving one job's channel and restoring another's, of a node; jobs take turns */
    MYRI_SWITCH_TIME, /* us: from the end of a quantum until the next job goes on, on all nodes */
    MYRI_MEASURES
};
/* ANSWER: who sees to what comes to a host that computes. */
enum myri_attention {
    MYRI_BY_POLLS,      /* the program itself, after each `slow_us` */
    MYRI_BY_INTERRUPTS, /* a handler that each message starts */
    MYRI_BY_PROCESSOR   /* another processor, which does nothing else than to poll */
};
/* TO_ALL, ALL_RATE: who brings a message to the receivers. */
enum myri_bringer {
    MYRI_BY_SYSTEM, /* its own way, or repeated sends where it has none */
    MYRI_BY_REPEATS,
    MYRI_BY_HOSTS /* a tree: node k sends on to nodes 2k+1 and 2k+2 */
};
const char *myri_measure_name(enum myri_measure);
const char *myri_measure_unit(enum myri_measure);
const char *myri_measure_about(enum myri_measure); /* what it is, for users */
/* Whether a system has it; which one is meant where none is named: a call of a system that has calls, else `usual`,
 * else the first that it has. */
int myri_measure_can(const struct myri_system *, enum myri_measure);
enum myri_measure myri_measure_usual(const struct myri_system *, enum myri_measure usual);
/* The names of all that it has, with commas between. */
const char *myri_measures_of(const struct myri_system *);
/* The names of all systems that are built in and have a property, with commas between; without variants of these, like
 * vmmc-tuned of vmmc. */
enum myri_property {
    MYRI_HAS_NOTIFY,    /* a message can interrupt its receiver's host */
    MYRI_HAS_FETCH,     /* numbers are fetched from a card */
    MYRI_HAS_TURNS,     /* jobs take turns */
    MYRI_HAS_CACHE,     /* a card has a cache of translations */
    MYRI_HAS_PLACES,    /* where a message lies matters */
    MYRI_HAS_PROCESSES, /* a card can have several processes attached */
    MYRI_HAS_SPACES,    /* programs have address spaces, from which pages can be taken */
    MYRI_HAS_TO_ALL     /* it has a way of its own to bring a message to several */
};
int myri_system_has(const struct myri_system *, enum myri_property);
const char *myri_systems_with(enum myri_property);
int myri_measure_refused(const struct myri_system *, enum myri_measure); /* RNL_ERR_ARG, said */

struct myri_experiment {
    const struct myri_system *system;
    struct myri_machine machine;
    enum myri_measure measure;
    uint32_t bytes, count, packet;
    uint32_t buffers;   /* for what arrives, where a system lets one choose; 0 = its own */
    uint32_t senders;   /* GOODPUT, WIRE_COST, of each job SWITCH_*: nodes that send to one more; 0 = 1 */
    uint32_t receivers; /* TO_ALL, ALL_RATE, TURNS: nodes beside the sender; 0 = 1 */
    uint32_t places;    /* in memory, from which messages are sent as chance has it; 0 = 1 */
    uint32_t processes; /* that have the card of each node attached; 0 = 1 */
    double jitter_us;   /* hosts wait up to this before each message, so that no phase is preferred; < 0: 16 */
    double
        slow_us; /* GOODPUT, WIRE_COST: the receiver computes this long after each message. ANSWER: before each poll */
    enum myri_attention attention; /* TO_ALL: by interrupts, or all poll */
    enum myri_bringer bringer;
    int notify;     /* messages may interrupt all hosts, whatever their programs do; ANSWER: who is asked */
    int across_bus; /* hosts look for messages across the I/O bus, as if flags lay on their cards */
    uint64_t bad_per_2_32, lost_per_2_32, late_per_2_32, seed; /* of packets: wrong CRC; gone; overtaken */
    uint64_t page_out_per_2_32; /* of pages in memory, before a side sends and behind what it receives: taken back */
    int reorder;                /* each packet takes a way of its own: they come in any order */
    int no_skip, cold, profile; /* profile: cards count each instruction, for inspect */
    const void *object;         /* another firmware than the system's own, or NULL */
    size_t object_bytes;
    /* Is told of each span, also of functions of firmware, and in MYRI_LANE_MEASURED of what makes the measure: each
     * "message", from its sender's call, the node's, until the other has it (or what was fetched is there), and that
     * "call"; each "cost" of that host; the "interval" between two messages of a stream. Spans of latencies and costs
     * come to the measure exactly. */
    myri_hw_tracer *tracer;
    void *tracer_arg;
    uint64_t begin_ps; /* hosts wait so long before they begin: cards have been started then */
    /* before it is torn down; or NULL */
    void (*inspect)(void *, const struct myri_hw *, const struct myri_side *sides);
    void *inspect_arg;
};

struct myri_outcome {
    double value; /* of the measure */
    double first; /* of times: what the first message took, which the mean has in it; cards have just been started */
    uint32_t sent, received, wrong, wrong_at; /* a run with wrong ones fails; node of the first */
    uint64_t wrong_ps;
    uint64_t page_outs, page_ins, pages_stayed; /* stayed: how often one was asked for that is pinned, or in use */
    struct myri_hw_count count;
    uint64_t instructions, skipped, worked, events, end_ps; /* worked: of turns that stored something */
};

/* What it prefers when nothing is said. */
void myri_experiment_init(struct myri_experiment *, const struct myri_system *, const struct myri_machine *,
                          enum myri_measure, uint32_t bytes);
/* 0; RNL_ERR_ARG: what cannot be; RNL_ERR_ABORTED: it ran, and hangs or has a fault; RNL_ERR_NO_MEMORY. */
int myri_experiment_run(const struct myri_experiment *, struct myri_outcome *out);
/* The same, but one that came to something here before, equal in all that it says, is not run again: rows share points.
 * For one thread, and for what neither traces nor inspects. */
int myri_experiment_once(const struct myri_experiment *, struct myri_outcome *out);

/* Whether the system's firmware has room on the cards of such a machine; else why not is the last error. */
int myri_experiment_fits(const struct myri_system *, const struct myri_machine *);
/* Tells of every experiment that ends well from now on, and what it came to; NULL: of none. */
typedef void myri_experiment_each(void *arg, const struct myri_experiment *, double value);
void myri_experiment_watch(myri_experiment_each *, void *arg);

/* A machine that is built in. */
int myri_machine_builtin(const char *name, struct myri_machine *out);

#endif
