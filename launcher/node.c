/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node.c - starts a node agent, over ssh or in a network namespace of this machine unless it was forked here, and
 * watches its stream and its process (node.h). No data of the job is on a command line: a remote shell sees one word,
 * the path of the runnel command, and `agent`. */
#include "launcher/node.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GREET_MS = 40000, /* for the agent's greeting; ssh gives up after 20 s */
    HERE_MS = 20000,  /* and for where its host is */
    REAP_MS = 300     /* from the end of the stream to how the process that led to it ended */
};

/* ---- an agent on another host is started ---- */

static const char namespaces[] = "/run/netns";

static _Noreturn void give_up(const char *what, const char *of)
{
    fprintf(stderr, "%s %s: %s\n", what, of, strerror(errno));
    _exit(RNL_EXIT_SYSTEM);
}

/* Whatever the shell there is, it takes this for one word: POSIX shells, csh and fish agree on single quotes around
 * what holds no quote, no exclamation mark and no backslash; others are escaped as POSIX shells want it. */
static int quoted(const char *path, char *out, size_t room)
{
    size_t n = 0;
    if (room < 4 * strlen(path) + 3)
        return -1;
    out[n++] = '\'';
    for (; *path != '\0'; path++) {
        if (*path == '\'')
            n += (size_t)snprintf(out + n, room - n, "'\\''");
        else
            out[n++] = *path;
    }
    out[n++] = '\'';
    out[n] = '\0';
    return 0;
}

/* The words of the command for ssh are the shell's to find. It is given the host and the command line. */
static const char find_words[] =
    "set -- %s -T -x -oBatchMode=yes -oLogLevel=ERROR -oConnectTimeout=20 -oServerAliveInterval=5 "
    "-oServerAliveCountMax=4 -- \"$@\"; command -v \"$1\" >/dev/null || "
    "{ echo \"cannot start $1: No such file or directory\" >&2; exit %d; }; exec \"$@\"";

static _Noreturn void over_ssh(const struct rnl_launch *job, const char *host)
{
    char command[4096], path[4000], *line;
    if (quoted(job->agent, path, sizeof path) < 0) {
        errno = ENAMETOOLONG;
        give_up("cannot name", job->agent);
    }
    snprintf(command, sizeof command, "exec %s agent", path);
    if (asprintf(&line, find_words, job->ssh, RNL_EXIT_SYSTEM) > 0)
        execl("/bin/sh", "sh", "-c", line, "sh", host, command, (char *)NULL);
    give_up("cannot start", job->ssh);
}

static _Noreturn void into_namespace(const struct rnl_launch *job, const char *host)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", namespaces, host);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        fprintf(stderr, "there is no network namespace %s: `ip netns list` says which there are\n", path);
        _exit(RNL_EXIT_SYSTEM);
    }
    if (fd < 0)
        give_up("cannot open the network namespace", path);
    if (setns(fd, CLONE_NEWNET) < 0)
        give_up("cannot enter the network namespace", path);
    execl(job->agent, job->agent, "agent", (char *)NULL);
    give_up("cannot start", job->agent);
}

/* In a session of its own: what a terminal sends to our group is the launcher's to pass on. */
static _Noreturn void become(const struct rnl_launch *job, uint32_t host, pid_t launcher, const int theirs[3])
{
    setsid();
    prctl(PR_SET_PDEATHSIG, job->start != RNL_START_NETNS ? SIGTERM : SIGKILL);
    if (getppid() != launcher)
        _exit(RNL_EXIT_SYSTEM);
    for (int i = 0; i < 3; i++)
        if (dup2(theirs[i], i) < 0)
            _exit(RNL_EXIT_SYSTEM);
    rnl_spawn_restore_signals();
    unsetenv("RUNNEL_FD");
    if (job->start == RNL_START_SSH)
        over_ssh(job, job->at[host].name);
    into_namespace(job, job->at[host].name);
}

/* Starts the agent of that host. *pid is the process that carries the connection, which dies with this one; `pipes` are
 * this process's ends of its standard input, output and error. 0 or -errno. */
