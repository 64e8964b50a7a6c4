/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loop.h - what the parts of the launcher share of their event loop, which is libuv's: descriptors that others share,
 * timers, listening sockets, and the membership of a job (job/agent.h) as a service of the loop. */
#ifndef RNL_LAUNCHER_LOOP_H
#define RNL_LAUNCHER_LOOP_H

#include "job/agent.h"

#include <uv.h>

uint64_t rnl_now_ns(void);

/* Watches a descriptor that others may share: unlike uv_poll_init, leaves its O_NONBLOCK as it is. 0 or -errno. */
int rnl_watch_init(uv_loop_t *, uv_poll_t *, int fd, void *data);
/* Calls back while that descriptor is readable. 0 or -errno. */
int rnl_watch(uv_loop_t *, uv_poll_t *, int fd, uv_poll_cb, void *data);

/* Starts a timer that runs out after `ms`, and then every `repeat_ms` unless that is 0. */
void rnl_timer_start(uv_timer_t *, uv_timer_cb, uint64_t ms, uint64_t repeat_ms);
/* Makes a timer run out at that time; UINT64_MAX stops it. */
void rnl_timer_at(uv_timer_t *, uv_timer_cb, uint64_t at_ns);
/* A callback for what only has to wake the loop: the work that is due follows each turn. */
void rnl_timer_wake(uv_timer_t *);

/* Makes a loop. 0 or -errno. */
int rnl_loop_init(uv_loop_t *);
/* Closes all handles of the loop, and waits for that. */
void rnl_loop_drain(uv_loop_t *);

/* A listening socket. Where there is no descriptor for who comes (EMFILE), it looks again after a pause that grows,
 * instead of being woken at once and in vain. */
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

struct rnl_agent_watched {
    struct rnl_agent *agent;
    uv_poll_t events;
    uv_timer_t timer;
};
/* Steps the agent from now on when it has something to do. 0 or -errno. */
int rnl_agent_serve(struct rnl_agent_watched *, uv_loop_t *, struct rnl_agent *);
/* To be called before the loop sleeps, since any call of the agent changes its deadline. Fine if nothing is watched. */
void rnl_agent_arm(struct rnl_agent_watched *);

#endif
