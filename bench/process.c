/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.c - see process.h. */
#include "process.h"
#include "stats.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { MIN_POOL = 4 << 20, WINDOW = 1 << 20, WARM_WALKS = 2, WARM_TURNS = 32, PROBE_TRIALS = 5, PROBE_TRIPS = 2000 };
enum { MOST_WAITED = 5 }; /* a fifth of the time */

int bench_process_fail(struct bench_process *s, const char *format, ...)
{
    if (s->status == 0) { /* the first one is the cause */
        va_list ap;
        va_start(ap, format);
        vsnprintf(s->text, sizeof s->text, format, ap);
        va_end(ap);
        s->status = -1;
    }
    return -1;
}

/* Odd steps: different seeds give different words everywhere. */
static const uint64_t SEED_STEP = 0x9e3779b97f4a7c15u, WORD_STEP = 0x2545f4914f6cdd1du;

void bench_fill(void *at, size_t n, uint64_t seed)
{
    unsigned char *p = at;
    uint64_t w = seed * SEED_STEP;
    for (; n >= 8; n -= 8, p += 8, w += WORD_STEP)
        memcpy(p, &w, 8);
    memcpy(p, &w, n);
}

bool bench_filled(const void *at, size_t n, uint64_t seed)
{
    const unsigned char *p = at;
    uint64_t w = seed * SEED_STEP, wrong = 0, got;
    for (; n >= 8; n -= 8, p += 8, w += WORD_STEP) {
        memcpy(&got, p, 8);
        wrong |= got ^ w;
    }
    return wrong == 0 && memcmp(p, &w, n) == 0;
}

int bench_process_check_size(struct bench_process *s, unsigned long ranks)
{
    unsigned long wanted = bench_pair_ranks(s->pair) + s->pair->resting;
    return ranks == wanted ? 0 : bench_process_fail(s, "a job of %lu ranks instead of %lu", ranks, wanted);
}

uint64_t bench_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Datagrams of a library move, and are acknowledged, only while it is called: what the other process waits for may need
 * calls of this one to the last. */
static void meet(struct bench_process *s, const struct bench_api *api)
{
    if (!s->area->net.udp || !api->moves_when_called || s->status) {
        bench_meet(s->pair, &s->meet_count, s->one_core);
        return;
    }
    bench_meet_begin(s->pair, &s->meet_count);
    while (!bench_met(s->pair, s->meet_count) && api->poll(s) == 0)
        bench_relax(s);
    while (!bench_met(s->pair, s->meet_count)) /* after a failure: whoever waits for this pair ends it */
        sched_yield();
}

static uint64_t preemptions(void)
{
    struct rusage r;
    return getrusage(RUSAGE_THREAD, &r) ? 0 : (uint64_t)r.ru_nivcsw;
}

/* How long this thread was ready to run, and did not, ns. */
static uint64_t waited_ns(void)
{
    unsigned long long ran, waited = 0;
    FILE *f = fopen("/proc/thread-self/schedstat", "re");
    if (f) {
        if (fscanf(f, "%llu %llu", &ran, &waited) != 2)
            waited = 0;
        fclose(f);
    }
    return waited;
}

/* Was this process kept from running in an order? Over datagrams the kernel's own threads do a part of the work in its
 * place, many times a second: there it counts how long. */
static uint64_t disturbed(const struct bench_process *s, uint64_t switches, uint64_t waited, double elapsed_ns)
{
    return !s->area->net.udp || (double)waited * MOST_WAITED > elapsed_ns ? switches : 0;
}

/* Raw spin on one line: one way, ns, median of trials that start together. */
static void run_probe(struct bench_process *s, const struct bench_api *api, struct bench_answer *a)
{
    double trial[PROBE_TRIALS];
    _Atomic uint64_t *ball = &s->pair->ball;
    uint64_t trips = s->one_core ? 100 : PROBE_TRIPS;
    for (int r = 0; r < PROBE_TRIALS; r++) {
        if (s->rank == 0)
            atomic_store_explicit(ball, 0, memory_order_relaxed);
        meet(s, api);
        uint64_t t0 = bench_now_ns();
        for (uint64_t i = 0; i < trips; i++) {
            uint64_t mine = 2 * i + 1 + s->rank, wait_for = s->rank == 0 ? 2 * i + 2 : 2 * i + 1;
            if (s->rank == 0)
                atomic_store_explicit(ball, mine, memory_order_release);
            while (atomic_load_explicit(ball, memory_order_acquire) != wait_for)
                if (s->one_core)
                    sched_yield();
            if (s->rank == 1)
                atomic_store_explicit(ball, mine, memory_order_release);
        }
        trial[r] = (double)(bench_now_ns() - t0) / (double)trips / 2;
        meet(s, api);
    }
    a->value = bench_median(trial, PROBE_TRIALS);
}

