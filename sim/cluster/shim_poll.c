/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim_poll.c - waiting for descriptors: that of the process's endpoint, as rnl_fd gives it, on virtual time.
 * Files are always ready, and there is nothing else that could not be. */
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/shim.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>

enum { LOOK_NS = 2000 /* as giving way takes: env.c */ };

static short ready(const struct vc_process *vp, const struct pollfd *p)
{
    const short in = POLLIN | POLLRDNORM, out = POLLOUT | POLLWRNORM;
    if (p->fd <= 2)
        return p->events & (p->fd == 0 ? in : out);
    if (p->fd >= VC_PROCESS_FDS || vp->fds[p->fd] == -1)
        return POLLNVAL;
    if (vp->fds[p->fd] == VC_PROCESS_FD_ENDPOINT)
        return vc_env_readable(vp) ? p->events & in : 0;
    return p->events & (in | out);
}

static int count(struct pollfd *p, nfds_t n)
{
    int found = 0;
    for (nfds_t i = 0; i < n; i++) {
        p[i].revents = p[i].fd < 0 ? 0 : ready(vc_process_now, &p[i]);
        found += p[i].revents != 0;
    }
    return found;
}

static int shim_poll(struct pollfd *p, nfds_t n, int timeout_ms)
{
    struct vc_process *vp = vc_process_now;
    vc_process_called(vp);
    vc_process_charge(vp, LOOK_NS); /* who only asks and asks uses time, too */
    if (n > VC_PROCESS_FDS) {
        errno = EINVAL;
        return -1;
    }
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : vc_process_ns(vp) + (uint64_t)timeout_ms * 1000000;
    for (;;) {
        int found = count(p, n);
        if (found > 0 || vc_process_ns(vp) >= until)
            return found;
        vc_env_poll(vp, until);
    }
}

/* What poll becomes where buffers are checked. */
static int shim_poll_chk(struct pollfd *p, nfds_t n, int timeout_ms, size_t bytes)
{
    return n > bytes / sizeof *p ? (errno = EFAULT, -1) : shim_poll(p, n, timeout_ms);
}

const struct vc_shim vc_shim_poll[] = {
    VC_SHIM(poll),
    {"__poll_chk", (void (*)(void))shim_poll_chk},
    VC_SHIM_END,
};
