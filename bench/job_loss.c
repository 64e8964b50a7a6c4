/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_loss.c - what lost datagrams cost: a stream of long messages, and 8-byte round trips, between two namespaces
 * whose interfaces drop 1, 10 or 50 of a thousand packets, data and acknowledgements alike. The baseline of each row is
 * the same pair in the same step, with the filter in place and nothing dropped, by turns. */
#include "net.h"
#include "scenario.h"

#include <math.h>

static const unsigned losses[] = {1, 10, 50}; /* of a thousand */
enum { LOSSES = sizeof losses / sizeof *losses, STREAM_BYTES = 64 << 10, TRIP_BYTES = 8 };
static const unsigned over[] = {BENCH_NATIVE, BENCH_FM};
static struct bench_drop filter = {{-1, -1}};

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    unsigned step = 0;
    int e = 0;
    for (unsigned a = 0; a < 2; a++)
        for (unsigned k = 0; k < LOSSES && w->apis & 1u << over[a]; k++, step++) {
            if (e == 0)
                e = bench_scenario_add(p, &bench_scenario_loss, BENCH_LOSS_STREAM, over[a], losses[k], STREAM_BYTES,
                                       step, true);
            if (e == 0)
                e = bench_scenario_add(p, &bench_scenario_loss, BENCH_LOSS_TRIP, over[a], losses[k], TRIP_BYTES, step,
                                       true);
        }
    return e;
}

static void assign_roles(struct bench_area *area, const struct bench_wish *w)
{
    for (unsigned a = 0; a < 2; a++)
        if (w->apis & 1u << over[a])
            bench_assign_role(area, over[a], bench_api_name(over[a]), 2, 0);
}

static int lose(struct bench_run *r, unsigned per_mille)
{
    return bench_net_drop(&filter, &r->area->net, per_mille, r->plan->text, sizeof r->plan->text);
}

/* How many datagrams are to be lost before the mean says what a loss costs. */
enum { LOST = 40, PER_STREAM = 2000 /* datagrams that a repetition sends, at least */ };

static uint64_t wanted(enum bench_test as, unsigned per_mille)
{
    uint64_t datagrams = per_mille ? 1000 * LOST / per_mille : 0;
    return as == BENCH_RATE ? datagrams / PER_STREAM : datagrams / 2; /* repetitions; trips of two datagrams */
}

/* What repetitions add up to. */
struct sum {
    double ns, done; /* trips, or messages */
};

/* One repetition. *more: it counts; it does not once the time is up and it was disturbed. */
static int repeat(struct bench_run *r, struct bench_unit *u, unsigned per_mille, struct bench_series *s,
                  struct sum *sum, bool *more)
{
    unsigned api = bench_unit_api(u);
    enum bench_test as = u->test == BENCH_LOSS_TRIP ? BENCH_LATENCY : BENCH_RATE;
    double cpu_ns, one = NAN;
    int e = lose(r, per_mille);
    if (e == 0)
        e = bench_repeat(r, u, as, api, 0, s, &one, &cpu_ns);
    *more = e == 0 && !isnan(one);
    if (!*more)
        return e;
    double elapsed = r->area->pair[api].answer[as == BENCH_RATE].elapsed_ns;
    sum->ns += elapsed;
    sum->done += as == BENCH_LATENCY ? elapsed / (2 * one) : elapsed * one / 1e3;
    if (as == BENCH_LATENCY && per_mille && u->now_tail)
        rnl_hist_merge(u->now_tail, &r->area->pair[api].hist);
    else if (as == BENCH_LATENCY && per_mille)
        e = bench_take_tail(r, api, &u->now_tail);
    return e;
}

/* With losses and without by turns, as many repetitions as it takes to lose enough: what else befalls the machine
 * meanwhile befalls both. */
static int measure(struct bench_run *r, struct bench_unit *u, double *value, double *baseline)
{
    bool trips = u->test == BENCH_LOSS_TRIP, more;
    uint64_t want = wanted(trips ? BENCH_LATENCY : BENCH_RATE, u->n), turns = 0;
    struct sum without = {0, 0}, with = {0, 0};
    int e;
    do {
        e = repeat(r, u, 0, &u->baseline[0], &without, &more);
        if (e == 0 && more)
            e = repeat(r, u, u->n, &u->api[bench_unit_api(u)], &with, &more);
        turns++;
    } while (e == 0 && more && bench_now_ns() < r->end_ns && (trips ? with.done < (double)want : turns < want));
    if (e == 0 && with.done > 0) {
        *baseline = trips ? without.ns / (2 * without.done) : without.done * (double)u->bytes / without.ns; /* GB/s */
        *value = trips ? with.ns / (2 * with.done) : with.done * (double)u->bytes / with.ns;
    }
    return e;
}

static int step(struct bench_run *r, struct bench_unit *first, size_t n)
{
    static const enum bench_test tests[] = {BENCH_LOSS_STREAM, BENCH_LOSS_TRIP};
    int e = 0;
    for (unsigned t = 0; t < 2 && e == 0; t++) {
        struct bench_unit *u = bench_find(first, n, tests[t], bench_unit_api(first), first->n);
        double value = NAN, baseline = NAN;
        e = measure(r, u, &value, &baseline);
        bench_put(u, value, baseline);
    }
    int end = lose(r, 0); /* whoever is asleep now finds its peer again */
    return e ? e : end;
}

const struct bench_scenario bench_scenario_loss = {
    .name = "loss",
    .share = 3,
    .apis = 1u << BENCH_NATIVE | 1u << BENCH_FM,
    .netns = true,
    .plan = plan,
    .assign_roles = assign_roles,
    .step = step,
};
