/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launch.c - the launcher's loop. One thread, one epoll, nothing blocks, nothing polls in vain.
 *
 * A rank's life: started; exited (its process can be waited for: peers are told at once); finished (its output has been
 * read to the end, what it left behind in its process group is killed, it is reaped). Its process group is its own
 * until it is reaped, so a signal to the group cannot hit a stranger. */
#include "job/back.h"
#include "job/launch_in.h"

#include "base/env.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
static const uint64_t term_ns = 2 * SECOND_NS;      /* from SIGTERM to SIGKILL */
static const uint64_t interrupt_ns = 5 * SECOND_NS; /* from a signal passed on to SIGKILL */
static const uint64_t abandon_ns =
    SECOND_NS; /* from SIGKILL to the end of an interrupted job, whatever is still unwritten */
static const uint64_t vouch_ns = 7 * SECOND_NS;  /* much less than the silence after which a rank is dead */
static const uint64_t linger_ns = SECOND_NS;     /* for what an exited rank left running with its output open */
static const uint64_t killed_ns = SECOND_NS / 5; /* the same, once that is killed */

static uint64_t now_ns(void)
{
    return rnl_host_now_ns(NULL);
}

int rnl_source_add(int epoll, int fd, enum rnl_source source, uint32_t index, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u64 = (uint64_t)source << 32 | index};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void rnl_launch_say(struct rnl_launcher *l, const char *format, ...)
{
    char line[512];
    va_list args;
    size_t n = (size_t)snprintf(line, sizeof line, "runnel: ");
    va_start(args, format);
    vsnprintf(line + n, sizeof line - n, format, args);
    va_end(args);
    if (l->site != NULL)
        rnl_site_say(l, line + n);
    else if (l->console != NULL)
        rnl_console_say(l->console, line);
    else
        fprintf(stderr, "%s\n", line);
}

/* ---- ends ---- */

void rnl_launch_signal(struct rnl_launcher *l, int signal)
{
    for (uint32_t i = l->first; i < l->first + l->count; i++)
        if (l->proc[i].started && !l->proc[i].finished)
            kill(-l->proc[i].pid, signal);
    if (l->head != NULL)
        rnl_head_signal(l, signal);
}

void rnl_launch_kill_all(struct rnl_launcher *l, uint64_t now)
{
    rnl_launch_signal(l, SIGKILL);
    l->kill_at = UINT64_MAX;
    if (l->interrupted != 0 || l->status == RNL_EXIT_TIMEOUT)
        l->abandon_at = now + abandon_ns;
}

void rnl_launch_end_job(struct rnl_launcher *l, uint64_t now)
{
    if (l->ending)
        return;
    l->ending = 1;
    if (l->interrupted != SIGTERM) /* else they have had it, and may be handling it */
        rnl_launch_signal(l, SIGTERM);
    rnl_launch_signal(l, SIGCONT);
    if (now + term_ns < l->kill_at)
        l->kill_at = now + term_ns;
}

/* The first failure decides; what the end of the job does to the others is none. */
static void judge(struct rnl_launcher *l, uint32_t rank, uint64_t now)
{
    struct rnl_proc *p = &l->proc[rank];
    if (l->site != NULL || (p->signal == 0 && p->status == 0)) /* an agent judges nobody */
        return;
    if (!l->failed && !l->ending)
        l->status = p->signal == 0 ? p->status : RNL_EXIT_SIGNAL + (l->interrupted != 0 ? l->interrupted : p->signal);
    if (!l->ending && !l->quiet && l->interrupted == 0 && !p->unserved)
        p->report = 1;
    l->failed = 1;
    if (!l->job->keep_going)
        rnl_launch_end_job(l, now);
}

/* One line, behind all that the rank wrote. */
static void report(struct rnl_launcher *l, uint32_t rank)
{
    const struct rnl_proc *p = &l->proc[rank];
    const char *then = l->job->keep_going ? "the others go on" : "ending the job";
    const char *host = l->head != NULL ? rnl_head_host(l, rank) : l->host;
    if (p->broken && p->signal == SIGKILL) {
        rnl_launch_say(l, "rank %u on %s wrote garbage into its connection to the launcher; %s", rank, host, then);
    } else if (p->signal != 0) {
        const char *name = sigdescr_np(p->signal);
        rnl_launch_say(l, "rank %u on %s was killed by signal %d (%s); %s", rank, host, p->signal,
                       name != NULL ? name : "unknown", then);
    } else if (p->status == RNL_EXIT_NOT_FOUND) { /* it was found: that failure is reported elsewhere */
        rnl_launch_say(
            l,
            "rank %u on %s exited with status %d, as a program does that lacks a shared library, or a script "
            "that lacks a command; %s",
            rank, l->host, p->status, then);
    } else {
        rnl_launch_say(l, "rank %u on %s exited with status %d; %s", rank, host, p->status, then);
    }
}

