/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guard.c - the guard of guard.h sleeps until the end of a pipe whose other end only its parent holds, removes the
 * file, and kills the groups that are listed in the memory which it shares with its parent. It has a session of its
 * own, so that no signals to groups or from terminals reach it, and holds no other file open whose end somebody waits
 * for. */
#include "launcher/guard.h"

#include "job/proto.h"
#include "launcher/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUPS_BYTES (RNL_JOB_RANKS_MAX * sizeof(pid_t))

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

static _Noreturn void guard(int in, const struct rnl_guard *g, const char *file)
{
    char byte;
    prctl(PR_SET_NAME, "runnel-guard");
    setsid();
    close_all_but(in);
    while (read(in, &byte, 1) < 0 && errno == EINTR)
        ;
    if (file)
        (void)unlink(file);
    for (size_t i = 0; i < RNL_JOB_RANKS_MAX; i++)
        if (g->groups[i] > 1)
            kill(-g->groups[i], SIGKILL);
    _exit(0);
}

int rnl_guard_start(struct rnl_guard *g, const char *file)
{
    int ends[2];
    *g = RNL_GUARD_NONE;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    g->groups = mmap(NULL, GROUPS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g->pid = g->groups == MAP_FAILED ? -1 : rnl_spawn_fork();
    if (g->pid == 0)
        guard(ends[0], g, file);
    const int e = g->pid < 0 ? -errno : 0;
    close(ends[0]);
    if (e < 0)
        close(ends[1]);
    else
        g->pipe = ends[1];
    return e;
}

void rnl_guard_end(struct rnl_guard *g)
{
    if (g->pipe < 0)
        return;
    close(g->pipe);
    while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    (void)munmap(g->groups, GROUPS_BYTES);
    *g = RNL_GUARD_NONE;
}
