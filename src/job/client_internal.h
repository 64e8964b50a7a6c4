/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client_internal.h - the state of a launched rank's env. */
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

#endif
