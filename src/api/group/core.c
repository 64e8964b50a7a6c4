/* SPDX-License-Identifier: BSD-3-Clause
 *
 * core.c - the protocol's life, and what comes in (order.h). */
#include "api/group/order_internal.h"

#include <stdlib.h>

#include "runnel/runnel.h"

/* The log begins with the first view, or with the one that this member joins with. */
static bool put_first(struct rnl_order *o, const bool *in_first)
{
    struct rnl_order_item *view = rnl_order_item_new(o, (o->opt.size + 1) * sizeof(uint32_t));
    uint32_t n = 1;
    if (!view)
        return false;
    o->epoch = o->promised = 1;
    memcpy(view->data, &o->epoch, sizeof o->epoch);
    for (uint32_t i = 0; i < o->opt.size; i++) {
        o->member[i].in_first = !in_first || in_first[i];
        if (o->member[i].in_first)
            memcpy(view->data + n++ * sizeof i, &i, sizeof i);
    }
    view->bytes = n * (uint32_t)sizeof n;
    view->view = 1;
    o->next = 1;
    if (o->member[o->opt.self].in_first) {
        rnl_order_log_put(o, 1, view);
        return true;
    }
    rnl_order_item_drop(o, view);
    o->epoch = o->promised = 0;
    o->sequencer = o->coordinator = UINT32_MAX;
    o->blank = o->flushing = true;
    return true;
}

struct rnl_order *rnl_order_new(const struct rnl_order_options *opt, const struct rnl_order_ops *ops, void *ctx)
{
    struct rnl_order *o = calloc(1, sizeof *o);
    uint64_t places = 64, want = 2 * (opt->budget / RNL_ORDER_ITEM_COST + 4 * (uint64_t)opt->size);
    while (places < want)
        places *= 2;
    if (!o)
        return NULL;
    *o = (struct rnl_order){.ops = ops, .ctx = ctx, .opt = *opt, .log_mask = places - 1};
    o->opt.flat = opt->flat ? opt->flat : RNL_ORDER_FLAT;
    o->share = opt->budget / opt->size;
    o->ack_bytes = o->share / 4 < ACK_BYTES_MAX ? o->share / 4 : ACK_BYTES_MAX;
    o->member = calloc(opt->size, sizeof *o->member);
    o->view = calloc(opt->size, sizeof *o->view);
    o->by_host = calloc(opt->size, sizeof *o->by_host);
    o->host_begin = calloc(opt->size + 1, sizeof *o->host_begin);
    o->log = calloc(places, sizeof(struct rnl_order_item *));
    o->opt.first = NULL;
    o->opt.host = NULL;
    if (!o->member || !o->view || !o->by_host || !o->host_begin || !o->log || !put_first(o, opt->first)) {
        rnl_order_free(o);
        return NULL;
    }
    for (uint32_t i = 0; i < opt->size; i++)
        o->member[i].host = opt->host ? opt->host[i] : 0;
    return o;
}

void rnl_order_begin(struct rnl_order *o)
{
    if (o->blank) {
        rnl_order_join(o);
        return;
    }
    o->top = 1;
    rnl_order_advance(o);
}

void rnl_order_free(struct rnl_order *o)
{
    if (o->log && o->member)
        rnl_order_log_freeze(o);
    for (uint64_t seq = o->stable + 1; o->log && seq <= o->have; seq++)
        rnl_order_item_drop(o, *log_slot(o, seq));
    rnl_order_list_drop(o, &o->own);
    rnl_order_list_drop(o, &o->early);
    rnl_order_list_drop(o, &o->state);
    rnl_order_item_drop(o, o->cut_view);
    for (unsigned c = 0; c < ITEM_CLASSES; c++)
        for (struct rnl_order_item *item = o->spare[c], *next; item; item = next) {
            next = item->next;
            free(item);
        }
    free(o->log);
    free(o->view);
    free(o->by_host);
    free(o->host_begin);
    free(o->member);
    free(o);
}

/* A message of a view that this member has not reached. What honest members send ahead is within their shares. */
static void hold(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head, struct rnl_order_item *item)
{
    uint64_t most = o->opt.budget + (uint64_t)o->opt.size * (RNL_ORDER_MESSAGE_MAX + 64 * RNL_ORDER_ITEM_COST);
    if (!item && !(item = rnl_order_item_new(o, 0))) {
        rnl_order_fail(o, RNL_ERR_NO_MEMORY);
    } else if (o->early.bytes > most) {
        rnl_order_item_drop(o, item);
        rnl_order_bad(o, from);
    } else {
        item->head = *head;
        item->from = from;
        list_put(&o->early, item);
    }
}

void rnl_order_input(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head, struct rnl_order_item *item)
{
    if (from >= o->opt.size || from == o->opt.self) {
        rnl_order_item_drop(o, item);
        return;
    }
    if (o->ended || o->member[from].excluded) {
        /* Whoever asks something of this member, or counts on it, is not to wait for it. */
        const struct rnl_order_head reply = head_of(o, o->ended || o->blank ? RNL_ORDER_GONE : RNL_ORDER_OUT, 0);
        if (head->kind != RNL_ORDER_OUT && (head->kind != RNL_ORDER_GONE || item))
            o->ops->send(o->ctx, from, &reply, NULL);
        rnl_order_item_drop(o, item);
        return;
    }
    if (head->kind >= RNL_ORDER_JOIN && head->kind <= RNL_ORDER_SNAPSHOT) {
        bool good = rnl_order_join_input(o, from, head, item);
        rnl_order_item_drop(o, item);
        if (!good)
            rnl_order_bad(o, from);
    } else if (head->kind >= RNL_ORDER_FLUSH) {
        rnl_order_view_input(o, from, head, item);
    } else if (head->epoch > o->epoch) {
        hold(o, from, head, item);
    } else if (head->epoch < o->epoch || o->flushing) {
        rnl_order_item_drop(o, item);
    } else {
        rnl_order_normal(o, from, head, item);
    }
    rnl_order_join_due(o);
}

void rnl_order_died(struct rnl_order *o, uint32_t member)
{
    rnl_order_note_death(o, member);
    rnl_order_join_due(o);
}

void rnl_order_leave(struct rnl_order *o)
{
    rnl_order_wish_to_leave(o);
    rnl_order_join_due(o);
}

bool rnl_order_is_idle(const struct rnl_order *o)
{
    return o->blank || (!o->own.first && o->next > o->have);
}

bool rnl_order_is_blank(const struct rnl_order *o)
{
    return o->blank;
}

bool rnl_order_has_ended(const struct rnl_order *o)
{
    return o->ended;
}

const struct rnl_order_stats *rnl_order_get_stats(const struct rnl_order *o)
{
    return &o->stats;
}
