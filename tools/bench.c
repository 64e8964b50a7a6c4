/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench.c - `runnel bench`: what is to be measured, and how it is shown. The measuring is in bench/, the processes are
 * in bench_jobs.c, the command line is in bench_options.c. */
#include "bench_jobs.h"
#include "bench_options.h"
#include "launch.h"
#include "machine.h"
#include "peer.h"
#include "process.h"
#include "report.h"
#include "scenario.h"
#include "tool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    ATTACH_MS = 60000,   /* a hundred and more processes may have to start */
    MOST_WAITING = 1024, /* one datagram */
    STATUS_ABOVE = 2,
    PAIR_SHARE = 5
};

static int complain(const char *text)
{
    fprintf(stderr, "runnel bench: %s\n", text);
    return 1;
}

static unsigned apis_for(const struct bench_options *q, enum bench_test test, uint64_t bytes)
{
    unsigned apis = (q->apis | q->peer_apis) & BENCH_OF_PAIRS;
    if (test == BENCH_WAITING)
        apis &= 1u << BENCH_NATIVE | 1u << BENCH_FM | 1u << BENCH_TCP;
    return bytes > bench_api_fm1.most_bytes ? apis & ~(1u << BENCH_FM1) : apis;
}

static int make_plan(const struct bench_options *q, const struct bench_wish *w, struct bench_plan *p)
{
    enum { SMALL, LARGE, FRESH };
    static const struct {
        unsigned sizes;
        uint64_t size[4];
    } default_sizes[] = {
        [SMALL] = {1, {8}}, [LARGE] = {2, {64 << 10, 1 << 20}}, [FRESH] = {4, {4 << 10, 64 << 10, 1 << 20, 4 << 20}}};
    static const enum bench_test tests[] = {BENCH_LATENCY, BENCH_RATE,        BENCH_BANDWIDTH, BENCH_BANDWIDTH_ALONE,
                                            BENCH_FRESH,   BENCH_FRESH_ALONE, BENCH_WAITING};
    int e = 0;
    p->udp = q->net.udp;
    p->via = *q->net.via ? q->net.via : NULL;
    for (unsigned t = 0; t < sizeof tests / sizeof *tests; t++) {
        int of = 1u << tests[t] & BENCH_FRESH_TESTS                                 ? FRESH
                 : tests[t] == BENCH_BANDWIDTH || tests[t] == BENCH_BANDWIDTH_ALONE ? LARGE
                                                                                    : SMALL;
        const uint64_t *size = q->sizes ? q->size : default_sizes[of].size;
        unsigned sizes = q->sizes ? q->sizes : default_sizes[of].sizes;
        if (!(q->tests & 1u << tests[t]))
            continue;
        for (unsigned i = 0; i < sizes && e == 0; i++)
            if (tests[t] != BENCH_WAITING || size[i] <= MOST_WAITING)
                e = bench_plan_add(p, tests[t], size[i], apis_for(q, tests[t], size[i]), true);
        static const uint64_t more[] = {16, 1 << 10, 64 << 10, 1 << 20};
        for (size_t i = 0; q->mpi && !q->sizes && tests[t] == BENCH_LATENCY && i < sizeof more / sizeof *more && e == 0;
             i++)
            e = bench_plan_add(p, tests[t], more[i], apis_for(q, tests[t], more[i]), true);
        if (!q->plot || q->sizes)
            continue;
        if (tests[t] == BENCH_LATENCY)
            for (uint64_t bytes = 8; bytes <= 64 << 10 && e == 0; bytes *= 2)
                e = bench_plan_add(p, tests[t], bytes, apis_for(q, tests[t], bytes), false);
        if (tests[t] == BENCH_BANDWIDTH)
            for (uint64_t bytes = 64; bytes <= 4 << 20 && e == 0; bytes *= 2)
                e = bench_plan_add(p, tests[t], bytes, apis_for(q, tests[t], bytes), false);
    }
    for (unsigned i = 0; bench_scenarios[i] && e == 0; i++)
        if (q->scenarios & 1u << i)
            e = bench_scenarios[i]->plan(p, w);
    return e;
}

static const char *measuring; /* what show_progress speaks of */

static void show_progress(void *arg, double seconds_left)
{
    static uint64_t last;
    uint64_t now = bench_now_ns();
    (void)arg;
    if (now - last > 500000000) {
        last = now;
        fprintf(stderr, "\rmeasuring %s, %.0f s left ", measuring, seconds_left);
    }
}

/* A trial can be there without one value: each repetition in it was interrupted. */
static bool has_value(const struct bench_unit *u)
{
    for (size_t i = 0; i < u->trials; i++) {
        for (unsigned v = 0; v < BENCH_VARIANTS; v++)
            if (!isnan(u->trial[i].baseline[v]))
                return true;
        for (unsigned a = 0; a < BENCH_APIS; a++)
            if (!isnan(u->trial[i].value[a]))
                return true;
    }
    return false;
}

