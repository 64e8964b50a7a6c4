/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_memory.c - what a connected idle peer takes: the growth of a process, from just after rnl_open until it is
 * connected to 2, 16 and 63 others that sleep, for each of them; and the whole process then. Counted are its own pages,
 * its proportional share of memory shared with others (smaps_rollup; code apart, whose share depends on how many
 * processes happen to run it) and its page tables. The baselines: a page each way, shared by the two; and the process
 * before it was connected. Kilobytes of 1024. */
#include "process.h"
#include "runnel/runnel.h"
#include "scenario.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const unsigned counts[] = {2, 16, 63};
enum { COUNTS = sizeof counts / sizeof *counts, FIRST_PAIR = 1, BEFORE = 0, AFTER = 1 };
#define PAGES_OF_A_PEER_KB 4.0

/* ---- the process ---- */

static rnl_endpoint *ep;
static double before_kb;

/* The sum of the lines `name: N kB` of a file, for each of the names; negative: none was there. */
static double sum_kb(const char *path, const char *const *name, unsigned names)
{
    char line[256];
    double sum = 0;
    unsigned found = 0;
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    while (fgets(line, sizeof line, f))
        for (unsigned i = 0; i < names; i++) {
            size_t n = strlen(name[i]);
            unsigned long kb;
            if (!strncmp(line, name[i], n) && sscanf(line + n, ": %lu kB", &kb) == 1) {
                sum += (double)kb;
                found++;
            }
        }
    fclose(f);
    return found == names ? sum : -1;
}

static double own_kb(void)
{
    static const char *const data[] = {"Pss_Anon", "Pss_Shmem"}, *const tables[] = {"VmPTE"};
    double a = sum_kb("/proc/self/smaps_rollup", data, 2), b = sum_kb("/proc/self/status", tables, 1);
    return a < 0 || b < 0 ? -1 : a + b;
}

static int come(struct bench_process *s)
{
    if (rnl_open(&ep, NULL))
        return bench_process_fail(s, "%s", rnl_last_error()->text);
    s->rank = rnl_rank(ep);
    if (bench_process_check_size(s, rnl_size(ep)))
        return -1;
    (void)own_kb(); /* what stdio takes */
    before_kb = own_kb();
    return before_kb < 0 ? bench_process_fail(s, "/proc/self/smaps_rollup does not say Pss_Anon and Pss_Shmem")
                         : bench_connect_native(s, ep, 1);
}

static void go(struct bench_process *s)
{
    if (rnl_close(ep))
        bench_process_fail(s, "%s", rnl_last_error()->text);
}

static int tell(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    a->value = o->variant == BEFORE ? before_kb : own_kb();
    return a->value < 0 ? bench_process_fail(s, "/proc/self/smaps_rollup cannot be read any more") : 0;
}

const struct bench_api bench_role_memory = {.name = "memory", .open = come, .close = go, .run = tell};

/* ---- the scenario ---- */

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    int e = 0;
    (void)w;
    for (unsigned k = 0; k < COUNTS && e == 0; k++)
        e = bench_scenario_add(p, &bench_scenario_memory, BENCH_MEMORY_PEER, BENCH_NATIVE, counts[k], 0, k, true);
    for (unsigned k = 0; k < COUNTS && e == 0; k++)
        e = bench_scenario_add(p, &bench_scenario_memory, BENCH_MEMORY_ALL, BENCH_NATIVE, counts[k], 0, k, true);
    return e;
}

static void assign_roles(struct bench_area *area, const struct bench_wish *w)
{
    (void)w;
    for (unsigned k = 0; k < COUNTS; k++)
        bench_assign_role(area, FIRST_PAIR + k, bench_role_memory.name, 1, counts[k]);
}

static int step(struct bench_run *r, struct bench_unit *first, size_t n)
{
    unsigned pair = FIRST_PAIR + first->step;
    double before = NAN, after = NAN;
    int e = bench_ask(r, pair, first->test, BEFORE, 1, &before);
    if (e == 0)
        e = bench_ask(r, pair, first->test, AFTER, 1, &after);
    if (e)
        return e;
    bench_put(bench_find(first, n, BENCH_MEMORY_PEER, BENCH_NATIVE, first->n), (after - before) / first->n,
              PAGES_OF_A_PEER_KB);
    bench_put(bench_find(first, n, BENCH_MEMORY_ALL, BENCH_NATIVE, first->n), after, before);
    return 0;
}

const struct bench_scenario bench_scenario_memory = {
    .name = "memory",
    .share = 0.2,
    .apis = 1u << BENCH_NATIVE,
    .plan = plan,
    .assign_roles = assign_roles,
    .step = step,
};
