/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim_time.c - clocks, sleeping and chance of a virtual process. Reading a clock uses a little virtual time, and more
 * and more when a program does nothing else: one that waits for a moment by looking at the clock gets there. */
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/shim.h"
#include "sim/engine/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#define BILLION  ((uint64_t)1000000000)
#define EPOCH_NS (1000000000 * BILLION) /* what the wall clock of a host shows when its other clock shows 0 */

enum { READ_NS = 25, FEW_READS = 1000, IMPATIENT_NS = 1000, MANY_READS = 100000, LONG_NS = 100000 };

static uint64_t read_clock(void)
{
    struct vc_process *vp = vc_process_now;
    uint64_t reads = ++vp->clock_reads;
    vc_process_called(vp);
    uint64_t ns = vc_process_ns(vp);
    vc_process_charge(vp, reads < FEW_READS ? READ_NS : reads < MANY_READS ? IMPATIENT_NS : LONG_NS);
    return ns;
}

static int shim_clock_gettime(clockid_t clock, struct timespec *t)
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

static int shim_clock_getres(clockid_t clock, struct timespec *t)
{
    struct timespec unused;
    if (shim_clock_gettime(clock, &unused) < 0)
        return -1;
    if (t)
        *t = (struct timespec){.tv_nsec = 1};
    return 0;
}

static int shim_timespec_get(struct timespec *t, int base)
{
    return base == TIME_UTC && shim_clock_gettime(CLOCK_REALTIME, t) == 0 ? base : 0;
}

static int shim_gettimeofday(struct timeval *t, void *zone)
{
    struct timespec now;
    (void)zone;
    shim_clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

static time_t shim_time(time_t *t)
{
    struct timespec now;
    shim_clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}

static clock_t shim_clock(void)
{
    return (clock_t)(read_clock() / (BILLION / CLOCKS_PER_SEC));
}

static void sleep_until(uint64_t ns)
{
    struct vc_process *vp = vc_process_now;
    uint64_t tick = vc_host_tick(vp->host, ns);
    vp->clock_reads = 0;
    while (rnl_sim_now(vp->cluster->sim) < tick)
        vc_process_sleep(vp, tick);
}

static void sleep_for(uint64_t ns)
{
    uint64_t now = vc_process_ns(vc_process_now);
    sleep_until(ns > UINT64_MAX - 1 - now ? UINT64_MAX - 1 : now + ns);
}

static bool good(const struct timespec *t)
{
    return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < (long)BILLION;
}

static uint64_t ns_of(const struct timespec *t)
{
    return (uint64_t)t->tv_sec > UINT64_MAX / BILLION / 2 ? UINT64_MAX / 2
                                                          : (uint64_t)t->tv_sec * BILLION + (uint64_t)t->tv_nsec;
}

static int shim_nanosleep(const struct timespec *t, struct timespec *left)
{
    (void)left; /* nothing interrupts it */
    if (!good(t)) {
        errno = EINVAL;
        return -1;
    }
    sleep_for(ns_of(t));
    return 0;
}

static int shim_clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left)
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

static int shim_usleep(useconds_t us)
{
    sleep_for((uint64_t)us * 1000);
    return 0;
}

static unsigned shim_sleep(unsigned s)
{
    sleep_for(s * BILLION);
    return 0;
}

static int shim_sched_yield(void)
{
    vc_process_called(vc_process_now);
    vc_process_charge(vc_process_now, IMPATIENT_NS);
    return 0;
}

/* ---- calendars: in universal time, and nothing kept behind the program's back ---- */

static struct tm *shim_gmtime_r(const time_t *t, struct tm *out)
{
    return gmtime_r(t, out);
}

/* ---- chance: rand is what the program's seed makes of it, getrandom what the run's does ---- */

static int shim_rand(void)
{
    struct vc_process *vp = vc_process_now;
    vc_process_called(vp);
    return (int)(rnl_sim_random(vp->rand_seed, VC_CHANCE_PROCESS, 0, vp->drawn++) >> 33);
}

static long shim_random(void)
{
    return shim_rand();
}

static void shim_srand(unsigned seed)
{
    vc_process_now->rand_seed = seed;
    vc_process_now->drawn = 0;
}

static int shim_rand_r(unsigned *state)
{
    *state += 0x9e3779b9u;
    return (int)(rnl_sim_random(*state, VC_CHANCE_PROCESS, 1, 0) >> 33);
}

static ssize_t shim_getrandom(void *to, size_t n, unsigned flags)
{
    struct vc_process *vp = vc_process_now;
    (void)flags;
    vc_process_called(vp);
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)to)[i] = (unsigned char)rnl_sim_random(vp->cluster->opt.seed, VC_CHANCE_PROCESS,
                                                                 (uint64_t)vp->rank << 32 | vp->life, vp->drawn++);
    return (ssize_t)n;
}

static int shim_getentropy(void *to, size_t n)
{
    return shim_getrandom(to, n, 0) == (ssize_t)n ? 0 : -1;
}

const struct vc_shim vc_shim_time[] = {
    VC_SHIM(clock_gettime),
    VC_SHIM(clock_getres),
    VC_SHIM(timespec_get),
    VC_SHIM(gettimeofday),
    VC_SHIM(time),
    VC_SHIM(clock),
    VC_SHIM(nanosleep),
    VC_SHIM(clock_nanosleep),
    VC_SHIM(usleep),
    VC_SHIM(sleep),
    VC_SHIM(sched_yield),
    VC_SHIM(gmtime_r),
    VC_SHIM_AS(localtime_r, shim_gmtime_r),
    VC_SHIM(rand),
    VC_SHIM(random),
    VC_SHIM(srand),
    VC_SHIM_AS(srandom, shim_srand),
    VC_SHIM(rand_r),
    VC_SHIM(getrandom),
    VC_SHIM(getentropy),
    VC_SHIM_END,
};
