/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trials.h - what is measured and what came out. A unit is one test at one size. A trial of it: probe, every variant of
 * the baseline, every interface, probe, all within some tens of milliseconds on the same two cores. The two probes say
 * where the cores lie; if they disagree the trial is thrown away, and a repetition in which either process was
 * preempted is run again. So every kept trial has its own baseline, and a ratio is a median of ratios of trials. */
#ifndef RNL_BENCH_TRIALS_H
#define RNL_BENCH_TRIALS_H

#include "area.h"
#include "baseline_copy.h"

enum bench_placement { BENCH_NEAR, BENCH_FAR, BENCH_ONE_CORE, BENCH_PLACEMENTS, BENCH_FLIPPED = BENCH_PLACEMENTS };
/* An interface, and the number of the pair that measures it. From BENCH_OWN on they are peers: see peer.h. */
enum {
    BENCH_RAW,
    BENCH_NATIVE,
    BENCH_FM,
    BENCH_FM1,
    BENCH_TCP, /* bare, beside datagrams */
    BENCH_AM,  /* in tests of its own only, as the following */
    BENCH_MEMCPY,
    BENCH_MOVSB,
    BENCH_NT,
    BENCH_PANDA,
    BENCH_ORCA,
    BENCH_ORCA_SWITCHES, /* Orca without what saves them; so the next three */
    BENCH_ORCA_LAYERS,
    BENCH_ORCA_PIECES,
    BENCH_ORCA_COPIES,
    BENCH_OWN,
    BENCH_OPENMPI = BENCH_OWN,
    BENCH_OPENMPI_UCX,
    BENCH_MPICH,
    BENCH_UCX_AM,
    BENCH_UCX_TAG,
    BENCH_LIBFABRIC,
    BENCH_PROVIDER, /* adapters/ofi by itself, and below two MPIs: --peer takes them by name only */
    BENCH_OPENMPI_RNL,
    BENCH_MPICH_RNL,
    BENCH_UCX_PUT,  /* in the test put only */
    BENCH_COROSYNC, /* in the test panda only */
    BENCH_RPC,      /* in the test rpc only, which --peer does not name; as the following */
    BENCH_TIRPC_TCP,
    BENCH_TIRPC_UDP,
    BENCH_TIRPC_UNIX,
    BENCH_APIS
};
/* The interfaces that the tests of pairs have. */
enum {
    BENCH_OF_PAIRS = ((1u << BENCH_UCX_PUT) - 1) &
                     ~(1u << BENCH_AM | 1u << BENCH_MEMCPY | 1u << BENCH_MOVSB | 1u << BENCH_NT | 1u << BENCH_PANDA) &
                     ~((1u << BENCH_OWN) - (1u << BENCH_ORCA))
};
enum { BENCH_ON_PROVIDER = 1u << BENCH_PROVIDER | 1u << BENCH_OPENMPI_RNL | 1u << BENCH_MPICH_RNL };
_Static_assert((int)BENCH_APIS <= (int)BENCH_MAX_PAIRS, "a pair for each interface and peer");
enum { BENCH_VARIANTS = BASELINE_THROUGH_MAX }; /* the most that a baseline has */
_Static_assert((int)BENCH_WAITS <= (int)BENCH_VARIANTS, "room for the variants of latency");

/* From two probes, ns one way: near below 90, far above 130, between them the closer; flipped if they differ by more
 * than 1.4 times. */
enum bench_placement bench_place(double before_ns, double after_ns);
const char *bench_placement_name(enum bench_placement);
const char *bench_test_name(enum bench_test);
const char *bench_test_unit(enum bench_test);
const char *bench_api_name(unsigned api);
/* For sentences: the role of its processes, or the interface. */
const char *bench_pair_name(const struct bench_area *, unsigned pair);

struct bench_trial {
    enum bench_placement placement;
    double probe_ns;
    double baseline[BENCH_VARIANTS];                            /* NAN: none */
    double value[BENCH_APIS];                                   /* NAN: none; [BENCH_RAW] is unused */
    double baseline_cpu_ns[BENCH_VARIANTS], cpu_ns[BENCH_APIS]; /* of both processes, per message */
};

struct bench_series { /* one interface, or one variant of the baseline, in one unit */
    uint64_t count;   /* of the next order; 0 = not known yet */
    size_t tried;     /* repetitions that were answered, the disturbed ones too */
    struct rnl_hist *tail[BENCH_PLACEMENTS];
};

struct bench_scenario;

struct bench_unit {
    enum bench_test test;
    uint64_t bytes;
    unsigned apis; /* bit per interface that takes part */
    bool shown;    /* in the table; else for the plots only */
    /* These describe a scenario, which has one interface and one baseline without a row of its own. */
    const struct bench_scenario *scenario; /* NULL: a unit of the pairs */
    unsigned n; /* peers, processes, messages in a burst: what the test says; 0 = nothing to say */
    unsigned step;
    struct bench_trial now; /* the trial under way */
    struct rnl_hist *now_tail;
    struct bench_trial *trial;
    size_t trials, room;
    unsigned flipped, preempted; /* thrown away */
    unsigned cut;                /* repetitions that would have taken longer */
    struct bench_series baseline[BENCH_VARIANTS], api[BENCH_APIS];
};

