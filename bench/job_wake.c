/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_wake.c - sleepers. How long an 8-byte message takes to a receiver that sleeps in rnl_wait, or in poll on rnl_fd,
 * until its handler runs; the baselines are a process that sleeps on a bare futex, and one in poll on an eventfd. And
 * what a sender pays for all that when the receiver is awake: the time of a send to one that asked for a descriptor,
 * unarmed or armed, beside one to a receiver that never asked.
 *
 * Two jobs of two, since asking for a descriptor cannot be undone. The sender of each forks the sleeper of its
 * baseline, which runs where the receiver does; whoever is not measured sleeps. Over datagrams the baselines sleep on a
 * bare socket instead, in recv and in poll, and a sender that is awake has nothing to tell anybody. */
#include "process.h"
#include "scenario.h"
#include "sockets.h"
#include "stats.h"

#include "runnel/runnel.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGE = 1, WAIT_PAIR = 1, FD_PAIR = 2 };
enum { BASELINE, OURS };                          /* variants of the tests that wake */
enum { WAKES = 20, BURSTS = 400, MOST = BURSTS }; /* in one order */
enum { SETTLE_NS = 100000, LIMIT_NS = 2000000000 };

struct wake_board {
    _Atomic uint64_t taken; /* by a sleeper: wake-ups and messages, all told */
    _Atomic uint64_t stamp_ns;
    _Atomic int32_t pid;                 /* of the receiver */
    _Atomic uint32_t port;               /* of the baseline's socket; 0 = not there yet */
    _Alignas(64) _Atomic uint32_t word;  /* the baseline's futex */
    _Atomic uint32_t resting;            /* the receiver sleeps here while the baseline is measured; futex */
    _Alignas(64) _Atomic uint64_t sent;  /* bursts */
    _Alignas(64) _Atomic uint64_t ready; /* bursts the receiver is in the right state for */
};
_Static_assert(sizeof(struct wake_board) <= sizeof((struct bench_pair *)0)->board, "fits");

static struct {
    rnl_endpoint *ep;
    int fd;         /* of the receiver: rnl_fd, or -1 */
    int eventfd;    /* of the baseline, or -1: it is a futex, or a socket */
    int socket;     /* to the baseline's, or -1 */
    pid_t baseline; /* the sender's child */
} my;

static struct wake_board *board_of(const struct bench_process *s)
{
    return (void *)s->pair->board;
}

static int failed(struct bench_process *s)
{
    return bench_process_fail(s, "%s", rnl_last_error()->text);
}

/* A sleeper is awake: when, then that. */
static void taken(struct wake_board *b)
{
    atomic_store_explicit(&b->stamp_ns, bench_now_ns(), memory_order_relaxed);
    /* pairs with the acquire in wake_once */
    atomic_fetch_add_explicit(&b->taken, 1, memory_order_release);
}

/* ---- the processes ---- */

static int on_message(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct bench_process *s = ctx;
    (void)buf, (void)n, (void)peer;
    s->got++;
    taken(board_of(s));
    return RNL_DONE;
}

/* On a bare socket, where the receiver is. */
static _Noreturn void sleep_on_socket(struct bench_process *s, bool polls)
{
    struct wake_board *b = board_of(s);
    uint16_t port = 0;
    uint64_t word;
    int fd = bench_net_enter(&s->area->net, 1) ? -1 : sockets_bind(s, 1, &port);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    atomic_store_explicit(&b->port, port, memory_order_release);
    while (fd >= 0) {
        if (polls && poll(&p, 1, -1) == 1)
            taken(b);
        if (recv(fd, &word, sizeof word, 0) == sizeof word && !polls)
            taken(b);
    }
    _exit(1);
}

static _Noreturn void sleep_for_baseline(struct bench_process *s, pid_t parent, bool polls)
{
    struct wake_board *b = board_of(s);
    struct pollfd p = {.fd = my.eventfd, .events = POLLIN};
    uint64_t count;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || bench_pin(s->area->cpu[1]))
        _exit(1);
    if (s->area->net.udp)
        sleep_on_socket(s, polls);
    for (uint32_t seen = 0;;) {
        if (my.eventfd < 0) {
            while (atomic_load_explicit(&b->word, memory_order_acquire) == seen)
                bench_futex_wait(&b->word, seen, 10000);
            seen++;
            taken(b);
        } else if (poll(&p, 1, -1) == 1) {
            taken(b);
            if (read(my.eventfd, &count, sizeof count) != sizeof count)
                _exit(1);
        }
    }
}

