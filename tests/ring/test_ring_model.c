/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A ring and its bulk area against a plain queue: random operations of both ends, of a single thread. Whatever the
 * order, each line comes out once, in order, with its bytes; no line and no byte is overwritten before it is read; room
 * and grant are what was told; the checkers agree; and at the end all credit is back. */
#include "ring/pair.h"

#include <stdio.h>

#include "support/model.h"
#include "support/unit.h"

enum op_kind {
    OP_SEND,   /* len, handler, count */
    OP_TAKE,   /* count */
    OP_ANSWER, /* send, take: positions ride on headers */
    OP_TELL,
    OP_REFRESH,
    OP_RESERVE, /* bytes, filled: announces an extent */
    OP_MORE,    /* bytes of it */
    OP_CLOSE,   /* trims it */
    OP_CONSUME, /* bytes */
    OP_GROW,
    OP_KEEP,  /* units */
    OP_FREE,  /* units */
    OP_GRANT, /* units */
    OP_ASK_BACK,
    OP_GIVE_BACK,
    OP_KINDS
};
static const char *const op_names[OP_KINDS] = {"send",    "take", "answer", "tell",     "refresh",
                                               "reserve", "more", "close",  "consume",  "grow",
                                               "keep",    "free", "grant",  "ask back", "give back"};

struct thing { /* a line's worth in the plain queue */
    unsigned kind, handler, len;
    uint64_t id;
    struct rnl_extent extent; /* EXTENT */
    struct rnl_prefix prefix; /* PREFIX */
};
struct range { /* announced bytes not yet consumed */
    uint64_t start, bytes, id, offset;
};

enum { THINGS = 1 << 14, RANGES = 1 << 12 };

struct world {
    struct ring_pair p;
    unsigned lane;
    struct rnl_tx *t;
    struct rnl_rx *r;
    struct thing *thing;
    size_t first, last;
    struct range *range;
    size_t range_first, range_last;
    uint64_t next_id, back_id, back_read;
    /* the open extent at the sender */
    int open;
    uint64_t start, extent_id, filled, published;
    uint32_t reserved;
    /* ... and at the receiver */
    int rx_open;
    uint64_t rx_start, rx_id, rx_published;
    uint32_t rx_reserved;
    uint64_t consumed;
    int grew, rx_grew;
    struct test_why *why;
};

#define BAD(...) test_why(w->why, __VA_ARGS__)

/* ---- what may be used, by the truth ---- */

static uint64_t ring_lines(const struct world *w)
{
    return RNL_CELLS(w->t->wrap);
}

static uint64_t used(const struct world *w)
{
    return rnl_tx_cell(w->t) - w->t->cell0 + w->t->bulk_head / 64;
}

/* What the receiver really allows: what it has read, and what stands. */
static uint64_t allowed(const struct world *w)
{
    return w->r->outstanding_max + w->r->reclaimed + ((w->r->pos >> 3) - w->r->cell0 - 1) + w->consumed / 64 -
           w->t->credit_returned;
}

static int check(struct world *w, const char *after)
{
    char text[500];
    int bad = rnl_tx_valid(w->t);
    if (bad) {
        rnl_tx_dump(w->t, text, sizeof text);
        return BAD("sender's invariant %d after %s: %s", bad, after, text);
    }
    bad = rnl_rx_valid(w->r);
    if (bad) {
        rnl_rx_dump(w->r, text, sizeof text);
        return BAD("receiver's invariant %d after %s: %s", bad, after, text);
    }
    if (rnl_tx_cell(w->t) + 1 - (w->r->pos >> 3) > ring_lines(w) && !(w->grew && !w->rx_grew))
        return BAD("%llu lines unread in a ring of %llu after %s",
                   (unsigned long long)(rnl_tx_cell(w->t) + 1 - (w->r->pos >> 3)), (unsigned long long)ring_lines(w),
                   after);
    if (used(w) > allowed(w) && w->r->outstanding_max > RNL_GRANT_MIN)
        return BAD("%llu units used, %llu allowed after %s", (unsigned long long)used(w),
                   (unsigned long long)allowed(w), after);
    return 0;
}

