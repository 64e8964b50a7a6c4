/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stand_time.c - clocks, sleeping and chance of a copy. Reading a clock uses a little virtual time, and more and more
 * when a program does nothing else: one that waits for a moment by looking at the clock gets there. */
#include "sim/cluster/inside.h"
#include "sim/cluster/stand.h"
#include "sim/engine/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#define BILLION  ((uint64_t)1000000000)
#define EPOCH_NS (1000000000 * BILLION) /* what the wall clock of a host shows when its other clock shows 0 */

enum { READ_NS = 25, PATIENCE = 1000, IMPATIENT_NS = 1000, LONG_PATIENCE = 100000, LONG_NS = 100000 };

static uint64_t read_clock(void)
{
    struct rnl_guest *g = rnl_guest_now;
    uint64_t reads = ++g->clock_reads;
    rnl_guest_called(g);
    uint64_t ns = rnl_guest_ns(g);
    rnl_guest_charge(g, reads < PATIENCE ? READ_NS : reads < LONG_PATIENCE ? IMPATIENT_NS : LONG_NS);
    return ns;
}

static int stand_clock_gettime(clockid_t clock, struct timespec *t)
{
    uint64_t ns = read_clock();
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        ns += EPOCH_NS;
        break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
    case CLOCK_PROCESS_CPUTIME_ID: /* nobody else is on its processor */
    case CLOCK_THREAD_CPUTIME_ID:
        break;
    default:
        errno = EINVAL;
        return -1;
    }
    *t = (struct timespec){.tv_sec = (time_t)(ns / BILLION), .tv_nsec = (long)(ns % BILLION)};
    return 0;
}

static int stand_clock_getres(clockid_t clock, struct timespec *t)
{
    struct timespec unused;
    if (stand_clock_gettime(clock, &unused) < 0)
        return -1;
    if (t != NULL)
        *t = (struct timespec){.tv_nsec = 1};
    return 0;
}

static int stand_timespec_get(struct timespec *t, int base)
{
    return base == TIME_UTC && stand_clock_gettime(CLOCK_REALTIME, t) == 0 ? base : 0;
}

static int stand_gettimeofday(struct timeval *t, void *zone)
{
    struct timespec now;
    (void)zone;
    stand_clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

static time_t stand_time(time_t *t)
{
    struct timespec now;
    stand_clock_gettime(CLOCK_REALTIME, &now);
    if (t != NULL)
        *t = now.tv_sec;
    return now.tv_sec;
}

static clock_t stand_clock(void)
{
    return (clock_t)(read_clock() / (BILLION / CLOCKS_PER_SEC));
}

static void sleep_until(uint64_t ns)
{
    struct rnl_guest *g = rnl_guest_now;
    uint64_t tick = rnl_vhost_tick(g->host, ns);
    g->clock_reads = 0;
    while (rnl_sim_now(g->cluster->sim) < tick)
        rnl_guest_sleep(g, tick);
}

static void sleep_for(uint64_t ns)
{
    uint64_t now = rnl_guest_ns(rnl_guest_now);
    sleep_until(ns > UINT64_MAX - 1 - now ? UINT64_MAX - 1 : now + ns);
}

static int good(const struct timespec *t)
{
    return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < (long)BILLION;
}

static uint64_t ns_of(const struct timespec *t)
{
    return (uint64_t)t->tv_sec > UINT64_MAX / BILLION / 2 ? UINT64_MAX / 2
                                                          : (uint64_t)t->tv_sec * BILLION + (uint64_t)t->tv_nsec;
}

static int stand_nanosleep(const struct timespec *t, struct timespec *left)
{
    (void)left; /* nothing interrupts it */
    if (!good(t)) {
        errno = EINVAL;
        return -1;
    }
    sleep_for(ns_of(t));
    return 0;
}

static int stand_clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left)
{
    (void)left;
    if (!good(t))
        return EINVAL;
    uint64_t ns = ns_of(t), epoch = clock == CLOCK_REALTIME ? EPOCH_NS : 0;
    if (!(flags & TIMER_ABSTIME))
        sleep_for(ns);
    else
        sleep_until(ns > epoch ? ns - epoch : 0);
    return 0;
}

static int stand_usleep(useconds_t us)
{
    sleep_for((uint64_t)us * 1000);
    return 0;
}

static unsigned stand_sleep(unsigned s)
{
    sleep_for(s * BILLION);
    return 0;
}

static int stand_sched_yield(void)
{
    rnl_guest_called(rnl_guest_now);
    rnl_guest_charge(rnl_guest_now, IMPATIENT_NS);
    return 0;
}

/* ---- calendars: in universal time, and nothing kept behind the program's back ---- */

static struct tm *stand_gmtime_r(const time_t *t, struct tm *out)
{
    return gmtime_r(t, out);
}

/* ---- chance: rand is what the program's seed makes of it, getrandom what the run's does ---- */

static int stand_rand(void)
{
    struct rnl_guest *g = rnl_guest_now;
    rnl_guest_called(g);
    return (int)(rnl_sim_random(g->rand_seed, RNL_STREAM_GUEST, 0, g->drawn++) >> 33);
}

static long stand_random(void)
{
    return stand_rand();
}

static void stand_srand(unsigned seed)
{
    rnl_guest_now->rand_seed = seed;
    rnl_guest_now->drawn = 0;
}

static int stand_rand_r(unsigned *state)
{
    *state += 0x9e3779b9u;
    return (int)(rnl_sim_random(*state, RNL_STREAM_GUEST, 1, 0) >> 33);
}

static ssize_t stand_getrandom(void *to, size_t n, unsigned flags)
{
    struct rnl_guest *g = rnl_guest_now;
    (void)flags;
    rnl_guest_called(g);
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)to)[i] = (unsigned char)rnl_sim_random(g->cluster->opt.seed, RNL_STREAM_GUEST,
                                                                 (uint64_t)g->rank << 32 | g->life, g->drawn++);
    return (ssize_t)n;
}

static int stand_getentropy(void *to, size_t n)
{
    return stand_getrandom(to, n, 0) == (ssize_t)n ? 0 : -1;
}

const struct rnl_stand rnl_stand_time[] = {
    RNL_STAND(clock_gettime),
    RNL_STAND(clock_getres),
    RNL_STAND(timespec_get),
    RNL_STAND(gettimeofday),
    RNL_STAND(time),
    RNL_STAND(clock),
    RNL_STAND(nanosleep),
    RNL_STAND(clock_nanosleep),
    RNL_STAND(usleep),
    RNL_STAND(sleep),
    RNL_STAND(sched_yield),
    RNL_STAND(gmtime_r),
    RNL_STAND_AS(localtime_r, stand_gmtime_r),
    RNL_STAND(rand),
    RNL_STAND(random),
    RNL_STAND(srand),
    RNL_STAND_AS(srandom, stand_srand),
    RNL_STAND(rand_r),
    RNL_STAND(getrandom),
    RNL_STAND(getentropy),
    RNL_STAND_END,
};
