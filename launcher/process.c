/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.c - the ranks of this host: starts their processes, watches them, and finishes them when they have exited. */
#include "launcher/node_agent_internal.h"

#include "base/bug.h"
#include "base/env.h"
#include "job/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STARTS_PER_TURN = 16, /* then the loop looks after those that run */
    LOOK_MS = 3000        /* for ranks that are stopped */
};
#define SECOND_NS UINT64_C(1000000000)
static const uint64_t linger_ns = SECOND_NS;             /* for what an exited rank left running with its output open */
static const uint64_t killed_ns = SECOND_NS / 5;         /* the same, once that is killed */
static const uint64_t stopped_report_ns = 5 * SECOND_NS; /* a rank is stopped for so long before that is said */

static bool is_expected(const struct rnl_node_agent *n)
{
    return rnl_node_agent_is(n, RNL_JOB_EXPECTED);
}

/* ---- preparing ---- */

static bool raise_descriptors(struct rnl_node_agent *n)
{
    struct rlimit limit;
    const rlim_t need = RNL_LAUNCH_DESCRIPTORS + (rlim_t)n->count * RNL_RANK_DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return true;
    n->how.descriptors = limit;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max >= need)
        return true;
    const unsigned long long most =
        limit.rlim_max > RNL_LAUNCH_DESCRIPTORS ? (limit.rlim_max - RNL_LAUNCH_DESCRIPTORS) / RNL_RANK_DESCRIPTORS : 0;
    char fewer[64] = ""; /* with too few for one rank there is only one remedy */
    if (most > 0)
        snprintf(fewer, sizeof fewer, ", or start at most %llu rank%s", most, RNL_S(most));
    rnl_node_agent_fail(n, RNL_EXIT_SYSTEM,
                        "%u rank%s need%s %llu descriptors, and the limit is %llu: raise it (ulimit -Hn)%s", n->count,
                        RNL_S(n->count), n->count == 1 ? "s" : "", (unsigned long long)need,
                        (unsigned long long)limit.rlim_max, fewer);
    return false;
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

static bool place_ranks(struct rnl_node_agent *n)
{
    int cpus[RNL_JOB_RANKS_MAX], cores = 0;
    if (rnl_node_agent_is(n, RNL_JOB_BIND) && (cores = rnl_bind_cores(cpus, RNL_JOB_RANKS_MAX)) < 0) {
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "cannot learn which cores there are: %s; leave out --bind core",
                            strerror(-cores));
        return false;
    }
    for (uint32_t i = n->first; i < n->first + n->count; i++) {
        const uint32_t k = rnl_node_agent_is(n, RNL_JOB_ONE_MACHINE) ? i : i - n->first;
        n->slot[i].cpu = cores > 0 ? cpus[k % (uint32_t)cores] : -1;
        n->slot[i].pidfd = n->slot[i].lifeline = -1;
    }
    return true;
}

static void on_exec_failed(uv_poll_t *handle, int status, int events);

/* The pipe that says which ranks could not be started. */
static int open_exec_pipe(struct rnl_node_agent *n)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    n->exec_failed = ends[0];
    n->how.failed = ends[1];
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return rnl_watch(n->loop, &n->exec_events, ends[0], on_exec_failed, n);
}

void rnl_processes_prepare(struct rnl_node_agent *n)
{
    n->how.path = n->path;
    n->how.argv = n->spec.argv;
    n->how.size = n->spec.size;
    n->slot = calloc(n->spec.size, sizeof *n->slot);
    if (!n->slot)
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "no memory for a job of %u ranks", n->spec.size);
    if (!n->slot || !place_ranks(n) || !raise_descriptors(n))
        return;
    int e = rnl_guard_start(&n->guard, NULL);
    if (e < 0) {
        rnl_node_agent_fail(
            n, RNL_EXIT_SYSTEM,
            "cannot start the process that guards the job: %s; raise the limit of processes (ulimit -u)", strerror(-e));
        return;
    }
    n->null = open_empty();
    e = n->null < 0 ? -errno : open_exec_pipe(n);
    if (e < 0)
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "cannot make the pipes of the job: %s; %s", strerror(-e),
                            rnl_memfd_remedy(-e));
}

/* ---- starting ---- */

static void look(uv_timer_t *timer);

static void report_exec_failed(struct rnl_node_agent *n, const struct rnl_spawn_failed *f)
{
    const char *program = n->spec.argv[0], *why = strerror(f->sys_errno);
    if (f->stage == RNL_SPAWN_BIND)
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "cannot bind rank %u to a core: %s; leave out --bind core", f->rank,
                            why);
    else if (f->stage == RNL_SPAWN_PREPARE || f->sys_errno == ENOMEM || f->sys_errno == EAGAIN)
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM,
                            "cannot start '%s' as rank %u: %s; start fewer ranks, or raise the limits (ulimit -a)",
                            program, f->rank, why);
    else if (f->sys_errno == ENOENT)
        rnl_node_agent_fail(n, RNL_EXIT_NOT_FOUND,
                            "cannot start '%s': the interpreter that it names does not exist; correct its first line",
                            program);
    else
        rnl_node_agent_fail(n, RNL_EXIT_NOT_EXECUTABLE,
                            "cannot start '%s': %s; check that it is a program for this machine", program, why);
}

