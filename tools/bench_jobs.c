/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_jobs.c - see bench_jobs.h. The floors' pair is forked: it needs nothing but the area. Each interface is a job
 * of two, started by `runnel run` like any other program's. */
#include "bench_jobs.h"
#include "machine.h"
#include "side.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct bench_api *const api_of[BENCH_APIS] = {&bench_api_raw, &bench_api_native, &bench_api_fm,
                                                           &bench_api_fm1};

enum { END_MS = 5000 };

static int add(struct bench_jobs *j, pid_t pid, unsigned pair)
{
    if (pid < 0) {
        snprintf(j->text, j->text_size, "could not start a process: %s", strerror(errno));
        return -EAGAIN;
    }
    for (unsigned i = 0; i < BENCH_JOBS; i++) {
        if (j->pid[i] == 0) {
            j->pid[i] = pid;
            j->pair[i] = pair;
            break;
        }
    }
    return 0;
}

/* In a child: end with the parent, also if it is gone already. */
static void end_with(pid_t parent, int signal)
{
    prctl(PR_SET_PDEATHSIG, signal);
    if (getppid() != parent)
        _exit(1);
}

static pid_t start_floor(struct bench_jobs *j, unsigned side)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        end_with(parent, SIGKILL);
        _exit(bench_side_run(j->area, BENCH_RAW, &bench_api_raw, side));
    }
    return pid;
}

static pid_t start_job(struct bench_jobs *j, unsigned api)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        end_with(parent, SIGTERM);
        execl(j->self, j->self, "run", "-n", "2", "--bind", "none", j->self, "bench", "--child", j->area_path, "--api",
              bench_api_name(api), (char *)NULL);
        fprintf(stderr, "runnel bench: could not start %s: %s\n", j->self, strerror(errno));
        _exit(127);
    }
    return pid;
}

int bench_jobs_start(struct bench_jobs *j, struct bench_area *area, int area_fd, unsigned apis, char *text, size_t size)
{
    memset(j, 0, sizeof *j);
    j->area = area;
    j->text = text;
    j->text_size = size;
    ssize_t n = readlink("/proc/self/exe", j->self, sizeof j->self - 1);
    if (n <= 0) {
        snprintf(text, size, "cannot tell which program this is: is /proc mounted?");
        return -ENOENT;
    }
    j->self[n] = 0;
    snprintf(j->area_path, sizeof j->area_path, "/proc/%d/fd/%d", (int)getpid(), area_fd);
    fflush(NULL); /* or the forked ones would write it again */
    int e = 0;
    for (unsigned side = 0; side < 2 && e == 0; side++)
        e = add(j, start_floor(j, side), BENCH_RAW);
    for (unsigned a = BENCH_RAW + 1; a < BENCH_APIS && e == 0; a++)
        if (apis & 1u << a)
            e = add(j, start_job(j, a), a);
    return e;
}

int bench_jobs_alive(void *arg)
{
    struct bench_jobs *j = arg;
    for (unsigned i = 0; i < BENCH_JOBS; i++) {
        int status;
        if (j->pid[i] == 0 || waitpid(j->pid[i], &status, WNOHANG) != j->pid[i])
            continue;
        j->pid[i] = 0;
        const char *why = bench_pair_failure(&j->area->pair[j->pair[i]]);
        const char *name = bench_api_name(j->pair[i]);
        if (why)
            snprintf(j->text, j->text_size, "the processes for %s failed: %s", name, why);
        else if (WIFSIGNALED(status))
            snprintf(j->text, j->text_size, "the processes for %s ended by signal %d", name, WTERMSIG(status));
        else
            snprintf(j->text, j->text_size, "the processes for %s ended with status %d", name, WEXITSTATUS(status));
        return -ECHILD;
    }
    return 0;
}

static unsigned left(struct bench_jobs *j)
{
    unsigned n = 0;
    for (unsigned i = 0; i < BENCH_JOBS; i++) {
        if (j->pid[i] && waitpid(j->pid[i], NULL, WNOHANG) != 0)
            j->pid[i] = 0;
        n += j->pid[i] != 0;
    }
    return n;
}

static void wait_until_gone(struct bench_jobs *j, unsigned ms)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    uint64_t end = bench_now_ns() + (uint64_t)ms * 1000000u;
    while (left(j) && bench_now_ns() < end)
        nanosleep(&pause, NULL);
}

void bench_jobs_end(struct bench_jobs *j, bool failed)
{
    static const int how[] = {SIGTERM, SIGKILL};
    if (!failed) {
        const struct bench_order quit = {.test = BENCH_QUIT};
        for (unsigned i = 0; i < BENCH_APIS; i++)
            bench_pair_order(&j->area->pair[i], &quit);
        wait_until_gone(j, END_MS);
    }
    for (unsigned k = 0; k < 2 && left(j); k++) {
        for (unsigned i = 0; i < BENCH_JOBS; i++)
            if (j->pid[i])
                kill(j->pid[i], how[k]);
        wait_until_gone(j, END_MS);
    }
}

int bench_jobs_child(const char *area_path, const char *name)
{
    struct bench_area *area;
    int e = bench_area_attach(area_path, &area);
    if (e) {
        fprintf(stderr, "runnel bench: cannot open %s: %s. --child is for runnel bench itself\n", area_path,
                strerror(-e));
        return 1;
    }
    for (unsigned a = BENCH_RAW + 1; a < BENCH_APIS; a++)
        if (!strcmp(name, api_of[a]->name))
            return bench_side_run(area, a, api_of[a], 0);
    fprintf(stderr, "runnel bench: no interface is called %s\n", name);
    return 1;
}
