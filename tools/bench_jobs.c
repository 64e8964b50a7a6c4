/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_jobs.c - see bench_jobs.h. The pair of the baselines is forked and needs only the area. Each interface is a job
 * of two, started by `runnel run` like any other program's. */
#include "bench_jobs.h"
#include "launch.h"
#include "machine.h"
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* The baselines' processes: scenarios have baselines of their own, and need the probe. */
static pid_t start_bare(struct bench_jobs *j, unsigned pair, const struct bench_api *api, unsigned rank)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        bench_end_with(parent, SIGKILL);
        _exit(bench_process_run(j->area, pair, api, rank));
    }
    return pid;
}

int bench_jobs_start(struct bench_jobs *j, struct bench_area *area, int area_fd, unsigned apis, char *text, size_t size)
{
    const struct bench_api *baseline = apis && area->net.udp ? &bench_api_udp : &bench_api_raw;
    memset(j, 0, sizeof *j);
    j->area = area;
    j->text = text;
    j->text_size = size;
    bench_area_path(area_fd, j->area_path);
    fflush(NULL); /* or the forked ones would write it again */
    int e = 0;
    for (unsigned rank = 0; rank < 2 && e == 0; rank++)
        e = add(j, start_bare(j, BENCH_RAW, baseline, rank), BENCH_RAW);
    for (unsigned rank = 0; rank < 2 && e == 0 && apis & 1u << BENCH_TCP; rank++)
        e = add(j, start_bare(j, BENCH_TCP, &bench_api_tcp, rank), BENCH_TCP);
    for (unsigned i = BENCH_RAW + 1; i < BENCH_MAX_PAIRS && e == 0; i++)
        if (area->pair[i].role[0])
            e = add(j, bench_launch_pair(area, j->area_path, i), i);
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
        const char *name = bench_pair_name(j->area, j->pair[i]);
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
        for (unsigned i = 0; i < BENCH_MAX_PAIRS; i++)
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

int bench_jobs_child(const char *area_path, unsigned pair)
{
    struct bench_area *area;
    int e = bench_area_attach(area_path, &area);
    if (e) {
        fprintf(stderr, "runnel bench: cannot open %s: %s. --child is for runnel bench itself\n", area_path,
                strerror(-e));
        return 1;
    }
    const struct bench_api *role = pair < BENCH_MAX_PAIRS ? bench_role(area->pair[pair].role) : NULL;
    if (role)
        return bench_process_run(area, pair, role, 0);
    fprintf(stderr, "runnel bench: no pair %u to be part of. --child is for runnel bench itself\n", pair);
    return 1;
}
