/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group.h - totally ordered multicast: whatever the members of a group send is delivered by all of them once, in
 * one order, their own messages included. Programs that begin in the same state and change it only by what is
 * delivered stay the same: state machines are replicated so.
 *
 * A group is a set of ranks of one job under a handler number. Its members see one sequence of messages and views,
 * numbered from 1; a view tells who is in the group from there on. The messages of each sender keep their order.
 * When a member dies, be it the sequencer, the others go on in a new view. All who live deliver the same messages
 * before it, and what the dead member had sent is delivered by all or by none of them. Who leaves or is found dead
 * never comes back.
 *
 * Ranks of the set that are not in the first view join while the group runs: they open it, and are in a view some
 * time later, in the same order as all else. A joiner is given the state before that view by a member (`save`, `load`),
 * and delivers what the others do from the view on.
 *
 * Progress is that of the endpoint: messages are taken in, and the functions below called, in rnl_extract, rnl_wait
 * and sends that wait, and in the calls of this file. In these functions the rules of a handler hold;
 * rnl_group_send is allowed. runnel-group(7) tells how it works. */
#ifndef RNL_GROUP_H
#define RNL_GROUP_H

#include "runnel/runnel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rnl_group rnl_group; /* opaque */

struct rnl_group_message {
    uint64_t number; /* in the common sequence */
    unsigned sender; /* rank */
    const void *buf; /* n bytes, private to this process, until the function returns */
    size_t n;
};
struct rnl_group_view {
    uint64_t number;
    unsigned count;        /* members */
    const unsigned *ranks; /* ascending, until the function returns */
    unsigned sequencer;    /* rank of the one that gives out the numbers from here on: the longest in the group */
};
/* Called for each message and each view, in order, with the ctx of the options. */
typedef void rnl_group_deliver(rnl_group *g, const struct rnl_group_message *m, void *ctx);
typedef void rnl_group_changed(rnl_group *g, const struct rnl_group_view *v, void *ctx);
/* Called at one member before it delivers a view in which others join: hands to rnl_group_put_state all that a joiner
 * has to know of what was delivered so far. May be called again for the same joiner. */
typedef void rnl_group_save(rnl_group *g, void *ctx);
/* Called at a joiner with each piece that was put there, in order, once, before anything is delivered to it. */
typedef void rnl_group_load(rnl_group *g, const void *buf, size_t n, void *ctx);
/* Called once if this rank is not a member any more without having left; nothing is delivered after it. status is
 * RNL_ERR_REFUSED: others took this rank for dead, more than half of the members are gone (RNL_GROUP_MAJORITY), or this
 * rank joins and all are gone who have the state, or all others of the set; or RNL_ERR_NO_MEMORY. */
typedef void rnl_group_ended(rnl_group *g, int status, void *ctx);

/* How a message gets its number; runnel-group(7). */
enum rnl_group_method {
    RNL_GROUP_AUTO, /* by its length and the number of members */
    RNL_GROUP_PB,   /* the sender gives it to the sequencer, which sends it to all */
    RNL_GROUP_BB,   /* the sender sends it to all, the sequencer its number; as GSB where a tree is used */
    RNL_GROUP_GSB   /* the sender asks for a number and then sends it to all */
};
enum {
    RNL_GROUP_MAJORITY =
        1, /* a view has more than half of the members of the one before, or the group ends here: of hosts that
                               lose each other at most one side goes on */
    RNL_GROUP_MESSAGE_MAX = 1 << 20, /* bytes of a message */
    RNL_GROUP_STATE_MAX = 1 << 30,   /* bytes of the state that a joiner is given; each piece counts 256 more */
    RNL_GROUP_MEMBERS_MAX = 1024
};

