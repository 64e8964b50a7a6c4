/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_order.c - a network that does not keep packets in order: Hamlyn's messages are whole when their records say so,
 * in whatever order packets come; systems that take the network to keep it end in an error that says so, and others
 * deliver. Hamlyn bears no loss, and interrupts whoever asks for it. */
#include "tests/myrinet/machine.h"

static const char *firmware; /* the system of this round: the same with each of two firmwares */

static uint64_t part(double of_all)
{
    return (uint64_t)(of_all * 4294967296.0);
}

static void every_message_comes_whole_in_any_order(void **state)
{
    (void)state;
    static const uint32_t senders[] = {1, 2, 7, 31}, bytes[] = {20, 6000}, packets[] = {64, 1000, 0};
    uint64_t overtaken = 0;
    for (int i = 0; i < 4; i++)
        for (int how = 0; how < 6; how++)
            for (int slow = 0; slow < 2; slow++) {
                struct myri_outcome out;
                struct myri_experiment x = experiment(firmware, "H-PP", MYRI_GOODPUT, bytes[how & 1]);
                x.senders = senders[i];
                x.count = 20;
                x.packet = packets[how / 2];
                x.slow_us = slow ? 100 : 0;
                x.seed = (uint64_t)(7 * i + how);
                x.reorder = how % 3 < 2;
                x.late_per_2_32 = part(x.reorder ? 0 : 0.2);
                if (myri_experiment_run(&x, &out) < 0)
                    fail_msg("%u senders, %d: %s", senders[i], how, rnl_last_error()->text);
                assert_int_equal(out.sent, 20 * senders[i]);
                assert_int_equal(out.received, out.sent);
                assert_int_equal(out.wrong, 0);
                overtaken += out.count.packets_overtaken;
            }
    assert_true(overtaken > 5000);
}

static void who_takes_the_network_to_keep_order_ends_in_an_error_that_says_so(void **state)
{
    (void)state;
    static const char *const ordered[] = {"simple", "fm1", "fm2", "fmmc", "mpi-fm2", "vmmc", "bip", "pm", "lfc"};
    static const char *const others[] = {"am2", "vmmc2", "unet", "unet-mm", "hamlyn", "hamlyn-tuned"};
    struct myri_outcome out;
    for (size_t s = 0; s < sizeof ordered / sizeof ordered[0]; s++)
        for (int late = 0; late < 2; late++) {
            struct myri_experiment x = experiment(ordered[s], "H-PP", MYRI_STREAM_RATE, 4000);
            x.count = 40;
            x.reorder = !late;
            x.late_per_2_32 = part(late ? 0.5 : 0);
            if (myri_experiment_run(&x, &out) != RNL_ERR_ABORTED)
                fail_msg("%s does not end", ordered[s]);
            if (!strstr(rnl_last_error()->text, ordered[s]) ||
                !strstr(rnl_last_error()->text, "takes the network to keep packets in order"))
                fail_msg("%s: %s", ordered[s], rnl_last_error()->text);
        }
    for (size_t s = 0; s < sizeof others / sizeof others[0]; s++) {
        struct myri_experiment x = experiment(others[s], "H-PP", MYRI_STREAM_RATE, 600);
        x.count = 40;
        x.reorder = 1;
        if (myri_experiment_run(&x, &out) < 0)
            fail_msg("%s: %s", others[s], rnl_last_error()->text);
        assert_int_equal(out.received, 40);
        assert_int_equal(out.wrong, 0);
        assert_true(out.count.packets_overtaken > 0);
    }
}

static void what_the_network_loses_or_spoils_ends_a_run(void **state)
{
    (void)state;
    for (int bad = 0; bad < 2; bad++)
        for (uint32_t bytes = 20; bytes <= 20000; bytes *= 1000) {
            struct myri_outcome out;
            struct myri_experiment x = experiment(firmware, "H-PP", MYRI_STREAM_RATE, bytes);
            x.count = 200;
            x.bad_per_2_32 = bad ? part(0.03) : 0;
            x.lost_per_2_32 = bad ? 0 : part(0.03);
            assert_int_equal(myri_experiment_run(&x, &out), RNL_ERR_ABORTED);
            assert_non_null(strstr(rnl_last_error()->text, bad ? "does not recover from a wrong CRC"
                                                               : "does not recover from a packet that the network"));
        }
}

static void messages_interrupt_who_asks_for_it(void **state)
{
    (void)state;
    struct myri_outcome out;
    struct myri_experiment x = experiment(firmware, "H-PP", MYRI_ANSWER, 4);
    x.count = 30;
    x.slow_us = 20;
    x.attention = MYRI_BY_INTERRUPTS;
    if (myri_experiment_run(&x, &out) < 0)
        fail_msg("%s", rnl_last_error()->text);
    assert_int_equal(out.wrong, 0);
    assert_int_equal(out.count.interrupts, 30); /* of questions; neither answers nor places that are given back */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_comes_whole_in_any_order),
        cmocka_unit_test(what_the_network_loses_or_spoils_ends_a_run),
        cmocka_unit_test(messages_interrupt_who_asks_for_it),
    };
    const struct CMUnitTest once[] = {
        cmocka_unit_test(who_takes_the_network_to_keep_order_ends_in_an_error_that_says_so),
    };
    firmware = "hamlyn";
    int failed = cmocka_run_group_tests_name("hamlyn", tests, NULL, NULL);
    firmware = "hamlyn-tuned";
    failed += cmocka_run_group_tests_name("hamlyn-tuned", tests, NULL, NULL);
    return failed + cmocka_run_group_tests(once, NULL, NULL);
}