/* ---- sending ---- */

static int note(struct world *w, struct thing t)
{
    if (w->last == THINGS)
        return BAD("the test is too long");
    w->thing[w->last++] = t;
    return 0;
}

/* One line or item; 1 = sent, 0 = no room, checked against what was told. */
static int send_line(struct world *w, unsigned kind, unsigned handler, unsigned len, const void *buf)
{
    rnl_header key = rnl_header_key(kind, handler, len);
    int put = ring_put(&w->p.a, w->lane, key, buf);
    if (put < 0) {
        const struct rnl_credit_words *back = &w->p.b.side->credit[w->lane];
        int now = rnl_tx_refresh(w->t, NULL, NULL);
        uint64_t position = atomic_load(&back->position), granted = atomic_load(&back->granted);
        if (position < w->t->acked)
            position = w->t->acked;
        if (granted < RNL_GRANT_MIN)
            granted = RNL_GRANT_MIN;
        int room = rnl_tx_cell(w->t) + 1 < (position >> 3) + ring_lines(w) && used(w) < granted - w->t->credit_returned;
        if (now != room)
            return !BAD("refresh says %d, what was told means %d", now, room);
        if (!now)
            return 0;
        put = ring_put(&w->p.a, w->lane, key, buf);
        if (put != 1)
            return !BAD("a refresh found room, but placing says %d", put);
    }
    if (kind != RNL_CELL_RECORDS)
        rnl_tx_close_other(w->t);
    return 1;
}

static int op_send(struct world *w, const struct test_op *op)
{
    unsigned len = op->arg[0] % (RNL_CELL_PAYLOAD + 1);
    for (unsigned i = 0; i <= op->arg[2]; i++) {
        uint64_t id = w->next_id;
        /* No stream sends items before its open message ends: their line gives its unit back only when the next is
         * begun, and that would be the one that ends the message. */
        if (w->open && used(w) + 1 >= w->t->granted - w->t->credit_returned)
            break;
        if (!send_line(w, RNL_CELL_RECORDS, op->arg[1], len, test_pattern(id, 0)))
            break;
        w->next_id++;
        if (note(w, (struct thing){.kind = RNL_CELL_RECORDS, .handler = op->arg[1], .len = len, .id = id}))
            return 1;
    }
    return 0;
}

static void fill(struct world *w, uint64_t bytes)
{
    uint64_t left = w->reserved - w->filled;
    bytes = bytes < left ? bytes : left;
    memcpy(w->p.bulk + (w->start + w->filled) % RNL_BULK_BYTES, test_pattern(w->extent_id, w->filled), bytes);
    w->filled += bytes;
}

static int announce(struct world *w, int first, unsigned flags)
{
    if (first) {
        struct rnl_extent e = {.start = w->start,
                               .reserved = w->reserved,
                               .published = (uint32_t)w->filled,
                               .bound = w->reserved,
                               .flags = flags | RNL_EXTENT_FIRST};
        if (!send_line(w, RNL_CELL_EXTENT, 5, sizeof e, &e))
            return 0;
        if (note(w, (struct thing){.kind = RNL_CELL_EXTENT, .id = w->extent_id, .extent = e}))
            return -1;
    } else {
        struct rnl_prefix f = {.published = (uint32_t)w->filled, .flags = flags};
        if (!send_line(w, RNL_CELL_PREFIX, 5, sizeof f, &f))
            return 0;
        if (note(w, (struct thing){.kind = RNL_CELL_PREFIX, .id = w->extent_id, .prefix = f}))
            return -1;
    }
    w->published = w->filled;
    return 1;
}

