/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launch.c - the launcher's loop. One thread, one epoll, nothing blocks, nothing polls in vain.
 *
 * A rank's life: started; exited (its process can be waited for: peers are told at once); finished (its output has been
 * read to the end, what it left behind in its process group is killed, it is reaped). Its process group is its own
 * until it is reaped, so a signal to the group cannot hit a stranger. */
#include "job/launch.h"

#include "base/env.h"
#include "base/error.h"
#include "job/agent.h"
#include "job/console.h"
#include "job/input.h"
#include "job/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
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

#define SECOND_NS 1000000000ull
static const uint64_t term_ns = 2 * SECOND_NS;      /* from SIGTERM to SIGKILL */
static const uint64_t interrupt_ns = 5 * SECOND_NS; /* from a signal passed on to SIGKILL */
static const uint64_t abandon_ns =
    SECOND_NS; /* from SIGKILL to the end of an interrupted job, whatever is still unwritten */
static const uint64_t linger_ns = SECOND_NS;     /* for what an exited rank left running with its output open */
static const uint64_t killed_ns = SECOND_NS / 5; /* the same, once that is killed */

enum {
    DESCRIPTORS_PER_RANK = 7, /* door, socket, eventfd, two pidfds, two pipes */
    DESCRIPTORS_OTHER = 64,
    TURN_EVERY = 16 /* ranks started, to look after those that run */
};

struct proc {
    pid_t pid;
    int pidfd, cpu;
    int signal, status;
    uint64_t exited_ns;
    uint8_t started, exited, swept, finished, broken, report;
};

struct launcher {
    const struct rnl_launch *job;
    char host[RNL_JOB_HOST_BYTES];
    int epoll, signals, exec_failed;
    struct rnl_agent *agent;
    struct rnl_console *console;
    struct rnl_input input;
    uint32_t running; /* started and not finished */
    uint32_t exited;  /* and not finished */
    int status;       /* of the job */
    uint8_t ending, failed, quiet, gave_up, all_started;
    int interrupted; /* the signal that did */
    uint64_t timeout_at, kill_at, abandon_at;
    struct proc proc[];
};

static uint64_t now_ns(void)
{
    return rnl_host_now_ns(NULL);
}

int rnl_source_add(int epoll, int fd, enum rnl_source source, uint32_t index, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u64 = (uint64_t)source << 32 | index};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

RNL_PRINTF(2, 3) static void say(struct launcher *l, const char *format, ...)
{
    char line[512];
    va_list args;
    size_t n = (size_t)snprintf(line, sizeof line, "runnel: ");
    va_start(args, format);
    vsnprintf(line + n, sizeof line - n, format, args);
    va_end(args);
    if (l->console != NULL)
        rnl_console_say(l->console, line);
    else
        fprintf(stderr, "%s\n", line);
}

/* ---- ends ---- */

static void signal_all(struct launcher *l, int signal)
{
    for (uint32_t i = 0; i < l->job->size; i++)
        if (l->proc[i].started && !l->proc[i].finished)
            kill(-l->proc[i].pid, signal);
}

static void kill_all(struct launcher *l, uint64_t now)
{
    signal_all(l, SIGKILL);
    l->kill_at = UINT64_MAX;
    if (l->interrupted != 0 || l->status == RNL_EXIT_TIMEOUT)
        l->abandon_at = now + abandon_ns;
}

static void end_job(struct launcher *l, uint64_t now)
{
    if (l->ending)
        return;
    l->ending = 1;
    signal_all(l, SIGTERM);
    signal_all(l, SIGCONT);
    if (now + term_ns < l->kill_at)
        l->kill_at = now + term_ns;
}

/* The first failure decides; what the end of the job does to the others is none. */
static void judge(struct launcher *l, uint32_t rank, uint64_t now)
{
    struct proc *p = &l->proc[rank];
    if (p->signal == 0 && p->status == 0)
        return;
    if (!l->failed && !l->ending)
        l->status = p->signal == 0 ? p->status : RNL_EXIT_SIGNAL + (l->interrupted != 0 ? l->interrupted : p->signal);
    if (!l->ending && !l->quiet && l->interrupted == 0)
        p->report = 1;
    l->failed = 1;
    if (!l->job->keep_going)
        end_job(l, now);
}

