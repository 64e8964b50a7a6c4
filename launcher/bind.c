/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bind.c - which cores there are for --bind core. Whole cores come first, if hwloc was there when this was built: it is
 * asked only here, as loading a topology takes milliseconds. Without it, the order of the affinity mask. */
#include "launcher/spawn.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#ifndef RNL_HAVE_HWLOC
#define RNL_HAVE_HWLOC 0
#endif
#if RNL_HAVE_HWLOC
#include <hwloc.h>
#endif

enum { CPUS = 8192 };

/* CPU_ALLOC(CPUS) with our affinity mask, or NULL. */
static cpu_set_t *mask(void)
{
    cpu_set_t *set = CPU_ALLOC(CPUS);
    if (!set)
        return NULL;
    CPU_ZERO_S(CPU_ALLOC_SIZE(CPUS), set);
    if (sched_getaffinity(0, CPU_ALLOC_SIZE(CPUS), set) == 0)
        return set;
    CPU_FREE(set);
    return NULL;
}

int rnl_bind_count(void)
{
    cpu_set_t *set = mask();
    int n = !set ? 1 : CPU_COUNT_S(CPU_ALLOC_SIZE(CPUS), set);
    if (set)
        CPU_FREE(set);
    return n > 0 ? n : 1;
}

static const char hide_errors[] = "HWLOC_HIDE_ERRORS";

bool rnl_bind_hush(void)
{
    return !getenv(hide_errors) && setenv(hide_errors, "2", 0) == 0;
}

void rnl_bind_unhush(int hushed)
{
    if (hushed)
        unsetenv(hide_errors);
}

#if RNL_HAVE_HWLOC
/* The k-th allowed thread of each core, for k = 0, 1, ... */
static int by_core(int *cpus, int room, const cpu_set_t *allowed)
{
    hwloc_topology_t topology;
    int n = 0, found = 1, hushed = rnl_bind_hush();
    int there = hwloc_topology_init(&topology) == 0, loaded = there && hwloc_topology_load(topology) == 0;
    rnl_bind_unhush(hushed);
    if (there && !loaded)
        hwloc_topology_destroy(topology);
    if (!loaded)
        return 0;
    int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    for (int k = 0; found && n < room; k++) {
        found = 0;
        for (int c = 0; c < cores && n < room; c++) {
            hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)c);
            int left = k, cpu = -1;
            while ((cpu = hwloc_bitmap_next(core->cpuset, cpu)) >= 0)
                if (cpu < CPUS && CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(CPUS), allowed) && left-- == 0)
                    break;
            if (cpu < 0)
                continue;
            cpus[n++] = cpu;
            found = 1;
        }
    }
    hwloc_topology_destroy(topology);
    return n;
}
#endif

int rnl_bind_cores(int *cpus, int room)
{
    int n = 0;
    cpu_set_t *allowed = mask();
    if (!allowed)
        return -errno;
#if RNL_HAVE_HWLOC
    n = by_core(cpus, room, allowed);
#endif
    for (int cpu = 0; n == 0 && cpu < CPUS; cpu++) {
        if (!CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(CPUS), allowed))
            continue;
        for (; cpu < CPUS && n < room; cpu++)
            if (CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(CPUS), allowed))
                cpus[n++] = cpu;
    }
    CPU_FREE(allowed);
    return n > 0 ? n : -ENOENT;
}
