/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launch_start.c - from the command line to running ranks: limits, signals, pages, pipes. */
#include "job/launch_in.h"

#include "base/env.h"
#include "job/branch.h"
#include "job/fds.h"
#include "job/net.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURN_EVERY = 16 /* ranks started, to look after those that run */ };

/* 0, 1 and 2 must not become something else's numbers. What is written to a standard output that was closed is an
 * error, as it would be without us: it is opened for reading. What is said to a closed standard error is not missed. */
static void open_standard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);
    const char *outer = getenv("RUNNEL_FD"); /* a launcher that is itself a rank: that place is not its ranks' */
    if (outer != NULL && strchr(outer, ',') == NULL && atoi(outer) > 2)
        fcntl(atoi(outer), F_SETFD, FD_CLOEXEC);
}

static int raise_descriptors(struct rnl_launcher *l, struct rlimit *before)
{
    struct rlimit limit;
    rlim_t each = l->count + (l->below_end > l->below ? rnl_tree_branches(l->below, l->below_end, l->job->fan) : 0);
    rlim_t need = RNL_LAUNCH_DESCRIPTORS + each * RNL_RANK_DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, before) < 0) {
        memset(before, 0, sizeof *before);
        return 0;
    }
    limit = *before;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= need)
        return 0;
    unsigned long long most =
        limit.rlim_max > RNL_LAUNCH_DESCRIPTORS ? (limit.rlim_max - RNL_LAUNCH_DESCRIPTORS) / RNL_RANK_DESCRIPTORS : 0;
    char fewer[64] = ""; /* with too few for one rank there is only one remedy */
    if (most > 0)
        snprintf(fewer, sizeof fewer, ", or start at most %llu rank%s", most, most == 1 ? "" : "s");
    rnl_launch_say(l, "%u rank%s need%s %llu descriptors, and the limit is %llu: raise it (ulimit -Hn)%s", l->job->size,
                   l->job->size == 1 ? "" : "s", l->job->size == 1 ? "s" : "", (unsigned long long)need,
                   (unsigned long long)limit.rlim_max, fewer);
    return -1;
}

static void take_signals(struct rnl_launcher *l, struct rnl_spawn *how)
{
    static const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
    const struct sigaction ignore = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL};
    sigset_t set;
    sigemptyset(&set);
    for (unsigned i = 0; i < sizeof ours / sizeof ours[0]; i++)
        sigaddset(&set, ours[i]);
    sigset_t blocked = set;
    sigaddset(&blocked, SIGTTIN); /* a terminal that is read too late says so instead of stopping us */
    sigprocmask(SIG_BLOCK, &blocked, &how->mask);
    sigaction(SIGPIPE, &ignore, &how->on_pipe);
    sigaction(SIGCHLD, &usual, &how->on_child); /* ignored, our children would vanish before we know how they ended */
    l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Each rank with a socket on the loopback interface, and a host number of its own. 0 or -1. */
static int open_net(struct rnl_launcher *l, struct rnl_place_rank *places, int *sockets)
{
    struct rnl_socket_addr *at = calloc(l->job->size, sizeof *at);
    int e = at == NULL ? -ENOMEM : rnl_net_open(RNL_NET_LOOPBACK, l->job->size, sockets, at);
    if (e < 0)
        rnl_launch_say(l, "cannot open %u UDP socket%s for the ranks: %s; %s", l->job->size, RNL_S(l->job->size),
                       strerror(-e), rnl_net_remedy(-e));
    for (uint32_t i = 0; e == 0 && i < l->job->size; i++)
        places[i] = (struct rnl_place_rank){.host = i, .same_kernel = 1, .incarnation = i + 1, .at = at[i]};
    free(at);
    return e < 0 ? -1 : 0;
}