static void hear_exec_failed(struct rnl_launcher *l, uint64_t now)
{
    struct rnl_spawn_failed f;
    if (l->exec_failed < 0)
        return;
    ssize_t n = read(l->exec_failed, &f, sizeof f);
    if (n < 0 && errno != EAGAIN && errno != EINTR) { /* whoever failed also exits with 127 */
        rnl_launch_say(l, "cannot learn whether '%s' has started: %s", l->job->argv[0], strerror(errno));
        n = 0;
    }
    if (n < 0)
        return;
    if (n == sizeof f && !l->quiet) {
        if (f.stage == RNL_SPAWN_BIND)
            rnl_launch_say(l, "cannot bind rank %u to a core: %s; leave out --bind core", f.rank,
                           strerror(f.sys_errno));
        else if (f.stage == RNL_SPAWN_PREPARE || f.sys_errno == ENOMEM || f.sys_errno == EAGAIN)
            rnl_launch_say(l, "cannot start '%s' as rank %u: %s; start fewer ranks, or raise the limits (ulimit -a)",
                           l->job->argv[0], f.rank, strerror(f.sys_errno));
        else if (f.sys_errno == ENOENT)
            rnl_launch_say(l, "cannot start '%s': the interpreter that it names does not exist; correct its first line",
                           l->job->argv[0]);
        else
            rnl_launch_say(l, "cannot start '%s': %s; check that it is a program for this machine", l->job->argv[0],
                           strerror(f.sys_errno));
        l->status = f.stage != RNL_SPAWN_EXECUTE ? RNL_EXIT_SYSTEM
                    : f.sys_errno == ENOENT      ? RNL_EXIT_NOT_FOUND
                                                 : RNL_EXIT_NOT_EXECUTABLE;
        l->quiet = l->ending = l->failed = 1; /* once, not for every rank */
        rnl_launch_kill_all(l, now);
        if (l->site != NULL)
            rnl_site_fail(l->site, l->status);
    }
    if (n == 0 || l->quiet) { /* everybody is on its way */
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->exec_failed, NULL);
        close(l->exec_failed);
        l->exec_failed = -1;
    }
}

static void hear_exit(struct rnl_launcher *l, uint32_t rank, uint64_t now)
{
    struct rnl_proc *p = &l->proc[rank];
    siginfo_t info = {.si_pid = 0};
    /* finish() reaps it: until then nobody else's process group can have its number. */
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
    if (l->site != NULL)
        rnl_site_exited(l, rank);
    judge(l, rank, now);
}

void rnl_launch_exited(struct rnl_launcher *l, uint32_t rank, int signal, int status, unsigned flags, uint64_t now)
{
    struct rnl_proc *p = &l->proc[rank];
    if (p->exited || !p->started)
        return;
    p->exited = 1;
    p->signal = signal;
    p->status = status;
    p->broken = (flags & RNL_EXIT_BROKEN) != 0;
    p->unserved = (flags & (RNL_EXIT_UNSERVED | RNL_EXIT_LOST)) != 0;
    if (p->unserved && !l->failed && !l->ending) {
        l->status = RNL_EXIT_SYSTEM;
        l->failed = 1;
    }
    judge(l, rank, now);
}

void rnl_launch_finished(struct rnl_launcher *l, uint32_t rank)
{
    struct rnl_proc *p = &l->proc[rank];
    if (!p->exited || p->finished)
        return;
    p->finished = 1;
    l->running--;
    if (p->report)
        report(l, rank);
}

static void finish(struct rnl_launcher *l, uint32_t rank)
{
    struct rnl_proc *p = &l->proc[rank];
    kill(-p->pid, SIGKILL);
    rnl_console_end(l->console, rank);
    if (rank == 0)
        rnl_input_end(&l->input);
    rnl_guard_remove(&l->guard, p->pid);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    p->finished = 1;
    l->running--;
    l->exited--;
    if (p->report)
        report(l, rank);
}

