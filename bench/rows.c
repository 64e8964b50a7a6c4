/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rows.c - from kept trials to rows: medians over the trials of one placement, ratios trial by trial. */
#include "stats.h"
#include "trials.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *bench_placement_name(enum bench_placement p)
{
    static const char *const name[] = {"near", "far", "one-core", "flipped"};
    return name[p <= BENCH_FLIPPED ? p : BENCH_FLIPPED];
}

const char *bench_test_name(enum bench_test t)
{
    static const char *const name[] = {
        "probe",        "latency",      "rate",         "bandwidth",    "bandwidth-alone", "fresh",       "fresh-alone",
        "waiting",      "peers",        "idle-wait",    "idle-poll",    "idle-extract",    "wake-wait",   "wake-poll",
        "wake-unarmed", "wake-armed",   "barrier",      "layered",      "layered-stream",  "startup-run", "startup-job",
        "memory-peer",  "memory-all",   "loss-stream",  "loss-trip",    "am-trip",         "am-rate",     "am-bulk",
        "am-waiting",   "am-loss-trip", "am-loss-rate", "am-loss-bulk", "am-par",          "put-landed",  "put-used",
        "put-notify",   "put-add",      "put-get",      "put-import",   "rpc-null",        "rpc-send",    "rpc-once",
        "panda-call",   "panda-group",  "panda-stream", "orca-roi",     "orca-inc",        "orca-goi",    "orca-put",
        "orca-all",     "orca-read",    "quit"};
    _Static_assert(sizeof name / sizeof *name == BENCH_QUIT + 1, "a name for each test");
    return name[t <= BENCH_QUIT ? t : BENCH_QUIT];
}

const char *bench_test_unit(enum bench_test t)
{
    switch (t) {
    case BENCH_RATE:
    case BENCH_AM_RATE:
    case BENCH_AM_LOSS_RATE:
        return "M/s";
    case BENCH_BANDWIDTH:
    case BENCH_BANDWIDTH_ALONE:
    case BENCH_FRESH:
    case BENCH_FRESH_ALONE:
    case BENCH_LOSS_STREAM:
    case BENCH_AM_BULK:
    case BENCH_AM_LOSS_BULK:
    case BENCH_PANDA_STREAM:
        return "GB/s";
    case BENCH_LAYERED:
    case BENCH_LAYERED_STREAM:
        return "MB/s";
    case BENCH_IDLE_WAIT:
    case BENCH_IDLE_POLL:
    case BENCH_IDLE_EXTRACT:
        return "ms/s";
    case BENCH_WAKE_WAIT:
    case BENCH_WAKE_POLL:
    case BENCH_BARRIER:
    case BENCH_PUT_IMPORT:
    case BENCH_RPC_ONCE:
        return "us";
    case BENCH_STARTUP_RUN:
    case BENCH_STARTUP_JOB:
        return "ms";
    case BENCH_MEMORY_PEER:
    case BENCH_MEMORY_ALL:
        return "kB";
    default:
        return "ns";
    }
}

const char *bench_api_name(unsigned api)
{
    static const char *const name[BENCH_APIS] = {
        "raw",      "native",   "fm",     "fm1",       "tcp",       "am",        "memcpy",    "movsb",
        "nt",       "panda",    "orca",   "no-switch", "no-layers", "no-pieces", "no-copies", "openmpi",
        "ompi-ucx", "mpich",    "ucx-am", "ucx-tag",   "libfabric", "provider",  "ompi-rnl",  "mpich-rnl",
        "ucx-put",  "corosync", "rpc",    "tirpc-tcp", "tirpc-udp", "tirpc-unix"};
    return api < BENCH_APIS ? name[api] : "?";
}

const char *bench_pair_name(const struct bench_area *a, unsigned pair)
{
    return a->pair[pair].role[0] ? a->pair[pair].role : bench_api_name(pair);
}

const char *bench_test_data(enum bench_test test, uint64_t bytes)
{
    switch (test) {
    case BENCH_LATENCY:
    case BENCH_RATE:
    case BENCH_WAITING:
        return bytes > 8 ? "unchanged" : NULL;
    case BENCH_BANDWIDTH:
    case BENCH_BANDWIDTH_ALONE:
        return "rewritten";
    case BENCH_FRESH:
    case BENCH_FRESH_ALONE:
        return "fresh";
    default:
        return NULL;
    }
}

bool bench_row_above(const struct bench_row *r)
{
    const double most = 1 + BENCH_ABOVE_PERCENT / 100.0;
    bool ours = r->api == BENCH_NATIVE || r->api == BENCH_FM || r->api == BENCH_FM1;
    bool of_pairs = bench_is_bulk(r->test, r->bytes) || r->test == BENCH_LATENCY || r->test == BENCH_RATE;
    if (!ours || !of_pairs || r->udp || r->trials < BENCH_ABOVE_TRIALS || isnan(r->ratio))
        return false;
    return bench_is_latency(r->test) ? r->ratio * most < 1 : r->ratio > most;
}

/* Names the variant of a baseline over shared memory. */
static void name_way(struct bench_row *row, unsigned variant)
{
    if (bench_is_bulk(row->test, row->bytes))
        baseline_through_text(variant, row->way, sizeof row->way);
    else if (row->test == BENCH_RATE)
        snprintf(row->way, sizeof row->way, variant ? "full lines, nt" : "open lines");
}

static bool better(enum bench_test test, double a, double b)
{
    const char *unit = bench_test_unit(test);
    return !strcmp(unit, "ns") || !strcmp(unit, "us") ? a < b : a > b;
}