/* 0 or a negative status, which has been said. */
int rnl_launch_make_agent(struct rnl_launcher *l, struct rnl_agent_options *opt)
{
    const uint32_t size = l->job->size;
    struct rnl_place_rank *places = NULL;
    int *sockets = NULL, r = 0;
    if (l->job->datagrams && opt->places == NULL && opt->tell == NULL) {
        places = calloc(size, sizeof *places);
        sockets = calloc(size, sizeof *sockets);
        if (places == NULL || sockets == NULL)
            r = RNL_ERR_NO_MEMORY;
        if (r < 0)
            rnl_launch_say(l, "no memory for the places of %u ranks", size);
        else
            r = open_net(l, places, sockets);
        opt->places = places;
        opt->sockets = sockets;
    }
    if (r == 0) {
        r = rnl_agent_new(opt, &l->agent);
        if (r < 0)
            rnl_launch_say(l, "%s", rnl_last_error()->text);
        if (r < 0 && sockets != NULL)
            rnl_net_close(size, sockets);
    }
    free(places);
    free(sockets);
    return r;
}

static int set_up(struct rnl_launcher *l, struct rnl_spawn *how)
{
    struct rnl_agent_options opt = {.size = l->job->size, .keep_going = l->job->keep_going};
    if (l->job->hosts > 0) {
        opt.tell = rnl_head_tell;
        opt.arg = l;
    }
    const char *what = "the queues and pipes";
    int ends[2];
    memcpy(opt.host, l->host, sizeof opt.host);
    if (getrandom(opt.key, sizeof opt.key, 0) != (ssize_t)sizeof opt.key) {
        rnl_launch_say(l, "the system gave no random key for the job: %s", strerror(errno));
        return -1;
    }
    int r = 0;
    if (l->site == NULL) {
        memcpy(l->key, opt.key, sizeof l->key);
        r = rnl_launch_make_agent(l, &opt);
    }
    explicit_bzero(&opt, sizeof opt);
    if (r < 0)
        return -1;
    take_signals(l, how);
    r = l->job->hosts > 0 ? 0 : rnl_guard_start(&l->guard);
    if (r < 0) {
        rnl_launch_say(l, "cannot start the process that guards the job: %s; raise the limit of processes (ulimit -u)",
                       strerror(-r));
        return -1;
    }
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0 || l->signals < 0 || pipe2(ends, O_CLOEXEC) < 0)
        goto system;
    l->exec_failed = ends[0];
    how->failed = ends[1];
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ||
        rnl_source_add(l->epoll, l->signals, RNL_SOURCE_SIGNALS, 0, EPOLLIN) < 0 ||
        rnl_source_add(l->epoll, ends[0], RNL_SOURCE_EXEC, 0, EPOLLIN) < 0 ||
        (l->agent != NULL && rnl_source_add(l->epoll, rnl_agent_fd(l->agent), RNL_SOURCE_AGENT, 0, EPOLLIN) < 0))
        goto system;
    what = "the buffers for the output";
    r = rnl_console_new(l->epoll, l->job->hosts > 0 ? l->job->hosts : l->job->size, l->job->hosts == 0 && l->job->tag,
                        &l->console);
    if (r == 0 && l->site != NULL)
        return 0;
    if (r == 0)
        what = "the pipe for the input";
    if (r == 0)
        r = rnl_input_new(&l->input, l->epoll, rnl_host_now_ns(NULL), &how->in);
    if (r == 0 && l->job->hosts > 0)
        return rnl_head_new(l, how);
    if (r == 0)
        return 0;
    errno = -r;
system:
    rnl_launch_say(l, "cannot make %s of the job: %s; %s", what, strerror(errno), rnl_memfd_remedy(errno));
    return -1;
}

