/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_delivery.c - every system delivers every byte: sizes, pages, also those that are taken back, buffers, frames,
 * several senders; and what a host pays that computes meanwhile. */
#include "tests/myrinet/machine.h"

#include <string.h>

static void every_system_delivers_every_byte_at_every_size(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {4, 8, 60, 124, 128, 132, 248, 256, 1020, 1024, 1028, 4096, 4100, 12288};
    for (int i = 0; myri_systems[i]; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            for (int stream = 0; stream < 2; stream++) {
                struct myri_outcome out;
                const struct myri_system *s = myri_systems[i];
                if (!s->receive || sizes[k] > s->most || (stream && s->overwrites))
                    continue; /* what overwrites has one place for a message, which a stream fills again and again */
                struct myri_experiment x = experiment_at_home(s, stream ? MYRI_STREAM_RATE : MYRI_ONE_WAY, sizes[k]);
                x.count = 12;
                if (myri_experiment_run(&x, &out) < 0)
                    fail_msg("%s, %u bytes: %s", s->name, sizes[k], rnl_last_error()->text);
                assert_int_equal(out.received, out.sent);
                assert_int_equal(out.wrong, 0);
                assert_int_equal(out.count.packets_sent, out.count.packets_received);
                assert_int_equal(out.count.bytes_sent, out.count.bytes_received);
            }
}

/* The run of a system that does not recover ends with its own reason; one that does loses nothing. */
static void every_system_recovers_from_a_wrong_crc_or_says_why_not(void **state)
{
    (void)state;
    int recover = 0, end = 0;
    for (int i = 0; myri_systems[i]; i++) {
        const struct myri_system *s = myri_systems[i];
        struct myri_outcome out;
        char said[200];
        if (!s->receive)
            continue;
        struct myri_experiment x = experiment_at_home(s, MYRI_ROUND_TRIP, 4);
        x.count = 200;
        x.bad_per_2_32 = (uint64_t)(0.02 * 4294967296.0);
        int rc = myri_experiment_run(&x, &out);
        if (s->recovers) {
            if (rc < 0)
                fail_msg("%s recovers: %s", s->name, rnl_last_error()->text);
            assert_int_equal(out.received, out.sent);
            assert_int_equal(out.wrong, 0);
            assert_true(out.count.packets_bad > 0);
            recover++;
            continue;
        }
        if (!s->on_crc) { /* it may be one that has no cards */
            if (rc < 0 || out.count.packets_sent > 0)
                fail_msg("%s sends packets, and says nothing of those with a wrong CRC", s->name);
            continue;
        }
        snprintf(said, sizeof said, "%s does not recover from a wrong CRC: %s; packets lost: ", s->name, s->on_crc);
        if (rc != RNL_ERR_ABORTED || strstr(rnl_last_error()->text, said) != rnl_last_error()->text)
            fail_msg("%s: %d, %s", s->name, rc, rc < 0 ? rnl_last_error()->text : "it ended well");
        assert_non_null(strstr(rnl_last_error()->text, ", and so "));
        end++;
    }
    assert_true(recover > 0 && end > 0);
}

/* Half of the pages, or all that are not pinned, are taken back between two messages, and every message comes whole.
 * What stays pinned stays; where a card has translations, they are taken from it, and it misses them. */
static void every_system_bears_that_pages_are_taken_back_or_says_why_not(void **state)
{
    (void)state;
    static const enum myri_measure measures[] = {MYRI_ONE_WAY, MYRI_STREAM_RATE, MYRI_BOTH_RATE, MYRI_GOODPUT};
    int bear = 0, refuse = 0, miss = 0;
    for (int i = 0; myri_systems[i]; i++)
        for (size_t k = 0; k < 16; k++) {
            const struct myri_system *s = myri_systems[i];
            struct myri_outcome out, calm;
            uint32_t bytes = k & 2 ? s->most < 12288 ? s->most : 12288 : 60;
            enum myri_measure measure = myri_measure_usual(s, measures[k / 4]);
            struct myri_experiment x = experiment_at_home(s, measure, bytes);
            x.senders = measure == MYRI_GOODPUT ? 3 : 0;
            x.count = 30;
            x.seed = k + 1;
            int calm_rc = s->virtual ? myri_experiment_run(&x, &calm) : 0;
            x.page_out_per_2_32 = (uint64_t)((k & 1 ? 1 : 0.5) * 4294967296.0);
            int rc = myri_experiment_run(&x, &out);
            if (!s->virtual) {
                char said[100];
                snprintf(said, sizeof said, "--page-out has no effect on %s, whose programs have no address", s->name);
                if (rc != RNL_ERR_ARG || strstr(rnl_last_error()->text, said) != rnl_last_error()->text)
                    fail_msg("%s: %d, %s", s->name, rc, rc < 0 ? rnl_last_error()->text : "it ended well");
                refuse++;
                break;
            }
            if (calm_rc < 0 || rc < 0)
                fail_msg("%s, %s of %u bytes: %s", s->name, myri_measure_name(measure), bytes, rnl_last_error()->text);
            int may_drop = s->lossy && measure == MYRI_GOODPUT;
            if (out.wrong || (out.received != out.sent && !may_drop))
                fail_msg("%s, %s of %u bytes: %u of %u came, %u wrong", s->name, myri_measure_name(measure), bytes,
                         out.received, out.sent, out.wrong);
            assert_int_equal(calm.page_outs + calm.pages_stayed + calm.page_ins, 0);
            assert_true(out.page_outs >= x.count && out.page_ins >= x.count / 2 && out.page_ins <= out.page_outs);
            assert_true(out.pages_stayed > 0); /* such as who has come, of which a card writes records */
            bear++;
            if (!s->translates || measure != MYRI_ONE_WAY)
                continue;
            assert_true(out.value > calm.value + 5); /* a miss, and pinning it again */
            miss++;
        }
    assert_true(bear > 16 * 4 && refuse > 20 && miss > 8);
}

/* What a card has of a page that is taken back is taken from it, or its next transfer is a fault: also under loss. */
static void pages_are_taken_back_while_packets_are_sent_again(void **state)
{
    (void)state;
    int recover = 0;
    for (int i = 0; myri_systems[i]; i++)
        for (uint64_t seed = 1; myri_systems[i]->virtual && myri_systems[i]->recovers && seed <= 6; seed++) {
            struct myri_outcome out;
            const struct myri_system *s = myri_systems[i];
            struct myri_experiment x = experiment_at_home(s, MYRI_GOODPUT, s->most < 9000 ? s->most : 9000);
            x.senders = 4;
            x.count = 20;
            x.seed = seed;
            x.page_out_per_2_32 = 1ull << 31;
            x.lost_per_2_32 = x.bad_per_2_32 = 1u << 27;
            if (myri_experiment_run(&x, &out) < 0)
                fail_msg("%s, seed %u: %s", x.system->name, (unsigned)seed, rnl_last_error()->text);
            assert_int_equal(out.received, 80);
            assert_int_equal(out.wrong, 0);
            assert_true(out.page_outs > 80 && out.count.packets_lost > 0);
            recover++;
        }
    assert_true(recover >= 12);
}

/* Those that send nothing have their queues looked at, and nothing else; more than a card has room for are refused. */
static void processes_that_are_attached_cost_looks_and_disturb_nobody(void **state)
{
    (void)state;
    static const enum myri_measure measures[] = {MYRI_ONE_WAY, MYRI_STREAM_RATE, MYRI_BOTH_RATE};
    int n = 0;
    for (int i = 0; myri_systems[i]; i++)
        for (size_t k = 0; myri_systems[i]->processes_most > 1 && k < sizeof measures / sizeof measures[0]; k++) {
            const struct myri_system *s = myri_systems[i];
            struct myri_outcome alone, out;
            enum myri_measure measure = myri_measure_usual(s, measures[k]);
            struct myri_experiment x = experiment_at_home(s, measure, measure == MYRI_ONE_WAY ? 4 : 1000);
            x.count = 60;
            int rc = myri_experiment_run(&x, &alone);
            x.processes = s->processes_most;
            if (rc < 0 || myri_experiment_run(&x, &out) < 0)
                fail_msg("%s, %u processes: %s", s->name, x.processes, rnl_last_error()->text);
            assert_int_equal(out.received, alone.received);
            if (measure == MYRI_ONE_WAY && !(out.value > alone.value + 0.1 && out.value < 3 * alone.value))
                fail_msg("%s: %f us, and %f with %u processes", s->name, alone.value, out.value, x.processes);
            x.processes++;
            assert_int_equal(myri_experiment_run(&x, &out), RNL_ERR_ARG);
            n++;
        }
    assert_true(n >= 3 * 15);
}

static void short_messages_of_bip_wait_for_their_buffers_on_the_card(void **state)
{
    (void)state;
    for (uint32_t bytes = 4; bytes <= 512; bytes *= 2)
        for (int tuned = 0; tuned < 2; tuned++) {
            struct myri_outcome out;
            struct myri_experiment x = experiment(tuned ? "bip-tuned" : "bip", "H-PP", MYRI_STREAM_RATE, bytes);
            x.count = 300;
            if (myri_experiment_run(&x, &out) < 0)
                fail_msg("%u bytes: %s", bytes, rnl_last_error()->text);
            assert_int_equal(out.received, 300);
            assert_int_equal(out.wrong, 0);
        }
}

static void pages_of_every_size_carry_every_byte(void **state)
{
    (void)state;
    static const char *const paged[][2] = {{"vmmc", "H-P"},       {"bip", "H-PP"},         {"bip-tuned", "H-PP"},
                                           {"pm-cached", "H-PP"}, {"pm-uncached", "H-PP"}, {"simple", "H-PP"}};
    for (int s = 0; s < 6; s++)
        for (uint32_t page = 1024; page <= 16384; page *= 2) {
            struct myri_outcome out;
            struct myri_experiment x = experiment(paged[s][0], paged[s][1], MYRI_ONE_WAY, 20480);
            x.machine.v[MYRI_M_page] = page;
            x.count = 6;
            x.cold = 1;
            if (myri_experiment_run(&x, &out) < 0)
                fail_msg("%s, pages of %u: %s", paged[s][0], page, rnl_last_error()->text);
            assert_int_equal(out.received, 12);
            assert_int_equal(out.wrong, 0);
            if (s == 0 || s == 3) /* a chunk is a page, or what a buffer holds of one */
                assert_true(out.count.packets_sent >= 12 * (20480 / (s ? page < 8192 ? page : 8192 : page)));
        }
    struct myri_machine m = machine("H-P");
    assert_int_equal(myri_machine_set(&m, "page=3000"), RNL_ERR_ARG);
    assert_non_null(strstr(rnl_last_error()->text, "a power of two"));
    assert_int_equal(myri_machine_set(&m, "page=512"), RNL_ERR_ARG);
}

static void fewer_receive_buffers_hold_senders_back_and_lose_nothing(void **state)
{
    (void)state;
    static const char *const systems_with[] = {"fm1", "fm2", "pm"};
    for (int s = 0; s < 3; s++) {
        double rate[2];
        for (int many = 0; many < 2; many++) {
            struct myri_outcome out;
            struct myri_experiment x = experiment(systems_with[s], "H-PP", MYRI_STREAM_RATE, 8192);
            x.count = 20;
            x.buffers = s == 2 ? (many ? 8 : 1) : many ? 64 : 4;
            x.slow_us = s == 2 ? 60 : 0; /* PM's hosts give a buffer back at once, if they do nothing else */
            if (myri_experiment_run(&x, &out) < 0)
                fail_msg("%s, %u buffers: %s", systems_with[s], x.buffers, rnl_last_error()->text);
            assert_int_equal(out.received, 20);
            assert_int_equal(out.wrong, 0);
            rate[many] = out.value;
        }
        assert_true(rate[1] > 1.05 * rate[0]);
    }
    struct myri_outcome out;
    struct myri_experiment x = experiment("fm2", "H-PP", MYRI_GOODPUT, 128);
    x.senders = 4;
    x.buffers = 9;
    assert_int_equal(myri_experiment_run(&x, &out), RNL_ERR_ARG);
    assert_non_null(strstr(rnl_last_error()->text, "fm2 can have 10 to 256, with 5 nodes"));
}

static void frames_are_whole_where_their_paper_says_so(void **state)
{
    (void)state;
    struct myri_outcome out;
    struct myri_experiment x = experiment("fm1-polls", "H-A", MYRI_ONE_WAY, 16);
    x.count = 10;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_int_equal(out.count.bytes_sent, 20 * 136);
    x = experiment("fm1", "H-S", MYRI_ONE_WAY, 16);
    x.count = 10;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_int_equal(out.count.bytes_sent, 20 * 24);
    x = experiment("fm2", "H-P", MYRI_ONE_WAY, 16);
    x.count = 10;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_int_equal(out.count.bytes_sent, 20 * 136);
}

static void handlers_of_several_senders_wait_for_their_bytes_at_once(void **state)
{
    (void)state;
    static const char *const streams[] = {"fm2", "fm2-tuned", "mpi-fm2"};
    for (int s = 0; s < 3; s++)
        for (uint32_t bytes = 600; bytes <= 4096; bytes += 1748) {
            struct myri_outcome out;
            struct myri_experiment x = experiment(streams[s], "H-PP", MYRI_GOODPUT, bytes);
            x.senders = 4;
            x.count = 20;
            if (myri_experiment_run(&x, &out) < 0)
                fail_msg("%s, %u bytes: %s", streams[s], bytes, rnl_last_error()->text);
            assert_int_equal(out.received, 80);
            assert_int_equal(out.wrong, 0);
        }
}

static double asked(enum myri_measure what, enum myri_attention how, double slow)
{
    struct myri_outcome out;
    struct myri_experiment x = experiment("vmmc", "H-P", what, 4);
    x.count = 100;
    x.slow_us = slow;
    x.attention = how;
    if (myri_experiment_run(&x, &out) < 0)
        fail_msg("%s", rnl_last_error()->text);
    assert_int_equal(out.wrong, 0);
    return out.value;
}

static void who_computes_pays_for_polls_and_interrupts_and_not_for_another_processor(void **state)
{
    (void)state;
    double at_once = asked(MYRI_ANSWER, MYRI_BY_PROCESSOR, 20), interrupt = machine("H-P").v[MYRI_M_interrupt];
    double often = asked(MYRI_ANSWER, MYRI_BY_POLLS, 10), seldom = asked(MYRI_ANSWER, MYRI_BY_POLLS, 90);
    double interrupted = asked(MYRI_ANSWER, MYRI_BY_INTERRUPTS, 20);
    assert_true(seldom - often > 30 && seldom - often < 50); /* half of what lies between two looks, in the mean */
    assert_true(interrupted > at_once + interrupt && interrupted < at_once + interrupt + 3);
    assert_true(asked(MYRI_ANSWER_COST, MYRI_BY_PROCESSOR, 20) == 0);
    double cost = asked(MYRI_ANSWER_COST, MYRI_BY_INTERRUPTS, 20);
    assert_true(cost > interrupt + 0.5 && cost < interrupt + 3); /* the handler's work too */
    assert_true(asked(MYRI_ANSWER_COST, MYRI_BY_POLLS, 1) > asked(MYRI_ANSWER_COST, MYRI_BY_POLLS, 20));
    struct myri_outcome out;
    struct myri_experiment x = experiment("fm1", "H-P", MYRI_ANSWER, 4);
    x.slow_us = 20;
    x.attention = MYRI_BY_INTERRUPTS;
    assert_int_equal(myri_experiment_run(&x, &out), RNL_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_system_delivers_every_byte_at_every_size),
        cmocka_unit_test(every_system_recovers_from_a_wrong_crc_or_says_why_not),
        cmocka_unit_test(every_system_bears_that_pages_are_taken_back_or_says_why_not),
        cmocka_unit_test(pages_are_taken_back_while_packets_are_sent_again),
        cmocka_unit_test(processes_that_are_attached_cost_looks_and_disturb_nobody),
        cmocka_unit_test(short_messages_of_bip_wait_for_their_buffers_on_the_card),
        cmocka_unit_test(pages_of_every_size_carry_every_byte),
        cmocka_unit_test(fewer_receive_buffers_hold_senders_back_and_lose_nothing),
        cmocka_unit_test(frames_are_whole_where_their_paper_says_so),
        cmocka_unit_test(handlers_of_several_senders_wait_for_their_bytes_at_once),
        cmocka_unit_test(who_computes_pays_for_polls_and_interrupts_and_not_for_another_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
