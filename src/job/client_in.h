/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client_in.h - what the parts of the client share. */
#ifndef RNL_JOB_CLIENT_IN_H
#define RNL_JOB_CLIENT_IN_H

#include "base/env.h"
#include "job/places.h"
#include "job/proto.h"
#include "job/status.h"
#include "job/waitfd.h"

#include <sys/types.h>

/* Something that the agent gives as a descriptor: the segment shared with a rank, or a rank's descriptor to raise. */
struct client_given {
    uint8_t state;     /* enum client_given_state */
    uint8_t result;    /* REFUSED: enum rnl_give */
    uint8_t wished;    /* a rank's descriptor: to be raised when it comes */
    int32_t sys_errno; /* REFUSED */
    int32_t fd;        /* HERE, OPEN */
};
enum client_given_state {
    CLIENT_NONE = 0,
    CLIENT_ASKED,
    CLIENT_HERE,
    CLIENT_REFUSED, /* to be said once */
    CLIENT_OPEN,    /* a segment that is being mapped */
    CLIENT_SETTLED  /* ... that is mapped */
};

struct client {
    struct rnl_env env; /* first */
    pid_t owner;
    int sock;
    uint8_t gone;                 /* the agent: 1 = found out, 2 = reported */
    uint8_t garbled;              /* ... since it said what is no message */
    int32_t lost_errno;           /* ... since the system lost a word; 0 = it did not */
    struct client_given *segment; /* by rank */
    struct client_given *raise;   /* by rank, our own included */
    struct rnl_waitfd wait;       /* over our own descriptor to raise */
    char *heads;                  /* RNL_SEGMENT_HEAD bytes of address space a rank; NULL until the first is mapped */
    unsigned char key[RNL_JOB_KEY_BYTES];
    const struct rnl_status_page *status;
    const struct rnl_places *places; /* NULL: all ranks are on this host */
    size_t status_bytes, bells_bytes;
    struct rnl_bell *bells;
    /* events that came in while an answer was awaited: [first, first + waiting) of room, a ring */
    struct rnl_msg_event *waits;
    uint32_t first, waiting, room;
};

static inline struct client *rnl_client_of(struct rnl_env *env)
{
    return (struct client *)(void *)env;
}

/* client_ask.c */
int rnl_client_forked(const struct client *c); /* 0 or RNL_ERR_FORKED */
int rnl_client_agent_gone(struct client *c);
/* The socket failed with -e. Only some of that means that the other side is gone; but what was said or heard halfway is
 * lost, so that nothing can be asked any more in any case. */
int rnl_client_agent_lost(struct client *c, int e); /* RNL_ERR_JOB */
/* 0, RNL_NO_ROOM (only if not `wait`), RNL_ERR_JOB. */
int rnl_client_say(struct client *c, const struct rnl_msg *msg, int wait);
/* What the agent says next; *fd is -1 unless one came with it. 0, -EAGAIN (none within wait_ns), or RNL_ERR_JOB. */
int rnl_client_hear(struct client *c, struct rnl_msg *msg, int *fd, uint64_t wait_ns);
/* Takes in an answer and its descriptor. 1: a segment can be opened now, *connect says so; 0; RNL_ERR_JOB. */
int rnl_client_given(struct client *c, const struct rnl_msg *msg, int fd, struct rnl_msg_event *connect);
void rnl_client_forget(struct client *c); /* frees all that was asked for */

int rnl_client_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment);
int rnl_client_segment_map(struct rnl_env *env, int segment, size_t offset, size_t bytes, int writable, void **at);
void rnl_client_segment_unmap(struct rnl_env *env, int segment, void *at, size_t bytes);
void rnl_client_segment_settle(struct rnl_env *env, int segment);
void rnl_client_segment_close(struct rnl_env *env, int segment);
int rnl_client_fd(struct rnl_env *env);
void rnl_client_fd_drain(struct rnl_env *env);
void rnl_client_fd_until(struct rnl_env *env, uint64_t ns);
int rnl_client_fd_watch(struct rnl_env *env, int fd);
void rnl_client_fd_raise(struct rnl_env *env, uint32_t rank);

#endif
