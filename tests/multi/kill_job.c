/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kill_job.c - see kill_job.h. Processes are signalled through descriptors taken while they were certainly ours: a
 * number may be another's by then. */
#include "multi/kill_job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "multi/fm_check.h"

#define MS 1000000ull
enum { LEFT_MS = 2000 };

int kill_job_prepare(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int parent_of(pid_t pid)
{
    char path[64], text[512];
    int parent = -1;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
        return -1;
    return parent;
}

struct watch {
    struct kill_job *job;
    pid_t launcher;
    pid_t rank_pid[KILL_RANKS];
    int rank_fd[KILL_RANKS], launcher_fd;
    unsigned known; /* ranks found so far */
    uint64_t began_ns;
    uint8_t stopped[KILL_RANKS], fired[KILL_RANKS];
};

/* What the system lists; 0 = nothing. */
static int children_of(pid_t pid, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    int list = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = list < 0 ? -1 : read(list, text, room - 1);
    if (list >= 0)
        close(list);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The rank of a process, by what its launcher has told it, once it is a program of the job; -1 = not yet, or none. */
static int rank_of(long pid)
{
    char path[64], text[1 << 15];
    snprintf(path, sizeof path, "/proc/%ld/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    for (const char *at = text; at < text + n; at += strlen(at) + 1)
        if (strncmp(at, "RUNNEL_RANK=", 12) == 0)
            return atoi(at + 12);
    return -1;
}

/* The children of the launcher's children, which are node agents. */
static void find_ranks(struct watch *w)
{
    char agents[4096], text[4096], *end, *end2;
    if (!children_of(w->launcher, agents, sizeof agents))
        return;
    for (char *at = agents;; at = end) {
        long agent = strtol(at, &end, 10);
        if (end == at)
            return;
        if (!children_of((pid_t)agent, text, sizeof text))
            continue;
        for (char *in = text;; in = end2) {
            long pid = strtol(in, &end2, 10);
            if (end2 == in)
                break;
            int rank = rank_of(pid);
            if (rank < 0 || rank >= (int)w->job->ranks || w->rank_pid[rank] != 0)
                continue;
            int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
            if (fd >= 0 && (parent_of((pid_t)pid) != agent || rank_of(pid) != rank)) { /* another's number by now */
                close(fd);
                continue;
            }
            w->rank_fd[rank] = fd;
            w->rank_pid[rank] = (pid_t)pid;
            w->known++;
        }
    }
}

static int signal_fd(int fd, int signal)
{
    return fd < 0 ? -1 : (int)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
}

static pid_t start(const struct kill_job *job, int out[2], int err[2])
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever ends the test ends its job */
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    execv(job->argv[0], job->argv);
    _exit(127);
}

/* What is there now; 0 = end of file. */
static int drain(int fd, char *text, size_t *used)
{
    char rest[4096];
    for (;;) {
        size_t room = KILL_TEXT - 1 - *used;
        ssize_t n = room ? read(fd, text + *used, room) : read(fd, rest, sizeof rest);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return 1;
        if (n == 0)
            return 0;
        if (room)
            *used += (size_t)n;
    }
}

/* Does what is due; returns when the next thing is, in ns after the start. */
static uint64_t shoot(struct watch *w)
{
    struct kill_job *job = w->job;
    uint64_t next = UINT64_MAX, now = check_now_ns() - w->began_ns;
    for (unsigned i = 0; i < job->shots; i++) {
        struct kill_shot *s = &job->shot[i];
        uint64_t due = s->stop_ns && !w->stopped[i] ? (s->at_ns > s->stop_ns ? s->at_ns - s->stop_ns : 0) : s->at_ns;
        if (w->fired[i])
            continue;
        if (now < due) {
            next = due < next ? due : next;
            continue;
        }
        int fd = s->rank < 0 ? w->launcher_fd : w->rank_fd[s->rank];
        if (fd < 0) { /* not there yet */
            next = now + MS / 4;
            continue;
        }
        if (s->stop_ns && !w->stopped[i]) {
            w->stopped[i] = 1;
            (void)signal_fd(fd, SIGSTOP);
            next = now;
            continue;
        }
        w->fired[i] = 1;
        s->when_ns = check_now_ns();
        s->hit = signal_fd(fd, SIGKILL) == 0;
    }
    return next;
}

/* Until both pipes have ended and the launcher too. */
static void attend(struct watch *w, int out, int err)
{
    struct kill_job *job = w->job;
    size_t out_used = 0, err_used = 0;
    int open_out = 1, open_err = 1, running = 1;
    while (running || open_out || open_err) {
        uint64_t next, now;
        if (w->known < job->ranks)
            find_ranks(w);
        next = shoot(w);
        now = check_now_ns() - w->began_ns;
        if (now > job->limit_ns && !job->hung) {
            job->hung = 1;
            (void)signal_fd(w->launcher_fd, SIGKILL);
            for (unsigned i = 0; i < job->ranks; i++)
                (void)signal_fd(w->rank_fd[i], SIGKILL);
        }
        uint64_t wait = next > now ? next - now : 0;
        if (w->known < job->ranks && wait > MS / 4)
            wait = MS / 4;
        if (wait > 20 * MS)
            wait = 20 * MS;
        const struct timespec t = {.tv_nsec = (long)wait};
        struct pollfd p[2] = {{.fd = open_out ? out : -1, .events = POLLIN},
                              {.fd = open_err ? err : -1, .events = POLLIN}};
        if (ppoll(p, 2, &t, NULL) < 0 && errno != EINTR)
            break;
        if (p[0].revents)
            open_out = drain(out, job->out, &out_used);
        if (p[1].revents)
            open_err = drain(err, job->err, &err_used);
        if (running && waitpid(w->launcher, &job->status, WNOHANG) == w->launcher) {
            running = 0;
            job->ns = check_now_ns() - w->began_ns;
            for (unsigned i = 0; i < job->ranks && job->hung; i++)
                (void)signal_fd(w->rank_fd[i], SIGKILL);
        }
        if (job->hung && !running && now > job->limit_ns + 2000 * MS)
            break; /* somebody else holds the pipes */
    }
}

/* Orphans of the job are our children now; none may stay. */
static void count_left(struct kill_job *job)
{
    uint64_t ended_ns = check_now_ns();
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        job->gone_ns = check_now_ns() - ended_ns;
        if (pid < 0 && errno == ECHILD)
            return;
        if (pid > 0)
            continue;
        if (job->gone_ns > LEFT_MS * MS)
            break;
        const struct timespec t = {.tv_nsec = MS / 2};
        nanosleep(&t, NULL);
    }
    job->left = 1;
}

int kill_job_run(struct kill_job *job)
{
    int out[2], err[2];
    struct watch w = {.job = job};
    if (pipe2(out, O_CLOEXEC) < 0)
        return -1;
    if (pipe2(err, O_CLOEXEC) < 0) {
        close(out[0]);
        close(out[1]);
        return -1;
    }
    memset(job->out, 0, sizeof job->out);
    memset(job->err, 0, sizeof job->err);
    job->hung = job->left = 0;
    for (unsigned i = 0; i < KILL_RANKS; i++)
        w.rank_fd[i] = -1;
    w.began_ns = check_now_ns();
    w.launcher = start(job, out, err);
    close(out[1]);
    close(err[1]);
    if (w.launcher > 0) {
        fcntl(out[0], F_SETFL, O_NONBLOCK);
        fcntl(err[0], F_SETFL, O_NONBLOCK);
        w.launcher_fd = (int)syscall(SYS_pidfd_open, w.launcher, 0);
        attend(&w, out[0], err[0]);
        count_left(job);
        for (unsigned i = 0; i < job->ranks; i++)
            if (w.rank_fd[i] >= 0)
                close(w.rank_fd[i]);
        close(w.launcher_fd);
    }
    close(out[0]);
    close(err[0]);
    return w.launcher > 0 ? 0 : -1;
}
