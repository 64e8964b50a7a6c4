/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A ring between two threads over one mapping: what the thread sanitizer can see, and the races that one thread cannot
 * show (an item appended just before the sender moves on to the next line). */
#include "ring/pair.h"

#include <pthread.h>
#include <sched.h>

#include "support/must.h"
#include "support/random.h"
#include "support/unit.h"

struct duel {
    struct ring_pair p;
    uint64_t items;
    uint64_t answers; /* read by the sender */
};

static void give_way(unsigned *idle)
{
    if (++*idle % 64 == 0)
        sched_yield();
}

static void *sender(void *arg)
{
    struct duel *d = arg;
    struct rnl_tx *t = &d->p.a.tx[0];
    struct test_random r = test_random_of(1, 1);
    unsigned handler = 0, idle = 0;
    uint64_t got;
    rnl_header h;
    for (uint64_t i = 0; i < d->items;) {
        int put = ring_put(&d->p.a, 0, rnl_header_key(RNL_CELL_RECORDS, handler, 8), &i);
        if (put >= 0) {
            i++;
            if (test_random_one_in(&r, 4))
                handler = (handler + 1) & 15;
            idle = 0;
            continue;
        }
        TEST_MUST(rnl_tx_refresh(t, NULL, NULL) >= 0);
        give_way(&idle);
        while (ring_take(&d->p.a, 0, &h, &got)) {
            TEST_MUST(got == d->answers++);
            TEST_MUST(rnl_tx_acked(t, &d->p.a.rx[0], RNL_HEADER_ACK(h)) == 0);
        }
        TEST_MUST(rnl_tx_valid(t) == 0);
    }
    return NULL;
}

static void *receiver(void *arg)
{
    struct duel *d = arg;
    uint64_t x, asked = 0;
    unsigned idle = 0;
    rnl_header h;
    for (uint64_t i = 0; i < d->items;) {
        if (!ring_take(&d->p.b, 0, &h, &x)) {
            give_way(&idle);
            continue;
        }
        idle = 0;
        TEST_MUST(x == i++);
        if (i % 31 == 0) {
            TEST_MUST(rnl_tx_refresh(&d->p.b.tx[0], NULL, NULL) >= 0);
            if (ring_put(&d->p.b, 0, rnl_header_key(RNL_CELL_RECORDS, 1, 8), &asked) >= 0)
                asked++;
        }
    }
    rnl_rx_advertise(&d->p.b.rx[0]);
    return NULL;
}

static void nothing_is_lost_between_two_threads(void **state)
{
    (void)state;
    struct duel *d = calloc(1, sizeof *d);
    pthread_t a, b;
    assert_non_null(d);
    ring_pair_init(&d->p, 11, 12);
    d->items = 3000000 / test_slowness();
    assert_int_equal(pthread_create(&a, NULL, sender, d), 0);
    assert_int_equal(pthread_create(&b, NULL, receiver, d), 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert_int_equal(rnl_tx_refresh(&d->p.a.tx[0], NULL, NULL), 1);
    assert_int_equal(rnl_tx_valid(&d->p.a.tx[0]), 0);
    assert_int_equal(rnl_rx_valid(&d->p.b.rx[0]), 0);
    ring_pair_free(&d->p);
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_lost_between_two_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