/* What the rows do not say. False if there is nothing else to say: nothing was measured. */
static bool remarks(FILE *f, const struct bench_options *q, const struct bench_plan *p)
{
    unsigned flipped = 0, preempted = 0, cut = 0, empty = 0, no_fm1 = 0;
    for (size_t i = 0; i < p->units; i++) {
        flipped += p->unit[i].flipped;
        preempted += p->unit[i].preempted;
        cut += p->unit[i].cut;
        const struct bench_unit *u = &p->unit[i];
        empty += !has_value(u);
        bool with_fm1 = q->apis & 1u << BENCH_FM1 && (!u->scenario || u->scenario->apis & 1u << BENCH_FM1);
        no_fm1 += u->shown && u->bytes > bench_api_fm1.most_bytes && with_fm1;
    }
    if (preempted)
        fprintf(f, "%u repetitions were interrupted by other programs and run again.\n", preempted);
    if (cut)
        fprintf(f,
                "%u repetitions were ended before they were done, for --max-time %g; they count as far as they went.\n",
                cut, q->seconds);
    if (flipped)
        fprintf(f, "%u trials were thrown away: the cores' placement changed meanwhile.\n", flipped);
    if (empty)
        fprintf(f, "%u of %zu measurements had no undisturbed turn: --max-time %g is short for them.\n", empty,
                p->units, q->seconds);
    if (no_fm1)
        fprintf(f, "FM 1.1 was left out above 1M, its longest message.\n");
    return empty < p->units;
}

/* Names the rows that are better than their baseline; returns how many. */
static unsigned name_above(FILE *f, const struct bench_row *row, size_t n)
{
    unsigned above = 0;
    for (size_t i = 0; i < n; i++) {
        char bytes[24];
        if (!bench_row_above(&row[i]))
            continue;
        bench_bytes_text(row[i].bytes, bytes);
        fprintf(f, "%s %s, %s, %s: %.2f of its baseline, so the baseline is not the best that this machine allows.\n",
                bench_test_name(row[i].test), bytes, bench_api_name(row[i].api), bench_placement_name(row[i].placement),
                row[i].ratio);
        above++;
    }
    return above;
}

static int show(const struct bench_options *q, const struct bench_plan *p, bool one_core, const char *machine)
{
    char text[512];
    struct bench_row *row;
    size_t n;
    if (bench_rows(p, one_core, &row, &n))
        return complain("no memory for the results");
    if (q->json) {
        bench_report_json(stdout, row, n);
    } else {
        printf("%s\n", machine);
        if (*q->net.via)
            printf("over %s, between two network namespaces\n", q->net.via);
        else if (q->netns)
            printf("over udp, between two network namespaces\n");
        else if (q->net.udp)
            printf("over udp, on the loopback interface\n");
        fputc('\n', stdout);
        bench_report_table(stdout, row, n);
        bench_report_efficiency(stdout, row, n);
        fputc('\n', stdout);
    }
    bench_report_peers(q->json ? stderr : stdout, p);
    int status = 0;
    if (!remarks(q->json ? stderr : stdout, q, p)) {
        complain(
            "nothing was measured: other programs got in between each time. Give a longer --max-time, or stop them");
        status = EX_TEMPFAIL;
    }
    if (name_above(q->json ? stderr : stdout, row, n) && q->check && status == 0)
        status = STATUS_ABOVE;
    if (q->plot && bench_plot(q->plot, row, n, q->json ? stderr : stdout, text, sizeof text))
        status = complain(text);
    if (fflush(stdout) || ferror(stdout))
        status = complain("could not write the results: is the disk full or the pipe closed?");
    free(row);
    return status;
}

