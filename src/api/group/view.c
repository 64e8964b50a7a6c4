/* SPDX-License-Identifier: BSD-3-Clause
 *
 * view.c - how a new view comes about (order.h): exclusion, freezing, the cut, and the members' making up for what
 * they lack. */
#include "api/group/order_internal.h"

#include <stdlib.h>

#include "runnel/runnel.h"

enum { EPOCHS_AHEAD_MAX = 1 << 20 };

static bool takes_part(const struct member *m)
{
    return m->in_view && !m->excluded;
}

/* Whether that member's end calls for a new view, or for another coordinator: one that is not in this member's
 * view any more may have begun an attempt, too. */
static bool matters(const struct rnl_order *o, uint32_t member)
{
    return o->member[member].in_view || (o->flushing && o->coordinator == member);
}

static uint32_t lowest(const struct rnl_order *o)
{
    for (uint32_t i = 0; i < o->in_view; i++)
        if (takes_part(&o->member[o->view[i]]))
            return o->view[i];
    return UINT32_MAX;
}

void rnl_order_end(struct rnl_order *o, int status)
{
    if (o->ended)
        return;
    o->ended = true;
    o->ops->ended(o->ctx, status);
}

/* ---- those excluded ---- */

static size_t set_bytes(const struct rnl_order *o)
{
    return (o->opt.size + 7) / 8;
}

static struct rnl_order_item *set_of_excluded(struct rnl_order *o)
{
    struct rnl_order_item *set = rnl_order_item_new(o, set_bytes(o));
    if (!set) {
        rnl_order_fail(o, RNL_ERR_NO_MEMORY);
        return NULL;
    }
    memset(set->data, 0, set->bytes);
    for (uint32_t i = 0; i < o->opt.size; i++)
        if (o->member[i].excluded)
            set->data[i / 8] |= (uint8_t)(1 << i % 8);
    return set;
}

/* Whether the set is one. */
static bool is_set(const struct rnl_order *o, const struct rnl_order_item *set)
{
    return set && set->bytes == set_bytes(o);
}
static bool set_has(const struct rnl_order_item *set, uint32_t i)
{
    return set->data[i / 8] >> i % 8 & 1;
}

/* Excludes those in the set, but not this member. Returns whether there are new ones in the view. */
static bool merge(struct rnl_order *o, const struct rnl_order_item *set)
{
    bool more = false;
    for (uint32_t i = 0; i < o->opt.size; i++) {
        struct member *m = &o->member[i];
        if (i == o->opt.self || m->excluded || !set_has(set, i))
            continue;
        m->excluded = true;
        more |= matters(o, i);
    }
    return more;
}

static void send_set(struct rnl_order *o, uint32_t to, struct rnl_order_head head)
{
    struct rnl_order_item *set = set_of_excluded(o);
    if (!set)
        return;
    send_head(o, to, &head, set);
    rnl_order_item_drop(o, set);
}

/* ---- the coordinator ---- */

static void freeze(struct rnl_order *o, uint32_t epoch, uint32_t coordinator)
{
    o->promised = epoch;
    o->coordinator = coordinator;
    o->flushing = true;
    rnl_order_item_drop(o, o->cut_view);
    o->cut_view = NULL;
    rnl_order_log_freeze(o);
}

static void conclude(struct rnl_order *o);

static void attempt(struct rnl_order *o)
{
    freeze(o, (o->promised > o->epoch ? o->promised : o->epoch) + 1, o->opt.self);
    const struct rnl_order_head out = head_of(o, RNL_ORDER_OUT, 0);
    struct rnl_order_head head = head_of(o, RNL_ORDER_FLUSH, 0);
    head.epoch = o->promised;
    for (uint32_t i = 0; i < o->in_view && !o->ended; i++) {
        struct member *m = &o->member[o->view[i]];
        m->answered = o->view[i] == o->opt.self;
        if (m->excluded)
            o->ops->send(o->ctx, o->view[i], &out, NULL); /* if it lives, it is not to wait */
        else if (!m->answered)
            send_set(o, o->view[i], head);
    }
    o->member[o->opt.self].end = o->have;
    conclude(o);
}

/* Something is to change: makes a new view, or informs whoever does. */
static void start(struct rnl_order *o)
{
    uint32_t coordinator = lowest(o);
    if (o->ended || coordinator == UINT32_MAX)
        return;
    if (coordinator == o->opt.self)
        attempt(o);
    else
        send_set(o, coordinator, head_of(o, RNL_ORDER_GONE, 0));
}

static void gone(struct rnl_order *o, uint32_t member)
{
    struct member *m = &o->member[member];
    if (m->excluded)
        return;
    m->excluded = true;
    if (matters(o, member))
        start(o);
}

