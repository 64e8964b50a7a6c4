/* SPDX-License-Identifier: BSD-3-Clause
 *
 * membership_internal.h - the state that the two files of the membership share: membership.c has ranks, events and the
 * close, membership_segment.c the segments. */
#ifndef RNL_JOB_MEMBERSHIP_INTERNAL_H
#define RNL_JOB_MEMBERSHIP_INTERNAL_H

#include "base/hash.h"
#include "job/membership.h"

enum rnl_segment_side { WANTED = 0, OPEN, HAD, DONE };

struct rnl_segment_record {
    struct rnl_segment segment; /* first */
    struct {
        uint32_t rank[2], returns[2];
    } key;
    uint8_t side[2]; /* enum rnl_segment_side */
    UT_hash_handle hh;
};

struct rnl_member {
    enum rnl_rank_state state;
    bool is_here, has_joined;
    bool reported;      /* in this wave */
    bool lost;          /* an event for it was lost: when its queue is empty, it gets RNL_EVENT_JOB_GONE */
    bool gone_reported; /* it got that event */
    uint32_t returns;   /* how often another process rejoined as this rank */
    uint64_t incarnation, before;
    int32_t why, detail;           /* the reason of its death */
    uint64_t activity, activity_0; /* from its reports for this wave and for the one before */
    struct rnl_event *events;      /* a ring: event n is at n % room */
    uint64_t taken, queued;
    uint32_t room;
};

struct rnl_membership {
    struct rnl_membership_options opt;
    uint64_t wave; /* the last wave that was asked for */
    uint32_t starting, joined, reported;
    bool inconclusive; /* a rank died or rejoined during this wave */
    bool done;
    struct rnl_segment_record *records;
    struct rnl_segment **at; /* by index */
    int indices, indices_room;
    unsigned char *mapped;       /* bit rank * size + other: rank has mapped its segment with other */
    unsigned char *disconnected; /* bit rank * size + other: rank has disconnected from other */
    uint32_t *seen; /* [self * size + rank]: the value of rank's `returns` that self knows; NULL = no rank rejoined */
    struct rnl_member member[];
};

static inline bool rnl_member_is_gone(const struct rnl_member *r)
{
    return r->state == RNL_RANK_DEAD || r->state == RNL_RANK_LEFT;
}

static inline bool rnl_member_bit(const unsigned char *bits, size_t n)
{
    return bits[n / 8] >> n % 8 & 1;
}

static inline void rnl_member_set_bit(unsigned char *bits, size_t n, bool on)
{
    unsigned char mask = (unsigned char)(1u << n % 8);
    bits[n / 8] = (unsigned char)(on ? bits[n / 8] | mask : bits[n / 8] & ~mask);
}

static inline size_t rnl_member_pair(const struct rnl_membership *m, uint32_t rank, uint32_t other)
{
    return (size_t)rank * m->opt.size + other;
}

/* membership.c. Queues the event for `rank` that `from` has made their segment. */
void rnl_member_connect(struct rnl_membership *, uint32_t rank, uint32_t from);
uint32_t rnl_member_returns_seen(const struct rnl_membership *, uint32_t self, uint32_t rank);

/* membership_segment.c. Rank is gone: its sides that are WANTED become DONE. */
void rnl_member_drop_wanted(struct rnl_membership *, uint32_t rank);
/* Queues the events about segments that rank has not opened again. */
void rnl_member_connect_again(struct rnl_membership *, uint32_t rank);
void rnl_member_release_all(struct rnl_membership *);

#endif