/* Whoever fails to start also exits with 127: the pipe is read before that is reported. */
static void receive_exec_failed(struct rnl_node_agent *n)
{
    struct rnl_spawn_failed f;
    const ssize_t bytes = n->exec_failed < 0 ? -1 : read(n->exec_failed, &f, sizeof f);
    if (bytes == sizeof f)
        report_exec_failed(n, &f);
    if (bytes == 0) { /* all ranks run their programs */
        uv_close((uv_handle_t *)&n->exec_events, NULL);
        close(n->exec_failed);
        n->exec_failed = -1;
    }
}

static void on_exec_failed(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    receive_exec_failed(handle->data);
}

static void on_exit_event(uv_poll_t *handle, int status, int events);

static int serve(struct rnl_node_agent *n, uint32_t rank)
{
    struct rnl_slot *s = &n->slot[rank];
    n->how.cpu = s->cpu;
    const int e = is_expected(n) ? rnl_expected_take(n, rank) : rnl_spawn(&n->how, rank, &s->pid);
    if (e < 0)
        return e;
    n->guard.groups[rank] = is_expected(n) ? 0 : s->pid;
    rnl_agent_started(n->agent, rank, s->pid);
    s->started = true;
    s->pidfd = s->pid > 0 ? (int)syscall(SYS_pidfd_open, s->pid, 0) : -1;
    if (s->pidfd < 0 && s->lifeline < 0)
        return -errno;
    return rnl_watch(n->loop, &s->exit, s->pidfd >= 0 ? s->pidfd : s->lifeline, on_exit_event, n);
}

static int start_rank(struct rnl_node_agent *n, uint32_t rank)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    const bool routed = !is_expected(n) || rnl_expected_routes(n, rank);
    n->how.bootstrap = n->how.pmi = -1;
    int e = rnl_agent_bootstrap(n->agent, rank, &n->how.bootstrap) < 0 ? -rnl_last_error()->sys_errno : 0;
    for (int i = 0; i < 2 && e == 0 && routed; i++)
        e = pipe2(pipes[i], O_CLOEXEC) < 0 ? -errno : rnl_output_add(n, rank, i + 1, pipes[i][0]);
    if (e == 0 && n->mpi)
        e = rnl_mpi_add(n, rank);
    n->how.out = pipes[0][1];
    n->how.err = pipes[1][1];
    if (e == 0)
        e = serve(n, rank);
    const int ours[] = {pipes[0][1], pipes[1][1], n->how.bootstrap, n->how.pmi};
    for (int i = 0; i < 4; i++)
        if (ours[i] >= 0)
            close(ours[i]);
    if (e < 0)
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "cannot start rank %u of %u: %s; %s", rank, n->spec.size, strerror(-e),
                            e == -ENOSYS ? "this needs Linux 5.3 or newer, and no filter that forbids pidfd_open"
                                         : "start fewer ranks, or raise the limits (ulimit -n, ulimit -u)");
    return e;
}

static void end_start(struct rnl_node_agent *n)
{
    n->starting = false;
    close(n->how.failed);
    n->how.failed = -1;
    if (n->how.in != STDIN_FILENO)
        close(n->how.in);
}

void rnl_processes_start(struct rnl_node_agent *n)
{
    uint64_t look_ms = n->spec.stopped_after_ns / 4000000;
    look_ms = look_ms > LOOK_MS ? LOOK_MS : look_ms < 50 ? 50 : look_ms;
    rnl_timer_start(&n->look, look, look_ms, look_ms);
    n->starting = true;
    n->next_start = n->first;
}

static void start_more(struct rnl_node_agent *n)
{
    const uint32_t end = n->first + n->count;
    const int first_in = n->how.in;
    for (unsigned k = 0; n->starting && k < STARTS_PER_TURN && n->next_start < end && !n->ending; k++) {
        n->how.in = n->next_start == 0 ? first_in : n->null;
        (void)start_rank(n, n->next_start++); /* a failure has ended the job */
        n->how.in = first_in;
    }
    if (n->starting && (n->next_start == end || n->ending))
        end_start(n);
}

/* ---- exits and ends ---- */