static int op_reserve(struct world *w, const struct test_op *op)
{
    uint64_t start;
    uint32_t bytes = op->arg[0] % (RNL_BULK_BYTES / 2 + 1);
    if (w->open || RNL_CELL_START(w->t->pos) + 8 >= w->t->stop) /* a line to announce it and one to close it */
        return 0;
    int status = rnl_tx_bulk_room(w->t, bytes, &start);
    uint64_t head = w->t->bulk_head, offset = head % RNL_BULK_BYTES;
    uint64_t read = atomic_load(&w->p.b.side->credit[w->lane].bulk_read),
             granted = w->t->granted - w->t->credit_returned;
    uint64_t over = RNL_BULK_BYTES - offset, half = RNL_BULK_BYTES / 2, eighth = RNL_BULK_BYTES / 8;
    int early = offset <= half && offset + bytes > half && bytes <= eighth && head - read <= eighth &&
                used(w) + (over + bytes) / 64 + 2 <= granted;
    uint64_t area = w->lane == 1 && bytes <= RNL_BULK_REPLY_MAX ? RNL_BULK_REPLIES_BYTES : RNL_BULK_BYTES;
    uint64_t at = offset + bytes > area || early ? head + over : head, end = at + (bytes + 63u) / 64 * 64;
    int room = end - read <= RNL_BULK_BYTES && used(w) + 1 + (end - head) / 64 <= granted;
    if (status != room)
        return BAD("%u bytes of bulk area: found room %d, should be %d", bytes, status, room);
    if (!status)
        return 0;
    if (start != at)
        return BAD("an extent starts at %llu, should at %llu", (unsigned long long)start, (unsigned long long)at);
    rnl_tx_bulk_take(w->t, end);
    w->open = 1;
    w->start = start;
    w->reserved = bytes;
    w->extent_id = w->next_id++;
    w->filled = w->published = 0;
    fill(w, op->arg[1]);
    return announce(w, 1, 0) < 0;
}

static int op_close(struct world *w)
{
    if (!w->open)
        return 0;
    int said = announce(w, 0, RNL_EXTENT_LAST | RNL_EXTENT_CLOSED);
    if (said <= 0)
        return said < 0;
    if (w->published < w->reserved)
        rnl_tx_bulk_take(w->t, w->start + (w->published + 63) / 64 * 64);
    w->open = 0;
    return 0;
}

static int op_grow(struct world *w)
{
    if (w->lane != 0 || w->grew || !send_line(w, RNL_CELL_GROW, 0, 0, NULL))
        return 0;
    rnl_tx_grow(w->t, w->p.big);
    w->grew = 1;
    return note(w, (struct thing){.kind = RNL_CELL_GROW});
}

/* ---- taking ---- */

static int add_range(struct world *w, uint64_t start, uint64_t bytes, uint64_t id, uint64_t offset)
{
    if (w->range_last == RANGES)
        return BAD("the test is too long");
    w->range[w->range_last++] = (struct range){start, bytes, id, offset};
    return 0;
}

static int take_extent(struct world *w, const struct thing *want, const unsigned char *buf)
{
    struct rnl_extent e;
    memcpy(&e, buf, sizeof e);
    if (memcmp(&e, &want->extent, sizeof e) != 0)
        return BAD("an extent's line was changed");
    if (rnl_rx_extent(w->r, &e) != 0)
        return BAD("a good extent is called broken");
    w->rx_open = 1;
    w->rx_start = e.start;
    w->rx_reserved = e.reserved;
    w->rx_published = e.published;
    w->rx_id = want->id;
    w->r->bulk_next = e.start + (e.reserved + 63u) / 64 * 64;
    return add_range(w, e.start, e.published, want->id, 0);
}

static int take_prefix(struct world *w, const struct thing *want, const unsigned char *buf)
{
    struct rnl_prefix f;
    memcpy(&f, buf, sizeof f);
    if (memcmp(&f, &want->prefix, sizeof f) != 0)
        return BAD("a prefix's line was changed");
    if (add_range(w, w->rx_start + w->rx_published, f.published - w->rx_published, want->id, w->rx_published))
        return 1;
    w->rx_published = f.published;
    if (f.flags & RNL_EXTENT_CLOSED) {
        w->rx_open = 0;
        w->r->bulk_next = w->rx_start + (f.published + 63u) / 64 * 64;
    }
    return 0;
}