/* One line, behind all that the rank wrote. */
static void report(struct launcher *l, uint32_t rank)
{
    const struct proc *p = &l->proc[rank];
    const char *then = l->job->keep_going ? "the others go on" : "ending the job";
    if (p->broken && p->signal == SIGKILL) {
        say(l, "rank %u on %s closed its connection to the launcher or wrote garbage into it; %s", rank, l->host, then);
    } else if (p->signal != 0) {
        const char *name = sigdescr_np(p->signal);
        say(l, "rank %u on %s was killed by signal %d (%s); %s", rank, l->host, p->signal,
            name != NULL ? name : "unknown", then);
    } else {
        say(l, "rank %u on %s exited with status %d; %s", rank, l->host, p->status, then);
    }
}

static void hear_exec_failed(struct launcher *l, uint64_t now)
{
    struct rnl_spawn_failed f;
    if (l->exec_failed < 0)
        return;
    ssize_t n = read(l->exec_failed, &f, sizeof f);
    if (n < 0)
        return;
    if (n == sizeof f && !l->quiet) {
        if (!f.bound)
            say(l, "cannot bind rank %u to a core: %s; leave out --bind core", f.rank, strerror(f.sys_errno));
        else if (f.sys_errno == ENOENT)
            say(l, "cannot start '%s': the interpreter that it names does not exist; correct its first line",
                l->job->argv[0]);
        else
            say(l, "cannot start '%s': %s; check that it is a program for this machine", l->job->argv[0],
                strerror(f.sys_errno));
        l->status = !f.bound ? RNL_EXIT_SYSTEM : f.sys_errno == ENOENT ? RNL_EXIT_NOT_FOUND : RNL_EXIT_NOT_EXECUTABLE;
        l->quiet = l->ending = l->failed = 1; /* once, not for every rank */
        kill_all(l, now);
    }
    if (n == 0 || l->quiet) { /* everybody is on its way */
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->exec_failed, NULL);
        close(l->exec_failed);
        l->exec_failed = -1;
    }
}

static void hear_exit(struct launcher *l, uint32_t rank, uint64_t now)
{
    struct proc *p = &l->proc[rank];
    siginfo_t info = {.si_pid = 0};
    /* Left unreaped for now: so its process group cannot become somebody else's. */
    if (p->exited || waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
        return;
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, p->pidfd, NULL);
    close(p->pidfd);
    p->pidfd = -1;
    p->exited = 1;
    p->exited_ns = now;
    l->exited++;
    if (info.si_code == CLD_EXITED)
        p->status = info.si_status;
    else
        p->signal = info.si_status;
    rnl_agent_exited(l->agent, rank, p->signal, p->status, now); /* first of all: peers wait for the news */
    hear_exec_failed(l, now);
    judge(l, rank, now);
}

static void finish(struct launcher *l, uint32_t rank)
{
    struct proc *p = &l->proc[rank];
    kill(-p->pid, SIGKILL);
    rnl_console_end(l->console, rank);
    if (rank == 0)
        rnl_input_end(&l->input);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    p->finished = 1;
    l->running--;
    l->exited--;
    if (p->report)
        report(l, rank);
}

/* Ranks that exited: finished once their output has ended. What they left running gets a while to end it. */
static void finish_exited(struct launcher *l, uint64_t now)
{
    for (uint32_t i = 0; l->exited > 0 && i < l->job->size; i++) {
        struct proc *p = &l->proc[i];
        int unread;
        if (!p->exited || p->finished)
            continue;
        if (rnl_console_open(l->console, i, &unread) == 0) {
            finish(l, i);
            continue;
        }
        if (!p->swept && (now >= p->exited_ns + linger_ns || l->ending)) {
            kill(-p->pid, SIGKILL);
            p->swept = 1;
            p->exited_ns = now;
        } else if (p->swept && !unread && now >= p->exited_ns + killed_ns) {
            finish(l, i); /* what holds its output has left the group */
        }
    }
}

static void hear_agent(struct launcher *l)
{
    struct rnl_agent_death d;
    while (rnl_agent_next_death(l->agent, &d)) {
        struct proc *p = &l->proc[d.rank];
        if (d.why != RNL_DEATH_BROKEN || !p->started || p->finished)
            continue; /* below a wrapper: the wrapper's exit will tell */
        p->broken = 1;
        kill(-p->pid, SIGKILL);
    }
}

