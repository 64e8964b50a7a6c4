/* SPDX-License-Identifier: BSD-3-Clause
 *
 * machine.h - the machine under a measurement: clocks, two cores to pin to, and two lines that name it. Linux. */
#ifndef RNL_BENCH_MACHINE_H
#define RNL_BENCH_MACHINE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline uint64_t bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The cheapest clock there is, for single round trips. */
static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return bench_now_ns();
#endif
}

/* Between two polls of a word that another core writes. */
static inline void bench_pause(void)
{
#if defined(__x86_64__)
    _mm_pause();
#endif
}

/* Length of a tick; takes about 5 ms. */
double bench_ns_per_tick(void);

/* Two allowed processors on different cores, else on different hardware threads of one core; returns how many there
 * are: 2, or 1 with cpu[0] == cpu[1]. */
int bench_choose_cpus(int cpu[2]);
/* How many processors this process may run on. */
int bench_cpus_allowed(void);
/* Binds the calling thread. 0 or -errno. */
int bench_pin(int cpu);

/* "AMD EPYC 9B45\n2 of 8 processors, Linux 6.18.0, runnel 0.1.0" */
void bench_machine_line(char *out, size_t size);

#endif