static int open_job(struct bench_process *s, bool with_fd)
{
    my.fd = my.eventfd = my.socket = -1;
    if (rnl_open(&my.ep, NULL))
        return failed(s);
    s->rank = rnl_rank(my.ep);
    if (bench_process_check_size(s, rnl_size(my.ep)))
        return -1;
    if (rnl_handler_whole(my.ep, MESSAGE, on_message, s, 0) < 0)
        return failed(s);
    if (s->rank == 1) {
        atomic_store_explicit(&board_of(s)->pid, getpid(), memory_order_relaxed);
        if (with_fd && (my.fd = rnl_fd(my.ep)) < 0)
            return failed(s);
        return 0;
    }
    if (with_fd && !s->area->net.udp && (my.eventfd = eventfd(0, EFD_CLOEXEC)) < 0)
        return bench_process_fail(s, "no eventfd: %s", strerror(errno));
    pid_t parent = getpid();
    my.baseline = fork();
    if (my.baseline == 0)
        sleep_for_baseline(s, parent, with_fd);
    return my.baseline < 0 ? bench_process_fail(s, "could not fork: %s", strerror(errno)) : 0;
}

static int open_wait(struct bench_process *s)
{
    return open_job(s, false);
}

static int open_fd(struct bench_process *s)
{
    return open_job(s, true);
}

static void close_job(struct bench_process *s)
{
    if (my.baseline > 0) {
        kill(my.baseline, SIGKILL);
        waitpid(my.baseline, NULL, 0);
    }
    if (rnl_close(my.ep))
        failed(s);
}

/* ---- waking ---- */

/* Until the kernel says that it sleeps, twice in a row: nothing it does on its way to sleep counts. */
static int wait_asleep(struct bench_process *s, int stat, uint64_t end_ns)
{
    char line[256];
    for (unsigned asleep = 0; asleep < 2;) {
        ssize_t n = pread(stat, line, sizeof line - 1, 0);
        line[n > 0 ? n : 0] = 0;
        const char *state = strrchr(line, ')');
        if (!state || bench_now_ns() > end_ns)
            return bench_process_fail(s, "the receiver did not fall asleep");
        asleep = state[1] && state[2] == 'S' ? asleep + 1 : 0;
        for (uint64_t until = bench_now_ns() + SETTLE_NS / 2; bench_now_ns() < until;)
            bench_relax(s);
    }
    return 0;
}

static int wake_socket(struct bench_process *s)
{
    const uint64_t one = 1;
    uint16_t port;
    uint32_t other;
    while ((other = atomic_load_explicit(&board_of(s)->port, memory_order_acquire)) == 0) /* it has just been forked */
        sched_yield();
    if (my.socket < 0 && (my.socket = sockets_bind(s, 0, &port)) >= 0 && sockets_join(s, my.socket, 1, (uint16_t)other))
        return -1;
    return send(my.socket, &one, sizeof one, 0) == sizeof one ? 0
                                                              : bench_process_fail(s, "a bare socket could not send");
}

static int wake(struct bench_process *s, bool baseline)
{
    const uint64_t one = 1;
    if (!baseline)
        return rnl_send(my.ep, 1, MESSAGE, &one, sizeof one) ? failed(s) : 0;
    if (s->area->net.udp)
        return wake_socket(s);
    if (my.eventfd >= 0)
        return write(my.eventfd, &one, sizeof one) == sizeof one ? 0
                                                                 : bench_process_fail(s, "could not write an eventfd");
    struct wake_board *b = board_of(s);
    atomic_fetch_add_explicit(&b->word, 1, memory_order_release);
    bench_futex_wake_all(&b->word);
    return 0;
}