/* ---- signals ---- */

static void interrupt(struct launcher *l, int signal, uint64_t now)
{
    if (l->interrupted != 0 || l->ending) {
        if (l->interrupted == 0)
            l->interrupted = signal;
        kill_all(l, now);
        return;
    }
    const char *name = sigdescr_np(signal);
    l->interrupted = signal;
    say(l, "got signal %d (%s), passed on; ending the job", signal, name != NULL ? name : "unknown");
    signal_all(l, signal);
    signal_all(l, SIGCONT);
    l->kill_at = now + interrupt_ns;
}

static void hear_signals(struct launcher *l, uint64_t now)
{
    struct signalfd_siginfo s;
    while (read(l->signals, &s, sizeof s) == sizeof s) {
        switch (s.ssi_signo) {
        case SIGUSR1:
        case SIGUSR2:
            signal_all(l, (int)s.ssi_signo);
            break;
        case SIGTSTP: /* the shell wants all of us to stop, and then sees us stopped */
            signal_all(l, SIGTSTP);
            kill(getpid(), SIGSTOP);
            break;
        case SIGCONT:
            signal_all(l, SIGCONT);
            rnl_input_work(&l->input); /* perhaps to the foreground */
            break;
        default:
            interrupt(l, (int)s.ssi_signo, now);
        }
    }
}

/* ---- the loop ---- */

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_deadline(const struct launcher *l)
{
    uint64_t at = earliest(rnl_agent_deadline_ns(l->agent), l->abandon_at);
    at = earliest(at, earliest(l->timeout_at, l->kill_at));
    for (uint32_t i = 0; l->exited > 0 && i < l->job->size; i++) {
        const struct proc *p = &l->proc[i];
        if (p->exited && !p->finished)
            at = earliest(at, p->exited_ns + (p->swept ? killed_ns : linger_ns));
    }
    return at;
}

static void keep_time(struct launcher *l, uint64_t now)
{
    if (now >= rnl_agent_deadline_ns(l->agent))
        rnl_agent_step(l->agent, now);
    if (now >= l->timeout_at) {
        l->timeout_at = UINT64_MAX;
        if (!l->ending) {
            l->status = RNL_EXIT_TIMEOUT;
            l->failed = 1;
            say(l, "the job was not done after %s s (--timeout); ending it", l->job->timeout_text);
            end_job(l, now);
        }
    }
    if (now >= l->kill_at)
        kill_all(l, now);
    if (now >= l->abandon_at)
        l->gave_up = 1;
}

static void dispatch(struct launcher *l, const struct epoll_event *e, uint64_t now)
{
    uint32_t index = (uint32_t)e->data.u64;
    switch ((enum rnl_source)(e->data.u64 >> 32)) {
    case RNL_SOURCE_SIGNALS:
        hear_signals(l, now);
        break;
    case RNL_SOURCE_AGENT:
        rnl_agent_step(l->agent, now);
        break;
    case RNL_SOURCE_EXIT:
        hear_exit(l, index, now);
        break;
    case RNL_SOURCE_EXEC:
        hear_exec_failed(l, now);
        break;
    case RNL_SOURCE_STREAM:
        rnl_console_event(l->console, index);
        break;
    case RNL_SOURCE_SINK: /* the console's work follows in any case */
        break;
    case RNL_SOURCE_INPUT:
    case RNL_SOURCE_INPUT_ROOM:
        rnl_input_work(&l->input);
        break;
    }
}

static void turn(struct launcher *l, int wait)
{
    struct epoll_event events[128];
    int more = rnl_console_work(l->console);
    uint64_t now = now_ns();
    finish_exited(l, now);
    uint64_t at = next_deadline(l);
    int ms = 0;
    if (wait && !more && l->running + (uint32_t)rnl_console_waiting(l->console) > 0 && at > now)
        ms = at == UINT64_MAX ? -1 : at - now > 60 * SECOND_NS ? 60000 : (int)((at - now + 999999) / 1000000);
    int n = epoll_wait(l->epoll, events, 128, ms);
    now = now_ns();
    for (int i = 0; i < n; i++)
        dispatch(l, &events[i], now);
    hear_agent(l);
    keep_time(l, now);
}

