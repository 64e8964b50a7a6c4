/* SPDX-License-Identifier: BSD-3-Clause
 *
 * order.c - how messages get their places, and credit, within one view (order.h). */
#include "api/group/order_internal.h"

#include "runnel/runnel.h"

/* ---- sending ---- */

static bool is_flat(const struct rnl_order *o)
{
    return o->is_flat;
}

/* The head of what tells of a place: how much is stable goes with it. */
static struct rnl_order_head place_head(struct rnl_order *o, enum rnl_order_kind kind,
                                        const struct rnl_order_item *item)
{
    struct rnl_order_head head = head_of(o, kind, item->seq);
    head.lseq = (uint32_t)item->lseq;
    head.member = (uint16_t)item->sender;
    head.stable = (uint32_t)(item->seq - o->stable);
    if (o->sequencer == o->opt.self)
        o->unannounced = 0;
    return head;
}

/* At the sequencer: gives the item its place and sends it, or where everybody has it only its place, to all. */
static void give_place(struct rnl_order *o, struct rnl_order_item *item, enum rnl_order_kind kind)
{
    uint32_t sender = item->sender;
    o->member[sender].seen = item->lseq;
    rnl_order_log_put(o, ++o->top, item);
    o->stats.ordered++;
    struct rnl_order_head head = place_head(o, kind, item);
    bool apart = kind == RNL_ORDER_MESSAGE && is_flat(o) && sender != o->opt.self; /* the sender has the message */
    if (apart) {
        struct rnl_order_head accept = head;
        accept.kind = RNL_ORDER_ACCEPT;
        send_head(o, sender, &accept, NULL);
    }
    rnl_order_to_all(o, o->opt.self, apart ? sender : UINT32_MAX, &head, kind == RNL_ORDER_MESSAGE ? item : NULL);
    rnl_order_advance(o);
}

static uint8_t method_for(const struct rnl_order *o, uint32_t bytes)
{
    uint8_t method = o->opt.method;
    uint32_t small = o->opt.small ? o->opt.small : is_flat(o) ? SMALL_FLAT : SMALL_TREE;
    if (!method)
        method = bytes <= small ? RNL_ORDER_PB : is_flat(o) ? RNL_ORDER_BB : RNL_ORDER_REQUEST;
    return method == RNL_ORDER_BB && !is_flat(o) ? RNL_ORDER_REQUEST : method;
}

void rnl_order_place_own(struct rnl_order *o, struct rnl_order_item *item)
{
    if (o->sequencer == o->opt.self) {
        give_place(o, item, RNL_ORDER_MESSAGE);
        return;
    }
    uint8_t method = method_for(o, item->bytes);
    struct rnl_order_head head = head_of(o, method, 0);
    head.lseq = (uint32_t)item->lseq;
    if (method == RNL_ORDER_BB)
        rnl_order_to_all(o, o->opt.self, UINT32_MAX, &head, item);
    else
        send_head(o, o->sequencer, &head, method == RNL_ORDER_PB ? item : NULL);
}

bool rnl_order_room(const struct rnl_order *o)
{
    return !o->blank && o->own_bytes <= o->share / 2;
}

void rnl_order_send(struct rnl_order *o, struct rnl_order_item *item)
{
    item->sender = o->opt.self;
    item->lseq = ++o->lseq;
    o->own_bytes += item_cost(item);
    o->stats.sent++;
    list_put(&o->own, item);
    if (!o->flushing && !o->ended)
        rnl_order_place_own(o, item);
}

/* ---- credit ---- */

void rnl_order_note_ack(struct rnl_order *o, uint32_t member, uint64_t seq)
{
    struct member *m = &o->member[member];
    if (seq <= m->acked)
        return;
    m->acked = seq;
    for (uint32_t i = 0; i < o->in_view; i++)
        if (o->member[o->view[i]].acked < seq)
            seq = o->member[o->view[i]].acked;
    rnl_order_release(o, seq);
    rnl_order_give_state(o);
    if (o->unannounced < o->share / 4)
        return;
    o->unannounced = 0;
    struct rnl_order_head head = head_of(o, RNL_ORDER_STABLE, o->stable);
    rnl_order_to_all(o, o->opt.self, UINT32_MAX, &head, NULL);
}

