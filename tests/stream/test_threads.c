/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Endpoints on threads that hammer each other, all to all, with messages of 0 bytes to 3 MiB, down to the smallest
 * budgets and a single handler stack: it must end (the deadlock rule), nothing may be lost or changed, and the thread
 * sanitizer must see no race. */
#include "stream/inbox.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { NOTE = 1, WHOLE, ECHO, ANSWER, MOST = 8 };

struct tally { /* of one direction of a pair; each side written by one thread */
    _Alignas(64) uint64_t messages, bytes;
};

struct battle {
    struct tally sent[MOST][MOST], got[MOST][MOST]; /* [from][to] */
    _Atomic uint64_t asked, answered;
    unsigned messages;
    size_t largest;
};

struct head {
    uint64_t id;
    uint32_t n;
};

struct fighter {
    struct battle *w;
    struct test_thread *t;
    struct test_random r;
};

static int note(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fighter *f = ctx;
    struct head h;
    unsigned char buf[9000];
    TEST_MUST(rnl_receive(s, &h, sizeof h) == 0);
    for (uint32_t at = 0; at < h.n;) {
        uint32_t step = h.n - at < sizeof buf ? h.n - at : (uint32_t)sizeof buf;
        TEST_MUST(rnl_receive(s, buf, step) == 0);
        TEST_MUST(memcmp(buf, test_pattern(h.id, at), step) == 0);
        at += step;
    }
    f->w->got[peer][f->t->rank].messages++;
    f->w->got[peer][f->t->rank].bytes += h.n;
    return RNL_DONE;
}

static int whole(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct fighter *f = ctx;
    struct head h = {0, 0};
    if (buf) {
        TEST_MUST(n >= sizeof h);
        memcpy(&h, buf, sizeof h);
        TEST_MUST(h.n == n - sizeof h);
        TEST_MUST(memcmp((const char *)buf + sizeof h, test_pattern(h.id, 0), h.n) == 0);
    } else {
        struct rnl_limits limits;
        rnl_get_limits(f->t->ep, &limits);
        TEST_MUST(n > limits.whole_max);
        h.n = (uint32_t)(n - sizeof h);
    }
    f->w->got[peer][f->t->rank].messages++;
    f->w->got[peer][f->t->rank].bytes += h.n;
    return RNL_DONE;
}

/* Only messages to WHOLE come back, as those that were too long for it. */
static void back(void *ctx, unsigned peer, unsigned handler, unsigned reason, const void *buf, size_t n)
{
    struct fighter *f = ctx;
    TEST_MUST(peer < f->t->size && handler == WHOLE && reason == RNL_REASON_TOO_LONG && buf && n == 0);
}

/* Sends on to another rank if it can, and answers. */
static int echo(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fighter *f = ctx;
    struct head h;
    TEST_MUST(rnl_receive(s, &h, sizeof h) == 0);
    unsigned to = (peer + f->t->rank) % f->t->size;
    const struct rnl_message b = {.peer = to, .handler = NOTE, .bound = sizeof h + h.n};
    rnl_stream *out;
    int status = rnl_begin(f->t->ep, &b, &out);
    if (status == 0) {
        TEST_MUST(rnl_piece(out, &h, sizeof h) == 0 && rnl_piece(out, test_pattern(h.id, 0), h.n) == 0);
        TEST_MUST(rnl_end(out) == 0);
        f->w->sent[f->t->rank][to].messages++;
        f->w->sent[f->t->rank][to].bytes += h.n;
    } else {
        TEST_MUST(status == RNL_NO_ROOM || status == RNL_BUSY);
    }
    TEST_MUST(rnl_reply(s, ANSWER, test_pattern(h.id, 0), h.n) == 0);
    return RNL_DONE;
}

static int answer(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct fighter *f = ctx;
    (void)buf, (void)n, (void)peer;
    atomic_fetch_add(&f->w->answered, 1);
    return RNL_DONE;
}

