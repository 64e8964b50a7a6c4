/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_barrier.c - more processes than cores: a dissemination barrier over native sends, in which each tells the one
 * 2^k further on and waits in rnl_wait for the one 2^k behind. The baseline is a barrier of bare futexes between the
 * same processes: a counter, and a word on which all but the last sleep. Over datagrams it is the same exchange of
 * tokens over bare sockets, one a process, which sleeps in recv; between namespaces also among those of one
 * namespace. */
#include "process.h"
#include "runnel/runnel.h"
#include "scenario.h"
#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { TOKEN = 1, PAIR = 1, STEPS_MAX = 16, BARRIERS = 100, RANKS_MAX = 256, LIMIT_S = 20 };
enum { BASELINE, OURS };

struct barrier_board {
    _Alignas(64) _Atomic uint32_t here;
    _Alignas(64) _Atomic uint32_t generation; /* futex */
};
struct ports { /* over datagrams, instead: as the kernel keeps them; 0 = not there yet */
    _Atomic uint16_t of[RANKS_MAX];
};
_Static_assert(sizeof(struct barrier_board) <= sizeof((struct bench_pair *)0)->board, "fits");
_Static_assert(sizeof(struct ports) <= sizeof((struct bench_pair *)0)->board, "fits");

struct tokens {
    uint64_t in[STEPS_MAX], barriers; /* taken in for each step; passed */
};

static rnl_endpoint *ep;
static struct tokens ours, bare;
static int baseline_fd = -1; /* the baseline's socket */

static int failed(struct bench_process *s)
{
    return bench_process_fail(s, "%s", rnl_last_error()->text);
}

static int on_token(const void *buf, size_t n, unsigned peer, void *ctx)
{
    uint64_t step;
    (void)peer, (void)ctx;
    if (n == sizeof step) {
        memcpy(&step, buf, sizeof step);
        ours.in[step % STEPS_MAX]++;
    }
    return RNL_DONE;
}

/* Blocks of ranks are in one namespace each; over loopback there is one. */
static unsigned space_of(const struct bench_process *s, unsigned rank)
{
    return *s->area->net.space[0] ? rank >= bench_pair_ranks(s->pair) / 2 : 0;
}

static int open_single(struct bench_process *s)
{
    struct ports *p = (void *)s->pair->board;
    const struct timeval limit = {.tv_sec = LIMIT_S};
    uint16_t port;
    if ((baseline_fd = sockets_bind(s, space_of(s, s->rank), &port)) < 0)
        return -1;
    setsockopt(baseline_fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    atomic_store_explicit(&p->of[s->rank], port, memory_order_release);
    return 0;
}

static int open_job(struct bench_process *s)
{
    if (rnl_open(&ep, NULL))
        return failed(s);
    s->rank = rnl_rank(ep);
    if (bench_process_check_size(s, rnl_size(ep)))
        return -1;
    if (rnl_handler_whole(ep, TOKEN, on_token, NULL, 0) < 0)
        return failed(s);
    if (s->area->net.udp && open_single(s))
        return -1;
    return bench_connect_native(s, ep, rnl_size(ep)); /* then all of them have bound theirs */
}

static void close_job(struct bench_process *s)
{
    if (rnl_close(ep))
        failed(s);
    if (baseline_fd >= 0)
        close(baseline_fd);
}

static int native_barrier(struct bench_process *s)
{
    unsigned me = s->rank, ranks = bench_pair_ranks(s->pair);
    uint64_t step = 0;
    for (unsigned far = 1; far < ranks; far *= 2, step++) {
        if (rnl_send(ep, (me + far) % ranks, TOKEN, &step, sizeof step))
            return failed(s);
        while (ours.in[step] <= ours.barriers)
            if (rnl_wait(ep, -1) < 0)
                return failed(s);
    }
    ours.barriers++;
    return 0;
}

static int futex_barrier(struct bench_process *s)
{
    struct barrier_board *b = (void *)s->pair->board;
    uint32_t generation = atomic_load_explicit(&b->generation, memory_order_acquire);
    if (atomic_fetch_add_explicit(&b->here, 1, memory_order_acq_rel) + 1 == bench_pair_ranks(s->pair)) {
        atomic_store_explicit(&b->here, 0, memory_order_relaxed);
        atomic_store_explicit(&b->generation, generation + 1,
                              memory_order_release); /* also the count: who sees it may come again */
        bench_futex_wake_all(&b->generation);
        return 0;
    }
    while (atomic_load_explicit(&b->generation, memory_order_acquire) == generation)
        bench_futex_wait(&b->generation, generation, 10000);
    return 0;
}

static int say_bare(struct bench_process *s, unsigned rank, uint64_t step)
{
    const struct ports *p = (void *)s->pair->board;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = atomic_load_explicit(&p->of[rank], memory_order_acquire)};
    inet_pton(AF_INET, s->area->net.address[space_of(s, rank)], &to.sin_addr);
    if (sendto(baseline_fd, &step, sizeof step, 0, (void *)&to, sizeof to) != sizeof step)
        return bench_process_fail(s, "a bare socket could not send: %s", strerror(errno));
    return 0;
}