void rnl_order_acknowledge(struct rnl_order *o)
{
    if (o->unacked < o->ack_bytes || o->flushing || o->ended)
        return;
    o->unacked = 0;
    if (o->sequencer == o->opt.self) {
        rnl_order_note_ack(o, o->opt.self, o->next - 1);
        return;
    }
    struct rnl_order_head head = head_of(o, RNL_ORDER_ACK, o->next - 1);
    send_head(o, o->sequencer, &head, NULL);
}

/* ---- receiving, at the sequencer ---- */

/* Whether message `lseq` is that member's next, and within its share. Without a lie, what it has in the log is at
 * most twice what it may send ahead, the second time in a new view whose sequencer does not know yet how much is
 * stable. */
static bool may_send(const struct rnl_order *o, uint32_t from, uint64_t lseq)
{
    const struct member *m = &o->member[from];
    return o->sequencer == o->opt.self && lseq == m->seen + 1 &&
           m->kept_bytes <= o->share + 2 * (uint64_t)RNL_ORDER_MESSAGE_MAX &&
           m->kept <= o->share / RNL_ORDER_ITEM_COST + 2;
}

static bool take_to_place(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                          struct rnl_order_item *item, enum rnl_order_kind kind)
{
    const uint64_t lseq = lseq_of(o, from, head);
    if (!may_send(o, from, lseq) || !item) {
        rnl_order_item_drop(o, item);
        return false;
    }
    item->sender = from;
    item->lseq = lseq;
    give_place(o, item, kind);
    return true;
}

/* An item for a place whose message is to come, or NULL: the group has ended then. */
static struct rnl_order_item *await(struct rnl_order *o, uint32_t sender, uint64_t lseq)
{
    struct rnl_order_item *awaited = rnl_order_item_new(o, 0);
    if (!awaited) {
        rnl_order_fail(o, RNL_ERR_NO_MEMORY);
        return NULL;
    }
    awaited->sender = sender;
    awaited->lseq = lseq;
    awaited->ready = 0;
    return awaited;
}

static bool take_request(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head)
{
    struct rnl_order_item *awaited = NULL;
    const uint64_t lseq = lseq_of(o, from, head);
    if (!may_send(o, from, lseq))
        return false;
    if (!(awaited = await(o, from, lseq)))
        return true;
    o->member[from].seen++;
    o->stats.ordered++;
    rnl_order_log_put(o, ++o->top, awaited);
    uint64_t unannounced = o->unannounced;
    struct rnl_order_head reply = place_head(o, RNL_ORDER_PLACE, awaited);
    o->unannounced = unannounced; /* not everybody hears it */
    send_head(o, from, &reply, NULL);
    return true;
}

/* ---- receiving, from the sequencer and senders ---- */

static void take_stable(struct rnl_order *o, const struct rnl_order_head *head)
{
    if (head->stable <= head->seq && o->sequencer != o->opt.self)
        rnl_order_release(o, head->seq - head->stable);
}

static bool take_own(struct rnl_order *o, uint64_t seq, uint64_t lseq)
{
    struct rnl_order_item *item = rnl_order_own(o, lseq);
    if (!item || !log_is_free(o, seq))
        return false;
    rnl_order_log_put(o, seq, item);
    return true;
}

static bool take_bb(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head, struct rnl_order_item *item)
{
    struct member *m = &o->member[from];
    const uint64_t lseq = lseq_of(o, from, head);
    if (o->sequencer == o->opt.self)
        return take_to_place(o, from, head, item, RNL_ORDER_ACCEPT);
    bool fits = item && is_flat(o) && m->queue.bytes <= o->share + RNL_ORDER_MESSAGE_MAX;
    if (!fits || (m->awaited.first && m->awaited.first->lseq != lseq)) {
        rnl_order_item_drop(o, item);
        return false;
    }
    item->sender = from;
    item->lseq = lseq;
    if (m->awaited.first) {
        rnl_order_log_replace(o, list_take(&m->awaited), item);
        rnl_order_advance(o);
    } else {
        list_put(&m->queue, item);
    }
    return true;
}

