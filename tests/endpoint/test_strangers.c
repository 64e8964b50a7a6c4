/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_strangers.c - two ranks talk while everybody else does what he can: datagrams of every length and any content
 * from outside, a job with another key that knows their addresses, and on their own way, with their own addresses,
 * what was sent before: again, back to where it came from, cut, with bits flipped. Not one byte of it is delivered, and
 * the two get all of theirs. RNL_TEST_STRANGERS says how many datagrams come from outside. */
#include <stdio.h>

#include "runnel/counters.h"
#include "support/evil.h"
#include "support/must.h"
#include "support/unit.h"

enum { NOTE = 1, DATAGRAMS = 20000, FIRST = 100, MESSAGE_MAX = 5000 };
enum { AT_FLOOD_ENDS, AT_GENUINE };

/* ---- the two ---- */

struct friend
{
    unsigned heard, sent;
    uint64_t bytes;
};

static unsigned char pattern(unsigned number, size_t i)
{
    return (unsigned char)(number * 31 + i * 131 + (i >> 8));
}

static size_t length_of(unsigned number)
{
    return number % 7 == 0 ? number * 37 % MESSAGE_MAX : number % 48;
}

static int on_note(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct friend *f = ctx;
    const unsigned char *at = buf;
    TEST_MUST(peer < TEST_FRIENDS);
    TEST_MUST(n == length_of(f->heard));
    for (size_t i = 0; i < n; i++)
        TEST_MUST(at[i] == pattern(f->heard, i));
    f->heard++;
    f->bytes += n;
    return RNL_DONE;
}

static void say(struct test_loop_side *s, struct friend *f)
{
    unsigned char buf[MESSAGE_MAX];
    size_t n = length_of(f->sent);
    rnl_stream *out;
    for (size_t i = 0; i < n; i++)
        buf[i] = pattern(f->sent, i);
    const struct rnl_message b = {.peer = !s->rank, .handler = NOTE, .bound = n};
    TEST_MUST(rnl_begin(s->ep, &b, &out) == 0 && rnl_piece(out, buf, n) == 0 && rnl_end(out) == 0);
    f->sent++;
}

static void talk(struct test_loop_side *s)
{
    struct friend f = {0};
    _Atomic uint64_t *ends = &s->run->word[AT_FLOOD_ENDS], *genuine = &s->run->word[AT_GENUINE + s->rank];
    _Atomic uint64_t *theirs = &s->run->word[AT_GENUINE + !s->rank];
    TEST_MUST(rnl_handler_whole(s->ep, NOTE, on_note, &f, 0) == NOTE);
    /* Connected, each with a socket for the other: a flood of the first socket has to be lived through only, what it
     * pushes out there comes again. */
    for (unsigned i = 0; i < FIRST; i++) {
        say(s, &f);
        for (uint64_t until = test_now_ns() + (uint64_t)30000000000; f.heard <= i;) {
            TEST_MUST(test_now_ns() < until);
            TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0);
        }
    }
    test_loop_meet(s);
    do {
        for (int i = 0; i < 20; i++)
            say(s, &f);
        TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0);
    } while (!atomic_load_explicit(ends, memory_order_relaxed));
    atomic_store_explicit(genuine, f.sent, memory_order_release);
    uint64_t all = 0;
    for (uint64_t until = test_now_ns() + (uint64_t)30000000000; all == 0 || f.heard < all;) {
        TEST_MUST(test_now_ns() < until);
        TEST_MUST(rnl_wait(s->ep, 1000000) >= RNL_TIMED_OUT);
        all = atomic_load_explicit(theirs, memory_order_acquire);
    }
    TEST_MUST(f.heard == all);
    const struct rnl_counters *c = rnl_get_counters(s->ep);
    printf("rank %u: %u messages of %llu bytes, in spite of %llu datagrams of its own way and %llu strays; "
           "%llu refused, %llu come again\n",
           s->rank, f.heard, (unsigned long long)f.bytes, (unsigned long long)test_evil_done(),
           (unsigned long long)c->strays, (unsigned long long)c->packets_refused, (unsigned long long)c->packets_again);
    fflush(stdout);
    TEST_MUST(c->packets_refused > 0 && c->packets_again > 0 && c->strays > 0);
}

/* ---- the others ---- */

static void flood(struct test_loop_side *s)
{
    test_loop_meet(s);
    test_flood(DATAGRAMS);
    atomic_store_explicit(&s->run->word[AT_FLOOD_ENDS], 1, memory_order_relaxed);
}

/* It asks both for connections, is not answered, and learns why there is none. */
static void intrude(struct test_loop_side *s)
{
    test_loop_meet(s);
    int status[TEST_FRIENDS] = {0};
    for (uint64_t until = test_now_ns() + (uint64_t)30000000000; status[0] == 0 || status[1] == 0;) {
        TEST_MUST(test_now_ns() < until);
        for (unsigned i = 0; i < TEST_FRIENDS; i++)
            if (status[i] == 0)
                status[i] = rnl_send(s->ep, i, NOTE, "let me in", 9);
        TEST_MUST(rnl_wait(s->ep, 20000000) >= RNL_TIMED_OUT);
    }
    TEST_MUST(status[0] == RNL_ERR_PEER_DEAD && status[1] == RNL_ERR_PEER_DEAD);
}

static void strangers_change_nothing(void **state)
{
    (void)state;
    assert_int_equal(test_strangers(talk, flood, intrude), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