static int start_remote(const struct rnl_launch *job, uint32_t host, int pipes[3], pid_t *pid)
{
    int p[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, e = 0;
    pid_t launcher = getpid(), child = -1;
    for (int i = 0; i < 3 && e == 0; i++)
        if (pipe2(p[i], O_CLOEXEC) < 0)
            e = -errno;
    if (e == 0 && (child = rnl_spawn_fork()) < 0)
        e = -errno;
    const int theirs[3] = {p[0][0], p[1][1], p[2][1]};
    if (child == 0)
        become(job, host, launcher, theirs);
    for (int i = 0; i < 3; i++) {
        int ours = p[i][i == 0];
        if (theirs[i] >= 0)
            close(theirs[i]);
        if (e < 0 && ours >= 0)
            close(ours);
        pipes[i] = ours;
    }
    *pid = child;
    return e;
}

/* ---- what is watched: the work after each turn of the loop looks at what came of it ---- */

static void on_timer(uv_timer_t *timer)
{
    struct rnl_node *n = timer->data;
    if (n->control.ended)
        n->late = true; /* its process has closed its output, and lives */
    else
        n->silent = n->state == RNL_NODE_STARTING || n->state == RNL_NODE_GREETED;
}

static void on_exit_event(uv_poll_t *handle, int status, int events)
{
    struct rnl_node *n = handle->data;
    (void)status;
    (void)events;
    if (n->reaped || waitpid(n->pid, &n->how, WNOHANG) != n->pid)
        return;
    n->reaped = true;
    uv_close((uv_handle_t *)&n->exit, NULL);
    close(n->pidfd);
}

static void give_error_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct rnl_node *n = handle->data;
    (void)suggested;
    *out = uv_buf_init(n->error_buffer, sizeof n->error_buffer);
}

/* Keeps the last line that is not empty. */
static void on_error_text(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buffer)
{
    struct rnl_node *n = stream->data;
    if (bytes < 0)
        (void)uv_read_stop(stream);
    for (ssize_t i = 0; i < bytes; i++) {
        const char c = buffer->base[i];
        if (c == '\n') {
            n->error_line_ended = true;
        } else if (c >= ' ' || c < 0) {
            if (n->error_line_ended)
                n->error_bytes = n->error_line_ended = 0;
            if (n->error_bytes < sizeof n->error_line - 1)
                n->error_line[n->error_bytes++] = c;
        }
    }
    n->error_line[n->error_bytes] = '\0';
}

static void on_control(void *arg)
{
    struct rnl_node *n = arg;
    n->heard_ns = rnl_now_ns();
    if (n->control.ended && !n->reaped && n->started)
        rnl_timer_start(&n->timer, on_timer, REAP_MS, 0);
}

int rnl_node_watch(struct rnl_node *n, const int pipes[3])
{
    uv_loop_t *loop = n->launcher->loop;
    (void)uv_timer_init(loop, &n->timer);
    n->started = true;
    n->state = RNL_NODE_STARTING;
    n->heard_ns = rnl_now_ns();
    rnl_timer_start(&n->timer, on_timer, GREET_MS, 0);
    n->error.data = n->timer.data = n;
    int e = rnl_control_open(&n->control, loop, pipes[1], pipes[0], on_control, n);
    n->pidfd = (int)syscall(SYS_pidfd_open, n->pid, 0);
    if (e == 0)
        e = n->pidfd < 0 ? -errno : rnl_watch(loop, &n->exit, n->pidfd, on_exit_event, n);
    if (pipes[2] < 0)
        return e;
    (void)uv_pipe_init(loop, &n->error, 0);
    const int f = uv_pipe_open(&n->error, pipes[2]);
    if (f < 0)
        close(pipes[2]);
    else
        (void)uv_read_start((uv_stream_t *)&n->error, give_error_buffer, on_error_text);
    return e < 0 ? e : f;
}

int rnl_node_start(struct rnl_node *n)
{
    struct rnl_launcher *l = n->launcher;
    const char *name = l->at[n->host].name;
    int pipes[3] = {l->job->local.fd, l->job->local.fd, -1}, e = 0;
    n->pid = l->job->local.pid;
    if (!l->local)
        e = start_remote(l->job, n->host, pipes, &n->pid);
    if (e < 0) {
        rnl_launcher_report(l,
                            "cannot start the agent of host %s: %s; name fewer hosts, or raise the limits (ulimit -a)",
                            name, strerror(-e));
        return e;
    }
    e = rnl_node_watch(n, pipes);
    if (e < 0)
        rnl_launcher_report(l, "cannot watch the agent of host %s: %s", name, strerror(-e));
    return e;
}

