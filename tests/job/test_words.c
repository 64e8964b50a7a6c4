/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words between agents that only datagrams connect, over a network that loses, repeats and overtakes. */
#include "job/words.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS ((uint64_t)1000 * 1000)
enum { ROOM = 1152, FLIGHT = 64, WORDS = 400 };

struct side {
    struct rnl_words words;
    uint64_t put, taken;
};
struct datagram {
    int to;
    size_t bytes;
    unsigned char at[ROOM];
};

/* The words of a side are numbered in what they say. */
static void take(void *arg, const struct rnl_word *w)
{
    struct side *s = arg;
    assert_int_equal(w->wave, s->taken);
    assert_int_equal(w->rank, s->taken % 7);
    assert_int_equal(w->why, -(int)(s->taken % 3));
    s->taken++;
}

static void put(struct side *s, uint64_t now)
{
    const struct rnl_word w = {
        .kind = RNL_WORD_REPORT, .rank = (uint32_t)(s->put % 7), .why = -(int)(s->put % 3), .wave = s->put};
    assert_int_equal(rnl_words_put(&s->words, &w, now), 0);
    s->put++;
}

static void each_word_once_and_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct side side[2] = {{.put = 0}};
        struct datagram *flight = calloc(FLIGHT, sizeof *flight);
        struct test_random r;
        size_t n = 0;
        uint64_t now = 1000 * MS, sent = 0;
        assert_non_null(flight);
        r = test_random_of(seed, 0);
        while (side[0].taken < WORDS || side[1].taken < WORDS || rnl_words_waits(&side[0].words) ||
               rnl_words_waits(&side[1].words)) {
            for (int i = 0; i < 2; i++) {
                if (side[i].put < WORDS && test_random_below(&r, 4) == 0)
                    put(&side[i], now);
                struct datagram *d = &flight[n];
                while (n < FLIGHT && (d->bytes = rnl_words_compose(&side[i].words, d->at, ROOM, now)) > 0) {
                    sent++;
                    d->to = !i;
                    n += test_random_below(&r, 100) >= 30;
                    d = &flight[n];
                }
            }
            if (n > 0) { /* any of them, and perhaps again later */
                size_t k = test_random_below(&r, (uint32_t)n);
                struct side *to = &side[flight[k].to];
                assert_int_equal(rnl_words_hear(&to->words, flight[k].at, flight[k].bytes, now, take, to), 0);
                if (test_random_below(&r, 5) > 0 || n > FLIGHT / 2)
                    flight[k] = flight[--n];
            }
            now += test_random_below(&r, 5) * MS;
            assert_true(now < 600000 * MS);
        }
        assert_int_equal(side[0].taken, WORDS);
        assert_int_equal(side[1].taken, WORDS);
        assert_true(sent < 20 * WORDS);
        rnl_words_free(&side[0].words);
        rnl_words_free(&side[1].words);
        free(flight);
    }
}

static void what_is_had_is_not_said_again(void **state)
{
    (void)state;
    struct side a = {.put = 0}, b = {.put = 0};
    unsigned char at[ROOM];
    put(&a, 0);
    size_t n = rnl_words_compose(&a.words, at, sizeof at, 0);
    assert_int_equal(n, RNL_WORDS_HEAD + RNL_WORDS_EACH);
    assert_int_equal(rnl_words_compose(&a.words, at, sizeof at, 1), 0);
    assert_in_range(rnl_words_deadline_ns(&a.words), 1, 100 * MS);
    assert_int_equal(rnl_words_hear(&b.words, at, n, 1, take, &b), 0);
    n = rnl_words_compose(&b.words, at, sizeof at, 1);
    assert_int_equal(n, RNL_WORDS_HEAD);
    assert_int_equal(rnl_words_hear(&a.words, at, n, 2, take, &a), 0);
    assert_false(rnl_words_waits(&a.words));
    assert_true(rnl_words_deadline_ns(&a.words) == UINT64_MAX);
    assert_true(rnl_words_deadline_ns(&b.words) == UINT64_MAX);
    rnl_words_free(&a.words);
    rnl_words_free(&b.words);
}

static void any_bytes_are_taken_or_refused(void **state)
{
    (void)state;
    struct test_random r;
    r = test_random_of(5, 0);
    for (int i = 0; i < 20000; i++) {
        struct side s = {.put = 0};
        unsigned char at[ROOM];
        size_t n = test_random_below(&r, sizeof at);
        put(&s, 0);
        for (size_t k = 0; k < n; k++)
            at[k] = (unsigned char)test_random_below(&r, 256);
        if (n > 23) { /* a count that may fit, numbers that may be next */
            memset(at, 0, 24);
            at[0] = (unsigned char)test_random_below(&r, 4);
            at[8] = 9; /* not those that take() looks at */
            at[16] = (unsigned char)test_random_below(&r, 40);
        }
        int bad = rnl_words_hear(&s.words, at, n, 0, take, &s);
        assert_int_equal(bad, n < 24 || at[16] > (n - 24) / RNL_WORDS_EACH ? -1 : 0);
        assert_int_equal(s.words.had, 0);
        assert_true(s.words.first <= s.words.next);
        rnl_words_free(&s.words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_once_and_in_order),
        cmocka_unit_test(what_is_had_is_not_said_again),
        cmocka_unit_test(any_bytes_are_taken_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
