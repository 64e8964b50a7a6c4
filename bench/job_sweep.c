/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_sweep.c - AM-2 past the kernel beside AM-2 by the kernel's UDP, which is the baseline of each row: there and
 * back, short requests and bulk against the depth, and all three against the share of packets that are lost. The
 * processes are those of job_am.c, two pairs of them, whose turns lie in one trial. The pair of the baselines has
 * namespaces of its own, for a filter that redirects frames costs the other traffic of its interface something.
 *
 * A filter that drops packets cannot be on an interface beside that of AF_XDP, and no wire of cards has one, so packets
 * are lost where they arrive, in either process, of either pair: net/fault does that, between the sockets and all that
 * is above them. It is there in the pairs of the second scenario only, in each of their rows. */
#include "process.h"
#include "scenario.h"

#include "endpoint/endpoint.h"
#include "net/fault/fault.h"
#include "runnel/runnel.h"

#include <math.h>
#include <stdio.h>

enum { PAST = 1, BY_KERNEL, BULK_BYTES = 128 << 10, DEEP = 128, WINDOW = 8 };
static const unsigned rate_depths[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}, bulk_depths[] = {1, 2, 4, 8};
static const unsigned losses[] = {1, 5, 10, 20, 50, 100, 200}; /* of a thousand */
#define MANY(a) (sizeof(a) / sizeof *(a))

int bench_lose(struct bench_process *s, struct rnl_endpoint *ep, unsigned per_mille)
{
    struct rnl_fault f;
    char text[32];
    snprintf(text, sizeof text, "loss=%u.%u%%", per_mille / 10, per_mille % 10);
    if (rnl_fault_parse(text, &f) < 0)
        return bench_process_fail(s, "%s", rnl_last_error()->text);
    rnl_fault_set(ep->env->datagrams, &f, ep->env->ops->now_ns(ep->env));
    return 0;
}

static int add(struct bench_plan *p, const struct bench_scenario *of, enum bench_test test, const unsigned *n,
               size_t many, uint64_t bytes, unsigned *step)
{
    int e = 0;
    for (size_t i = 0; i < many && e == 0; i++)
        e = bench_scenario_add(p, of, test, BENCH_AM, n[i], bytes, (*step)++, true);
    return e;
}

static int plan_depths(struct bench_plan *p, const struct bench_wish *w)
{
    static const unsigned none = 0;
    const struct bench_scenario *of = &bench_scenario_sweep;
    unsigned step = 0;
    (void)w;
    int e = add(p, of, BENCH_AM_TRIP, &none, 1, 8, &step);
    if (e == 0)
        e = add(p, of, BENCH_AM_WAITING, &none, 1, 8, &step);
    if (e == 0)
        e = add(p, of, BENCH_AM_RATE, rate_depths, MANY(rate_depths), 8, &step);
    return e ? e : add(p, of, BENCH_AM_BULK, bulk_depths, MANY(bulk_depths), BULK_BYTES, &step);
}

static int plan_losses(struct bench_plan *p, const struct bench_wish *w)
{
    const struct bench_scenario *of = &bench_scenario_sweep_loss;
    unsigned step = 0;
    (void)w;
    int e = add(p, of, BENCH_AM_LOSS_TRIP, losses, MANY(losses), 8, &step);
    if (e == 0)
        e = add(p, of, BENCH_AM_LOSS_RATE, losses, MANY(losses), 8, &step);
    return e ? e : add(p, of, BENCH_AM_LOSS_BULK, losses, MANY(losses), BULK_BYTES, &step);
}

static void assign_roles(struct bench_area *area, const struct bench_wish *w)
{
    (void)w;
    bench_assign_role(area, PAST, "am", 2, 0);
    bench_assign_role(area, BY_KERNEL, "am", 2, 0);
    area->pair[BY_KERNEL].by_kernel = 1;
}

static void assign_lossy_roles(struct bench_area *area, const struct bench_wish *w)
{
    assign_roles(area, w);
    area->pair[PAST].lossy = area->pair[BY_KERNEL].lossy = 1;
}

static int step(struct bench_run *r, struct bench_unit *u, size_t n)
{
    const bool lossy = u->test >= BENCH_AM_LOSS_TRIP && u->test <= BENCH_AM_LOSS_BULK;
    const unsigned deep = u->test == BENCH_AM_LOSS_RATE ? DEEP : u->test == BENCH_AM_LOSS_BULK ? WINDOW : 1;
    const unsigned variant = lossy ? deep | u->n << BENCH_AM_LOSS_SHIFT : u->n ? u->n : 1;
    double value = NAN, baseline = NAN, cpu_ns;
    (void)n;
    int e = bench_repeat(r, u, u->test, BY_KERNEL, variant, &u->baseline[0], &baseline, &cpu_ns);
    if (e == 0)
        e = bench_repeat(r, u, u->test, PAST, variant, &u->api[BENCH_AM], &value, &cpu_ns);
    if (e == 0)
        bench_put(u, value, baseline);
    return e;
}

const struct bench_scenario bench_scenario_sweep = {
    .name = "sweep",
    .share = 1,
    .apis = 1u << BENCH_AM,
    .plots = true,
    .past = true,
    .plan = plan_depths,
    .assign_roles = assign_roles,
    .step = step,
};
const struct bench_scenario bench_scenario_sweep_loss = {
    .name = "sweep-loss",
    .share = 2,
    .apis = 1u << BENCH_AM,
    .plots = true,
    .past = true,
    .plan = plan_losses,
    .assign_roles = assign_lossy_roles,
    .step = step,
};
