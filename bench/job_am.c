/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_am.c - the experiments of the AMUDP paper (section 5) with runnel/am.h: a short request and its short reply, and
 * against the depth, which is how many requests may be unanswered: short requests a second, and bytes a second of a
 * window of eight bulk requests of 128 KiB. Each request is answered, as in the paper. The baselines are the bare
 * ring's, in the same step: there and back, 8-byte messages a second, messages of 128 KiB. Over datagrams they are bare
 * sockets': there and back, polled and asleep; requests of one datagram each, and so their answers, at the same depth;
 * runs of datagrams. Between namespaces also what lost packets cost, where the baseline is the same pair, none lost.
 * And what a call costs that any thread may make (AM_PAR) while no other does: an AM_Poll that finds nothing, where the
 * baseline is that of AM_SEQ. */
#include "net.h"
#include "process.h"
#include "scenario.h"

#include "runnel/am.h"

#include <math.h>
#include <stdlib.h>

enum { ASK = 1, ANSWERED, BULK };
enum { PAIR = 1, PAR, BULK_BYTES = 128 << 10, WINDOW = 8, PAGE = 4096 };
static const unsigned losses[] = {10, 50, 100, 150, 200, 250, 300}; /* of a thousand; all three for the first */
static struct bench_drop filter = {{-1, -1}};
static const unsigned rate_depths[] = {1, 4, 16, 64, 128, 512}, bulk_depths[] = {1, 2, 4, 8};
#define DEPTHS(a) (sizeof(a) / sizeof *(a))

static eb_t bundle;
static ep_t ep;
static uint64_t asked, answered;
static uint64_t requested; /* of all orders so far, by rank 0 */
static uint64_t due; /* requests of all orders so far; the first of an order may come while both meet, before run */
static unsigned char *segment, *source; /* WINDOW * BULK_BYTES each */

static void on_ask(void *token, int32_t x)
{
    asked++;
    (void)AM_Reply1(token, ANSWERED, x);
}

static void on_bulk(void *token, void *buf, size_t n, int32_t x)
{
    (void)buf;
    asked += n == BULK_BYTES;
    (void)AM_Reply1(token, ANSWERED, x);
}

static void on_answered(void *token, int32_t x)
{
    (void)token;
    (void)x;
    answered++;
}

static int failed(struct bench_process *s)
{
    return bench_process_fail(s, "%s", rnl_last_error()->text);
}

static int open_typed(struct bench_process *s, int type)
{
    en_t name;
    if (AM_Init() != AM_OK || AM_AllocateBundle(type, &bundle) != AM_OK)
        return failed(s);
    segment = aligned_alloc(PAGE, (size_t)WINDOW * BULK_BYTES);
    source = aligned_alloc(PAGE, (size_t)WINDOW * BULK_BYTES);
    if (!segment || !source)
        return bench_process_fail(s, "no memory for two windows of %d bytes", WINDOW * BULK_BYTES);
    bench_fill(source, (size_t)WINDOW * BULK_BYTES, 1);
    s->rank = rnl_rank(AM_GetRank(bundle));
    if (bench_process_check_size(s, rnl_size(AM_GetRank(bundle))))
        return -1;
    if (AM_AllocateEndpoint(bundle, &ep, &name) != AM_OK || AM_SetTag(ep, AM_ALL) != AM_OK ||
        AM_SetSeg(ep, segment, (size_t)WINDOW * BULK_BYTES) != AM_OK || AM_SetHandler(ep, ASK, on_ask) != AM_OK ||
        AM_SetHandler(ep, BULK, on_bulk) != AM_OK || AM_SetEventMask(bundle, AM_NOTEMPTY) != AM_OK ||
        AM_SetHandler(ep, ANSWERED, on_answered) != AM_OK || AM_Map(ep, 0, AM_NameOf(1 - s->rank, 0), AM_ALL) != AM_OK)
        return failed(s);
    return 0;
}

static int open_am(struct bench_process *s)
{
    return open_typed(s, AM_SEQ);
}

static int open_par(struct bench_process *s)
{
    return open_typed(s, AM_PAR);
}

static void close_am(struct bench_process *s)
{
    if (AM_Terminate() != AM_OK)
        failed(s);
    free(segment);
    free(source);
}

static int look(struct bench_process *s)
{
    return AM_Poll(bundle) != AM_OK ? failed(s) : s->status;
}

/* What is timed, by whatever test. */
enum am_measure { TRIP, RATE, BULKS, WAITING, CALL };
static enum am_measure kind_of(uint32_t test)
{
    switch (test) {
    case BENCH_AM_RATE:
    case BENCH_AM_LOSS_RATE:
        return RATE;
    case BENCH_AM_BULK:
    case BENCH_AM_LOSS_BULK:
        return BULKS;
    case BENCH_AM_CALL:
        return CALL;
    default:
        return test == BENCH_AM_WAITING ? WAITING : TRIP;
    }
}

/* One look, or a sleep. */
static int await(struct bench_process *s, enum am_measure kind)
{
    if (kind != WAITING)
        return look(s);
    return AM_WaitSemaFor(bundle, 1000000000) == AM_OK ? s->status : look(s);
}

