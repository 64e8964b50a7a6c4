/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guard.c - see guard.h. The guard reads group numbers from a pipe, negative ones to forget, and acts at its end: the
 * launcher alone holds the other side. It is in a session of its own, so that signals to the launcher's group or from
 * its terminal do not reach it, and keeps nothing else open that somebody could wait for the end of. */
#include "job/guard.h"

#include "job/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_all_but(int keep)
{
    if (keep > 0)
        syscall(SYS_close_range, 0u, (unsigned)keep - 1, 0u);
    if (syscall(SYS_close_range, (unsigned)keep + 1, UINT32_MAX, 0u) == 0)
        return;
    int most = (int)sysconf(_SC_OPEN_MAX); /* Linux before 5.9 */
    for (int fd = 0; fd < most; fd++)
        if (fd != keep)
            close(fd);
}

static _Noreturn void guard(int in)
{
    static pid_t groups[RNL_JOB_RANKS_MAX];
    int32_t group;
    size_t n = 0;
    ssize_t got;
    prctl(PR_SET_NAME, "runnel-guard");
    setsid();
    close_all_but(in);
    while ((got = read(in, &group, sizeof group)) == (ssize_t)sizeof group || (got < 0 && errno == EINTR)) {
        if (got < 0)
            continue;
        if (group > 1 && n < RNL_JOB_RANKS_MAX)
            groups[n++] = group;
        for (size_t i = 0; group < 0 && i < n; i++)
            if (groups[i] == -group)
                groups[i--] = groups[--n];
    }
    for (size_t i = 0; i < n; i++)
        kill(-groups[i], SIGKILL);
    _exit(0);
}

int rnl_guard_start(struct rnl_guard *g)
{
    int ends[2];
    *g = RNL_GUARD_NONE;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        guard(ends[0]);
    int e = errno;
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return -e;
    }
    g->pipe = ends[1];
    g->pid = pid;
    return 0;
}

static void tell(const struct rnl_guard *g, int32_t group)
{
    while (g->pipe >= 0 && write(g->pipe, &group, sizeof group) < 0 && errno == EINTR)
        ;
}

void rnl_guard_add(const struct rnl_guard *g, pid_t group)
{
    tell(g, group);
}

void rnl_guard_remove(const struct rnl_guard *g, pid_t group)
{
    tell(g, -group);
}

void rnl_guard_end(struct rnl_guard *g)
{
    if (g->pipe < 0)
        return;
    close(g->pipe);
    while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *g = RNL_GUARD_NONE;
}
