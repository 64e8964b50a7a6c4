/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_hw.c - pieces of hardware against closed forms, conservation of bytes, overload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runnel/runnel.h"
#include "sim/paper/data.h"
#include "sim/paper/experiments/run.h"
#include "sim/paper/systems/probe/layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PAGE = 4096 };

static struct rnl_machine machine(const char *name)
{
    struct rnl_machine m;
    assert_int_equal(rnl_machine_builtin(name, &m), 0);
    return m;
}

static struct rnl_experiment experiment(const char *system, const char *on, enum rnl_measure what, uint32_t bytes)
{
    struct rnl_experiment x;
    struct rnl_machine m = machine(on);
    rnl_experiment_init(&x, rnl_system_find(system), &m, what, bytes);
    return x;
}

static struct rnl_hw *new_hw(const char *on, const char *firmware)
{
    struct rnl_machine m = machine(on);
    struct rnl_hw *hw;
    const struct rnl_data *d = rnl_data_find(firmware);
    assert_non_null(d);
    assert_int_equal(rnl_hw_new(&m, 2, 1, d->bytes, d->n, &hw), 0);
    return hw;
}

/* ---- closed forms ---- */

static void task_of_stores(struct rnl_task *t, void *arg)
{
    uint64_t *took = arg, from = rnl_hw_now(t->host->hw);
    uint32_t words[64] = {0}, at = rnl_card_symbol(t->host->hw, "card") + 1024, word;
    rnl_task_store_words(t, at, words, 64);
    took[0] = rnl_hw_now(t->host->hw) - from;
    from = rnl_hw_now(t->host->hw);
    rnl_task_combine(t, at, words, 64);
    took[1] = rnl_hw_now(t->host->hw) - from;
    from = rnl_hw_now(t->host->hw);
    rnl_task_load(t, at, &word);
    took[2] = rnl_hw_now(t->host->hw) - from;
    from = rnl_hw_now(t->host->hw);
    rnl_task_copy(t, 8192, 4096, 4000);
    took[3] = rnl_hw_now(t->host->hw) - from;
}

static void stores_loads_and_copies_cost_what_the_machine_says(void **state)
{
    (void)state;
    uint64_t took[4];
    struct rnl_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    rnl_hw_task(hw, 0, task_of_stores, took);
    assert_int_equal(rnl_hw_power(hw), 0);
    assert_int_equal(rnl_hw_run(hw), 0);
    assert_int_equal(took[0], 64 * 121000);
    assert_int_equal(took[1], 8 * ((uint64_t)(32 / 77.0 * 1e6 + 0.5)));
    assert_int_equal(took[2], 500000);
    assert_int_equal(took[3], (uint64_t)(4000 / 48.0 * 1e6 + 0.5));
    rnl_hw_free(hw);
}

enum { WORDS = 3, FIRST_WORD = 8192, APART = 400 };
struct among {
    uint32_t first, written, found;
    uint64_t until, took;
};

static void task_that_polls(struct rnl_task *t, void *arg)
{
    struct among *a = arg;
    uint32_t at[WORDS], old[WORDS] = {0};
    uint64_t from = rnl_hw_now(t->host->hw);
    for (uint32_t i = 0; i < WORDS; i++)
        at[i] = FIRST_WORD + (WORDS - i) * APART; /* no order of addresses is asked for */
    a->found = rnl_task_poll_among(t, at, old, WORDS, a->first, a->until);
    a->took = rnl_hw_now(t->host->hw) - from;
}

static void task_that_writes(struct rnl_task *t, void *arg)
{
    struct among *a = arg;
    uint32_t at = FIRST_WORD + (WORDS - a->written) * APART;
    rnl_task_spend(t, 5000000, "wait");
    rnl_host_written(t->host, at + APART / 2, 4); /* between two of them: nobody's */
    rnl_task_spend(t, 5000000, "wait");
    rnl_host_set_word(t->host, at, 1);
    rnl_host_written(t->host, at, 4);
}

