/* SPDX-License-Identifier: BSD-3-Clause
 *
 * who.h - who is at the other end of a unix socket, as the kernel tells. A user or group that this process's user
 * namespace does not have is shown by the kernel as the overflow user (65534), as if it were the user nobody: here it
 * is RNL_WHO_UNKNOWN, which is nobody's number, so nothing is ever granted to it by number. */
#ifndef RNL_MEET_WHO_H
#define RNL_MEET_WHO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RNL_WHO_UNKNOWN UINT32_MAX
enum { RNL_WHO_GROUPS = 128 };

struct rnl_who {
    uint32_t uid, pid; /* pid 0 = not visible from here */
    uint32_t groups;   /* how many; the first is the effective one. More supplementary ones than there is room for, or
                          an old kernel: it alone */
    uint32_t group[1 + RNL_WHO_GROUPS];
};

/* Who connected to, listened at, or made this pair of sockets. 0 or -errno. */
int rnl_who_at(int sock, struct rnl_who *out);
/* The user (group) that the kernel has named by this number. */
uint32_t rnl_who_uid(uid_t seen);
uint32_t rnl_who_gid(gid_t seen);

/* Opens the process at the other end, if it is that one. Returns a pidfd, or -1: the kernel does not tell. */
int rnl_who_pidfd(int sock, pid_t pid);

#endif
