/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire.c - a group's messages on the endpoint. None waits: what has no room is posted, and what cannot be posted
 * waits in a list that credit bounds. */
#include "api/group/group.h"

#include <stdlib.h>

#include "runnel/adapter.h"

/* ---- sending ---- */

static struct out *new_out(struct rnl_group *g)
{
    struct out *out = g->free_outs;
    if (out) {
        g->free_outs = out->next;
        return out;
    }
    out = malloc(sizeof *out);
    if (!out)
        return NULL;
    *out = (struct out){.other = g->outs, .g = g};
    g->outs = out;
    return out;
}

static void free_out(struct out *out)
{
    struct rnl_group *g = out->g;
    rnl_order_item_drop(g->order, out->item);
    out->item = NULL;
    out->next = g->free_outs;
    g->free_outs = out;
}

static void done(void *arg, int status)
{
    struct out *out = arg;
    struct rnl_group *g = out->g;
    (void)status; /* a death is reported by itself */
    free_out(out);
    g->posted--;
    rnl_group_retry(g);
    rnl_group_drain(g);
}

/* Returns RNL_NO_ROOM if it cannot be posted now. */
static int post(struct rnl_group *g, struct out *out)
{
    struct rnl_order_item *item = out->item;
    size_t n = item ? item->bytes : 0;
    const struct rnl_buffer pieces[2] = {{&out->head, sizeof out->head}, {item ? item->data : NULL, n}};
    const struct rnl_message b = {.peer = g->rank[out->to],
                                  .handler = (unsigned)g->opt.handler,
                                  .bound = sizeof out->head + n,
                                  .answer = 0,
                                  .flags = 0};
    rnl_posted *posted;
    int status = rnl_post_held(g->ep, &b, pieces, n ? 2 : 1, done, out, &posted);
    if (status == 0)
        g->posted++;
    else if (status != RNL_NO_ROOM)
        free_out(out);
    return status;
}

/* What cannot be sent for another reason than want of room is lost with its receiver, or this member ends. */
static void lost(struct rnl_group *g, int status)
{
    bool receivers = status == RNL_ERR_PEER_DEAD || status == RNL_ERR_PEER_BROKEN || status == RNL_ERR_CLOSED;
    if (!receivers && status < 0 && status != RNL_NO_ROOM)
        rnl_order_fail(g->order, status);
}

static void tick(void *arg, int status)
{
    struct rnl_group *g = arg;
    (void)status;
    g->ticking = false;
    rnl_group_retry(g);
    rnl_group_drain(g);
}

/* While nothing of this group is in the queue, a message to itself makes it try again. */
static void try_later(struct rnl_group *g)
{
    static const struct rnl_order_head nothing = {.kind = 0};
    const struct rnl_buffer piece = {&nothing, sizeof nothing};
    const struct rnl_message b = {
        .peer = g->ep->rank, .handler = (unsigned)g->opt.handler, .bound = sizeof nothing, .answer = 0, .flags = 0};
    if (g->waiting && !g->posted && !g->ticking)
        g->ticking = rnl_post(g->ep, &b, &piece, 1, tick, g) == 0;
}

void rnl_group_retry(struct rnl_group *g)
{
    for (uint32_t i = 0; g->waiting && i < g->members; i++) {
        struct receiver *p = &g->peer[i];
        while (p->first) {
            struct out *out = p->first, *next = out->next;
            int status = post(g, out);
            if (status == RNL_NO_ROOM)
                break;
            p->first = next;
            g->waiting--;
            lost(g, status);
        }
    }
    try_later(g);
}

static void put_long(struct rnl_group *g, uint32_t to, const struct rnl_order_head *head, struct rnl_order_item *item)
{
    struct receiver *p = &g->peer[to];
    struct out *out = new_out(g);
    if (!out) {
        rnl_order_fail(g->order, RNL_ERR_NO_MEMORY);
        return;
    }
    out->next = NULL;
    out->to = to;
    out->head = *head;
    out->item = item;
    if (item)
        item->refs++;
    int status = p->first ? RNL_NO_ROOM : post(g, out);
    lost(g, status);
    if (status != RNL_NO_ROOM)
        return;
    if (p->first)
        p->last->next = out;
    else
        p->first = out;
    p->last = out;
    g->waiting++;
    try_later(g);
}

/* Sends a message of another kind than the last to its receiver. */
static RNL_NOINLINE int put_short(struct rnl_group *g, uint32_t rank, const void *head, size_t bytes,
                                  const struct rnl_order_item *item)
{
    const size_t n = item ? item->bytes : 0;
    const struct rnl_message b = {
        .peer = rank, .handler = (unsigned)g->opt.handler, .bound = bytes + n, .answer = 0, .flags = 0};
    rnl_stream *s;
    int status = rnl_begin(g->ep, &b, &s);
    if (status < 0)
        return status;
    status = rnl_piece(s, head, bytes);
    if (status == 0 && n)
        status = rnl_piece(s, item->data, n);
    const int ended = status < 0 ? rnl_abort(s) : rnl_end(s);
    return status < 0 ? status : ended;
}