static int wake_once(struct bench_process *s, bool baseline, int stat, double *us)
{
    struct wake_board *b = board_of(s);
    uint64_t before = atomic_load_explicit(&b->taken, memory_order_relaxed), end = bench_now_ns() + LIMIT_NS;
    if (wait_asleep(s, stat, end))
        return -1;
    uint64_t t0 = bench_now_ns();
    if (wake(s, baseline))
        return -1;
    while (atomic_load_explicit(&b->taken, memory_order_acquire) == before) {
        bench_relax(s);
        if (!baseline && s->area->net.udp && rnl_extract(my.ep, SIZE_MAX) < 0) /* datagrams move when it is called */
            return failed(s);
        if (bench_now_ns() > end)
            return bench_process_fail(s, "the receiver did not wake up");
    }
    uint64_t ns = atomic_load_explicit(&b->stamp_ns, memory_order_relaxed) - t0;
    rnl_hist_record(&s->pair->hist, ns);
    *us = (double)ns / 1e3;
    return 0;
}

static int wake_many(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    double us[MOST];
    char path[32];
    bool baseline = o->variant == BASELINE;
    int pid = baseline ? (int)my.baseline : atomic_load_explicit(&board_of(s)->pid, memory_order_relaxed);
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int stat = open(path, O_RDONLY | O_CLOEXEC), e = 0;
    if (stat < 0)
        return bench_process_fail(s, "cannot read %s: is /proc mounted?", path);
    memset(&s->pair->hist, 0, sizeof s->pair->hist);
    for (uint64_t i = 0; i < o->count && e == 0; i++)
        e = wake_once(s, baseline, stat, &us[i % MOST]);
    close(stat);
    if (baseline) { /* the receiver was in the way of nobody meanwhile */
        atomic_store_explicit(&board_of(s)->resting, 0, memory_order_release);
        bench_futex_wake_all(&board_of(s)->resting);
    }
    a->value = bench_median(us, o->count < MOST ? o->count : MOST);
    return e;
}

static int be_woken(struct bench_process *s, const struct bench_order *o)
{
    struct wake_board *b = board_of(s);
    struct pollfd p = {.fd = my.fd, .events = POLLIN};
    while (o->variant == BASELINE && atomic_load_explicit(&b->resting, memory_order_acquire))
        bench_futex_wait(&b->resting, 1, 10000);
    while (o->variant == OURS && s->got < o->count) {
        int64_t got = my.fd < 0 ? rnl_wait(my.ep, -1) : rnl_extract(my.ep, SIZE_MAX);
        if (got < 0)
            return failed(s);
        if (my.fd >= 0 && got == 0 && s->got < o->count)
            (void)poll(&p, 1, -1);
    }
    return 0;
}

/* ---- sending to one who is awake ---- */

/* o->count bursts of o->variant messages, a few hundred ns each. The receiver computes meanwhile: it is awake, but in
 * no call, so that the sender alone is measured. */
static int send_bursts(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    struct wake_board *b = board_of(s);
    double ns[MOST];
    for (uint64_t i = 0; i < o->count; i++) {
        while (atomic_load_explicit(&b->ready, memory_order_acquire) != i + 1)
            bench_relax(s);
        uint64_t t0 = bench_ticks();
        for (uint64_t m = 0; m < o->variant; m++)
            if (rnl_send(my.ep, 1, MESSAGE, &m, sizeof m))
                return failed(s);
        ns[i % MOST] = (double)(bench_ticks() - t0) * s->area->ns_per_tick / (double)o->variant;
        atomic_store_explicit(&b->sent, i + 1, memory_order_release);
    }
    a->value = bench_median(ns, o->count < MOST ? o->count : MOST);
    return 0;
}

/* Unarmed: the last extract found something. Armed: the last ones found nothing. */
static int take_bursts(struct bench_process *s, const struct bench_order *o)
{
    struct wake_board *b = board_of(s);
    for (uint64_t i = 0; i < o->count; i++) {
        for (unsigned k = 0; o->test == BENCH_WAKE_ARMED && k < 3; k++)
            if (rnl_extract(my.ep, SIZE_MAX) < 0)
                return failed(s);
        atomic_store_explicit(&b->ready, i + 1, memory_order_release);
        while (atomic_load_explicit(&b->sent, memory_order_acquire) != i + 1)
            bench_relax(s);
        while (s->got < (i + 1) * o->variant)
            if (rnl_extract(my.ep, SIZE_MAX) < 0)
                return failed(s);
    }
    /* Nothing of this order is left for the next one to take for its own. */
    atomic_store_explicit(&b->ready, 0, memory_order_relaxed);
    atomic_store_explicit(&b->sent, 0, memory_order_relaxed);
    return 0;
}

