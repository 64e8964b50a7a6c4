/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_group.c - what members of a group, and ranks that join it, might say: the input chooses which of three members
 * is fed, who speaks, and what about the message is a lie. What the member sends is bounded by what came in, and what
 * it keeps by the shares; views that it delivers are of members that there are. */
#include "api/group/order.h"
#include "input.h"
#include "runnel/runnel.h"

enum { MEMBERS = 5, LONGEST = 400, STEPS = 200, BUDGET = 5 * 16384, SENT_MAX = 100000 };

struct world {
    struct rnl_order *o;
    uint64_t last, sent; /* place delivered last; messages sent */
    uint32_t epoch;      /* the highest that was sent or said */
    bool ended, joins;
};

static void put(void *ctx, uint32_t to, const struct rnl_order_head *head, struct rnl_order_item *item)
{
    struct world *w = ctx;
    FUZZ_MUST(to < MEMBERS && head->kind > 0 && head->kind < RNL_ORDER_KINDS);
    FUZZ_MUST(!item || item->refs > 0);
    w->epoch = head->epoch > w->epoch ? head->epoch : w->epoch;
    w->sent++;
}

static void deliver(void *ctx, const struct rnl_order_item *item)
{
    struct world *w = ctx;
    FUZZ_MUST(!w->ended && (item->seq == w->last + 1 || (w->joins && w->last == 0)));
    w->last = item->seq;
    if (!item->view) {
        FUZZ_MUST(item->sender < MEMBERS);
        return;
    }
    FUZZ_MUST(item->bytes % 4 == 0 && item->bytes >= 4 && item->bytes / 4 - 1 <= MEMBERS);
    for (uint32_t i = 1; i < item->bytes / 4; i++) {
        uint32_t member;
        memcpy(&member, item->data + 4 * i, 4);
        FUZZ_MUST((member & ~RNL_ORDER_NEW) < MEMBERS);
    }
}

static void ended(void *ctx, int status)
{
    struct world *w = ctx;
    FUZZ_MUST(!w->ended && status <= 0);
    w->ended = true;
}

static void save(void *ctx)
{
    struct world *w = ctx;
    struct rnl_order_item *item = rnl_order_item_new(w->o, 8);
    FUZZ_MUST(item);
    memset(item->data, 7, 8);
    FUZZ_MUST(rnl_order_put_state(w->o, item));
}

static void load(void *ctx, const struct rnl_order_item *piece)
{
    struct world *w = ctx;
    FUZZ_MUST(w->joins && w->last == 0 && !w->ended && piece->bytes <= LONGEST);
}

static const struct rnl_order_ops ops = {.send = put, .deliver = deliver, .ended = ended, .save = save, .load = load};

/* What follows the head, as the kind has it, with lies where the input wants them. */
static struct rnl_order_item *body(struct world *w, struct fuzz_input *in, const struct rnl_order_head *head)
{
    unsigned char bytes[LONGEST];
    size_t n = 0;
    const unsigned shape = fuzz_below(in, 8);
    if (shape == 0)
        return NULL;
    if (head->kind == RNL_ORDER_CUT) {
        unsigned count = fuzz_below(in, MEMBERS + 1);
        for (unsigned i = 0; i < count; i++, n += sizeof(struct rnl_order_end)) {
            struct rnl_order_end end = {.member = (i + head->member) % MEMBERS, .role = 0, .seq = head->seq};
            unsigned lie = fuzz_below(in, 8);
            if (lie == 1)
                end.member = (uint32_t)fuzz_number(in, i);
            if (lie == 2)
                end.role = fuzz_below(in, 4);
            if (lie == 3)
                end.seq = fuzz_number(in, head->seq);
            memcpy(bytes + n, &end, sizeof end);
        }
    } else if (head->kind == RNL_ORDER_WELCOME || (head->kind == RNL_ORDER_FILL && (head->flags & RNL_ORDER_ROOT))) {
        unsigned count = fuzz_below(in, MEMBERS + 2);
        if (head->kind == RNL_ORDER_WELCOME)
            for (; n < MEMBERS * sizeof(uint64_t); n += sizeof(uint64_t)) {
                uint64_t lseq = fuzz_below(in, 3);
                memcpy(bytes + n, &lseq, sizeof lseq);
            }
        uint32_t epoch = head->epoch;
        memcpy(bytes + n, &epoch, sizeof epoch);
        n += sizeof epoch;
        for (unsigned i = 0; i < count; i++, n += sizeof(uint32_t)) {
            unsigned newly = fuzz_below(in, 4);
            uint32_t member = fuzz_below(in, MEMBERS + 1);
            member |= newly == 0 ? RNL_ORDER_NEW : 0;
            memcpy(bytes + n, &member, sizeof member);
        }
    } else if (head->kind == RNL_ORDER_FLUSH || head->kind == RNL_ORDER_STATE || head->kind == RNL_ORDER_GONE) {
        bytes[0] = (unsigned char)fuzz_below(in, 256);
        if (shape > 2)
            bytes[0] &= 1;
        n = 1;
    } else {
        n = fuzz_below(in, LONGEST);
        memset(bytes, (int)head->lseq, n);
    }
    if (shape == 1)
        n = fuzz_below(in, (unsigned)n + 1);
    struct rnl_order_item *item = rnl_order_item_new(w->o, n);
    FUZZ_MUST(item);
    if (n)
        memcpy(item->data, bytes, n);
    return item;
}