bool rnl_node_greeted(struct rnl_node *n)
{
    char release[RNL_CONTROL_RELEASE_BYTES];
    if (n->state != RNL_NODE_STARTING)
        return false;
    const int r = rnl_reader_greeting(&n->control.reader, release, n->noise, sizeof n->noise);
    if (r < 0) {
        memcpy(n->release, release, sizeof release);
        n->garbled = true;
    }
    if (r <= 0)
        return false;
    n->state = RNL_NODE_GREETED;
    (void)uv_timer_stop(&n->timer);
    return true;
}

void rnl_node_await_here(struct rnl_node *n)
{
    rnl_timer_start(&n->timer, on_timer, HERE_MS, 0);
}

bool rnl_node_talks(const struct rnl_node *n)
{
    return n->state >= RNL_NODE_GREETED && n->state != RNL_NODE_LOST;
}

/* ---- its end ---- */

/* Explains why the agent did not start, or has ended. */
static void explain(const struct rnl_node *n, char *why, size_t room)
{
    const struct rnl_launch *job = n->launcher->job;
    const bool greeted = n->state >= RNL_NODE_GREETED, over_ssh = job->start == RNL_START_SSH && job->hosts > 0;
    const char *output = n->error_bytes > 0 ? n->error_line : n->noise;
    const int code = n->reaped && WIFEXITED(n->how) ? WEXITSTATUS(n->how) : -1;
    char own[RNL_CONTROL_RELEASE_BYTES];
    if (n->release[0] != '\0')
        snprintf(why, room, "%s is of protocol and release %s, this command of %s: install one release everywhere",
                 job->agent, n->release, rnl_control_release(own));
    else if (n->garbled)
        snprintf(why, room, "what its agent says is not understood: install one release everywhere");
    else if (n->silent)
        snprintf(why, room, "%s has not answered in time%s%s", job->agent, *output ? ": " : "", output);
    else if (greeted && n->reaped && WIFSIGNALED(n->how))
        snprintf(why, room, "its agent was killed by signal %d", WTERMSIG(n->how));
    else if (greeted && over_ssh && code == 255)
        snprintf(why, room, "the connection to it has failed%s%s", *output ? ": " : "", output);
    else if (greeted)
        snprintf(why, room, "its agent has ended%s%s", *output ? ": " : "", output);
    else if (code == 127)
        snprintf(why, room,
                 "there is no %s on it%s%s%s: install the same release there, or say where it is with --agent",
                 job->agent, *output ? " (" : "", output, *output ? ")" : "");
    else if (code == 126)
        snprintf(why, room, "%s cannot be executed on it%s%s", job->agent, *output ? ": " : "", output);
    else if (over_ssh && code == 255)
        snprintf(why, room, "%s cannot reach it%s%s; `%s %s true` has to work without a password", job->ssh,
                 *output ? ": " : "", output, job->ssh, n->launcher->at[n->host].name);
    else if (code == RNL_EXIT_SYSTEM && *output) /* of ours, which says all */
        snprintf(why, room, "%s", output);
    else
        snprintf(why, room,
                 "%s%s%s did not become its agent: it ended (%s %d) and said %.160s; say with --agent where the runnel "
                 "command is there",
                 job->agent, over_ssh ? ", started by " : "", over_ssh ? job->ssh : "", code < 0 ? "signal" : "status",
                 code < 0 ? WTERMSIG(n->how) : code, *output ? output : "nothing");
}

bool rnl_node_gone(struct rnl_node *n, char *why, size_t room)
{
    n->garbled |= n->control.reader.error != 0;
    if (!n->garbled && !n->silent && !(n->control.ended && (n->reaped || n->late || !n->started)))
        return false;
    explain(n, why, room);
    return true;
}

void rnl_node_lose(struct rnl_node *n)
{
    n->state = RNL_NODE_LOST;
    rnl_control_close(&n->control);
    if (n->started && !n->reaped)
        kill(n->pid, SIGKILL);
}

bool rnl_node_has_left(const struct rnl_node *n)
{
    return !n->started || n->reaped;
}

void rnl_node_free(struct rnl_node *n)
{
    if (n->started && !n->reaped) {
        kill(n->pid, SIGKILL);
        while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        if (n->pidfd >= 0)
            close(n->pidfd);
    }
    rnl_reader_free(&n->control.reader);
    for (uint32_t i = 0; i < RNL_FENCES; i++)
        rnl_pack_free(&n->fence[i]);
    free(n->came);
    free(n);
}