static int look(struct bench_process *s)
{
    return rnl_extract(my.ep, SIZE_MAX) < 0 ? failed(s) : s->status;
}

static int run(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    bool waking = o->test == BENCH_WAKE_WAIT || o->test == BENCH_WAKE_POLL;
    if (s->rank == 0)
        return waking ? wake_many(s, o, a) : send_bursts(s, o, a);
    return waking ? be_woken(s, o) : take_bursts(s, o);
}

/* Before both meet: neither runs ahead of what the other has reset. */
static int prepare(struct bench_process *s, const struct bench_order *o)
{
    if (s->rank == 1)
        atomic_store_explicit(&board_of(s)->resting, o->variant == BASELINE, memory_order_relaxed);
    return 0;
}

const struct bench_api bench_role_wake = {.name = "wake",
                                          .moves_when_called = true,
                                          .open = open_wait,
                                          .close = close_job,
                                          .prepare = prepare,
                                          .poll = look,
                                          .run = run};
const struct bench_api bench_role_wake_fd = {.name = "wake-fd",
                                             .moves_when_called = true,
                                             .open = open_fd,
                                             .close = close_job,
                                             .prepare = prepare,
                                             .poll = look,
                                             .run = run};

/* ---- the scenario ---- */

static const unsigned bursts[] = {1, 64};

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    static const enum bench_test waking[] = {BENCH_WAKE_WAIT, BENCH_WAKE_POLL};
    static const enum bench_test sending[] = {BENCH_WAKE_UNARMED, BENCH_WAKE_ARMED};
    int e = 0;
    for (unsigned t = 0; t < 2 && e == 0; t++) {
        e = bench_scenario_add(p, &bench_scenario_wake, waking[t], BENCH_NATIVE, 0, 8, t, true);
        for (unsigned k = 0; k < 2 && e == 0 && !w->udp; k++)
            e = bench_scenario_add(p, &bench_scenario_wake, sending[t], BENCH_NATIVE, bursts[k], 8, 2 + t, true);
    }
    return e;
}

static void assign_roles(struct bench_area *area, const struct bench_wish *w)
{
    (void)w;
    bench_assign_role(area, WAIT_PAIR, "wake", 2, 0);
    bench_assign_role(area, FD_PAIR, "wake-fd", 2, 0);
}

static int step(struct bench_run *r, struct bench_unit *first, size_t n)
{
    double value = NAN, baseline = NAN;
    int e = 0;
    if (first->test == BENCH_WAKE_WAIT || first->test == BENCH_WAKE_POLL) {
        unsigned pair = first->test == BENCH_WAKE_WAIT ? WAIT_PAIR : FD_PAIR;
        e = bench_ask(r, pair, first->test, BASELINE, WAKES, &baseline);
        if (e == 0)
            e = bench_ask(r, pair, first->test, OURS, WAKES, &value);
        if (e == 0)
            e = bench_take_tail(r, pair, &first->now_tail);
        bench_put(first, value, baseline);
        return e;
    }
    for (unsigned k = 0; k < 2 && e == 0; k++) {
        struct bench_unit *u = bench_find(first, n, first->test, BENCH_NATIVE, bursts[k]);
        e = bench_ask(r, WAIT_PAIR, u->test, bursts[k], BURSTS, &baseline);
        if (e == 0)
            e = bench_ask(r, FD_PAIR, u->test, bursts[k], BURSTS, &value);
        bench_put(u, value, baseline);
    }
    return e;
}

const struct bench_scenario bench_scenario_wake = {
    .name = "wake",
    .share = 1.5,
    .apis = 1u << BENCH_NATIVE,
    .plan = plan,
    .assign_roles = assign_roles,
    .step = step,
};
