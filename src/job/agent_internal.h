/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent_internal.h - the state of an agent and of its ranks, and the functions that its source files share. */
#ifndef RNL_JOB_AGENT_INTERNAL_H
#define RNL_JOB_AGENT_INTERNAL_H

#include "job/agent.h"
#include "job/waitfd.h"

struct agent_reply { /* a REPLY that waits for room in a rank's socket */
    struct agent_reply *next;
    uint64_t after; /* the number of events that must have been sent to the rank before this reply */
    struct rnl_msg msg;
    int owned; /* a descriptor to send and then close, or -1 */
};

struct agent_rank {
    int bootstrap; /* the agent's end of the bootstrap socket, whose other end the rank's processes inherit */
    int sock;      /* the agent's end of the socket that the rank made when it joined */
    int watch;     /* pidfd of the process that joined, if that is not the one that was started */
    int net;       /* its UDP socket, kept because a rank whose open failed may join again */
    int rings;     /* its AF_XDP socket until it has joined; it does without if it joins again */
    struct rnl_agent_cards cards; /* until it has joined, likewise: the last descriptor ends a card's reach */
    bool is_remote;               /* on another host */
    pid_t started, joined;
    uint64_t hung_up_ns, refused_ns; /* when its socket was found closed; since when sending fails, 0 = it does not */
    uint64_t stopped_ns;             /* since when its process has been found stopped; 0 = it was not the last time */
    struct agent_reply *first, *last;
    uint32_t interest;              /* the EPOLL* events watched on sock */
    bool hung_up;                   /* its socket is closed, and the exit of its process should follow */
    uint8_t rounds;                 /* how often the wait for that exit was prolonged */
    struct rnl_msg_overran overran; /* what it said of a stack; stack_bytes 0 = nothing */
    bool has_sent;                  /* it has sent something since it joined */
    bool broken;                    /* the next step declares it broken */
    int32_t sys_errno;              /* the system error for which it is declared broken; 0 = it broke the protocol */
    bool retry;                     /* sending to it failed and is to be tried again at the deadline */
    bool found;                     /* its death, with `why` and `detail`, is to be reported to the launcher */
    int32_t why, detail;
};

struct rnl_agent {
    uint32_t size, found;
    int rings_memory;
    bool keep_going, networked;
    int epoll, status_fd, bells_fd;
    uint64_t now_ns, deadline_ns;
    struct rnl_membership *members;
    struct rnl_status_page *status;
    struct rnl_bell *bells;
    struct rnl_waitfd wait; /* raises the descriptors of ranks */
    void (*publish)(void *arg, const struct rnl_word *);
    void *publish_arg;
    unsigned char *key; /* rnl_secret_new */
    char host[RNL_JOB_HOST_BYTES];
    struct agent_rank rank[];
};

/* agent_send.c. Makes the agent's epoll watch fd for `rank`, or changes the events it watches for. 0 or
 * RNL_ERR_SYSTEM. */
enum rnl_agent_source { RNL_AGENT_BOOTSTRAP, RNL_AGENT_SOCK, RNL_AGENT_WATCH };
int rnl_agent_watch(struct rnl_agent *, int fd, enum rnl_agent_source source, uint32_t rank, uint32_t events);
void rnl_agent_drop_fd(struct rnl_agent *, int *fd); /* stops watching *fd, closes it, sets it to -1; ignores -1 */
void rnl_agent_drop_cards(struct agent_rank *);
/* Moves the agent's deadline to at_ns if it is later. */
void rnl_agent_wish(struct rnl_agent *, uint64_t at_ns);
/* Sends WELCOME to a rank that is being admitted. Returns what rnl_seqpacket_send does. */
int rnl_agent_welcome(struct rnl_agent *, uint32_t rank);
/* Sends the events and replies that the rank's socket accepts. An error of the socket is left for the loop to find. */
void rnl_agent_flush(void *agent, uint32_t rank);
void rnl_agent_drop_replies(struct agent_rank *);
/* System error e keeps the agent from serving this rank: the next step declares it broken, with e as the cause. */
void rnl_agent_fail(struct rnl_agent *, uint32_t rank, int e);
/* Serve SEGMENT and HAVE. A negative result says that the rank broke the protocol. */
int rnl_agent_give_segment(struct rnl_agent *, uint32_t rank, const struct rnl_msg_segment *request);
int rnl_agent_had_segment(struct rnl_agent *, uint32_t rank, uint32_t other);

/* agent.c. The membership's `changed`: publishes the rank's state on the status page. */
void rnl_agent_changed(void *agent, uint32_t rank);
/* Frees what is kept for a rank that is gone, except its bootstrap socket. */
void rnl_agent_forget(struct rnl_agent *, uint32_t rank);

#endif