static void a_word_among_several_is_found_in_turn(void **state)
{
    (void)state;
    for (uint32_t first = 0; first < WORDS; first++)
        for (uint32_t written = 0; written <= WORDS; written++) {
            struct among a = {.first = first, .written = written, .until = 20000000};
            struct rnl_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
            rnl_hw_task(hw, 0, task_that_polls, &a);
            rnl_hw_task(hw, 0, task_that_writes, &a);
            assert_int_equal(rnl_hw_power(hw), 0);
            assert_int_equal(rnl_hw_run(hw), 0);
            assert_int_equal(a.found, written);
            if (written == WORDS) /* another word than any of them */
                assert_int_equal(a.took, 20000000);
            else
                assert_int_equal(a.took, 10000000 + (written + WORDS - first) % WORDS * 5000 + 125000);
            rnl_hw_free(hw);
        }
}

struct dma {
    uint64_t from, to, n;
};

static void note_dma(void *arg, uint32_t node, enum rnl_hw_lane lane, uint64_t from, uint64_t to, const char *what,
                     uint64_t amount)
{
    struct dma *d = arg;
    (void)node;
    (void)what;
    if (lane == RNL_LANE_DMA && amount > 4)
        *d = (struct dma){from, to, amount};
}

static void a_dma_alone_on_the_bus_takes_its_bytes_at_the_bus_rate(void **state)
{
    (void)state;
    for (uint32_t bytes = 64; bytes <= 65536; bytes *= 4) {
        struct dma d = {0};
        struct rnl_outcome out;
        struct rnl_experiment x = experiment("probe", "H-P", RNL_LOCAL_RATE, bytes);
        x.count = 3;
        x.tracer = note_dma;
        x.tracer_arg = &d;
        assert_int_equal(rnl_experiment_run(&x, &out), 0);
        assert_int_equal(d.n, bytes);
        assert_int_equal(d.to - d.from, (uint64_t)(bytes * 1e6 / 129.4 + 0.5));
        assert_int_equal(out.count.dma_from_host, 3 * bytes);
        assert_int_equal(out.count.dma_to_host, 3 * 4);
    }
}

static void note_wire(void *arg, uint32_t node, enum rnl_hw_lane lane, uint64_t from, uint64_t to, const char *what,
                      uint64_t amount)
{
    struct dma *d = arg;
    (void)node;
    (void)what;
    if (lane == RNL_LANE_SEND)
        d[0] = (struct dma){from, to, amount};
    if (lane == RNL_LANE_RECEIVE)
        d[1] = (struct dma){from, to, amount};
}

static void a_packet_is_cut_through(void **state)
{
    (void)state;
    struct dma d[2];
    struct rnl_outcome out;
    struct rnl_experiment x = experiment("vmmc", "H-P", RNL_STREAM_RATE, 4096);
    x.count = 1;
    x.machine.v[RNL_M_sram_accesses] = 8; /* more than all engines take */
    x.tracer = note_wire;
    x.tracer_arg = d;
    assert_int_equal(rnl_experiment_run(&x, &out), 0);
    uint64_t start = 151515, receive = 121212,
             wire = (uint64_t)((4096 + 12 + 6) * 1e6 / 160 + 0.5); /* 5 and 4 cycles */
    assert_int_equal(d[0].n, 4108);
    assert_int_equal(d[0].to - d[0].from, start + wire);
    assert_int_equal(d[1].from - d[0].from, start + 300000);
    assert_int_equal(d[1].to - d[1].from, wire + receive);
}

struct overlap {
    struct dma send, fetch[2];
    int sends, fetches;
};

static void note_overlap(void *arg, uint32_t node, enum rnl_hw_lane lane, uint64_t from, uint64_t to, const char *what,
                         uint64_t amount)
{
    struct overlap *o = arg;
    if (node == 0 && lane == RNL_LANE_SEND && o->sends++ == 0)
        o->send = (struct dma){from, to, amount};
    if (node == 0 && lane == RNL_LANE_DMA && strcmp(what, "from host") == 0 && o->fetches < 2)
        o->fetch[o->fetches++] = (struct dma){from, to, amount};
}

