/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log.c - a member's log (order.h): its items, what is kept, and what is delivered. */
#include "api/group/order_internal.h"

#include <stdlib.h>

#include "runnel/runnel.h"

/* ---- items ---- */

static unsigned class_of(size_t bytes)
{
    unsigned c = 0;
    while (((size_t)64 << c) < bytes)
        c++;
    return c;
}

/* Memory of items is used again, which keeps it near; what all classes hold is bounded by what was kept once. Not that
 * of states, which may be far longer than the budget. */
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
    item->view = item->once = 0;
    item->ready = 1;
    return item;
}

void rnl_order_item_drop(struct rnl_order *o, struct rnl_order_item *item)
{
    if (!item || --item->refs)
        return;
    if (item->once) {
        free(item);
        return;
    }
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
    o->last = seq > o->last ? seq : o->last;
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
    for (uint64_t seq = o->have + 1; seq <= o->last; seq++)
        forget(o, seq);
    o->last = o->have;
    for (uint32_t i = 0; i < o->opt.size; i++) {
        struct member *m = &o->member[i];
        rnl_order_list_drop(o, &m->queue);
        m->awaited = (struct list){.first = NULL}; /* they were in the log */
    }
}

void rnl_order_log_begin(struct rnl_order *o, uint64_t seq)
{
    rnl_order_log_freeze(o);
    for (; o->stable < o->have; o->stable++)
        forget(o, o->stable + 1);
    o->stable = o->have = o->last = seq - 1;
    o->next = seq;
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

/* ---- for those who join ---- */

void rnl_order_welcome(struct rnl_order *o)
{
    const struct rnl_order_item *view = *log_slot(o, o->have);
    const size_t before = o->opt.size * sizeof(uint64_t);
    struct rnl_order_head head = head_of(o, RNL_ORDER_WELCOME, o->have);
    struct rnl_order_head again = head_of(o, RNL_ORDER_JOIN, 0);
    struct rnl_order_item *item = rnl_order_item_new(o, before + view->bytes);
    if (!item) {
        rnl_order_fail(o, RNL_ERR_NO_MEMORY);
        return;
    }
    again.flags = RNL_ORDER_ROOT;
    for (uint32_t i = 0; i < o->opt.size; i++)
        memcpy(item->data + i * sizeof(uint64_t), &o->member[i].in_log, sizeof(uint64_t));
    memcpy(item->data + before, view->data, view->bytes);
    for (uint32_t i = 0; i < o->opt.size; i++)
        if (o->member[i].newly)
            send_head(o, i, &head, item);
        else if (o->member[i].dropped)
            send_head(o, i, &again, NULL);
    rnl_order_item_drop(o, item);
}

bool rnl_order_put_state(struct rnl_order *o, struct rnl_order_item *item)
{
    if (o->state.bytes + item_cost(item) > RNL_ORDER_STATE_MAX)
        return false;
    item->once = 1;
    list_put(&o->state, item);
    return true;
}

static void take_state(struct rnl_order *o, const struct rnl_order_item *view)
{
    uint32_t epoch;
    bool joins = false;
    memcpy(&epoch, view->data, sizeof epoch);
    for (uint32_t i = 0; i < o->in_view; i++)
        joins |= o->member[o->view[i]].newly;
    if (!joins || o->flushing || epoch != o->epoch || o->sequencer != o->opt.self)
        return;
    if (o->ops->save)
        o->ops->save(o->ctx);
    o->state_at = view->seq;
}

void rnl_order_give_state(struct rnl_order *o)
{
    if (!o->state_at || o->stable < o->state_at)
        return;
    struct rnl_order_head head = head_of(o, RNL_ORDER_SNAPSHOT, o->state_at);
    struct rnl_order_item *piece = o->state.first;
    do {
        head.flags = !piece ? RNL_ORDER_LAST | RNL_ORDER_NOTHING : piece->next ? 0 : RNL_ORDER_LAST;
        for (uint32_t i = 0; i < o->in_view; i++)
            if (o->member[o->view[i]].newly)
                send_head(o, o->view[i], &head, piece);
        piece = piece ? piece->next : NULL;
    } while (piece);
    rnl_order_drop_state(o);
}

void rnl_order_drop_state(struct rnl_order *o)
{
    rnl_order_list_drop(o, &o->state);
    o->state_at = 0;
}

/* ---- delivery ---- */

/* Items are delivered one after another, also where what is delivered causes more. */
static void deliver(struct rnl_order *o)
{
    if (o->delivering || o->blank)
        return;
    o->delivering = true;
    while (o->next <= o->have && !o->ended) {
        struct rnl_order_item *item = *log_slot(o, o->next);
        o->stats.delivered += !item->view;
        o->stats.views += item->view;
        o->unacked += item_cost(item);
        if (item->view)
            take_state(o, item);
        if (o->ended)
            break; /* there was no memory for the state */
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