void rnl_order_died(struct rnl_order *o, uint32_t member)
{
    gone(o, member);
}

void rnl_order_bad(struct rnl_order *o, uint32_t from)
{
    o->stats.refused++;
    if (from != o->opt.self)
        gone(o, from);
}

static void cut(struct rnl_order *o, uint32_t donor, const struct rnl_order_item *ends);

/* Once all have answered: cuts at the end of the longest log. */
static void conclude(struct rnl_order *o)
{
    uint32_t donor = o->opt.self, n = 0;
    for (uint32_t i = 0; i < o->in_view; i++) {
        const struct member *m = &o->member[o->view[i]];
        if (!takes_part(m))
            continue;
        if (!m->answered)
            return;
        if (m->end > o->member[donor].end)
            donor = o->view[i];
        n++;
    }
    if (o->opt.majority && 2 * n <= o->in_view) {
        rnl_order_fail(o, RNL_ERR_REFUSED);
        return;
    }
    struct rnl_order_item *ends = rnl_order_item_new(o, n * sizeof(struct rnl_order_end));
    if (!ends) {
        rnl_order_fail(o, RNL_ERR_NO_MEMORY);
        return;
    }
    unsigned char *at = ends->data;
    for (uint32_t i = 0; i < o->in_view; i++) {
        const struct member *m = &o->member[o->view[i]];
        const struct rnl_order_end end = {.member = o->view[i], .leaves = m->leaving, .seq = m->end};
        if (!takes_part(m))
            continue;
        memcpy(at, &end, sizeof end);
        at += sizeof end;
    }
    struct rnl_order_head head = head_of(o, RNL_ORDER_CUT, o->member[donor].end);
    head.epoch = o->promised;
    head.member = donor;
    for (uint32_t i = 0; i < o->in_view; i++)
        send_head(o, o->view[i], &head, ends);
    o->cut = head.seq;
    cut(o, donor, ends);
    rnl_order_item_drop(o, ends);
}

static bool take_state(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                       const struct rnl_order_item *set)
{
    struct member *m = &o->member[from];
    if (!o->flushing || head->epoch != o->promised || o->coordinator != o->opt.self || m->answered)
        return true; /* of an earlier attempt */
    if (!is_set(o, set) || head->seq - o->stable > o->log_mask)
        return false;
    m->answered = true;
    m->end = head->seq;
    m->leaving |= (head->flags & RNL_ORDER_LEAVING) != 0;
    if (merge(o, set))
        start(o);
    else
        conclude(o);
    return true;
}

static bool take_refuse(struct rnl_order *o, const struct rnl_order_head *head)
{
    if (!o->flushing || head->epoch != o->promised || o->coordinator != o->opt.self)
        return true;
    if (head->seq < o->promised || head->seq - o->promised > EPOCHS_AHEAD_MAX)
        return false;
    o->promised = (uint32_t)head->seq;
    start(o);
    return true;
}

/* ---- the others ---- */

static bool take_flush(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                       const struct rnl_order_item *set)
{
    if (!is_set(o, set) || (head->epoch > o->promised && head->epoch - o->promised > EPOCHS_AHEAD_MAX))
        return false;
    if (head->epoch <= o->promised) {
        struct rnl_order_head refusal = head_of(o, RNL_ORDER_REFUSE, o->promised);
        refusal.epoch = head->epoch;
        send_head(o, from, &refusal, NULL);
        return true;
    }
    if (set_has(set, o->opt.self)) {
        rnl_order_end(o, RNL_ERR_REFUSED);
        return true;
    }
    (void)merge(o, set);
    freeze(o, head->epoch, from);
    struct rnl_order_head state = head_of(o, RNL_ORDER_STATE, o->have);
    state.epoch = head->epoch;
    state.flags = o->leaves ? RNL_ORDER_LEAVING : 0;
    send_set(o, from, state);
    return true;
}

static void try_cut(struct rnl_order *o)
{
    struct rnl_order_item *view = o->cut_view;
    if (!view || !o->flushing || o->have != o->cut || !log_is_free(o, o->have + 1))
        return;
    o->cut_view = NULL;
    rnl_order_log_put(o, o->have + 1, view);
    rnl_order_advance(o);
}

