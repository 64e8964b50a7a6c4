/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env_host.c - the part of an env that every real host has: clock, random numbers, yielding and sleeping, the
 * process-wide fence, the distance sensors. Holds no state, but for a count behind the fallback
 * of rnl_host_random. Shared memory and events are left to the agent and the hub. */
#include "base/copy.h"
#include "base/env.h"
#include "base/sense.h"
#include "runnel/runnel.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define HAVE_TSC 1
#include <cpuid.h>
#include <immintrin.h>
#include <x86intrin.h>
#else
#define HAVE_TSC 0
#endif

static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "a futex word");
static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "atomics go into shared memory");

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the time-stamp counter ---- */

#if HAVE_TSC
/* ns for measuring the counter's rate to about 0.1 %; short, since every process of a job pays it at start-up */
enum { CALIBRATE_NS = 50000 };

/* Reads clock and counter at one moment: of a few tries, the one that took least time. */
static uint64_t moment(uint64_t *tsc)
{
    uint64_t best = UINT64_MAX, ns = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t before = __rdtsc();
        uint64_t now = clock_ns();
        uint64_t after = __rdtsc();
        if (after - before < best) {
            best = after - before;
            *tsc = before + best / 2;
            ns = now;
        }
    }
    return ns;
}

static uint64_t tsc_khz(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8))
        return 0; /* the rate changes with the clock of the core */
    if (__get_cpuid(0x15, &a, &b, &c, &d) && a != 0 && b != 0 && c != 0)
        return (uint64_t)c * b / a / 1000;
    uint64_t tsc0 = 0, tsc1 = 0;
    uint64_t ns0 = moment(&tsc0);
    uint64_t end = ns0 + CALIBRATE_NS;
    while (clock_ns() < end)
        _mm_pause();
    uint64_t ns1 = moment(&tsc1);
    return ns1 > ns0 && tsc1 > tsc0 ? (uint64_t)((double)(tsc1 - tsc0) * 1e6 / (double)(ns1 - ns0)) : 0;
}

static uint64_t ticks_to_ns(const struct rnl_env *env, uint64_t ticks)
{
    if (ticks > (uint64_t)1 << 62) /* the two readings came from cores whose counters differ a little */
        return 0;
    return (uint64_t)((double)ticks * 1e6 / (double)env->facts.tsc_khz);
}
#endif

/* ---- facts ---- */

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* Registers this process for membarrier, which reaches registered processes only. Each process therefore registers, and
 * publishes whether it could (senders_fence in its control page). */
static uint8_t membarrier_register(void)
{
    int have = membarrier(MEMBARRIER_CMD_QUERY);
    int need = MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
    if (have < 0 || (have & need) != need)
        return 0;
    return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 &&
           membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}

/* Sets how empty polls are spaced, as measured on one processor of each kind: a tight loop takes the cell away while it
 * is being written, and the pause instruction takes a different time on each. Also sets whether a fence before the
 * first poll after a send pays where the peer is near (notes/2026-11-performance.md). */
static void poll_facts(struct rnl_env_facts *facts)
{
    facts->pauses_near = 1;
    facts->pauses_far = 2;
    facts->fence_near = 0;
#if HAVE_TSC
    unsigned most, name[3] = {0};
    if (__get_cpuid(0, &most, &name[0], &name[2], &name[1]) && memcmp(name, "GenuineIntel", sizeof name) == 0) {
        facts->pauses_near = 6;
        facts->pauses_far = 6;
        facts->fence_near = 1;
    }
#endif
}

/* On a busy host each of these may let somebody else run: then it is a guess, which the endpoint's yields correct. */
static uint32_t shortest_yield_ns(void)
{
    enum { YIELDS = 4, GUESS_NS = 2000 };
    uint64_t shortest = GUESS_NS;
    for (int i = 0; i < YIELDS; i++) {
        uint64_t began = clock_ns();
        sched_yield();
        uint64_t took = clock_ns() - began;
        shortest = took < shortest ? took : shortest;
    }
    return (uint32_t)shortest;
}

void rnl_host_facts(struct rnl_env_facts *facts)
{
    uint64_t random;
    facts->weak_random = getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random;
    /* The processors of the host, not those of the affinity mask: a bound rank would see one, and take the host for
     * crowded. */
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    facts->cpus = cpus > 0 ? (uint32_t)cpus : 1;
    facts->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    poll_facts(facts);
    facts->have_membarrier = membarrier_register();
    facts->wide_copy = rnl_copy_detect();
    (void)rnl_copies_load(&facts->copies);
    facts->yield_ns = shortest_yield_ns();
#if HAVE_TSC
    facts->tsc_khz = tsc_khz();
#else
    facts->tsc_khz = 0;
#endif
}