/* 1 = took one, 0 = nothing there, -1 = wrong. */
static int take(struct world *w)
{
    unsigned char buf[RNL_CELL_PAYLOAD];
    rnl_header h;
    if (!ring_take(&w->p.b, w->lane, &h, buf))
        return w->first == w->last ? 0 : -BAD("%zu things were sent, but none is there", w->last - w->first);
    if (w->first == w->last)
        return -BAD("something is there that nobody sent");
    const struct thing *want = &w->thing[w->first++];
    if (RNL_HEADER_KIND(h) != want->kind)
        return -BAD("a line of kind %u, expected %u", RNL_HEADER_KIND(h), want->kind);
    switch (want->kind) {
    case RNL_CELL_RECORDS:
        if (RNL_HEADER_HANDLER(h) != want->handler || RNL_HEADER_LEN(h) != want->len ||
            memcmp(buf, test_pattern(want->id, 0), want->len) != 0)
            return -BAD("item %llu came out wrong", (unsigned long long)want->id);
        return 1;
    case RNL_CELL_EXTENT:
        return take_extent(w, want, buf) ? -1 : 1;
    case RNL_CELL_PREFIX:
        return take_prefix(w, want, buf) ? -1 : 1;
    default:
        rnl_rx_grow(w->r, w->p.big);
        w->rx_grew = 1;
        return 1;
    }
}

/* Bytes are looked at as late as possible: nobody may have written over them. */
static int consume(struct world *w, uint64_t bytes)
{
    while (w->range_first < w->range_last) {
        struct range *g = &w->range[w->range_first];
        uint64_t n = g->bytes < bytes ? g->bytes : bytes;
        if (memcmp(w->p.bulk + g->start % RNL_BULK_BYTES, test_pattern(g->id, g->offset), n) != 0)
            return BAD("bytes of extent %llu from %llu on were overwritten", (unsigned long long)g->id,
                       (unsigned long long)g->offset);
        g->start += n;
        g->offset += n;
        g->bytes -= n;
        bytes -= n;
        if (g->bytes)
            break;
        w->range_first++;
    }
    uint64_t to = w->range_first < w->range_last ? w->range[w->range_first].start / 64 * 64
                  : w->rx_open                   ? (w->rx_start + w->rx_published) / 64 * 64
                                                 : w->r->bulk_next;
    if (to > w->consumed)
        w->consumed = to;
    rnl_rx_bulk_done(w->r, to);
    return 0;
}

static int op_answer(struct world *w, const struct test_op *op)
{
    for (unsigned i = 0; i <= op->arg[0]; i++) {
        if (ring_put(&w->p.b, w->lane, rnl_header_key(RNL_CELL_RECORDS, 1, 8), &w->back_id) < 0)
            break;
        w->back_id++;
    }
    for (unsigned i = 0; i < op->arg[1]; i++) {
        rnl_header h;
        uint64_t got;
        if (!ring_take(&w->p.a, w->lane, &h, &got))
            break;
        if (got != w->back_read++)
            return BAD("an answer came out of order");
        if (rnl_tx_acked(w->t, &w->p.a.rx[w->lane], RNL_HEADER_ACK(h)) < 0)
            return BAD("a true position is called broken");
    }
    rnl_rx_advertise(&w->p.a.rx[w->lane]);
    return rnl_tx_refresh(&w->p.b.tx[w->lane], NULL, NULL) < 0 ? BAD("a true position is called broken") : 0;
}

static int op_tell(struct world *w)
{
    const struct rnl_credit_words *back = &w->p.b.side->credit[w->lane];
    uint64_t before = atomic_load(&back->granted);
    rnl_rx_advertise(w->r);
    uint64_t sum = w->r->outstanding_max + w->r->reclaimed + ((w->r->pos >> 3) - w->r->cell0 - 1) + w->consumed / 64;
    uint64_t want = sum > w->r->withheld ? sum - w->r->withheld : 0, now = atomic_load(&back->granted);
    if (want < before || want <= RNL_GRANT_MIN)
        want = before;
    if (now != want)
        return BAD("%llu units told, should be %llu", (unsigned long long)now, (unsigned long long)want);
    if (atomic_load(&back->position) != w->r->pos)
        return BAD("another position was told than the true one");
    return 0;
}