/* A message that could be true now, with lies where the input wants them. */
static void say(struct world *w, struct fuzz_input *in)
{
    const uint32_t from = fuzz_below(in, MEMBERS);
    const unsigned kind = fuzz_below(in, RNL_ORDER_KINDS + 1), lies = fuzz_below(in, 64);
    struct rnl_order_head head = {.kind = (uint8_t)kind, .epoch = w->epoch, .seq = w->last + 1, .member = from};
    head.lseq = 1 + fuzz_below(in, 4);
    head.flags = (uint8_t)fuzz_below(in, 16);
    if (lies & 1)
        head.epoch = (uint32_t)(w->epoch + 1 - fuzz_below(in, 3));
    if (lies & 2)
        head.seq = w->last + fuzz_below(in, 8);
    if (lies & 4)
        head.member = fuzz_below(in, MEMBERS + 1);
    if (lies & 8)
        head.stable = fuzz_below(in, 4);
    if ((lies & 48) == 48) {
        head.seq = fuzz_number(in, head.seq);
        head.lseq = fuzz_number(in, head.lseq);
        head.epoch = (uint32_t)fuzz_number(in, head.epoch);
        head.stable = (uint32_t)fuzz_number(in, head.stable);
    }
    if (head.epoch - w->epoch <= 2)
        w->epoch = head.epoch;
    rnl_order_input(w->o, from, &head, body(w, in, &head));
}

static void own(struct world *w, struct fuzz_input *in)
{
    struct rnl_order_item *item;
    if (!rnl_order_room(w->o) || w->ended)
        return;
    item = rnl_order_item_new(w->o, fuzz_below(in, 200));
    FUZZ_MUST(item);
    memset(item->data, 1, item->bytes);
    rnl_order_send(w->o, item);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    const bool first[MEMBERS] = {true, true, false, true, false};
    const uint32_t self = fuzz_below(&in, 3); /* the sequencer, another, one that joins */
    struct world w = {.epoch = 1, .joins = self == 2};
    struct rnl_order_options opt = {.self = self, .size = MEMBERS, .first = first, .budget = BUDGET, .small = 100};
    opt.flat = 1 + fuzz_below(&in, 4);
    opt.method = (uint8_t)fuzz_below(&in, 4);
    opt.majority = (uint8_t)fuzz_below(&in, 2);
    w.o = rnl_order_new(&opt, &ops, &w);
    FUZZ_MUST(w.o);
    rnl_order_begin(w.o);
    for (unsigned i = 0; i < STEPS && fuzz_more(&in) && w.sent < SENT_MAX; i++) {
        unsigned what = fuzz_below(&in, 32);
        if (what < 26)
            say(&w, &in);
        else if (what < 29)
            own(&w, &in);
        else if (what == 29)
            rnl_order_died(w.o, fuzz_below(&in, MEMBERS));
        else if (what == 30 && rnl_order_is_idle(w.o) && !w.ended)
            rnl_order_leave(w.o);
        const struct rnl_order_stats *s = rnl_order_get_stats(w.o);
        FUZZ_MUST(s->kept_bytes <= BUDGET + (uint64_t)STEPS * (LONGEST + RNL_ORDER_ITEM_COST));
        FUZZ_MUST(w.ended == rnl_order_has_ended(w.o));
    }
    FUZZ_MUST(w.sent < SENT_MAX);
    rnl_order_free(w.o);
    return 0;
}
