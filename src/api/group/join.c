/* SPDX-License-Identifier: BSD-3-Clause
 *
 * join.c - how a member joins (order.h): what it asks, what it holds until it has the state, and what becomes of its
 * wish at the members. What they send to it is in log.c. */
#include "api/group/order_internal.h"

#include "runnel/runnel.h"

/* ---- the one that joins ---- */

static void ask(struct rnl_order *o, uint32_t to, bool again)
{
    struct rnl_order_head head = head_of(o, RNL_ORDER_JOIN, o->promised);
    head.flags = again ? RNL_ORDER_ROOT : 0;
    o->member[to].asked = true;
    send_head(o, to, &head, NULL);
}

void rnl_order_join(struct rnl_order *o)
{
    for (uint32_t i = 0; i < o->opt.size; i++)
        if (o->member[i].in_first)
            ask(o, i, false);
}

/* Without a view there is hope while somebody lives who was asked. In one there is while a member lives that had the
 * state before it; but if the sequencer, of whom it was to come, has gone, the others may not have that view. */
static void seek(struct rnl_order *o)
{
    const bool in_view = o->in_view, again = in_view && o->member[o->sequencer].excluded;
    bool hope = false, more = false;
    for (uint32_t i = 0; i < o->opt.size; i++) {
        const struct member *m = &o->member[i];
        hope |= i != o->opt.self && !m->excluded && (in_view ? m->in_view && !m->newly : m->asked);
    }
    for (uint32_t i = 0; i < o->opt.size && (hope ? again : !in_view); i++) {
        const struct member *m = &o->member[i];
        if (i == o->opt.self || m->excluded || (in_view && (!m->in_view || m->newly)))
            continue;
        ask(o, i, again);
        more = true;
    }
    if (!hope && !more)
        rnl_order_fail(o, RNL_ERR_REFUSED);
}

/* The view that this member joins with, made of what WELCOME holds; NULL: it holds none, or there is no memory. */
static struct rnl_order_item *view_in(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                                      const struct rnl_order_item *welcome)
{
    const size_t before = o->opt.size * sizeof(uint64_t);
    uint32_t first = UINT32_MAX, epoch = 0;
    bool self = false;
    if (!welcome || welcome->bytes < before + sizeof epoch || head->seq == 0 || head->seq > UINT64_MAX / 2)
        return NULL;
    struct rnl_order_item *view = rnl_order_item_new(o, welcome->bytes - before);
    if (!view)
        return NULL;
    memcpy(view->data, welcome->data + before, view->bytes);
    memcpy(&epoch, view->data, sizeof epoch);
    view->view = 1;
    bool good = rnl_order_is_view(o, view) && epoch == head->epoch;
    for (uint32_t i = 1; good && i < view->bytes / sizeof i; i++) {
        uint32_t member;
        memcpy(&member, view->data + i * sizeof member, sizeof member);
        self |= member == (o->opt.self | RNL_ORDER_NEW);
        if (!(member & RNL_ORDER_NEW) && first == UINT32_MAX)
            first = member;
    }
    if (good && self && first == from)
        return view;
    rnl_order_item_drop(o, view);
    return NULL;
}

static bool take_welcome(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                         const struct rnl_order_item *welcome)
{
    if (!o->blank || head->epoch <= o->epoch)
        return true;
    if (head->epoch < o->promised) { /* a later attempt counts on this member's having nothing */
        struct rnl_order_head again = head_of(o, RNL_ORDER_JOIN, o->promised);
        again.flags = RNL_ORDER_ROOT;
        again.epoch = head->epoch;
        send_head(o, from, &again, NULL);
        return true;
    }
    struct rnl_order_item *view = head->epoch > UINT32_MAX / 2 ? NULL : view_in(o, from, head, welcome);
    if (!view)
        return false;
    rnl_order_log_begin(o, head->seq);
    for (uint32_t i = 0; i < o->opt.size; i++)
        memcpy(&o->member[i].in_log, welcome->data + i * sizeof(uint64_t), sizeof(uint64_t));
    rnl_order_drop_state(o);
    o->state_at = head->seq;
    o->promised = head->epoch;
    o->coordinator = from;
    o->flushing = true;
    rnl_order_log_put(o, head->seq, view);
    const struct rnl_order_head ack = {.kind = RNL_ORDER_ACK, .epoch = head->epoch, .seq = head->seq};
    send_head(o, from, &ack, NULL);
    rnl_order_advance(o);
    return true;
}

static bool take_snapshot(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                          struct rnl_order_item *item)
{
    if (!o->blank || o->flushing || head->epoch != o->epoch)
        return true; /* of an earlier view */
    if (from != o->sequencer || head->seq != o->state_at || o->state.bytes > RNL_ORDER_STATE_MAX)
        return false;
    if (item && !(head->flags & RNL_ORDER_NOTHING)) {
        item->refs++;
        item->once = 1;
        list_put(&o->state, item);
    }
    if (!(head->flags & RNL_ORDER_LAST))
        return true;
    o->blank = false;
    o->delivering = true;
    for (const struct rnl_order_item *piece = o->state.first; piece && o->ops->load; piece = piece->next)
        o->ops->load(o->ctx, piece);
    o->delivering = false;
    rnl_order_drop_state(o);
    o->unacked = o->ack_bytes;
    rnl_order_advance(o);
    return true;
}

/* ---- the members ---- */

/* At the coordinator: lets in whoever has asked. */
static void let_in(struct rnl_order *o)
{
    for (uint32_t i = 0; i < o->opt.size && !o->flushing && rnl_order_oldest(o) == o->opt.self; i++)
        if (o->member[i].joins && !o->member[i].in_view && !o->member[i].excluded)
            rnl_order_start(o);
}

static bool take_join(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head)
{
    bool again = head->flags & RNL_ORDER_ROOT;
    struct member *m = &o->member[from];
    if (o->blank && again) { /* the view that this member was in has not come to be */
        ask(o, from, true);
        return true;
    }
    if (m->in_view && again && m->newly && head->epoch == o->epoch && head->seq > o->promised &&
        head->seq - o->promised <= EPOCHS_AHEAD_MAX) {
        o->promised = (uint32_t)head->seq;
        rnl_order_start(o);
        return true;
    }
    if (m->in_view || (m->was && !again))
        return true; /* it came late */
    m->joins = true;
    let_in(o);
    return true;
}

bool rnl_order_join_input(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                          struct rnl_order_item *item)
{
    switch (head->kind) {
    case RNL_ORDER_JOIN:
        return take_join(o, from, head);
    case RNL_ORDER_WELCOME:
        return take_welcome(o, from, head, item);
    case RNL_ORDER_SNAPSHOT:
        return take_snapshot(o, from, head, item);
    default:
        return false;
    }
}

void rnl_order_join_due(struct rnl_order *o)
{
    if (o->seek_due && o->blank && !o->ended)
        seek(o);
    o->seek_due = false;
    if (o->let_in_due && !o->blank)
        let_in(o);
    o->let_in_due = false;
}