static int step(struct world *w, const struct test_op *op)
{
    switch (op->kind) {
    case OP_SEND:
        return op_send(w, op);
    case OP_TAKE:
        for (unsigned i = 0; i <= op->arg[0]; i++) {
            int took = take(w);
            if (took <= 0)
                return took < 0;
        }
        return 0;
    case OP_ANSWER:
        return op_answer(w, op);
    case OP_TELL:
        return op_tell(w);
    case OP_REFRESH:
        return rnl_tx_refresh(w->t, NULL, NULL) < 0 ? BAD("a true position is called broken") : 0;
    case OP_RESERVE:
        return op_reserve(w, op);
    case OP_MORE:
        if (w->open) {
            fill(w, op->arg[0]);
            return RNL_CELL_START(w->t->pos) + 8 < w->t->stop && announce(w, 0, 0) < 0;
        }
        return 0;
    case OP_CLOSE:
        return op_close(w);
    case OP_CONSUME:
        return consume(w, op->arg[0]);
    case OP_GROW:
        return op_grow(w);
    case OP_KEEP:
        w->r->withheld += op->arg[0];
        return 0;
    case OP_FREE:
        w->r->withheld -= op->arg[0] < w->r->withheld ? op->arg[0] : w->r->withheld;
        rnl_rx_advertise(w->r);
        return 0;
    case OP_GRANT:
        rnl_rx_grant(w->r, op->arg[0]);
        return 0;
    case OP_ASK_BACK:
        if (w->lane == 0)
            rnl_rx_reclaim(w->r, RNL_GRANT_MIN + op->arg[0]);
        return 0;
    default:
        rnl_tx_return_credit(w->t);
        (void)rnl_rx_reclaimed(w->r);
        return 0;
    }
}

/* Everything goes out, is taken and given back. */
static int finish(struct world *w)
{
    w->r->withheld = 0;
    for (unsigned i = 0; w->open; i++) {
        if (i == 3)
            return BAD("an extent cannot be closed although all is read");
        if (op_close(w))
            return 1;
        for (int took = 1; took;) {
            took = take(w);
            if (took < 0 || consume(w, UINT64_MAX))
                return 1;
        }
        rnl_rx_advertise(w->r);
    }
    for (int took = 1; took;) {
        took = take(w);
        if (took < 0)
            return 1;
    }
    if (consume(w, UINT64_MAX) || op_tell(w))
        return 1;
    if (w->first != w->last)
        return BAD("%zu things never came out", w->last - w->first);
    if (rnl_tx_refresh(w->t, NULL, NULL) != 1)
        return BAD("all is read, but there is no room");
    rnl_tx_return_credit(w->t);
    (void)rnl_rx_reclaimed(w->r);
    if (w->t->credit_returned != w->r->reclaimed)
        return BAD("%llu units given back, %llu came", (unsigned long long)w->t->credit_returned,
                   (unsigned long long)w->r->reclaimed);
    uint64_t spare = w->t->granted - w->t->credit_returned - used(w),
             open_line = rnl_tx_cell(w->t) + 1 - (w->r->pos >> 3);
    if (spare + open_line != w->r->outstanding_max)
        return BAD("%llu units may be used after all, %llu stand", (unsigned long long)(spare + open_line),
                   (unsigned long long)w->r->outstanding_max);
    return check(w, "the end");
}

