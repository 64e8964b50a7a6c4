/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The native interface against plain queues: one to four endpoints, their programs in lockstep, random operations. Each
 * message is handled exactly once, in the order begun, with its bytes, however it was cut on either side; answers and
 * refusals come back once and in order; nothing is outstanding at the end, and the end comes: the deadlock rule.
 *
 * What programs must keep to (rule f): with few stacks, a program that holds a message open does not wait; and nobody
 * waits for a peer at whose lane a message waits for its handler. */
#include "stream/world.h"

#include <poll.h>
#include <stdio.h>

#include "runnel/counters.h"
#include "support/unit.h"

enum op_kind {
    OP_SEND,
    OP_MESSAGE,
    OP_NOW, /* a message that must not wait */
    OP_OPEN,
    OP_PIECE,
    OP_END,
    OP_ABORT,
    OP_POST,
    OP_EXTRACT,
    OP_WAIT,
    OP_FLUSH,
    OP_REGISTER,
    OP_FREE,
    OP_FD,
    OP_KINDS
};
static const char *const op_names[OP_KINDS] = {"send",  "message",       "message now", "open",      "piece",
                                               "end",   "abort",         "post",        "extract",   "wait",
                                               "flush", "register late", "free kept",   "descriptor"};
enum { A_RANK, A_PEER, A_HANDLER, A_SIZE, A_MORE, A_ANSWER };

/* ---- operations ---- */

static struct message message_of(struct world *w, const struct test_op *op, unsigned rank)
{
    struct message m = {.id = op->id + 1, .src = rank, .depth = op->arg[A_HANDLER] / H_LATE % 3};
    m.dst = op->arg[A_PEER] % w->l.size;
    m.handler = 1 + op->arg[A_HANDLER] % H_LATE;
    m.length = op->arg[A_SIZE];
    m.bound = m.length + op->arg[A_MORE];
    m.answer = op->arg[A_ANSWER];
    return m;
}

static int may_wait(const struct world *w, const struct message *m)
{
    if (w->late_pending[m->src][m->dst] || (m->handler == H_LATE && !w->late_registered[m->dst]))
        return 0;
    return w->plenty || w->opens[m->src] == 0;
}

static void op_send(struct world *w, struct message *m, struct test_random *r)
{
    m->answer = 0;
    m->length = m->bound = m->length % (RNL_SHORT_MAX + 1);
    if (!may_wait(w, m) || w->open[m->src][m->dst]) {
        world_send_now(w, m, RNL_NO_WAIT, r);
        return;
    }
    WORLD_MUST(w, rnl_send(w->l.h.ep[m->src], m->dst, m->handler, test_pattern(m->id, 0), m->length) == 0);
    world_begun(w, m);
}

/* The place in the order is taken when begin returns; the handlers that run meanwhile may send, too. */
static rnl_stream *begin(struct world *w, struct message *m, struct message **sent)
{
    const struct rnl_message b = {.peer = m->dst, .handler = m->handler, .bound = m->bound, .answer = m->answer};
    rnl_stream *s;
    WORLD_MUST(w, rnl_begin(w->l.h.ep[m->src], &b, &s) == 0);
    *sent = world_begun(w, m);
    return s;
}

static void op_message(struct world *w, struct message *m, struct test_random *r)
{
    struct message *sent;
    if (!may_wait(w, m) || w->open[m->src][m->dst]) {
        world_send_now(w, m, RNL_NO_WAIT, r);
        return;
    }
    rnl_stream *s = begin(w, m, &sent);
    w->open[m->src][m->dst] = s; /* for handlers that run while we wait */
    world_pieces(w, s, sent, 0, m->length, r);
    WORLD_MUST(w, rnl_end(s) == 0);
    w->open[m->src][m->dst] = NULL;
}