void rnl_group_put(void *ctx, uint32_t to, const struct rnl_order_head *head, struct rnl_order_item *item)
{
    struct rnl_group *g = ctx;
    size_t n = item ? item->bytes : 0;
    if (RNL_LIKELY(n <= RNL_CELL_PAYLOAD - sizeof *head && !g->waiting)) {
        const uint64_t words[] = {head->kind | (uint64_t)head->flags << 8 | (uint64_t)head->member << 16 |
                                      (uint64_t)head->epoch << 32,
                                  head->seq, head->lseq | (uint64_t)head->stable << 32};
        const unsigned handler = (unsigned)g->opt.handler;
        if (RNL_LIKELY(
                rnl_stream_send_parts(g->ep, g->rank[to], handler, words, sizeof words, item ? item->data : NULL, n)))
            return;
        int status = put_short(g, g->rank[to], words, sizeof words, item);
        if (RNL_LIKELY(status == 0))
            return;
        if (status != RNL_NO_ROOM && status != RNL_BUSY) {
            lost(g, status);
            return;
        }
    }
    put_long(g, to, head, item);
}

/* ---- receiving ---- */

static bool has_item(uint8_t kind)
{
    return kind == RNL_ORDER_PB || kind == RNL_ORDER_BB || kind == RNL_ORDER_MESSAGE || kind == RNL_ORDER_FILL ||
           kind == RNL_ORDER_SNAPSHOT;
}

/* Receives the bytes after the head. Returns 0, or RNL_ERR_NO_MEMORY, or that they never come. */
static int take_item(struct rnl_group *g, uint32_t member, rnl_stream *s, size_t n, struct rnl_order_item **out)
{
    struct rnl_order_item *item = rnl_order_item_new(g->order, n);
    if (!item)
        return RNL_ERR_NO_MEMORY;
    int status = 0;
    if (!rnl_stream_receive_short(s, item->data, n)) {
        g->peer[member].taking = item;
        g->taking++;
        status = rnl_receive(s, item->data, n);
        g->taking--;
        g->peer[member].taking = NULL;
    }
    if (status < 0)
        rnl_order_item_drop(g->order, item);
    else
        *out = item;
    return status;
}

int rnl_group_take(rnl_stream *s, unsigned rank, void *ctx)
{
    struct rnl_group *g = ctx;
    struct rnl_order_item *item = NULL;
    struct rnl_order_head head;
    uint32_t member = g->member[rank];
    bool exact;
    size_t n = rnl_stream_length(s, &exact);
    if (RNL_UNLIKELY(member == UINT32_MAX)) /* its set has this rank: it is not to wait for it */
        return rnl_group_take_late(s, rank, NULL);
    if (rank == g->ep->rank)
        return RNL_DONE;
    if (n < sizeof head || n - sizeof head > RNL_ORDER_MESSAGE_MAX ||
        (!rnl_stream_receive_short(s, &head, sizeof head) && rnl_receive(s, &head, sizeof head) < 0)) {
        rnl_order_died(g->order, member);
        return RNL_DONE;
    }
    n -= sizeof head;
    if (n || has_item(head.kind)) {
        int status = take_item(g, member, s, n, &item);
        if (status == RNL_ERR_NO_MEMORY)
            rnl_order_fail(g->order, status);
        else if (status == RNL_ERR_PAST_END)
            rnl_order_died(g->order, member);
        if (status < 0 || g->left) {
            rnl_order_item_drop(g->order, item);
            rnl_group_drain(g);
            return RNL_DONE;
        }
    }
    rnl_order_input(g->order, member, &head, item);
    if (RNL_UNLIKELY(g->waiting))
        rnl_group_retry(g);
    return RNL_DONE;
}

/* Answers a message for a group that was left, or that is another's, so that its sender does not wait for this rank. */
int rnl_group_take_late(rnl_stream *s, unsigned rank, void *ctx)
{
    static const struct rnl_order_head gone = {.kind = RNL_ORDER_GONE};
    const struct rnl_buffer piece = {&gone, sizeof gone};
    const struct rnl_message b = {.peer = rank, .handler = s->handler, .bound = sizeof gone, .answer = 0, .flags = 0};
    struct rnl_order_head head;
    bool alone = rnl_length(s, NULL) == sizeof head;
    (void)ctx;
    if (rnl_receive(s, &head, sizeof head) < 0 || rank == s->ep->rank || head.kind == RNL_ORDER_OUT ||
        (head.kind == RNL_ORDER_GONE && alone))
        return RNL_DONE;
    (void)!rnl_post(s->ep, &b, &piece, 1, NULL, NULL);
    return RNL_DONE;
}
