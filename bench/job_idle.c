/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_idle.c - what waiting costs: processor time of a process that waits a second for messages that do not come, in ms
 * per second, with 1 and with 63 connected peers. The baseline is a process that sleeps as long in one system call. All
 * that sleep do so at the same time; then the two that never sleep, a loop of rnl_extract, each on a core. */
#include "process.h"
#include "scenario.h"

#include "runnel/fm.h"
#include "runnel/runnel.h"

#include <math.h>
#include <poll.h>

static const unsigned counts[] = {1, 63};
enum {
    COUNTS = sizeof counts / sizeof *counts,
    NATIVE_PAIR = 1,
    FM_PAIR = NATIVE_PAIR + COUNTS,
    PAIRS = FM_PAIR + COUNTS
};

/* ---- the process that waits ---- */

static rnl_endpoint *ep;
static struct bench_process *self; /* FM's error handler has no argument for it */

static int native_open(struct bench_process *s)
{
    if (rnl_open(&ep, NULL))
        return bench_process_fail(s, "%s", rnl_last_error()->text);
    s->rank = rnl_rank(ep);
    return bench_process_check_size(s, rnl_size(ep)) ? -1 : bench_connect_native(s, ep, 1);
}

static void native_close(struct bench_process *s)
{
    if (rnl_close(ep))
        bench_process_fail(s, "%s", rnl_last_error()->text);
}

/* One wait, by the way that the order names, at most until end_ns. Negative: failed. */
static int64_t native_wait(uint32_t test, uint64_t now_ns, uint64_t end_ns)
{
    if (test == BENCH_IDLE_WAIT)
        return rnl_wait(ep, (int64_t)(end_ns - now_ns));
    int64_t got = 0;
    for (unsigned i = 0; i < (test == BENCH_IDLE_EXTRACT ? 1000 : 1) && got >= 0; i++)
        got = rnl_extract(ep, SIZE_MAX);
    if (test == BENCH_IDLE_POLL && got == 0) {
        struct pollfd p = {.fd = rnl_fd(ep), .events = POLLIN};
        if (p.fd < 0)
            return p.fd;
        (void)poll(&p, 1, (int)((end_ns - now_ns + 999999) / 1000000));
    }
    return got;
}

static int native_run(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    uint64_t cpu0 = bench_cpu_ns(), t0 = bench_now_ns(), end = t0 + o->count * 1000000, now = t0;
    while (now < end) {
        int64_t got = native_wait(o->test, now, end);
        if (got < 0 && got != RNL_TIMED_OUT)
            return bench_process_fail(s, "%s", rnl_last_error()->text);
        now = bench_now_ns();
    }
    a->value = (double)(bench_cpu_ns() - cpu0) / (double)(now - t0) * 1e3;
    return 0;
}

static void on_error(int status, unsigned long peer, const char *sentence)
{
    (void)status, (void)peer;
    bench_process_fail(self, "%s", sentence);
}

static int fm_open(struct bench_process *s)
{
    self = s;
    FM_set_parameter(FM_ERROR_HANDLER, on_error);
    FM_initialize();
    if (s->status)
        return -1;
    s->rank = (unsigned)FM_nodeid;
    return bench_process_check_size(s, FM_numnodes) ? -1 : bench_connect_fm(s, 1);
}

static void fm_close(struct bench_process *s)
{
    (void)s;
    FM_finalize();
}

static int fm_run(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    uint64_t cpu0 = bench_cpu_ns(), t0 = bench_now_ns(), end = t0 + o->count * 1000000, now = t0;
    for (; now < end && s->status == 0; now = bench_now_ns())
        (void)FM_wait((long)((end - now + 999) / 1000));
    a->value = (double)(bench_cpu_ns() - cpu0) / (double)(now - t0) * 1e3;
    return s->status;
}

