/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node.c - starts a node agent, and watches its stream and its process (node.h). */
#include "launcher/node.h"

#include "launcher/remote_start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GREET_MS = 40000, /* for the agent's greeting; ssh gives up after 20 s */
    HERE_MS = 20000,  /* and for where its host is */
    REAP_MS = 300     /* from the end of the stream to how the process that led to it ended */
};

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
        e = rnl_remote_start(l->job, n->host, pipes, &n->pid);
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
