/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client_internal.h - the state of a launched rank's env, and the functions that client.c and client_segment.c
 * share. */
#ifndef RNL_JOB_CLIENT_INTERNAL_H
#define RNL_JOB_CLIENT_INTERNAL_H

#include "job/proto.h"
#include "job/rank_env.h"
#include "job/status.h"

struct client {
    struct rnl_rank_env base; /* first */
    int sock;
    uint8_t gone;       /* the agent is gone: 1 = found, 2 = reported as an event */
    uint8_t garbled;    /* it counts as gone because it sent bytes that are no message */
    int32_t lost_errno; /* it counts as gone because a message was lost with this errno; 0 = none was */
    const struct rnl_status_page *status;
    size_t status_bytes, bells_bytes;
    bool networked; /* some ranks are reached by datagrams only */
    struct rnl_bell *bells;
    /* a ring of `room` events that arrived while a reply was awaited: [first, first + waiting) */
    struct rnl_event *waits;
    uint32_t first, waiting, room;
};

static inline struct client *rnl_client_of(struct rnl_env *env)
{
    return (struct client *)(void *)env;
}

/* client_segment.c. Fails with the reason for which the agent counts as gone. RNL_ERR_JOB. */
int rnl_client_agent_gone(struct client *c);
/* The socket failed with this status. Not every error means that the agent is gone, but a message was lost in any case,
 * so the agent counts as gone from now on. RNL_ERR_JOB. */
int rnl_client_agent_lost(struct client *c, int status);
/* Sends a message. 0, RNL_NO_ROOM (only if not `wait`), RNL_ERR_JOB. */
int rnl_client_send(struct client *c, const struct rnl_msg *msg, int wait);
/* Receives the agent's next message; *fd is its descriptor or -1. 0; RNL_NO_ROOM, without an error record: there is
 * none within wait_ns; RNL_ERR_JOB. */
int rnl_client_receive(struct client *c, struct rnl_msg *msg, int *fd, uint64_t wait_ns);
/* Takes in a message and its descriptor. 1: *event is to be reported; RNL_ERR_JOB. */
int rnl_client_take(struct client *c, const struct rnl_msg *msg, int fd, struct rnl_event *event);

int rnl_client_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment);
void rnl_client_segment_mapped(struct rnl_env *env, int segment);

#endif
