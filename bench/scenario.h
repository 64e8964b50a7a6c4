/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scenario.h - the tests that are more than a pair of processes against the bare ring: with idle peers beside it,
 * asleep, many at a barrier, under a layer, starting. Each is one file, job_NAME.c, which says which processes it
 * needs, which rows it has, and how a step of a trial is measured. What it shares with the others is here and in
 * trials.h: a probe before and after each step, what is thrown away and kept, and how rows come of it.
 *
 * Each row has a baseline of its own, measured in the same step. */
#ifndef RNL_BENCH_SCENARIO_H
#define RNL_BENCH_SCENARIO_H

#include "trials.h"

/* What the command line asks for. */
struct bench_wish {
    unsigned apis; /* bit per interface */
    const uint64_t *size;
    unsigned sizes; /* 0: the scenario's own */
    unsigned ranks; /* of the barrier */
    bool plot;
    bool udp, netns;
    unsigned peers; /* bit per interface of a peer that is measured beside */
};

struct bench_scenario {
    const char *name;
    double share;                 /* of the time, against the shares of others */
    unsigned apis;                /* that it is measured over; 0 = it has nothing to do with them */
    bool sizes, ranks, plots;     /* --size, --ranks, --plot mean something */
    bool netns;                   /* it is between namespaces only */
    unsigned peers;               /* that can be measured beside it */
    bool of_peers;                /* they are what it measures: nobody names them */
    bool shm;                     /* it is between processes of one host only, and has nothing to do with datagrams */
    bool past;                    /* it is between a way past the kernel and the kernel only */
    bool sockets;                 /* its baselines are the pair's; over datagrams bare sockets */
    const char *(*missing)(void); /* what it needs that is not here, or NULL; NULL: it needs nothing */
    /* Adds its units, with their steps. 0 or -ENOMEM. */
    int (*plan)(struct bench_plan *, const struct bench_wish *);
    /* Fills in role, ranks and resting of the pairs it needs, from number 1 up. NULL: none. */
    void (*assign_roles)(struct bench_area *, const struct bench_wish *);
    /* Measures the units of one step, from `first` on: bench_put, as far as there is something to say. 0, or negative
     * with plan->text. */
    int (*step)(struct bench_run *, struct bench_unit *first, size_t n);
};

extern const struct bench_scenario bench_scenario_peers, bench_scenario_idle, bench_scenario_wake,
    bench_scenario_barrier, bench_scenario_layered, bench_scenario_startup, bench_scenario_memory, bench_scenario_loss,
    bench_scenario_am, bench_scenario_put, bench_scenario_rpc, bench_scenario_panda, bench_scenario_orca,
    bench_scenario_sweep, bench_scenario_sweep_loss;
/* All of them, in the order of their rows, up to NULL. */
extern const struct bench_scenario *const bench_scenarios[];

/* Steps in turn until end_ns, each shown one at least once. `first` and n: the scenario's units in the plan. 0, or
 * negative with plan->text. */
int bench_scenario_run(struct bench_run *, const struct bench_scenario *, struct bench_unit *first, size_t n);
/* The scenario's units: where they begin, and how many. */
struct bench_unit *bench_scenario_units(const struct bench_plan *, const struct bench_scenario *, size_t *n);

/* For plan: a unit of one row. */
int bench_scenario_add(struct bench_plan *, const struct bench_scenario *, enum bench_test, unsigned api, unsigned n,
                       uint64_t bytes, unsigned step, bool shown);
/* For assign_roles. */
void bench_assign_role(struct bench_area *, unsigned pair, const char *role, unsigned ranks, unsigned resting);
/* For step: the interface of a unit; the unit of that kind in the step of `first`, or NULL; what this trial says. */
unsigned bench_unit_api(const struct bench_unit *);
struct bench_unit *bench_find(struct bench_unit *first, size_t n, enum bench_test, unsigned api, unsigned nth);
void bench_put(struct bench_unit *, double value, double baseline);
/* An order to one pair whose answer is wanted whatever else happened; its value is rank 0's. */
int bench_ask(struct bench_run *, unsigned pair, enum bench_test, unsigned variant, uint64_t count, double *value);

#endif
