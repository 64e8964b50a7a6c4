/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spawn.c - see spawn.h. A plain fork: the launcher is small. */
#include "job/spawn.h"

#include "job/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANYBODY = S_IXUSR | S_IXGRP | S_IXOTH, PATH_SHOWN = 200 };
enum look { MISSING, OUT_OF_REACH, A_FOLDER, NO_FILE, NOT_OURS, NOT_EXECUTABLE, NOT_HERE, PROGRAM };

static enum look look_at(const char *path, struct stat *st)
{
    if (stat(path, st) < 0)
        return errno == EACCES ? OUT_OF_REACH : MISSING;
    if (S_ISDIR(st->st_mode))
        return A_FOLDER;
    if (!S_ISREG(st->st_mode))
        return NO_FILE;
    if (access(path, X_OK) == 0)
        return PROGRAM;
    if ((st->st_mode & ANYBODY) == ANYBODY)
        return NOT_HERE;
    return geteuid() == 0 || st->st_uid == geteuid() ? NOT_EXECUTABLE : NOT_OURS;
}

static int explain(enum look what, const char *path, const struct stat *st, char *sentence, size_t room)
{
    switch (what) {
    case A_FOLDER:
        snprintf(sentence, room, "'%s' is a directory: name a program", path);
        break;
    case NO_FILE:
        snprintf(sentence, room, "'%s' is no regular file: name a program", path);
        break;
    case OUT_OF_REACH:
        snprintf(sentence, room,
                 "'%s' cannot be reached: this user may not enter a directory on the way to it; name a program in a "
                 "directory that is open to you, or open that one (chmod +x)",
                 path);
        break;
    case NOT_OURS:
        snprintf(sentence, room,
                 "'%s' may not be executed by this user, and belongs to user %u: ask that user to allow it, or name "
                 "another program",
                 path, (unsigned)st->st_uid);
        break;
    case NOT_HERE:
        snprintf(
            sentence, room,
            "'%s' may not be executed where it lies, though its mode allows it: is its file system mounted noexec? "
            "Copy it to another",
            path);
        break;
    case NOT_EXECUTABLE:
        snprintf(sentence, room, "'%s' may not be executed: make it executable with chmod +x, or name another program",
                 path);
        break;
    default:
        snprintf(sentence, room, "there is no program '%s': check its name", path);
        return RNL_EXIT_NOT_FOUND;
    }
    return RNL_EXIT_NOT_EXECUTABLE;
}

/* So much of a list of directories as a sentence has room for: whole ones. */
static int shown(const char *dirs)
{
    int n = (int)strnlen(dirs, PATH_SHOWN + 1), whole = n;
    if (n <= PATH_SHOWN)
        return n;
    while (whole > 0 && dirs[whole - 1] != ':')
        whole--;
    return whole > 0 ? whole : PATH_SHOWN;
}

static int found(const char *at, char **path, char *sentence, size_t room)
{
    *path = strdup(at);
    if (*path != NULL)
        return 0;
    snprintf(sentence, room, "no memory for a name");
    return RNL_EXIT_SYSTEM;
}

int rnl_spawn_find(const char *name, char **path, char *sentence, size_t room)
{
    char at[4096];
    struct stat st;
    if (name[0] == '\0') {
        snprintf(sentence, room, "the program has no name: name one behind the options");
        return RNL_EXIT_NOT_FOUND;
    }
    if (strchr(name, '/') != NULL) {
        enum look what = look_at(name, &st);
        if (what != PROGRAM)
            return explain(what, name, &st, sentence, room);
        return found(name, path, sentence, room);
    }
    const char *dirs = getenv("PATH");
    int refused = 0;
    if (dirs == NULL)
        dirs = "/bin:/usr/bin";
    for (const char *dir = dirs;; dir++) {
        size_t n = strcspn(dir, ":");
        int k =
            snprintf(at, sizeof at, "%.*s%s%s", (int)n, dir, n > 0 ? "/" : "./", name); /* an empty part means here */
        if (k > 0 && (size_t)k < sizeof at) {
            enum look what = look_at(at, &st);
            if (what == PROGRAM) {
                return found(at, path, sentence, room);
            }
            refused |= what != MISSING && what != A_FOLDER;
        }
        dir += n;
        if (*dir == '\0')
            break;
    }
    if (look_at(name, &st) == PROGRAM)
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

/* As execvp does: a file without a magic number is a shell script. */
static void execute(const struct rnl_spawn *how)
{
    int n = 0;
    execv(how->path, how->argv);
    if (errno != ENOEXEC)
        return;
    while (how->argv[n] != NULL)
        n++;
    char **argv = calloc((size_t)n + 2, sizeof *argv);
    if (argv == NULL)
        return;
    argv[0] = (char *)(uintptr_t) "/bin/sh";
    argv[1] = (char *)(uintptr_t)how->path;
    for (int i = 1; i < n; i++)
        argv[i + 1] = how->argv[i];
    execv(argv[0], argv);
}

static void become(const struct rnl_spawn *how, uint32_t rank, pid_t launcher)
{
    char door[16], number[16];
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) /* it died before we could say so */
        _exit(RNL_EXIT_SYSTEM);
    snprintf(door, sizeof door, "%d", how->door);
    snprintf(number, sizeof number, "%u", rank);
    if (how->descriptors.rlim_max != 0)
        setrlimit(RLIMIT_NOFILE, &how->descriptors);
    sigaction(SIGPIPE, &how->on_pipe, NULL);
    sigaction(SIGCHLD, &how->on_child, NULL);
    if (how->cpu >= 0) {
        const size_t bytes = CPU_ALLOC_SIZE(how->cpu + 1);
        cpu_set_t *set = CPU_ALLOC(how->cpu + 1);
        if (set == NULL)
            give_up(how, rank, RNL_SPAWN_BIND);
        CPU_ZERO_S(bytes, set);
        CPU_SET_S(how->cpu, bytes, set);
        if (sched_setaffinity(0, bytes, set) < 0)
            give_up(how, rank, RNL_SPAWN_BIND);
        CPU_FREE(set);
    }
    if ((how->in != STDIN_FILENO && dup2(how->in, STDIN_FILENO) < 0) || dup2(how->out, STDOUT_FILENO) < 0 ||
        dup2(how->err, STDERR_FILENO) < 0 || fcntl(how->door, F_SETFD, 0) < 0 || setenv("RUNNEL_FD", door, 1) < 0 ||
        setenv("RUNNEL_RANK", number, 1) < 0)
        give_up(how, rank, RNL_SPAWN_PREPARE);
    sigprocmask(SIG_SETMASK, &how->mask, NULL);
    execute(how);
    give_up(how, rank, RNL_SPAWN_EXECUTE);
}

int rnl_spawn(const struct rnl_spawn *how, uint32_t rank, pid_t *pid)
{
    pid_t launcher = getpid();
    pid_t child = fork();
    if (child < 0)
        return -errno;
    if (child == 0)
        become(how, rank, launcher);
    setpgid(child, child); /* here too: a signal to the group must not come too early */
    *pid = child;
    return 0;
}
