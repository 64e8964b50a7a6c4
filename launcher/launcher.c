/* SPDX-License-Identifier: BSD-3-Clause
 *
 * launcher.c - the launcher object: its loop, signals, deadlines, standard input, and the exit status of the job. It
 * has one thread and one loop of libuv, and never blocks. Work that is due is done after each turn of the loop. */
#include "launcher/launcher_internal.h"

#include "base/secret.h"
#include "launcher/node.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

enum { INTERRUPT_MS = 5000 /* from a signal that is passed on to SIGKILL */ };

/* ---- signals and deadlines ---- */

static void interrupt(struct rnl_launcher *l, int signal)
{
    if (l->interrupted != 0 || l->ending) {
        if (l->interrupted == 0)
            l->interrupted = signal;
        rnl_launcher_kill(l);
        return;
    }
    const char *name = sigdescr_np(signal);
    l->interrupted = signal;
    rnl_launcher_report(l, "got signal %d (%s), passed on; ending the job", signal, name ? name : "unknown");
    rnl_nodes_signal(l, signal);
    rnl_nodes_signal(l, SIGCONT);
    rnl_launcher_kill_in(l, INTERRUPT_MS);
}

static void on_signal(uv_signal_t *handle, int signal)
{
    struct rnl_launcher *l = handle->data;
    const bool ends = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
    if (ends)
        interrupt(l, signal);
    else
        rnl_nodes_signal(l, signal);
    if (signal == SIGTSTP) /* the shell wants all of us to stop, and then sees us stopped */
        kill(getpid(), SIGSTOP);
}

static void on_timeout(uv_timer_t *timer)
{
    struct rnl_launcher *l = timer->data;
    if (l->ending)
        return;
    l->status = RNL_EXIT_TIMEOUT;
    l->failed = true;
    if (l->hosts == 0)
        rnl_launcher_report(l, "only %u of %u processes had joined after %s s (--timeout); ending the job",
                            rnl_rendezvous_joined(l->bootstrap), l->job->size, l->job->timeout_text);
    else
        rnl_launcher_report(l, "the job was not done after %s s (--timeout); ending it", l->job->timeout_text);
    rnl_launcher_end_job(l);
}

/* ---- input: read here for as much as the agent of rank 0 grants, and sent there. A terminal is read while the
 * launcher is in its foreground only, since it stops processes that read it from the background. An agent of this host
 * lets rank 0 inherit anything but a terminal as it is; then there is nothing to read. ---- */

enum { AGAIN_MS = 200, INPUT_BYTES = 16384 };

static void on_input(uv_poll_t *handle, int status, int events)
{
    (void)handle; /* the work follows each turn of the loop */
    (void)status;
    (void)events;
}

static void new_input(struct rnl_launcher *l, bool inherited)
{
    struct rnl_input *in = &l->input;
    in->room = RNL_CONTROL_INPUT_ROOM;
    in->over = inherited || l->job->expected; /* a process that joins has an input of its own */
    in->terminal = isatty(STDIN_FILENO) != 0;
    (void)uv_timer_init(l->loop, &in->again);
    in->watched = !in->over && rnl_watch_init(l->loop, &in->events, STDIN_FILENO, l) == 0; /* no file can be watched */
}

static void pause_input(struct rnl_input *in, bool again)
{
    if (in->watched)
        (void)uv_poll_stop(&in->events);
    if (again)
        rnl_timer_start(&in->again, rnl_timer_wake, AGAIN_MS, 0);
}

/* Reads and sends what there is. */
static void read_input(struct rnl_launcher *l)
{
    struct rnl_input *in = &l->input;
    char data[INPUT_BYTES];
    while (l->phase == RNL_LAUNCH_RUNNING && !in->over && in->room > 0) {
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&p, 1, 0) <= 0) {
            if (in->watched)
                (void)uv_poll_start(&in->events, UV_READABLE, on_input);
            return;
        }
        const pid_t foreground = in->terminal ? tcgetpgrp(STDIN_FILENO) : 0;
        if (foreground > 0 && foreground != getpgrp()) {
            pause_input(in, true);
            return;
        }
        /* A terminal that hangs up has no foreground, and ends. */
        ssize_t n = foreground < 0 ? 0 : read(STDIN_FILENO, data, in->room < sizeof data ? in->room : sizeof data);
        if (n < 0 && (errno == EINTR || errno == EAGAIN || in->terminal)) {
            pause_input(in, true);
            return;
        }
        n = n < 0 ? 0 : n;
        rnl_nodes_input(l, data, (size_t)n);
        in->room -= (uint64_t)n;
        in->over = n == 0;
    }
    pause_input(in, false);
}

/* ---- the loop ---- */

/* What is due after a turn of the loop, and is to be said before it sleeps. */
static void work(struct rnl_launcher *l)
{
    rnl_rendezvous_work(l);
    rnl_nodes_work(l);
    read_input(l);
    rnl_agent_arm(&l->watch);
}

/* Something is to come. */
static bool is_busy(const struct rnl_launcher *l)
{
    return rnl_nodes_busy(l) || rnl_console_waiting(l->console);
}

static void run(struct rnl_launcher *l)
{
    for (work(l); is_busy(l) && !l->abandoned; work(l))
        (void)uv_run(l->loop, UV_RUN_ONCE);
}

/* ---- beginning and end ---- */

