/* SPDX-License-Identifier: BSD-3-Clause
 *
 * put_rows.c - the rows of the test of puts (job_put.c), and what each is measured against. */
#include "baseline_copy.h"
#include "put_area.h"
#include "scenario.h"

#include <math.h>

enum { PAIR = 1, WORD = 8 };

static const struct {
    enum put_way way;
    unsigned api;
} copies[] = {{BARE_PLAIN, BENCH_MEMCPY}, {BARE_STRING, BENCH_MOVSB}, {BARE_STREAM, BENCH_NT}};
enum { COPIES = sizeof copies / sizeof *copies };

static int add(struct bench_plan *p, enum bench_test test, unsigned api, uint64_t bytes, unsigned step)
{
    return bench_scenario_add(p, &bench_scenario_put, test, api, 0, bytes, step, true);
}

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    static const uint64_t sizes[] = {WORD, 4 << 10, 64 << 10, PUT_BYTES_MAX};
    unsigned step = 0;
    int e = 0;
    for (unsigned t = BENCH_PUT_LANDED; t <= BENCH_PUT_USED; t++)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++, step++) {
            if (w->udp && (t == BENCH_PUT_USED || (sizes[i] != WORD && sizes[i] != PUT_BYTES_MAX)))
                continue;
            e = e ? e : add(p, (enum bench_test)t, BENCH_NATIVE, sizes[i], step);
            if (!w->udp && w->peers & 1u << BENCH_UCX_PUT)
                e = e ? e : add(p, (enum bench_test)t, BENCH_UCX_PUT, sizes[i], step);
            for (unsigned k = 0; k < COPIES && !w->udp && sizes[i] > WORD; k++)
                if (baseline_copy_way((enum baseline_copy_way)copies[k].way))
                    e = e ? e : add(p, (enum bench_test)t, copies[k].api, sizes[i], step);
        }
    e = e ? e : add(p, BENCH_PUT_NOTIFY, BENCH_NATIVE, WORD, step++);
    e = e ? e : add(p, BENCH_PUT_ADD, BENCH_NATIVE, WORD, step);
    if (!w->udp && w->peers & 1u << BENCH_UCX_PUT)
        e = e ? e : add(p, BENCH_PUT_ADD, BENCH_UCX_PUT, WORD, step);
    step++;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++, step++) {
        if (w->udp && sizes[i] != WORD && sizes[i] != PUT_BYTES_MAX)
            continue;
        e = e ? e : add(p, BENCH_PUT_GET, BENCH_NATIVE, sizes[i], step);
        if (!w->udp && w->peers & 1u << BENCH_UCX_PUT)
            e = e ? e : add(p, BENCH_PUT_GET, BENCH_UCX_PUT, sizes[i], step);
    }
    if (!w->udp)
        e = e ? e : add(p, BENCH_PUT_IMPORT, BENCH_NATIVE, PUT_BYTES_MAX, step++);
    return e;
}

static void assign_roles(struct bench_area *area, const struct bench_wish *w)
{
    (void)w;
    bench_assign_role(area, PAIR, "put", 2, 0);
}

/* The baselines of a put, which are rows, too: each way to copy, in its own series of the unit of windows. */
static int baselines_of(struct bench_run *r, struct bench_unit *u, double *baseline)
{
    double cpu_ns;
    int e = 0;
    if (r->plan->udp || u->test == BENCH_PUT_NOTIFY)
        return bench_repeat(r, u, u->test, PAIR, BY_MESSAGE, &u->baseline[0], &baseline[0], &cpu_ns);
    for (unsigned k = 0; k < COPIES && e == 0; k++)
        if (k == 0 || ((u->test <= BENCH_PUT_USED || u->test == BENCH_PUT_GET) && u->bytes > WORD &&
                       baseline_copy_way((enum baseline_copy_way)copies[k].way)))
            e = bench_repeat(r, u, u->test, PAIR, copies[k].way, &u->baseline[k], &baseline[k], &cpu_ns);
    return e;
}

static int step(struct bench_run *r, struct bench_unit *first, size_t n)
{
    double baseline[COPIES] = {NAN, NAN, NAN}, value = NAN, cpu_ns;
    struct bench_unit *native = bench_find(first, n, first->test, BENCH_NATIVE, 0);
    struct bench_unit *ucx = bench_find(first, n, first->test, BENCH_UCX_PUT, 0);
    int e = native ? baselines_of(r, native, baseline) : 0;
    if (e == 0 && native)
        e = bench_repeat(r, native, first->test, PAIR, BY_WINDOW, &native->api[BENCH_NATIVE], &value, &cpu_ns);
    if (e == 0 && native)
        native->now.value[BENCH_NATIVE] = value;
    value = NAN;
    if (e == 0 && ucx && !r->plan->lost[BENCH_UCX_PUT][0])
        e = bench_repeat(r, ucx, first->test, BENCH_UCX_PUT, 0, &ucx->api[BENCH_UCX_PUT], &value, &cpu_ns);
    if (e == 0 && ucx)
        ucx->now.value[BENCH_UCX_PUT] = value;
    for (struct bench_unit *u = first; u < first + n && e == 0; u++) {
        if (u->step != first->step)
            continue;
        for (unsigned k = 0; k < COPIES; k++) {
            u->now.baseline[k] = baseline[k];
            if (u->apis == 1u << copies[k].api) {
                u->now.value[copies[k].api] = baseline[k];
                u->api[copies[k].api].tried = native ? native->baseline[k].tried : 0;
            }
        }
    }
    return e;
}

const struct bench_scenario bench_scenario_put = {
    .name = "put",
    .share = 4,
    .apis = 1u << BENCH_NATIVE,
    .peers = 1u << BENCH_UCX_PUT,
    .plan = plan,
    .assign_roles = assign_roles,
    .step = step,
};
