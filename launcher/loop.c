/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loop.c - see loop.h. */
#include "launcher/loop.h"

#include "base/bug.h"
#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
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

/* ---- a listening socket ---- */

enum { PAUSE_MS = 10, PAUSE_MAX_MS = 500, ACCEPTS_PER_TURN = 16 };

static void on_events(uv_poll_t *handle, int status, int events);

static void resume(uv_timer_t *timer)
{
    struct rnl_listener *s = timer->data;
    if (s->opened && !s->held)
        (void)uv_poll_start(&s->poll, UV_READABLE, on_events);
}

static bool passes(int e)
{
    return e == EAGAIN || e == EINTR || e == ECONNABORTED;
}

static void on_events(uv_poll_t *handle, int status, int events)
{
    struct rnl_listener *s = handle->data;
    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN && s->opened && !s->held; i++) {
        const int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && passes(errno))
            return;
        if (fd < 0) {
            if (RNL_BUG(listeners_spin))
                return;
            (void)uv_poll_stop(&s->poll);
            rnl_timer_start(&s->retry, resume, s->pause_ms, 0);
            s->pause_ms = 2 * s->pause_ms < PAUSE_MAX_MS ? 2 * s->pause_ms : PAUSE_MAX_MS;
            return;
        }
        s->pause_ms = PAUSE_MS;
        s->came(s->arg, fd);
    }
}

int rnl_listener_open(struct rnl_listener *s, uv_loop_t *loop, int fd, void (*came)(void *, int), void *arg)
{
    *s = (struct rnl_listener){.fd = fd, .pause_ms = PAUSE_MS, .came = came, .arg = arg};
    int e = rnl_watch_init(loop, &s->poll, fd, s);
    if (e < 0) {
        close(fd);
        return e;
    }
    (void)uv_timer_init(loop, &s->retry);
    s->retry.data = s;
    s->opened = true;
    return uv_poll_start(&s->poll, UV_READABLE, on_events);
}

void rnl_listener_hold(struct rnl_listener *s, bool held)
{
    if (!s->opened || s->held == held)
        return;
    s->held = held;
    if (held)
        (void)uv_poll_stop(&s->poll);
    else
        resume(&s->retry);
}
