/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - clock, fence, spinning and sleeping. */
#include "host.h"

#include "base/error.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() ((void)0)
#endif

enum { TURNS_A_CLOCK = 64, TURNS_A_YIELD = 1024 };

struct rnl_env rnl_rpc_host;
_Thread_local struct rnl_rpc_crowd rnl_rpc_crowd;

static void learn(void)
{
    rnl_host_facts(&rnl_rpc_host.facts);
}

void rnl_rpc_host_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, learn);
}

uint64_t rnl_rpc_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint32_t rnl_rpc_cpu(void)
{
    return (uint32_t)sched_getcpu() + 1;
}

bool rnl_rpc_fence(void)
{
    return rnl_host_heavy_fence(&rnl_rpc_host) == 0;
}

bool rnl_rpc_spin(struct rnl_rpc_spinner *p, bool same_cpu)
{
    p->turns++;
    if (same_cpu) {
        sched_yield();
        return rnl_rpc_spinner_look(p, &rnl_rpc_crowd, rnl_rpc_now_ns()) && p->turns <= RNL_RPC_SAME_CPU_TURNS;
    }
    PAUSE();
    if (RNL_LIKELY(p->turns % TURNS_A_CLOCK != 0))
        return true;
    if (p->turns % TURNS_A_YIELD == 0)
        sched_yield();
    return rnl_rpc_spinner_look(p, &rnl_rpc_crowd, rnl_rpc_now_ns());
}

int rnl_rpc_sleep_on(int fd, uint64_t ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000 * 1000000)};
    return (int)syscall(SYS_ppoll, &p, 1, &t, NULL, 8);
}