static void op_open(struct world *w, struct message *m)
{
    rnl_stream *s;
    if (w->open[m->src][m->dst])
        return;
    if (w->plenty && may_wait(w, m)) {
        w->open[m->src][m->dst] = begin(w, m, &w->open_message[m->src][m->dst]);
    } else {
        const struct rnl_message b = {
            .peer = m->dst, .handler = m->handler, .bound = m->bound, .answer = m->answer, .flags = RNL_NO_WAIT};
        int status = rnl_begin(w->l.h.ep[m->src], &b, &s);
        if (status < 0) {
            /* too long: see check_refusal in world.c */
            WORLD_MUST(w, status == RNL_NO_ROOM || (status == RNL_ERR_TOO_LONG && m->bound > 4000));
            return;
        }
        w->open[m->src][m->dst] = s;
        w->open_message[m->src][m->dst] = world_begun(w, m);
    }
    w->open_at[m->src][m->dst] = 0;
    w->opens[m->src]++;
}

static void op_piece(struct world *w, unsigned rank, unsigned peer, size_t n, struct test_random *r)
{
    const struct message *m = w->open_message[rank][peer];
    if (!w->open[rank][peer])
        return;
    size_t at = w->open_at[rank][peer], to = n < m->length - at ? at + n : m->length;
    w->open_at[rank][peer] = to;
    world_pieces(w, w->open[rank][peer], m, at, to, r);
    w->l.done++;
}

static void op_end(struct world *w, unsigned rank, unsigned peer, struct test_random *r)
{
    if (!w->open[rank][peer])
        return;
    op_piece(w, rank, peer, SIZE_MAX, r);
    WORLD_MUST(w, rnl_end(w->open[rank][peer]) == 0);
    w->open[rank][peer] = NULL;
    w->opens[rank]--;
    w->l.done++;
}

static void op_abort(struct world *w, unsigned rank, unsigned peer)
{
    if (!w->open[rank][peer])
        return;
    world_abort(w, w->open[rank][peer], w->open_message[rank][peer]);
    w->open[rank][peer] = NULL;
    w->opens[rank]--;
}

static uint64_t events(const struct world *w, unsigned rank)
{
    const struct rnl_counters *c = rnl_get_counters(w->l.h.ep[rank]);
    return c->messages_received + c->bytes_received + c->replies_received + c->refused_received + c->handlers_resumed +
           w->posts_done;
}

static void op_extract(struct world *w, unsigned rank, size_t max)
{
    uint64_t runs = w->lane0_runs[rank], before = events(w, rank);
    int quiet = 0;
    if (w->fd[rank] > 0 && !w->open[rank][rank]) { /* else the extract itself makes something visible to us */
        struct pollfd p = {.fd = w->fd[rank], .events = POLLIN};
        quiet = poll(&p, 1, 0) == 0;
    }
    int64_t bytes = rnl_extract(w->l.h.ep[rank], max);
    WORLD_MUST(w, bytes >= 0);
    if (max == 0 && (bytes || w->lane0_runs[rank] != runs))
        world_wrong(w, "an extract of 0 bytes takes in %lld and runs %d handlers", (long long)bytes,
                    (int)(w->lane0_runs[rank] - runs));
    if (quiet && events(w, rank) != before)
        world_wrong(w, "the descriptor of %u was quiet, but an extract finds something", rank);
}

static void op_wait(struct world *w, unsigned rank, uint64_t ns)
{
    w->l.rank[rank].timed = 1;
    int64_t status = rnl_wait(w->l.h.ep[rank], (int64_t)ns);
    w->l.rank[rank].timed = 0;
    WORLD_MUST(w, status >= 0 || status == RNL_TIMED_OUT);
}

