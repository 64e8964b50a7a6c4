/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group.c - the calls of runnel/group.h, and what the protocol calls of the program. */
#include "api/group/group.h"

#include <stdlib.h>

enum { BUDGET = 2 << 20 };

static const uint8_t method_of[] = {
    [RNL_GROUP_AUTO] = 0,
    [RNL_GROUP_PB] = RNL_ORDER_PB,
    [RNL_GROUP_BB] = RNL_ORDER_BB,
    [RNL_GROUP_GSB] = RNL_ORDER_REQUEST,
};

/* ---- what the protocol calls ---- */

static int by_rank(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

static void view(struct rnl_group *g, const struct rnl_order_item *item)
{
    const unsigned n = item->bytes / (unsigned)sizeof(uint32_t) - 1;
    g->count[RNL_GROUP_VIEWS]++;
    unsigned sequencer = 0;
    for (unsigned i = 0; i < n; i++) {
        uint32_t member;
        memcpy(&member, item->data + (i + 1) * sizeof member, sizeof member);
        g->in_view[i] = g->rank[member & ~RNL_ORDER_NEW];
        sequencer = i ? sequencer : g->in_view[0];
    }
    qsort(g->in_view, n, sizeof *g->in_view, by_rank); /* those who joined are last */
    const struct rnl_group_view v = {.number = item->seq, .count = n, .ranks = g->in_view, .sequencer = sequencer};
    if (g->opt.changed)
        g->opt.changed(g, &v, g->opt.ctx);
}

static void deliver(void *ctx, const struct rnl_order_item *item)
{
    struct rnl_group *g = ctx;
    if (RNL_UNLIKELY(rnl_ep_forked(g->ep)))
        return;
    if (RNL_UNLIKELY(item->view)) {
        view(g, item);
        return;
    }
    const struct rnl_group_message m = {
        .number = item->seq, .sender = g->rank[item->sender], .buf = item->data, .n = item->bytes};
    g->count[RNL_GROUP_DELIVERED]++;
    g->opt.deliver(g, &m, g->opt.ctx);
}

static void ended(void *ctx, int status)
{
    struct rnl_group *g = ctx;
    g->status = status;
    if (status < 0 && g->opt.ended && !rnl_ep_forked(g->ep))
        g->opt.ended(g, status, g->opt.ctx);
}

static void save(void *ctx)
{
    struct rnl_group *g = ctx;
    g->saving = true;
    if (g->opt.save && !rnl_ep_forked(g->ep))
        g->opt.save(g, g->opt.ctx);
    g->saving = false;
}

static void load(void *ctx, const struct rnl_order_item *piece)
{
    struct rnl_group *g = ctx;
    if (g->opt.load && !rnl_ep_forked(g->ep))
        g->opt.load(g, piece->data, piece->bytes, g->opt.ctx);
}

int rnl_group_put_state(rnl_group *g, const void *buf, size_t n)
{
    if (rnl_ep_forked(g->ep))
        return rnl_fail(RNL_ERR_FORKED, "the group belongs to the process that opened it");
    if (!g->saving)
        return rnl_fail(RNL_ERR_CONTEXT, "rnl_group_put_state was called outside the function `save`");
    if (n > RNL_GROUP_MESSAGE_MAX)
        return rnl_fail(RNL_ERR_TOO_LONG, "a piece of the state has at most %d bytes", RNL_GROUP_MESSAGE_MAX);
    struct rnl_order_item *item = rnl_order_item_new(g->order, n);
    if (!item) {
        rnl_order_fail(g->order, RNL_ERR_NO_MEMORY);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %zu bytes of the state for a rank that joins", n);
    }
    if (n)
        memcpy(item->data, buf, n);
    if (rnl_order_put_state(g->order, item))
        return 0;
    rnl_order_item_drop(g->order, item);
    return rnl_fail(RNL_ERR_TOO_LONG,
                    "the state has at most %d bytes, and each piece counts %d more: put longer pieces",
                    RNL_GROUP_STATE_MAX, RNL_ORDER_ITEM_COST);
}

static const struct rnl_order_ops ops = {
    .send = rnl_group_put, .deliver = deliver, .ended = ended, .save = save, .load = load};

static void died(struct rnl_ep_watch *watch, uint32_t rank)
{
    struct rnl_group *g = (struct rnl_group *)(void *)((char *)watch - offsetof(struct rnl_group, watch));
    if (g->member[rank] != UINT32_MAX)
        rnl_order_died(g->order, g->member[rank]);
}

/* ---- life ---- */

void rnl_group_free(struct rnl_group *g)
{
    for (struct out *out = g->outs, *next; out; out = next) {
        next = out->other;
        rnl_order_item_drop(g->order, out->item);
        free(out);
    }
    for (uint32_t i = 0; g->peer && i < g->members; i++)
        rnl_order_item_drop(g->order, g->peer[i].taking);
    if (g->order)
        rnl_order_free(g->order);
    free(g->rank);
    free(g->member);
    free(g->in_view);
    free(g->peer);
    free(g);
}

void rnl_group_drain(struct rnl_group *g)
{
    if (g->left && !g->posted && !g->taking && !g->ticking)
        rnl_group_free(g);
}

/* While the protocol runs, sends do not wait and run no handlers. */
static int enter(struct rnl_group *g, uint32_t *before)
{
    int status = rnl_ep_enter(g->ep);
    if (status < 0)
        return status;
    *before = g->ep->fast.in_handler;
    if (!*before)
        g->ep->fast.in_handler = RNL_IN_CALL;
    return 0;
}
static void leave(struct rnl_group *g, uint32_t before)
{
    if (!rnl_ep_forked(g->ep))
        g->ep->fast.in_handler = before;
    rnl_ep_leave(g->ep);
}

/* Whether the ranks are given once, ascending, and are ranks of the job. */
static int check_ranks(const rnl_endpoint *ep, unsigned count, const unsigned *ranks)
{
    for (unsigned i = 0; i < count; i++) {
        if (ranks[i] >= ep->size)
            return rnl_fail(RNL_ERR_RANK, "there is no rank %u: the job has ranks 0 to %u", ranks[i], ep->size - 1);
        if (i > 0 && ranks[i] <= ranks[i - 1])
            return rnl_fail(RNL_ERR_ARG, "the ranks of a group are given once and ascending: %u comes after %u",
                            ranks[i], ranks[i - 1]);
    }
    return 0;
}

/* Copies the options, as long as they were when the program was compiled. */
static int complete(const struct rnl_group_options *opt, struct rnl_group_options *out)
{
    if (opt->size < offsetof(struct rnl_group_options, first_count) || opt->size > 4096)
        return rnl_fail(RNL_ERR_ARG, "rnl_group_options.size is %u; set it to sizeof(struct rnl_group_options)",
                        opt->size);
    memset(out, 0, sizeof *out);
    memcpy(out, opt, opt->size < sizeof *out ? opt->size : sizeof *out);
    return 0;
}

/* Whether the number is that of a group, or of one that was left. */
static bool is_taken(const rnl_endpoint *ep, int id)
{
    if (id < 0 || (uint32_t)id >= ep->fast.handlers)
        return false;
    return ep->fast.handler[id].stream == rnl_group_take || ep->fast.handler[id].stream == rnl_group_take_late;
}

static int check(const rnl_endpoint *ep, const struct rnl_group_options *opt)
{
    bool found = opt->count == 0;
    unsigned at = 0;
    if (opt->flags & ~(uint32_t)RNL_GROUP_MAJORITY || !opt->deliver || (unsigned)opt->method > RNL_GROUP_GSB ||
        (opt->count && !opt->ranks) || (opt->first_count && !opt->first_ranks))
        return rnl_fail(RNL_ERR_ARG,
                        "rnl_group_open needs known flags and method, a function that delivers, and ranks if there is "
                        "a count");
    if (is_taken(ep, opt->handler))
        return rnl_fail(RNL_ERR_HANDLER,
                        "handler number %d is that of a group, or of one that was left; give each its own",
                        opt->handler);
    if ((opt->count ? opt->count : ep->size) > RNL_GROUP_MEMBERS_MAX || opt->budget > UINT32_MAX)
        return rnl_fail(RNL_ERR_ARG, "a group has at most %d members, and a budget of at most %u bytes",
                        RNL_GROUP_MEMBERS_MAX, UINT32_MAX);
    int status = check_ranks(ep, opt->count, opt->ranks);
    if (status == 0)
        status = check_ranks(ep, opt->first_count, opt->first_ranks);
    if (status < 0)
        return status;
    for (unsigned i = 0; i < opt->count; i++)
        found |= opt->ranks[i] == ep->rank;
    for (unsigned i = 0; opt->count && i < opt->first_count; i++) {
        while (at < opt->count && opt->ranks[at] < opt->first_ranks[i])
            at++;
        if (at == opt->count || opt->ranks[at] != opt->first_ranks[i])
            return rnl_fail(RNL_ERR_RANK, "rank %u of the first view is not in the set of ranks", opt->first_ranks[i]);
    }
    return found ? 0 : rnl_fail(RNL_ERR_RANK, "rank %u is not in the set of ranks that it gives", ep->rank);
}

static struct rnl_group *new_group(rnl_endpoint *ep, const struct rnl_group_options *opt)
{
    uint32_t members = opt->count ? opt->count : ep->size;
    struct rnl_group *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->ep = ep;
    g->opt = *opt;
    g->opt.ranks = g->opt.first_ranks = NULL;
    g->members = members;
    g->watch.died = died;
    g->rank = calloc(members, sizeof *g->rank);
    g->in_view = calloc(members, sizeof *g->in_view);
    g->peer = calloc(members, sizeof *g->peer);
    g->member = malloc(ep->size * sizeof *g->member);
    if (!g->rank || !g->in_view || !g->peer || !g->member) {
        rnl_group_free(g);
        return NULL;
    }
    memset(g->member, 0xff, ep->size * sizeof *g->member);
    for (uint32_t i = 0; i < members; i++) {
        g->rank[i] = opt->count ? opt->ranks[i] : i;
        g->member[g->rank[i]] = i;
    }
    const bool numbered = ep->env->ops->size > offsetof(struct rnl_env_ops, host_of) && ep->env->ops->host_of;
    bool *first = opt->first_count ? calloc(members, sizeof *first) : NULL;
    uint32_t *host = numbered ? calloc(members, sizeof *host) : NULL;
    if ((opt->first_count && !first) || (numbered && !host)) {
        free(first);
        free(host);
        rnl_group_free(g);
        return NULL;
    }
    for (uint32_t i = 0; i < opt->first_count; i++)
        first[g->member[opt->first_ranks[i]]] = true;
    for (uint32_t i = 0; host && i < members; i++)
        host[i] = ep->env->ops->host_of(ep->env, g->rank[i]);
    const struct rnl_order_options order = {.self = g->member[ep->rank],
                                            .size = members,
                                            .first = first,
                                            .host = host,
                                            .budget = opt->budget ? opt->budget : BUDGET,
                                            .small = 0,
                                            .flat = opt->flat,
                                            .method = method_of[opt->method],
                                            .majority = opt->flags & RNL_GROUP_MAJORITY ? 1 : 0};
    g->order = rnl_order_new(&order, &ops, g);
    free(first);
    free(host);
    if (g->order)
        return g;
    rnl_group_free(g);
    return NULL;
}

static int open_group(rnl_endpoint *ep, const struct rnl_group_options *given, rnl_group **out)
{
    struct rnl_group_options all;
    const struct rnl_group_options *opt = &all;
    int status = complete(given, &all);
    status = status < 0 ? status : check(ep, opt);
    struct rnl_group *g = status < 0 ? NULL : new_group(ep, opt);
    if (!g)
        return status < 0 ? status : rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a group");
    const struct rnl_handler h = {
        .stream = rnl_group_take, .whole = NULL, .ctx = g, .flags = rnl_handler_flags(&rnl_group_iface), .kind = 0};
    status = rnl_iface_counters(&rnl_group_iface, ep->c, &g->count);
    if (status == 0)
        status = rnl_stream_register(ep, opt->handler, &h);
    if (status < 0) {
        rnl_group_free(g);
        return status;
    }
    g->opt.handler = status;
    g->watch.next = ep->hooks.watches;
    ep->hooks.watches = &g->watch;
    *out = g;
    return 0;
}

int rnl_group_open(rnl_endpoint *ep, const struct rnl_group_options *opt, rnl_group **out)
{
    struct rnl_group *g = NULL;
    uint32_t before;
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = open_group(ep, opt, &g);
    rnl_ep_leave(ep);
    if (status < 0 || (status = enter(g, &before)) < 0)
        return status;
    *out = g;
    rnl_order_begin(g->order);
    for (uint32_t i = 0; i < g->members; i++) {
        struct rnl_peer_info info;
        if (rnl_peer(ep, g->rank[i], &info) == 0 && (info.state == RNL_PEER_DEAD || info.state == RNL_PEER_RETURNED))
            rnl_order_died(g->order, i);
    }
    leave(g, before);
    return 0;
}

/* ---- sending ---- */

static int send(struct rnl_group *g, const struct rnl_buffer *pieces, unsigned count, size_t bytes)
{
    if (RNL_UNLIKELY(rnl_order_has_ended(g->order)))
        return rnl_fail(g->status < 0 ? g->status : RNL_ERR_CLOSED, "this rank is not in the group any more");
    if (RNL_UNLIKELY(g->leaves))
        return rnl_fail(RNL_ERR_CLOSED, "this rank is leaving the group");
    if (RNL_UNLIKELY(!rnl_order_room(g->order)))
        return RNL_NO_ROOM;
    struct rnl_order_item *item = rnl_order_item_new(g->order, bytes);
    if (RNL_UNLIKELY(!item))
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a message of %zu bytes to a group", bytes);
    unsigned char *at = item->data;
    for (unsigned i = 0; i < count; i++) {
        if (pieces[i].n <= 64)
            rnl_copy_words(at, pieces[i].buf, pieces[i].n);
        else
            memcpy(at, pieces[i].buf, pieces[i].n);
        at += pieces[i].n;
    }
    g->count[RNL_GROUP_SENT]++;
    rnl_order_send(g->order, item);
    return 0;
}

int rnl_group_send(rnl_group *g, const struct rnl_buffer *pieces, unsigned count, unsigned flags)
{
    size_t bytes = 0;
    uint32_t before;
    if (flags & ~(unsigned)RNL_NO_WAIT)
        return rnl_fail(RNL_ERR_ARG, "unknown bits 0x%x in flags; RNL_NO_WAIT is the only one", flags);
    for (unsigned i = 0; i < count; i++) {
        if (pieces[i].n > RNL_GROUP_MESSAGE_MAX - bytes)
            return rnl_fail(RNL_ERR_TOO_LONG, "a message to a group has at most %d bytes", RNL_GROUP_MESSAGE_MAX);
        bytes += pieces[i].n;
    }
    for (;;) {
        int status = enter(g, &before);
        if (status < 0)
            return status;
        status = send(g, pieces, count, bytes);
        leave(g, before);
        if (RNL_LIKELY(status != RNL_NO_ROOM))
            return status;
        if (before || flags & RNL_NO_WAIT)
            return rnl_fail(RNL_NO_ROOM, "what this member sent before is not delivered by all yet");
        g->waits++;
        g->count[RNL_GROUP_WAITS]++;
        int64_t got = rnl_wait(g->ep, -1);
        if (got < 0)
            return (int)got;
    }
}

/* ---- leaving ---- */

static bool is_through(struct rnl_group *g)
{
    if (rnl_order_has_ended(g->order))
        return true;
    if (!g->leaves && rnl_order_is_idle(g->order)) {
        g->leaves = true;
        rnl_order_leave(g->order);
    }
    return rnl_order_has_ended(g->order);
}

static void forget(struct rnl_group *g)
{
    static const struct rnl_handler late = {.stream = rnl_group_take_late};
    struct rnl_ep_watch **at = &g->ep->hooks.watches;
    while (*at != &g->watch)
        at = &(*at)->next;
    *at = g->watch.next;
    (void)rnl_stream_register(g->ep, g->opt.handler, &late);
    g->left = true;
}

int rnl_group_leave(rnl_group *g, int64_t timeout_ns)
{
    struct rnl_endpoint *ep = g->ep;
    uint64_t begin = 0;
    int64_t got = 0;
    for (;;) {
        uint32_t before;
        int status = enter(g, &before);
        if (status < 0)
            return status;
        bool through = before == 0 && is_through(g);
        uint64_t now = ep->env->ops->now_ns(ep->env);
        bool gone = through || (got < 0 && got != RNL_TIMED_OUT && got != RNL_INTERRUPTED);
        begin = begin ? begin : now;
        if (gone)
            forget(g);
        leave(g, before);
        if (before)
            return rnl_fail(RNL_ERR_CONTEXT, "rnl_group_leave was called in a handler; call it from the program");
        if (gone) {
            rnl_group_drain(g);
            return through ? 0 : (int)got;
        }
        if (timeout_ns >= 0 && now - begin >= (uint64_t)timeout_ns)
            return rnl_fail(RNL_TIMED_OUT, "not all members have agreed to the new view in time");
        got = rnl_wait(ep, timeout_ns < 0 ? -1 : timeout_ns - (int64_t)(now - begin));
    }
}

void rnl_group_get_stats(const rnl_group *g, struct rnl_group_stats *out)
{
    const struct rnl_order_stats *s = rnl_order_get_stats(g->order);
    *out = (struct rnl_group_stats){.sent = s->sent,
                                    .delivered = s->delivered,
                                    .numbered = s->ordered,
                                    .forwarded = s->forwarded,
                                    .again = s->again,
                                    .views = s->views,
                                    .waits = g->waits,
                                    .refused = s->refused,
                                    .kept_bytes = s->kept_bytes};
}
