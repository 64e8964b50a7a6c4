/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loop.c - see loop.h. */
#include "launcher/loop.h"

#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

uint64_t rnl_now_ns(void)
{
    return rnl_host_now_ns(NULL);
}

int rnl_watch_init(uv_loop_t *loop, uv_poll_t *poll, int fd, void *data)
{
    const int flags = fcntl(fd, F_GETFL);
    const int e = uv_poll_init(loop, poll, fd);
    if (e == 0 && flags >= 0)
        (void)fcntl(fd, F_SETFL, flags);
    poll->data = data;
    return e;
}

int rnl_watch(uv_loop_t *loop, uv_poll_t *poll, int fd, uv_poll_cb callback, void *data)
{
    const int e = rnl_watch_init(loop, poll, fd, data);
    return e < 0 ? e : uv_poll_start(poll, UV_READABLE, callback);
}

void rnl_timer_start(uv_timer_t *timer, uv_timer_cb callback, uint64_t ms, uint64_t repeat_ms)
{
    uv_update_time(timer->loop);
    (void)uv_timer_start(timer, callback, ms, repeat_ms);
}

void rnl_timer_at(uv_timer_t *timer, uv_timer_cb callback, uint64_t at_ns)
{
    const uint64_t now = rnl_now_ns();
    if (at_ns == UINT64_MAX)
        (void)uv_timer_stop(timer);
    else
        rnl_timer_start(timer, callback, at_ns > now ? (at_ns - now + 999999) / 1000000 : 0, 0);
}

/* A timer that has run out when the turn begins would be called back, and then the loop would sleep for other
 * things. */
void rnl_timer_wake(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

int rnl_loop_init(uv_loop_t *loop)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    /* libuv aborts if there is no descriptor for its epoll instance and the pipe that its signals share. */
    const int third = fcntl(ends[0], F_DUPFD_CLOEXEC, 0), e = third < 0 ? -errno : 0;
    close(ends[0]);
    close(ends[1]);
    if (third >= 0)
        close(third);
    return e < 0 ? e : uv_loop_init(loop);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void rnl_loop_drain(uv_loop_t *loop)
{
    uv_walk(loop, close_handle, NULL);
    (void)uv_run(loop, UV_RUN_DEFAULT);
}

static void on_agent_events(uv_poll_t *handle, int status, int events)
{
    const struct rnl_agent_watched *w = handle->data;
    (void)status;
    (void)events;
    rnl_agent_step(w->agent, rnl_now_ns());
}

static void on_agent_timer(uv_timer_t *timer)
{
    const struct rnl_agent_watched *w = timer->data;
    rnl_agent_step(w->agent, rnl_now_ns());
}

int rnl_agent_serve(struct rnl_agent_watched *w, uv_loop_t *loop, struct rnl_agent *agent)
{
    w->agent = agent;
    (void)uv_timer_init(loop, &w->timer);
    w->timer.data = w;
    return rnl_watch(loop, &w->events, rnl_agent_fd(agent), on_agent_events, w);
}

void rnl_agent_arm(struct rnl_agent_watched *w)
{
    if (w->agent)
        rnl_timer_at(&w->timer, on_agent_timer, rnl_agent_deadline_ns(w->agent));
}
