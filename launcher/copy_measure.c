/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy_measure.c - see copy_measure.h. The sender copies a piece into the ring and stores its number; the receiver
 * copies it out and stores that number back. Each kind has its turn in each round, and of all rounds the least time
 * counts: who was interrupted only took longer. */
#include "copy_measure.h"
#include "base/copy.h"
#include "base/env.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    AREA = 1 << 20,
    STREAMED = 256 << 10, /* bytes that are sent one behind the other */
    ALONE = 4,            /* messages that are sent one at a time */
    ROUNDS = 3,
    TRIPS = 200,
    PROBES = 3,
    FAR_FROM_NS = 110,      /* a bare line, one way */
    GIVE_UP_NS = 250000000, /* for all; undisturbed it takes some 10 ms, on a busy host each order may be interrupted */
    BETTER_BY = 90          /* percent of the default's time below which another way takes its place */
};
enum { ALL = (1 << RNL_COPIES_DISTANCES) - 1 };
static const size_t sizes[RNL_COPIES_SIZES] = {4 << 10, 16 << 10, 64 << 10};
/* The classes of sizes (copies.h) that each measured size stands for. */
static const unsigned first_class[RNL_COPIES_SIZES + 1] = {11, 13, 15, 16};

struct copy_order {
    uint32_t kind;
    size_t bytes, area;
    uint64_t messages, window; /* of which so many may be under way */
};
struct copy_pair {
    _Alignas(128) _Atomic uint64_t there; /* messages in the ring; written by the sender */
    _Alignas(128) _Atomic uint64_t taken; /* messages out of it; by the receiver */
    _Alignas(128) _Atomic uint32_t turn;  /* number of the order; by the sender */
    _Atomic uint32_t stop;
    struct copy_order order;
    uint64_t give_up_ns; /* when the sender does */
    int cpu;
    uint8_t wide;
    unsigned char *ring, *from, *to;
    struct rnl_copies_found found; /* line_ns 0: nothing; by the sender */
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static int pin(int cpu)
{
    cpu_set_t set;
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return -1;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

static void receive(struct copy_pair *p)
{
    (void)pin(p->cpu);
    for (uint32_t turn = 1;; turn++) {
        while (atomic_load_explicit(&p->turn, memory_order_acquire) != turn) /* pairs with run */
            if (atomic_load_explicit(&p->stop, memory_order_relaxed))
                return;
        struct copy_order o = p->order;
        for (uint64_t i = 0; i < o.messages; i++) {
            while (atomic_load_explicit(&p->there, memory_order_acquire) <= i) { /* pairs with run */
                if (atomic_load_explicit(&p->stop, memory_order_relaxed))
                    return;
                if (o.bytes)
                    relax();
            }
            if (o.bytes)
                rnl_copy_out(p->to, p->ring + i * o.bytes % o.area, o.bytes, p->wide);
            atomic_store_explicit(&p->taken, i + 1, memory_order_release);
        }
    }
}

/* Returns the ns for an order, or 0 = the time for all is over. The receiver may be late to begin, and either may be
 * interrupted: then it took long, and the least time of other rounds counts. */
static double run(struct copy_pair *p, const struct copy_order *o)
{
    uint64_t taken = 0, began = now_ns(), looks = 0;
    if (atomic_load_explicit(&p->stop, memory_order_relaxed))
        return 0;
    atomic_store_explicit(&p->there, 0, memory_order_relaxed);
    atomic_store_explicit(&p->taken, 0, memory_order_relaxed);
    p->order = *o;
    uint32_t turn = atomic_load_explicit(&p->turn, memory_order_relaxed) + 1;
    atomic_store_explicit(&p->turn, turn, memory_order_release); /* pairs with receive */
    for (uint64_t i = 0; i <= o->messages; i++) {
        const uint64_t due = i == o->messages ? i : i < o->window ? 0 : i + 1 - o->window;
        while ((taken = atomic_load_explicit(&p->taken, memory_order_acquire)) < due) { /* pairs with receive */
            if (++looks % 256 == 0 && now_ns() > p->give_up_ns) {
                atomic_store_explicit(&p->stop, 1, memory_order_relaxed); /* the receiver is still at this order */
                return 0;
            }
            if (o->bytes)
                relax();
        }
        if (i == o->messages)
            break;
        if (o->bytes)
            rnl_copy_in_kind((enum rnl_copy_kind)o->kind, p->ring + i * o->bytes % o->area,
                             p->from + i * o->bytes % STREAMED, o->bytes);
        atomic_store_explicit(&p->there, i + 1, memory_order_release); /* pairs with receive */
    }
    return (double)(now_ns() - began);
}

static double least(double a, double b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

/* One way, ns, of a line; 0 = too long. */
static double cross(struct copy_pair *p)
{
    const struct copy_order o = {.messages = TRIPS, .window = 1};
    double best = 0;
    for (int i = 0; i < PROBES; i++) {
        double ns = run(p, &o);
        if (ns == 0)
            return 0;
        best = least(best, ns / TRIPS / 2);
    }
    return best;
}

/* What a message costs in a stream and alone, added: neither is to become slower for the other. 0 = unknown. */
static double cost(struct copy_pair *p, enum rnl_copy_kind kind, size_t bytes, size_t area)
{
    const struct copy_order stream = {kind, bytes, area, STREAMED / bytes, area / bytes / 2},
                            alone = {kind, bytes, area, ALONE, 1};
    double a = run(p, &stream), b = a > 0 ? run(p, &alone) : 0;
    return b > 0 ? a / (double)stream.messages + b / ALONE : 0;
}

uint64_t rnl_copies_choose(double ns[RNL_COPIES_SIZES][RNL_COPY_KINDS], double area_ns)
{
    uint64_t word = RNL_COPIES_DEFAULT;
    double best_ns = 0;
    for (unsigned i = 0; i < RNL_COPIES_SIZES; i++) {
        enum rnl_copy_kind usual = rnl_copies_kind(RNL_COPIES_DEFAULT, sizes[i]), best = usual;
        for (unsigned k = 0; k < RNL_COPY_KINDS; k++)
            if (ns[i][usual] > 0 && ns[i][k] > 0 && ns[i][k] < ns[i][best] && ns[i][k] * 100 < ns[i][usual] * BETTER_BY)
                best = (enum rnl_copy_kind)k;
        for (unsigned class = first_class[i]; class < first_class[i + 1]; class ++)
            word = (word & ~((uint64_t)15 << 4 * class)) | (uint64_t)best << 4 * class;
        best_ns = ns[i][best];
    }
    if (area_ns > 0 && best_ns > 0 && area_ns * 100 < best_ns * BETTER_BY)
        word |= 1;
    return word;
}

static uint64_t measure(struct copy_pair *p)
{
    double ns[RNL_COPIES_SIZES][RNL_COPY_KINDS] = {{0}}, area_ns = 0;
    const size_t longest = sizes[RNL_COPIES_SIZES - 1];
    memset(p->ring, 1, AREA + STREAMED + longest);
    for (int r = 0; r < ROUNDS; r++)
        for (unsigned i = 0; i < RNL_COPIES_SIZES; i++)
            for (unsigned k = 0; k < RNL_COPY_KINDS; k++)
                if (rnl_copies_valid((uint64_t)k << 60))
                    ns[i][k] = least(ns[i][k], cost(p, (enum rnl_copy_kind)k, sizes[i], AREA / 2));
    enum rnl_copy_kind best = rnl_copies_kind(rnl_copies_choose(ns, 0), longest);
    for (int r = 0; r < ROUNDS; r++)
        area_ns = least(area_ns, cost(p, best, longest, AREA));
    return rnl_copies_choose(ns, area_ns);
}

static void send_pieces(struct copy_pair *p, int cpu, unsigned known)
{
    if (pin(cpu) < 0)
        return;
    p->give_up_ns = now_ns() + GIVE_UP_NS;
    double before = cross(p);
    unsigned distance = before < FAR_FROM_NS ? RNL_NEAR : RNL_FAR;
    if (before == 0 || known >> distance & 1)
        return;
    uint64_t word = measure(p);
    double after = cross(p), low = before < after ? before : after;
    if (low > 0 && before + after < low * 2.4) /* the processors are where they were */
        p->found = (struct rnl_copies_found){distance, (uint32_t)(low + 0.5), word};
}

/* Begins a child that dies with this process. Returns 0 in the child, its pid here, -1 = there is none. */
static pid_t begin_child(pid_t parent)
{
    pid_t child = fork();
    if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
        _exit(1);
    return child;
}

static void wait_for(pid_t child)
{
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
}

/* Two processes of their own, so that the caller's affinity stays as it is and it has no threads. */
int rnl_copies_measure(const int cpu[2], unsigned known, struct rnl_copies_found *out)
{
    static const size_t head = 4096, bytes = 4096 + AREA + STREAMED + (64 << 10);
    static_assert(sizeof(struct copy_pair) <= 4096, "the pair has a page of its own");
    unsigned char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 0;
    struct copy_pair *p = (struct copy_pair *)(void *)memory;
    p->ring = memory + head;
    p->from = p->ring + AREA;
    p->to = p->from + STREAMED;
    p->cpu = cpu[1];
    p->wide = rnl_copy_detect();
    const pid_t self = getpid(), receiver = begin_child(self);
    if (receiver == 0) {
        receive(p);
        _exit(0);
    }
    const pid_t sender = receiver > 0 ? begin_child(self) : -1;
    if (sender == 0) {
        send_pieces(p, cpu[0], known);
        _exit(0);
    }
    wait_for(sender);
    atomic_store_explicit(&p->stop, 1, memory_order_relaxed);
    wait_for(receiver);
    const struct rnl_copies_found found = p->found;
    munmap(memory, bytes);
    if (found.line_ns == 0)
        return 0;
    *out = found;
    return 1;
}

/* The first two processors of this process and the last, which is likely to be far from them; -1 = none. */
static void three_processors(int cpus[3])
{
    cpu_set_t set;
    int n = 0;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) {
            cpus[n] = cpu;
            n += n < 2;
        }
}

unsigned rnl_copies_complete(struct rnl_copies *c)
{
    struct rnl_copies_found found;
    char path[RNL_COPIES_PATH_MAX];
    unsigned known = 0, fresh = 0;
    int cpus[3] = {-1, -1, -1};
    (void)rnl_copies_load(c);
    for (unsigned d = 0; d < RNL_COPIES_DISTANCES; d++)
        known |= (unsigned)(c->line_ns[d] > 0) << d;
    if (known != ALL && rnl_copies_path(path, sizeof path))
        three_processors(cpus);
    for (int i = 1; i < 3 && cpus[i] >= 0 && known != ALL; i++) {
        const int pair[2] = {cpus[0], cpus[i]};
        if (rnl_copies_measure(pair, known, &found) <= 0)
            continue;
        c->word[found.distance] = found.word;
        c->line_ns[found.distance] = found.line_ns;
        known |= 1u << found.distance;
        fresh = 1;
    }
    if (fresh)
        (void)rnl_copies_save(c); /* without a table it is measured again next time */
    return (known & 1) + (known >> 1);
}