struct rnl_launcher *rnl_launcher_new(const struct rnl_launch *job, uv_loop_t *loop)
{
    struct rnl_launcher *l = rnl_secret_new(sizeof *l + job->size * sizeof l->rank[0]); /* it has the keys of the job */
    if (!l)
        return NULL;
    uv_timer_t *const timers[] = {&l->timeout, &l->kill, &l->abandon, &l->ping, &l->leave};
    for (size_t i = 0; i < sizeof timers / sizeof timers[0]; i++) {
        (void)uv_timer_init(loop, timers[i]);
        timers[i]->data = l;
    }
    l->loop = loop;
    l->job = job;
    l->local = job->hosts == 0 && !job->expected;
    l->hosts = l->local ? 1 : job->hosts;
    l->at = l->local ? &l->own_host : job->at;
    l->own_host.count = job->size;
    if (gethostname(l->own_host.name, sizeof l->own_host.name - 1) < 0)
        memcpy(l->own_host.name, "localhost", sizeof "localhost");
    return l;
}

void rnl_launcher_free(struct rnl_launcher *l)
{
    rnl_loop_drain(l->loop); /* it has handles in what is freed below */
    rnl_nodes_free(l);
    rnl_console_free(l->console);
    rnl_agent_free(l->agent);
    explicit_bzero(&l->spec, sizeof l->spec);
    rnl_rendezvous_free(l->bootstrap);
    rnl_secret_free(l, sizeof *l + l->job->size * sizeof l->rank[0]);
}

int rnl_launcher_draw_keys(struct rnl_launcher *l)
{
    struct rnl_job_spec *s = &l->spec;
    if (getrandom(s->key, sizeof s->key, 0) != (ssize_t)sizeof s->key ||
        getrandom(s->agents, sizeof s->agents, 0) != (ssize_t)sizeof s->agents ||
        getrandom(&s->number, sizeof s->number, 0) != (ssize_t)sizeof s->number) {
        rnl_launcher_report(l, "the system gave no random key for the job: %s", strerror(errno));
        return -1;
    }
    return 0;
}

static int take_signals(struct rnl_launcher *l)
{
    int e = 0;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTTIN); /* a terminal that is read too late says so instead of stopping us */
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, our children would vanish before we know how they ended */
    for (unsigned i = 0; i < RNL_SPAWN_SIGNALS && e == 0; i++) {
        e = uv_signal_init(l->loop, &l->signal[i]);
        l->signal[i].data = l;
        if (e == 0)
            e = uv_signal_start(&l->signal[i], on_signal, rnl_spawn_signals[i]);
    }
    return e;
}

/* Each host has a stream and a process to be watched. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int set_up(struct rnl_launcher *l)
{
    if (rnl_launcher_draw_keys(l) < 0)
        return -1;
    int e = take_signals(l);
    if (e == 0)
        e = rnl_console_new(l->loop, l->job->size, l->job->tag, &l->console);
    if (e < 0) {
        rnl_launcher_report(
            l, "cannot watch signals, or make the buffers for the output: %s; raise ulimit -n or ulimit -v",
            strerror(-e));
        return -1;
    }
    new_input(l, l->local && !isatty(STDIN_FILENO));
    if (l->job->timeout_ns != 0)
        rnl_timer_start(&l->timeout, on_timeout, (l->job->timeout_ns + 999999) / 1000000, 0);
    return rnl_nodes_start(l) < 0 || (l->job->expected && rnl_rendezvous_open(l) < 0) ? -1 : 0;
}

static void check_output(struct rnl_launcher *l)
{
    const int e = rnl_console_error(l->console);
    if (e == 0)
        return;
    fprintf(stderr, "runnel: cannot write the ranks' output: %s\n",
            e == EBADF ? "standard output is closed; redirect it to /dev/null if it is not wanted" : strerror(e));
    if (l->status == 0)
        l->status = RNL_EXIT_OUTPUT;
}

static int run_job(const struct rnl_launch *job, uv_loop_t *loop)
{
    struct rnl_launcher *l = rnl_launcher_new(job, loop);
    if (!l) {
        fprintf(stderr, "runnel: no memory for a job of %u rank%s\n", job->size, RNL_S(job->size));
        return RNL_EXIT_SYSTEM;
    }
    if (set_up(l) < 0)
        rnl_launcher_give_up(l, RNL_EXIT_SYSTEM);
    else
        run(l);
    rnl_nodes_end(l);
    if (l->console)
        check_output(l);
    const int status = l->status;
    rnl_launcher_free(l);
    return status;
}

int rnl_launch(const struct rnl_launch *options)
{
    struct rnl_launch job = *options;
    uv_loop_t loop;
    rnl_open_standard();
    rnl_spawn_save_signals();
    /* Before anything is open that its ranks should not inherit. */
    const int local = job.hosts > 0 || job.expected ? 0 : rnl_node_agent_fork(&job.local);
    raise_descriptors();
    int e = local < 0 ? local : rnl_loop_init(&loop);
    if (e < 0) {
        fprintf(stderr, "runnel: cannot %s: %s; raise the limits (ulimit -n, ulimit -u)\n",
                local < 0 ? "start the agent of this host" : "make an event loop (an epoll instance)", strerror(-e));
        return RNL_EXIT_SYSTEM;
    }
    const int status = run_job(&job, &loop);
    (void)uv_loop_close(&loop);
    return status;
}
