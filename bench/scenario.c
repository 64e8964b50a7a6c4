/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scenario.c - see scenario.h. */
#include "scenario.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_ORDER_NS = 20000000 };
static const uint64_t least_late_ns = UINT64_C(60000000000); /* behind the end, for what was not begun by then */

int bench_scenario_add(struct bench_plan *p, const struct bench_scenario *scenario, enum bench_test test, unsigned api,
                       unsigned n, uint64_t bytes, unsigned step, bool shown)
{
    const struct bench_unit unit = {
        .test = test, .bytes = bytes, .apis = 1u << api, .shown = shown, .scenario = scenario, .n = n, .step = step};
    return bench_plan_insert(p, &unit);
}

struct bench_unit *bench_scenario_units(const struct bench_plan *p, const struct bench_scenario *scenario, size_t *n)
{
    struct bench_unit *first = NULL;
    *n = 0;
    for (size_t i = 0; i < p->units; i++)
        if (p->unit[i].scenario == scenario) {
            if (!first)
                first = &p->unit[i];
            *n = (size_t)(&p->unit[i] - first) + 1; /* tests of one scenario are neighbours */
        }
    return first;
}

void bench_assign_role(struct bench_area *a, unsigned pair, const char *role, unsigned ranks, unsigned resting)
{
    struct bench_pair *p = &a->pair[pair];
    snprintf(p->role, sizeof p->role, "%s", role);
    p->ranks = ranks;
    p->resting = resting;
}

unsigned bench_unit_api(const struct bench_unit *u)
{
    unsigned api = 0;
    while (api < BENCH_APIS - 1 && !(u->apis & 1u << api))
        api++;
    return api;
}

struct bench_unit *bench_find(struct bench_unit *first, size_t n, enum bench_test test, unsigned api, unsigned nth)
{
    for (struct bench_unit *u = first; u < first + n; u++)
        if (u->step == first->step && u->test == test && bench_unit_api(u) == api && u->n == nth)
            return u;
    return NULL;
}

void bench_put(struct bench_unit *u, double value, double baseline)
{
    u->now.value[bench_unit_api(u)] = value;
    u->now.baseline[0] = baseline;
}

int bench_ask(struct bench_run *r, unsigned pair, enum bench_test test, unsigned variant, uint64_t count, double *value)
{
    const struct bench_order o = {.test = test, .variant = variant, .count = count};
    int e = bench_order(r, pair, &o);
    if (e == 0)
        *value = r->area->pair[pair].answer[0].value;
    return e;
}

static int keep_step(struct bench_run *r, struct bench_unit *u, double before_ns, double after_ns)
{
    struct rnl_hist *none[BENCH_VARIANTS] = {0}, *tail[BENCH_APIS] = {0};
    unsigned api = bench_unit_api(u);
    if (isnan(u->now.value[api]))
        return 0;
    tail[api] = u->now_tail;
    int e = bench_trial_end(r, u, &u->now, before_ns, after_ns, none, tail);
    if (e)
        snprintf(r->plan->text, sizeof r->plan->text, "no memory for the measurements");
    return e;
}

/* One step: its units, which are neighbours or not, between two probes. */
static int run_step(struct bench_run *r, const struct bench_scenario *scenario, unsigned step, struct bench_unit *first,
                    size_t n)
{
    double before = 0, after = 0;
    struct bench_unit *from = NULL;
    for (struct bench_unit *u = first; u < first + n; u++) {
        if (u->step != step)
            continue;
        from = from ? from : u;
        bench_trial_begin(&u->now);
        free(u->now_tail);
        u->now_tail = NULL;
    }
    if (!from)
        return 0;
    int e = bench_probe(r, &before);
    if (e == 0)
        e = scenario->step(r, from, (size_t)(first + n - from));
    if (e == 0)
        e = bench_probe(r, &after);
    for (struct bench_unit *u = from; u < first + n && e == 0; u++)
        if (u->step == step)
            e = keep_step(r, u, before, after);
    return e;
}

static bool step_shown(const struct bench_unit *first, size_t n, unsigned step)
{
    for (const struct bench_unit *u = first; u < first + n; u++)
        if (u->step == step && u->shown)
            return true;
    return false;
}

/* The first pass has all steps, of two orders for each of two pairs. */
static uint64_t order_ns(const struct bench_run *r, unsigned steps_left)
{
    const uint64_t now = bench_now_ns(), left = now < r->end_ns ? r->end_ns - now : 0;
    const uint64_t each = left / (4 * (uint64_t)steps_left);
    return each > LEAST_ORDER_NS ? each : LEAST_ORDER_NS;
}

int bench_scenario_run(struct bench_run *r, const struct bench_scenario *scenario, struct bench_unit *first, size_t n)
{
    unsigned steps = 0;
    for (struct bench_unit *u = first; u < first + n; u++)
        steps = u->step >= steps ? u->step + 1 : steps;
    const uint64_t began = bench_now_ns(), given = r->end_ns > began ? r->end_ns - began : 0;
    const uint64_t latest = r->end_ns + (given > least_late_ns ? given : least_late_ns);
    bool over = false;
    for (unsigned pass = 0; !over; pass++) {
        for (unsigned step = 0; step < steps && !(over && (pass > 0 || bench_now_ns() >= latest)); step++) {
            bool shown = step_shown(first, n, step);
            if (!shown && (over || pass % 2)) /* a point of a curve needs fewer trials than a row */
                continue;
            r->order_ns = order_ns(r, pass == 0 ? steps - step : 1);
            int e = run_step(r, scenario, step, first, n);
            if (e)
                return e;
            over = bench_run_over(r);
        }
    }
    return 0;
}
