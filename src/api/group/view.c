/* SPDX-License-Identifier: BSD-3-Clause
 *
 * view.c - how a new view comes about (order.h): exclusion, freezing, the cut, and the members' making up for what
 * they lack. */
#include "api/group/order_internal.h"

#include <stdlib.h>

#include "base/bug.h"
#include "runnel/runnel.h"

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

uint32_t rnl_order_oldest(const struct rnl_order *o)
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
    const struct rnl_order_head head = head_of(o, RNL_ORDER_GONE, 0);
    for (uint32_t i = 0; i < o->opt.size; i++)
        if (o->member[i].joins)
            send_head(o, i, &head, NULL); /* it is to ask others */
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
    rnl_order_drop_state(o);
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
        m->blank = false;
        if (m->excluded)
            o->ops->send(o->ctx, o->view[i], &out, NULL); /* if it lives, it is not to wait */
        else if (!m->answered)
            send_set(o, o->view[i], head);
    }
    o->member[o->opt.self].end = o->have;
    conclude(o);
}

void rnl_order_start(struct rnl_order *o)
{
    uint32_t coordinator = rnl_order_oldest(o);
    o->seek_due |= o->blank;
    if (o->blank || o->ended || coordinator == UINT32_MAX)
        return;
    if (coordinator == o->opt.self)
        attempt(o);
    else
        send_set(o, coordinator, head_of(o, RNL_ORDER_GONE, 0));
}

void rnl_order_note_death(struct rnl_order *o, uint32_t member)
{
    struct member *m = &o->member[member];
    if (m->excluded)
        return;
    m->excluded = true;
    if (o->blank || matters(o, member))
        rnl_order_start(o);
}

void rnl_order_bad(struct rnl_order *o, uint32_t from)
{
    o->stats.refused++;
    if (from != o->opt.self)
        rnl_order_note_death(o, from);
}

static void cut(struct rnl_order *o, uint32_t donor, const struct rnl_order_item *ends);

/* Whether enough are left: more than half of the view, and of those in it who had the state before it, since the
 * view before may not know of the others. */
static bool are_enough(const struct rnl_order *o)
{
    uint32_t n = 0, with_state = 0, had = 0;
    for (uint32_t i = 0; i < o->in_view; i++) {
        const bool here = takes_part(&o->member[o->view[i]]), newly = o->member[o->view[i]].newly;
        n += here;
        with_state += !newly;
        had += here && !newly;
    }
    return !o->opt.majority || (2 * n > o->in_view && 2 * had > with_state);
}

/* What is to become of that member, or that it has no part in the new view. */
static bool role_of(const struct rnl_order *o, uint32_t i, struct rnl_order_end *end)
{
    const struct member *m = &o->member[i];
    bool joins = m->in_view ? m->blank : m->joins;
    *end = (struct rnl_order_end){.member = i,
                                  .role = joins        ? RNL_ORDER_JOINS
                                          : m->leaving ? RNL_ORDER_LEAVES
                                                       : RNL_ORDER_STAYS,
                                  .seq = joins ? 0 : m->end};
    return (m->in_view || joins) && !m->excluded;
}

/* The next in the order of the new view, with `at` 0 at first: those of this one, then those who join or still do. */
static bool next_of(const struct rnl_order *o, uint32_t *at, struct rnl_order_end *end)
{
    while (*at < o->in_view + o->opt.size) {
        uint32_t i = *at < o->in_view ? o->view[*at] : *at - o->in_view;
        bool old = (*at)++ < o->in_view;
        if ((!old || o->member[i].in_view) && role_of(o, i, end) && old == (end->role != RNL_ORDER_JOINS))
            return true;
    }
    return false;
}