static void slot_ended(struct rnl_node_agent *n, uint32_t rank)
{
    struct rnl_slot *s = &n->slot[rank];
    s->exited = true;
    s->exited_ns = rnl_now_ns();
    rnl_agent_exited(n->agent, rank, s->signal, s->status, s->exited_ns); /* first of all: peers wait for the news */
    rnl_node_cards_end(n, rank);
    receive_exec_failed(n);
    struct rnl_rank_exit x = {.rank = rank,
                              .signal = (uint32_t)s->signal,
                              .status = (uint32_t)s->status,
                              .flags = (s->broken ? RNL_EXIT_BROKEN : 0u) | (s->vanished ? RNL_EXIT_VANISHED : 0u) |
                                       (s->unserved ? RNL_EXIT_UNSERVED : 0u)};
    (void)rnl_agent_overran(n->agent, rank, &x.handler, &x.stack_bytes);
    rnl_control_send(&n->control, RNL_CONTROL_EXITED, &x, sizeof x);
    if ((s->signal != 0 || s->status != 0) && !rnl_node_agent_is(n, RNL_JOB_KEEP_GOING) && !n->terminated) {
        rnl_processes_signal(n, SIGTERM); /* the launcher will decide so, but a message later */
        rnl_processes_signal(n, SIGCONT);
    }
}

static void on_exit_event(uv_poll_t *handle, int status, int events)
{
    struct rnl_node_agent *n = handle->data;
    struct rnl_slot *s = (struct rnl_slot *)((char *)handle - offsetof(struct rnl_slot, exit));
    const uint32_t rank = (uint32_t)(s - n->slot);
    siginfo_t info = {.si_pid = 0};
    (void)status;
    (void)events;
    if (s->exited || (s->lifeline >= 0 && !rnl_expected_ended(n, s)) ||
        (!is_expected(n) && (waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOWAIT | WNOHANG) < 0 || info.si_pid == 0)))
        return;
    uv_close((uv_handle_t *)&s->exit, NULL);
    if (s->pidfd >= 0)
        close(s->pidfd);
    s->pidfd = -1;
    if (info.si_pid > 0 && info.si_code == CLD_EXITED)
        s->status = info.si_status;
    else if (info.si_pid > 0)
        s->signal = info.si_status;
    if (s->aborted != 0 && s->signal == SIGKILL) {
        s->status = s->aborted;
        s->signal = 0;
    }
    slot_ended(n, rank);
}

static void slot_kill(const struct rnl_slot *s, int signal)
{
    if (s->lifeline < 0 && s->pid > 0 && s->started)
        kill(-s->pid, signal);
    else if (s->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, s->pidfd, signal, NULL, 0);
}

void rnl_process_abort(struct rnl_node_agent *n, uint32_t rank, int status)
{
    struct rnl_slot *s = &n->slot[rank];
    if (!s->started || s->exited)
        return;
    s->aborted = status;
    slot_kill(s, SIGKILL);
}

/* Kills what a rank has left in its process group. */
static void kill_group(const struct rnl_node_agent *n, const struct rnl_slot *s)
{
    if (!is_expected(n) && s->pid > 0)
        kill(-s->pid, SIGKILL);
}