/* Ranks that exited: finished once their output has ended. What they left running gets a while to end it. */
static void finish_exited(struct rnl_launcher *l, uint64_t now)
{
    for (uint32_t i = l->first; l->exited > 0 && i < l->first + l->count; i++) {
        struct rnl_proc *p = &l->proc[i];
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

static void hear_agent(struct rnl_launcher *l)
{
    struct rnl_agent_death d;
    while (l->agent != NULL && rnl_agent_next_death(l->agent, &d)) {
        struct rnl_proc *p = &l->proc[d.rank];
        if (d.why == RNL_DEATH_LEFT && !l->ending && !l->quiet)
            rnl_launch_say(
                l,
                "rank %u on %s replaced its program (exec), or closed its connection to the launcher, without "
                "rnl_close or FM_finalize; it is dead for the others",
                d.rank, l->host);
        if (d.why != RNL_DEATH_BROKEN || !p->started || p->finished)
            continue; /* its process, or the wrapper's, will tell how it ends */
        p->broken = 1;
        if (d.sys_errno != 0 && !l->ending && !l->quiet) {
            rnl_launch_say(l,
                           "cannot go on with rank %u on %s: %s; give the launcher more memory, or start fewer ranks",
                           d.rank, l->host, strerror(d.sys_errno));
            p->unserved = 1;
            if (!l->failed)
                l->status = RNL_EXIT_SYSTEM;
            l->failed = 1;
        }
        kill(-p->pid, SIGKILL);
    }
}

/* ---- signals ---- */

static void interrupt(struct rnl_launcher *l, int signal, uint64_t now)
{
    if (l->interrupted != 0 || l->ending) {
        if (l->interrupted == 0)
            l->interrupted = signal;
        rnl_launch_kill_all(l, now);
        return;
    }
    const char *name = sigdescr_np(signal);
    l->interrupted = signal;
    rnl_launch_say(l, "got signal %d (%s), passed on; ending the job", signal, name != NULL ? name : "unknown");
    rnl_launch_signal(l, signal);
    rnl_launch_signal(l, SIGCONT);
    l->kill_at = now + interrupt_ns;
}

static void hear_signals(struct rnl_launcher *l, uint64_t now)
{
    struct signalfd_siginfo s;
    while (read(l->signals, &s, sizeof s) == sizeof s) {
        switch (s.ssi_signo) {
        case SIGUSR1:
        case SIGUSR2:
            rnl_launch_signal(l, (int)s.ssi_signo);
            break;
        case SIGTSTP: /* the shell wants all of us to stop, and then sees us stopped */
            rnl_launch_signal(l, SIGTSTP);
            kill(getpid(), SIGSTOP);
            break;
        case SIGCONT:
            rnl_launch_signal(l, SIGCONT);
            rnl_input_work(&l->input, now); /* perhaps to the foreground */
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

static uint64_t next_deadline(const struct rnl_launcher *l)
{
    uint64_t at = l->abandon_at;
    if (l->agent != NULL)
        at = earliest(at, rnl_agent_deadline_ns(l->agent));
    if (l->head != NULL)
        at = earliest(at, rnl_head_deadline_ns(l));
    if (l->site != NULL)
        at = earliest(at, rnl_site_deadline_ns(l));
    if (l->back != NULL)
        at = earliest(at, rnl_back_deadline_ns(l->back));
    at = earliest(at, l->vouch_at);
    at = earliest(at, earliest(l->timeout_at, earliest(l->kill_at, l->input.again_ns)));
    for (uint32_t i = l->first; l->exited > 0 && i < l->first + l->count; i++) {
        const struct rnl_proc *p = &l->proc[i];
        if (p->exited && !p->finished)
            at = earliest(at, p->exited_ns + (p->swept ? killed_ns : linger_ns));
    }
    return at;
}

/* Ranks that exchange datagrams on this host: who only computes is not to be taken for dead. */
static void vouch(struct rnl_launcher *l, uint64_t now)
{
    l->vouch_at = now + vouch_ns;
    for (uint32_t i = l->first; l->site == NULL && l->agent != NULL && i < l->first + l->count; i++)
        if (rnl_agent_runs(l->agent, i, now))
            rnl_agent_vouch(l->agent, i, now);
}

static void keep_time(struct rnl_launcher *l, uint64_t now)
{
    if (l->agent != NULL && now >= rnl_agent_deadline_ns(l->agent))
        rnl_agent_step(l->agent, now);
    if (now >= l->vouch_at)
        vouch(l, now);
    if (now >= l->input.again_ns)
        rnl_input_work(&l->input, now);
    if (now >= l->timeout_at) {
        l->timeout_at = UINT64_MAX;
        if (!l->ending) {
            l->status = RNL_EXIT_TIMEOUT;
            l->failed = 1;
            rnl_launch_say(l, "the job was not done after %s s (--timeout); ending it", l->job->timeout_text);
            rnl_launch_end_job(l, now);
        }
    }
    if (now >= l->kill_at)
        rnl_launch_kill_all(l, now);
    if (now >= l->abandon_at)
        l->gave_up = 1;
}

static void dispatch(struct rnl_launcher *l, const struct epoll_event *e, uint64_t now)
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
        rnl_input_work(&l->input, now);
        break;
    case RNL_SOURCE_TRUNK:
    case RNL_SOURCE_TRUNK_ROOM:
    case RNL_SOURCE_BRANCH:
    case RNL_SOURCE_BRANCH_ROOM:
    case RNL_SOURCE_BRANCH_ERROR:
    case RNL_SOURCE_PROBE:
    case RNL_SOURCE_BACK:
    case RNL_SOURCE_WAY:
        if (l->head != NULL)
            rnl_head_event(l, e->data.u64 >> 32, index, now);
        else
            rnl_site_event(l, e->data.u64 >> 32, index, now);
        break;
    }
}

/* Something is to come. */
static int is_busy(const struct rnl_launcher *l)
{
    return l->running > 0 || rnl_console_waiting(l->console) ||
           (l->head != NULL && (rnl_head_busy(l->head) || rnl_head_waits(l->head))) ||
           (l->site != NULL && rnl_site_busy(l));
}

void rnl_launch_turn(struct rnl_launcher *l, int wait)
{
    struct epoll_event events[128];
    int more = rnl_console_work(l->console);
    uint64_t now = now_ns();
    finish_exited(l, now);
    if (l->head != NULL) /* what came of the last round is to be said before we sleep */
        rnl_head_work(l, now);
    if (l->site != NULL)
        rnl_site_work(l, now);
    if (l->back != NULL)
        rnl_back_look(l->back, now);
    uint64_t at = next_deadline(l);
    int ms = 0;
    if (wait && !more && is_busy(l) && at > now)
        ms = at == UINT64_MAX ? -1 : at - now > 60 * SECOND_NS ? 60000 : (int)((at - now + 999999) / 1000000);
    int n = epoll_wait(l->epoll, events, 128, ms);
    now = now_ns();
    for (int i = 0; i < n; i++)
        dispatch(l, &events[i], now);
    hear_agent(l);
    keep_time(l, now);
}

struct rnl_launcher *rnl_launch_new(const struct rnl_launch *job)
{
    struct rnl_launcher *l = calloc(1, sizeof *l + job->size * sizeof l->proc[0]);
    if (l == NULL)
        return NULL;
    l->job = job;
    l->count = job->hosts > 0 ? 0 : job->size;
    l->below_end = job->hosts;
    l->epoll = l->signals = l->exec_failed = l->input.pipe = -1;
    l->guard = RNL_GUARD_NONE;
    l->timeout_at = l->kill_at = l->abandon_at = l->input.again_ns = UINT64_MAX;
    l->vouch_at = job->datagrams && l->count > 0 ? 0 : UINT64_MAX;
    if (gethostname(l->host, sizeof l->host - 1) < 0)
        memcpy(l->host, "localhost", sizeof "localhost");
    return l;
}

void rnl_launch_free(struct rnl_launcher *l)
{
    rnl_input_end(&l->input);
    rnl_head_free(l->head);
    rnl_back_close(l->back);
    rnl_guard_end(&l->guard);
    rnl_console_free(l->console);
    rnl_agent_free(l->agent);
    if (l->exec_failed >= 0)
        close(l->exec_failed);
    if (l->signals >= 0)
        close(l->signals);
    if (l->epoll >= 0)
        close(l->epoll);
    explicit_bzero(l->key, sizeof l->key);
    free(l);
}

static void check_output(struct rnl_launcher *l)
{
    int e = rnl_console_error(l->console);
    if (e == 0)
        return;
    fprintf(stderr, "runnel: cannot %s the ranks' output: %s\n", rnl_console_lost(l->console) ? "read" : "write",
            e == EBADF ? "standard output is closed; redirect it to /dev/null if it is not wanted" : strerror(e));
    if (l->status == 0)
        l->status = RNL_EXIT_OUTPUT;
}

int rnl_launch(const struct rnl_launch *job)
{
    char sentence[512], *path = NULL;
    struct rnl_spawn how = {.argv = job->argv, .in = STDIN_FILENO};
    struct rnl_launcher *l = rnl_launch_new(job);
    if (l == NULL) {
        fprintf(stderr, "runnel: no memory for a job of %u rank%s\n", job->size, RNL_S(job->size));
        return RNL_EXIT_SYSTEM;
    }
    if (job->hosts == 0)
        l->status = rnl_spawn_find(job->argv[0], &path, sentence, sizeof sentence);
    if (l->status != 0)
        rnl_launch_say(l, "%s", sentence);
    how.path = path;
    if (l->status == 0 && rnl_launch_set_up(l, &how) == 0) {
        if (job->timeout_ns != 0)
            l->timeout_at = now_ns() + job->timeout_ns;
        if (l->head == NULL)
            rnl_launch_start(l, &how);
        while (is_busy(l) && !l->gave_up)
            rnl_launch_turn(l, 1);
        if (l->gave_up)
            rnl_launch_signal(l, SIGKILL);
        if (l->head != NULL)
            rnl_head_end(l);
        check_output(l);
    }
    int status = l->status;
    free(path);
    rnl_launch_free(l);
    return status;
}
