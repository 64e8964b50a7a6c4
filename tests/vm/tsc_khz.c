/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tsc_khz.c - prints the rate of this host's time stamp counter. An emulated machine reads the same counter; told its
 * rate, it need not measure it, which it does wrongly while the host is busy. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

/* Both clocks at one instant: a reading that took long was interrupted, and is repeated. */
static double now_ns(uint64_t *ticks)
{
    struct timespec t;
    uint64_t before;
    do {
        before = __rdtsc();
        clock_gettime(CLOCK_MONOTONIC_RAW, &t);
        *ticks = __rdtsc();
    } while (*ticks - before > 2000);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
    uint64_t first, last;
    const double begin = now_ns(&first);
    double end = begin;
    while (end - begin < 5e7)
        end = now_ns(&last);
    printf("%.0f\n", (double)(last - first) / (end - begin) * 1e6);
    return 0;
}