const struct bench_api bench_role_idle_native = {
    .name = "idle-native",
    .open = native_open,
    .close = native_close,
    .run = native_run,
};
const struct bench_api bench_role_idle_fm = {
    .name = "idle-fm",
    .open = fm_open,
    .close = fm_close,
    .run = fm_run,
};

/* ---- the scenario ---- */

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    static const struct {
        enum bench_test test;
        unsigned api;
    } way[] = {{BENCH_IDLE_WAIT, BENCH_NATIVE},
               {BENCH_IDLE_WAIT, BENCH_FM},
               {BENCH_IDLE_POLL, BENCH_NATIVE},
               {BENCH_IDLE_EXTRACT, BENCH_NATIVE}};
    int e = 0;
    for (unsigned i = 0; i < sizeof way / sizeof *way; i++)
        for (unsigned k = 0; k < COUNTS && e == 0 && w->apis & 1u << way[i].api; k++)
            e = bench_scenario_add(p, &bench_scenario_idle, way[i].test, way[i].api, counts[k], 0, 0, true);
    return e;
}

static void assign_roles(struct bench_area *area, const struct bench_wish *w)
{
    for (unsigned k = 0; k < COUNTS; k++) {
        if (w->apis & 1u << BENCH_NATIVE)
            bench_assign_role(area, NATIVE_PAIR + k, "idle-native", 1, counts[k]);
        if (w->apis & 1u << BENCH_FM)
            bench_assign_role(area, FM_PAIR + k, "idle-fm", 1, counts[k]);
    }
}

/* All pairs at once: one of them, or BENCH_RAW for the baseline. */
static int wait_all(struct bench_run *r, enum bench_test test, const bool takes_part[PAIRS], uint64_t ms,
                    double value[PAIRS])
{
    const struct bench_order o = {.test = test, .count = ms};
    int e = 0;
    for (unsigned i = 0; i < PAIRS; i++)
        if (takes_part[i])
            bench_pair_order(&r->area->pair[i], &o);
    for (unsigned i = 0; i < PAIRS; i++)
        if (takes_part[i]) {
            int this = bench_await(r, i);
            e = e ? e : this;
            value[i] = r->area->pair[i].answer[0].value;
        }
    return e;
}

static int step(struct bench_run *r, struct bench_unit *first, size_t n)
{
    static const enum bench_test tests[] = {BENCH_IDLE_WAIT, BENCH_IDLE_POLL, BENCH_IDLE_EXTRACT};
    uint64_t now = bench_now_ns(), left_ms = now < r->end_ns ? (r->end_ns - now) / 1000000 : 0;
    uint64_t ms = left_ms / 3 > 1000 ? 1000 : left_ms / 3 < 100 ? 100 : left_ms / 3;
    double baseline = NAN;
    for (unsigned t = 0; t < 3; t++) {
        struct bench_unit *unit[PAIRS] = {0};
        bool takes_part[PAIRS] = {[BENCH_RAW] = t == 0};
        double value[PAIRS] = {0};
        bool any = false;
        for (unsigned k = 0; k < COUNTS; k++) {
            unit[NATIVE_PAIR + k] = bench_find(first, n, tests[t], BENCH_NATIVE, counts[k]);
            unit[FM_PAIR + k] = bench_find(first, n, tests[t], BENCH_FM, counts[k]);
        }
        for (unsigned i = NATIVE_PAIR; i < PAIRS; i++)
            any |= takes_part[i] = unit[i] != NULL;
        int e = any ? wait_all(r, tests[t], takes_part, ms, value) : 0;
        if (e)
            return e;
        if (t == 0)
            baseline = value[BENCH_RAW];
        for (unsigned i = NATIVE_PAIR; i < PAIRS; i++)
            if (unit[i])
                bench_put(unit[i], value[i], baseline);
    }
    return 0;
}

const struct bench_scenario bench_scenario_idle = {
    .name = "idle",
    .share = 2,
    .apis = 1u << BENCH_NATIVE | 1u << BENCH_FM,
    .plan = plan,
    .assign_roles = assign_roles,
    .step = step,
};
