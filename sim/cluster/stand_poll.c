/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stand_poll.c - waiting for descriptors: that of the copy's endpoint, as rnl_fd and FM_fd give it, on virtual time.
 * Files are always ready, and there is nothing else that could not be. */
#include "sim/cluster/inside.h"
#include "sim/cluster/stand.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>

enum { LOOK_NS = 2000 /* as giving way takes: env.c */ };

static short ready(const struct rnl_guest *g, const struct pollfd *p)
{
    const short in = POLLIN | POLLRDNORM, out = POLLOUT | POLLWRNORM;
    if (p->fd <= 2)
        return p->events & (p->fd == 0 ? in : out);
    if (p->fd >= RNL_GUEST_FDS || g->fds[p->fd] == -1)
        return POLLNVAL;
    if (g->fds[p->fd] == RNL_GUEST_FD_ENDPOINT)
        return rnl_venv_readable(g) ? p->events & in : 0;
    return p->events & (in | out);
}

static int count(struct pollfd *p, nfds_t n)
{
    int found = 0;
    for (nfds_t i = 0; i < n; i++) {
        p[i].revents = p[i].fd < 0 ? 0 : ready(rnl_guest_now, &p[i]);
        found += p[i].revents != 0;
    }
    return found;
}

static int stand_poll(struct pollfd *p, nfds_t n, int timeout_ms)
{
    struct rnl_guest *g = rnl_guest_now;
    rnl_guest_called(g);
    rnl_guest_charge(g, LOOK_NS); /* who only asks and asks uses time, too */
    if (n > RNL_GUEST_FDS) {
        errno = EINVAL;
        return -1;
    }
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : rnl_guest_ns(g) + (uint64_t)timeout_ms * 1000000;
    for (;;) {
        int found = count(p, n);
        if (found > 0 || rnl_guest_ns(g) >= until)
            return found;
        rnl_venv_poll(g, until);
    }
}

/* What poll becomes where buffers are checked. */
static int stand_poll_chk(struct pollfd *p, nfds_t n, int timeout_ms, size_t bytes)
{
    return n > bytes / sizeof *p ? (errno = EFAULT, -1) : stand_poll(p, n, timeout_ms);
}

const struct rnl_stand rnl_stand_poll[] = {
    RNL_STAND(poll),
    {"__poll_chk", (void (*)(void))stand_poll_chk},
    RNL_STAND_END,
};
