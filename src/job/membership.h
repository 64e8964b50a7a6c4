/* SPDX-License-Identifier: BSD-3-Clause
 *
 * membership.h - who is in a job, who gets which event, which segments pairs of ranks share, and when it may close.
 * Pure: it reads no clock and makes no system call, and allocates only its own records. The agent of a host, the hub of
 * a process and the virtual cluster carry it: they bring events to ranks, own the memory of segments, and find deaths.
 *
 * A rank:
 *
 *                 join                       gone, after the close is done
 *    STARTING ------------> JOINED ------------------------------------------> LEFT
 *      |   ^                 |  | ^                                              ^
 *      |   +---- unjoin -----+  | | rejoin: another process of another           |
 *      |                   gone | | incarnation                                  |
 *      |                        v |                                              |
 *      +------- gone ---------> DEAD         (STARTING, gone after the close) ---+
 *
 * Events. Each rank of this host has a queue. A death is queued for every rank that is not gone, once, before the next
 * wave of the close is asked for. What is queued for one rank is bounded: a connection, a disconnection and a death for
 * each incarnation of each peer, and waves between them. If an event is lost for want of memory, the rank gets what was
 * queued before it, then RNL_EVENT_JOB_GONE, and nothing else.
 *
 * A segment of a pair belongs to one incarnation of each rank. Each of its two sides:
 *
 *               open            settle          close
 *    WANTED ------------> OPEN --------> HAD ------------> DONE
 *      ^  |                |                                ^
 *      |  |     close      |                                |
 *      |  +<---------------+                                |
 *      +--- its rank has died or left ----------------------+
 *
 * Its memory is released when both sides are DONE. A rank that dies in OPEN or HAD keeps its side until it closes it.
 *
 * The close: detection of termination by waves of reports (F. Mattern, "Algorithms for distributed termination
 * detection", Distributed Computing 2, 1987: the four-counter method with one counter a rank). A rank that is in close
 * and idle reports (wave, activity); activity counts the messages that it ever sent or handled. Wave 0 is what ranks
 * report unasked. When every rank has reported wave k, wave k + 1 is asked for, so each report of k + 1 is made after
 * every report of k. If then the activity of each rank is what it was in wave k, all were idle at the moment between
 * the waves, and as an idle rank has had all its bytes read, nothing was under way either: the close is done. A rank
 * that dies or returns makes its wave inconclusive: reports may have been made before its last bytes arrived. A rank
 * that has not joined yet, or that does not report, holds the close up.
 *
 * In a job of several hosts each host has a membership, and one, the leader's, decides. They send each other messages
 * in order (struct rnl_word); the leader's go to all others, theirs to the leader. */
#ifndef RNL_JOB_MEMBERSHIP_H
#define RNL_JOB_MEMBERSHIP_H

#include "base/env.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rnl_rank_state {
    RNL_RANK_STARTING = 0, /* its process lives and has not joined */
    RNL_RANK_JOINED,
    RNL_RANK_LEFT, /* after the close */
    RNL_RANK_DEAD
};

enum rnl_word_kind {
    /* to the leader */
    RNL_WORD_JOINED = 1, /* rank */
    RNL_WORD_UNJOINED,   /* rank: its open failed after it had joined; it may join again */
    RNL_WORD_REPORT,     /* rank, wave, activity */
    RNL_WORD_GONE,       /* rank, why, detail */
    /* to and from the leader */
    RNL_WORD_DISCONNECT, /* rank disconnects from `other`, which broke the protocol */
    /* from the leader */
    RNL_WORD_DEATH,   /* rank, why, detail */
    RNL_WORD_REQUEST, /* wave */
    RNL_WORD_DONE     /* wave */
};
struct rnl_word {
    uint32_t kind, rank, other;
    int32_t why, detail, reserved; /* reserved: 0, since the launcher's agents send this structure as it lies */
    uint64_t wave, activity;
};

struct rnl_segment {
    uint32_t rank[2]; /* the lower one first; equal: the segment of a rank with itself */
    int index;        /* for rnl_membership_segment_at; -1 if the membership is not `indexed` */
    uint64_t bytes;
    void *base; /* its memory, set and owned by a carrier that shares an address space with the ranks */
    int fd;     /* its memory file, set and owned by any other carrier */
};

struct rnl_membership;

/* The callbacks run within calls of the membership and may call only its rnl_membership_next, _took, _state and
 * _incarnation. All but `make` may be NULL. */
struct rnl_membership_options {
    uint32_t size;
    const bool *is_here; /* by rank: whether it is on this host; copied; NULL = all are */
    bool leads;          /* it decides on waves: all ranks are here, or this is the one leader of several hosts */
    bool indexed;        /* segments have an index */
    void *arg;
    void (*notify)(void *arg, uint32_t rank);               /* an event is queued for this rank, which is here */
    void (*changed)(void *arg, uint32_t rank);              /* its state changed; no event about it is queued yet */
    void (*publish)(void *arg, const struct rnl_word *);    /* sends to the leader, or from it to all others */
    int (*make)(void *arg, struct rnl_segment *);           /* sets base or fd; 0, or what rnl_fail returned */
    void (*release)(void *arg, const struct rnl_segment *); /* frees base or fd, which nobody needs any more */
};

/* Makes a membership in which every rank is STARTING. 0 or RNL_ERR_NO_MEMORY. */
int rnl_membership_new(const struct rnl_membership_options *, struct rnl_membership **out);
void rnl_membership_free(struct rnl_membership *); /* releases the segments that are left */