/* What this log has no more only one lacks that is in no view of it, since it leaves. */
static void fill(struct rnl_order *o, uint32_t to, uint64_t after)
{
    const struct rnl_order_head out = head_of(o, RNL_ORDER_OUT, 0);
    if (after < o->stable)
        send_head(o, to, &out, NULL);
    for (uint64_t seq = after + 1; after >= o->stable && seq <= o->cut; seq++) {
        struct rnl_order_item *item = *log_slot(o, seq);
        struct rnl_order_head head = head_of(o, RNL_ORDER_FILL, seq);
        head.epoch = o->promised;
        head.lseq = item->lseq;
        head.member = item->sender;
        head.flags = item->view ? RNL_ORDER_ROOT : 0;
        send_head(o, to, &head, item);
        o->stats.again++;
    }
}

/* The view after the cut: its epoch, and those of `ends` who do not leave. */
static void cut(struct rnl_order *o, uint32_t donor, const struct rnl_order_item *ends)
{
    uint32_t n = ends->bytes / sizeof(struct rnl_order_end), members = 0;
    struct rnl_order_item *view = rnl_order_item_new(o, (n + 1) * sizeof(uint32_t));
    if (!view) {
        rnl_order_fail(o, RNL_ERR_NO_MEMORY);
        return;
    }
    memcpy(view->data, &o->promised, sizeof o->promised);
    for (uint32_t i = 0; i < n; i++) {
        struct rnl_order_end end;
        memcpy(&end, ends->data + i * sizeof end, sizeof end);
        o->member[end.member].end = end.seq;
        if (!end.leaves)
            memcpy(view->data + ++members * sizeof(uint32_t), &end.member, sizeof end.member);
        if (donor == o->opt.self && end.seq < o->cut)
            fill(o, end.member, end.seq);
    }
    view->bytes = (members + 1) * (uint32_t)sizeof(uint32_t);
    view->view = 1;
    rnl_order_item_drop(o, o->cut_view);
    o->cut_view = view;
    try_cut(o);
}

static bool take_cut(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                     const struct rnl_order_item *ends)
{
    if (!o->flushing || head->epoch != o->promised || from != o->coordinator)
        return true; /* of an earlier attempt */
    uint32_t n = ends ? ends->bytes / (uint32_t)sizeof(struct rnl_order_end) : 0, after = 0;
    bool donor = false;
    if (!n || n > o->opt.size || ends->bytes != n * sizeof(struct rnl_order_end) || head->seq < o->have ||
        head->seq - o->stable >= o->log_mask)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        struct rnl_order_end end;
        memcpy(&end, ends->data + i * sizeof end, sizeof end);
        if (end.member >= o->opt.size || (i > 0 && end.member <= after) || end.seq > head->seq || end.leaves > 1)
            return false;
        donor |= end.member == head->member && end.seq == head->seq;
        after = end.member;
    }
    if (!donor || (head->member == o->opt.self && head->seq != o->have))
        return false;
    o->cut = head->seq;
    cut(o, head->member, ends);
    return true;
}

static bool is_view(const struct rnl_order *o, const struct rnl_order_item *item)
{
    uint32_t n = item->bytes / (uint32_t)sizeof(uint32_t), before = 0;
    if (n < 1 || n - 1 > o->opt.size || item->bytes % sizeof(uint32_t))
        return false;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t member;
        memcpy(&member, item->data + i * sizeof member, sizeof member);
        if (member >= o->opt.size || (i > 1 && member <= before))
            return false;
        before = member;
    }
    return true;
}

/* Takes the item. */
static bool take_fill(struct rnl_order *o, const struct rnl_order_head *head, struct rnl_order_item *item)
{
    bool view = head->flags & RNL_ORDER_ROOT, own = !view && head->member == o->opt.self;
    struct rnl_order_item *mine = own ? rnl_order_own(o, head->lseq) : NULL;
    bool stale = !o->flushing || head->epoch != o->promised;
    if (stale || !item || head->member >= o->opt.size || !log_is_free(o, head->seq) || (view && !is_view(o, item)) ||
        (own && !mine)) {
        rnl_order_item_drop(o, item);
        return stale;
    }
    if (own) {
        rnl_order_item_drop(o, item);
        item = mine;
    } else {
        item->view = view;
        item->sender = head->member;
        item->lseq = head->lseq;
    }
    rnl_order_log_put(o, head->seq, item);
    rnl_order_advance(o);
    try_cut(o);
    return true;
}

/* ---- the new view ---- */

void rnl_order_view_reached(struct rnl_order *o, const struct rnl_order_item *item)
{
    for (uint32_t i = 0; i < o->opt.size; i++)
        o->member[i].in_view = false;
    memcpy(&o->epoch, item->data, sizeof o->epoch);
    o->in_view = item->bytes / (uint32_t)sizeof(uint32_t) - 1;
    memcpy(o->view, item->data + sizeof o->epoch, o->in_view * sizeof *o->view);
    for (uint32_t i = 0; i < o->in_view; i++)
        o->member[o->view[i]].in_view = true;
    o->sequencer = o->in_view ? o->view[0] : UINT32_MAX;
    o->install_due = o->flushing && o->epoch == o->promised;
}