static void finish(struct rnl_node_agent *n, uint32_t rank)
{
    struct rnl_slot *s = &n->slot[rank];
    kill_group(n, s);
    rnl_output_end(n, rank);
    rnl_mpi_end(n, rank);
    if (rank == 0)
        rnl_rank_input_end(n);
    if (!is_expected(n) && s->pid > 0) {
        n->guard.groups[rank] = 0;
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    s->finished = true;
    n->finished++;
    rnl_control_send(&n->control, RNL_CONTROL_FINISHED, &rank, sizeof rank);
}

/* Ranks that exited are finished once their output has ended. What they left running gets a while to end it. */
static void finish_exited(struct rnl_node_agent *n)
{
    const uint64_t now = rnl_now_ns();
    uint64_t at = UINT64_MAX;
    for (uint32_t i = n->first; i < n->first + n->count; i++) {
        struct rnl_slot *s = &n->slot[i];
        bool unread;
        if (!s->exited || s->finished)
            continue;
        const bool open = rnl_output_open(n, i, &unread) > 0;
        if (open && !s->swept && (now >= s->exited_ns + linger_ns || n->ending)) {
            kill_group(n, s);
            s->swept = true;
            s->exited_ns = now;
        }
        const uint64_t due = s->exited_ns + (s->swept ? killed_ns : linger_ns);
        if (!open || (s->swept && !unread && now >= due))
            finish(n, i); /* or what holds its output has left the group */
        else if (due > now && due < at)
            at = due;
    }
    rnl_timer_at(&n->sweep, rnl_timer_wake, at);
}

void rnl_processes_signal(struct rnl_node_agent *n, int signal)
{
    const bool ends =
        signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT || signal == SIGKILL;
    if (signal == SIGTSTP || signal == SIGCONT)
        n->suspended = signal == SIGTSTP;
    if (signal == SIGTERM && n->terminated)
        return; /* they have had it, and may be handling it */
    n->terminated |= signal == SIGTERM;
    n->ending |= signal == SIGKILL; /* what they leave behind is not waited for */
    n->quiet |= ends;
    for (uint32_t i = n->first; n->slot && i < n->first + n->count; i++)
        if (n->slot[i].started && !n->slot[i].finished)
            slot_kill(&n->slot[i], signal);
    for (; n->starting && ends && n->next_start < n->first + n->count;
         n->next_start++) { /* it ends those to come, too */
        n->slot[n->next_start].signal = signal;
        slot_ended(n, n->next_start);
    }
}

/* What was killed is reaped, since nobody may be there who would: within half a second, or never. */
void rnl_processes_end(struct rnl_node_agent *n)
{
    uint32_t left = n->slot ? n->count : 0;
    if (!is_expected(n)) /* else they live on */
        rnl_processes_signal(n, SIGKILL);
    rnl_guard_end(&n->guard);
    for (unsigned tries = 0; left > 0 && tries < 100 && !is_expected(n); tries++) {
        left = 0;
        for (uint32_t i = n->first; i < n->first + n->count; i++) {
            struct rnl_slot *s = &n->slot[i];
            if (!s->started || s->finished)
                continue;
            s->finished = waitpid(s->pid, NULL, WNOHANG) != 0;
            left += !s->finished;
        }
        if (left > 0)
            usleep(5000);
    }
    const int own[] = {n->exec_failed, n->how.failed, n->null};
    for (int i = 0; i < 3; i++)
        if (own[i] >= 0)
            close(own[i]);
}

/* ---- what the agent of the membership found ---- */

static void receive_agent(struct rnl_node_agent *n)
{
    struct rnl_agent_death d;
    while (n->agent && rnl_agent_next_death(n->agent, &d)) {
        struct rnl_slot *s = &n->slot[d.rank];
        if (d.why == RNL_DEATH_LEFT && !n->quiet)
            rnl_node_agent_report(
                n,
                "rank %u on %s replaced its program (exec), or closed its connection to the launcher, "
                "without closing its endpoint first; it is dead for the others",
                d.rank, n->host);
        if (d.why != RNL_DEATH_BROKEN || s->pid <= 0 || !s->started || s->finished)
            continue; /* its process, or the wrapper's, will show how it ends */
        s->broken = true;
        if (d.sys_errno != 0 && !n->quiet) {
            rnl_node_agent_report(
                n, "cannot go on with rank %u on %s: %s; give the launcher more memory, or start fewer ranks", d.rank,
                n->host, strerror(d.sys_errno));
            s->unserved = true;
        }
        slot_kill(s, SIGKILL);
    }
}

static void report_stopped(struct rnl_node_agent *n, uint32_t rank, uint64_t for_ns)
{
    char since[32];
    struct tm tm;
    const time_t at = time(NULL) - (time_t)(for_ns / SECOND_NS);
    localtime_r(&at, &tm);
    strftime(since, sizeof since, "%H:%M:%S", &tm);
    rnl_node_agent_report(
        n,
        "rank %u on %s has been stopped (SIGSTOP, or a debugger) since %s: the job waits for it; SIGCONT "
        "lets it go on",
        rank, n->host, since);
}

static void end_stopped(struct rnl_node_agent *n, uint32_t rank)
{
    rnl_node_agent_report(n, "rank %u on %s has been stopped for too long (--stopped-after); killing it", rank,
                          n->host);
    slot_kill(&n->slot[rank], SIGKILL);
}

/* A stopped rank holds up its peers, and the close of the job, for as long as it is stopped. */
static void look(uv_timer_t *timer)
{
    struct rnl_node_agent *n = timer->data;
    const uint64_t now = rnl_now_ns();
    for (uint32_t i = n->first; n->agent && !n->suspended && i < n->first + n->count; i++) {
        struct rnl_slot *s = &n->slot[i];
        uint64_t since_ns;
        if (!s->started || s->exited || rnl_agent_runs(n->agent, i, now) || !rnl_agent_stopped(n->agent, i, &since_ns))
            continue;
        if (now - since_ns >= n->spec.stopped_after_ns && !RNL_BUG(stopped_ranks_live)) {
            end_stopped(n, i);
        } else if (now - since_ns >= stopped_report_ns && s->stopped_reported_ns != since_ns && !n->quiet) {
            report_stopped(n, i, now - since_ns);
            s->stopped_reported_ns = since_ns;
        }
    }
}

void rnl_processes_work(struct rnl_node_agent *n)
{
    start_more(n);
    if (n->agent)
        receive_agent(n);
    if (n->slot)
        finish_exited(n);
}