/* The pairs (!scenario) or one scenario: with processes of its own, which are gone when it returns. */
static int measure(struct bench_options *q, const struct bench_wish *w, struct bench_plan *p,
                   const struct bench_scenario *scenario, double seconds, bool *one_core)
{
    struct bench_area *a;
    struct bench_jobs jobs;
    int fd, e = bench_area_create(&a, &fd);
    if (e) {
        fprintf(stderr, "runnel bench: no shared memory (memfd_create): %s\n", strerror(-e));
        return 1;
    }
    *one_core = bench_choose_cpus(a->cpu) < 2;
    a->one_core = *one_core;
    a->net = q->net;
    a->beside = q->beside;
    a->ns_per_tick = bench_ns_per_tick();
    for (size_t i = 0; i < p->units; i++)
        if (p->unit[i].bytes > a->most_bytes)
            a->most_bytes = p->unit[i].bytes;
    for (unsigned api = BENCH_RAW + 1; api < BENCH_TCP && !scenario; api++)
        if (q->apis & 1u << api)
            bench_assign_role(a, api, bench_api_name(api), 2, 0);
    if (scenario && scenario->assign_roles)
        scenario->assign_roles(a, w);
    unsigned peer_apis = q->peer_apis & (scenario ? scenario->peers : BENCH_OF_PAIRS);
    unsigned bare =
        scenario ? (scenario->sockets ? 1u << BENCH_RAW : 0) : (q->apis & 1u << BENCH_TCP) | 1u << BENCH_RAW;
    e = bench_jobs_start(&jobs, a, fd, bare, p->text, sizeof p->text);
    if (e == 0)
        e = bench_peers_start(&q->peers, a, fd, peer_apis, p->text, sizeof p->text);
    struct bench_run run = {.area = a,
                            .area_path = jobs.area_path,
                            .plan = p,
                            .alive = bench_jobs_alive,
                            .arg = &jobs,
                            .peer_ms = (unsigned)(q->peer_seconds * 1e3),
                            .drop = bench_peers_drop,
                            .peers = &q->peers};
    measuring = scenario ? scenario->name : "pairs";
    bool terminal = isatty(STDERR_FILENO);
    if (terminal)
        run.progress = show_progress;
    for (unsigned pair = 0; pair < BENCH_MAX_PAIRS && e == 0; pair++)
        if (pair == BENCH_RAW || a->pair[pair].role[0] || bare & 1u << pair)
            e = bench_attached(&run, pair, ATTACH_MS);
        else if (peer_apis & 1u << pair)
            e = bench_attached(&run, pair, run.peer_ms);
    if (e == 0) {
        run.end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);
        size_t n;
        struct bench_unit *first = scenario ? bench_scenario_units(p, scenario, &n) : NULL;
        e = scenario ? bench_scenario_run(&run, scenario, first, n) : bench_run(&run);
    }
    bench_peers_end(&q->peers, e != 0);
    bench_jobs_end(&jobs, e != 0);
    if (terminal)
        fprintf(stderr, "\r%40s\r", "");
    bench_area_free(a, fd);
    return e ? complain(p->text) : 0;
}

static int measure_all(struct bench_options *q, const struct bench_wish *w, struct bench_plan *p, bool *one_core)
{
    double shares = q->tests ? PAIR_SHARE : 0;
    for (unsigned i = 0; bench_scenarios[i]; i++)
        shares += q->scenarios & 1u << i ? bench_scenarios[i]->share : 0;
    int status = q->tests ? measure(q, w, p, NULL, q->seconds * PAIR_SHARE / shares, one_core) : 0;
    for (unsigned i = 0; bench_scenarios[i] && status == 0; i++)
        if (q->scenarios & 1u << i)
            status = measure(q, w, p, bench_scenarios[i], q->seconds * bench_scenarios[i]->share / shares, one_core);
    return status;
}

int rnl_tool_bench(int argc, char **argv)
{
    struct bench_options q;
    struct bench_plan plan = {.calm = 1};
    char machine[256], text[1024];
    if (bench_options_parse(argc, argv, &q))
        return EX_USAGE;
    if (q.child)
        return bench_jobs_child(q.child, q.part);
    q.apis &= ((1u << BENCH_OWN) - 1) & ~(1u << BENCH_RAW);
    if (bench_peers_present(&q.peers, q.peer_apis, text, sizeof text))
        return complain(text);
    if (q.plot && !bench_plot_possible())
        return complain(
            "--plot needs gnuplot, which is not in PATH; install it (Debian: gnuplot-nox) or leave --plot out");
    if (q.plot && bench_plot_folder(q.plot, plan.text, sizeof plan.text))
        return complain(plan.text);
    bench_machine_line(machine, sizeof machine);
    const struct bench_wish wish = {.apis = q.apis,
                                    .size = q.size,
                                    .sizes = q.sizes,
                                    .ranks = q.ranks,
                                    .plot = q.plot != NULL,
                                    .udp = q.net.udp,
                                    .netns = q.netns,
                                    .peers = q.peer_apis};
    bool one_core = false;
    struct bench_wires *wires = NULL, *beside = NULL;
    if (make_plan(&q, &wish, &plan))
        return complain("no memory for the plan");
    for (unsigned i = 0; i < 2; i++)
        snprintf(q.net.address[i], sizeof q.net.address[i], "127.0.0.1");
    if (*q.net.protect)
        setenv("RNL_PROTECT", q.net.protect, 1); /* for the launchers, which hand it on */
    if (q.netns && bench_net_plug(&q.net, &wires, text, sizeof text)) {
        bench_plan_free(&plan);
        return complain(text);
    }
    q.beside = q.net;
    q.beside.via[0] = '\0';
    int status = 0;
    if (*q.net.via && q.scenarios && bench_net_plug(&q.beside, &beside, text, sizeof text))
        status = complain(text);
    if (status == 0)
        status = measure_all(&q, &wish, &plan, &one_core);
    bench_net_unplug(beside);
    bench_net_unplug(wires);
    if (status == 0)
        status = show(&q, &plan, one_core, machine);
    bench_plan_free(&plan);
    return status;
}
