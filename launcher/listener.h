/* SPDX-License-Identifier: BSD-3-Clause
 *
 * listener.h - a listening socket in the loop. Where there is no descriptor for who comes (EMFILE), it looks again
 * after a pause that grows, instead of being woken at once and in vain. */
#ifndef RNL_LAUNCHER_LISTENER_H
#define RNL_LAUNCHER_LISTENER_H

#include <stdbool.h>
#include <uv.h>

struct rnl_listener {
    uv_poll_t poll;
    uv_timer_t retry;
    int fd;
    unsigned pause_ms;
    bool held, opened;
    void (*came)(void *arg, int fd); /* who came; the callee's */
    void *arg;
};

/* Takes fd over, which is non-blocking and listens. 0 or -errno. */
int rnl_listener_open(struct rnl_listener *, uv_loop_t *, int fd, void (*came)(void *, int), void *arg);
/* Whoever comes waits until it is no longer held. */
void rnl_listener_hold(struct rnl_listener *, bool held);

#endif
