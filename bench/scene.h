/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scene.h - the tests that are more than a pair of processes against the bare ring: with idle peers beside it, asleep,
 * many at a barrier, under a layer, starting. Each is one file, job_NAME.c, which says which processes it needs, which
 * rows it has, and how a step of a round is measured. What it shares with the others is here and in rounds.h: a probe
 * before and after each step, what is thrown away and kept, and how rows come of it.
 *
 * Each row has a floor of its own, measured in the same step. */
#ifndef RNL_BENCH_SCENE_H
#define RNL_BENCH_SCENE_H

#include "rounds.h"

/* What the command line asks for. */
struct bench_wish {
    unsigned apis; /* bit per interface */
    const uint64_t *size;
    unsigned sizes; /* 0: the scene's own */
    unsigned ranks; /* of the barrier */
    bool plot;
    bool udp, netns;
};

struct bench_scene {
    const char *name;
    double share;             /* of the time, against the shares of others */
    unsigned apis;            /* that it is measured over; 0 = it has nothing to do with them */
    bool sizes, ranks, plots; /* --size, --ranks, --plot mean something */
    bool netns;               /* it is between namespaces only */
    bool sockets;             /* its floors are the pair's; over datagrams bare sockets */
    /* Adds its units, with their steps. 0 or -ENOMEM. */
    int (*plan)(struct bench_plan *, const struct bench_wish *);
    /* Fills in role, sides and resting of the pairs it needs, from number 1 up. NULL: none. */
    void (*cast)(struct bench_area *, const struct bench_wish *);
    /* Measures the units of one step, from `first` on: bench_put, as far as there is something to say. 0, or negative
     * with plan->text. */
    int (*step)(struct bench_run *, struct bench_unit *first, size_t n);
};

extern const struct bench_scene bench_scene_peers, bench_scene_idle, bench_scene_wake, bench_scene_barrier,
    bench_scene_layered, bench_scene_startup, bench_scene_memory, bench_scene_loss, bench_scene_am;
/* All of them, in the order of their rows, up to NULL. */
extern const struct bench_scene *const bench_scenes[];

/* Steps in turn until end_ns, each shown one at least once. `first` and n: the scene's units in the plan. 0, or
 * negative with plan->text. */
int bench_scene_run(struct bench_run *, const struct bench_scene *, struct bench_unit *first, size_t n);
/* The scene's units: where they begin, and how many. */
struct bench_unit *bench_scene_units(const struct bench_plan *, const struct bench_scene *, size_t *n);

/* For plan: a unit of one row. */
int bench_scene_add(struct bench_plan *, const struct bench_scene *, enum bench_test, unsigned api, unsigned n,
                    uint64_t bytes, unsigned step, bool shown);
/* For cast. */
void bench_cast(struct bench_area *, unsigned pair, const char *role, unsigned sides, unsigned resting);
/* For step: the interface of a unit; the unit of that kind in the step of `first`, or NULL; what this round says. */
unsigned bench_unit_api(const struct bench_unit *);
struct bench_unit *bench_find(struct bench_unit *first, size_t n, enum bench_test, unsigned api, unsigned nth);
void bench_put(struct bench_unit *, double value, double floor);
/* An order to one pair whose answer is wanted whatever else happened; its value is side 0's. */
int bench_ask(struct bench_run *, unsigned pair, enum bench_test, unsigned variant, uint64_t count, double *value);

#endif
