/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_sense.c - the distance sensors. The counter's rate is made up, so that a transfer takes as long as a test wants.
 */
#include "base/env.h"
#include "base/sense.h"
#include "support/unit.h"

static void samples(uint8_t *d, uint64_t ns, int weight, int n)
{
    while (n-- > 0)
        rnl_sense_sample(d, ns, weight, RNL_SENSE_MIDDLE_NS);
}

static void a_fresh_verdict_is_near(void **state)
{
    uint8_t d = 0;
    (void)state;
    assert_int_equal(d & 1, RNL_NEAR);
    samples(&d, 50, 8, 1000);
    assert_int_equal(d & 1, RNL_NEAR);
}

static void the_average_arrives_at_what_is_measured(void **state)
{
    (void)state;
    for (int weight = 4; weight <= 8; weight += 4)
        for (int ns = 0; ns <= 254; ns++) {
            uint8_t up = 0, down = 254;
            samples(&up, (uint64_t)ns, weight, 200);
            samples(&down, (uint64_t)ns, weight, 200);
            assert_int_equal(up >> 1, ns / RNL_SENSE_UNIT_NS);
            assert_int_equal(down >> 1, ns / RNL_SENSE_UNIT_NS);
        }
}

static void far_after_slow_transfers_and_near_again_after_quick_ones(void **state)
{
    uint8_t d = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        samples(&d, 125, 8, 20);
        assert_int_equal(d & 1, RNL_FAR);
        samples(&d, 50, 8, 40);
        assert_int_equal(d & 1, RNL_NEAR);
    }
}

static void between_the_thresholds_the_verdict_stays(void **state)
{
    uint8_t near = 0, far = 0;
    (void)state;
    samples(&near, 50, 8, 100);
    samples(&far, 120, 8, 100);
    for (uint64_t ns = RNL_SENSE_MIDDLE_NS - RNL_SENSE_SLACK_NS; ns <= RNL_SENSE_MIDDLE_NS + RNL_SENSE_SLACK_NS; ns++) {
        samples(&near, ns, 8, 100);
        samples(&far, ns, 8, 100);
        assert_int_equal(near & 1, RNL_NEAR);
        assert_int_equal(far & 1, RNL_FAR);
    }
}

/* The middle follows the table of the host: what is near there may be what is far elsewhere. */
static void the_middle_is_that_of_the_host(void **state)
{
    const struct rnl_copies unknown = {.line_ns = {62, 0}}, wrong = {.line_ns = {248, 62}},
                            endless = {{0}, {62, 99999}};
    const struct {
        struct rnl_copies c;
        uint64_t near_ns, far_ns; /* samples measured there */
    } hosts[] = {{{.line_ns = {29, 185}}, 40, 105}, {{.line_ns = {62, 248}}, 80, 110}};
    (void)state;
    assert_int_equal(rnl_sense_middle_ns(&unknown), RNL_SENSE_MIDDLE_NS);
    assert_int_equal(rnl_sense_middle_ns(&wrong), RNL_SENSE_MIDDLE_NS);
    assert_true(rnl_sense_middle_ns(&endless) + RNL_SENSE_SLACK_NS < 127 * RNL_SENSE_UNIT_NS);
    for (unsigned i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        const int middle = rnl_sense_middle_ns(&hosts[i].c);
        uint8_t d = 0;
        for (int k = 0; k < 40; k++)
            rnl_sense_sample(&d, hosts[i].far_ns, 8, middle);
        assert_int_equal(d & 1, RNL_FAR);
        for (int k = 0; k < 40; k++)
            rnl_sense_sample(&d, hosts[i].near_ns, 8, middle);
        assert_int_equal(d & 1, RNL_NEAR);
    }
}

/* What was delayed now and then is not far, however long it took. */
static void a_few_slow_transfers_are_no_move(void **state)
{
    uint8_t d = 0;
    (void)state;
    samples(&d, 50, 4, 100);
    for (int i = 0; i < 20; i++) {
        samples(&d, RNL_SENSE_DROP_ABOVE_NS, 4, 1);
        assert_int_equal(d & 1, RNL_NEAR);
        samples(&d, 50, 4, 2);
    }
}

static void preempted_samples_are_dropped(void **state)
{
    uint8_t d = 0;
    (void)state;
    samples(&d, 50, 8, 100);
    uint8_t before = d;
    samples(&d, RNL_SENSE_DROP_ABOVE_NS + 1, 8, 1000);
    samples(&d, UINT64_MAX, 8, 1000);
    assert_int_equal(d, before);
}

/* -- the real sensors, of a machine as slow as we say -- */

static _Atomic uint64_t word;

/* n loads of a value that is not `last`. */
static void load_changed(uint64_t khz, uint8_t *d, int n)
{
    struct rnl_env e = {.facts.tsc_khz = khz};
    while (n-- > 0)
        assert_int_equal(rnl_host_sense_load(&e, &word, 1, d), 7);
}

enum { QUICK = 1000000000 }; /* a rate so high that nothing takes a ns */

/* A rate at which `sensor` finds us far: between those at which all is quick and those at which all is dropped. */
static uint64_t far_rate(void (*sensor)(uint64_t, uint8_t *, int), int n)
{
    for (uint64_t khz = QUICK; khz > 0; khz -= (khz + 3) / 4) {
        uint8_t d = 0;
        sensor(khz, &d, n);
        if (d & 1)
            return khz;
    }
    return 0;
}

static void check_sensor(void (*sensor)(uint64_t, uint8_t *, int), int n)
{
    struct rnl_env host;
    rnl_host_facts(&host.facts);
    if (host.facts.tsc_khz == 0) {
        print_message("skip: no usable time-stamp counter\n");
        skip();
    }
    uint8_t d = 0;
    sensor(QUICK, &d, n);
    assert_int_equal(d & 1, RNL_NEAR);
    uint64_t khz = far_rate(sensor, n);
    assert_int_not_equal(khz, 0);
    sensor(QUICK, &d, n); /* and near again */
    assert_int_equal(d & 1, RNL_NEAR);
    d = 121;
    sensor(1, &d, n); /* every sample above 1 us: dropped */
    assert_int_equal(d, 121);
    sensor(0, &d, n); /* no counter: no verdict */
    assert_int_equal(d, 121);
}

static void loads_of_changed_values_are_sensed(void **state)
{
    (void)state;
    word = 7;
    check_sensor(load_changed, 100);
}

static void an_unchanged_value_is_loaded_but_not_sensed(void **state)
{
    uint8_t d = 121;
    (void)state;
    word = 7;
    for (uint64_t khz = QUICK; khz > 0; khz /= 2) {
        struct rnl_env e = {.facts.tsc_khz = khz};
        for (int i = 0; i < 20; i++)
            assert_int_equal(rnl_host_sense_load(&e, &word, 7, &d), 7);
    }
    assert_int_equal(d, 121);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_verdict_is_near),
        cmocka_unit_test(the_average_arrives_at_what_is_measured),
        cmocka_unit_test(far_after_slow_transfers_and_near_again_after_quick_ones),
        cmocka_unit_test(between_the_thresholds_the_verdict_stays),
        cmocka_unit_test(the_middle_is_that_of_the_host),
        cmocka_unit_test(a_few_slow_transfers_are_no_move),
        cmocka_unit_test(preempted_samples_are_dropped),
        cmocka_unit_test(loads_of_changed_values_are_sensed),
        cmocka_unit_test(an_unchanged_value_is_loaded_but_not_sensed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
