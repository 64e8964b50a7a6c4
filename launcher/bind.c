/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bind.c - which cores there are for --bind core, and what the control group of this process allows. Whole cores come
 * first, if hwloc was there when this was built: it is asked only here, as loading a topology takes milliseconds.
 * Without it, the order of the affinity mask. */
#include "launcher/spawn.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- the control group ---- */

static bool line_of(const char *dir, const char *name, char *text, int room)
{
    char path[PATH_MAX + 128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "re");
    const bool there = f && fgets(text, room, f);
    if (f)
        fclose(f);
    return there;
}

/* The number in a file of a group; UINT64_MAX: none there, "max", or what version 1 writes for it. */
static uint64_t number_in(const char *dir, const char *name)
{
    char text[64], *end;
    if (!line_of(dir, name, text, sizeof text))
        return UINT64_MAX;
    unsigned long long n = strtoull(text, &end, 10);
    return end == text || text[0] == '-' || n >= 1ull << 62 ? UINT64_MAX : n;
}

static uint64_t memory_of(const char *dir)
{
    uint64_t n = number_in(dir, "memory.max");
    return n != UINT64_MAX ? n : number_in(dir, "memory.limit_in_bytes");
}

static uint64_t processes_of(const char *dir)
{
    return number_in(dir, "pids.max");
}

/* Thousandths of a processor. */
static uint64_t processors_of(const char *dir)
{
    char text[64], *end;
    uint64_t quota = UINT64_MAX, period = 0;
    if (line_of(dir, "cpu.max", text, sizeof text)) {
        quota = strtoull(text, &end, 10);
        if (end == text)
            quota = UINT64_MAX;
        else
            period = strtoull(end, NULL, 10);
    } else {
        quota = number_in(dir, "cpu.cfs_quota_us");
        period = number_in(dir, "cpu.cfs_period_us");
    }
    return quota == UINT64_MAX || period == 0 || period == UINT64_MAX ? UINT64_MAX : quota * 1000 / period;
}

static int in_list(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (;; list++) {
        size_t k = strcspn(list, ",");
        if (k == n && memcmp(list, word, n) == 0)
            return 1;
        list += k;
        if (*list == '\0')
            return 0;
    }
}

uint64_t rnl_group_limit(enum rnl_group_limit which)
{
    static const struct {
        const char *controller;
        uint64_t (*of)(const char *dir);
    } kinds[] = {[RNL_GROUP_MEMORY] = {"memory", memory_of},
                 [RNL_GROUP_PROCESSES] = {"pids", processes_of},
                 [RNL_GROUP_PROCESSORS] = {"cpu", processors_of}};
    char line[PATH_MAX], dir[PATH_MAX + 64];
    uint64_t least = UINT64_MAX;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        list++;
        if (*list && !in_list(list, kinds[which].controller))
            continue;
        int base = snprintf(dir, sizeof dir, "/sys/fs/cgroup%s%s", *list ? "/" : "", list);
        snprintf(dir + base, sizeof dir - (size_t)base, "%s", strcmp(path, "/") ? path : "");
        for (;;) {
            uint64_t n = kinds[which].of(dir);
            least = n < least ? n : least;
            char *slash = strrchr(dir + base, '/');
            if (!slash)
                break;
            *slash = '\0';
        }
    }
    if (f)
        fclose(f);
    return least;
}