struct bench_plan {
    struct bench_unit *unit;
    size_t units;
    bool udp;        /* what carries the messages: datagrams, or shared memory */
    const char *via; /* of datagrams that go past the kernel, bench_net.via; else NULL */
    double calm;     /* 1; smaller while repetitions get preempted: shorter ones slip between interruptions */
    char about[BENCH_APIS][160]; /* of a peer that attached: what it says of itself */
    char lost[BENCH_APIS][256];  /* why a peer takes no part any more; empty = it does */
    char text[256];              /* why bench_run or bench_attached failed */
};

/* alive(arg): see bench_pair_wait. */
struct bench_run {
    struct bench_area *area;
    const char *area_path; /* how others find it; for scenarios that start jobs of their own */
    struct bench_plan *plan;
    uint64_t end_ns;
    uint64_t order_ns; /* the most that an order may take that can be cut short; 0 = any time */
    int (*alive)(void *);
    void *arg;
    void (*progress)(void *, double seconds_left); /* after each trial; may be NULL */
    unsigned peer_ms;                              /* how long a peer may take for an order */
    void (*drop)(void *peers, unsigned api);       /* ends a peer that failed; may be NULL */
    void *peers;
};

/* Adds a unit in its place (by test, size, interface, n), or shows one that is there already. 0 or -ENOMEM. */
int bench_plan_insert(struct bench_plan *, const struct bench_unit *);
/* Adds a unit of the pairs in its place. 0 or -ENOMEM. */
int bench_plan_add(struct bench_plan *, enum bench_test, uint64_t bytes, unsigned apis, bool shown);
void bench_plan_free(struct bench_plan *);
/* Trials of all units of the pairs in turn until end_ns. 0, or negative with plan->text. */
int bench_run(struct bench_run *);
/* What the units and scenarios are measured with. All return 0, or negative with plan->text. An order to one pair: its
 * answer is in the area. The probe: ns one way. A repetition of a unit, again while it is preempted: *value and *cpu_ns
 * stay as they are if that does not help; `as` is the test that the order names. */
int bench_order(struct bench_run *, unsigned pair, const struct bench_order *);
int bench_await(struct bench_run *, unsigned pair);
int bench_probe(struct bench_run *, double *ns);
int bench_repeat(struct bench_run *, struct bench_unit *, enum bench_test as, unsigned pair, unsigned variant,
                 struct bench_series *, double *value, double *cpu_ns);
/* The single times of the pair's last repetition. */
int bench_take_tail(const struct bench_run *, unsigned pair, struct rnl_hist **);
/* Empties a trial, and ends it: keeps or counts it. */
void bench_trial_begin(struct bench_trial *);
int bench_trial_end(struct bench_run *, struct bench_unit *, struct bench_trial *, double before_ns, double after_ns,
                    struct rnl_hist *const *baseline_tail, struct rnl_hist *const *api_tail);
/* Says how far it is; true once the time is up. */
bool bench_run_over(const struct bench_run *);
/* Waits until a pair has attached. As bench_run. A peer that does not is lost: 0 and plan->lost. */
int bench_attached(struct bench_run *, unsigned pair, unsigned timeout_ms);

/* Which of its tests time round trips: the less the better, and each has single times. */
static inline bool bench_is_latency(enum bench_test test)
{
    return test == BENCH_LATENCY || test == BENCH_WAITING;
}

/* Whether the bytes are copied in one piece after the other, so that it matters how. */
static inline bool bench_is_bulk(enum bench_test test, uint64_t bytes)
{
    return test == BENCH_BANDWIDTH || test == BENCH_BANDWIDTH_ALONE || test == BENCH_FRESH ||
           test == BENCH_FRESH_ALONE || (test == BENCH_LATENCY && bytes > BENCH_LONG);
}

/* One line of the result. */
struct bench_row {
    enum bench_test test;
    unsigned api;
    uint64_t bytes;
    unsigned n;
    enum bench_placement placement;
    bool shown;
    bool udp;
    const char *via; /* of the plan */
    size_t trials;   /* 0: not seen; the figures below are then NAN */
    size_t tried;    /* repetitions in whatever placement, also those that do not count */
    double value, baseline, ratio, probe_ns;
    double p50, p999;         /* where there are single times, in the unit of value; else NAN */
    double cpu_ns;            /* latency and rate; else NAN */
    const char *about, *lost; /* of a peer: the plan's texts; else NULL */
    const char *data;         /* what becomes of the bytes, or NULL: see bench_test_data */
    char way[48];             /* of the baseline over shared memory: which variant it is; may be empty */
};

/* What a test of pairs does to the bytes of its messages: "unchanged", the same bytes each time, which may stay in the
 * receiver's cache; "rewritten" before they are sent and checked after they arrived, which is not timed; "fresh", where
 * writing and reading them is part of the time. NULL: none of these tests. */
const char *bench_test_data(enum bench_test, uint64_t bytes);
/* Whether a row of ours over shared memory is better than its baseline by more than BENCH_ABOVE_PERCENT, by the median
 * of at least BENCH_ABOVE_TRIALS trials: then the baseline is none. */
enum { BENCH_ABOVE_PERCENT = 5, BENCH_ABOVE_TRIALS = 5 };
bool bench_row_above(const struct bench_row *);

/* All rows of a plan, sorted by placement, then as the units; *rows is the caller's to free. Of the baseline's variants
 * the one with the best median in that placement counts. 0 or -ENOMEM. */
int bench_rows(const struct bench_plan *, bool one_core, struct bench_row **rows, size_t *n);

#endif