/* Uses local sockets: those of a network may be closed to this process, and need an interface that is up. */
uint32_t rnl_host_round_trip_ns(void)
{
    enum { TRIPS = 8 };
    uint64_t best = UINT32_MAX, what = 0;
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fd) < 0)
        return 0;
    for (int i = 0; i < TRIPS; i++) {
        uint64_t began = clock_ns();
        for (int k = 0; k < 2 && best; k++)
            if (send(fd[k], &what, sizeof what, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof what ||
                recv(fd[!k], &what, sizeof what, MSG_DONTWAIT) != (ssize_t)sizeof what)
                best = 0;
        uint64_t took = clock_ns() - began;
        best = took < best ? took : best;
    }
    close(fd[0]);
    close(fd[1]);
    return (uint32_t)best;
}

/* ---- time and random numbers ---- */

uint64_t rnl_host_now_ns(struct rnl_env *env)
{
    (void)env;
    return clock_ns();
}

/* Serves rare needs: nonces, incarnations, jitter. There is no generator of our own, whose state a fork would copy. */
uint64_t rnl_host_random(struct rnl_env *env)
{
    uint64_t r;
    (void)env;
    if (getrandom(&r, sizeof r, 0) == (ssize_t)sizeof r)
        return r;
    /* Only where a filter forbids the call: numbers that differ, but are not secret. */
    static _Atomic uint64_t drawn;
    uint64_t z = clock_ns() + ((uint64_t)getpid() << 40) +
                 atomic_fetch_add_explicit(&drawn, 0x9e3779b97f4a7c15u, memory_order_relaxed);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- waiting ---- */

uint64_t rnl_host_yield(struct rnl_env *env)
{
#if HAVE_TSC
    if (env->facts.tsc_khz != 0) {
        uint64_t start = __rdtsc();
        sched_yield();
        return ticks_to_ns(env, __rdtsc() - start);
    }
#endif
    (void)env;
    uint64_t start = clock_ns();
    sched_yield();
    return clock_ns() - start;
}

/* The word may lie in shared memory, so FUTEX_PRIVATE_FLAG is never used. Every failure (changed already, timed out,
 * signal) is an ordinary return. */
void rnl_host_park(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    struct timespec at = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
    (void)env;
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET, expected, deadline_ns == UINT64_MAX ? NULL : &at, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

void rnl_host_wake(struct rnl_env *env, _Atomic uint32_t *word)
{
    (void)env;
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int rnl_host_park_on(struct rnl_env *env, int fd, uint64_t deadline_ns)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = env->ops->fd(env), .events = POLLIN}};
    uint64_t now = clock_ns(), ns = deadline_ns > now ? deadline_ns - now : 0;
    struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    return ppoll(p, 2, deadline_ns == UINT64_MAX ? NULL : &left, NULL) > 0;
}

/* Leaves no error record: where the system has no membarrier, every sleep would write one. */
int rnl_host_heavy_fence(struct rnl_env *env)
{
    if (!env->facts.have_membarrier)
        return RNL_ERR_UNSUPPORTED;
    return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0 ? 0 : RNL_ERR_SYSTEM;
}

/* ---- the distance sensors: they time different things that take about as long, and feed one average ---- */

/* A value that changed came from the peer's cache; one that did not may have been in the own cache, and gives
 * no sample. */
uint64_t rnl_host_sense_load(struct rnl_env *env, const _Atomic uint64_t *word, uint64_t last, uint8_t *d)
{
#if HAVE_TSC
    if (env->facts.tsc_khz != 0) {
        uint64_t start = __rdtsc();
        _mm_lfence();
        uint64_t value = atomic_load_explicit(word, memory_order_acquire); /* pairs with the writer of *word */
        _mm_lfence();
        uint64_t ticks = __rdtsc() - start;
        if (value != last)
            rnl_sense_sample(d, ticks_to_ns(env, ticks), 8, rnl_sense_middle_ns(&env->facts.copies));
        return value;
    }
#endif
    (void)env, (void)last, (void)d;
    return atomic_load_explicit(word, memory_order_acquire); /* pairs with the writer of *word */
}

/* After sending a single message, the fence takes as long as getting back the cache line of the store. Too slow to be
 * called after each message. */
void rnl_host_sense_fence(struct rnl_env *env, uint8_t *d)
{
#if HAVE_TSC
    if (env->facts.tsc_khz == 0)
        return;
    uint64_t start = __rdtsc();
    _mm_mfence();
    rnl_sense_sample(d, ticks_to_ns(env, __rdtsc() - start), 4, rnl_sense_middle_ns(&env->facts.copies));
#else
    (void)env, (void)d;
#endif
}
