/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_sent.c - records of sent packets, and the window of received ones, against plain arrays. */
#include "net/flow/ecn.h"
#include "net/flow/received.h"
#include "net/flow/sent.h"
#include "support/random.h"
#include "support/unit.h"

enum { NUMBERS = 20000 };
enum { UNSENT = 0, OPEN, ACKED, LOST };

static void grow(struct rnl_sent *s)
{
    uint32_t want = rnl_sent_reserve(s);
    assert_true(want != 0);
    if (want == s->size)
        return;
    free(rnl_sent_move(s, malloc(rnl_sent_bytes(want)), want));
}

static void records_are_what_was_put_there_at_any_size(void **state)
{
    (void)state;
    static uint8_t model[NUMBERS + 1];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct test_random r = test_random_of(seed, 0);
        struct rnl_sent s;
        uint32_t most = 1u << (2 + test_random_below(&r, 10));
        memset(model, 0, sizeof model);
        rnl_sent_init(&s, 1);
        while (s.next < NUMBERS) {
            if (s.count < most && rnl_sent_reserve(&s) && test_random_below(&r, 2)) {
                grow(&s);
                uint64_t n = s.next;
                struct rnl_sent_packet *p = rnl_sent_add(&s);
                p->sent_ns = n * 3;
                model[n] = OPEN;
            } else if (s.count) {
                uint64_t n = s.low + test_random_below(&r, (uint32_t)(s.next - s.low));
                n = rnl_sent_find_open(&s, n, s.next);
                if (n == s.next)
                    n = rnl_sent_find_open(&s, s.low, s.next);
                assert_int_equal(model[n], OPEN);
                assert_int_equal(rnl_sent_at(&s, n)->sent_ns, n * 3);
                if (test_random_below(&r, 4)) {
                    rnl_sent_acked(&s, n);
                    model[n] = ACKED;
                } else {
                    rnl_sent_lose(&s, n);
                    model[n] = LOST;
                }
            }
            uint64_t low = s.low;
            while (low < s.next && model[low] != OPEN)
                low++;
            assert_int_equal(low, s.low);
            if (s.next % 64 == 0 && s.size) {
                uint64_t n = s.base;
                for (uint64_t i = s.base; i < s.next; i++) {
                    if (model[i] == OPEN) {
                        n = rnl_sent_find_open(&s, n, s.next);
                        assert_int_equal(n++, i);
                    }
                }
                n = s.base;
                for (uint64_t i = s.base; i < s.next; i++) {
                    if (model[i] == LOST) {
                        n = rnl_sent_find_lost(&s, n, s.next);
                        assert_int_equal(n++, i);
                    }
                }
                assert_int_equal(rnl_sent_find_lost(&s, n, s.next), s.next);
            }
        }
        while (s.count)
            rnl_sent_acked(&s, s.low);
        free(rnl_sent_move(&s, NULL, 0));
        assert_int_equal(s.size, 0);
        assert_int_equal(rnl_sent_find_lost(&s, 1, s.next), s.next);
        assert_int_equal(rnl_sent_find_open(&s, 1, s.next), s.next);
    }
}

static void what_is_open_never_spans_more_than_the_most(void **state)
{
    (void)state;
    struct rnl_sent s;
    rnl_sent_init(&s, 1);
    for (int i = 0; i < RNL_SENT_MAX; i++) {
        grow(&s);
        rnl_sent_add(&s);
    }
    assert_int_equal(rnl_sent_reserve(&s), 0);
    rnl_sent_acked(&s, 2);
    assert_int_equal(rnl_sent_reserve(&s), 0);
    rnl_sent_acked(&s, 1);
    assert_int_equal(rnl_sent_reserve(&s), RNL_SENT_MAX);
    assert_int_equal(s.low, 3);
    free(rnl_sent_move(&s, NULL, 0));
}

static void the_received_window_is_what_a_plain_list_says(void **state)
{
    (void)state;
    static uint8_t here[NUMBERS * 2];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct test_random r = test_random_of(seed, 1);
        struct rnl_received w;
        uint64_t largest = 0, base = seed % 2 ? 0 : ((uint64_t)1 << 62) - 1000;
        memset(here, 0, sizeof here);
        rnl_received_init(&w);
        if (base) {
            rnl_received_data(&w, base, 0, 0, 16, 1, 1);
            w.floor = base;
            here[0] = 1;
        }
        for (int i = 0; i < NUMBERS; i++) {
            uint64_t at = largest + test_random_below(&r, 6);
            if (test_random_one_in(&r, 3)) {
                uint32_t back = test_random_below(&r, RNL_RECEIVED_BITS + 20);
                at = largest > back ? largest - back : 1;
            }
            if (test_random_one_in(&r, 500))
                at = largest + test_random_below(&r, 700);
            if (at == 0 || at >= NUMBERS * 2)
                continue;
            int fresh = at > largest || (largest - at < RNL_RECEIVED_BITS && !here[at]);
            if (base && at == 0)
                fresh = 0;
            assert_int_equal(rnl_received_is_new(&w, 0, base + at), fresh);
            if (!fresh)
                continue;
            rnl_received_data(&w, base + at, 0, 0, 16, 1000, (uint64_t)i);
            here[at] = 1;
            if (at > largest)
                largest = at;
            struct rnl_ack ack;
            assert_true(rnl_received_ack(&w, (uint64_t)i + 3, &ack));
            assert_int_equal(ack.largest, base + largest);
            uint64_t n = largest;
            for (unsigned k = 0; k <= ack.run; k++)
                assert_true(here[n--]);
            for (unsigned k = 0; k < ack.ranges; k++) {
                for (unsigned g = 0; g < ack.range[k].gap; g++)
                    assert_false(here[n--]);
                for (unsigned g = 0; g < ack.range[k].length; g++)
                    assert_true(here[n--]);
            }
            if (ack.ranges < RNL_ACK_RANGES_MAX) /* nothing in the window was left out */
                for (; n > 0 && largest - n < RNL_RECEIVED_BITS && base + n >= w.floor; n--)
                    assert_false(here[n]);
            if (test_random_one_in(&r, 50))
                rnl_received_heard(&w, (uint32_t)(base + (largest > 30 ? largest - 30 : 1)));
        }
    }
}