struct rnl_group_options {
    uint32_t size; /* sizeof(struct rnl_group_options); fields are added at the end */
    uint32_t flags;
    int handler;           /* number in the endpoint's handler table, for this group only, the same at all members */
    unsigned count;        /* those who may be members; 0 = all ranks of the job */
    const unsigned *ranks; /* these, ascending, with this rank; the same at all members; copied */
    size_t budget; /* bytes that each member keeps for the others, shared by all senders; 0 = 2 MiB. The same at all */
    enum rnl_group_method method;
    unsigned flat; /* hosts, and members on one host, that need no binary tree; 0 = 8. The same at all members */
    rnl_group_deliver *deliver;
    rnl_group_changed *changed; /* may be NULL */
    rnl_group_ended *ended;     /* may be NULL */
    void *ctx;
    unsigned first_count;        /* ranks of the first view; 0 = all of the set */
    const unsigned *first_ranks; /* these, ascending; the same at all members; copied. The others join */
    rnl_group_save *save;        /* may be NULL: joiners know nothing of what was before */
    rnl_group_load *load;        /* may be NULL */
};

/* Makes this rank a member. All ranks of the first view call it, with the same set, at any time: what is sent before
 * waits for them. Does not block. Calls `changed` for the first view before it returns. A rank that is not in the first
 * view asks to join, at any time or never; it is a member when its `changed` is called, in which the view has it, and
 * until then its sends find no room. Returns 0,
 * RNL_ERR_ARG, RNL_ERR_RANK, RNL_ERR_HANDLER, RNL_ERR_NO_MEMORY, RNL_ERR_FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_group_open(rnl_endpoint *ep, const struct rnl_group_options *opt, rnl_group **out);

/* Sends the pieces as one message to all members. They belong to the caller again on return. Waits while as much
 * as this member may have sent ahead is not delivered by all, and runs handlers meanwhile; inside handlers, and
 * with RNL_NO_WAIT in flags, it returns RNL_NO_ROOM instead. May call `deliver`, for this message, too. Returns 0,
 * RNL_NO_ROOM, RNL_ERR_ARG (flags), RNL_ERR_TOO_LONG, RNL_ERR_NO_MEMORY, RNL_ERR_CLOSED (this rank leaves),
 * RNL_ERR_REFUSED (the group has ended here), or what rnl_wait returns. A message that was taken is delivered here
 * unless the group ends. */
RNL_PUBLIC RNL_CHECK int rnl_group_send(rnl_group *g, const struct rnl_buffer *pieces, unsigned count, unsigned flags);

/* Waits until what this rank has sent is delivered here, leaves the group, and frees it. The others see a view
 * without this rank. Call it before rnl_close. Blocks and runs handlers; timeout_ns bounds it (negative: no
 * limit). Returns 0; RNL_TIMED_OUT: g is still there, call again; RNL_ERR_CONTEXT inside handlers; RNL_ERR_FORKED
 * (nothing is freed); else what rnl_wait returns, and g is freed: the others then find this rank dead. */
RNL_PUBLIC RNL_CHECK int rnl_group_leave(rnl_group *g, int64_t timeout_ns);

/* In `save`: adds bytes, which are copied, to the state; each call is a piece, which is at most RNL_GROUP_MESSAGE_MAX
 * long. Returns 0, RNL_ERR_TOO_LONG (the piece or the state), RNL_ERR_NO_MEMORY (nothing is given then, and this rank
 * is not a member any more), RNL_ERR_CONTEXT (not in `save`), RNL_ERR_FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_group_put_state(rnl_group *g, const void *buf, size_t n);

struct rnl_group_stats {
    uint64_t sent, delivered;
    uint64_t numbered;  /* messages that got their number here */
    uint64_t forwarded; /* messages passed on in a tree */
    uint64_t again;     /* messages sent again for a new view */
    uint64_t views, waits;
    uint64_t refused;    /* messages of members that broke the protocol, each of which is excluded */
    uint64_t kept_bytes; /* kept for others now */
};
/* Copies them to *out. */
RNL_PUBLIC void rnl_group_get_stats(const rnl_group *g, struct rnl_group_stats *out);

#ifdef __cplusplus
}
#endif
#endif
