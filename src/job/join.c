/* SPDX-License-Identifier: BSD-3-Clause
 *
 * join.c - the rank's side of rendezvous.h. It ends with the same bootstrap socket that a rank inherits which the
 * launcher started. */
#include "job/rendezvous.h"

#include "base/env.h"
#include "base/error.h"
#include "job/fds.h"
#include "net/wire/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const uint64_t seek_ns = UINT64_C(40000000000); /* longer than an agent seeks the launcher */
static const uint64_t start_again_ns = UINT64_C(2000000000);
static int lifeline = -1;
static pid_t joined_pid;

void rnl_join_exits(int code)
{
    unsigned char packet[5] = {'x'};
    if (lifeline < 0 || joined_pid != getpid())
        return;
    rnl_put32(packet + 1, (uint32_t)code);
    (void)rnl_seqpacket_send(lifeline, packet, sizeof packet, NULL, 0, 0);
}

static void on_exit_code(int code, void *arg)
{
    (void)arg;
    rnl_join_exits(code);
}

pid_t rnl_join_fork(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the program's runs in the child */
    const pid_t pid = fork();
    const int e = errno;
    for (int i = 1; pid == 0 && i <= SIGRTMAX; i++)
        (void)sigaction(i, &usual, NULL);
    if (pid == 0)
        sigemptyset(&before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = e;
    return pid;
}

/* Starts the node agent of this host: a process that is not a child of this program and has none of its files. It finds
 * the launcher by RUNNEL_RENDEZVOUS (launcher/expected.c), and ends with the job, or at once where another agent is. 0
 * or RNL_ERR_JOB. */
static int start_agent(const char *path)
{
    char *argv[] = {(char *)(uintptr_t) "runnel", (char *)(uintptr_t) "agent", NULL};
    int failed[2], e = 0; /* a pipe for the errno of execv */
    const pid_t child = pipe2(failed, O_CLOEXEC) < 0 ? -1 : rnl_join_fork();
    if (child < 0)
        return rnl_fail_errno(RNL_ERR_JOB, errno, "cannot start the node agent of this host");
    if (child > 0) {
        close(failed[1]);
        while (read(failed[0], &e, sizeof e) < 0 && errno == EINTR)
            ;
        close(failed[0]);
        (void)waitpid(child, NULL, 0); /* ECHILD: the program ignores its children */
        return e == 0 ? 0
                      : rnl_fail_errno(RNL_ERR_JOB, e,
                                       "there is no runnel command at '%.200s', nor in PATH, that could serve this "
                                       "host: install it, or say where it is with `runnel run --agent`",
                                       path);
    }
    setsid();
    if (fork() != 0)
        _exit(0);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (dup2(failed[1], 3) < 0 || fcntl(3, F_SETFD, FD_CLOEXEC) < 0)
        _exit(127);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    if (syscall(SYS_close_range, 4u, ~0u, 0u) < 0)
        for (int fd = 4; fd < 65536; fd++)
            close(fd);
    unsetenv("RUNNEL_FD");
    argv[0] = (char *)(uintptr_t)path;
    execv(path, argv);
    argv[0] = (char *)(uintptr_t) "runnel";
    execvp(argv[0], argv);
    e = errno;
    (void)!write(3, &e, sizeof e);
    _exit(127);
}

static int take_environment(int fd, struct rnl_joined *out)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size < 0 || st.st_size > 64 << 20)
        return RNL_ERR_JOB;
    out->environment = malloc((size_t)st.st_size + 1);
    if (!out->environment)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the environment of the job");
    const ssize_t n = pread(fd, out->environment, (size_t)st.st_size, 0);
    out->environment_bytes = n > 0 ? (size_t)n : 0;
    return n == st.st_size ? 0 : RNL_ERR_JOB;
}

/* Takes over what the agent has sent. The caller closes the descriptors of the packet. */
static int take_over(const struct rnl_seqpacket *p, bool route, struct rnl_joined *out)
{
    const int r = take_environment(p->fds[1], out);
    if (r < 0)
        return r;
    out->bootstrap = fcntl(p->fds[0], F_DUPFD_CLOEXEC, 3);
    if (out->bootstrap < 0 || (route && (dup2(p->fds[2], STDOUT_FILENO) < 0 || dup2(p->fds[3], STDERR_FILENO) < 0)))
        return rnl_fail_errno(RNL_ERR_JOB, errno, "this process has no free descriptor for its place in the job");
    return 0;
}