/* ---- ranks ---- */

/* Rank joins. 0; RNL_ERR_JOB: it has been in the job before; RNL_ERR_NO_MEMORY. Incarnation 0 stands for rank + 1, in a
 * job whose ranks do not rejoin. */
int rnl_membership_join(struct rnl_membership *, uint32_t rank, uint64_t incarnation);
/* Takes back the join of a rank that has done nothing since: its state is STARTING again. */
void rnl_membership_unjoin(struct rnl_membership *, uint32_t rank);
/* Another process joins as a rank that died or has not joined yet, in a job of one membership. Its peers get an event,
 * and its own queue begins with the state that they know. 0; RNL_ERR_JOB: the rank lives, or the job has closed;
 * RNL_ERR_NO_MEMORY. */
int rnl_membership_rejoin(struct rnl_membership *, uint32_t rank, uint64_t incarnation);
/* Rank died, left, or will never join. No effect on a rank that is gone already. */
void rnl_membership_gone(struct rnl_membership *, uint32_t rank, int why, int detail);
/* Rank found that `other` breaks the protocol: `other` gets, once, the event that rank is dead
 * (RNL_DEATH_DISCONNECTED). No other rank does, since what one rank claims of another proves nothing. RNL_ERR_JOB: rank
 * and other are the same. */
int rnl_membership_disconnect(struct rnl_membership *, uint32_t rank, uint32_t other);
/* Rank reports for a wave. A later report for the same wave replaces the first; one for an earlier wave is ignored.
 * RNL_ERR_JOB: the rank is not in the job, or that wave was not asked for. */
int rnl_membership_report(struct rnl_membership *, uint32_t rank, uint64_t wave, uint64_t activity);
/* Takes in a message of another membership. RNL_ERR_JOB: a membership in that role does not send it. */
int rnl_membership_receive(struct rnl_membership *, const struct rnl_word *);

enum rnl_rank_state rnl_membership_state(const struct rnl_membership *, uint32_t rank);
void rnl_membership_death(const struct rnl_membership *, uint32_t rank, int32_t *why, int32_t *detail); /* once gone */
bool rnl_membership_closed(const struct rnl_membership *);
/* Returns the incarnation of rank that the events which `self` has taken last named, 0 if rank has not joined: not that
 * of a process that rejoined as rank, as long as self has not taken the event about it. */
uint64_t rnl_membership_incarnation(const struct rnl_membership *, uint32_t self, uint32_t rank);

/* ---- events ---- */

/* Returns the oldest event of rank's queue, NULL = none. It stays queued until rnl_membership_took. */
const struct rnl_event *rnl_membership_next(struct rnl_membership *, uint32_t rank);
void rnl_membership_took(struct rnl_membership *, uint32_t rank);
bool rnl_membership_event(struct rnl_membership *, uint32_t rank, struct rnl_event *out); /* next and took in one */
/* How many events were ever queued for rank, and taken. A carrier that sends other messages orders them by these. */
uint64_t rnl_membership_queued(const struct rnl_membership *, uint32_t rank);
uint64_t rnl_membership_taken(const struct rnl_membership *, uint32_t rank);
/* An event for rank was lost: behind what is queued, rank gets only RNL_EVENT_JOB_GONE. */
void rnl_membership_cut_off(struct rnl_membership *, uint32_t rank);

/* ---- segments ---- */

enum rnl_segment_verdict {
    RNL_SEGMENT_FOUND = 0,
    RNL_SEGMENT_NONE,  /* there is none yet: make it by rnl_membership_segment_add */
    RNL_SEGMENT_DEAD,  /* the other rank is gone and made none */
    RNL_SEGMENT_TWICE, /* this rank has opened it before */
    RNL_SEGMENT_BYTES  /* the other rank made it with another size */
};
/* Looks for the segment of rank and other on behalf of rank (bytes 0: of any size). */
enum rnl_segment_verdict rnl_membership_segment(struct rnl_membership *, uint32_t rank, uint32_t other, uint64_t bytes,
                                                struct rnl_segment **out);
/* After NONE: has the carrier make the segment and queues an event for the other rank. 0, RNL_ERR_NO_MEMORY, or what
 * `make` returned. */
int rnl_membership_segment_add(struct rnl_membership *, uint32_t rank, uint32_t other, uint64_t bytes,
                               struct rnl_segment **out);
/* Finds or makes the segment and opens rank's side of it. RNL_ERR_PEER_DEAD or RNL_ERR_JOB if rank cannot have it. For
 * carriers with `indexed`. */
int rnl_membership_segment_open(struct rnl_membership *, uint32_t rank, uint32_t other, uint64_t bytes, int *index);
/* Sets *at to that part of the segment's memory. 0; RNL_ERR_ARG: it does not lie within the segment. */
int rnl_membership_segment_map(struct rnl_membership *, int index, size_t offset, size_t bytes, void **at);
struct rnl_segment *rnl_membership_segment_at(struct rnl_membership *, int index); /* NULL: released */
/* Rank has mapped the segment and will not ask for it again. */
void rnl_membership_segment_mapped(struct rnl_membership *, struct rnl_segment *, uint32_t rank);
/* Rank gives its side up. No effect on NULL, or on a side that is DONE. */
void rnl_membership_segment_close(struct rnl_membership *, struct rnl_segment *, uint32_t rank);

#endif