static int start_rank(struct rnl_launcher *l, struct rnl_spawn *how, uint32_t rank)
{
    struct rnl_proc *p = &l->proc[rank];
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    how->door = -1;
    int e = rnl_agent_door(l->agent, rank, &how->door) < 0 ? -rnl_last_error()->sys_errno : 0;
    if (e == 0 && (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0))
        e = -errno;
    how->out = out[1];
    how->err = err[1];
    how->cpu = p->cpu;
    if (e == 0)
        e = rnl_spawn(how, rank, &p->pid);
    if (e == 0) {
        rnl_guard_add(&l->guard, p->pid);
        p->started = 1;
        l->running++;
        rnl_agent_started(l->agent, rank, p->pid);
        p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
        e = p->pidfd < 0 ? -errno : rnl_source_add(l->epoll, p->pidfd, RNL_SOURCE_EXIT, rank, EPOLLIN);
        if (e < 0) { /* its end would not be noticed */
            kill(p->pid, SIGKILL);
            rnl_guard_remove(&l->guard, p->pid);
            while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
                ;
            p->started = 0;
            l->running--;
        }
    }
    for (int i = 0; i < 2; i++) {
        int *pipe = i == 0 ? out : err;
        if (pipe[0] >= 0 && p->started) {
            int added = rnl_console_add(l->console, rank, i + 1, pipe[0]);
            e = e == 0 ? added : e;
        } else if (pipe[0] >= 0) {
            close(pipe[0]);
        }
        if (pipe[1] >= 0)
            close(pipe[1]);
    }
    if (how->door >= 0)
        close(how->door);
    if (e == -ENOSYS)
        rnl_launch_say(
            l, "cannot start rank %u of %u: %s; this needs Linux 5.3 or newer, and no filter that forbids pidfd_open",
            rank, l->job->size, strerror(-e));
    else if (e < 0)
        rnl_launch_say(l,
                       "cannot start rank %u of %u: %s; start fewer ranks, or raise the limits (ulimit -n, ulimit -u)",
                       rank, l->job->size, strerror(-e));
    return e;
}

static int place_ranks(struct rnl_launcher *l)
{
    int cpus[RNL_JOB_RANKS_MAX], n = 0;
    if (l->job->bind_core && l->count > 0 && (n = rnl_bind_cores(cpus, RNL_JOB_RANKS_MAX)) < 0) {
        rnl_launch_say(l, "cannot learn which cores there are: %s; leave out --bind core", strerror(-n));
        return -1;
    }
    for (uint32_t i = 0; i < l->job->size; i++) {
        uint32_t k = l->shares_cores ? i : i - l->first;
        l->proc[i].cpu = n > 0 ? cpus[k % (uint32_t)n] : -1;
        l->proc[i].pidfd = -1;
        l->proc[i].away = i - l->first >= l->count;
    }
    return 0;
}

int rnl_launch_set_up(struct rnl_launcher *l, struct rnl_spawn *how)
{
    open_standard();
    if (place_ranks(l) == 0 && raise_descriptors(l, &how->descriptors) == 0 && set_up(l, how) == 0)
        return 0;
    l->status = RNL_EXIT_SYSTEM;
    return -1;
}

/* What all ranks but the first read. A bare chroot has no /dev/null; a pipe without a writer is as empty. */
static int open_empty(void)
{
    int ends[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0 || pipe2(ends, O_CLOEXEC) < 0)
        return null;
    close(ends[1]);
    return ends[0];
}

int rnl_launch_start(struct rnl_launcher *l, struct rnl_spawn *how)
{
    int first_in = how->in, null = open_empty(), e = null < 0 ? -1 : 0;
    if (e < 0)
        rnl_launch_say(l, "cannot open /dev/null: %s", strerror(errno));
    uint32_t started = 0;
    while (e == 0 && started < l->count && !l->ending && l->interrupted == 0) {
        how->in = l->first + started == 0 ? first_in : null;
        e = start_rank(l, how, l->first + started++);
        if (started % TURN_EVERY == 0)
            rnl_launch_turn(l, 0);
    }
    if (e == 0 && started < l->count && !l->ending) { /* interrupted: who was not started did not get the signal */
        l->failed = 1;
        l->status = RNL_EXIT_SIGNAL + l->interrupted;
        rnl_launch_end_job(l, rnl_host_now_ns(NULL));
    }
    close(how->failed);
    if (first_in != STDIN_FILENO)
        close(first_in);
    if (null >= 0)
        close(null);
    if (e < 0) {
        l->quiet = l->ending = l->failed = 1;
        l->status = RNL_EXIT_SYSTEM;
        rnl_launch_kill_all(l, rnl_host_now_ns(NULL));
    }
    return e;
}