static void strike(struct fighter *f)
{
    struct test_random *r = &f->r;
    unsigned to = test_random_below(r, f->t->size), kind = test_random_below(r, 8);
    struct head h = {test_random_next(r), (uint32_t)test_random_size(r, f->w->largest, NULL, 0)};
    struct rnl_message b = {.peer = to, .handler = kind < 5 ? NOTE : kind < 7 ? WHOLE : ECHO};
    rnl_stream *s;
    if (b.handler == ECHO) {
        h.n %= 4000;
        b.answer = 4000;
        b.bound = sizeof h;
        TEST_MUST(rnl_begin(f->t->ep, &b, &s) == 0);
        TEST_MUST(rnl_piece(s, &h, sizeof h) == 0);
        TEST_MUST(rnl_end(s) == 0);
        atomic_fetch_add(&f->w->asked, 1);
        return;
    }
    b.bound = sizeof h + h.n;
    TEST_MUST(rnl_begin(f->t->ep, &b, &s) == 0);
    TEST_MUST(rnl_piece(s, &h, sizeof h) == 0);
    for (uint32_t at = 0; at < h.n;) {
        uint32_t step = 1 + (uint32_t)test_random_size(r, h.n - at - 1, NULL, 0);
        if (test_random_one_in(r, 2))
            step = h.n - at;
        TEST_MUST(rnl_piece(s, test_pattern(h.id, at), step) == 0);
        at += step;
    }
    TEST_MUST(rnl_end(s) == 0);
    f->w->sent[f->t->rank][to].messages++;
    f->w->sent[f->t->rank][to].bytes += h.n;
}

static void fight(struct test_thread *t)
{
    /* Handlers run until the close, after this has returned. */
    static struct fighter fighters[MOST];
    struct fighter *f = &fighters[t->rank];
    *f = (struct fighter){.w = t->arg, .t = t, .r = test_random_of(t->rank, 9)};
    TEST_MUST(rnl_handler_stream(t->ep, NOTE, note, f) == NOTE);
    TEST_MUST(rnl_handler_whole(t->ep, WHOLE, whole, f, t->rank & 1 ? RNL_IN_PLACE : 0) == WHOLE);
    TEST_MUST(rnl_handler_stream(t->ep, ECHO, echo, f) == ECHO);
    TEST_MUST(rnl_handler_whole(t->ep, ANSWER, answer, f, 0) == ANSWER);
    rnl_on_rejected(t->ep, back, f);
    for (unsigned i = 0; i < f->w->messages; i++) {
        strike(f);
        if (test_random_one_in(&f->r, 6))
            TEST_MUST(rnl_extract(t->ep, test_random_size(&f->r, 100000, NULL, 0)) >= 0);
        if (test_random_one_in(&f->r, 50)) {
            int64_t status = rnl_wait(t->ep, 100000);
            TEST_MUST(status >= 0 || status == RNL_TIMED_OUT);
        }
    }
}

static void battle(unsigned size, const struct rnl_options *opt, unsigned messages, size_t largest)
{
    struct battle *w = aligned_alloc(64, sizeof *w);
    assert_non_null(w);
    memset(w, 0, sizeof *w);
    w->messages = messages / test_slowness() + 1;
    w->largest = largest;
    uint64_t then = test_now_ns(), bytes = 0, count = 0;
    assert_int_equal(test_hub_threads(size, opt, fight, w), 0);
    for (unsigned i = 0; i < size; i++) {
        for (unsigned k = 0; k < size; k++) {
            assert_int_equal(w->got[i][k].messages, w->sent[i][k].messages);
            assert_int_equal(w->got[i][k].bytes, w->sent[i][k].bytes);
            count += w->got[i][k].messages;
            bytes += w->got[i][k].bytes;
        }
    }
    assert_int_equal(w->answered, w->asked);
    printf("%u endpoints: %llu messages, %llu MB in %.2f s\n", size, (unsigned long long)count,
           (unsigned long long)bytes >> 20, (double)(test_now_ns() - then) * 1e-9);
    free(w);
}

static void eight_endpoints(void **state)
{
    (void)state;
    battle(8, NULL, 500, 3 << 20);
}

enum { LEAST_BUDGET = 8192 /* for each peer */ };

static void one_stack_and_the_smallest_budget(void **state)
{
    (void)state;
    for (unsigned size = 2; size <= 8; size += 3) {
        const struct rnl_options opt = {.stacks = 1, .receive_budget = (size_t)size * LEAST_BUDGET};
        battle(size, &opt, 300, 200000);
    }
}

static void shared_endpoints_too(void **state)
{
    (void)state;
    const struct rnl_options opt = {.flags = RNL_SHARED, .stacks = 1};
    battle(3, &opt, 500, 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_endpoints),
        cmocka_unit_test(one_stack_and_the_smallest_budget),
        cmocka_unit_test(shared_endpoints_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
