/* SPDX-License-Identifier: BSD-3-Clause
 *
 * listener.c - see listener.h. */
#include "launcher/listener.h"

#include "base/bug.h"
#include "launcher/launcher_internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

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
