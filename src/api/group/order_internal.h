/* SPDX-License-Identifier: BSD-3-Clause
 *
 * order_internal.h - what a member keeps (order.h), and what the files of the protocol call of each other. */
#ifndef RNL_GROUP_ORDER_INTERNAL_H
#define RNL_GROUP_ORDER_INTERNAL_H

#include "api/group/order.h"

#include <string.h>

enum { ITEM_CLASSES = 32, SMALL_FLAT = 2048, SMALL_TREE = 16384, ACK_BYTES_MAX = 32 << 10, EPOCHS_AHEAD_MAX = 1 << 20 };

struct list {
    struct rnl_order_item *first, *last;
    uint64_t bytes; /* that its items cost */
};

struct member {
    bool in_view, excluded, leaving; /* once excluded, it never comes back */
    bool in_first;                   /* in the first view */
    bool joins;                      /* it has asked to be let in */
    bool newly;                      /* in the view: it has joined with it */
    bool was;                        /* it has been in a view */
    bool dropped;                    /* it was new in the view before, and is not in this one */
    bool asked;                      /* while this member joins: it knows of that */
    bool answered, blank;            /* STATE of this attempt has come, and said so */
    uint64_t end;                    /* what STATE or CUT said that it has */
    uint64_t in_log;                 /* lseq of its last message in the log, up to `have` */
    uint64_t seen;                   /* sequencer: lseq of its last message that has a place */
    uint64_t acked;                  /* sequencer: delivered there */
    uint64_t kept_bytes;             /* cost of its messages in the log */
    uint32_t kept;                   /* number of them */
    uint32_t host;                   /* as options give it */
    uint32_t host_at, at;            /* in the view: of its host in the order of hosts, and of itself in by_host */
    uint32_t mark;                   /* that was set last */
    struct list queue;               /* its BB messages that have no place yet */
    struct list awaited;             /* places of its BB messages that have not come; not ready */
};

struct rnl_order {
    const struct rnl_order_ops *ops;
    void *ctx;
    struct rnl_order_options opt;
    struct rnl_order_stats stats;
    struct member *member;

    /* the view */
    uint32_t *view, in_view; /* its members, the oldest first */
    uint32_t *by_host;       /* the same, with those of one host together */
    uint32_t *host_begin;    /* of each host in by_host, and where the last one ends */
    uint32_t hosts;
    bool is_flat;   /* whoever sends to all sends straight to each */
    uint32_t mark;  /* to meet each member once */
    uint32_t epoch; /* of the view */
    uint32_t sequencer;
    uint32_t promised, coordinator; /* the attempt agreed to last, and whose it is */
    bool flushing, ended, delivering, leaves;
    bool install_due;                /* the view of `promised` is in the log */
    bool seek_due, let_in_due;       /* others may have to be asked, or let in */
    bool blank;                      /* it joins, and has not got the state yet */
    struct rnl_order_item *cut_view; /* the view that is to come after place `cut`; NULL = CUT has not come */
    uint64_t cut;
    struct list early; /* messages of views that this member has not reached */
    struct list state; /* sequencer: the pieces for those who join; blank: those that have come */
    uint64_t state_at; /* place of the view that the pieces are for; 0 = there are none */

    /* the log: places stable + 1 to stable + log_mask */
    struct rnl_order_item **log;
    uint64_t log_mask;
    uint64_t stable;               /* all of the view have delivered up to here */
    uint64_t next;                 /* to be delivered */
    uint64_t have;                 /* all places up to here are in the log */
    uint64_t last;                 /* no place after it is in the log */
    uint64_t top;                  /* sequencer: the last place given out */
    uint64_t unacked, unannounced; /* bytes since the last ACK; released since `stable` was last sent */
    uint64_t share;                /* of the budget, for each sender */
    uint64_t ack_bytes;

    struct list own;    /* own messages that are not within `have`, by lseq; seq 0 = without a place */
    uint64_t lseq;      /* of the last one */
    uint64_t own_bytes; /* cost of those that are not stable */
    struct rnl_order_item *spare[ITEM_CLASSES];
};

/* ---- log.c ---- */

static inline uint64_t item_cost(const struct rnl_order_item *item)
{
    return (uint64_t)item->bytes + RNL_ORDER_ITEM_COST;
}
static inline void list_put(struct list *l, struct rnl_order_item *item)
{
    item->next = NULL;
    if (l->first)
        l->last->next = item;
    else
        l->first = item;
    l->last = item;
    l->bytes += item_cost(item);
}
static inline struct rnl_order_item *list_take(struct list *l)
{
    struct rnl_order_item *item = l->first;
    if (item) {
        l->first = item->next;
        l->bytes -= item_cost(item);
    }
    return item;
}
void rnl_order_list_drop(struct rnl_order *o, struct list *l);

