/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reach.c - from the name of a host to a running agent: over ssh, or into a network namespace of this machine. Nothing
 * of the job is on a command line: a remote shell sees one word, the path of the runnel command, and `agent`. */
#include "job/launch_in.h"

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

/* The command that the first word of a line names: its length. A word with quotes or variables is the shell's to find.
 */
static size_t first_word(const char *line, const char **word)
{
    int quote = *(line += strspn(line, " \t"));
    if (quote != '\'' && quote != '"')
        quote = 0;
    *word = line + (quote != 0);
    size_t n = quote ? strcspn(*word, quote == '"' ? "\"" : "'") : strcspn(*word, " \t");
    int whole = !quote || ((*word)[n] == quote && strchr(" \t", (*word)[n + 1]) != NULL);
    return whole && n > 0 && strcspn(*word, "\\$`'\"=~*?[;&|<>()") >= n ? n : 0;
}

/* As execvp looks for it. 0, or -1 with errno. */
static int look_for(const char *name)
{
    const char *all = getenv("PATH");
    char at[4096];
    if (strchr(name, '/') != NULL)
        return access(name, X_OK);
    for (all = all == NULL ? "/bin:/usr/bin" : all;; all++) {
        size_t n = strcspn(all, ":");
        if (snprintf(at, sizeof at, "%.*s%s%s", (int)n, all, n > 0 ? "/" : "", name) < (int)sizeof at &&
            access(at, X_OK) == 0)
            return 0;
        all += n;
        if (*all == '\0')
            break;
    }
    errno = ENOENT;
    return -1;
}

/* A shell would end with 127, as it does on the host when there is no runnel. */
static void must_be_there(const char *line)
{
    const char *word;
    size_t n = first_word(line, &word);
    char name[4096];
    if (n == 0 || n >= sizeof name)
        return;
    memcpy(name, word, n);
    name[n] = '\0';
    if (look_for(name) < 0)
        give_up("cannot start", name);
}

static _Noreturn void over_ssh(const struct rnl_launch *job, const char *host)
{
    char command[4096], path[4000];
    if (quoted(job->agent, path, sizeof path) < 0) {
        errno = ENAMETOOLONG;
        give_up("cannot name", job->agent);
    }
    snprintf(command, sizeof command, "exec %s agent", path);
    char *argv[] = {(char *)(uintptr_t) "sh",
                    (char *)(uintptr_t) "-c",
                    NULL,
                    (char *)(uintptr_t)job->ssh,
                    (char *)(uintptr_t) "-T",
                    (char *)(uintptr_t) "-x",
                    (char *)(uintptr_t) "-oBatchMode=yes",
                    (char *)(uintptr_t) "-oLogLevel=ERROR",
                    (char *)(uintptr_t) "-oConnectTimeout=20",
                    (char *)(uintptr_t) "-oServerAliveInterval=5",
                    (char *)(uintptr_t) "-oServerAliveCountMax=4",
                    (char *)(uintptr_t) "--",
                    (char *)(uintptr_t)host,
                    command,
                    NULL};
    if (strpbrk(job->ssh, " \t'\"\\") != NULL) { /* a command with arguments: the shell finds its words */
        char *line;
        must_be_there(job->ssh);
        if (asprintf(&line, "exec %s \"$@\"", job->ssh) > 0) {
            argv[2] = line;
            execv("/bin/sh", argv);
        }
    } else {
        execvp(job->ssh, argv + 3);
    }
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
static _Noreturn void become(const struct rnl_launch *job, uint32_t host, const struct rnl_spawn *how, pid_t launcher,
                             const int theirs[3])
{
    setsid();
    prctl(PR_SET_PDEATHSIG, job->reach == RNL_REACH_SSH ? SIGTERM : SIGKILL);
    if (getppid() != launcher)
        _exit(RNL_EXIT_SYSTEM);
    for (int i = 0; i < 3; i++)
        if (dup2(theirs[i], i) < 0)
            _exit(RNL_EXIT_SYSTEM);
    sigaction(SIGPIPE, &how->on_pipe, NULL);
    sigaction(SIGCHLD, &how->on_child, NULL);
    sigprocmask(SIG_SETMASK, &how->mask, NULL);
    unsetenv("RUNNEL_FD");
    if (job->reach == RNL_REACH_SSH)
        over_ssh(job, job->at[host].name);
    into_namespace(job, job->at[host].name);
}

int rnl_reach_start(const struct rnl_launch *job, uint32_t host, const struct rnl_spawn *how, int pipes[3], pid_t *pid)
{
    int p[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, e = 0;
    pid_t launcher = getpid(), child = -1;
    for (int i = 0; i < 3 && e == 0; i++)
        if (pipe2(p[i], O_CLOEXEC) < 0)
            e = -errno;
    if (e == 0 && (child = fork()) < 0)
        e = -errno;
    const int theirs[3] = {p[0][0], p[1][1], p[2][1]};
    if (child == 0)
        become(job, host, how, launcher, theirs);
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