/* Once all have answered: cuts at the end of the longest log. */
static void conclude(struct rnl_order *o)
{
    const struct rnl_order_head out = head_of(o, RNL_ORDER_OUT, 0);
    uint32_t donor = o->opt.self, n = 0, stay = 0, at = 0;
    struct rnl_order_end end;
    for (uint32_t i = 0; i < o->in_view; i++)
        if (takes_part(&o->member[o->view[i]]) && !o->member[o->view[i]].answered)
            return;
    for (; next_of(o, &at, &end); n++) {
        if (end.seq > o->member[donor].end && !RNL_BUG(group_donor_is_the_coordinator))
            donor = end.member;
        stay += end.role == RNL_ORDER_STAYS;
    }
    struct rnl_order_item *ends = are_enough(o) ? rnl_order_item_new(o, n * sizeof(struct rnl_order_end)) : NULL;
    if (!ends) {
        rnl_order_fail(o, are_enough(o) ? RNL_ERR_NO_MEMORY : RNL_ERR_REFUSED);
        return;
    }
    for (n = at = 0; next_of(o, &at, &end);)
        if (end.role == RNL_ORDER_JOINS && !stay)
            send_head(o, end.member, &out, NULL); /* there is nobody left to join */
        else
            memcpy(ends->data + n++ * sizeof end, &end, sizeof end);
    ends->bytes = n * (uint32_t)sizeof end;
    struct rnl_order_head head = head_of(o, RNL_ORDER_CUT, o->member[donor].end);
    head.epoch = o->promised;
    head.member = donor;
    for (uint32_t i = 0; i < o->in_view; i++)
        if (!o->member[o->view[i]].blank)
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
    m->blank = (head->flags & RNL_ORDER_BLANK) != 0;
    if (!is_set(o, set) || (!m->blank && head->seq - o->stable > o->log_mask))
        return false;
    m->answered = true;
    m->end = head->seq;
    m->leaving |= (head->flags & RNL_ORDER_LEAVING) != 0;
    if (merge(o, set))
        rnl_order_start(o);
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
    rnl_order_start(o);
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
    state.flags = o->blank ? RNL_ORDER_BLANK : o->leaves ? RNL_ORDER_LEAVING : 0;
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
        head.lseq = (uint32_t)item->lseq;
        head.member = (uint16_t)item->sender;
        head.flags = item->view ? RNL_ORDER_ROOT : 0;
        send_head(o, to, &head, item);
        o->stats.again++;
    }
}

/* The view after the cut: its epoch, and those of `ends` who stay or join. */
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
        uint32_t member = end.member | (end.role == RNL_ORDER_JOINS ? RNL_ORDER_NEW : 0);
        o->member[end.member].end = end.seq;
        if (end.role != RNL_ORDER_LEAVES)
            memcpy(view->data + ++members * sizeof member, &member, sizeof member);
        if (donor == o->opt.self && end.seq < o->cut && end.role != RNL_ORDER_JOINS)
            fill(o, end.member, end.seq);
    }
    view->bytes = (members + 1) * (uint32_t)sizeof(uint32_t);
    view->view = 1;
    rnl_order_item_drop(o, o->cut_view);
    o->cut_view = view;
    try_cut(o);
}

/* Whether there is that member, met once since o->mark was counted up. */
static bool is_first(struct rnl_order *o, uint32_t member)
{
    if (member >= o->opt.size || o->member[member].mark == o->mark)
        return false;
    o->member[member].mark = o->mark;
    return true;
}

static bool take_cut(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                     const struct rnl_order_item *ends)
{
    if (!o->flushing || head->epoch != o->promised || from != o->coordinator || o->blank)
        return true; /* of an earlier attempt */
    uint32_t n = ends ? ends->bytes / (uint32_t)sizeof(struct rnl_order_end) : 0;
    bool donor = false;
    o->mark++;
    if (!n || n > o->opt.size || ends->bytes != n * sizeof(struct rnl_order_end) || head->seq < o->have ||
        head->seq - o->stable >= o->log_mask)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        struct rnl_order_end end;
        memcpy(&end, ends->data + i * sizeof end, sizeof end);
        if (!is_first(o, end.member) || end.seq > head->seq || end.role > RNL_ORDER_JOINS ||
            (end.member == o->opt.self && end.role == RNL_ORDER_JOINS))
            return false;
        donor |= end.member == head->member && end.seq == head->seq && end.role != RNL_ORDER_JOINS;
    }
    if (!donor || (head->member == o->opt.self && head->seq != o->have))
        return false;
    o->cut = head->seq;
    cut(o, head->member, ends);
    return true;
}

bool rnl_order_is_view(struct rnl_order *o, const struct rnl_order_item *item)
{
    uint32_t n = item->bytes / (uint32_t)sizeof(uint32_t);
    bool newly = false;
    o->mark++;
    if (n < 1 || n - 1 > o->opt.size || item->bytes % sizeof(uint32_t))
        return false;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t member;
        memcpy(&member, item->data + i * sizeof member, sizeof member);
        bool is_new = member & RNL_ORDER_NEW;
        if (!is_first(o, member & ~RNL_ORDER_NEW) || (is_new ? i == 1 : newly))
            return false;
        newly |= is_new;
    }
    return true;
}