/* The places of messages whose senders have sent them to all, or to the sequencer only if they are this member's. */
static bool take_accept(struct rnl_order *o, const struct rnl_order_head *head)
{
    uint32_t sender = head->member;
    if (sender >= o->opt.size || !o->member[sender].in_view || !log_is_free(o, head->seq))
        return false;
    struct member *m = &o->member[sender];
    const uint64_t lseq = lseq_of(o, sender, head);
    take_stable(o, head);
    if (sender == o->opt.self) {
        if (!take_own(o, head->seq, lseq))
            return false;
    } else if (m->queue.first) {
        if (m->queue.first->lseq != lseq)
            return false;
        rnl_order_log_put(o, head->seq, list_take(&m->queue));
    } else {
        struct rnl_order_item *awaited = await(o, sender, lseq);
        if (!awaited)
            return true;
        rnl_order_log_put(o, head->seq, awaited);
        list_put(&m->awaited, awaited);
    }
    rnl_order_advance(o);
    return true;
}

/* The place in the log that a message may take: an empty one, or at the sequencer the one that its sender asked
 * for. */
static bool fits(struct rnl_order *o, const struct rnl_order_head *head)
{
    const struct rnl_order_item *awaited = *log_slot(o, head->seq);
    if (o->sequencer != o->opt.self)
        return log_is_free(o, head->seq);
    return awaited && !awaited->ready && awaited->seq == head->seq && awaited->sender == head->member &&
           awaited->lseq == lseq_of(o, head->member, head);
}

static bool take_message(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                         struct rnl_order_item *item)
{
    uint32_t sender = head->member, root = head->flags & RNL_ORDER_ROOT ? sender : o->sequencer;
    if (!item || sender >= o->opt.size || !o->member[sender].in_view || root == o->opt.self ||
        from != rnl_order_parent(o, root) || !fits(o, head)) {
        rnl_order_item_drop(o, item);
        return false;
    }
    const uint64_t lseq = lseq_of(o, sender, head);
    take_stable(o, head);
    rnl_order_to_all(o, root, UINT32_MAX, head, item);
    item->sender = sender;
    item->lseq = lseq;
    if (sender == o->opt.self) {
        rnl_order_item_drop(o, item);
        if (!take_own(o, head->seq, lseq))
            return false;
    } else if (o->sequencer == o->opt.self) {
        rnl_order_log_replace(o, *log_slot(o, head->seq), item);
    } else {
        rnl_order_log_put(o, head->seq, item);
    }
    rnl_order_advance(o);
    return true;
}

static bool take_place(struct rnl_order *o, const struct rnl_order_head *head)
{
    struct rnl_order_item *item = rnl_order_own(o, lseq_of(o, o->opt.self, head));
    if (!item || !log_is_free(o, head->seq))
        return false;
    take_stable(o, head);
    rnl_order_log_put(o, head->seq, item);
    struct rnl_order_head out = place_head(o, RNL_ORDER_MESSAGE, item);
    out.flags = RNL_ORDER_ROOT;
    rnl_order_to_all(o, o->opt.self, UINT32_MAX, &out, item);
    rnl_order_advance(o);
    return true;
}

/* Messages of this view. Those without bytes, whose item is dropped, are told apart first. */
static bool take_bare(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head)
{
    bool of_sequencer = from == o->sequencer && from != o->opt.self;
    switch (head->kind) {
    case RNL_ORDER_REQUEST:
        return take_request(o, from, head);
    case RNL_ORDER_ACK:
        if (o->sequencer != o->opt.self || head->seq > o->top)
            return false;
        rnl_order_note_ack(o, from, head->seq);
        return true;
    case RNL_ORDER_PLACE:
        return of_sequencer && take_place(o, head);
    case RNL_ORDER_ACCEPT:
        return of_sequencer && take_accept(o, head);
    case RNL_ORDER_STABLE:
        if (from != rnl_order_parent(o, o->sequencer) || o->sequencer == o->opt.self)
            return false;
        rnl_order_to_all(o, o->sequencer, UINT32_MAX, head, NULL);
        take_stable(o, head);
        return true;
    default:
        return false;
    }
}

void rnl_order_normal(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                      struct rnl_order_item *item)
{
    bool good = o->member[from].in_view;
    if (!good) {
        rnl_order_item_drop(o, item);
    } else if (head->kind == RNL_ORDER_PB) {
        good = take_to_place(o, from, head, item, RNL_ORDER_MESSAGE);
    } else if (head->kind == RNL_ORDER_BB) {
        good = take_bb(o, from, head, item);
    } else if (head->kind == RNL_ORDER_MESSAGE) {
        good = take_message(o, from, head, item);
    } else {
        rnl_order_item_drop(o, item);
        good = take_bare(o, from, head);
    }
    if (!good)
        rnl_order_bad(o, from);
}
