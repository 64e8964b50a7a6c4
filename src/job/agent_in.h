/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent_in.h - what the parts of the agent share. */
#ifndef RNL_JOB_AGENT_IN_H
#define RNL_JOB_AGENT_IN_H

#include "job/agent.h"
#include "job/proto.h"
#include "job/status.h"
#include "job/waves.h"

#include <sys/types.h>

struct agent_out { /* a packet that waits for room in a rank's socket */
    struct agent_out *next;
    size_t n;
    int owned; /* descriptor to send and then to close, or -1 */
    uint8_t is_answer, is_welcome;
    unsigned char bytes[RNL_MSG_BYTES_MAX];
};

struct agent_rank {
    enum rnl_rank_state state;
    int door;      /* our end of what its processes inherit */
    int sock;      /* our end of what it made when it joined */
    int watch;     /* pidfd of the process that joined, if that is not the one that was started */
    int net;       /* its UDP socket: a rank whose open failed may come again */
    int raise;     /* eventfd to wake it from an event loop, once somebody asked for it */
    uint32_t host; /* ranks of different hosts share no memory */
    pid_t started, joined;
    uint64_t incarnation, hung_up_ns;
    struct agent_out *first, *last;
    uint32_t queued, answers;
    uint32_t interest; /* EPOLL* of sock */
    uint8_t hung_up;   /* its socket is closed: the exit of its process should follow */
    uint8_t rounds;    /* ... so often it was waited for */
    uint8_t asked;     /* it has said something since it joined */
    uint8_t broken;    /* to be declared so at the next step */
    int32_t sys_errno; /* ... since the system failed us with this; 0 = its own fault */
    uint8_t away;      /* on another host */
    uint8_t retry;
    uint64_t refused_ns; /* since when the kernel has taken no packet for it; 0 = it does */
    uint8_t found;       /* its death is to be reported to the launcher */
    uint8_t given_up;    /* some other rank heard nothing of it for too long */
    uint8_t still;       /* ... and it stands still, as the leader was told */
    uint64_t still_ns;   /* since when it has been seen to be stopped; 0: it was not, the last time */
    int32_t why, detail; /* of its death */
};

struct agent_pair;

struct rnl_agent {
    uint32_t size, found;
    uint8_t keep_going, close_done;
    uint8_t leads; /* decides on waves */
    void (*tell)(void *arg, const struct rnl_word *);
    void *tell_arg;
    uint64_t wave; /* the last one that the leader asked for */
    int epoll, status_fd, bells_fd, places_fd;
    uint64_t now_ns, deadline_ns;
    struct rnl_status_page *status;
    struct rnl_bell *bells;
    struct rnl_waves *waves;
    struct agent_pair *pairs; /* segments that not both sides have yet */
    unsigned char *had;       /* bit rank * size + other: rank has the segment, and said so */
    unsigned char *parted; /* ... rank has parted from other, which broke the protocol; behind these bits: was silent */
    unsigned char key[RNL_JOB_KEY_BYTES];
    char host[RNL_JOB_HOST_BYTES];
    struct agent_rank rank[];
};

/* agent_tell.c. Tells the other agents, where there are some. */
void rnl_agent_spread(struct rnl_agent *, const struct rnl_word *);
/* What the agent's epoll watches for `rank`: 0 or -errno. */
enum rnl_agent_source { RNL_AGENT_DOOR, RNL_AGENT_SOCK, RNL_AGENT_WATCH };
int rnl_agent_watch(struct rnl_agent *, int fd, enum rnl_agent_source source, uint32_t rank, uint32_t events);
void rnl_agent_drop_fd(struct rnl_agent *, int *fd); /* and watches it no more; -1 afterwards, fine before */
/* The next step is to be no later. */
void rnl_agent_wish(struct rnl_agent *, uint64_t at_ns);

/* Queues a message and sends what can be sent. `owned` (or -1) travels along and is closed here, whatever happens. Ends
 * no rank's life. */
void rnl_agent_tell(struct rnl_agent *, uint32_t rank, const struct rnl_msg *msg, int owned);
/* Sends what the socket takes. A broken one shows itself to the loop. */
void rnl_agent_flush(struct rnl_agent *, uint32_t rank);
void rnl_agent_tell_none(struct agent_rank *); /* what waits is forgotten */
/* The system does not let us serve this rank: it is to be declared broken, which is not its fault. */
void rnl_agent_fail(struct rnl_agent *, uint32_t rank, int e);

/* agent.c. All that is kept for one that is gone, but its door, is given up. */
void rnl_agent_forget(struct rnl_agent *, uint32_t rank);

void rnl_agent_gone(struct rnl_agent *, uint32_t rank, int why, int detail);

/* agent_still.c. It has said something, or was seen to run. */
void rnl_agent_goes_on(struct rnl_agent *, uint32_t rank);
/* The leader hears that it does not run. */
void rnl_agent_stands_still(struct rnl_agent *, uint32_t rank);
/* The leader: if a wave lacks only those that stand still, they are given up, by their own agents. */
void rnl_agent_close_without(struct rnl_agent *);
/* Its own agent: if that is still so, it is dead for all. */
void rnl_agent_give_up(struct rnl_agent *, uint32_t rank);

/* agent_give.c: what ranks ask for. Negative: the rank broke the protocol. */
int rnl_agent_give_segment(struct rnl_agent *, uint32_t rank, const struct rnl_msg_segment *question);
int rnl_agent_give_had(struct rnl_agent *, uint32_t rank, uint32_t other);
int rnl_agent_part(struct rnl_agent *, uint32_t rank, uint32_t other, int why);
/* That is heard by `other`, if it is here. */
void rnl_agent_tell_part(struct rnl_agent *, uint32_t rank, uint32_t other, int why);
void rnl_agent_give_fd(struct rnl_agent *, uint32_t rank, const struct rnl_msg_fd *question);
void rnl_agent_give_connects(struct rnl_agent *, uint32_t rank); /* tells who has made a segment for it already */
void rnl_agent_give_gone(struct rnl_agent *, uint32_t rank);
void rnl_agent_give_free(struct rnl_agent *);

#endif
