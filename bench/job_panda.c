/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_panda.c - Panda (runnel/panda.h) between two processes: a call of 8 bytes whose reply is empty; a totally ordered
 * multicast of 8 bytes until the sender, which is not the sequencer, has its own back; and a stream of multicasts of
 * 64 KiB, each of which both deliver: the other copies it out, and the sender, which has the bytes, skips them, as
 * Orca's run-time system does. The baselines are the bare ring's in the same step: 8 bytes there and back, and
 * messages of 64 KiB.
 *
 * Rank 1 multicasts and rank 0 measures: it has the last of n at most a step before rank 1 has it.
 *
 * Peers do what is nearest to the multicast of 8 bytes: Open MPI a broadcast by rank 1 and a barrier, corosync a
 * multicast in agreed order. */
#include "process.h"
#include "scenario.h"

#include "runnel/panda.h"

#include <math.h>
#include <stdlib.h>

enum { PAIR = 1, WORD = 8, LONG = 64 << 10, DEPTH = 8 };

static void *proto;
static int port;
static uint64_t calls, delivered;
static uint64_t calls_due, delivered_due; /* of all orders so far; what an order sends may come before run is called */
static unsigned char *data, *taken;

static int failed(struct bench_process *s)
{
    return bench_process_fail(s, "%s", rnl_last_error()->text);
}

static void take(pan_msg_p msg)
{
    (void)!pan_msg_consume(msg, taken, pan_msg_left(msg));
    pan_msg_clear(msg);
}

static void on_call(pan_upcall_p upcall, pan_msg_p msg, void *from)
{
    take(msg);
    calls += pan_rpc_reply(upcall, NULL, 0, from, pan_rpc_proto_offset(), NULL, NULL) == 0;
}

static void on_multicast(pan_msg_p msg, void *from)
{
    (void)from;
    if (pan_msg_sender(msg) == pan_my_pid())
        pan_msg_clear(msg);
    else
        take(msg);
    delivered++;
}

static int open_panda(struct bench_process *s)
{
    data = malloc(LONG);
    taken = malloc(LONG);
    proto = pan_proto_create(0);
    if (!data || !taken || !proto)
        return bench_process_fail(s, "no memory for two messages of %d bytes", LONG);
    bench_fill(data, LONG, 1);
    if (pan_init(NULL, NULL) < 0)
        return failed(s);
    pan_rpc_register(on_call);
    port = pan_group_register_port(on_multicast);
    if (port < 0 || pan_start() < 0)
        return failed(s);
    s->rank = (uint32_t)pan_my_pid();
    return bench_process_check_size(s, (uint32_t)pan_nr_processes());
}

static void close_panda(struct bench_process *s)
{
    if (pan_end() < 0)
        failed(s);
    free(proto);
    free(data);
    free(taken);
}

static int look(struct bench_process *s)
{
    return pan_poll() < 0 ? failed(s) : s->status;
}

static int call(struct bench_process *s, uint64_t n)
{
    const pan_iovec_t word = {data, WORD};
    for (uint64_t i = 0; i < n; i++) {
        pan_msg_p reply;
        void *back;
        if (pan_rpc_trans(1, &word, 1, proto, pan_rpc_proto_offset(), &reply, &back) < 0)
            return failed(s);
        pan_msg_clear(reply);
    }
    return 0;
}

static int until(struct bench_process *s, const uint64_t *count, uint64_t due)
{
    while (*count < due)
        if (look(s))
            return -1;
    return 0;
}

static int multicast(struct bench_process *s, const struct bench_order *o)
{
    const pan_iovec_t piece = {data, o->bytes};
    const uint64_t depth = o->test == BENCH_PANDA_STREAM ? DEPTH : 1, from = delivered_due - o->count;
    for (uint64_t i = 0; i < o->count; i++) {
        if (pan_group_send(port, &piece, 1, proto, pan_group_proto_offset()) < 0)
            return failed(s);
        if (until(s, &delivered, from + (i + 1 < depth ? 0 : i + 2 - depth)))
            return -1;
    }
    return until(s, &delivered, delivered_due);
}

static int run(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    const bool is_call = o->test == BENCH_PANDA_CALL;
    calls_due += is_call ? o->count : 0;
    delivered_due += is_call ? 0 : o->count;
    const uint64_t t0 = bench_now_ns();
    const int e = is_call && s->rank == 0 ? call(s, o->count)
                  : is_call               ? until(s, &calls, calls_due)
                  : s->rank == 1          ? multicast(s, o)
                                          : until(s, &delivered, delivered_due);
    const double ns = (double)(bench_now_ns() - t0);
    a->value = o->test == BENCH_PANDA_STREAM ? (double)o->count * (double)o->bytes / ns : ns / (double)o->count;
    return e;
}

const struct bench_api bench_role_panda = {
    .name = "panda", .moves_when_called = true, .open = open_panda, .close = close_panda, .poll = look, .run = run};

/* ---- the scenario ---- */

static const unsigned peers[] = {BENCH_OPENMPI, BENCH_COROSYNC};
enum { PEERS = sizeof peers / sizeof *peers };

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    const struct bench_scenario *panda = &bench_scenario_panda;
    int e = bench_scenario_add(p, panda, BENCH_PANDA_CALL, BENCH_PANDA, 0, WORD, 0, true);
    e = e ? e : bench_scenario_add(p, panda, BENCH_PANDA_GROUP, BENCH_PANDA, 0, WORD, 1, true);
    for (unsigned i = 0; i < PEERS && !w->udp; i++)
        if (w->peers & 1u << peers[i])
            e = e ? e : bench_scenario_add(p, panda, BENCH_PANDA_GROUP, peers[i], 0, WORD, 1, true);
    return e ? e : bench_scenario_add(p, panda, BENCH_PANDA_STREAM, BENCH_PANDA, 0, LONG, 2, true);
}

static void assign_roles(struct bench_area *area, const struct bench_wish *w)
{
    (void)w;
    bench_assign_role(area, PAIR, "panda", 2, 0);
}

static int step(struct bench_run *r, struct bench_unit *u, size_t n)
{
    const bool stream = u->test == BENCH_PANDA_STREAM;
    double value = NAN, baseline = NAN, cpu_ns;
    int e =
        bench_repeat(r, u, stream ? BENCH_BANDWIDTH : BENCH_LATENCY, BENCH_RAW, 0, &u->baseline[0], &baseline, &cpu_ns);
    if (e == 0)
        e = bench_repeat(r, u, u->test, PAIR, 0, &u->api[BENCH_PANDA], &value, &cpu_ns);
    if (e == 0)
        bench_put(u, value, stream ? baseline : 2 * baseline);
    for (unsigned i = 0; i < PEERS && e == 0 && u->test == BENCH_PANDA_GROUP; i++) {
        struct bench_unit *other = bench_find(u, n, u->test, peers[i], 0);
        if (!other || r->plan->lost[peers[i]][0])
            continue;
        value = NAN;
        e = bench_repeat(r, other, u->test, peers[i], 0, &other->api[peers[i]], &value, &cpu_ns);
        if (e == 0)
            bench_put(other, value, 2 * baseline);
    }
    return e;
}

const struct bench_scenario bench_scenario_panda = {
    .name = "panda",
    .share = 2,
    .apis = 1u << BENCH_PANDA,
    .peers = 1u << BENCH_OPENMPI | 1u << BENCH_COROSYNC,
    .sockets = true,
    .plan = plan,
    .assign_roles = assign_roles,
    .step = step,
};