/* Messages of this view that came before it. */
static void take_early(struct rnl_order *o)
{
    struct list early = o->early;
    struct rnl_order_item *item;
    o->early = (struct list){.first = NULL};
    while ((item = list_take(&early))) {
        struct rnl_order_head head = item->head;
        if (head.epoch > o->epoch)
            list_put(&o->early, item);
        else if (head.epoch < o->epoch || o->flushing || o->ended || o->member[item->from].excluded)
            rnl_order_item_drop(o, item);
        else
            rnl_order_normal(o, item->from, &head, item);
    }
}

void rnl_order_install(struct rnl_order *o)
{
    bool was = o->delivering, change = false;
    o->install_due = o->flushing = false;
    o->top = o->have;
    for (uint32_t i = 0; i < o->opt.size; i++) {
        struct member *m = &o->member[i];
        m->seen = m->in_log;
        m->acked = m->end < o->have ? m->end : o->have;
    }
    if (!o->member[o->opt.self].in_view)
        return;
    o->unacked = o->ack_bytes;
    o->delivering = true; /* what is delivered may send, and would come before what is sent here */
    for (struct rnl_order_item *item = o->own.first, *next; item; item = next) {
        next = item->next;
        o->stats.again++;
        rnl_order_place_own(o, item);
    }
    take_early(o);
    o->delivering = was;
    for (uint32_t i = 0; i < o->in_view; i++) {
        const struct member *m = &o->member[o->view[i]];
        change |= m->excluded || (m->leaving && lowest(o) == o->opt.self);
    }
    if (change && !o->flushing)
        start(o);
    else if (o->leaves && !o->flushing)
        rnl_order_leave(o);
}

/* ---- leaving ---- */

void rnl_order_leave(struct rnl_order *o)
{
    struct rnl_order_head head = head_of(o, RNL_ORDER_LEAVE, 0);
    uint32_t coordinator = lowest(o);
    o->leaves = o->member[o->opt.self].leaving = true;
    if (o->flushing || o->ended)
        return; /* STATE says so, or the new view begins with it */
    if (coordinator == o->opt.self)
        attempt(o);
    else
        send_head(o, coordinator, &head, NULL);
}

static void take_leave(struct rnl_order *o, uint32_t from)
{
    o->member[from].leaving = true;
    if (!o->flushing && o->member[from].in_view && lowest(o) == o->opt.self)
        attempt(o);
}

void rnl_order_fail(struct rnl_order *o, int status)
{
    struct rnl_order_head head = head_of(o, RNL_ORDER_GONE, 0);
    for (uint32_t i = 0; i < o->in_view && !o->ended; i++)
        send_head(o, o->view[i], &head, NULL);
    rnl_order_end(o, status);
}

/* Without a set, its sender has gone. A member of an earlier view lacks what somebody was to send it who has gone. */
static bool take_gone(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                      const struct rnl_order_item *set)
{
    const struct rnl_order_head out = head_of(o, RNL_ORDER_OUT, 0);
    if (!set) {
        gone(o, from);
        return true;
    }
    if (!is_set(o, set))
        return false;
    bool late = head->epoch < o->epoch, more = merge(o, set);
    if (late && !o->member[from].in_view)
        send_head(o, from, &out, NULL); /* it wanted to leave */
    if (more || (late && o->member[from].in_view))
        start(o);
    return true;
}

void rnl_order_view_input(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                          struct rnl_order_item *item)
{
    bool good = true;
    if (head->kind == RNL_ORDER_FILL) {
        if (!take_fill(o, head, item))
            rnl_order_bad(o, from);
        return;
    }
    switch (head->kind) {
    case RNL_ORDER_FLUSH:
        good = take_flush(o, from, head, item);
        break;
    case RNL_ORDER_STATE:
        good = take_state(o, from, head, item);
        break;
    case RNL_ORDER_REFUSE:
        good = take_refuse(o, head);
        break;
    case RNL_ORDER_CUT:
        good = take_cut(o, from, head, item);
        break;
    case RNL_ORDER_GONE:
        good = take_gone(o, from, head, item);
        break;
    case RNL_ORDER_LEAVE:
        take_leave(o, from);
        break;
    case RNL_ORDER_OUT:
        rnl_order_end(o, o->leaves ? 0 : RNL_ERR_REFUSED);
        break;
    default:
        good = false;
    }
    rnl_order_item_drop(o, item);
    if (!good)
        rnl_order_bad(o, from);
}
