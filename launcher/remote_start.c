/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_start.c - starts a node agent on a host: over ssh, or in a network namespace of this machine. No data of the
 * job is on a command line: a remote shell sees one word, the path of the runnel command, and `agent`. */
#include "launcher/remote_start.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char namespaces[] = "/run/netns";

static _Noreturn void give_up(const char *what, const char *of)
{
    fprintf(stderr, "%s %s: %s\n", what, of, strerror(errno));
    _exit(RNL_EXIT_SYSTEM);
}

/* Whatever the shell there is, it takes this for one word: POSIX shells, csh and fish agree on single quotes around
 * what holds no quote, no exclamation mark and no backslash; others are escaped as POSIX shells want it. */
static int quoted(const char *path, char *out, size_t room)
{
    size_t n = 0;
    if (room < 4 * strlen(path) + 3)
        return -1;
    out[n++] = '\'';
    for (; *path != '\0'; path++) {
        if (*path == '\'')
            n += (size_t)snprintf(out + n, room - n, "'\\''");
        else
            out[n++] = *path;
    }
    out[n++] = '\'';
    out[n] = '\0';
    return 0;
}

/* The words of the command for ssh are the shell's to find. It is given the host and the command line. */
static const char find_words[] =
    "set -- %s -T -x -oBatchMode=yes -oLogLevel=ERROR -oConnectTimeout=20 -oServerAliveInterval=5 "
    "-oServerAliveCountMax=4 -- \"$@\"; command -v \"$1\" >/dev/null || "
    "{ echo \"cannot start $1: No such file or directory\" >&2; exit %d; }; exec \"$@\"";

static _Noreturn void over_ssh(const struct rnl_launch *job, const char *host)
{
    char command[4096], path[4000], *line;
    if (quoted(job->agent, path, sizeof path) < 0) {
        errno = ENAMETOOLONG;
        give_up("cannot name", job->agent);
    }
    snprintf(command, sizeof command, "exec %s agent", path);
    if (asprintf(&line, find_words, job->ssh, RNL_EXIT_SYSTEM) > 0)
        execl("/bin/sh", "sh", "-c", line, "sh", host, command, (char *)NULL);
    give_up("cannot start", job->ssh);
}

static _Noreturn void into_namespace(const struct rnl_launch *job, const char *host)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", namespaces, host);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        fprintf(stderr, "there is no network namespace %s: `ip netns list` says which there are\n", path);
        _exit(RNL_EXIT_SYSTEM);
    }
    if (fd < 0)
        give_up("cannot open the network namespace", path);
    if (setns(fd, CLONE_NEWNET) < 0)
        give_up("cannot enter the network namespace", path);
    execl(job->agent, job->agent, "agent", (char *)NULL);
    give_up("cannot start", job->agent);
}

/* In a session of its own: what a terminal sends to our group is the launcher's to pass on. */
static _Noreturn void become(const struct rnl_launch *job, uint32_t host, pid_t launcher, const int theirs[3])
{
    setsid();
    prctl(PR_SET_PDEATHSIG, job->start != RNL_START_NETNS ? SIGTERM : SIGKILL);
    if (getppid() != launcher)
        _exit(RNL_EXIT_SYSTEM);
    for (int i = 0; i < 3; i++)
        if (dup2(theirs[i], i) < 0)
            _exit(RNL_EXIT_SYSTEM);
    rnl_spawn_restore_signals();
    unsetenv("RUNNEL_FD");
    if (job->start == RNL_START_SSH)
        over_ssh(job, job->at[host].name);
    into_namespace(job, job->at[host].name);
}

int rnl_remote_start(const struct rnl_launch *job, uint32_t host, int pipes[3], pid_t *pid)
{
    int p[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, e = 0;
    pid_t launcher = getpid(), child = -1;
    for (int i = 0; i < 3 && e == 0; i++)
        if (pipe2(p[i], O_CLOEXEC) < 0)
            e = -errno;
    if (e == 0 && (child = rnl_spawn_fork()) < 0)
        e = -errno;
    const int theirs[3] = {p[0][0], p[1][1], p[2][1]};
    if (child == 0)
        become(job, host, launcher, theirs);
    for (int i = 0; i < 3; i++) {
        int ours = p[i][i == 0];
        if (theirs[i] >= 0)
            close(theirs[i]);
        if (e < 0 && ours >= 0)
            close(ours);
        pipes[i] = ours;
    }
    *pid = child;
    return e;
}