static unsigned depth_of(const struct bench_order *o)
{
    return o->variant & ((1u << BENCH_AM_LOSS_SHIFT) - 1);
}

/* Messages of an order that are timed. */
static uint64_t timed(const struct bench_order *o)
{
    enum am_measure kind = kind_of(o->test);
    return kind == CALL ? 0 : kind == BULKS ? o->count * WINDOW : o->count;
}

/* Messages that go before them: the first one after a pause takes as long as thirty others, and a busy machine leaves
 * time for ten. Where packets are lost, that is next to nothing beside what a lost one costs. */
static uint64_t warming(const struct bench_order *o)
{
    enum am_measure kind = kind_of(o->test);
    if (kind == CALL || (o->test >= BENCH_AM_LOSS_TRIP && o->test <= BENCH_AM_LOSS_BULK))
        return 0;
    return kind == BULKS ? 2 * WINDOW : o->count / 8 + 100 + depth_of(o);
}

static int prepare(struct bench_process *s, const struct bench_order *o)
{
    return s->pair->lossy ? bench_lose(s, AM_GetRank(bundle), o->variant >> BENCH_AM_LOSS_SHIFT) : 0;
}

/* Where rank 0 says how many requests there have been in all when it ends an order before it is done. */
static _Atomic uint64_t *cut_at(struct bench_process *s)
{
    return (_Atomic uint64_t *)(void *)s->pair->board;
}

/* What is still under way after an order's end is not worth another loss. */
static int lose_no_more(struct bench_process *s)
{
    return s->pair->lossy ? bench_lose(s, AM_GetRank(bundle), 0) : 0;
}

/* One look. True when the order has to end: its time is up, or this process failed. */
static bool is_over(struct bench_process *s, const struct bench_order *o, enum am_measure kind)
{
    static unsigned looks;
    return await(s, kind) || (o->end_ns && kind != WAITING && ++looks % 64 == 0 && bench_now_ns() >= o->end_ns);
}

/* *done: how many of those that are timed were answered. */
static int ask(struct bench_process *s, const struct bench_order *o, uint64_t *done, double *ns)
{
    const uint64_t warm = warming(o), all = warm + timed(o), from = answered, depth = depth_of(o);
    uint64_t t0 = bench_now_ns();
    enum am_measure kind = kind_of(o->test);
    bool over = false;
    uint64_t sent = 0;
    while (sent < all && !over) {
        if (sent == warm) {
            while (answered - from < warm && !over)
                over = is_over(s, o, kind);
            t0 = bench_now_ns();
        }
        size_t at = sent % WINDOW * BULK_BYTES;
        int r = kind == BULKS ? AM_RequestXfer1(ep, 0, at, BULK, source + at, BULK_BYTES, (int32_t)sent)
                              : AM_Request1(ep, 0, ASK, (int32_t)sent);
        if (r != AM_OK)
            return failed(s);
        sent++;
        while (sent - (answered - from) >= depth && !over)
            over = is_over(s, o, kind);
    }
    while (answered - from < sent && !over)
        over = is_over(s, o, kind);
    *done = answered - from > warm ? answered - from - warm : 0;
    *ns = (double)(bench_now_ns() - t0);
    requested += sent;
    if (s->status || !over)
        return s->status;
    if (lose_no_more(s))
        return -1;
    atomic_store_explicit(cut_at(s), requested, memory_order_release);
    while (answered - from < sent)
        if (look(s))
            return -1;
    return 0;
}

/* Until all of an order have arrived, which may be fewer than it says. */
static int answer(struct bench_process *s, const struct bench_order *o)
{
    const uint64_t before = due;
    due += warming(o) + timed(o);
    for (bool cut = false; asked < due;) {
        if (await(s, kind_of(o->test)))
            return -1;
        uint64_t at = cut ? 0 : atomic_load_explicit(cut_at(s), memory_order_acquire);
        if (at > before) { /* that of an order before this one is not */
            cut = true;
            due = at;
            if (lose_no_more(s))
                return -1;
        }
    }
    return 0;
}

static int call(struct bench_process *s, uint64_t n, double *ns)
{
    const uint64_t t0 = bench_now_ns();
    for (uint64_t i = 0; i < n; i++)
        if (AM_Poll(bundle) != AM_OK)
            return failed(s);
    *ns = (double)(bench_now_ns() - t0);
    return 0;
}

static int run(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    enum am_measure kind = kind_of(o->test);
    uint64_t n = o->count;
    double ns = 0;
    if (s->rank == 1)
        return answer(s, o);
    if (kind == CALL ? call(s, n, &ns) : ask(s, o, &n, &ns))
        return -1;
    a->cut = kind != CALL && n < timed(o);
    if (n == 0)
        a->value = NAN;
    else if (kind == CALL || kind == TRIP || kind == WAITING)
        a->value = ns / (double)n;
    else if (kind == RATE)
        a->value = (double)n * 1e3 / ns;
    else
        a->value = (double)n * BULK_BYTES / ns;
    return 0;
}

const struct bench_api bench_role_am = {.name = "am",
                                        .moves_when_called = true,
                                        .open = open_am,
                                        .close = close_am,
                                        .prepare = prepare,
                                        .poll = look,
                                        .run = run};