/* While the second chunk crosses the bus into the SRAM, the first one leaves it with what that leaves of its rate. */
static void a_packet_leaves_more_slowly_while_a_transfer_takes_the_sram(void **state)
{
    (void)state;
    struct overlap o = {0};
    struct rnl_outcome out;
    struct rnl_experiment x = experiment("vmmc", "H-P", RNL_STREAM_RATE, 8192);
    x.count = 1;
    x.tracer = note_overlap;
    x.tracer_arg = &o;
    assert_int_equal(rnl_experiment_run(&x, &out), 0);
    double begin = (double)o.send.from + 151515 + 300000, end = (double)o.send.to; /* flows when its head is there */
    double from = (double)o.fetch[1].from, to = (double)o.fetch[1].to;
    double both = (to < end ? to : end) - (from > begin ? from : begin);
    double share = (2 - 129.4 / 132) / (160 / 132.0), whole = (4096 + 12 + 6) * 1e6 / 160;
    assert_true(both > 0.7 * whole && share < 0.9);
    double moved = end - begin - both + both * share;
    assert_true(fabs(moved - (whole - 300000 * share)) < 50000); /* its tail is a head's time under way */
}

/* ---- conservation, and the idle loop ---- */

static const char *const systems[][2] = {
    {"simple", "H-PP"},  {"fm1", "H-S"},          {"fm1-polls", "H-A"},       {"fm2", "H-FM2"},
    {"vmmc", "H-P"},     {"bip", "H-PP"},         {"bip-tuned", "H-PP"},      {"pm", "H-P"},
    {"pm-tuned", "H-P"}, {"pm-uncached", "H-PP"}, {"pm-tuned-cached", "H-PP"}};
enum { SYSTEMS = sizeof systems / sizeof systems[0] };

