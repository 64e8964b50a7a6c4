/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world.c - the stream model's handlers, and the sends that programs and handlers share. */
#include "stream/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stream/stream.h"

void world_wrong(struct world *w, const char *format, ...)
{
    char text[sizeof w->why->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    test_why(w->why, "%s", text);
    fprintf(stderr, "%s\n", text);
    if (getenv("RNL_TEST_NOFORK"))
        abort(); /* there is a debugger */
    _exit(1);
}

void *world_alloc(struct world *w, size_t bytes)
{
    void **at = calloc(1, sizeof(max_align_t) + bytes);
    if (!at)
        abort();
    *at = w->garbage;
    w->garbage = at;
    return (char *)at + sizeof(max_align_t);
}

size_t world_size(struct test_random *r, size_t max)
{
    static const size_t edges[] = {0,     8,     40,    48,    56,     64,     4096,   8128,
                                   16384, 32768, 65536, 98304, 131072, 262144, 524288, 1 << 20};
    return test_random_size(r, max, edges, sizeof edges / sizeof *edges);
}

/* ---- what is on its way ---- */

/* The line in which messages for that handler of that rank come in order: each lane has one. */
static unsigned line(unsigned rank, unsigned handler)
{
    return handler == H_BULK ? RANKS + rank : rank;
}

struct message *world_begun(struct world *w, const struct message *like)
{
    struct message *m = world_alloc(w, sizeof *m);
    *m = *like;
    m->next = NULL;
    *w->tail[m->src][line(m->dst, m->handler)] = m;
    w->tail[m->src][line(m->dst, m->handler)] = &m->next;
    w->begun++;
    w->l.done++;
    if (m->handler == H_LATE && !w->late_registered[m->dst])
        w->late_pending[m->src][m->dst] = 1;
    return m;
}

static void unlink_it(struct world *w, struct message *m)
{
    struct message **at = &w->head[m->src][line(m->dst, m->handler)];
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    if (!m->next)
        w->tail[m->src][line(m->dst, m->handler)] = at;
    w->begun--;
}

void world_abort(struct world *w, rnl_stream *s, struct message *m)
{
    int seen = s->ep->fast.open_short != s && !s->first;
    WORLD_MUST(w, rnl_abort(s) == 0);
    m->aborted = 1;
    if (!m->started && (!seen || m->handler == H_WHOLE || m->handler == H_PLACE))
        unlink_it(w, m); /* its handler never runs */
    w->l.done++;
}

/* Is it this message, which was given up, that starts? It may have been dropped while it waited for a stack. */
static int is_it(const struct message *m, const struct slot *at, rnl_stream *s)
{
    const void *view;
    if (!s || s->state != RNL_STREAM_RUNNING || m->handler != at->handler || s->bound != m->bound)
        return 0;
    size_t n = rnl_peek(s, &view);
    return n <= m->length && memcmp(view, test_pattern(m->id, 0), n) == 0;
}

void world_settle(struct world *w)
{
    for (unsigned src = 0; src < w->l.size; src++)
        for (unsigned dst = 0; dst < LINES; dst++)
            while (w->head[src][dst] && w->head[src][dst]->aborted)
                unlink_it(w, w->head[src][dst]);
}

/* The handler of the next message of a pair starts; s is NULL for one of whole messages. */
static struct message *starts(struct world *w, unsigned src, const struct slot *at, rnl_stream *s)
{
    const unsigned to = line(at->rank, at->handler);
    while (w->head[src][to] && w->head[src][to]->aborted && !is_it(w->head[src][to], at, s))
        unlink_it(w, w->head[src][to]);
    struct message *m = w->head[src][to], *before = w->all[src][to];
    if (!m)
        world_wrong(w, "a message from %u to %u that nobody sent", src, at->rank);
    if (m->handler != at->handler)
        world_wrong(w, "message %llx from %u to %u: handler %u runs, not %u", (unsigned long long)m->id, src, at->rank,
                    at->handler, m->handler);
    if (before && !before->handled)
        world_wrong(w, "message %llx from %u to %u starts before %llx has ended", (unsigned long long)m->id, src,
                    at->rank, (unsigned long long)before->id);
    w->head[src][to] = m->next;
    if (!m->next)
        w->tail[src][to] = &w->head[src][to];
    w->all[src][to] = m;
    m->started = 1;
    w->lane0_runs[at->rank]++;
    w->l.done++;
    return m;
}

static void ends(struct world *w, struct message *m)
{
    m->handled = 1;
    w->handled++;
    w->l.done++;
}

static void expect_back(struct world *w, const struct message *m, struct reply like)
{
    struct reply *b = world_alloc(w, sizeof *b);
    *b = like;
    b->next = NULL;
    *w->back_tail[m->src][m->dst] = b;
    w->back_tail[m->src][m->dst] = &b->next;
    w->replies++;
}

static const struct reply *comes_back(struct world *w, unsigned asker, unsigned from, int refused)
{
    struct reply *b = w->back[asker][from];
    if (!b || b->refused != refused)
        world_wrong(w, "%s from %u to %u that nobody sent", refused ? "a refusal" : "an answer", from, asker);
    w->back[asker][from] = b->next;
    if (!b->next)
        w->back_tail[asker][from] = &w->back[asker][from];
    w->replied++;
    w->l.done++;
    return b;
}

static void is_pattern(struct world *w, const struct message *m, const void *buf, size_t at, size_t n,
                       const char *where)
{
    if (n && memcmp(buf, test_pattern(m->id, at), n) != 0)
        world_wrong(w, "message %llx from %u to %u: wrong bytes in [%zu, %zu) of %zu (%s)", (unsigned long long)m->id,
                    m->src, m->dst, at, at + n, m->length, where);
}

/* ---- sending ---- */

void world_pieces(struct world *w, rnl_stream *s, const struct message *m, size_t from, size_t to,
                  struct test_random *r)
{
    while (from < to) {
        size_t n = 1 + world_size(r, to - from - 1);
        if (test_random_one_in(r, 3))
            n = to - from;
        WORLD_MUST(w, rnl_piece(s, test_pattern(m->id, from), n) == 0);
        from += n;
    }
    if (test_random_one_in(r, 8))
        WORLD_MUST(w, rnl_piece(s, NULL, 0) == 0);
    if (test_random_one_in(r, 8))
        WORLD_MUST(w, rnl_piece(s, test_pattern(m->id, 0), m->bound - to + 1) == RNL_ERR_PAST_END);
}

static void check_refusal(struct world *w, const struct message *m, int status)
{
    int open = w->open[m->src][m->dst] != NULL;
    if (status == RNL_BUSY && !open)
        world_wrong(w, "%u to %u is called busy, but no message is open", m->src, m->dst);
    if (status != RNL_BUSY && open)
        world_wrong(w, "%u to %u has an open message, but a second begin says %d", m->src, m->dst, status);
    /* too long for a small receive budget: at least 128 units, of which half may be a gap in the bulk area */
    if (status != RNL_BUSY && status != RNL_NO_ROOM && !(status == RNL_ERR_TOO_LONG && m->bound > 4000))
        world_wrong(w, "a send without waiting says %d: %s", status, rnl_last_error()->text);
}

static void send_short(struct world *w, const struct message *m)
{
    int status = rnl_send(w->l.h.ep[m->src], m->dst, m->handler, test_pattern(m->id, 0), m->length);
    if (status < 0)
        check_refusal(w, m, status);
    else if (w->open[m->src][m->dst])
        check_refusal(w, m, 0);
    else
        world_begun(w, m);
}

void world_send_now(struct world *w, const struct message *m, unsigned flags, struct test_random *r)
{
    rnl_endpoint *ep = w->l.h.ep[m->src];
    if (!flags && m->length <= RNL_SHORT_MAX && !m->answer && test_random_one_in(r, 2)) {
        send_short(w, m);
        return;
    }
    const struct rnl_message b = {
        .peer = m->dst, .handler = m->handler, .bound = m->bound, .answer = m->answer, .flags = flags};
    rnl_stream *s;
    int status = rnl_begin(ep, &b, &s);
    if (m->bound > w->reserve_max) {
        if (status != RNL_ERR_TOO_LONG && status != RNL_BUSY)
            world_wrong(w, "a begin of %zu bytes that must not wait says %d", m->bound, status);
        return;
    }
    if (status < 0) {
        check_refusal(w, m, status);
        return;
    }
    if (w->open[m->src][m->dst])
        check_refusal(w, m, 0);
    struct message *sent = world_begun(w, m);
    if (test_random_one_in(r, 6)) {
        world_pieces(w, s, sent, 0, world_size(r, m->length), r);
        world_abort(w, s, sent);
        return;
    }
    world_pieces(w, s, sent, 0, m->length, r);
    WORLD_MUST(w, rnl_end(s) == 0);
}

struct posted {
    struct world *w;
    rnl_endpoint *ep;
    int in_post;
    unsigned char *copy;
    size_t n;
    int done;
};

static void post_done(void *arg, int status)
{
    struct posted *p = arg;
    WORLD_MUST(p->w, status == 0);
    WORLD_MUST(p->w, !p->done && !p->in_post);
    WORLD_MUST(p->w, rnl_extract(p->ep, 0) == RNL_ERR_CONTEXT);
    p->done = 1;
    p->w->posts_done++;
    p->w->l.done++;
    if (p->n)
        memset(p->copy, 0xdd, p->n); /* ours again */
    free(p->copy);
}

void world_post(struct world *w, const struct message *like, struct test_random *r)
{
    struct message copy = *like, *m = &copy;
    if (!m->answer && m->handler != H_LATE && m->id % 3 == 0) {
        m->handler = H_BULK;
        m->bound = m->length; /* what a post does not use is not announced */
    }
    const struct rnl_message b = {.peer = m->dst,
                                  .handler = m->handler,
                                  .bound = like->bound,
                                  .answer = m->answer,
                                  .flags = m->handler == H_BULK ? RNL_BULK : 0};
    struct rnl_buffer piece[5];
    unsigned pieces = 1 + test_random_below(r, 5);
    struct posted *p = world_alloc(w, sizeof *p);
    *p = (struct posted){.w = w, .ep = w->l.h.ep[m->src], .in_post = 1, .n = m->length, .copy = malloc(m->length + 1)};
    if (!p->copy)
        abort();
    memcpy(p->copy, test_pattern(m->id, 0), m->length);
    size_t at = 0;
    for (unsigned i = 0; i < pieces; i++) {
        size_t n = i + 1 == pieces ? m->length - at : world_size(r, m->length - at);
        piece[i] = (struct rnl_buffer){p->copy + at, n};
        at += n;
    }
    /* Its place in the order is now. */
    struct message **tail = w->tail[m->src][line(m->dst, m->handler)];
    world_begun(w, m);
    w->posts++;
    int status = rnl_post(w->l.h.ep[m->src], &b, piece, pieces, post_done, p);
    p->in_post = 0;
    if (status == RNL_NO_ROOM) { /* the queue's budget: then it was never there */
        *tail = NULL;
        w->tail[m->src][line(m->dst, m->handler)] = tail;
        w->begun--;
        w->posts--;
        free(p->copy);
        return;
    }
    WORLD_MUST(w, status == 0);
}

/* What handlers send: never to a handler that is not there yet, never waiting. */
static void sends_on(struct world *w, const struct message *m, unsigned rank, struct test_random *r)
{
    for (unsigned k = test_random_below(r, 3); k > 0 && m->depth > 0; k--) {
        struct message child = {.id = m->id * 131 + k, .src = rank, .depth = m->depth - 1};
        child.dst = test_random_below(r, w->l.size);
        child.handler = 1 + test_random_below(r, w->late_registered[child.dst] ? H_LATE : H_PLACE);
        child.length = world_size(r, test_random_one_in(r, 4) ? w->reserve_max + 1 : 5000);
        child.bound = child.length + (test_random_one_in(r, 3) ? test_random_below(r, 100) : 0);
        child.answer = test_random_one_in(r, 3) ? 1 + world_size(r, 65535) : 0;
        if (test_random_one_in(r, 5))
            world_post(w, &child, r);
        else
            world_send_now(w, &child, test_random_one_in(r, 4) ? RNL_NO_WAIT : 0, r);
    }
}

/* ---- handlers ---- */

static int may_end_early(struct test_random *r)
{
    return test_random_one_in(r, 12);
}

static void looks(struct world *w, rnl_stream *s, const struct message *m, size_t at)
{
    const void *view;
    size_t n = rnl_peek(s, &view);
    if (n > m->length - at)
        world_wrong(w, "message %llx: %zu bytes are here, %zu are left", (unsigned long long)m->id, n, m->length - at);
    is_pattern(w, m, view, at, n, "view");
}

static void answers(struct world *w, rnl_stream *s, const struct message *m, struct test_random *r)
{
    size_t n = world_size(r, m->answer);
    unsigned handler = test_random_one_in(r, 2) ? A_STREAM : A_WHOLE;
    if (s->lost) { /* it was told so, and must not answer what was given up */
        WORLD_MUST(w, rnl_reply(s, handler, test_pattern(~m->id, 0), n) == RNL_ERR_ABORTED);
        return;
    }
    expect_back(w, m, (struct reply){.id = ~m->id, .handler = handler, .n = n});
    WORLD_MUST(w, rnl_reply(s, handler, test_pattern(~m->id, 0), n) == 0);
    WORLD_MUST(w, rnl_reply(s, handler, test_pattern(~m->id, 0), n) == RNL_ERR_CONTEXT);
}

void world_free_kept(struct world *w, unsigned rank, unsigned which)
{
    struct keep k = w->keep[rank][which];
    const struct message like = {.id = k.id, .length = k.at + k.n, .src = k.peer, .dst = rank};
    size_t n;
    unsigned peer;
    const void *data = rnl_kept_data(k.kept, &n, &peer);
    WORLD_MUST(w, n == k.n && peer == k.peer);
    is_pattern(w, &like, data, k.at, n, "kept");
    rnl_kept_free(k.kept);
    w->keep[rank][which] = w->keep[rank][--w->keeps[rank]];
    w->l.done++;
}

static int keeps(struct world *w, rnl_stream *s, const struct message *m, unsigned rank, size_t at)
{
    rnl_kept *kept;
    if (w->closing[rank] || w->keeps[rank] >= KEPT_MAX / 2) /* suspended ones may add to it */
        return RNL_DONE;
    int status = rnl_keep(s, &kept);
    if (status == RNL_NO_ROOM || (status == RNL_ERR_ABORTED && m->aborted))
        return RNL_DONE;
    WORLD_MUST(w, status == 0);
    WORLD_MUST(w, w->keeps[rank] < KEPT_MAX);
    w->keep[rank][w->keeps[rank]++] = (struct keep){kept, m->id, m->src, at, m->length - at};
    if (w->closing[rank]) /* it was suspended, and the program has freed its own already */
        world_free_kept(w, rank, w->keeps[rank] - 1);
    return RNL_KEEP;
}

static int stream_handler(rnl_stream *s, unsigned peer, void *ctx)
{
    const struct slot *at = ctx;
    struct world *w = at->w;
    struct message *m = starts(w, peer, at, s);
    struct test_random r = test_random_of(w->seed, m->id ^ 0x5555);
    unsigned ending = test_random_below(&r, 12);
    int replied = 0, kept = RNL_DONE;
    size_t got = 0, room = m->length < 70000 ? m->length + 1 : 70001;
    unsigned char *buf = malloc(room);
    if (!buf)
        abort();
    for (;;) {
        if (test_random_one_in(&r, 3))
            looks(w, s, m, got);
        if (test_random_one_in(&r, 3))
            sends_on(w, m, at->rank, &r);
        if (m->answer && !replied && ending != 1 && test_random_one_in(&r, 2)) {
            answers(w, s, m, &r);
            replied = 1;
        }
        if (test_random_one_in(&r, 10))
            WORLD_MUST(w, rnl_receive(s, buf, m->bound - got + 1) == RNL_ERR_PAST_END);
        if (got == m->length || may_end_early(&r))
            break;
        if (ending == 2 && test_random_one_in(&r, 2)) {
            kept = keeps(w, s, m, at->rank, got);
            break;
        }
        size_t n = world_size(&r, m->length - got);
        if (test_random_one_in(&r, 3))
            n = m->length - got;
        n = n < room ? n : room;
        int status = rnl_receive(s, buf, n);
        if (status == RNL_ERR_ABORTED && m->aborted)
            break;
        if (status != 0)
            world_wrong(w, "message %llx from %u to %u: %zu bytes at %zu of %zu: %s", (unsigned long long)m->id, peer,
                        at->rank, n, got, m->length, rnl_last_error()->text);
        is_pattern(w, m, buf, got, n, "received");
        got += n;
    }
    free(buf);
    if (m->answer && !replied && ending != 1) {
        answers(w, s, m, &r);
        replied = 1;
    }
    ends(w, m);
    if (ending == 0)
        return RNL_QUIT;
    if (ending == 1) {
        unsigned reason = test_random_below(&r, 256);
        if (m->answer && !s->lost)
            expect_back(
                w, m,
                (struct reply){.id = m->id, .refused = 1, .handler = m->handler, .reason = reason, .n = m->length});
        return RNL_REJECT(reason);
    }
    return kept;
}

static int whole_handler(const void *buf, size_t n, unsigned peer, void *ctx)
{
    const struct slot *at = ctx;
    struct world *w = at->w;
    struct message *m = starts(w, peer, at, NULL);
    struct test_random r = test_random_of(w->seed, m->id ^ 0x5555);
    if (n != m->length)
        world_wrong(w, "whole message %llx from %u to %u has %zu bytes, not %zu", (unsigned long long)m->id, peer,
                    at->rank, n, m->length);
    if (!buf && m->bound <= w->whole_max)
        world_wrong(w, "whole message of %zu bytes is thrown away", n);
    if (buf)
        is_pattern(w, m, buf, 0, n, "whole");
    else
        expect_back(w, m,
                    (struct reply){.id = m->id, .refused = 1, .handler = m->handler, .reason = RNL_REASON_TOO_LONG});
    sends_on(w, m, at->rank, &r);
    ends(w, m);
    return test_random_one_in(&r, 12) ? RNL_QUIT : RNL_DONE;
}

static void answer_comes(struct world *w, const struct slot *at, unsigned peer, const void *buf, size_t n)
{
    const struct reply *b = comes_back(w, at->rank, peer, 0);
    if (b->handler != at->handler || b->n != n || (n && memcmp(buf, test_pattern(b->id, 0), n) != 0))
        world_wrong(w, "an answer from %u to %u: %zu bytes for handler %u, not %zu for %u, or wrong ones", peer,
                    at->rank, n, at->handler, b->n, b->handler);
    WORLD_MUST(w, rnl_send(w->l.h.ep[at->rank], peer, H_STREAM, NULL, 0) == RNL_ERR_CONTEXT);
}

static int answer_stream(rnl_stream *s, unsigned peer, void *ctx)
{
    const struct slot *at = ctx;
    const void *view;
    size_t n = rnl_peek(s, &view); /* answers are whole when they come */
    answer_comes(at->w, at, peer, view, n);
    return RNL_DONE;
}

static int answer_whole(const void *buf, size_t n, unsigned peer, void *ctx)
{
    const struct slot *at = ctx;
    answer_comes(at->w, at, peer, buf, n);
    return RNL_DONE;
}

static void refusal_comes(void *arg, unsigned peer, unsigned handler, unsigned reason, const void *buf, size_t n)
{
    const struct slot *at = arg;
    struct world *w = at->w;
    const struct reply *b = comes_back(w, at->rank, peer, 1);
    if (b->handler != handler || b->reason != reason || n > 40 || n > b->n ||
        (n && memcmp(buf, test_pattern(b->id, 0), n) != 0))
        world_wrong(w, "a refusal from %u to %u: handler %u, reason %u, %zu bytes; should be %u, %u, or wrong bytes",
                    peer, at->rank, handler, reason, n, b->handler, b->reason);
}

void world_register(struct world *w, unsigned rank, unsigned handler)
{
    struct slot *at = &w->slot[rank][handler];
    rnl_endpoint *ep = w->l.h.ep[rank];
    int id = (int)handler, got;
    *at = (struct slot){w, rank, handler};
    switch (handler) {
    case H_WHOLE:
    case H_PLACE:
        got = rnl_handler_whole(ep, id, whole_handler, at, handler == H_PLACE ? RNL_IN_PLACE : 0);
        break;
    case A_STREAM:
        got = rnl_handler_stream(ep, id, answer_stream, at);
        rnl_on_rejected(ep, refusal_comes, at);
        break;
    case A_WHOLE:
        got = rnl_handler_whole(ep, id, answer_whole, at, 0);
        break;
    default:
        got = rnl_handler_stream(ep, id, stream_handler, at);
        break;
    }
    WORLD_MUST(w, got == id);
    if (handler == H_LATE) {
        w->late_registered[rank] = 1;
        for (unsigned i = 0; i < w->l.size; i++)
            w->late_pending[i][rank] = 0;
    }
}