const struct bench_api bench_role_am_par = {
    .name = "am-par", .moves_when_called = true, .open = open_par, .close = close_am, .poll = look, .run = run};

/* ---- the scenario ---- */

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    unsigned step = 0;
    const struct bench_scenario *am = &bench_scenario_am;
    int e = bench_scenario_add(p, am, BENCH_AM_TRIP, BENCH_AM, 0, 8, step++, true);
    if (e == 0 && w->udp)
        e = bench_scenario_add(p, am, BENCH_AM_WAITING, BENCH_AM, 0, 8, step++, true);
    for (unsigned i = 0; i < DEPTHS(rate_depths) && e == 0; i++)
        e = bench_scenario_add(p, am, BENCH_AM_RATE, BENCH_AM, rate_depths[i], 8, step++, true);
    for (unsigned i = 0; i < DEPTHS(bulk_depths) && e == 0; i++)
        e = bench_scenario_add(p, am, BENCH_AM_BULK, BENCH_AM, bulk_depths[i], BULK_BYTES, step++, true);
    if (e == 0 && !w->udp)
        e = bench_scenario_add(p, am, BENCH_AM_CALL, BENCH_AM, 0, 0, step++, true);
    for (unsigned i = 0; i < DEPTHS(losses) && e == 0 && w->netns; i++)
        e = bench_scenario_add(p, am, BENCH_AM_LOSS_TRIP, BENCH_AM, losses[i], 8, step++, true);
    if (e == 0 && w->netns)
        e = bench_scenario_add(p, am, BENCH_AM_LOSS_RATE, BENCH_AM, losses[0], 8, step++, true);
    if (e == 0 && w->netns)
        e = bench_scenario_add(p, am, BENCH_AM_LOSS_BULK, BENCH_AM, losses[0], BULK_BYTES, step++, true);
    return e;
}

static void assign_roles(struct bench_area *area, const struct bench_wish *w)
{
    bench_assign_role(area, PAIR, "am", 2, 0);
    if (!w->udp)
        bench_assign_role(area, PAR, "am-par", 2, 0);
}

static int lose(struct bench_run *r, unsigned per_mille)
{
    return bench_net_drop(&filter, &r->area->net, per_mille, r->plan->text, sizeof r->plan->text);
}

static int step_of_loss(struct bench_run *r, struct bench_unit *u)
{
    static const unsigned depth[] = {1, 128, WINDOW};
    unsigned variant = depth[kind_of(u->test)];
    double value = NAN, baseline = NAN, cpu_ns;
    int e = lose(r, 0);
    if (e == 0)
        e = bench_repeat(r, u, u->test, PAIR, variant, &u->baseline[0], &baseline, &cpu_ns);
    if (e == 0)
        e = lose(r, u->n);
    if (e == 0)
        e = bench_repeat(r, u, u->test, PAIR, variant, &u->api[BENCH_AM], &value, &cpu_ns);
    if (e == 0)
        bench_put(u, value, baseline);
    bench_net_drop_end(&filter); /* the other steps have no filter in their way */
    return e;
}

static int step_of_call(struct bench_run *r, struct bench_unit *u)
{
    double value = NAN, baseline = NAN, cpu_ns;
    int e = bench_repeat(r, u, u->test, PAIR, 0, &u->baseline[0], &baseline, &cpu_ns);
    if (e == 0)
        e = bench_repeat(r, u, u->test, PAR, 0, &u->api[BENCH_AM], &value, &cpu_ns);
    if (e == 0)
        bench_put(u, value, baseline);
    return e;
}

static int step(struct bench_run *r, struct bench_unit *u, size_t n)
{
    static const enum bench_test baselines[] = {BENCH_LATENCY, BENCH_RATE, BENCH_BANDWIDTH, BENCH_WAITING};
    enum am_measure kind = kind_of(u->test);
    unsigned depth = u->n ? u->n : 1;
    double value = NAN, baseline = NAN, cpu_ns;
    (void)n;
    if (u->test >= BENCH_AM_LOSS_TRIP && u->test <= BENCH_AM_LOSS_BULK)
        return step_of_loss(r, u);
    if (u->test == BENCH_AM_CALL)
        return step_of_call(r, u);
    enum bench_test as = kind == RATE && r->plan->udp ? BENCH_AM_RATE : baselines[kind];
    int e = bench_repeat(r, u, as, BENCH_RAW, as == BENCH_AM_RATE ? depth : 0, &u->baseline[0], &baseline, &cpu_ns);
    if (e == 0)
        e = bench_repeat(r, u, u->test, PAIR, depth, &u->api[BENCH_AM], &value, &cpu_ns);
    if (e == 0)
        bench_put(u, value, kind == TRIP || kind == WAITING ? 2 * baseline : baseline);
    return e;
}

const struct bench_scenario bench_scenario_am = {
    .name = "am",
    .share = 3,
    .apis = 1u << BENCH_AM,
    .plots = true,
    .sockets = true,
    .plan = plan,
    .assign_roles = assign_roles,
    .step = step,
};
