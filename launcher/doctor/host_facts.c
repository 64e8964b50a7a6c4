/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host_facts.c - collects the facts of host_facts.h. What cannot be learnt stays zero, or without a limit. */
#include "launcher/doctor/host_facts.h"

#include "job/fds.h"
#include "job/net.h"
#include "launcher/spawn.h"
#include "net/probe/address_probe.h"
#include "runnel/runnel.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { LOOPBACK_MS = 500 };

/* The first line of a file; "" = there is none. */
static void read_line(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "re");
    out[0] = '\0';
    if (!f)
        return;
    if (!fgets(out, (int)room, f))
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    (void)fclose(f);
}

/* A number from a file; `otherwise` if there is none, or it says "max". */
static uint64_t read_number(const char *path, uint64_t otherwise)
{
    char text[64], *end;
    read_line(path, text, sizeof text);
    const unsigned long long n = strtoull(text, &end, 10);
    return end == text ? otherwise : n;
}

static uint64_t limit_of(int which, uint64_t *hard)
{
    struct rlimit r;
    if (getrlimit((__rlimit_resource_t)which, &r) < 0)
        return RNL_FACTS_NO_LIMIT;
    if (hard)
        *hard = r.rlim_max == RLIM_INFINITY ? RNL_FACTS_NO_LIMIT : r.rlim_max;
    return r.rlim_cur == RLIM_INFINITY ? RNL_FACTS_NO_LIMIT : r.rlim_cur;
}

/* ---- what is tried ---- */

static bool can_pass(int fd)
{
    int ends[2];
    char byte = 'x';
    struct rnl_seqpacket p;
    if (fd < 0 || rnl_seqpacket_pair(ends) < 0)
        return false;
    const bool good = rnl_seqpacket_send(ends[0], &byte, 1, &fd, 1, 0) == 0 &&
                      rnl_seqpacket_receive(ends[1], &byte, 1, 1, &p, 0) == 0 && p.nfds == 1;
    if (good)
        rnl_seqpacket_drop(&p);
    close(ends[0]);
    close(ends[1]);
    return good;
}

/* A datagram from a socket of the loopback interface to itself. */
static bool hears_itself(void)
{
    struct rnl_socket_addr at;
    int fd = -1;
    char byte = 'x';
    if (rnl_net_open(RNL_NET_LOOPBACK, 1, &fd, &at) < 0)
        return false;
    struct sockaddr_storage name;
    socklen_t n = sizeof name;
    struct pollfd arrives = {.fd = fd, .events = POLLIN};
    const bool good = getsockname(fd, (struct sockaddr *)&name, &n) == 0 &&
                      sendto(fd, &byte, 1, MSG_NOSIGNAL, (struct sockaddr *)&name, n) == 1 &&
                      poll(&arrives, 1, LOOPBACK_MS) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) == 1;
    rnl_net_close(1, &fd);
    return good;
}

static bool can_open_udp(void)
{
    struct rnl_socket_addr at;
    int fd = -1;
    if (rnl_net_open(RNL_NET_ANY, 1, &fd, &at) < 0)
        return false;
    rnl_net_close(1, &fd);
    return true;
}

static uint32_t try_all(void)
{
    const int memory = memfd_create("runnel-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *at = memory >= 0 && ftruncate(memory, 4096) == 0
                   ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0)
                   : MAP_FAILED;
    const int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    const long barriers = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    uint32_t can = at != MAP_FAILED ? RNL_CAN_MEMFD : 0u;
    can |= can_pass(memory) ? RNL_CAN_PASS : 0u;
    can |= pidfd >= 0 ? RNL_CAN_PIDFD : 0u;
    can |= barriers > 0 && (barriers & (MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_GLOBAL)) ? RNL_CAN_MEMBARRIER
                                                                                                  : 0u;
    can |= can_open_udp() ? RNL_CAN_UDP : 0u;
    can |= hears_itself() ? RNL_CAN_LOOPBACK : 0u;
    can |= access("/proc/self/fd", R_OK) == 0 ? RNL_CAN_PROC : 0u;
    if (at != MAP_FAILED)
        (void)munmap(at, 4096);
    if (memory >= 0)
        close(memory);
    if (pidfd >= 0)
        close(pidfd);
    return can;
}

static uint32_t count_interfaces(void)
{
    struct rnl_host_address all[RNL_HOST_ADDRESSES_MAX];
    const int n = rnl_host_addresses(all, RNL_HOST_ADDRESSES_MAX);
    uint32_t others = 0;
    for (int i = 0; i < n; i++)
        others += !rnl_is_loopback(all[i].ip);
    return others;
}

/* ---- all of it ---- */

static void read_memory(struct rnl_host_facts *f)
{
    char line[128];
    unsigned long long kib;
    FILE *all = fopen("/proc/meminfo", "re");
    while (all && fgets(line, sizeof line, all)) {
        if (sscanf(line, "MemTotal: %llu", &kib) == 1)
            f->memory = kib << 10;
        else if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            f->memory_free = kib << 10;
    }
    if (all)
        (void)fclose(all);
}

void rnl_host_facts_collect(struct rnl_host_facts *f)
{
    struct utsname system;
    struct timespec now;
    double load = 0;
    char ports[64];
    memset(f, 0, sizeof *f);
    snprintf(f->release, sizeof f->release, "%s", rnl_version());
    if (uname(&system) == 0) {
        snprintf(f->kernel, sizeof f->kernel, "%.40s", system.release);
        (void)sscanf(system.release, "%u.%u", &f->kernel_major, &f->kernel_minor);
    }
    read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", f->clock, sizeof f->clock);
    f->cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    f->allowed = (uint32_t)rnl_bind_count();
    f->ptrace_scope = (int32_t)read_number("/proc/sys/kernel/yama/ptrace_scope", UINT64_MAX);
    f->can = try_all();
    f->interfaces = count_interfaces();
    if (getloadavg(&load, 1) == 1)
        f->load_percent = (uint32_t)(load * 100);
    read_line("/proc/sys/net/ipv4/ip_local_port_range", ports, sizeof ports);
    (void)sscanf(ports, "%u %u", &f->port_first, &f->port_last);
    f->root = geteuid() == 0;
    f->files = limit_of(RLIMIT_NOFILE, &f->files_hard);
    f->processes = limit_of(RLIMIT_NPROC, NULL);
    f->addresses = limit_of(RLIMIT_AS, NULL);
    f->memlock = limit_of(RLIMIT_MEMLOCK, NULL);
    read_memory(f);
    const uint64_t milli = rnl_group_limit(RNL_GROUP_PROCESSORS);
    f->group_memory = rnl_group_limit(RNL_GROUP_MEMORY);
    f->quota_percent = milli == UINT64_MAX ? 0 : milli < 20 ? 1 : (uint32_t)(milli / 10);
    f->receive_bytes = read_number("/proc/sys/net/core/rmem_max", 0);
    if (clock_gettime(CLOCK_REALTIME, &now) == 0)
        f->wall_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void rnl_host_facts_sanitize(struct rnl_host_facts *f)
{
    char *const text[] = {f->release, f->kernel, f->clock};
    const size_t room[] = {sizeof f->release, sizeof f->kernel, sizeof f->clock};
    for (unsigned i = 0; i < sizeof text / sizeof *text; i++) {
        text[i][room[i] - 1] = '\0';
        for (char *c = text[i]; *c; c++)
            if (*c < ' ' || *c > '~')
                *c = '?';
    }
}