/* ---- the start ---- */

/* 0, 1 and 2 must not become something else's numbers. */
static void open_standard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
    const char *outer = getenv("RUNNEL_FD"); /* a launcher that is itself a rank: that place is not its ranks' */
    if (outer != NULL && atoi(outer) > 2)
        fcntl(atoi(outer), F_SETFD, FD_CLOEXEC);
}

static int raise_descriptors(struct launcher *l, struct rlimit *before)
{
    struct rlimit limit;
    rlim_t need = DESCRIPTORS_OTHER + (rlim_t)l->job->size * DESCRIPTORS_PER_RANK;
    if (getrlimit(RLIMIT_NOFILE, before) < 0)
        return 0;
    limit = *before;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= need)
        return 0;
    say(l, "%u ranks need %llu descriptors, and the limit is %llu: raise it (ulimit -Hn), or start at most %llu ranks",
        l->job->size, (unsigned long long)need, (unsigned long long)limit.rlim_max,
        limit.rlim_max > DESCRIPTORS_OTHER
            ? (unsigned long long)(limit.rlim_max - DESCRIPTORS_OTHER) / DESCRIPTORS_PER_RANK
            : 0ull);
    return -1;
}

static void take_signals(struct launcher *l, struct rnl_spawn *how)
{
    static const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;
    sigemptyset(&set);
    for (unsigned i = 0; i < sizeof ours / sizeof ours[0]; i++)
        sigaddset(&set, ours[i]);
    sigset_t blocked = set;
    sigaddset(&blocked, SIGTTIN); /* a terminal that is read too late says so instead of stopping us */
    sigprocmask(SIG_BLOCK, &blocked, &how->mask);
    sigaction(SIGPIPE, &ignore, &how->on_pipe);
    l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int set_up(struct launcher *l, struct rnl_spawn *how, int *exec_failed)
{
    struct rnl_agent_options opt = {.size = l->job->size, .keep_going = l->job->keep_going};
    int ends[2];
    memcpy(opt.host, l->host, sizeof opt.host);
    if (getrandom(opt.key, sizeof opt.key, 0) != (ssize_t)sizeof opt.key) {
        say(l, "the system gave no random key for the job: %s", strerror(errno));
        return -1;
    }
    int r = rnl_agent_new(&opt, &l->agent);
    explicit_bzero(&opt, sizeof opt);
    if (r < 0) {
        say(l, "%s", rnl_last_error()->text);
        return -1;
    }
    take_signals(l, how);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0 || l->signals < 0 || pipe2(ends, O_CLOEXEC) < 0)
        goto system;
    l->exec_failed = ends[0];
    *exec_failed = ends[1];
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ||
        rnl_source_add(l->epoll, l->signals, RNL_SOURCE_SIGNALS, 0, EPOLLIN) < 0 ||
        rnl_source_add(l->epoll, ends[0], RNL_SOURCE_EXEC, 0, EPOLLIN) < 0 ||
        rnl_source_add(l->epoll, rnl_agent_fd(l->agent), RNL_SOURCE_AGENT, 0, EPOLLIN) < 0)
        goto system;
    r = rnl_console_new(l->epoll, l->job->size, l->job->tag, &l->console);
    if (r == 0)
        r = rnl_input_new(&l->input, l->epoll, &how->in);
    if (r == 0)
        return 0;
    errno = -r;
system:
    say(l, "cannot set up the job: %s", strerror(errno));
    return -1;
}

