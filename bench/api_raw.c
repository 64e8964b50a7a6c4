/* SPDX-License-Identifier: BSD-3-Clause
 *
 * api_raw.c - the baselines of raw.h as one more interface. Its variants are the choices that no machine agrees on: for
 * latency how to wait (fence or not, how many pauses), for rate whether lines are filled first and then written past
 * the caches, for what is long how to copy in and out and how much of the ring to use. Which one is the baseline is
 * decided by whoever collects: the best. */
#include "baseline_copy.h"
#include "process.h"

#include <poll.h>
#include <stdlib.h>

enum { SHORT, EIGHT, BULK };

/* How to wait. How long a pause lasts, and what polling costs the writer, differ from one processor to the next. */
static const struct {
    bool fence;
    unsigned pauses;
} waits[BENCH_WAITS] = {{false, 0}, {false, 1}, {false, 2}, {false, 5}, {true, 0},
                        {true, 1},  {true, 2},  {true, 3},  {true, 4},  {true, 6}};

static bool corks;               /* rate: full lines, past the caches */
static struct bench_process *of; /* handlers have no argument for it */

static void on_short(struct raw_end *e, const void *payload, uint32_t len)
{
    struct bench_process *s = of;
    (void)e;
    memcpy(bench_slot(s), payload, len);
    bench_count(s, payload, len);
}

static void on_eight(struct raw_end *e, const void *payload, uint32_t len)
{
    struct bench_process *s = of;
    uint64_t v;
    (void)e;
    (void)len;
    memcpy(&v, payload, 8);
    memcpy(s->to, &v, 8);
    s->got++;
    s->sum += v;
}

static void on_bulk(struct raw_end *e, const void *payload, uint32_t len)
{
    struct bench_process *s = of;
    (void)len;
    e->to = bench_slot(s);
    e->to_bytes = s->bytes;
    if (raw_take(e, payload))
        bench_count(s, e->to, s->bytes);
}

static int raw_open(struct bench_process *s)
{
    s->own = calloc(1, sizeof(struct raw_end));
    of = s;
    return s->own ? 0 : bench_process_fail(s, "no memory");
}

static void raw_close(struct bench_process *s)
{
    free(s->own);
}

static int raw_prepare(struct bench_process *s, const struct bench_order *o)
{
    struct raw_end *e = s->own;
    struct raw_direction *out = &s->area->direction[s->rank];
    /* Only this process's own direction: the other does the same with the other one, and both meet before they
     * start. */
    for (unsigned i = 0; i < RAW_LINES; i++)
        atomic_store_explicit(&out->line[i].header, 0, memory_order_relaxed);
    atomic_store_explicit(&out->credit, 0, memory_order_relaxed);
    atomic_store_explicit(&out->taken, 0, memory_order_relaxed);
    raw_start(e, out, &s->area->direction[!s->rank]);
    e->handler[SHORT] = on_short;
    e->handler[EIGHT] = on_eight;
    e->handler[BULK] = on_bulk;
    e->handler[3] = on_short;
    e->one_core = s->one_core;
    bool bulk = o->test != BENCH_RATE && (o->test != BENCH_LATENCY || o->bytes > BENCH_LONG);
    struct baseline_through through = baseline_through(bulk ? o->variant : 0);
    e->copy_in = baseline_copy_way(through.in);
    e->copy_out = baseline_copy_way(through.out);
    e->ring = through.ring;
    corks = o->test == BENCH_RATE && o->variant == 1;
    if (o->test == BENCH_LATENCY && !bulk) {
        e->fence = waits[o->variant % BENCH_WAITS].fence;
        e->pauses = waits[o->variant % BENCH_WAITS].pauses;
    }
    return 0;
}

static inline void put(struct raw_end *e, const void *from, size_t n)
{
    if (n <= RAW_PAYLOAD)
        raw_send(e, SHORT, from, (uint32_t)n);
    else
        raw_send_bulk(e, BULK, from, n);
}

/* Inlined twice: with a constant length the compiler sees the loop that a program for 8-byte messages would be. */
static inline __attribute__((always_inline)) void ping(struct bench_process *s, struct raw_end *e, uint64_t n,
                                                       struct rnl_hist *h, bool eight)
{
    uint64_t target = s->due;
    s->due += n;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t t0 = h ? bench_ticks() : 0;
        target++;
        for (unsigned turn = 0; turn < 2; turn++) {
            if (turn == s->rank) {
                if (eight)
                    raw_send(e, EIGHT, &i, 8);
                else
                    put(e, s->pool, s->bytes);
                raw_settle(e);
            } else {
                while (s->got < target)
                    if (!raw_poll(e))
                        raw_relax(e);
            }
        }
        if (h)
            bench_lap(s, h, t0);
    }
}

static int raw_ping(struct bench_process *s, uint64_t n, struct rnl_hist *h)
{
    if (s->bytes == 8)
        ping(s, s->own, n, h, true);
    else
        ping(s, s->own, n, h, false);
    return 0;
}

static int raw_stream(struct bench_process *s, uint64_t n)
{
    struct raw_end *e = s->own;
    if (s->rank == 1) {
        while (s->got < n)
            if (!raw_poll(e))
                raw_relax(e);
        return 0;
    }
    if (s->bytes == 8 && corks) {
        for (uint64_t i = 0; i < n; i++)
            raw_send_corked(e, EIGHT, &i);
        raw_uncork(e, EIGHT);
        return 0;
    }
    if (s->bytes == 8) {
        for (uint64_t i = 0; i < n; i++)
            raw_send(e, EIGHT, &i, 8);
        return 0;
    }
    for (uint64_t i = 0; i < n; i++) {
        memcpy(s->pool, &i, s->bytes < 8 ? s->bytes : 8);
        put(e, s->pool, s->bytes);
    }
    return 0;
}

static int raw_put(struct bench_process *s, const void *from, size_t n)
{
    put(s->own, from, n);
    return 0;
}

static int raw_look(struct bench_process *s)
{
    struct raw_end *e = s->own;
    if (!raw_poll(e))
        raw_relax(e);
    return 0;
}

/* The baseline of waiting: one system call that sleeps all the time. */
static int raw_run(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    if (o->test != BENCH_IDLE_WAIT)
        return bench_process_fail(s, "an order names test %u, which has no baseline here", o->test);
    uint64_t cpu0 = bench_cpu_ns(), t0 = bench_now_ns();
    (void)poll(NULL, 0, (int)o->count);
    a->value = (double)(bench_cpu_ns() - cpu0) / (double)(bench_now_ns() - t0) * 1e3;
    return 0;
}

const struct bench_api bench_api_raw = {
    .name = "raw",
    .open = raw_open,
    .close = raw_close,
    .prepare = raw_prepare,
    .ping = raw_ping,
    .stream = raw_stream,
    .put = raw_put,
    .poll = raw_look,
    .run = raw_run,
};
