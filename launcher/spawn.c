/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spawn.c - starts ranks by a plain fork, which is cheap since the launcher is small (spawn.h). */
#include "launcher/spawn.h"

#include "job/proto.h"
#include "launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANYBODY = S_IXUSR | S_IXGRP | S_IXOTH, PATH_SHOWN = 200 };

/* Whether that is a program that this user can start: NULL, or what else it is, to be put behind its name. */
static const char *why_not(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == EACCES ? "cannot be reached: this user may not enter a directory on the way to it; name a "
                                 "program in a directory that is open to you, or open that one (chmod +x)"
                               : "is not there";
    if (S_ISDIR(st.st_mode))
        return "is a directory: name a program";
    if (!S_ISREG(st.st_mode))
        return "is no regular file: name a program";
    if (access(path, X_OK) == 0)
        return NULL;
    if ((st.st_mode & ANYBODY) == ANYBODY)
        return "may not be executed where it lies, though its mode allows it: is its file system mounted noexec? Copy "
               "it to another";
    if (geteuid() == 0 || st.st_uid == geteuid())
        return "may not be executed: make it executable with chmod +x, or name another program";
    static char others[120];
    snprintf(others, sizeof others,
             "may not be executed by this user, and belongs to user %u: ask that user to allow it, or name another "
             "program",
             (unsigned)st.st_uid);
    return others;
}

/* How many bytes of a list of directories a sentence shows: as many whole ones as it has room for. */
static int shown(const char *dirs)
{
    int n = (int)strnlen(dirs, PATH_SHOWN + 1), whole = n;
    while (n > PATH_SHOWN && whole > 0 && dirs[whole - 1] != ':')
        whole--;
    return whole > 0 ? whole : PATH_SHOWN;
}

static int found(const char *at, char **path, char *sentence, size_t room)
{
    *path = strdup(at);
    if (*path)
        return 0;
    snprintf(sentence, room, "no memory for a name");
    return RNL_EXIT_SYSTEM;
}

int rnl_spawn_find(const char *name, char **path, char *sentence, size_t room)
{
    char at[4096];
    struct stat st;
    const char *dirs = getenv("PATH"), *why = NULL;
    bool refused = false;
    if (strchr(name, '/') || name[0] == '\0') {
        why = why_not(name);
        if (!why)
            return found(name, path, sentence, room);
        if (stat(name, &st) < 0 && errno != EACCES) {
            snprintf(sentence, room, "there is no program '%s': check its name", name);
            return RNL_EXIT_NOT_FOUND;
        }
        snprintf(sentence, room, "'%s' %s", name, why);
        return RNL_EXIT_NOT_EXECUTABLE;
    }
    dirs = dirs ? dirs : "/bin:/usr/bin";
    for (const char *dir = dirs;; dir++) {
        const size_t n = strcspn(dir, ":"); /* an empty part of PATH means here */
        const int k = snprintf(at, sizeof at, "%.*s%s%s", (int)n, dir, n > 0 ? "/" : "./", name);
        if (k > 0 && (size_t)k < sizeof at) {
            why = why_not(at);
            if (!why)
                return found(at, path, sentence, room);
            refused |= stat(at, &st) < 0 ? errno == EACCES : !S_ISDIR(st.st_mode);
        }
        dir += n;
        if (*dir == '\0')
            break;
    }
    if (!why_not(name))
        snprintf(sentence, room, "there is no program '%s' in PATH, but one here: say ./%s", name, name);
    else
        snprintf(sentence, room, "there is no %sprogram '%s' in PATH (%.*s%s): name it with its path",
                 refused ? "executable " : "", name, shown(dirs), dirs, dirs[shown(dirs)] ? "..." : "");
    return refused ? RNL_EXIT_NOT_EXECUTABLE : RNL_EXIT_NOT_FOUND;
}

static void give_up(const struct rnl_spawn *how, uint32_t rank, enum rnl_spawn_stage stage)
{
    const struct rnl_spawn_failed f = {.rank = rank, .sys_errno = errno, .stage = stage};
    ssize_t n;
    do {
        n = write(how->failed, &f, sizeof f); /* whole: it is smaller than PIPE_BUF */
    } while (n < 0 && errno == EINTR);
    _exit(n < 0 ? RNL_EXIT_SYSTEM : RNL_EXIT_NOT_FOUND);
}

