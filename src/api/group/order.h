/* SPDX-License-Identifier: BSD-3-Clause
 *
 * order.h - the protocol of totally ordered multicast, by itself: events in, actions out through struct
 * rnl_order_ops. It makes no system call, reads no clock and draws no random number; it needs reliable messages
 * between each two members, in the order in which they were sent, and the word of somebody that a member is dead.
 * Members have numbers from 0 on.
 *
 * All members keep the same log. A place of it is a message or a view: the list of those who are in the group from
 * there on. Its members are listed in the order in which they joined, and so in each view:
 * the first, the sequencer, gives out the places. A message gets its place in one of
 * three ways:
 *
 *   PB   its sender gives it to the sequencer, which sends it to all with its place
 *   BB   its sender sends it to all, and the sequencer its place
 *   GSB  its sender asks for a place first, and then sends it to all with it
 *
 * Views of more than FLAT members, and those with several members on one of several hosts, send along a tree from
 * whoever sends to all, in which PB and GSB are used: from host to host, and below one member of each host to the
 * others there.
 *
 * Each member keeps a message until all members of the view have delivered it. A sender sends only while at most
 * half of its share of the budget is kept for it, so a member that takes nothing in holds back all senders, and
 * nobody keeps more than the shares.
 *
 * When a member is found dead, leaves or joins, the first that lives, the coordinator, asks all others for the end of
 * their logs, which they freeze. The longest log is right: its owner, the donor, sends to the others what they
 * lack, and the new view comes next. Whoever has that begins again, and sends anew what has no place. Logs are
 * prefixes of each other at any time, so survivors deliver the same. Each attempt at a new view has a number, its
 * epoch, which is larger than all that any of those asked has agreed to.
 *
 * Who joins asks those of the first view, and is new in the next one. Its log begins there. It holds what comes
 * until the sequencer has sent it the state that the messages before that view have made, which the sequencer takes
 * when it delivers the view, and sends once all members have the view in their logs: so whatever a joiner delivers
 * follows a view that no survivor lacks. Until then it is blank: it sends nothing, is neither sequencer, coordinator
 * nor donor, and begins anew in each further view. */
#ifndef RNL_GROUP_ORDER_H
#define RNL_GROUP_ORDER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RNL_ORDER_MEMBERS_MAX = 1024,
    RNL_ORDER_ITEM_COST = 256,           /* bytes that an item counts besides its own */
    RNL_ORDER_MESSAGE_MAX = 1024 * 1024, /* bytes of a message */
    RNL_ORDER_STATE_MAX = 1 << 30,       /* bytes of the state that is sent to who joins */
    RNL_ORDER_FLAT = 8                   /* the most members or hosts that are no binary tree */
};

enum rnl_order_kind {
    RNL_ORDER_PB = 1,  /* to the sequencer: message `lseq` of its sender */
    RNL_ORDER_BB,      /* to all: message `lseq` of its sender */
    RNL_ORDER_REQUEST, /* to the sequencer: a place for message `lseq` */
    RNL_ORDER_PLACE,   /* to the sender: message `lseq` has place `seq` */
    RNL_ORDER_MESSAGE, /* to all: place `seq` is message `lseq` of `member`, which follows */
    RNL_ORDER_ACCEPT,  /* to all: place `seq` is message `lseq` of `member` */
    RNL_ORDER_ACK,     /* to the sequencer: delivered up to `seq` */
    RNL_ORDER_STABLE,  /* to all: all have delivered up to `stable` */
    RNL_ORDER_FLUSH,   /* from the coordinator: freeze, for `epoch`; the set of those excluded follows */
    RNL_ORDER_STATE,   /* to the coordinator: frozen for `epoch` with `seq` places; the set of those excluded follows */
    RNL_ORDER_REFUSE,  /* to the coordinator: `epoch` is too low, `seq` was agreed to */
    RNL_ORDER_CUT, /* from the coordinator: a struct rnl_order_end of each participant follows; `member` is the donor */
    RNL_ORDER_FILL,     /* from the donor: place `seq`; ROOT says that it is a view */
    RNL_ORDER_GONE,     /* to the coordinator or all: the set of those excluded follows */
    RNL_ORDER_LEAVE,    /* to the coordinator: its sender wants to leave */
    RNL_ORDER_JOIN,     /* its sender wants to join; ROOT: again, having promised `seq`, or to who joins: ask again */
    RNL_ORDER_WELCOME,  /* to who joins, at place `seq`: each one's last `lseq`, 8 bytes, and the view follow */
    RNL_ORDER_SNAPSHOT, /* to who joins: a piece of the state before place `seq`; LAST: there is no more */
    RNL_ORDER_OUT,      /* the receiver is excluded */
    RNL_ORDER_KINDS
};
enum {
    RNL_ORDER_ROOT = 1, /* MESSAGE: the tree begins at `member`; else at the sequencer */
    RNL_ORDER_LEAVING = 2,
    RNL_ORDER_BLANK = 4, /* STATE: its sender has not got the state of the members yet */
    RNL_ORDER_LAST = 8,
    RNL_ORDER_NOTHING = 16 /* SNAPSHOT: the state has no piece */
};