static void do_op(struct world *w, unsigned rank, const struct test_op *op)
{
    struct message m = message_of(w, op, rank);
    struct test_random r = test_random_of(w->seed, 100000 + op->id);
    switch (op->kind) {
    case OP_SEND:
        op_send(w, &m, &r);
        break;
    case OP_MESSAGE:
        op_message(w, &m, &r);
        break;
    case OP_NOW:
        world_send_now(w, &m, RNL_NO_WAIT, &r);
        break;
    case OP_OPEN:
        op_open(w, &m);
        break;
    case OP_PIECE:
        op_piece(w, rank, m.dst, m.length, &r);
        break;
    case OP_END:
        op_end(w, rank, m.dst, &r);
        break;
    case OP_ABORT:
        op_abort(w, rank, m.dst);
        break;
    case OP_POST:
        world_post(w, &m, &r);
        break;
    case OP_EXTRACT:
        op_extract(w, rank, m.length > 1000000 ? SIZE_MAX : m.length);
        break;
    case OP_WAIT:
        op_wait(w, rank, m.length);
        break;
    case OP_FLUSH:
        WORLD_MUST(w, rnl_flush(w->l.h.ep[rank]) == 0);
        break;
    case OP_REGISTER:
        if (!w->late_registered[rank])
            world_register(w, rank, H_LATE);
        break;
    case OP_FREE:
        if (w->keeps[rank])
            world_free_kept(w, rank, op->arg[A_PEER] % w->keeps[rank]);
        break;
    default:
        w->fd[rank] = rnl_fd(w->l.h.ep[rank]);
        WORLD_MUST(w, w->fd[rank] >= 0);
        break;
    }
    w->l.done++;
}

/* ---- a program, and a run ---- */

static void program(struct lockstep *l, unsigned rank)
{
    struct world *w = l->arg;
    struct test_random r = test_random_of(w->seed, 200000 + rank);
    for (size_t i = 0; i < w->count; i++) {
        if (w->ops[i].arg[A_RANK] % w->l.size != rank)
            continue;
        do_op(w, rank, &w->ops[i]);
        if (test_random_one_in(&r, 2))
            lockstep_yield(l);
    }
    if (!w->late_registered[rank])
        world_register(w, rank, H_LATE);
    for (unsigned peer = 0; peer < w->l.size; peer++)
        op_end(w, rank, peer, &r);
    w->closing[rank] = 1;
    while (w->keeps[rank])
        world_free_kept(w, rank, 0);
    WORLD_MUST(w, rnl_close(w->l.h.ep[rank]) == 0);
    w->l.done++;
}

static void set_up(struct world *w)
{
    struct rnl_options opt[RANKS] = {{0}};
    struct test_random r = test_random_of(w->seed, 0);
    unsigned size = test_random_one_in(&r, 10) ? 1 : 2 + test_random_below(&r, RANKS - 1);
    unsigned budget = test_random_below(&r, 4), stacks = test_random_below(&r, 3), shared = test_random_one_in(&r, 4);
    if (test_slowness() == 10)
        shared = 0; /* the thread sanitizer takes a handler's stack for another thread, and its lock for a second one */
    struct rnl_limits limits;
    w->plenty = 1;
    for (unsigned i = 0; i < size; i++) {
        opt[i].stacks = stacks == 0 ? 1 + test_random_below(&r, 2) : stacks == 1 ? size : 0;
        opt[i].receive_budget = budget == 0   ? size * 128 * 64
                                : budget == 1 ? size * 128 * 64 * (1 + test_random_below(&r, 20))
                                              : 0;
        opt[i].flags = shared ? RNL_SHARED : 0;
        w->plenty &= stacks != 0;
    }
    lockstep_open(&w->l, size, opt, w->seed);
    w->l.arg = w;
    rnl_get_limits(w->l.h.ep[0], &limits);
    w->whole_max = limits.whole_max;
    w->reserve_max = limits.reserve_max;
    for (unsigned i = 0; i < size; i++) {
        for (unsigned k = 0; k < size; k++) {
            w->tail[i][k] = &w->head[i][k], w->tail[i][RANKS + k] = &w->head[i][RANKS + k];
            w->back_tail[i][k] = &w->back[i][k];
        }
        for (unsigned h = 1; h < H_END; h++)
            if (h != H_LATE)
                world_register(w, i, h);
    }
}

