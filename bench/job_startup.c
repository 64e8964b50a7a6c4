/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_startup.c - from nothing to nothing: `runnel run -n N true`; and a job of N processes that join, connect to all
 * others and close. The baseline of both is N processes of true(1), started and waited for by this one. Milliseconds,
 * of the whole: from the start of the first process to the end of the last. */
#include "launch.h"
#include "process.h"
#include "runnel/runnel.h"
#include "scenario.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

static const unsigned counts[] = {1, 2, 16, 64};
enum { COUNTS = sizeof counts / sizeof *counts, MOST = 64 };

/* ---- the processes ---- */

static rnl_endpoint *ep;

static int come(struct bench_process *s)
{
    if (rnl_open(&ep, NULL))
        return bench_process_fail(s, "%s", rnl_last_error()->text);
    return bench_connect_native(s, ep, rnl_size(ep));
}

static void go(struct bench_process *s)
{
    if (rnl_close(ep))
        bench_process_fail(s, "%s", rnl_last_error()->text);
}

const struct bench_api bench_role_startup = {.name = "startup", .open = come, .close = go};

/* ---- the scenario ---- */

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    int e = 0;
    (void)w;
    for (unsigned k = 0; k < COUNTS && e == 0; k++) {
        e = bench_scenario_add(p, &bench_scenario_startup, BENCH_STARTUP_RUN, BENCH_NATIVE, counts[k], 0, k, true);
        if (e == 0)
            e = bench_scenario_add(p, &bench_scenario_startup, BENCH_STARTUP_JOB, BENCH_NATIVE, counts[k], 0, k, true);
    }
    return e;
}

static int await(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return status ? -ECHILD : 0;
}

static int explain(struct bench_run *r, const char *what, int e)
{
    if (e)
        snprintf(r->plan->text, sizeof r->plan->text, "%s %s%s", what,
                 e == -ECHILD ? "failed" : "did not start: ", e == -ECHILD ? "" : strerror(-e));
    return e;
}

static int time_baseline(struct bench_run *r, unsigned n, double *ms)
{
    char *argv[] = {(char[]){"true"}, NULL};
    pid_t pid[MOST];
    unsigned started = 0;
    int e = 0;
    uint64_t t0 = bench_now_ns();
    for (; started < n && e == 0; started++)
        e = -posix_spawnp(&pid[started], "true", NULL, NULL, argv, environ);
    started -= e != 0;
    for (unsigned i = 0; i < started; i++) {
        int this = await(pid[i]);
        e = e ? e : this;
    }
    *ms = (double)(bench_now_ns() - t0) / 1e6;
    return explain(r, "true", e);
}

static int time_run(struct bench_run *r, unsigned n, double *ms)
{
    char ranks[16];
    const char *const argv[] = {"", "run", "-n", ranks, "true", NULL};
    snprintf(ranks, sizeof ranks, "%u", n);
    uint64_t t0 = bench_now_ns();
    pid_t pid = bench_launch(argv);
    int e = pid < 0 ? (int)pid : await(pid);
    *ms = (double)(bench_now_ns() - t0) / 1e6;
    return explain(r, "runnel run true", e);
}

static int time_job(struct bench_run *r, unsigned n, double *ms)
{
    enum { PART = 1 };
    struct bench_pair *p = &r->area->pair[PART];
    snprintf(p->role, sizeof p->role, "%s", bench_role_startup.name);
    p->ranks = n;
    uint64_t t0 = bench_now_ns();
    pid_t pid = bench_launch_pair(r->area, r->area_path, PART);
    int e = pid < 0 ? (int)pid : await(pid);
    *ms = (double)(bench_now_ns() - t0) / 1e6;
    const char *why = bench_pair_failure(p);
    return explain(r, why ? why : "a job that comes and goes", e);
}

static int step(struct bench_run *r, struct bench_unit *first, size_t units)
{
    double baseline = NAN, run = NAN, job = NAN;
    unsigned n = first->n;
    int e = time_baseline(r, n, &baseline);
    if (e == 0)
        e = time_run(r, n, &run);
    if (e == 0)
        e = time_job(r, n, &job);
    if (e)
        return e;
    bench_put(bench_find(first, units, BENCH_STARTUP_RUN, BENCH_NATIVE, n), run, baseline);
    bench_put(bench_find(first, units, BENCH_STARTUP_JOB, BENCH_NATIVE, n), job, baseline);
    return 0;
}

const struct bench_scenario bench_scenario_startup = {
    .name = "startup",
    .share = 2,
    .apis = 1u << BENCH_NATIVE,
    .plan = plan,
    .step = step,
};
