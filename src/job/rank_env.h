/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rank_env.h - what the envs of the job have in common, whoever serves them (an agent, the ranks of the host
 * themselves, a hub): the operations that need the host only, the descriptor to wait on, and the table of segments that
 * are mapped from memory files. In a forked child every operation fails. */
#ifndef RNL_JOB_RANK_ENV_H
#define RNL_JOB_RANK_ENV_H

#include "base/env.h"
#include "job/waitfd.h"

#include <stdbool.h>
#include <sys/types.h>

enum rnl_segment_state {
    RNL_SEGMENT_ABSENT = 0,
    RNL_SEGMENT_REQUESTED, /* the agent has been asked for it */
    RNL_SEGMENT_HERE,      /* the agent has sent its descriptor */
    RNL_SEGMENT_REJECTED,  /* the agent has not; the next call returns the reason */
    RNL_SEGMENT_OPEN,      /* it is being mapped */
    RNL_SEGMENT_MAPPED     /* everything wanted of it is mapped */
};
struct rnl_rank_segment {
    uint8_t state, result; /* enum rnl_segment_state; in state REJECTED: enum rnl_segment_verdict */
    int32_t sys_errno;     /* in state REJECTED */
    int32_t fd;            /* in states HERE and OPEN: its file, to be closed unless it is `file` below */
    uint64_t offset;       /* where it begins in its file */
};

struct rnl_rank_env {
    struct rnl_env env; /* first */
    pid_t owner;
    struct rnl_waitfd wait;
    int file;                         /* a memory file of several segments, -1 = none */
    struct rnl_rank_segment *segment; /* a segment's number is its index here */
    uint32_t segments, own_segment;   /* how many; the number of the one that this rank shares with itself */
    struct rnl_notes *notes;          /* NULL = nothing is shown */
    uint32_t wires;                   /* the wires of the cards that this rank drives: bit w is wire w */
    char *heads; /* address space for the first RNL_SEGMENT_HEAD bytes of each, side by side; NULL = none yet */
};

static inline struct rnl_rank_env *rnl_rank_env_of(struct rnl_env *env)
{
    return (struct rnl_rank_env *)(void *)env;
}

/* Begins a zero-filled env. */
void rnl_rank_env_init(struct rnl_rank_env *, const struct rnl_env_ops *);
/* Makes the table of segments. 0 or RNL_ERR_NO_MEMORY. */
int rnl_rank_env_segments(struct rnl_rank_env *, uint32_t segments, uint32_t own);
/* Frees all but the struct itself; the socket of datagrams, too, if no endpoint has taken it over. */
void rnl_rank_env_end(struct rnl_rank_env *);
int rnl_rank_env_forked(const struct rnl_env *); /* 0 or RNL_ERR_FORKED */
struct rnl_rank_beside {                         /* what datagrams may go by beside a UDP socket */
    int rings, memory; /* an AF_XDP socket for the same port, -1 = none, and the memory of its queue */
    uint32_t cards;    /* how many, */
    const int *card;   /* and the descriptors of each (net/socket/i8255x/grant.h) */
};
/* Makes this UDP socket, which it owns in any case, the env's transport to other hosts, with what is beside it. The
 * descriptors of `beside` stay the caller's. What does not go by these goes without. 0 or a negative rnl_status. */
int rnl_rank_env_connect(struct rnl_rank_env *, int udp, const struct rnl_rank_beside *beside);
/* scope: of an address of a card, the number of its wire (net/socket/i8255x/i8255x.h), otherwise 0. */
void rnl_rank_address(const uint8_t ip[16], uint32_t scope, uint16_t port, bool same_kernel, uint64_t incarnation,
                      struct rnl_rank_address *out);
/* 0; RNL_ERR_FORKED; or RNL_ERR_JOB: the segment with this rank, of this number, was opened before. */
int rnl_rank_segment_check(const struct rnl_rank_env *, uint32_t rank, uint32_t segment);

int rnl_rank_env_fd(struct rnl_env *);
void rnl_rank_env_fd_drain(struct rnl_env *);
void rnl_rank_env_fd_until(struct rnl_env *, uint64_t ns);
void rnl_rank_env_fd_raise(struct rnl_env *, uint32_t rank);
int rnl_rank_env_fd_watch(struct rnl_env *, int fd);
void rnl_rank_env_show(struct rnl_env *, const char *lines, size_t bytes);
int rnl_rank_segment_map(struct rnl_env *, int segment, size_t offset, size_t bytes, int writable, void **at);
void rnl_rank_segment_unmap(struct rnl_env *, int segment, void *at, size_t bytes);
void rnl_rank_segment_mapped(struct rnl_env *, int segment);
void rnl_rank_segment_close(struct rnl_env *, int segment);

/* The entries of a table of operations that all envs fill alike. */
#define RNL_RANK_ENV_OPS                                                                                               \
    .size = sizeof(struct rnl_env_ops), .now_ns = rnl_host_now_ns, .random = rnl_host_random, .yield = rnl_host_yield, \
    .park = rnl_host_park, .wake = rnl_host_wake, .heavy_fence = rnl_host_heavy_fence,                                 \
    .sense_load = rnl_host_sense_load, .sense_fence = rnl_host_sense_fence, .park_on = rnl_host_park_on,               \
    .fd = rnl_rank_env_fd, .fd_drain = rnl_rank_env_fd_drain, .fd_until = rnl_rank_env_fd_until,                       \
    .fd_raise = rnl_rank_env_fd_raise, .fd_watch = rnl_rank_env_fd_watch, .show = rnl_rank_env_show

#endif