/* What each message begins with, in the byte order of the job.
 *
 *       0       1       2        4               8              16              20              24
 *       +-------+-------+--------+---------------+---------------+---------------+---------------+
 *       | kind  | flags | member |     epoch     |      seq      |     lseq      |    stable     |
 *       +-------+-------+--------+---------------+---------------+---------------+---------------+
 *
 * `lseq`: the lower 32 bits; the upper ones follow from what the receiver has of that member. `stable`: in MESSAGE,
 * ACCEPT, PLACE and STABLE of the sequencer, how far behind `seq` what all have delivered is. */
struct rnl_order_head {
    uint8_t kind, flags;
    uint16_t member;
    uint32_t epoch;
    uint64_t seq;
    uint32_t lseq, stable;
};
static_assert(sizeof(struct rnl_order_head) == 24 && offsetof(struct rnl_order_head, lseq) == 16, "as drawn");
static_assert(RNL_ORDER_MEMBERS_MAX <= UINT16_MAX, "a member's number fits the head");

struct rnl_order_end { /* of a participant, in CUT */
    uint32_t member;
    uint32_t role; /* in the new view: enum rnl_order_role */
    uint64_t seq;  /* the places that it has */
};
enum rnl_order_role { RNL_ORDER_STAYS, RNL_ORDER_LEAVES, RNL_ORDER_JOINS };
static_assert(sizeof(struct rnl_order_end) == 16, "an entry of CUT");

/* A message or view, of which a member keeps one copy. */
struct rnl_order_item {
    struct rnl_order_item *next; /* in one list: own, queued, awaited, early or free */
    uint64_t seq, lseq;          /* seq 0 = it has no place */
    uint32_t sender, bytes, refs;
    uint32_t from;                         /* early: who sent it, and its head */
    uint8_t size_class, view, ready, once; /* once: its memory is not kept for other items */
    struct rnl_order_head head;
    unsigned char data[]; /* a view: its epoch, then its members, 4 bytes each, with RNL_ORDER_NEW */
};
#define RNL_ORDER_NEW 0x80000000u /* the member joins with this view */

struct rnl_order_ops {
    /* Sends head, and item's data unless that is NULL. Never waits, and keeps a reference for as long as it needs
     * one. */
    void (*send)(void *ctx, uint32_t to, const struct rnl_order_head *head, struct rnl_order_item *item);
    void (*deliver)(void *ctx, const struct rnl_order_item *item); /* a message or view; may call rnl_order_send */
    void (*ended)(void *ctx, int status); /* not a member any more: 0 = as it wished, or a status */
    /* The state that has been delivered is asked for, by rnl_order_put_state, or given. NULL: there is none. */
    void (*save)(void *ctx);
    void (*load)(void *ctx, const struct rnl_order_item *piece);
};

struct rnl_order_options {
    uint32_t self, size;  /* the members are 0 to size - 1 */
    const bool *first;    /* those of the first view, by member; NULL = all. Others join in rnl_order_begin */
    const uint32_t *host; /* of each member, the same at all of them: those with one number are near each other. NULL =
                             all are */
    uint64_t budget;      /* bytes that each member keeps, shared by all senders */
    uint32_t small;       /* bytes up to which PB is used; 0 = the default */
    uint32_t flat;        /* the most members or hosts that are no binary tree; 0 = RNL_ORDER_FLAT */
    uint8_t method;       /* RNL_ORDER_PB, _BB or _ASK; 0 = as size and members suggest */
    uint8_t majority;     /* 1 = a view has more than half of the members of the last one, or the group ends */
};

struct rnl_order_stats {
    uint64_t sent, delivered, ordered, forwarded, again, views, refused, kept_bytes;
};

struct rnl_order;
/* Returns NULL if there is no memory. The first view is delivered by rnl_order_begin to those in it. */
struct rnl_order *rnl_order_new(const struct rnl_order_options *opt, const struct rnl_order_ops *ops, void *ctx);
void rnl_order_begin(struct rnl_order *o);
void rnl_order_free(struct rnl_order *o);

/* Returns an item with room for so many bytes and one reference, or NULL. */
struct rnl_order_item *rnl_order_item_new(struct rnl_order *o, size_t bytes);
void rnl_order_item_drop(struct rnl_order *o, struct rnl_order_item *item); /* NULL is allowed */

/* Whether this member may send now. */
bool rnl_order_room(const struct rnl_order *o);
/* Sends the item, whose reference goes to the core. May deliver. Needs rnl_order_room. */
void rnl_order_send(struct rnl_order *o, struct rnl_order_item *item);
/* A message of member `from`, whose item (NULL: no bytes) goes to the core. The item's data is private, all else
 * is checked. */
void rnl_order_input(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                     struct rnl_order_item *item);
/* Tells the order that this member is dead. */
void rnl_order_died(struct rnl_order *o, uint32_t member);
/* This member wants to leave: ops.ended(0) when it has. */
void rnl_order_leave(struct rnl_order *o);
/* In ops.save: adds the item, whose reference goes to the core, to the state that is sent to those who join. false: the
 * state would be too long, counted as who joins counts it, with RNL_ORDER_ITEM_COST for each item. */
bool rnl_order_put_state(struct rnl_order *o, struct rnl_order_item *item);
/* This member cannot go on: informs the others, and ends with that status. */
void rnl_order_fail(struct rnl_order *o, int status);

bool rnl_order_is_idle(const struct rnl_order *o);  /* all that was sent is delivered here */
bool rnl_order_is_blank(const struct rnl_order *o); /* it has not joined yet */
bool rnl_order_has_ended(const struct rnl_order *o);
const struct rnl_order_stats *rnl_order_get_stats(const struct rnl_order *o);

#endif