/* Takes in what the agent says: its verdict, or RNL_NO_ROOM if it has ended without one. */
static int await_place(bool route, struct rnl_joined *out)
{
    unsigned char heard[RNL_JOIN_SENTENCE + 1];
    struct rnl_seqpacket p;
    int r = rnl_seqpacket_receive(out->lifeline, heard, sizeof heard - 1, 4, &p, 1);
    if (r < 0)
        return RNL_NO_ROOM;
    heard[p.n] = '\0';
    if (heard[0] == 'x')
        r = rnl_fail(RNL_ERR_JOB, "%s", (const char *)heard + 1);
    else if (heard[0] == 'd' && p.nfds == (route ? 4 : 2))
        r = take_over(&p, route, out);
    else
        r = rnl_fail(RNL_ERR_JOB, "the agent of this host is of another release, or has no descriptors for a rank");
    rnl_seqpacket_drop(&p);
    return r < 0 ? r : rnl_seqpacket_send(out->lifeline, "t", 1, NULL, 0, 0);
}

/* Asks the agent of this host for a place, once. RNL_NO_ROOM: there is none yet, or it has just ended. */
static int request(const struct rnl_rendezvous *at, const struct rnl_join_options *opt, bool *nobody,
                   struct rnl_joined *out)
{
    unsigned char packet[RNL_JOIN_PACKET] = {'j', opt->route ? RNL_JOIN_ROUTE : 0};
    struct sockaddr_un name;
    const socklen_t n = rnl_rendezvous_socket(at->key, &name);
    out->lifeline = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (out->lifeline < 0)
        return rnl_fail_errno(RNL_ERR_JOB, errno, "this process has no free descriptor to join its job");
    *nobody = connect(out->lifeline, (struct sockaddr *)&name, n) < 0;
    if (*nobody)
        return RNL_NO_ROOM;
    if (!rnl_join_is_ours(out->lifeline, NULL))
        return rnl_fail(RNL_ERR_JOB, "another user holds the socket of this host's node agent: start the job again");
    rnl_put32(packet + 2, (uint32_t)opt->wanted);
    rnl_rendezvous_proof(at->key, packet + 6);
    (void)rnl_seqpacket_send(out->lifeline, packet, sizeof packet, NULL, 0, 1); /* its end is seen when reading */
    explicit_bzero(packet, sizeof packet);
    return await_place(opt->route, out);
}

/* Asks until there is a verdict. An agent that cannot reach the launcher says why and ends; who comes too late to hear
 * it starts another. */
static int find_place(const struct rnl_rendezvous *at, const struct rnl_join_options *opt, struct rnl_joined *out)
{
    const uint64_t until_ns = rnl_host_now_ns(NULL) + seek_ns;
    uint64_t start_ns = 0;
    struct timespec pause = {.tv_nsec = 2000000};
    for (;;) {
        bool nobody;
        int r = request(at, opt, &nobody, out);
        if (r != RNL_NO_ROOM)
            return r;
        close(out->lifeline);
        out->lifeline = -1;
        const uint64_t now = rnl_host_now_ns(NULL);
        if (now >= until_ns)
            return rnl_fail(RNL_ERR_JOB, "the node agent of this host %s", nobody ? "does not come" : "has ended");
        if (nobody && now >= start_ns) {
            r = start_agent(at->agent);
            start_ns = now + start_again_ns;
        }
        if (r == RNL_ERR_JOB)
            return r;
        (void)nanosleep(&pause, NULL);
        pause.tv_nsec += pause.tv_nsec < 100000000 ? pause.tv_nsec / 2 : 0;
    }
}

int rnl_join(const struct rnl_join_options *opt, struct rnl_joined *out)
{
    struct rnl_rendezvous at;
    *out = (struct rnl_joined){.bootstrap = -1, .lifeline = -1};
    int r = rnl_rendezvous_read(opt->where, &at);
    if (r < 0)
        return r;
    r = find_place(&at, opt, out);
    explicit_bzero(&at, sizeof at);
    if (r < 0) {
        if (out->bootstrap >= 0)
            close(out->bootstrap);
        if (out->lifeline >= 0)
            close(out->lifeline);
        free(out->environment);
        return r;
    }
    char number[16];
    snprintf(number, sizeof number, "%d", out->bootstrap);
    setenv("RUNNEL_FD", number, 1);
    lifeline = out->lifeline;
    joined_pid = getpid();
    unsetenv("RUNNEL_RENDEZVOUS"); /* what this process starts is not to join in its place */
    (void)on_exit(on_exit_code, NULL);
    return 0;
}