static int start_rank(struct launcher *l, struct rnl_spawn *how, uint32_t rank)
{
    struct proc *p = &l->proc[rank];
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    how->door = -1;
    int e = rnl_agent_door(l->agent, rank, &how->door) < 0 ? -EMFILE : 0;
    if (e == 0 && (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0))
        e = -errno;
    how->out = out[1];
    how->err = err[1];
    how->cpu = p->cpu;
    if (e == 0)
        e = rnl_spawn(how, rank, &p->pid);
    if (e == 0) {
        p->started = 1;
        l->running++;
        rnl_agent_started(l->agent, rank, p->pid);
        p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
        e = p->pidfd < 0 ? -errno : rnl_source_add(l->epoll, p->pidfd, RNL_SOURCE_EXIT, rank, EPOLLIN);
        if (e < 0) { /* its end would not be noticed */
            kill(p->pid, SIGKILL);
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
    if (e < 0)
        say(l, "cannot start rank %u of %u: %s; start fewer ranks, or raise the limits (ulimit -n, ulimit -u)", rank,
            l->job->size, strerror(-e));
    return e;
}

static int place_ranks(struct launcher *l)
{
    int cpus[RNL_JOB_RANKS_MAX], n = 0;
    if (l->job->bind_core && (n = rnl_bind_cores(cpus, RNL_JOB_RANKS_MAX)) < 0) {
        say(l, "cannot learn which cores there are: %s; leave out --bind core", strerror(-n));
        return -1;
    }
    for (uint32_t i = 0; i < l->job->size; i++) {
        l->proc[i].cpu = n > 0 ? cpus[i % (uint32_t)n] : -1;
        l->proc[i].pidfd = -1;
    }
    return 0;
}

/* Negative: the job cannot be; what was started of it is being killed. */
static int start(struct launcher *l, struct rnl_spawn *how)
{
    int first_in = how->in, null = open("/dev/null", O_RDONLY | O_CLOEXEC), e = null < 0 ? -1 : 0;
    if (e < 0)
        say(l, "cannot open /dev/null: %s", strerror(errno));
    for (uint32_t i = 0; e == 0 && i < l->job->size && !l->ending; i++) {
        how->in = i == 0 ? first_in : null;
        e = start_rank(l, how, i);
        if (i % TURN_EVERY == TURN_EVERY - 1)
            turn(l, 0);
    }
    close(how->failed);
    if (first_in != STDIN_FILENO)
        close(first_in);
    if (null >= 0)
        close(null);
    if (e < 0) {
        l->quiet = l->ending = l->failed = 1;
        l->status = RNL_EXIT_SYSTEM;
        kill_all(l, now_ns());
    }
    return e;
}

static void tear_down(struct launcher *l)
{
    rnl_input_end(&l->input);
    rnl_console_free(l->console);
    rnl_agent_free(l->agent);
    if (l->exec_failed >= 0)
        close(l->exec_failed);
    if (l->signals >= 0)
        close(l->signals);
    if (l->epoll >= 0)
        close(l->epoll);
    free(l);
}

int rnl_launch(const struct rnl_launch *job)
{
    char sentence[512], *path = NULL;
    struct rnl_spawn how = {.argv = job->argv, .in = STDIN_FILENO};
    struct launcher *l = calloc(1, sizeof *l + job->size * sizeof l->proc[0]);
    open_standard();
    if (l == NULL) {
        fprintf(stderr, "runnel: no memory for a job of %u ranks\n", job->size);
        return RNL_EXIT_SYSTEM;
    }
    l->job = job;
    l->epoll = l->signals = l->exec_failed = l->input.pipe = -1;
    l->timeout_at = l->kill_at = l->abandon_at = UINT64_MAX;
    l->status = rnl_spawn_find(job->argv[0], &path, sentence, sizeof sentence);
    if (l->status != 0)
        say(l, "%s", sentence);
    if (gethostname(l->host, sizeof l->host - 1) < 0)
        memcpy(l->host, "localhost", sizeof "localhost");
    how.path = path;
    if (l->status == 0 && (path == NULL || place_ranks(l) < 0 || raise_descriptors(l, &how.descriptors) < 0 ||
                           set_up(l, &how, &how.failed) < 0))
        l->status = RNL_EXIT_SYSTEM;
    if (l->status == 0) {
        if (job->timeout_ns != 0)
            l->timeout_at = now_ns() + job->timeout_ns;
        start(l, &how);
        while ((l->running > 0 || rnl_console_waiting(l->console)) && !l->gave_up)
            turn(l, 1);
        if (l->gave_up)
            signal_all(l, SIGKILL);
        if (rnl_console_error(l->console) != 0) {
            fprintf(stderr, "runnel: cannot write the ranks' output: %s\n", strerror(rnl_console_error(l->console)));
            if (l->status == 0)
                l->status = RNL_EXIT_OUTPUT;
        }
    }
    int status = l->status;
    free(path);
    tear_down(l);
    return status;
}
