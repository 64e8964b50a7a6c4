/* SPDX-License-Identifier: BSD-3-Clause
 *
 * child.h - running a piece of a test in a child process: how it ends, and what it says on standard error. */
#ifndef RNL_TESTS_FM_CHILD_H
#define RNL_TESTS_FM_CHILD_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct child_end {
    int status; /* of exit, or 1000 + signal */
    char said[2000];
};

/* Who ends in the middle leaves things behind: no leak check after exit. */
static inline void leave(int status, void *arg)
{
    (void)arg;
    _exit(status);
}

static inline struct child_end in_child(void (*body)(void))
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct child_end end = {.status = -1};
    size_t n = 0;
    int pipes[2], status;
    if (pipe(pipes) != 0)
        abort();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
            signal(signals[i], SIG_DFL); /* cmocka catches them */
        alarm(30);
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        on_exit(leave, NULL);
        body();
        _exit(0);
    }
    close(pipes[1]);
    for (ssize_t got = 1; got > 0;) {
        char more[512];
        got = read(pipes[0], more, sizeof more);
        for (ssize_t i = 0; i < got && n + 1 < sizeof end.said; i++)
            end.said[n++] = more[i];
    }
    close(pipes[0]);
    end.said[n] = '\0';
    if (waitpid(pid, &status, 0) == pid)
        end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return end;
}

#endif