static inline struct rnl_order_item **log_slot(struct rnl_order *o, uint64_t seq)
{
    return &o->log[seq & o->log_mask];
}
/* Whether a place can be put into the log, and nothing is there. */
static inline bool log_is_free(struct rnl_order *o, uint64_t seq)
{
    return seq > o->have && seq - o->stable <= o->log_mask && !*log_slot(o, seq);
}
void rnl_order_log_put(struct rnl_order *o, uint64_t seq, struct rnl_order_item *item); /* takes the reference */
/* Puts the item in the place of the one that is awaited there. */
void rnl_order_log_replace(struct rnl_order *o, struct rnl_order_item *awaited, struct rnl_order_item *item);
/* The own message `lseq` that has no place, or NULL. */
struct rnl_order_item *rnl_order_own(const struct rnl_order *o, uint64_t lseq);
/* Forgets all: the log begins at `seq`. */
void rnl_order_log_begin(struct rnl_order *o, uint64_t seq);
/* Forgets all after `have`, but own messages, which lose their places. */
void rnl_order_log_freeze(struct rnl_order *o);
void rnl_order_release(struct rnl_order *o, uint64_t stable);
/* Takes into `have` what follows it, and delivers. */
void rnl_order_advance(struct rnl_order *o);

void rnl_order_welcome(struct rnl_order *o);    /* at the sequencer of a new view: those new in it or dropped */
void rnl_order_give_state(struct rnl_order *o); /* if all have the view */
void rnl_order_drop_state(struct rnl_order *o);

/* ---- order.c ---- */

static inline struct rnl_order_head head_of(const struct rnl_order *o, enum rnl_order_kind kind, uint64_t seq)
{
    return (struct rnl_order_head){.kind = (uint8_t)kind, .epoch = o->epoch, .seq = seq};
}
/* The message of that member that the head is about: the one nearest to what the log has of it. */
static inline uint64_t lseq_of(const struct rnl_order *o, uint32_t sender, const struct rnl_order_head *head)
{
    const uint64_t near = o->member[sender].in_log;
    return near + (uint64_t)(int64_t)(int32_t)(head->lseq - (uint32_t)near);
}
static inline void send_head(struct rnl_order *o, uint32_t to, const struct rnl_order_head *head,
                             struct rnl_order_item *item)
{
    if (to != o->opt.self && !o->member[to].excluded)
        o->ops->send(o->ctx, to, head, item);
}
void rnl_order_place_own(struct rnl_order *o, struct rnl_order_item *item); /* a first time, or anew in a new view */
void rnl_order_note_ack(struct rnl_order *o, uint32_t member, uint64_t seq);
void rnl_order_acknowledge(struct rnl_order *o);
void rnl_order_normal(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                      struct rnl_order_item *item);

/* ---- tree.c ---- */

/* The view has changed. */
void rnl_order_tree(struct rnl_order *o);
/* From whom this member gets what `root` sends to all. */
uint32_t rnl_order_parent(const struct rnl_order *o, uint32_t root);
/* Sends on what `root` sends to all, as far as it is this member's part; where none is passed on, not to `but`. */
void rnl_order_to_all(struct rnl_order *o, uint32_t root, uint32_t but, const struct rnl_order_head *head,
                      struct rnl_order_item *item);

/* ---- join.c ---- */

/* Asks to be let in. */
void rnl_order_join(struct rnl_order *o);
/* Does what is due: see seek_due, let_in_due. */
void rnl_order_join_due(struct rnl_order *o);
bool rnl_order_join_input(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                          struct rnl_order_item *item);

/* ---- view.c ---- */

/* Whether the item is a view. */
bool rnl_order_is_view(struct rnl_order *o, const struct rnl_order_item *item);
/* The first of the view that is not excluded. */
uint32_t rnl_order_oldest(const struct rnl_order *o);
/* Makes a new view, or informs whoever does. */
void rnl_order_start(struct rnl_order *o);

/* Member `from` has broken the protocol. */
void rnl_order_bad(struct rnl_order *o, uint32_t from);
void rnl_order_view_input(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                          struct rnl_order_item *item);
/* The view item is within `have`. */
void rnl_order_view_reached(struct rnl_order *o, const struct rnl_order_item *item);
/* Begins to send and receive in the new view. */
void rnl_order_install(struct rnl_order *o);
void rnl_order_note_death(struct rnl_order *o, uint32_t member);
void rnl_order_wish_to_leave(struct rnl_order *o);
void rnl_order_end(struct rnl_order *o, int status);

#endif
