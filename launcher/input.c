/* SPDX-License-Identifier: BSD-3-Clause
 *
 * input.c - reads standard input for rank 0 (input.h). */
#include "launcher/input.h"

#include "launcher/launcher_internal.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { AGAIN_MS = 200, INPUT_BYTES = 16384 };

static void on_input(uv_poll_t *handle, int status, int events)
{
    (void)handle; /* the work follows each turn of the loop */
    (void)status;
    (void)events;
}

void rnl_input_new(struct rnl_launcher *l, bool inherited)
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

void rnl_input_work(struct rnl_launcher *l)
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
