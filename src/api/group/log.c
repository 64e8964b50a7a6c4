/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log.c - a member's log (order.h): its items, what is kept, and what is delivered. */
#include "api/group/order_internal.h"

#include <stdlib.h>

/* ---- items ---- */

static unsigned class_of(size_t bytes)
{
    unsigned c = 0;
    while (((size_t)64 << c) < bytes)
        c++;
    return c;
}

/* Memory of items is used again, which keeps it near; what all classes hold is bounded by what was kept once. */
struct rnl_order_item *rnl_order_item_new(struct rnl_order *o, size_t bytes)
{
    unsigned c = class_of(bytes);
    struct rnl_order_item *item = o->spare[c];
    if (item)
        o->spare[c] = item->next;
    else if (!(item = malloc(sizeof *item + ((size_t)64 << c))))
        return NULL;
    item->next = NULL;
    item->seq = item->lseq = 0;
    item->bytes = (uint32_t)bytes;
    item->sender = item->from = 0;
    item->refs = 1;
    item->size_class = (uint8_t)c;
    item->view = 0;
    item->ready = 1;
    return item;
}

void rnl_order_item_drop(struct rnl_order *o, struct rnl_order_item *item)
{
    if (!item || --item->refs)
        return;
    item->next = o->spare[item->size_class];
    o->spare[item->size_class] = item;
}

void rnl_order_list_drop(struct rnl_order *o, struct list *l)
{
    struct rnl_order_item *item;
    while ((item = list_take(l)))
        rnl_order_item_drop(o, item);
}

/* ---- the log ---- */

void rnl_order_log_put(struct rnl_order *o, uint64_t seq, struct rnl_order_item *item)
{
    item->seq = seq;
    *log_slot(o, seq) = item;
    o->stats.kept_bytes += item_cost(item);
    if (item->view)
        return;
    o->member[item->sender].kept_bytes += item_cost(item);
    o->member[item->sender].kept++;
}

static void count_out(struct rnl_order *o, const struct rnl_order_item *item)
{
    o->stats.kept_bytes -= item_cost(item);
    if (item->view)
        return;
    o->member[item->sender].kept_bytes -= item_cost(item);
    o->member[item->sender].kept--;
}

void rnl_order_log_replace(struct rnl_order *o, struct rnl_order_item *awaited, struct rnl_order_item *item)
{
    count_out(o, awaited);
    rnl_order_log_put(o, awaited->seq, item);
    rnl_order_item_drop(o, awaited);
}

struct rnl_order_item *rnl_order_own(const struct rnl_order *o, uint64_t lseq)
{
    struct rnl_order_item *item = o->own.first;
    while (item && (item->lseq != lseq || item->seq))
        item = item->next;
    return item;
}

static void forget(struct rnl_order *o, uint64_t seq)
{
    struct rnl_order_item *item = *log_slot(o, seq);
    *log_slot(o, seq) = NULL;
    if (!item)
        return;
    count_out(o, item);
    if (item->sender == o->opt.self && !item->view && seq <= o->have)
        o->own_bytes -= item_cost(item);
    if (item->sender != o->opt.self || item->view || seq <= o->have)
        rnl_order_item_drop(o, item);
    else
        item->seq = 0; /* it stays in `own` */
}

void rnl_order_log_freeze(struct rnl_order *o)
{
    for (uint64_t seq = o->have + 1; seq - o->stable <= o->log_mask; seq++)
        forget(o, seq);
    for (uint32_t i = 0; i < o->opt.size; i++) {
        struct member *m = &o->member[i];
        rnl_order_list_drop(o, &m->queue);
        m->awaited = (struct list){.first = NULL}; /* they were in the log */
    }
}

void rnl_order_release(struct rnl_order *o, uint64_t stable)
{
    if (stable > o->next - 1)
        stable = o->next - 1;
    while (o->stable < stable) {
        uint64_t seq = o->stable + 1;
        const struct rnl_order_item *item = *log_slot(o, seq);
        o->unannounced += item ? item_cost(item) : 0;
        forget(o, seq);
        o->stable = seq;
    }
}

/* Items are delivered one after another, also where what is delivered causes more. */
static void deliver(struct rnl_order *o)
{
    if (o->delivering)
        return;
    o->delivering = true;
    while (o->next <= o->have && !o->ended) {
        struct rnl_order_item *item = *log_slot(o, o->next);
        o->stats.delivered += !item->view;
        o->stats.views += item->view;
        o->unacked += item_cost(item);
        o->ops->deliver(o->ctx, item);
        o->next++;
    }
    o->delivering = false;
    if (!o->ended && !o->flushing && !o->member[o->opt.self].in_view)
        rnl_order_end(o, 0); /* the view without this member is delivered */
    else
        rnl_order_acknowledge(o);
}

/* The next item of the log follows from those before it, or its sender or the sequencer lies. */
static bool follows(const struct rnl_order *o, const struct rnl_order_item *item)
{
    return item->view || (item->lseq == o->member[item->sender].in_log + 1 && o->member[item->sender].in_view);
}

void rnl_order_advance(struct rnl_order *o)
{
    struct rnl_order_item *item;
    while (!o->ended && o->have + 1 - o->stable <= o->log_mask && (item = *log_slot(o, o->have + 1)) && item->ready) {
        if (!follows(o, item)) {
            rnl_order_bad(o, o->flushing ? o->coordinator : o->sequencer);
            return;
        }
        if (!item->view) {
            o->member[item->sender].in_log = item->lseq;
            if (item->sender == o->opt.self)
                (void)list_take(&o->own); /* its reference is the log's now */
        }
        o->have++;
        if (item->view)
            rnl_order_view_reached(o, item);
    }
    if (o->install_due)
        rnl_order_install(o);
    deliver(o);
}
