/* SPDX-License-Identifier: BSD-3-Clause
 *
 * input.c - see input.h. */
#include "job/input.h"

#include "job/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

static const uint64_t again_ns = 200000000;

static void watch_terminal(struct rnl_input *in, int yes)
{
    if (yes && !in->watched)
        in->watched = rnl_source_add(in->epoll, STDIN_FILENO, RNL_SOURCE_INPUT, 0, EPOLLIN) == 0;
    else if (!yes && in->watched)
        in->watched = epoll_ctl(in->epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL) != 0;
}

static void watch_pipe(struct rnl_input *in, int yes)
{
    if (yes && !in->waits_for_room)
        in->waits_for_room = rnl_source_add(in->epoll, in->pipe, RNL_SOURCE_INPUT_ROOM, 0, EPOLLOUT) == 0;
    else if (!yes && in->waits_for_room)
        in->waits_for_room = epoll_ctl(in->epoll, EPOLL_CTL_DEL, in->pipe, NULL) != 0;
}

void rnl_input_end(struct rnl_input *in)
{
    if (in->pipe < 0)
        return;
    watch_terminal(in, 0);
    watch_pipe(in, 0);
    close(in->pipe);
    in->pipe = -1;
    in->again_ns = UINT64_MAX;
}

void rnl_input_work(struct rnl_input *in, uint64_t now_ns)
{
    if (in->pipe < 0)
        return;
    in->again_ns = UINT64_MAX;
    for (;;) {
        while (in->start < in->end) {
            ssize_t n = write(in->pipe, in->data + in->start, in->end - in->start);
            if (n > 0) {
                in->start += (unsigned)n;
            } else if (n < 0 && errno == EAGAIN) { /* rank 0 is not reading: nor do we */
                watch_terminal(in, 0);
                watch_pipe(in, 1);
                return;
            } else if (n < 0 && errno != EINTR) { /* it is gone, or has closed its input */
                rnl_input_end(in);
                return;
            }
        }
        watch_pipe(in, 0);
        in->start = in->end = 0;
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&p, 1, 0) <= 0) {
            watch_terminal(in, 1);
            return;
        }
        pid_t foreground = tcgetpgrp(STDIN_FILENO);
        ssize_t n = foreground == getpgrp() ? read(STDIN_FILENO, in->data, sizeof in->data) : -1;
        if (n == 0 || foreground < 0) { /* the end, or no terminal any more */
            rnl_input_end(in);
            return;
        }
        if (n < 0) { /* it is for somebody else; nobody tells us when we come to the foreground again */
            watch_terminal(in, 0);
            in->again_ns = now_ns + again_ns;
            return;
        }
        in->end = (unsigned)n;
    }
}

int rnl_input_new(struct rnl_input *in, int epoll, uint64_t now_ns, int *childs_end)
{
    int ends[2];
    in->epoll = epoll;
    in->pipe = -1;
    in->start = in->end = 0;
    in->watched = in->waits_for_room = 0;
    in->again_ns = UINT64_MAX;
    *childs_end = STDIN_FILENO;
    if (!isatty(STDIN_FILENO))
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    if (fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0) {
        int e = errno;
        close(ends[0]);
        close(ends[1]);
        return -e;
    }
    in->pipe = ends[1];
    *childs_end = ends[0];
    rnl_input_work(in, now_ns);
    return 0;
}
