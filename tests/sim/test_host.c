/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_host.c - clocks of virtual hosts: they drift as they are told, never go back, and the tick of a moment is the
 * first at which the clock shows it. */
#include "sim/cluster/cluster_internal.h"
#include "sim/engine/engine.h"
#include "sim/engine/random.h"
#include "support/unit.h"

static const int32_t drifts[] = {0, 1, -1, 999, 50000, -50000, VC_DRIFT_MAX_PPB, -VC_DRIFT_MAX_PPB};
enum { DRIFTS = sizeof drifts / sizeof drifts[0] };

static void a_clock_drifts_as_told(void **state)
{
    const uint64_t day_ns = UINT64_C(86400000000000);
    (void)state;
    for (int i = 0; i < DRIFTS; i++) {
        struct vc_host h = {.drift_ppb = drifts[i], .offset_ns = 1000000};
        int64_t ahead = (int64_t)(vc_host_ns(&h, day_ns * VC_TICKS_PER_NS) - h.offset_ns - day_ns);
        assert_int_equal(ahead, 86400 * (int64_t)drifts[i]);
    }
}

static void it_never_goes_back(void **state)
{
    (void)state;
    for (int i = 0; i < DRIFTS; i++) {
        struct vc_host h = {.drift_ppb = drifts[i], .offset_ns = 5};
        uint64_t last = 0;
        for (uint64_t k = 0; k < 200000; k++) {
            uint64_t shown = vc_host_ns(&h, k * 7919);
            assert_true(shown >= last);
            last = shown;
        }
    }
}

static void the_tick_of_a_moment_is_the_first_that_shows_it(void **state)
{
    (void)state;
    for (int i = 0; i < DRIFTS; i++) {
        struct vc_host h = {.drift_ppb = drifts[i], .offset_ns = 123456789};
        assert_true(vc_host_tick(&h, UINT64_MAX) == RNL_SIM_NEVER);
        assert_int_equal(vc_host_tick(&h, 5), 0);
        for (uint64_t k = 0; k < 100000; k++) {
            uint64_t far = rnl_sim_random(1, 1, (uint64_t)i, k) >> (14 + k % 40);
            uint64_t ns = h.offset_ns + 1 + (k % 4 ? k : far);
            uint64_t tick = vc_host_tick(&h, ns);
            assert_true(vc_host_ns(&h, tick) >= ns);
            assert_true(tick == 0 || vc_host_ns(&h, tick - VC_TICKS_PER_NS) < ns);
        }
    }
}

static void a_new_drift_makes_no_jump(void **state)
{
    (void)state;
    for (int i = 0; i < DRIFTS; i++) {
        struct vc_host h = {.drift_ppb = drifts[i], .offset_ns = 77};
        uint64_t tick = UINT64_C(3600000000000) * VC_TICKS_PER_NS, shown = vc_host_ns(&h, tick);
        vc_host_set_drift(&h, -drifts[i] / 2, tick);
        assert_true(vc_host_ns(&h, tick) == shown);
        assert_true(vc_host_ns(&h, tick + 1000000 * VC_TICKS_PER_NS) > shown);
    }
}

static void seeds_and_hosts_have_clocks_of_their_own(void **state)
{
    struct vc_host a, b, c;
    (void)state;
    vc_host_init(&a, 1, 0);
    vc_host_init(&b, 1, 1);
    vc_host_init(&c, 2, 0);
    assert_true(a.offset_ns != b.offset_ns && a.offset_ns != c.offset_ns);
    for (uint32_t i = 0; i < 1000; i++) {
        vc_host_init(&a, 3, i);
        assert_in_range(a.drift_ppb + VC_DRIFT_MAX_PPB, 0, 2 * VC_DRIFT_MAX_PPB);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_drifts_as_told),
        cmocka_unit_test(it_never_goes_back),
        cmocka_unit_test(the_tick_of_a_moment_is_the_first_that_shows_it),
        cmocka_unit_test(a_new_drift_makes_no_jump),
        cmocka_unit_test(seeds_and_hosts_have_clocks_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
