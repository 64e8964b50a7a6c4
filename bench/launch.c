/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launch.c - see launch.h. */
#include "launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

void bench_area_path(int fd, char out[64])
{
    snprintf(out, 64, "/proc/%d/fd/%d", (int)getpid(), fd);
}

void bench_end_with(pid_t parent, int signal)
{
    prctl(PR_SET_PDEATHSIG, signal);
    if (getppid() != parent)
        _exit(1);
}

pid_t bench_launch(const char *const argv[])
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid < 0 ? -errno : pid;
    bench_end_with(parent, SIGTERM);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* standard output is for the rows alone */
    if (argv[0][0])
        execvp(argv[0], (char *const *)argv);
    else
        execv("/proc/self/exe", (char *const *)argv);
    fprintf(stderr, "runnel bench: could not start %s: %s\n", argv[0][0] ? argv[0] : "itself", strerror(errno));
    _exit(127);
}

pid_t bench_launch_pair(const struct bench_area *area, const char *area_path, unsigned pair)
{
    char self[4096]; /* for the ranks: what /proc/self/exe is to the launcher is this program too */
    char ranks[16], part[16], hosts[80];
    const char *argv[24];
    unsigned n_argv = 0;
    const struct bench_pair *p = &area->pair[pair];
    const struct bench_net *net = p->by_kernel ? &area->beside : &area->net;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return -ENOENT;
    self[n] = 0;
    snprintf(ranks, sizeof ranks, "%u", bench_pair_ranks(p) + p->resting);
    snprintf(part, sizeof part, "%u", pair);
    for (const char *const *w = (const char *const[]){"env", "RNL_FAULT=loss=0%", NULL}; p->lossy && *w; w++)
        argv[n_argv++] = *w;
    for (const char *const *w = (const char *const[]){self, "run", "-n", ranks, "--bind", "none", NULL}; *w; w++)
        argv[n_argv++] = *w;
    if (net->udp && !*net->space[0]) {
        argv[n_argv++] = "--transport";
        argv[n_argv++] = "udp";
    } else if (net->udp) {
        snprintf(hosts, sizeof hosts, "%s,%s", net->space[0], net->space[1]);
        for (const char *const *w = (const char *const[]){"--launcher", "netns", "--hosts", hosts, NULL}; *w; w++)
            argv[n_argv++] = *w;
    }
    if (*net->via) {
        argv[n_argv++] = "--transport";
        argv[n_argv++] = net->via;
    }
    for (const char *const *w = (const char *const[]){self, "bench", "--child", area_path, "--part", part, NULL}; *w;
         w++)
        argv[n_argv++] = *w;
    argv[n_argv] = NULL;
    return bench_launch(argv);
}
