/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_layered.c - the thesis of the FM papers on today's machine: how much of Fast Messages is left for a layer above
 * it. The layer (layer.h) adds a header of 24 bytes and delivers each payload into the buffer that it picks; its bytes
 * a second are the value, those of the bare interface with messages of the payload's size, from the same pair of
 * processes in the same trial, the baseline; so the ratio is the efficiency of figures 4 (b) and 6 (b). Ping-pong, one
 * message at a time; and a stream. */
#include "process.h"
#include "scenario.h"

#include <math.h>

enum { FM_PAIR = 1, FM1_PAIR = 2 };
enum { BARE, LAYERED }; /* variants */

static int add(struct bench_plan *p, const struct bench_wish *w, uint64_t bytes, bool shown, unsigned *step)
{
    static const enum bench_test tests[] = {BENCH_LAYERED, BENCH_LAYERED_STREAM};
    static const unsigned over[] = {BENCH_FM, BENCH_FM1};
    int e = 0;
    for (unsigned a = 0; a < 2; a++) {
        if (!(w->apis & 1u << over[a]) || (over[a] == BENCH_FM1 && bytes > bench_role_layer_fm1.most_bytes))
            continue;
        for (unsigned t = 0; t < 2 && e == 0; t++, ++*step)
            e = bench_scenario_add(p, &bench_scenario_layered, tests[t], over[a], 0, bytes, *step, shown);
    }
    return e;
}

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    static const uint64_t table[] = {16, 1024, 65536};
    unsigned step = 0, n = w->sizes ? w->sizes : sizeof table / sizeof *table;
    int e = 0;
    for (unsigned i = 0; i < n && e == 0; i++)
        e = add(p, w, w->sizes ? w->size[i] : table[i], true, &step);
    for (uint64_t bytes = 32; bytes <= 256 << 10 && w->plot && !w->sizes && e == 0; bytes *= 2)
        if (bytes != 1024 && bytes != 65536)
            e = add(p, w, bytes, false, &step);
    return e;
}

static void assign_roles(struct bench_area *area, const struct bench_wish *w)
{
    if (w->apis & 1u << BENCH_FM)
        bench_assign_role(area, FM_PAIR, "layer-fm", 2, 0);
    if (w->apis & 1u << BENCH_FM1)
        bench_assign_role(area, FM1_PAIR, "layer-fm1", 2, 0);
}

static int step(struct bench_run *r, struct bench_unit *u, size_t n)
{
    unsigned pair = bench_unit_api(u) == BENCH_FM ? FM_PAIR : FM1_PAIR;
    enum bench_test as = u->test == BENCH_LAYERED ? BENCH_LATENCY : BENCH_RATE;
    double got[2] = {NAN, NAN}, cpu_ns;
    (void)n;
    for (unsigned turn = 0; turn < 2; turn++) {
        unsigned v = turn ^ (u->trials & 1); /* neither always finds the caches that the other left */
        struct bench_series *series = v == BARE ? &u->baseline[0] : &u->api[bench_unit_api(u)];
        int e = bench_repeat(r, u, as, pair, v, series, &got[v], &cpu_ns);
        if (e)
            return e;
        /* ns a message, or million messages a second, to MB/s */
        got[v] = as == BENCH_LATENCY ? (double)u->bytes * 1e3 / got[v] : (double)u->bytes * got[v];
    }
    bench_put(u, got[LAYERED], got[BARE]);
    return 0;
}

const struct bench_scenario bench_scenario_layered = {
    .name = "layered",
    .share = 3,
    .apis = 1u << BENCH_FM | 1u << BENCH_FM1,
    .sizes = true,
    .plots = true,
    .plan = plan,
    .assign_roles = assign_roles,
    .step = step,
};
