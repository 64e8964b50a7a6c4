/* SPDX-License-Identifier: BSD-3-Clause
 *
 * who.c - the kernel's answers of who.h: SO_PEERCRED, SO_PEERGROUPS, SO_PEERPIDFD, and which numbers of users mean
 * "none of this namespace". */
#include "meet/who.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Returns the number by which the kernel shows what the namespace of this map does not have; RNL_WHO_UNKNOWN: it has
 * all numbers, so each means itself. */
static uint32_t vague(const char *map, const char *overflow)
{
    unsigned inside, outside, count, number = 65534;
    uint64_t sum = 0;
    FILE *f = fopen(map, "re");
    while (f && fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
        sum += count;
    if (f)
        fclose(f);
    if (sum >= UINT32_MAX)
        return RNL_WHO_UNKNOWN;
    f = fopen(overflow, "re");
    if (f && fscanf(f, "%u", &inside) == 1)
        number = inside;
    if (f)
        fclose(f);
    return number;
}

static uint32_t vague_gid(void)
{
    return vague("/proc/self/gid_map", "/proc/sys/kernel/overflowgid");
}

uint32_t rnl_who_uid(uid_t seen)
{
    return seen != geteuid() && seen == vague("/proc/self/uid_map", "/proc/sys/kernel/overflowuid") ? RNL_WHO_UNKNOWN
                                                                                                    : seen;
}

uint32_t rnl_who_gid(gid_t seen)
{
    return seen == vague_gid() ? RNL_WHO_UNKNOWN : seen;
}

int rnl_who_at(int sock, struct rnl_who *out)
{
    struct ucred who;
    gid_t groups[RNL_WHO_GROUPS];
    socklen_t n = sizeof who, m = sizeof groups;
    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
        return -errno;
    if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &m) < 0)
        m = 0;
    const uint32_t none = vague_gid();
    out->uid = rnl_who_uid(who.uid);
    out->pid = who.pid > 0 ? (uint32_t)who.pid : 0;
    out->groups = 1 + (uint32_t)(m / sizeof groups[0]);
    out->group[0] = who.gid == none ? RNL_WHO_UNKNOWN : who.gid;
    for (uint32_t i = 1; i < out->groups; i++)
        out->group[i] = groups[i - 1] == none ? RNL_WHO_UNKNOWN : groups[i - 1];
    return 0;
}

int rnl_who_pidfd(int sock, pid_t pid)
{
    struct ucred who;
    int fd;
    socklen_t n = sizeof who, m = sizeof fd;
    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || who.pid != pid ||
        getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &m) < 0)
        return -1;
    return fd;
}