/* The time without single clock readings is the value; a second, equal run with them shows the tail. */
static int run_latency(struct bench_process *s, const struct bench_api *api, const struct bench_order *o,
                       struct bench_answer *a)
{
    /* At least so many that code and predictors are warm, where a busy machine leaves time for few. */
    if (api->ping(s, o->count / 8 + (s->bytes > 4096 ? 2 : 100), NULL))
        return -1;
    uint64_t cpu0 = bench_cpu_ns(), t0 = bench_now_ns();
    if (api->ping(s, o->count, NULL))
        return -1;
    a->value = (double)(bench_now_ns() - t0) / (double)o->count / 2;
    a->cpu_ns = (double)(bench_cpu_ns() - cpu0) / (double)o->count / 2;
    if (s->rank == 0)
        memset(&s->pair->hist, 0, sizeof s->pair->hist);
    return api->ping(s, o->count, s->rank == 0 ? &s->pair->hist : NULL);
}

static int run_rate(struct bench_process *s, const struct bench_api *api, const struct bench_order *o,
                    struct bench_answer *a)
{
    for (int timed = 0; timed < 2; timed++) {
        uint64_t n = timed ? o->count : o->count / 32 + (s->bytes > 1 << 20 ? 2 : s->bytes > 4096 ? 10 : 100);
        s->got = s->sum = 0;
        meet(s, api);
        uint64_t cpu0 = bench_cpu_ns(), t0 = bench_now_ns();
        if (api->stream(s, n))
            return -1;
        a->value = (double)n / (double)(bench_now_ns() - t0) * 1e3;
        a->cpu_ns = (double)(bench_cpu_ns() - cpu0) / (double)n;
        if (s->rank == 1 && (s->got != n || (s->bytes >= 8 && s->sum != n * (n - 1) / 2)))
            return bench_process_fail(
                s, "%llu messages of %llu bytes arrived with sum %llu instead of %llu with sum %llu",
                (unsigned long long)s->got, (unsigned long long)s->bytes, (unsigned long long)s->sum,
                (unsigned long long)n, (unsigned long long)(n * (n - 1) / 2));
        meet(s, api);
    }
    return 0;
}

/* Rank 1, of fresh messages: verifies those that have arrived beyond *seen, each with its seed. */
static int read_fresh(struct bench_process *s, uint64_t *seen)
{
    for (; *seen < s->got; ++*seen)
        if (!bench_filled(s->to + *seen % s->slots * s->bytes, s->bytes, *seen))
            return bench_process_fail(s, "bytes of a message of %llu bytes differ from what was sent",
                                      (unsigned long long)s->bytes);
    return 0;
}

/* o->count times: rank 0 rewrites a window of messages, sends it, and waits until the other process has copied it out;
 * that is timed. Then rank 1 verifies every byte. Of fresh messages, rank 0 writes each just before it sends it, and
 * rank 1 verifies each when it has arrived: that is timed, too.
 *
 * Before that both processes touch their pools, and the first turns, two walks through them if those are few, are not
 * timed. Who is measured right after another would else find cold what that had to itself: the baseline, whose
 * variants follow each other in the same processes, gained from that up to a half over those that it is compared with.
 */
static int run_bandwidth(struct bench_process *s, const struct bench_api *api, const struct bench_order *o,
                         struct bench_answer *a)
{
    uint64_t window = 1, seen = 0;
    bool fresh = o->test == BENCH_FRESH || o->test == BENCH_FRESH_ALONE;
    if (o->test == BENCH_BANDWIDTH || o->test == BENCH_FRESH) {
        window = s->bytes * 4 >= WINDOW ? 4 : WINDOW / s->bytes;
        if (window * s->bytes > s->pool_bytes)
            window = s->pool_bytes / s->bytes;
    }
    size_t places = s->pool_bytes / (window * s->bytes);
    uint64_t warm = places < WARM_TURNS / WARM_WALKS ? places * WARM_WALKS : WARM_TURNS;
    double ns = 0;
    memset(s->rank == 0 ? s->pool : s->spare, 1, s->pool_bytes);
    s->slots = window;
    s->got = 0;
    for (uint64_t turn = 0; turn < o->count + warm; turn++) {
        /* Walk through the pool, so that memory is as fresh as a program's would be. */
        size_t at = turn % places * (window * s->bytes);
        uint64_t target = (turn + 1) * window;
        if (s->rank == 0) {
            if (api->expect && api->expect(s))
                return -1;
            if (!fresh)
                bench_fill(s->pool + at, window * s->bytes, turn);
            meet(s, api);
            uint64_t t0 = bench_now_ns();
            for (uint64_t i = 0; i < window; i++) {
                unsigned char *message = s->pool + at + i * s->bytes;
                if (fresh)
                    bench_fill(message, s->bytes, target - window + i);
                if (api->put(s, message, s->bytes))
                    return -1;
            }
            while (atomic_load_explicit(&s->pair->ack, memory_order_acquire) !=
                   target) { /* pairs with the store below */
                for (int i = 0; i < 8; i++)
                    bench_relax(s);
                if (api->poll(s))
                    return -1;
            }
            if (turn >= warm)
                ns += (double)(bench_now_ns() - t0);
        } else {
            s->to = s->spare + at;
            if (api->expect && api->expect(s))
                return -1;
            meet(s, api);
            while (s->got < target)
                if (api->poll(s) || (fresh && read_fresh(s, &seen)))
                    return -1;
            atomic_store_explicit(&s->pair->ack, target, memory_order_release);
            if (!fresh && !bench_filled(s->to, window * s->bytes, turn))
                return bench_process_fail(s, "bytes of a message of %llu bytes differ from what was sent",
                                          (unsigned long long)s->bytes);
        }
    }
    if (s->rank == 0)
        a->value = (double)(o->count * window * s->bytes) / ns;
    return 0;
}