static int run(uint64_t seed, const struct test_op *ops, size_t n, struct test_why *why)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    w->seed = seed;
    w->ops = ops;
    w->count = n;
    w->why = why;
    set_up(w);
    if (lockstep_run(&w->l, program))
        world_wrong(w, "%s (%llu of %llu messages handled, %u of %u posts done)", w->l.wrong,
                    (unsigned long long)w->handled, (unsigned long long)w->begun, w->posts_done, w->posts);
    world_settle(w);
    if (w->handled != w->begun)
        world_wrong(w, "%llu of %llu messages were handled", (unsigned long long)w->handled,
                    (unsigned long long)w->begun);
    if (w->replied != w->replies)
        world_wrong(w, "%llu of %llu answers came", (unsigned long long)w->replied, (unsigned long long)w->replies);
    if (w->posts_done != w->posts)
        world_wrong(w, "%u of %u posts are done", w->posts_done, w->posts);
    lockstep_close(&w->l);
    while (w->garbage) {
        void *next = *(void **)w->garbage;
        free(w->garbage);
        w->garbage = next;
    }
    free(w);
    return 0;
}

static size_t generate(uint64_t seed, struct test_op *ops, size_t max_ops)
{
    static const unsigned most[OP_KINDS] = {8, 10, 6, 8, 10, 6, 3, 6, 12, 4, 3, 1, 3, 1};
    struct test_random r = test_random_of(seed, 1);
    size_t n = 1 + test_random_below(&r, (uint32_t)max_ops);
    unsigned weight[OP_KINDS], sum = 1;
    size_t largest = test_random_one_in(&r, 4) ? 1500000 : test_random_one_in(&r, 3) ? 300000 : 3000;
    weight[OP_SEND] = 1;
    for (unsigned k = 0; k < OP_KINDS; k++)
        sum += weight[k] = test_random_below(&r, most[k] + 1) + (k == OP_SEND);
    for (size_t i = 0; i < n; i++) {
        struct test_op *op = &ops[i];
        unsigned pick = test_random_below(&r, sum - 1);
        for (op->kind = 0; op->kind < OP_KINDS - 1 && pick >= weight[op->kind]; op->kind++)
            pick -= weight[op->kind];
        op->arg[A_RANK] = test_random_below(&r, 12);
        op->arg[A_PEER] = test_random_below(&r, 12);
        op->arg[A_HANDLER] = test_random_below(&r, 3 * H_LATE);
        op->arg[A_SIZE] = (uint32_t)world_size(&r, largest);
        op->arg[A_MORE] = test_random_one_in(&r, 3) ? (uint32_t)world_size(&r, 70000) : 0;
        op->arg[A_ANSWER] = test_random_one_in(&r, 4) ? 1 + (uint32_t)world_size(&r, 65535) : 0;
    }
    return n;
}

static void print(const struct test_op *op, char *text, size_t bytes)
{
    int n = snprintf(text, bytes, "%2u: %s", op->arg[A_RANK], op_names[op->kind]);
    size_t left = bytes - (size_t)n;
    switch (op->kind) {
    case OP_EXTRACT:
    case OP_WAIT:
        snprintf(text + n, left, " %u", op->arg[A_SIZE]);
        break;
    case OP_FLUSH:
    case OP_REGISTER:
    case OP_FREE:
    case OP_FD:
        break;
    case OP_PIECE:
    case OP_END:
    case OP_ABORT:
        snprintf(text + n, left, " to %u, %u bytes", op->arg[A_PEER], op->arg[A_SIZE]);
        break;
    default:
        snprintf(text + n, left, " to %u, handler %u, depth %u, %u bytes of %u, answer %u", op->arg[A_PEER],
                 1 + op->arg[A_HANDLER] % H_LATE, op->arg[A_HANDLER] / H_LATE, op->arg[A_SIZE],
                 op->arg[A_SIZE] + op->arg[A_MORE], op->arg[A_ANSWER]);
        break;
    }
}

static void any_order_of_operations_is_queues(void **state)
{
    (void)state;
    const struct test_model m = {.name = "stream",
                                 .max_ops = 120,
                                 .seeds = 3000 / test_slowness(),
                                 .seconds = 15,
                                 .generate = generate,
                                 .run = run,
                                 .print = print};
    assert_int_equal(test_model_check(&m), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_order_of_operations_is_queues)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