/* The median over the trials of one placement of what `get` says, NANs left out. */
static double median_of(const struct bench_unit *u, enum bench_placement placement, double *room, size_t *n,
                        double (*get)(const struct bench_trial *, unsigned, unsigned), unsigned x, unsigned y)
{
    *n = 0;
    for (size_t i = 0; i < u->trials; i++) {
        double v = u->trial[i].placement == placement ? get(&u->trial[i], x, y) : NAN;
        if (!isnan(v))
            room[(*n)++] = v;
    }
    return *n ? bench_median(room, *n) : NAN;
}

static double get_baseline(const struct bench_trial *r, unsigned variant, unsigned unused)
{
    (void)unused;
    return r->baseline[variant];
}

static double get_value(const struct bench_trial *r, unsigned api, unsigned unused)
{
    (void)unused;
    return r->value[api];
}

static double get_ratio(const struct bench_trial *r, unsigned api, unsigned variant)
{
    return r->value[api] / r->baseline[variant];
}

static double get_baseline_cpu(const struct bench_trial *r, unsigned variant, unsigned unused)
{
    (void)unused;
    return r->baseline_cpu_ns[variant];
}

static double get_cpu(const struct bench_trial *r, unsigned api, unsigned unused)
{
    (void)unused;
    return r->cpu_ns[api];
}

static double get_probe(const struct bench_trial *r, unsigned unused, unsigned unused2)
{
    (void)unused;
    (void)unused2;
    return r->probe_ns;
}

static void tail(const struct bench_series *s, struct bench_row *row)
{
    const struct rnl_hist *h = s->tail[row->placement];
    if (!h)
        return;
    double scale = strcmp(bench_test_unit(row->test), "us") ? 2 : 1000; /* round trips in ns, or single times in us */
    row->p50 = (double)rnl_hist_percentile(h, 50) / scale;
    row->p999 = (double)rnl_hist_percentile(h, 99.9) / scale;
}

static void unit_rows(const struct bench_unit *u, enum bench_placement placement, bool udp, double *room,
                      struct bench_row *out, size_t *rows)
{
    size_t n, baselines = 0;
    unsigned best = 0;
    double baseline = NAN, probe = median_of(u, placement, room, &n, get_probe, 0, 0);
    size_t most = 0;
    for (unsigned v = 0; v < BENCH_VARIANTS; v++) {
        (void)median_of(u, placement, room, &n, get_baseline, v, 0);
        most = n > most ? n : most;
    }
    for (unsigned v = 0; v < BENCH_VARIANTS; v++) {
        double m = median_of(u, placement, room, &n, get_baseline, v, 0);
        if (2 * n < most) /* left out for most of the time, since it was far behind (trials.c): its median is of few */
            continue;
        if (!isnan(m) && (isnan(baseline) || better(u->test, m, baseline))) {
            baseline = m;
            best = v;
            baselines = n;
        }
    }
    for (unsigned a = 0; a < BENCH_APIS; a++) {
        if (a == BENCH_RAW ? u->scenario != NULL : !(u->apis & 1u << a))
            continue;
        struct bench_row *row = &out[(*rows)++];
        *row = (struct bench_row){.test = u->test,
                                  .api = a,
                                  .bytes = u->bytes,
                                  .n = u->n,
                                  .placement = placement,
                                  .shown = u->shown,
                                  .data = u->scenario ? NULL : bench_test_data(u->test, u->bytes),
                                  .baseline = baseline,
                                  .probe_ns = probe,
                                  .p50 = NAN,
                                  .p999 = NAN,
                                  .cpu_ns = NAN};
        bool cpu = bench_is_latency(u->test) || u->test == BENCH_RATE;
        if (a == BENCH_RAW) {
            row->value = baseline;
            row->trials = baselines;
            row->tried = u->baseline[best].tried;
            row->ratio = isnan(baseline) ? NAN : 1;
            if (!udp && !isnan(baseline))
                name_way(row, best);
            tail(&u->baseline[best], row);
            if (cpu)
                row->cpu_ns = median_of(u, placement, room, &n, get_baseline_cpu, best, 0);
        } else {
            size_t ratios;
            row->tried = u->api[a].tried;
            row->value = median_of(u, placement, room, &row->trials, get_value, a, 0);
            row->ratio = median_of(u, placement, room, &ratios, get_ratio, a, best);
            tail(&u->api[a], row);
            if (cpu)
                row->cpu_ns = median_of(u, placement, room, &n, get_cpu, a, 0);
        }
    }
}

int bench_rows(const struct bench_plan *p, bool one_core, struct bench_row **rows, size_t *n)
{
    size_t most = 1;
    for (size_t i = 0; i < p->units; i++)
        if (p->unit[i].trials > most)
            most = p->unit[i].trials;
    struct bench_row *out = calloc(p->units * BENCH_APIS * BENCH_PLACEMENTS + 1, sizeof *out);
    double *room = calloc(most, sizeof *room);
    if (!out || !room) {
        free(out);
        free(room);
        return -ENOMEM;
    }
    *n = 0;
    for (unsigned k = 0; k < BENCH_PLACEMENTS; k++)
        if ((k == BENCH_ONE_CORE) == one_core)
            for (size_t i = 0; i < p->units; i++)
                unit_rows(&p->unit[i], k, p->udp, room, out, n);
    for (size_t i = 0; i < *n; i++) {
        unsigned a = out[i].api;
        out[i].udp = p->udp;
        out[i].via = p->via;
        out[i].about = p->about[a][0] ? p->about[a] : NULL;
        out[i].lost = p->lost[a][0] ? p->lost[a] : NULL;
    }
    free(room);
    *rows = out;
    return 0;
}