static int run(uint64_t seed, const struct test_op *ops, size_t n, struct test_why *why)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    struct test_random chance = test_random_of(seed, 0);
    int bad = 0;
    ring_pair_init(&w->p, test_random_below(&chance, 64), test_random_below(&chance, 64));
    w->lane = test_random_below(&chance, 2) ? 0 : test_random_below(&chance, RNL_LANES);
    w->p.a.tx[w->lane].bulk = w->p.bulk;
    w->t = &w->p.a.tx[w->lane];
    w->r = &w->p.b.rx[w->lane];
    w->thing = malloc(THINGS * sizeof *w->thing);
    w->range = malloc(RANGES * sizeof *w->range);
    w->why = why;
    if (!w->thing || !w->range)
        abort();
    for (size_t i = 0; i < n && !bad; i++)
        bad = step(w, &ops[i]) || why->text[0] || check(w, op_names[ops[i].kind]);
    if (!bad)
        bad = finish(w) || why->text[0];
    ring_pair_free(&w->p);
    free(w->thing);
    free(w->range);
    free(w);
    return bad;
}

/* ---- operations ---- */

static uint32_t size(struct test_random *r, size_t max)
{
    static const size_t edges[] = {7, 8, 9, 18, 19, 28, 56, 64, 128, 4096, RNL_BULK_BYTES / 8, RNL_BULK_BYTES / 2};
    return (uint32_t)test_random_size(r, max, edges, sizeof edges / sizeof *edges);
}

static size_t generate(uint64_t seed, struct test_op *ops, size_t max_ops)
{
    struct test_random r = test_random_of(seed, 1);
    size_t n = 1 + test_random_below(&r, (uint32_t)max_ops);
    /* each list has its own taste: some ends hardly read, some hardly send */
    unsigned weight[OP_KINDS], sum = 0;
    for (unsigned k = 0; k < OP_KINDS; k++)
        sum += weight[k] = test_random_below(&r, k <= OP_TAKE ? 20 : k == OP_GROW || k == OP_GRANT ? 3 : 8);
    int bulk = test_random_one_in(&r, 3); /* others live on the bulk area, so that it comes round */
    if (bulk) {
        memset(weight, 0, sizeof weight);
        weight[OP_RESERVE] = weight[OP_CLOSE] = weight[OP_TAKE] = weight[OP_CONSUME] = 6;
        weight[OP_MORE] = weight[OP_TELL] = weight[OP_KEEP] = weight[OP_FREE] = weight[OP_SEND] = 1;
        sum = 29;
    }
    if (!sum)
        sum = weight[OP_SEND] = 1;
    for (size_t i = 0; i < n; i++) {
        struct test_op *op = &ops[i];
        unsigned pick = test_random_below(&r, sum);
        for (op->kind = 0; pick >= weight[op->kind]; op->kind++)
            pick -= weight[op->kind];
        if (bulk && i == 0)
            op->kind = OP_GRANT;
        switch (op->kind) {
        case OP_SEND:
            op->arg[0] = test_random_one_in(&r, 2) ? 8 : size(&r, RNL_CELL_PAYLOAD);
            op->arg[1] = test_random_below(&r, 3);
            op->arg[2] = size(&r, 40);
            break;
        case OP_RESERVE:
            op->arg[0] = size(&r, RNL_BULK_BYTES / 2);
            op->arg[1] = size(&r, RNL_BULK_BYTES / 2);
            break;
        case OP_MORE:
        case OP_CONSUME:
            op->arg[0] = size(&r, RNL_BULK_BYTES);
            break;
        case OP_KEEP:
        case OP_FREE:
            op->arg[0] = size(&r, 500);
            break;
        case OP_GRANT:
            op->arg[0] = bulk ? 1 << 15 : size(&r, 1 << 15);
            break;
        case OP_ASK_BACK:
            op->arg[0] = size(&r, 5000);
            break;
        default:
            op->arg[0] = size(&r, 60);
            op->arg[1] = size(&r, 60);
            break;
        }
    }
    return n;
}

static void print(const struct test_op *op, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s %u %u %u", op_names[op->kind], op->arg[0], op->arg[1], op->arg[2]);
}

static void any_order_of_operations_is_a_queue(void **state)
{
    (void)state;
    const struct test_model m = {.name = "ring",
                                 .max_ops = 300,
                                 .seeds = 4000 / test_slowness(),
                                 .seconds = 10,
                                 .generate = generate,
                                 .run = run,
                                 .print = print};
    assert_int_equal(test_model_check(&m), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_order_of_operations_is_a_queue)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
