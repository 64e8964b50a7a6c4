/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.h - one experiment on one system: who sends what to whom, and what is measured. Every one builds a machine of its
 * own, so experiments share nothing and each is the same each time. */
#ifndef RNL_PAPER_RUN_H
#define RNL_PAPER_RUN_H

#include "sim/paper/systems/system.h"

enum rnl_measure {
    RNL_ONE_WAY,     /* us: half of a round trip, the mean */
    RNL_ROUND_TRIP,  /* us */
    RNL_PING_RATE,   /* MB/s: bytes in one way of a ping-pong */
    RNL_STREAM_RATE, /* MB/s: messages one behind the other, at the receiver */
    RNL_BOTH_RATE,   /* MB/s in all, both ways: each sends one, and waits for the other's */
    RNL_SEND_COST,   /* us: until `send` returns, nothing else going on */
    RNL_POST_COST,   /* us: until `post` returns */
    RNL_LOCAL_RATE,  /* MB/s: transfers to the own card */
    RNL_COPY_RATE,   /* MB/s: a copy first, then the transfer */
    RNL_STORE_RATE,  /* MB/s: the processor stores into SRAM, through write combining where there is some */
    RNL_PLAIN_RATE,  /* MB/s: without write combining */
    RNL_PIN_RATE,    /* MB/s: a system call and pinning before each transfer */
    RNL_GOODPUT,     /* MB/s: as STREAM_RATE, of several senders, of what arrived; receivers may be slow */
    RNL_ANSWER,      /* us: of a question to a host that computes, until the answer is there */
    RNL_ANSWER_COST, /* us of computing that each question costs that host, its polls included */
    RNL_WIRE_COST,   /* bytes on the wire for each byte that a program received: as GOODPUT, what else it cost */
    RNL_MEASURES
};
/* ANSWER: who sees to what comes to a host that computes. */
enum rnl_attention {
    RNL_BY_POLLS,      /* the program itself, after each `slow_us` */
    RNL_BY_INTERRUPTS, /* a handler that each message starts */
    RNL_BY_PROCESSOR   /* another processor, which does nothing else than to poll */
};
const char *rnl_measure_name(enum rnl_measure);
const char *rnl_measure_unit(enum rnl_measure);

struct rnl_experiment {
    const struct rnl_system *system;
    struct rnl_machine machine;
    enum rnl_measure measure;
    uint32_t bytes, count, packet;
    uint32_t buffers;   /* for what arrives, where a system lets one choose; 0 = its own */
    uint32_t senders;   /* GOODPUT, WIRE_COST: nodes that send to one more; 0 = 1 */
    uint32_t places;    /* in memory, from which messages are sent as chance has it; 0 = 1 */
    uint32_t processes; /* that have the card of each node attached; 0 = 1 */
    double jitter_us;   /* hosts wait up to this before each message, so that no phase is preferred; < 0: 16 */
    double
        slow_us; /* GOODPUT, WIRE_COST: the receiver computes this long after each message. ANSWER: before each poll */
    enum rnl_attention attention;
    uint64_t bad_per_2_32, seed;
    int no_skip, cold, profile; /* profile: cards count each instruction, for inspect */
    const void *object;         /* another firmware than the system's own, or NULL */
    size_t object_bytes;
    rnl_hw_tracer *tracer; /* of the functions of firmware, too */
    void *tracer_arg;
    uint64_t begin_ps; /* hosts wait so long before they begin: cards have been started then */
    void (*inspect)(void *, const struct rnl_hw *, const struct rnl_side *sides); /* before it is torn down; or NULL */
    void *inspect_arg;
};

struct rnl_outcome {
    double value; /* of the measure */
    uint32_t sent, received, wrong;
    struct rnl_hw_count count;
    uint64_t instructions, skipped, events, end_ps;
};

/* What it prefers when nothing is said. */
void rnl_experiment_init(struct rnl_experiment *, const struct rnl_system *, const struct rnl_machine *,
                         enum rnl_measure, uint32_t bytes);
/* 0; RNL_ERR_ARG: what cannot be; RNL_ERR_ABORTED: it ran, and hangs or has a fault; RNL_ERR_NO_MEMORY. */
int rnl_experiment_run(const struct rnl_experiment *, struct rnl_outcome *out);

/* A machine that is built in. */
int rnl_machine_builtin(const char *name, struct rnl_machine *out);

#endif