/* Takes the item. */
static bool take_fill(struct rnl_order *o, const struct rnl_order_head *head, struct rnl_order_item *item)
{
    bool view = head->flags & RNL_ORDER_ROOT, own = !view && head->member == o->opt.self;
    struct rnl_order_item *mine = own ? rnl_order_own(o, lseq_of(o, o->opt.self, head)) : NULL;
    bool stale = !o->flushing || head->epoch != o->promised || o->blank;
    if (stale || !item || head->member >= o->opt.size || !log_is_free(o, head->seq) ||
        (view && !rnl_order_is_view(o, item)) || (own && !mine)) {
        rnl_order_item_drop(o, item);
        return stale;
    }
    if (own) {
        rnl_order_item_drop(o, item);
        item = mine;
    } else {
        item->view = view;
        item->sender = head->member;
        item->lseq = lseq_of(o, head->member, head);
    }
    rnl_order_log_put(o, head->seq, item);
    rnl_order_advance(o);
    try_cut(o);
    return true;
}

/* ---- the new view ---- */

void rnl_order_view_reached(struct rnl_order *o, const struct rnl_order_item *item)
{
    for (uint32_t i = 0; i < o->opt.size; i++) {
        struct member *m = &o->member[i];
        m->dropped = m->in_view && m->newly;
        m->in_view = m->newly = false;
    }
    memcpy(&o->epoch, item->data, sizeof o->epoch);
    o->in_view = item->bytes / (uint32_t)sizeof(uint32_t) - 1;
    for (uint32_t k = 0; k < o->in_view; k++) {
        uint32_t member;
        memcpy(&member, item->data + (k + 1) * sizeof member, sizeof member);
        struct member *m = &o->member[member & ~RNL_ORDER_NEW];
        o->view[k] = member & ~RNL_ORDER_NEW;
        m->newly = member & RNL_ORDER_NEW;
        m->in_view = m->was = true;
        m->joins = m->dropped = false;
    }
    o->sequencer = o->in_view ? o->view[0] : UINT32_MAX;
    rnl_order_tree(o);
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
    if (o->sequencer == o->opt.self)
        rnl_order_welcome(o);
    o->delivering = true; /* what is delivered may send, and would come before what is sent here */
    for (struct rnl_order_item *item = o->own.first, *next; item; item = next) {
        next = item->next;
        o->stats.again++;
        rnl_order_place_own(o, item);
    }
    take_early(o);
    o->delivering = was;
    const bool coordinator = rnl_order_oldest(o) == o->opt.self;
    for (uint32_t i = 0; i < o->in_view; i++) {
        const struct member *m = &o->member[o->view[i]];
        change |= m->excluded || (m->leaving && coordinator);
    }
    if (change && !o->flushing)
        rnl_order_start(o);
    else if (o->leaves && !o->flushing)
        rnl_order_wish_to_leave(o);
    o->let_in_due = true;
}

/* ---- leaving ---- */

void rnl_order_wish_to_leave(struct rnl_order *o)
{
    struct rnl_order_head head = head_of(o, RNL_ORDER_LEAVE, 0);
    uint32_t coordinator = rnl_order_oldest(o);
    o->leaves = o->member[o->opt.self].leaving = true;
    if (o->blank) {
        rnl_order_fail(o, 0);
        return;
    }
    if (o->flushing || o->ended)
        return; /* STATE says so, or the new view begins with it */
    if (coordinator == UINT32_MAX)
        rnl_order_end(o, 0); /* a lie has it in no view */
    else if (coordinator == o->opt.self)
        attempt(o);
    else
        send_head(o, coordinator, &head, NULL);
}

static void take_leave(struct rnl_order *o, uint32_t from)
{
    o->member[from].leaving = true;
    if (!o->flushing && o->member[from].in_view && rnl_order_oldest(o) == o->opt.self)
        attempt(o);
}

void rnl_order_fail(struct rnl_order *o, int status)
{
    struct rnl_order_head head = head_of(o, RNL_ORDER_GONE, 0);
    for (uint32_t i = 0; i < o->opt.size && !o->ended; i++)
        if (o->member[i].in_view || o->member[i].asked)
            send_head(o, i, &head, NULL);
    rnl_order_end(o, status);
}

/* Without a set, its sender has gone. A member of an earlier view lacks what somebody was to send it who has gone. */
static bool take_gone(struct rnl_order *o, uint32_t from, const struct rnl_order_head *head,
                      const struct rnl_order_item *set)
{
    const struct rnl_order_head out = head_of(o, RNL_ORDER_OUT, 0);
    if (!set) {
        rnl_order_note_death(o, from);
        return true;
    }
    if (!is_set(o, set))
        return false;
    if (o->blank && o->in_view) { /* there is nobody left of whom to get the state */
        rnl_order_fail(o, RNL_ERR_REFUSED);
        return true;
    }
    bool late = head->epoch < o->epoch, more = merge(o, set);
    if (late && !o->member[from].in_view)
        send_head(o, from, &out, NULL); /* it wanted to leave */
    if (more || (late && o->member[from].in_view))
        rnl_order_start(o);
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