static void run_order(struct bench_process *s, const struct bench_api *api, const struct bench_order *o)
{
    struct bench_answer a = {0};
    s->bytes = o->bytes;
    s->slots = 1;
    s->asleep = o->test == BENCH_WAITING;
    s->to = s->spare;
    s->got = s->sum = s->due = 0;
    atomic_store_explicit(&s->pair->ack, 0, memory_order_relaxed);
    int e = 0;
    if (api->ping && o->bytes > s->pool_bytes)
        e = bench_process_fail(s, "an order asks for %llu bytes, more than the plan's longest",
                               (unsigned long long)o->bytes);
    else if (api->prepare)
        e = api->prepare(s, o);
    meet(s, api);
    if (e == 0) {
        uint64_t before = preemptions(), waited = s->area->net.udp ? waited_ns() : 0, t0 = bench_now_ns();
        switch (o->test) {
        case BENCH_PROBE:
            run_probe(s, api, &a);
            break;
        case BENCH_LATENCY:
        case BENCH_WAITING:
            run_latency(s, api, o, &a);
            break;
        case BENCH_RATE:
            run_rate(s, api, o, &a);
            break;
        case BENCH_BANDWIDTH:
        case BENCH_BANDWIDTH_ALONE:
        case BENCH_FRESH:
        case BENCH_FRESH_ALONE:
            run_bandwidth(s, api, o, &a);
            break;
        default:
            if (!api->run)
                bench_process_fail(s, "an order names test %u, which is not for these processes", o->test);
            else
                api->run(s, o, &a);
        }
        a.elapsed_ns = (double)(bench_now_ns() - t0);
        if (s->area->net.udp)
            waited = waited_ns() - waited;
        a.preempted = disturbed(s, preemptions() - before, waited, a.elapsed_ns);
    }
    if (s->rank < 2)
        s->pair->answer[s->rank] = a;
}

static void make_pools(struct bench_process *s)
{
    uint64_t most = s->area->most_bytes;
    s->pool_bytes = most * 4 > MIN_POOL ? (most > MIN_POOL ? most : MIN_POOL) : MIN_POOL;
    s->pool = aligned_alloc(4096, (s->pool_bytes + 4095) / 4096 * 4096);
    s->spare = aligned_alloc(4096, (s->pool_bytes + 4095) / 4096 * 4096);
    if (!s->pool || !s->spare) {
        bench_process_fail(s, "no memory for two buffers of %zu bytes", s->pool_bytes);
        return;
    }
    memset(s->pool, 1, s->pool_bytes);
    memset(s->spare, 1, s->pool_bytes);
}

static void serve_orders(struct bench_process *s, const struct bench_api *api)
{
    struct bench_order order = {.test = BENCH_PROBE};
    /* Pairs of one that run at the same time spread over both. */
    size_t place = bench_pair_ranks(s->pair) > 1 ? s->rank : (size_t)(s->pair - s->area->pair);
    int cpu = s->area->cpu[place % 2], e = bench_pin(cpu);
    if (e)
        bench_process_fail(s, "could not pin to processor %d: %s", cpu, strerror(-e));
    else if (api->ping)
        make_pools(s);
    if (s->status == 0)
        bench_pair_attach(s->pair);
    for (uint32_t turn = 0; s->status == 0;) {
        turn = bench_pair_next(s->pair, turn, &order);
        if (order.test == BENCH_QUIT)
            break;
        run_order(s, api, &order);
        if (s->status)
            break; /* another process may hang in the middle of the order: whoever waits for this pair ends it */
        meet(s, api);
        bench_pair_done(s->pair);
    }
}

int bench_process_run(struct bench_area *area, unsigned index, const struct bench_api *api, unsigned rank)
{
    struct bench_pair *pair = &area->pair[index];
    struct bench_process s = {.area = area, .pair = pair, .rank = rank};
    s.one_core = area->one_core || bench_pair_ranks(pair) > 2;
    if (api->open(&s) == 0 && (api->ping || api->run)) {
        if (s.rank < bench_pair_ranks(pair)) {
            serve_orders(&s, api);
        } else {
            bench_pair_attach(pair);
            bench_pair_rest(pair);
        }
    }
    if (s.status)
        bench_pair_fail(pair, s.rank, s.text);
    else
        api->close(&s);
    free(s.pool);
    free(s.spare);
    return s.status ? 1 : 0;
}
