/* SPDX-License-Identifier: BSD-3-Clause
 *
 * machine.c - see machine.h. Topology is read from /sys: two small files per processor, so that the worker processes
 * need no hwloc. */
#include "machine.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

double bench_ns_per_tick(void)
{
    uint64_t t0 = bench_now_ns(), k0 = bench_ticks(), t1;
    do {
        t1 = bench_now_ns();
    } while (t1 - t0 < 5000000);
    uint64_t k1 = bench_ticks();
    return k1 > k0 ? (double)(t1 - t0) / (double)(k1 - k0) : 1;
}

static int topology_number(int cpu, const char *what)
{
    char path[96];
    int value = -1;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
    FILE *f = fopen(path, "re");
    if (f) {
        if (fscanf(f, "%d", &value) != 1)
            value = -1;
        fclose(f);
    }
    return value;
}

int bench_choose_cpus(int cpu[2])
{
    cpu_set_t allowed;
    int first = -1, second = -1;
    cpu[0] = cpu[1] = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return 1;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &allowed))
            continue;
        if (first < 0) {
            first = i;
            continue;
        }
        if (second < 0)
            second = i; /* good enough if no other core is found */
        int core = topology_number(i, "core_id"), package = topology_number(i, "physical_package_id");
        if (core < 0 || core != topology_number(first, "core_id") ||
            package != topology_number(first, "physical_package_id")) {
            second = i;
            break;
        }
    }
    cpu[0] = first < 0 ? 0 : first;
    cpu[1] = second < 0 ? cpu[0] : second;
    return second < 0 ? 1 : 2;
}

int bench_cpus_allowed(void)
{
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) ? 1 : CPU_COUNT(&allowed);
}

int bench_pin(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) ? -errno : 0;
}

static void processor_name(char *out, size_t size)
{
    char line[256];
    snprintf(out, size, "unknown processor");
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon)
            continue;
        const char *from = colon + 1 + strspn(colon + 1, " \t");
        size_t n = strcspn(from, "\n");
        if (n)
            snprintf(out, size, "%.*s", (int)n, from);
        break;
    }
    fclose(f);
}

void bench_machine_line(char *out, size_t size)
{
    char name[128];
    struct utsname u;
    processor_name(name, sizeof name);
    if (uname(&u))
        snprintf(u.release, sizeof u.release, "?");
    snprintf(out, size, "%s\n%d of %ld processors, Linux %s, runnel %s", name, bench_cpus_allowed(),
             sysconf(_SC_NPROCESSORS_ONLN), u.release, RNL_VERSION);
}