/* What a rank of MPI's finds the others by. */
static int set_mpi(const struct rnl_spawn *how, const char *rank)
{
    char pmi[16], size[16];
    snprintf(pmi, sizeof pmi, "%d", how->pmi);
    snprintf(size, sizeof size, "%u", how->size);
    for (char **v = how->variables; v && *v; v++)
        if (putenv(*v) < 0)
            return -1;
    return fcntl(how->pmi, F_SETFD, 0) < 0 || setenv("PMI_FD", pmi, 1) < 0 || setenv("PMI_RANK", rank, 1) < 0 ||
                   setenv("PMI_SIZE", size, 1) < 0
               ? -1
               : 0;
}

static void become(const struct rnl_spawn *how, uint32_t rank, pid_t launcher)
{
    char bootstrap[16], number[16];
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) /* it died before we could say so */
        _exit(RNL_EXIT_SYSTEM);
    snprintf(bootstrap, sizeof bootstrap, "%d", how->bootstrap);
    snprintf(number, sizeof number, "%u", rank);
    if (how->descriptors.rlim_max != 0)
        setrlimit(RLIMIT_NOFILE, &how->descriptors);
    if (how->cpu >= 0) {
        const size_t bytes = CPU_ALLOC_SIZE(how->cpu + 1);
        cpu_set_t *set = CPU_ALLOC(how->cpu + 1);
        if (!set)
            give_up(how, rank, RNL_SPAWN_BIND);
        CPU_ZERO_S(bytes, set);
        CPU_SET_S(how->cpu, bytes, set);
        if (sched_setaffinity(0, bytes, set) < 0)
            give_up(how, rank, RNL_SPAWN_BIND);
        CPU_FREE(set);
    }
    if ((how->in != STDIN_FILENO && dup2(how->in, STDIN_FILENO) < 0) || dup2(how->out, STDOUT_FILENO) < 0 ||
        dup2(how->err, STDERR_FILENO) < 0 || fcntl(how->bootstrap, F_SETFD, 0) < 0 ||
        setenv("RUNNEL_FD", bootstrap, 1) < 0 || setenv("RUNNEL_RANK", number, 1) < 0)
        give_up(how, rank, RNL_SPAWN_PREPARE);
    if (how->pmi >= 0 && set_mpi(how, number) < 0)
        give_up(how, rank, RNL_SPAWN_PREPARE);
    rnl_spawn_restore_signals();
    execvp(how->path, how->argv); /* the path has a slash; a file without a magic number is a shell script */
    give_up(how, rank, RNL_SPAWN_EXECUTE);
}

const int rnl_spawn_signals[RNL_SPAWN_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

static const int changed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGPIPE, SIGCHLD};
enum { CHANGED = sizeof changed / sizeof changed[0] };
static struct sigaction saved[CHANGED];
static sigset_t saved_mask;

void rnl_spawn_save_signals(void)
{
    sigprocmask(SIG_SETMASK, NULL, &saved_mask);
    for (unsigned i = 0; i < CHANGED; i++)
        sigaction(changed[i], NULL, &saved[i]);
}

pid_t rnl_spawn_fork(void)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    const pid_t child = fork();
    const int e = errno;
    if (child != 0)
        sigprocmask(SIG_SETMASK, &before, NULL);
    errno = e;
    return child;
}

void rnl_spawn_restore_signals(void)
{
    for (unsigned i = 0; i < CHANGED; i++)
        sigaction(changed[i], &saved[i], NULL);
    sigprocmask(SIG_SETMASK, &saved_mask, NULL);
}

int rnl_spawn(const struct rnl_spawn *how, uint32_t rank, pid_t *pid)
{
    pid_t launcher = getpid();
    pid_t child = rnl_spawn_fork();
    if (child < 0)
        return -errno;
    if (child == 0)
        become(how, rank, launcher);
    setpgid(child, child); /* here too: a signal to the group must not come too early */
    *pid = child;
    return 0;
}

/* 0, 1 and 2 must not become something else's numbers. What is written to a standard output that was closed is an
 * error, as it would be without us: it is opened for reading. What is said to a closed standard error is not missed. */
void rnl_open_standard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);
    const char *outer = getenv("RUNNEL_FD"); /* a launcher that is itself a rank: that place is not its ranks' */
    if (outer && !strchr(outer, ',') && atoi(outer) > 2)
        fcntl(atoi(outer), F_SETFD, FD_CLOEXEC);
}

/* ---- the guard sleeps until the end of a pipe whose other end only its parent holds, removes the file, and kills the
 * groups that are listed in the memory which it shares with its parent. It has a session of its own, so that no signals
 * to groups or from terminals reach it, and holds no other file open whose end somebody waits for. ---- */

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
