/* SPDX-License-Identifier: BSD-3-Clause
 *
 * must.c - failures outside cmocka's reach; clocks. */
#include "support/must.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "runnel/runnel.h"

void test_must_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: must hold: %s (last error: %s)\n", file, line, what, rnl_last_error()->text);
    fflush(NULL);
    _exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t test_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t test_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void test_sleep_ms(unsigned ms)
{
    nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL);
}
