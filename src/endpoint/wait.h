/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait.h - what a call does that finds nothing: it polls on, yields or sleeps, and how it is made to look again
 * (wait.c, arm.c). */
#ifndef RNL_ENDPOINT_WAIT_H
#define RNL_ENDPOINT_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct rnl_conn;
struct rnl_endpoint;

struct rnl_idle {
    uint64_t deadline_ns;  /* UINT64_MAX = none */
    struct rnl_conn *room; /* peer for whose room on room_lane the call waits; NULL = it waits for messages */
    unsigned room_lane;
    uint32_t bulk; /* bytes of bulk area that are needed, too */
    uint32_t polls, yields;
    uint8_t what;          /* enum rnl_waits, for whoever looks on; 0 = it follows from `room` and the close */
    uint64_t since_ns;     /* when the call first gave the processor away; 0 = not yet */
    bool by_wake;          /* rnl_wake ends it */
    struct rnl_idle *next; /* list of ep->wait.asleep */
};
/* Pauses, yields or sleeps after a poll that found nothing; the lock of a shared endpoint is released meanwhile.
 * Returns 0 = poll again, RNL_TIMED_OUT, or RNL_INTERRUPTED. */
int rnl_ep_idle(struct rnl_endpoint *ep, struct rnl_idle *w);
/* Ends a wait that has by_wake. For signal handlers and other threads, too. */
void rnl_ep_wake(struct rnl_endpoint *ep);
/* Ends an extract that found nothing, of a program that does not wait: yields now and then, and arms the descriptor if
 * there is one. Returns 0, so that the extract can end with the call. */
int rnl_ep_empty(struct rnl_endpoint *ep);
/* Does what an empty poll has time for: returns credit, joins connections, announces what was read. */
void rnl_ep_maintain(struct rnl_endpoint *ep);
/* Pauses between two polls: a tight loop would take the cache line away while it is being written. */
void rnl_ep_relax(const struct rnl_endpoint *ep);
/* Disarms the descriptor after an extract that found something, and makes it readable. */
void rnl_ep_busy(struct rnl_endpoint *ep);
/* Makes sleeping threads look again, and the descriptor readable until an extract finds nothing. To be called when
 * something comes up outside of an extract that no bell announces. */
RNL_COLD void rnl_ep_look_again(struct rnl_endpoint *ep);
/* Returns 1 if an extract would find something. Armed connections that have cells become polled. */
int rnl_ep_look(struct rnl_endpoint *ep);
/* rnl_ep_look for a program that spins: at polled connections, and at armed ones if the bell rang. */
int rnl_ep_look_polled(struct rnl_endpoint *ep);
/* Ends a look that found nothing: does now and then what an empty extract has time for, and never yields. */
void rnl_ep_looked(struct rnl_endpoint *ep);
/* Issues the heavy fence of env, or a full fence where there is none and senders fence. */
void rnl_ep_fence(struct rnl_endpoint *ep);
int rnl_ep_fd(struct rnl_endpoint *ep);
/* Arms the descriptor, whose number it stores in *fd. Returns 0; 1 = something is there; RNL_ERR_SYSTEM. */
int rnl_ep_arm_fd(struct rnl_endpoint *ep, int *fd);

#endif
