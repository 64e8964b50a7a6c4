/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_hist.c - the histogram against the sorted samples. */
#include "base/hist.h"
#include "support/unit.h"

static struct rnl_hist h, h2;

static int clear(void **state)
{
    (void)state;
    memset(&h, 0, sizeof h);
    memset(&h2, 0, sizeof h2);
    return 0;
}

static void an_empty_one_says_zero(void **state)
{
    (void)state;
    assert_int_equal(rnl_hist_percentile(&h, 50), 0);
}

static void below_128_ns_it_is_exact(void **state)
{
    (void)state;
    for (uint64_t v = 0; v < 128; v++)
        rnl_hist_record(&h, v);
    for (uint64_t v = 0; v < 128; v++)
        assert_int_equal(rnl_hist_percentile(&h, 100.0 * (double)(v + 1) / 128), v);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void above_it_is_within_0_8_percent(void **state)
{
    enum { N = 20001 };
    static uint64_t v[N];
    uint64_t x = 7;
    (void)state;
    for (int i = 0; i < N; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        v[i] = (x >> 8) >> ((x >> 2) % 56); /* all magnitudes */
        rnl_hist_record(&h, v[i]);
    }
    qsort(v, N, sizeof *v, by_value);
    for (int i = 0; i < N; i++) {
        uint64_t got = rnl_hist_percentile(&h, 100.0 * (i + 0.5) / N);
        uint64_t off = got > v[i] ? got - v[i] : v[i] - got;
        if (v[i] < 128 ? off != 0 : (double)off > 0.008 * (double)v[i])
            fail_msg("sample %d: %llu instead of %llu", i, (unsigned long long)got, (unsigned long long)v[i]);
    }
    assert_int_equal(rnl_hist_percentile(&h, 0), v[0]);
    assert_int_equal(rnl_hist_percentile(&h, 100), v[N - 1]);
}

static void takes_the_largest_value_there_is(void **state)
{
    (void)state;
    rnl_hist_record(&h, UINT64_MAX);
    rnl_hist_record(&h, UINT64_MAX - 1);
    rnl_hist_record(&h, 5);
    assert_int_equal(rnl_hist_percentile(&h, 0), 5);
    assert_true(rnl_hist_percentile(&h, 100) == UINT64_MAX);
    assert_true(rnl_hist_percentile(&h, 50) > UINT64_MAX / 128 * 127);
}

static void merged_equals_recorded_together(void **state)
{
    static struct rnl_hist all;
    (void)state;
    memset(&all, 0, sizeof all);
    for (uint64_t i = 1; i < 3000; i++) {
        rnl_hist_record(i % 3 ? &h : &h2, i * i);
        rnl_hist_record(&all, i * i);
    }
    rnl_hist_merge(&h, &h2);
    assert_memory_equal(&h, &all, sizeof h);
    memset(&h2, 0, sizeof h2);
    rnl_hist_merge(&h, &h2); /* empty: no change, its min is none */
    assert_memory_equal(&h, &all, sizeof h);
    rnl_hist_merge(&h2, &h);
    assert_memory_equal(&h2, &all, sizeof h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_empty_one_says_zero, clear),
        cmocka_unit_test_setup(below_128_ns_it_is_exact, clear),
        cmocka_unit_test_setup(above_it_is_within_0_8_percent, clear),
        cmocka_unit_test_setup(takes_the_largest_value_there_is, clear),
        cmocka_unit_test_setup(merged_equals_recorded_together, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