static void every_system_delivers_every_byte_at_every_size(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {4, 8, 60, 124, 128, 132, 248, 256, 1020, 1024, 1028, 4096, 4100, 12288};
    for (int s = 0; s < SYSTEMS; s++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            for (int stream = 0; stream < 2; stream++) {
                struct rnl_outcome out;
                struct rnl_experiment x =
                    experiment(systems[s][0], systems[s][1], stream ? RNL_STREAM_RATE : RNL_ONE_WAY, sizes[k]);
                if (stream && strcmp(systems[s][0], "vmmc") == 0)
                    continue; /* its receiver has one place for a message */
                x.count = 12;
                if (rnl_experiment_run(&x, &out) < 0)
                    fail_msg("%s, %u bytes: %s", systems[s][0], sizes[k], rnl_last_error()->text);
                assert_int_equal(out.received, out.sent);
                assert_int_equal(out.wrong, 0);
                assert_int_equal(out.count.packets_sent, out.count.packets_received);
                assert_int_equal(out.count.bytes_sent, out.count.bytes_received);
            }
}

/* One that was stopped is shorter than the signal to go on is long: it is there before its sender may go on. */
static void a_short_packet_that_was_stopped_is_there_before_its_sender_knows(void **state)
{
    (void)state;
    struct rnl_outcome out;
    struct rnl_experiment x = experiment("vmmc", "H-P", RNL_STREAM_RATE, 4);
    x.count = 100;
    assert_int_equal(rnl_experiment_run(&x, &out), 0);
    assert_int_equal(out.count.packets_sent, 100);
    assert_int_equal(out.count.packets_received, 100);
    assert_int_equal(out.count.dma_to_host, 400);
}

static void short_messages_of_bip_wait_for_their_buffers_on_the_card(void **state)
{
    (void)state;
    for (uint32_t bytes = 4; bytes <= 512; bytes *= 2)
        for (int tuned = 0; tuned < 2; tuned++) {
            struct rnl_outcome out;
            struct rnl_experiment x = experiment(tuned ? "bip-tuned" : "bip", "H-PP", RNL_STREAM_RATE, bytes);
            x.count = 300;
            if (rnl_experiment_run(&x, &out) < 0)
                fail_msg("%u bytes: %s", bytes, rnl_last_error()->text);
            assert_int_equal(out.received, 300);
            assert_int_equal(out.wrong, 0);
        }
}

static void a_ring_that_is_overrun_is_reported(void **state)
{
    (void)state;
    struct rnl_outcome out;
    struct rnl_experiment x = experiment("bip", "H-PP", RNL_STREAM_RATE, 1024);
    x.count = 300; /* copied from the ring more slowly than stored to the card, and BIP has no credits */
    assert_int_equal(rnl_experiment_run(&x, &out), RNL_ERR_ABORTED);
    assert_non_null(strstr(rnl_last_error()->text, "its ring is overrun"));
}

static void idle_turns_added_up_are_idle_turns_executed(void **state)
{
    (void)state;
    for (int s = 0; s < SYSTEMS; s++)
        for (uint32_t bytes = 4; bytes <= 16384; bytes *= 64) {
            struct rnl_outcome fast, slow;
            struct rnl_experiment x = experiment(systems[s][0], systems[s][1], RNL_ONE_WAY, bytes);
            x.count = 20;
            assert_int_equal(rnl_experiment_run(&x, &fast), 0);
            x.no_skip = 1;
            assert_int_equal(rnl_experiment_run(&x, &slow), 0);
            assert_true(fast.value == slow.value);
            assert_int_equal(fast.end_ps, slow.end_ps);
            assert_int_equal(slow.skipped, 0);
        }
}

static void pages_of_every_size_carry_every_byte(void **state)
{
    (void)state;
    static const char *const paged[][2] = {{"vmmc", "H-P"},       {"bip", "H-PP"},         {"bip-tuned", "H-PP"},
                                           {"pm-cached", "H-PP"}, {"pm-uncached", "H-PP"}, {"simple", "H-PP"}};
    for (int s = 0; s < 6; s++)
        for (uint32_t page = 1024; page <= 16384; page *= 2) {
            struct rnl_outcome out;
            struct rnl_experiment x = experiment(paged[s][0], paged[s][1], RNL_ONE_WAY, 20480);
            x.machine.v[RNL_M_page] = page;
            x.count = 6;
            x.cold = 1;
            if (rnl_experiment_run(&x, &out) < 0)
                fail_msg("%s, pages of %u: %s", paged[s][0], page, rnl_last_error()->text);
            assert_int_equal(out.received, 12);
            assert_int_equal(out.wrong, 0);
            if (s == 0 || s == 3) /* a chunk is a page, or what a buffer holds of one */
                assert_true(out.count.packets_sent >= 12 * (20480 / (s ? page < 8192 ? page : 8192 : page)));
        }
    struct rnl_machine m = machine("H-P");
    assert_int_equal(rnl_machine_set(&m, "page=3000"), RNL_ERR_ARG);
    assert_non_null(strstr(rnl_last_error()->text, "a power of two"));
    assert_int_equal(rnl_machine_set(&m, "page=512"), RNL_ERR_ARG);
}

static void fewer_receive_buffers_hold_senders_back_and_lose_nothing(void **state)
{
    (void)state;
    static const char *const systems_with[] = {"fm1", "fm2", "pm"};
    for (int s = 0; s < 3; s++) {
        double rate[2];
        for (int many = 0; many < 2; many++) {
            struct rnl_outcome out;
            struct rnl_experiment x = experiment(systems_with[s], "H-PP", RNL_STREAM_RATE, 8192);
            x.count = 20;
            x.buffers = s == 2 ? (many ? 8 : 1) : many ? 64 : 4;
            x.slow_us = s == 2 ? 60 : 0; /* PM's hosts give a buffer back at once, if they do nothing else */
            if (rnl_experiment_run(&x, &out) < 0)
                fail_msg("%s, %u buffers: %s", systems_with[s], x.buffers, rnl_last_error()->text);
            assert_int_equal(out.received, 20);
            assert_int_equal(out.wrong, 0);
            rate[many] = out.value;
        }
        assert_true(rate[1] > 1.05 * rate[0]);
    }
    struct rnl_outcome out;
    struct rnl_experiment x = experiment("fm2", "H-PP", RNL_GOODPUT, 128);
    x.senders = 4;
    x.buffers = 9;
    assert_int_equal(rnl_experiment_run(&x, &out), RNL_ERR_ARG);
    assert_non_null(strstr(rnl_last_error()->text, "fm2 can have 10 to 256, with 5 nodes"));
}

static void frames_are_whole_where_their_paper_says_so(void **state)
{
    (void)state;
    struct rnl_outcome out;
    struct rnl_experiment x = experiment("fm1-polls", "H-A", RNL_ONE_WAY, 16);
    x.count = 10;
    assert_int_equal(rnl_experiment_run(&x, &out), 0);
    assert_int_equal(out.count.bytes_sent, 20 * 136);
    x = experiment("fm1", "H-S", RNL_ONE_WAY, 16);
    x.count = 10;
    assert_int_equal(rnl_experiment_run(&x, &out), 0);
    assert_int_equal(out.count.bytes_sent, 20 * 24);
    x = experiment("fm2", "H-P", RNL_ONE_WAY, 16);
    x.count = 10;
    assert_int_equal(rnl_experiment_run(&x, &out), 0);
    assert_int_equal(out.count.bytes_sent, 20 * 136);
}

static void handlers_of_several_senders_wait_for_their_bytes_at_once(void **state)
{
    (void)state;
    static const char *const streams[] = {"fm2", "mpi-fm2"};
    for (int s = 0; s < 2; s++)
        for (uint32_t bytes = 600; bytes <= 4096; bytes += 1748) {
            struct rnl_outcome out;
            struct rnl_experiment x = experiment(streams[s], "H-PP", RNL_GOODPUT, bytes);
            x.senders = 4;
            x.count = 20;
            if (rnl_experiment_run(&x, &out) < 0)
                fail_msg("%s, %u bytes: %s", streams[s], bytes, rnl_last_error()->text);
            assert_int_equal(out.received, 80);
            assert_int_equal(out.wrong, 0);
        }
}

static double asked(enum rnl_measure what, enum rnl_attention how, double slow)
{
    struct rnl_outcome out;
    struct rnl_experiment x = experiment("vmmc", "H-P", what, 4);
    x.count = 100;
    x.slow_us = slow;
    x.attention = how;
    if (rnl_experiment_run(&x, &out) < 0)
        fail_msg("%s", rnl_last_error()->text);
    assert_int_equal(out.wrong, 0);
    return out.value;
}

static void who_computes_pays_for_polls_and_interrupts_and_not_for_another_processor(void **state)
{
    (void)state;
    double at_once = asked(RNL_ANSWER, RNL_BY_PROCESSOR, 20), interrupt = machine("H-P").v[RNL_M_interrupt];
    double often = asked(RNL_ANSWER, RNL_BY_POLLS, 10), seldom = asked(RNL_ANSWER, RNL_BY_POLLS, 90);
    double interrupted = asked(RNL_ANSWER, RNL_BY_INTERRUPTS, 20);
    assert_true(seldom - often > 30 && seldom - often < 50); /* half of what lies between two looks, in the mean */
    assert_true(interrupted > at_once + interrupt && interrupted < at_once + interrupt + 3);
    assert_true(asked(RNL_ANSWER_COST, RNL_BY_PROCESSOR, 20) == 0);
    double cost = asked(RNL_ANSWER_COST, RNL_BY_INTERRUPTS, 20);
    assert_true(cost > interrupt + 0.5 && cost < interrupt + 3); /* the handler's work too */
    assert_true(asked(RNL_ANSWER_COST, RNL_BY_POLLS, 1) > asked(RNL_ANSWER_COST, RNL_BY_POLLS, 20));
    struct rnl_outcome out;
    struct rnl_experiment x = experiment("fm1", "H-P", RNL_ANSWER, 4);
    x.slow_us = 20;
    x.attention = RNL_BY_INTERRUPTS;
    assert_int_equal(rnl_experiment_run(&x, &out), RNL_ERR_ARG);
}

/* ---- overload, errors ---- */

static void slow_receivers_lose_nothing_where_a_protocol_says_so(void **state)
{
    (void)state;
    static const char *const kept[] = {"fm1", "fm1-polls", "fm2", "pm", "pm-tuned"};
    for (size_t s = 0; s < sizeof kept / sizeof kept[0]; s++) {
        struct rnl_outcome out;
        struct rnl_experiment x = experiment(kept[s], "H-PP", RNL_GOODPUT, 128);
        x.senders = 4;
        x.count = 60;
        x.slow_us = 40;
        if (rnl_experiment_run(&x, &out) < 0)
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
        struct rnl_outcome out;
        struct rnl_experiment x = experiment("vmmc", "H-P", RNL_GOODPUT, runs[i].bytes);
        x.senders = 4;
        x.count = 40;
        x.slow_us = runs[i].slow;
        if (rnl_experiment_run(&x, &out) < 0)
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
    static const char *const over_them[] = {"fm1", "fm2", "pm", "simple", "vmmc"};
    double calm[5], over[5];
    for (int s = 0; s < 5; s++)
        for (int slow = 0; slow < 2; slow++) {
            struct rnl_outcome out;
            struct rnl_experiment x = experiment(over_them[s], "H-PP", RNL_WIRE_COST, 64);
            x.senders = 3;
            x.count = 60;
            x.slow_us = slow ? 40 : 0;
            if (rnl_experiment_run(&x, &out) < 0)
                fail_msg("%s: %s", over_them[s], rnl_last_error()->text);
            assert_true(fabs(out.value * 64 * out.received - (double)out.count.bytes_sent) < 1);
            *(slow ? &over[s] : &calm[s]) = out.value;
        }
    assert_true(over[0] < 1.05 * calm[0] && over[1] < 1.05 * calm[1]); /* credits: who has none waits */
    for (int s = 2; s < 5; s++)                                        /* refused, dropped, written over */
        assert_true(over[s] > 1.5 * calm[s]);
}

static void bip_says_that_its_ring_is_overrun(void **state)
{
    (void)state;
    struct rnl_outcome out;
    struct rnl_experiment x = experiment("bip", "H-PP", RNL_GOODPUT, 128);
    x.senders = 4;
    x.count = 60;
    x.slow_us = 40;
    assert_int_equal(rnl_experiment_run(&x, &out), RNL_ERR_ABORTED);
    assert_non_null(strstr(rnl_last_error()->text, "its ring is overrun"));
}

static void the_simple_protocol_drops_under_overload_and_nothing_else(void **state)
{
    (void)state;
    struct rnl_outcome out;
    struct rnl_experiment x = experiment("simple", "H-PP", RNL_GOODPUT, 128);
    x.senders = 4;
    x.count = 60;
    x.slow_us = 40;
    assert_int_equal(rnl_experiment_run(&x, &out), 0);
    assert_true(out.received < out.sent && out.received > 16);
    assert_int_equal(out.wrong, 0);
    assert_int_equal(out.count.packets_sent, out.count.packets_received);
}

static void packets_with_a_wrong_crc_never_reach_a_program(void **state)
{
    (void)state;
    struct rnl_outcome out;
    struct rnl_experiment x = experiment("simple", "H-PP", RNL_STREAM_RATE, 128);
    x.count = 400;
    x.bad_per_2_32 = (uint64_t)1 << 27; /* 1 in 32 */
    assert_int_equal(rnl_experiment_run(&x, &out), 0);
    assert_true(out.count.packets_bad > 0);
    assert_int_equal(out.received, out.sent - out.count.packets_bad);
    assert_int_equal(out.wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_loads_and_copies_cost_what_the_machine_says),
        cmocka_unit_test(a_word_among_several_is_found_in_turn),
        cmocka_unit_test(a_dma_alone_on_the_bus_takes_its_bytes_at_the_bus_rate),
        cmocka_unit_test(a_packet_is_cut_through),
        cmocka_unit_test(a_packet_leaves_more_slowly_while_a_transfer_takes_the_sram),
        cmocka_unit_test(every_system_delivers_every_byte_at_every_size),
        cmocka_unit_test(a_short_packet_that_was_stopped_is_there_before_its_sender_knows),
        cmocka_unit_test(short_messages_of_bip_wait_for_their_buffers_on_the_card),
        cmocka_unit_test(a_ring_that_is_overrun_is_reported),
        cmocka_unit_test(idle_turns_added_up_are_idle_turns_executed),
        cmocka_unit_test(pages_of_every_size_carry_every_byte),
        cmocka_unit_test(fewer_receive_buffers_hold_senders_back_and_lose_nothing),
        cmocka_unit_test(frames_are_whole_where_their_paper_says_so),
        cmocka_unit_test(handlers_of_several_senders_wait_for_their_bytes_at_once),
        cmocka_unit_test(who_computes_pays_for_polls_and_interrupts_and_not_for_another_processor),
        cmocka_unit_test(slow_receivers_lose_nothing_where_a_protocol_says_so),
        cmocka_unit_test(vmmc_loses_nothing_on_its_way_and_overwrites_what_is_not_looked_at),
        cmocka_unit_test(what_overload_costs_on_the_wire_is_counted),
        cmocka_unit_test(bip_says_that_its_ring_is_overrun),
        cmocka_unit_test(the_simple_protocol_drops_under_overload_and_nothing_else),
        cmocka_unit_test(packets_with_a_wrong_crc_never_reach_a_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