static int bare_barrier(struct bench_process *s)
{
    unsigned me = s->rank, ranks = bench_pair_ranks(s->pair);
    uint64_t step = 0, got;
    for (unsigned far = 1; far < ranks; far *= 2, step++) {
        if (say_bare(s, (me + far) % ranks, step))
            return -1;
        while (bare.in[step] <= bare.barriers) {
            if (recv(baseline_fd, &got, sizeof got, 0) != sizeof got)
                return bench_process_fail(s, "a datagram of a bare barrier did not come: %s", strerror(errno));
            bare.in[got % STEPS_MAX]++;
        }
    }
    bare.barriers++;
    return 0;
}

static int run(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    int (*baseline)(struct bench_process *) = s->area->net.udp ? bare_barrier : futex_barrier;
    int (*barrier)(struct bench_process *) = o->variant == BASELINE ? baseline : native_barrier;
    struct rnl_hist *h = &s->pair->hist;
    for (uint64_t i = 0; i < o->count / 10 + 1; i++)
        if (barrier(s))
            return -1;
    if (s->rank == 0)
        memset(h, 0, sizeof *h);
    uint64_t t0 = bench_now_ns(), last = t0, now = t0;
    for (uint64_t i = 0; i < o->count; i++, last = now) {
        if (barrier(s))
            return -1;
        now = bench_now_ns();
        if (s->rank == 0)
            rnl_hist_record(h, now - last);
    }
    a->value = (double)(now - t0) / (double)o->count / 1e3;
    return 0;
}

static int look(struct bench_process *s)
{
    return rnl_extract(ep, SIZE_MAX) < 0 ? failed(s) : s->status;
}

const struct bench_api bench_role_barrier = {
    .name = "barrier", .moves_when_called = true, .open = open_job, .close = close_job, .poll = look, .run = run};

/* ---- the scenario ---- */

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    return bench_scenario_add(p, &bench_scenario_barrier, BENCH_BARRIER, BENCH_NATIVE, w->ranks, 8, 0, true);
}

static void assign_roles(struct bench_area *area, const struct bench_wish *w)
{
    bench_assign_role(area, PAIR, "barrier", w->ranks, 0);
}

static int step(struct bench_run *r, struct bench_unit *first, size_t n)
{
    double value = NAN, baseline = NAN;
    (void)n;
    int e = bench_ask(r, PAIR, BENCH_BARRIER, BASELINE, BARRIERS, &baseline);
    if (e == 0)
        e = bench_ask(r, PAIR, BENCH_BARRIER, OURS, BARRIERS, &value);
    if (e == 0)
        e = bench_take_tail(r, PAIR, &first->now_tail);
    bench_put(first, value, baseline);
    return e;
}

const struct bench_scenario bench_scenario_barrier = {
    .name = "barrier",
    .share = 1,
    .ranks = true,
    .apis = 1u << BENCH_NATIVE,
    .plan = plan,
    .assign_roles = assign_roles,
    .step = step,
};
