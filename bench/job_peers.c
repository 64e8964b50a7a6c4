/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_peers.c - what idle peers cost: round trips of a pair whose two processes are also connected to 1, 15 or 63
 * processes of this host that sleep. The same loops as the test latency; the baseline is the pair with one idle peer.
 * Each count is a job of its own, since nothing takes a connection back. */
#include "scenario.h"

#include <math.h>

static const unsigned counts[] = {1, 15, 63};
enum { COUNTS = sizeof counts / sizeof *counts, FIRST_PAIR = 1 };
static const unsigned over[] = {BENCH_NATIVE, BENCH_FM};

static unsigned pair_of(unsigned api, unsigned k)
{
    return FIRST_PAIR + (api == BENCH_FM ? COUNTS : 0) + k;
}

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    static const uint64_t eight = 8;
    unsigned step = 0;
    int e = 0;
    for (unsigned i = 0; i < (w->sizes ? w->sizes : 1); i++)
        for (unsigned a = 0; a < 2; a++) {
            if (!(w->apis & 1u << over[a]))
                continue;
            for (unsigned k = 0; k < COUNTS && e == 0; k++)
                e = bench_scenario_add(p, &bench_scenario_peers, BENCH_PEERS, over[a], counts[k],
                                       w->sizes ? w->size[i] : eight, step, true);
            step++;
        }
    return e;
}

static void assign_roles(struct bench_area *area, const struct bench_wish *w)
{
    for (unsigned a = 0; a < 2; a++)
        for (unsigned k = 0; k < COUNTS && w->apis & 1u << over[a]; k++)
            bench_assign_role(area, pair_of(over[a], k), bench_api_name(over[a]), 2, counts[k]);
}

static int step(struct bench_run *r, struct bench_unit *first, size_t n)
{
    unsigned api = bench_unit_api(first);
    double with_one = NAN;
    for (unsigned k = 0; k < COUNTS; k++) {
        struct bench_unit *u = bench_find(first, n, BENCH_PEERS, api, counts[k]);
        double value = NAN, cpu_ns;
        if (!u)
            continue;
        int e = bench_repeat(r, u, BENCH_LATENCY, pair_of(api, k), 0, &u->api[api], &value, &cpu_ns);
        if (e == 0 && !isnan(value))
            e = bench_take_tail(r, pair_of(api, k), &u->now_tail);
        if (e)
            return e;
        if (k == 0)
            with_one = value;
        bench_put(u, value, with_one);
    }
    return 0;
}

const struct bench_scenario bench_scenario_peers = {
    .name = "peers",
    .share = 2,
    .apis = 1u << BENCH_NATIVE | 1u << BENCH_FM,
    .sizes = true,
    .plan = plan,
    .assign_roles = assign_roles,
    .step = step,
};
