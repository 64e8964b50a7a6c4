/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_overload.c - receivers that are too slow, rings that are overrun, packets with a wrong CRC. */
#include "tests/myrinet/machine.h"

#include <math.h>
#include <string.h>

static void a_ring_that_is_overrun_is_reported(void **state)
{
    (void)state;
    struct myri_outcome out;
    struct myri_experiment x = experiment("bip", "H-PP", MYRI_STREAM_RATE, 1024);
    x.count = 300; /* copied from the ring more slowly than stored to the card, and BIP has no credits */
    assert_int_equal(myri_experiment_run(&x, &out), RNL_ERR_ABORTED);
    assert_non_null(strstr(rnl_last_error()->text, "its ring is overrun"));
}

static void slow_receivers_lose_nothing_where_a_protocol_says_so(void **state)
{
    (void)state;
    static const char *const kept[] = {"fm1",       "fm1-polls", "fm1-tuned", "fm1-tuned-polls", "fm2",
                                       "fm2-tuned", "pm",        "pm-tuned",  "hamlyn",          "hamlyn-tuned"};
    for (size_t s = 0; s < sizeof kept / sizeof kept[0]; s++) {
        struct myri_outcome out;
        struct myri_experiment x = experiment(kept[s], "H-PP", MYRI_GOODPUT, 128);
        x.senders = 4;
        x.count = 60;
        x.slow_us = 40;
        if (myri_experiment_run(&x, &out) < 0)
            fail_msg("%s: %s", kept[s], rnl_last_error()->text);
        assert_int_equal(out.sent, 240);
        assert_int_equal(out.received, 240);
        assert_int_equal(out.wrong, 0);
    }
}

static void vmmc_loses_nothing_on_its_way_and_overwrites_what_is_not_looked_at(void **state)
{
    (void)state;
    static const struct {
        uint32_t bytes;
        double slow;
    } runs[] = {{4, 0}, {128, 40}, {4096, 0}, {16384, 400}};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct myri_outcome out;
        struct myri_experiment x = experiment("vmmc", "H-P", MYRI_GOODPUT, runs[i].bytes);
        x.senders = 4;
        x.count = 40;
        x.slow_us = runs[i].slow;
        if (myri_experiment_run(&x, &out) < 0)
            fail_msg("%s", rnl_last_error()->text);
        assert_int_equal(out.sent, 160);
        assert_int_equal(out.wrong, 0);
        assert_int_equal(out.count.packets_sent, out.count.packets_received);
        assert_true(out.received > 16); /* of each of them, or the turn stays with one */
        assert_true(runs[i].slow > 0 ? out.received < out.sent : 10 * out.received > 9 * out.sent);
    }
}

static void what_overload_costs_on_the_wire_is_counted(void **state)
{
    (void)state;
    static const char *const over_them[] = {"fm1", "fm2", "hamlyn", "pm", "simple", "vmmc"};
    double calm[6], over[6];
    for (int s = 0; s < 6; s++)
        for (int slow = 0; slow < 2; slow++) {
            struct myri_outcome out;
            struct myri_experiment x = experiment(over_them[s], "H-PP", MYRI_WIRE_COST, 64);
            x.senders = 3;
            x.count = 60;
            x.slow_us = slow ? 40 : 0;
            if (myri_experiment_run(&x, &out) < 0)
                fail_msg("%s: %s", over_them[s], rnl_last_error()->text);
            assert_true(fabs(out.value * 64 * out.received - (double)out.count.bytes_sent) < 1);
            *(slow ? &over[s] : &calm[s]) = out.value;
        }
    for (int s = 0; s < 3; s++) /* credits, or places of a slot: who has none waits */
        assert_true(over[s] < 1.05 * calm[s]);
    for (int s = 3; s < 6; s++) /* refused, dropped, written over */
        assert_true(over[s] > 1.5 * calm[s]);
}

static void bip_says_that_its_ring_is_overrun(void **state)
{
    (void)state;
    struct myri_outcome out;
    struct myri_experiment x = experiment("bip", "H-PP", MYRI_GOODPUT, 128);
    x.senders = 4;
    x.count = 60;
    x.slow_us = 40;
    assert_int_equal(myri_experiment_run(&x, &out), RNL_ERR_ABORTED);
    assert_non_null(strstr(rnl_last_error()->text, "its ring is overrun"));
}

static void the_simple_protocol_drops_under_overload_and_nothing_else(void **state)
{
    (void)state;
    struct myri_outcome out;
    struct myri_experiment x = experiment("simple", "H-PP", MYRI_GOODPUT, 128);
    x.senders = 4;
    x.count = 60;
    x.slow_us = 40;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_true(out.received < out.sent && out.received > 16);
    assert_int_equal(out.wrong, 0);
    assert_int_equal(out.count.packets_sent, out.count.packets_received);
}

static void packets_with_a_wrong_crc_never_reach_a_program(void **state)
{
    (void)state;
    struct myri_outcome out;
    struct myri_experiment x = experiment("simple", "H-PP", MYRI_STREAM_RATE, 128);
    x.count = 400;
    x.bad_per_2_32 = (uint64_t)1 << 27; /* 1 in 32 */
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_true(out.count.packets_bad > 0);
    assert_int_equal(out.received, out.sent - out.count.packets_bad);
    assert_int_equal(out.wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_that_is_overrun_is_reported),
        cmocka_unit_test(slow_receivers_lose_nothing_where_a_protocol_says_so),
        cmocka_unit_test(vmmc_loses_nothing_on_its_way_and_overwrites_what_is_not_looked_at),
        cmocka_unit_test(what_overload_costs_on_the_wire_is_counted),
        cmocka_unit_test(bip_says_that_its_ring_is_overrun),
        cmocka_unit_test(the_simple_protocol_drops_under_overload_and_nothing_else),
        cmocka_unit_test(packets_with_a_wrong_crc_never_reach_a_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