static void what_was_heard_is_not_said_again(void **state)
{
    (void)state;
    struct rnl_received w;
    struct rnl_ack ack;
    rnl_received_init(&w);
    for (uint64_t n = 2; n <= 200; n += 2)
        rnl_received_data(&w, n, 0, 0, 16, 1, 1);
    rnl_received_ack(&w, 1, &ack);
    assert_int_equal(ack.ranges, RNL_ACK_RANGES_MAX);
    rnl_received_heard(&w, 196);
    rnl_received_ack(&w, 1, &ack);
    assert_int_equal(ack.ranges, 2);
    rnl_received_heard(&w, 100); /* an older one says nothing new */
    rnl_received_heard(&w, 300); /* nor what was never told */
    rnl_received_ack(&w, 1, &ack);
    assert_int_equal(ack.ranges, 2);
    rnl_received_data(&w, 151, 0, 0, 16, 1, 1); /* what comes late is told, though */
    rnl_received_ack(&w, 1, &ack);
    assert_true(ack.ranges > 20);
}

static void control_packets_go_by_the_largest(void **state)
{
    (void)state;
    struct rnl_received w;
    rnl_received_init(&w);
    assert_false(rnl_received_is_new(&w, RNL_RECEIVED_CONTROL, 0));
    assert_true(rnl_received_is_new(&w, RNL_RECEIVED_CONTROL, 5));
    rnl_received_control(&w, 5);
    assert_false(rnl_received_is_new(&w, RNL_RECEIVED_CONTROL, 5));
    assert_false(rnl_received_is_new(&w, RNL_RECEIVED_CONTROL, 4));
    assert_true(rnl_received_is_new(&w, RNL_RECEIVED_CONTROL, 6));
    assert_true(rnl_received_is_new(&w, RNL_RECEIVED_DATA, 4));
}

/* Those of another way: each once, if it is one of the last 64. */
static void some_control_packets_may_come_late(void **state)
{
    (void)state;
    struct rnl_received w;
    struct test_random r = test_random_of(9, 2);
    static uint8_t came[200000];
    uint64_t largest = 0;
    rnl_received_init(&w);
    assert_false(rnl_received_is_new(&w, RNL_RECEIVED_LATE_CONTROL, 0));
    memset(came, 0, sizeof came);
    for (unsigned i = 0; i < 5000; i++) {
        uint64_t most = largest + 1 + test_random_below(&r, 80), back = test_random_below(&r, 90);
        uint64_t n = most > back ? most - back : 1;
        if (n >= sizeof came)
            break;
        int fresh = n > largest || (largest - n < 64 && !came[n]);
        assert_int_equal(rnl_received_is_new(&w, RNL_RECEIVED_LATE_CONTROL, n), fresh);
        if (!fresh || test_random_one_in(&r, 3))
            continue;
        rnl_received_control(&w, n);
        came[n] = 1;
        largest = n > largest ? n : largest;
    }
    assert_true(largest > 500);
}

static void marks_are_counted(void **state)
{
    (void)state;
    struct rnl_received w;
    struct rnl_ack ack;
    rnl_received_init(&w);
    rnl_received_data(&w, 1, 0, RNL_ECT_CE, 16, 1, 1);
    rnl_received_data(&w, 2, 0, RNL_ECT_0, 16, 1, 1);
    rnl_received_data(&w, 3, 0, RNL_ECT_NOT, 16, 1, 1);
    rnl_received_data(&w, 4, 0, RNL_ECT_CE, 16, 1, 1);
    rnl_received_ack(&w, 1, &ack);
    assert_int_equal(ack.ce, 2);
    assert_int_equal(ack.ect, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_what_was_put_there_at_any_size),
        cmocka_unit_test(what_is_open_never_spans_more_than_the_most),
        cmocka_unit_test(the_received_window_is_what_a_plain_list_says),
        cmocka_unit_test(what_was_heard_is_not_said_again),
        cmocka_unit_test(control_packets_go_by_the_largest),
        cmocka_unit_test(some_control_packets_may_come_late),
        cmocka_unit_test(marks_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
