/* SPDX-License-Identifier: BSD-3-Clause
 *
 * internal.h - what run.c, which builds the machine of an experiment, and tasks.c, what its hosts do, share. */
#ifndef MYRI_EXPERIMENTS_INTERNAL_H
#define MYRI_EXPERIMENTS_INTERNAL_H

#include "sim/myrinet/experiments/run.h"

enum {
    SIDES = MYRI_HW_NODES,
    STREAM_JITTER = 0x4a49,
    STREAM_PLACE = 0x504c,
    STREAM_PAGE = 0x5047,
    IDLE_US = 2000,
    PLACES_MOST = 1024
};

struct experiment_run {
    const struct myri_experiment *x;
    struct myri_outcome *out;
    struct myri_hw *hw;
    struct myri_side side[SIDES];
    uint32_t sides, receiver, sending; /* GOODPUT: senders that have not finished */
    uint64_t shown_ps;                 /* where the next span of what is measured begins, for traces */
    uint64_t first_ps;                 /* of a ping-pong the first round trip, else the first of what a mean is of */
    uint64_t jitter_spent_ps, begin_ps, end_ps, busy_ps, jitters;
    uint64_t pages_asked;               /* whose memory the operating system might have wanted */
    uint32_t answered;                  /* ANSWER: questions */
    uint32_t lack;                      /* TO_ALL: receivers that have not this one yet */
    uint64_t computed_ps, computing_ps; /* what the computing came to, and how long it took */
    uint32_t solution;                  /* JACOBI: of who had it last */
    uint32_t seen[SIDES];               /* last word of the last message of that sender */
    uint32_t first_out[SIDES];          /* of its places */
};

static inline int myri_experiment_gathers(const struct myri_experiment *x)
{
    return x->measure == MYRI_GOODPUT || x->measure == MYRI_WIRE_COST || x->measure == MYRI_SWITCH_COST ||
           x->measure == MYRI_SWITCH_TIME;
}

static inline int myri_experiment_switches(const struct myri_experiment *x)
{
    return x->measure == MYRI_SWITCH_COST || x->measure == MYRI_SWITCH_TIME;
}

static inline int myri_experiment_asks(const struct myri_experiment *x)
{
    return x->measure == MYRI_ANSWER || x->measure == MYRI_ANSWER_COST;
}

static inline int myri_experiment_to_all(const struct myri_experiment *x)
{
    return x->measure == MYRI_TO_ALL || x->measure == MYRI_ALL_RATE;
}

static inline int myri_experiment_calls(const struct myri_experiment *x)
{
    return x->measure == MYRI_CALL || x->measure == MYRI_CALL_RATE;
}

/* TURNS: of nodes. */
static inline uint32_t myri_experiment_pairs(const struct experiment_run *r)
{
    return r->sides * (r->sides - 1) / 2;
}

/* Bytes of the pages that a message has. */
static inline uint32_t myri_experiment_pages(const struct myri_experiment *x)
{
    uint32_t page = (uint32_t)x->machine.v[MYRI_M_page];
    return (x->bytes + page - 1) & ~(page - 1);
}

/* SWITCH_COST, SWITCH_TIME (jobs.c): a machine of its own. */
int myri_experiment_jobs(const struct myri_experiment *, struct myri_outcome *out);
/* The error of the machine with the system's name before it. */
int myri_experiment_named(const struct myri_experiment *, int rc);
/* What an experiment says of cards, hosts and the network, for the machine that it runs on. */
void myri_experiment_conditions(const struct myri_experiment *, struct myri_hw *);
/* One that is not what was sent has come to the node. */
static inline void myri_experiment_wrong(struct myri_outcome *out, const struct myri_hw *hw, uint32_t node)
{
    if (out->wrong++ == 0) {
        out->wrong_at = node;
        out->wrong_ps = myri_hw_now(hw);
    }
}
/* A message's pattern, but for its last word. */
void myri_experiment_fill(struct myri_side *, uint32_t bytes);
/* A side's `handled`: checks what a handler serves, and puts the next word at the end of the reply. */
void myri_experiment_handled(struct myri_side *, uint32_t bytes);
/* What the task of a side does, and the task of who computes while another answers. */
void myri_experiment_task(struct myri_task *, void *run);
void myri_experiment_computer(struct myri_task *, void *run);

#endif
