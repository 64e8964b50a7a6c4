/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_rpc.c - SunRPC: a call of nothing, and calls of 64 KiB and 1 MiB whose answer is empty; over librunnel-rpc, and
 * beside it, in the same trials, over libtirpc's TCP, UDP and AF_UNIX; and the whole life of a client that makes one
 * call. All four are programs of bench/peers, started as peers are, though nobody names them.
 *
 * The baseline of a call is the bare ring's, in the same step: the bytes one way and a message of 8 bytes back. That of
 * a whole client is one that connects over TCP and calls nothing. */
#include "process.h"
#include "scenario.h"

#include <math.h>

enum { WORD = 8, UDP_BYTES = 8 << 10 }; /* libtirpc's datagrams are not longer */
enum { ONE_CALL, NO_CALL };             /* variants of BENCH_RPC_ONCE */
static const unsigned ways[] = {BENCH_RPC, BENCH_TIRPC_TCP, BENCH_TIRPC_UDP, BENCH_TIRPC_UNIX};
enum { WAYS = sizeof ways / sizeof *ways };

static struct bench_unit baseline_there, baseline_back;

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    static const uint64_t sizes[] = {0, 64 << 10, 1 << 20};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    int e = 0;
    (void)w;
    for (unsigned i = 0; i < SIZES; i++)
        for (unsigned k = 0; k < WAYS; k++)
            if (ways[k] != BENCH_TIRPC_UDP || sizes[i] <= UDP_BYTES)
                e = e ? e
                      : bench_scenario_add(p, &bench_scenario_rpc, sizes[i] ? BENCH_RPC_SEND : BENCH_RPC_NULL, ways[k],
                                           0, sizes[i], i, true);
    for (unsigned k = 0; k < WAYS; k++)
        if (ways[k] == BENCH_RPC || ways[k] == BENCH_TIRPC_TCP)
            e = e ? e : bench_scenario_add(p, &bench_scenario_rpc, BENCH_RPC_ONCE, ways[k], 0, 0, SIZES, true);
    return e;
}

/* One way of the bare ring, ns. */
static int raw_way(struct bench_run *r, struct bench_unit *u, uint64_t bytes, double *ns)
{
    double cpu_ns;
    if (u->bytes != bytes)
        *u = (struct bench_unit){.test = BENCH_LATENCY, .bytes = bytes};
    return bench_repeat(r, u, BENCH_LATENCY, BENCH_RAW, 0, &u->baseline[0], ns, &cpu_ns);
}

static int baseline_of(struct bench_run *r, struct bench_unit *first, size_t n, double *baseline)
{
    double there = NAN, back = NAN, cpu_ns;
    struct bench_unit *tcp = bench_find(first, n, first->test, BENCH_TIRPC_TCP, 0);
    if (first->test == BENCH_RPC_ONCE && (!tcp || r->plan->lost[BENCH_TIRPC_TCP][0]))
        return 0;
    if (first->test == BENCH_RPC_ONCE)
        return bench_repeat(r, tcp, BENCH_RPC_ONCE, BENCH_TIRPC_TCP, NO_CALL, &tcp->baseline[0], baseline, &cpu_ns);
    int e = raw_way(r, &baseline_back, WORD, &back);
    if (e == 0 && first->bytes)
        e = raw_way(r, &baseline_there, first->bytes, &there);
    *baseline = (first->bytes ? there : back) + back;
    return e;
}

static int step(struct bench_run *r, struct bench_unit *first, size_t n)
{
    double baseline = NAN, cpu_ns;
    int e = baseline_of(r, first, n, &baseline);
    for (unsigned k = 0; k < WAYS && e == 0; k++) {
        struct bench_unit *u = bench_find(first, n, first->test, ways[k], 0);
        double value = NAN;
        if (!u || r->plan->lost[ways[k]][0])
            continue;
        e = bench_repeat(r, u, u->test, ways[k], ONE_CALL, &u->api[ways[k]], &value, &cpu_ns);
        if (e == 0)
            bench_put(u, value, baseline);
    }
    return e;
}

const struct bench_scenario bench_scenario_rpc = {
    .name = "rpc",
    .share = 3,
    .apis = 1u << BENCH_RPC,
    .peers = 1u << BENCH_RPC | 1u << BENCH_TIRPC_TCP | 1u << BENCH_TIRPC_UDP | 1u << BENCH_TIRPC_UNIX,
    .of_peers = true,
    .shm = true,
    .plan = plan,
    .step = step,
};
