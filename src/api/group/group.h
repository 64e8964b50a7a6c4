/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group.h - a group at one member: the protocol (order.h), and what it needs of the endpoint. */
#ifndef RNL_GROUP_GROUP_H
#define RNL_GROUP_GROUP_H

#include "api/group/order.h"
#include "runnel/group.h"
#include "stream/stream.h"

enum rnl_group_counter { RNL_GROUP_SENT, RNL_GROUP_DELIVERED, RNL_GROUP_VIEWS, RNL_GROUP_WAITS, RNL_GROUP_COUNTERS };

/* A message that the endpoint has in a queue, or that waits for room there. */
struct out {
    struct out *next;  /* of those that wait, or of those that are free */
    struct out *other; /* of all */
    struct rnl_group *g;
    struct rnl_order_item *item;
    uint32_t to;
    struct rnl_order_head head;
};
struct receiver {
    struct out *first, *last;      /* that wait for room */
    struct rnl_order_item *taking; /* of the message whose bytes have not all arrived */
};

struct rnl_group {
    struct rnl_endpoint *ep;
    struct rnl_order *order;
    struct rnl_ep_watch watch;
    struct rnl_group_options opt;
    uint64_t *count;       /* by enum rnl_group_counter, in the page of ep */
    unsigned *rank;        /* of each member */
    uint32_t *member;      /* of each rank; UINT32_MAX = none */
    unsigned *in_view;     /* ranks, for `changed` */
    struct receiver *peer; /* by member */
    struct out *outs, *free_outs;
    uint64_t waits;
    uint32_t members;
    uint32_t waiting; /* outs that wait for room */
    uint32_t posted;  /* outs that the endpoint has */
    uint32_t taking;  /* handlers that wait for bytes */
    int status;       /* why it has ended */
    bool leaves, left, ticking, saving;
};

extern const struct rnl_iface rnl_group_iface;

/* ---- wire.c ---- */

/* The handler of a group's messages, and the one that comes after it. */
int rnl_group_take(rnl_stream *s, unsigned rank, void *ctx);
int rnl_group_take_late(rnl_stream *s, unsigned rank, void *ctx);
void rnl_group_put(void *ctx, uint32_t to, const struct rnl_order_head *head, struct rnl_order_item *item);
/* Posts what waits for room. */
void rnl_group_retry(struct rnl_group *g);
/* Frees the group if nothing of it is in use. */
void rnl_group_drain(struct rnl_group *g);

/* ---- group.c ---- */

void rnl_group_free(struct rnl_group *g);

#endif
