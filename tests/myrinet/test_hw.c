/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_hw.c - pieces of hardware against closed forms, timer, interrupts and the network's faults among them, and the
 * idle loop: added up it is what is executed. */
#include "tests/myrinet/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- closed forms ---- */

static void task_of_stores(struct myri_task *t, void *arg)
{
    uint64_t *took = arg, from = myri_hw_now(t->host->hw);
    uint32_t words[64] = {0}, at = myri_card_symbol(t->host->hw, "card") + 1024, word;
    myri_task_store_words(t, at, words, 64);
    took[0] = myri_hw_now(t->host->hw) - from;
    from = myri_hw_now(t->host->hw);
    myri_task_combine(t, at, words, 64);
    took[1] = myri_hw_now(t->host->hw) - from;
    from = myri_hw_now(t->host->hw);
    myri_task_load(t, at, &word);
    took[2] = myri_hw_now(t->host->hw) - from;
    from = myri_hw_now(t->host->hw);
    myri_task_copy(t, 8192, 4096, 4000);
    took[3] = myri_hw_now(t->host->hw) - from;
}

static void stores_loads_and_copies_cost_what_the_machine_says(void **state)
{
    (void)state;
    uint64_t took[4];
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    myri_hw_task(hw, 0, task_of_stores, took);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(took[0], 64 * 121000);
    assert_int_equal(took[1], 8 * ((uint64_t)(32 / 77.0 * 1e6 + 0.5)));
    assert_int_equal(took[2], 500000);
    assert_int_equal(took[3], (uint64_t)(4000 / 48.0 * 1e6 + 0.5));
    myri_hw_free(hw);
}

static void task_of_calls(struct myri_task *t, void *arg)
{
    uint64_t *took = arg, from = myri_hw_now(t->host->hw);
    for (uint32_t frames = 7; frames <= 9; frames++, from = myri_hw_now(t->host->hw)) {
        myri_task_nest(t, frames);
        *took++ = myri_hw_now(t->host->hw) - from;
    }
    for (uint32_t words = 0; words <= 10; words += 5, from = myri_hw_now(t->host->hw)) {
        myri_task_copy_loop(t, words);
        *took++ = myri_hw_now(t->host->hw) - from;
    }
    t->host->hw->t.store = 40000; /* a bus that is faster than the loop */
    myri_task_copy_loop(t, 10);
    *took = myri_hw_now(t->host->hw) - from;
}

static void frames_beyond_the_windows_trap_both_ways_and_a_copy_loop_hides_behind_its_stores(void **state)
{
    (void)state;
    const uint64_t on_a_sparc[7] = {0, 2 * 5600000, 4 * 5600000, 0, 100000, 100000, 100000 + 9 * (100000 - 40000)},
                   on_a_pentium[7] = {0, 0, 0, 0, 8500, 8500, 8500};
    for (int k = 0; k < 2; k++) {
        uint64_t took[7];
        struct myri_hw *hw = new_hw(k ? "H-P" : "H-A", "systems/fm1/firmware.hex");
        myri_hw_task(hw, 0, task_of_calls, took);
        assert_int_equal(myri_hw_power(hw), 0);
        assert_int_equal(myri_hw_run(hw), 0);
        for (int i = 0; i < 7; i++)
            assert_int_equal(took[i], k ? on_a_pentium[i] : on_a_sparc[i]);
        myri_hw_free(hw);
    }
}

static double value_of(const struct myri_experiment *x)
{
    struct myri_outcome o;
    assert_int_equal(myri_experiment_run(x, &o), 0);
    return o.value;
}

/* What a transfer takes beside its bytes is the same at each size: a start, a set-up, a turn of the program, and a
 * tenth of the word that tells the host; no store of the host's stands between two. */
static void a_cards_own_transfers_take_a_set_up_and_no_host(void **state)
{
    (void)state;
    for (uint32_t bytes = 1024; bytes <= 16384; bytes *= 4) {
        double beside[2], by_host;
        for (int i = 0; i < 2; i++) {
            struct myri_outcome out;
            struct myri_experiment x = experiment("probe-card", "H-P", MYRI_LOCAL_RATE, bytes);
            x.count = 100;
            if (i)
                assert_int_equal(myri_machine_set(&x.machine, "dma_setup=0"), 0);
            assert_int_equal(myri_experiment_run(&x, &out), 0);
            assert_int_equal(out.count.stores, 3);
            beside[i] = bytes / out.value - bytes / 129.4;
        }
        assert_true(fabs(beside[0] - 3.0) < 0.3);
        assert_true(fabs(beside[0] - beside[1] - 1.1 * 1.75) < 0.3); /* the phase of its looks is not the same */
        struct myri_experiment x = experiment("probe", "H-P", MYRI_LOCAL_RATE, bytes);
        by_host = bytes / value_of(&x) - bytes / 129.4;
        assert_true(by_host > beside[0] + 1.9); /* the word's whole transfer, and the host's stores and looks */
    }
}

static void the_two_directions_share_the_set_ups_that_a_host_sees(void **state)
{
    (void)state;
    double alike, split;
    struct myri_experiment x = experiment("probe", "H-P", MYRI_LOCAL_RATE, 4096);
    alike = value_of(&x);
    assert_int_equal(myri_machine_set(&x.machine, "dma_to_host=0.25"), 0);
    split = value_of(&x);
    assert_true(fabs(split / alike - 1) < 0.01); /* one of each: the phase of the card's look is all that differs */
    x = experiment("vmmc", "H-P", MYRI_ONE_WAY, 4);
    alike = value_of(&x);
    assert_int_equal(myri_machine_set(&x.machine, "dma_to_host=0.25"), 0);
    split = value_of(&x);
    assert_true(fabs(alike - split - 0.875) < 0.1); /* a short message: nothing but one transfer to the host */
}

static void firmware_that_does_not_fit_into_the_card_is_refused(void **state)
{
    (void)state;
    struct myri_hw *hw;
    struct myri_machine m = machine("H-A");
    const struct myri_data *d = myri_data_find("systems/vmmc/firmware.hex");
    assert_int_equal(myri_hw_new(&m, 2, 1, d->bytes, d->n, &hw), RNL_ERR_ARG); /* 186 of 128 KB */
    struct myri_experiment x = experiment("vmmc", "H-P", MYRI_ONE_WAY, 4);
    double before = value_of(&x); /* 256 KB */
    assert_int_equal(myri_machine_set(&x.machine, "sram=191"), 0);
    assert_true(value_of(&x) == before);
    assert_int_equal(myri_machine_set(&x.machine, "sram=190"), 0);
    struct myri_outcome o;
    assert_int_equal(myri_experiment_run(&x, &o), RNL_ERR_ARG);
}

enum { WORDS = 3, FIRST_WORD = 8192, APART = 400 };
struct among {
    uint32_t first, written, found;
    uint64_t until, took;
};

static void task_that_polls(struct myri_task *t, void *arg)
{
    struct among *a = arg;
    uint32_t at[WORDS], old[WORDS] = {0};
    uint64_t from = myri_hw_now(t->host->hw);
    for (uint32_t i = 0; i < WORDS; i++)
        at[i] = FIRST_WORD + (WORDS - i) * APART; /* no order of addresses is asked for */
    a->found = myri_task_poll_among(t, at, old, WORDS, a->first, a->until);
    a->took = myri_hw_now(t->host->hw) - from;
}

static void task_that_writes(struct myri_task *t, void *arg)
{
    struct among *a = arg;
    uint32_t at = FIRST_WORD + (WORDS - a->written) * APART;
    myri_task_spend(t, 5000000, "wait");
    myri_host_written(t->host, at + APART / 2, 4); /* between two of them: nobody's */
    myri_task_spend(t, 5000000, "wait");
    myri_host_set_word(t->host, at, 1);
    myri_host_written(t->host, at, 4);
}

static void a_word_among_several_is_found_in_turn(void **state)
{
    (void)state;
    for (uint32_t first = 0; first < WORDS; first++)
        for (uint32_t written = 0; written <= WORDS; written++) {
            struct among a = {.first = first, .written = written, .until = 20000000};
            struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
            myri_hw_task(hw, 0, task_that_polls, &a);
            myri_hw_task(hw, 0, task_that_writes, &a);
            assert_int_equal(myri_hw_power(hw), 0);
            assert_int_equal(myri_hw_run(hw), 0);
            assert_int_equal(a.found, written);
            if (written == WORDS) /* another word than any of them */
                assert_int_equal(a.took, 20000000);
            else
                assert_int_equal(a.took, 10000000 + (written + WORDS - first) % WORDS * 5000 + 125000);
            myri_hw_free(hw);
        }
}

struct dma {
    uint64_t from, to, n;
};

static void note_dma(void *arg, uint32_t node, enum myri_hw_lane lane, uint64_t from, uint64_t to, const char *what,
                     uint64_t amount)
{
    struct dma *d = arg;
    (void)node;
    (void)what;
    if (lane == MYRI_LANE_DMA && amount > 4)
        *d = (struct dma){from, to, amount};
}

static void a_dma_alone_on_the_bus_takes_its_bytes_at_the_bus_rate(void **state)
{
    (void)state;
    for (uint32_t bytes = 64; bytes <= 65536; bytes *= 4) {
        struct dma d = {0};
        struct myri_outcome out;
        struct myri_experiment x = experiment("probe", "H-P", MYRI_LOCAL_RATE, bytes);
        x.count = 3;
        x.tracer = note_dma;
        x.tracer_arg = &d;
        assert_int_equal(myri_experiment_run(&x, &out), 0);
        assert_int_equal(d.n, bytes);
        assert_int_equal(d.to - d.from, (uint64_t)(bytes * 1e6 / 129.4 + 0.5));
        assert_int_equal(out.count.dma_from_host, 3 * bytes);
        assert_int_equal(out.count.dma_to_host, 3 * 4);
    }
}

static void note_wire(void *arg, uint32_t node, enum myri_hw_lane lane, uint64_t from, uint64_t to, const char *what,
                      uint64_t amount)
{
    struct dma *d = arg;
    (void)node;
    (void)what;
    if (lane == MYRI_LANE_SEND)
        d[0] = (struct dma){from, to, amount};
    if (lane == MYRI_LANE_RECEIVE)
        d[1] = (struct dma){from, to, amount};
}

static void a_packet_is_cut_through(void **state)
{
    (void)state;
    struct dma d[2];
    struct myri_outcome out;
    struct myri_experiment x = experiment("vmmc", "H-P", MYRI_STREAM_RATE, 4096);
    x.count = 1;
    x.machine.v[MYRI_M_sram_accesses] = 8; /* more than all engines take */
    x.tracer = note_wire;
    x.tracer_arg = d;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
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

static void note_overlap(void *arg, uint32_t node, enum myri_hw_lane lane, uint64_t from, uint64_t to, const char *what,
                         uint64_t amount)
{
    struct overlap *o = arg;
    if (node == 0 && lane == MYRI_LANE_SEND && o->sends++ == 0)
        o->send = (struct dma){from, to, amount};
    if (node == 0 && lane == MYRI_LANE_DMA && strcmp(what, "from host") == 0 && o->fetches < 2)
        o->fetch[o->fetches++] = (struct dma){from, to, amount};
}

/* While the second chunk crosses the bus into the SRAM, the first one leaves it with what that leaves of its rate. */
static void a_packet_leaves_more_slowly_while_a_transfer_takes_the_sram(void **state)
{
    (void)state;
    struct overlap o = {0};
    struct myri_outcome out;
    struct myri_experiment x = experiment("vmmc", "H-P", MYRI_STREAM_RATE, 8192);
    x.count = 1;
    x.tracer = note_overlap;
    x.tracer_arg = &o;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    double begin = (double)o.send.from + 151515 + 300000, end = (double)o.send.to; /* flows when its head is there */
    double from = (double)o.fetch[1].from, to = (double)o.fetch[1].to;
    double both = (to < end ? to : end) - (from > begin ? from : begin);
    double share = (2 - 129.4 / 132) / (160 / 132.0), whole = (4096 + 12 + 6) * 1e6 / 160;
    assert_true(both > 0.7 * whole && share < 0.9);
    double moved = end - begin - both + both * share;
    assert_true(fabs(moved - (whole - 300000 * share)) < 50000); /* its tail is a head's time under way */
}

/* ---- the network, and the idle loop ---- */

/* One that was stopped is shorter than the signal to go on is long: it is there before its sender may go on. */
static void a_short_packet_that_was_stopped_is_there_before_its_sender_knows(void **state)
{
    (void)state;
    struct myri_outcome out;
    struct myri_experiment x = experiment("vmmc", "H-P", MYRI_STREAM_RATE, 4);
    x.count = 100;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_int_equal(out.count.packets_sent, 100);
    assert_int_equal(out.count.packets_received, 100);
    assert_int_equal(out.count.dma_to_host, 400);
}

static void idle_turns_added_up_are_idle_turns_executed(void **state)
{
    (void)state;
    for (int i = 0; myri_systems[i]; i++)
        for (uint32_t bytes = 4; myri_systems[i]->receive && bytes <= 16384; bytes *= 64) {
            const struct myri_system *s = myri_systems[i];
            struct myri_outcome fast, slow;
            struct myri_experiment x = experiment_at_home(s, MYRI_ONE_WAY, bytes < s->most ? bytes : s->most);
            x.count = 20;
            x.jitter_us = 4; /* who waits longer repeats the same turns */
            assert_int_equal(myri_experiment_run(&x, &fast), 0);
            x.no_skip = 1;
            assert_int_equal(myri_experiment_run(&x, &slow), 0);
            assert_true(fast.value == slow.value);
            assert_int_equal(fast.end_ps, slow.end_ps);
            assert_int_equal(slow.skipped, 0);
            assert_int_equal(fast.worked, slow.worked);
        }
}

/* Both cards have idle turns of one length, and would fall into step: then each packet waits for the same part of one,
 * and a card with more to look at could be faster. */
static void each_queue_that_is_scanned_costs_its_part_of_a_turn(void **state)
{
    (void)state;
    double last = 0;
    for (uint32_t processes = 1; processes <= 4; processes++) {
        struct myri_outcome out;
        struct myri_experiment x = experiment("vmmc", "H-P", MYRI_ONE_WAY, 4);
        x.processes = processes;
        x.count = 400;
        assert_int_equal(myri_experiment_run(&x, &out), 0);
        if (processes > 1 && !(out.value > last + 0.3 && out.value < last + 0.7))
            fail_msg("%u processes: %.3f us after %.3f", processes, out.value, last);
        last = out.value;
    }
}

static void no_transfer_is_faster_than_the_sram(void **state)
{
    (void)state;
    double rate[3];
    for (int k = 0; k < 3; k++) {
        struct myri_outcome out;
        struct myri_experiment x = experiment("probe", "H-P", MYRI_LOCAL_RATE, 65536);
        x.count = 3;
        x.machine.v[MYRI_M_dma_rate] = 132 << k;
        assert_int_equal(myri_experiment_run(&x, &out), 0);
        rate[k] = out.value;
    }
    assert_true(rate[1] > 1.9 * rate[0]); /* 264 MB/s are two accesses in a cycle of 33 MHz */
    assert_true(rate[2] == rate[1]);
}

/* ---- what traces show of firmware ---- */

struct parts {
    uint64_t to[2], busy[2];
    int broken, receives, headers, starts, looks;
};

static void note_parts(void *arg, uint32_t node, enum myri_hw_lane lane, uint64_t from, uint64_t to, const char *what,
                       uint64_t amount)
{
    struct parts *p = arg;
    (void)amount;
    if (lane != MYRI_LANE_FIRMWARE)
        return;
    p->broken += from != p->to[node];
    p->to[node] = to;
    p->busy[node] += strcmp(what, "waits") ? to - from : 0;
    p->receives += node == 1 && strcmp(what, "receive") == 0;
    p->headers += node == 0 && strcmp(what, "header") == 0;
    p->looks += node == 1 && strcmp(what, "look_for_request") == 0;
    p->starts += strcmp(what, "start host DMA") == 0;
}

static void a_trace_shows_all_of_a_programs_time_by_function(void **state)
{
    (void)state;
    struct parts p = {0};
    struct myri_outcome plain, out;
    struct myri_experiment x = experiment("vmmc", "H-P", MYRI_STREAM_RATE, 4);
    x.count = 2;
    x.begin_ps = 100000000;
    assert_int_equal(myri_experiment_run(&x, &plain), 0);
    x.tracer = note_parts;
    x.tracer_arg = &p;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_int_equal(out.end_ps, plain.end_ps); /* who looks changes nothing */
    assert_int_equal(out.instructions, plain.instructions);
    assert_int_equal(p.broken, 0);
    for (int node = 0; node < 2; node++) {
        assert_true(p.to[node] >= out.end_ps);
        assert_true(p.busy[node] > 2000000 && p.busy[node] < 10000000);
    }
    assert_int_equal(p.looks, 0); /* nobody asks node 1 for anything: that is waiting */
    assert_true(p.receives > 0 && p.headers > 0 && p.starts > 0);
}

/* FM 1.1 as Bal et al. ran it takes more than FM 1.1 does: a call and a look before a message, and 15 operations and a
 * look before each further frame, within half a look. */
static void a_send_of_fm_looks_for_messages_before_each_frame(void **state)
{
    (void)state;
    const struct myri_machine m = machine("H-A");
    const double operation = m.v[MYRI_M_host_operation] / 1000, look = m.v[MYRI_M_poll] / 1000;
    double before = 0;
    for (uint32_t frames = 1; frames <= 3; frames++) {
        struct myri_outcome polls, does_not;
        struct myri_experiment x = experiment("fm1-polls", "H-A", MYRI_SEND_COST, 100 * frames);
        assert_int_equal(myri_experiment_run(&x, &polls), 0);
        x = experiment("fm1", "H-A", MYRI_SEND_COST, 100 * frames);
        assert_int_equal(myri_experiment_run(&x, &does_not), 0);
        double more = polls.value - does_not.value - before, is = (frames == 1 ? 35 : 15) * operation + look;
        before += more;
        if (!(more > is - look / 2 && more < is + look / 2))
            fail_msg("frame %u: %.3f us more, not %.3f", frames, more, is);
    }
}

/* ---- timer, interrupts ---- */

struct looked {
    uint32_t early, late, stopped, again;
};

static void task_of_timer(struct myri_task *t, void *arg)
{
    struct looked *l = arg;
    struct myri_card *c = &t->host->hw->card[t->host->id];
    write_register(c, TMR, 20); /* 10 us behind the instruction that stores it */
    myri_task_spend(t, 9999999, "wait");
    l->early = c->status & TIMER;
    myri_task_spend(t, 1000000, "wait");
    l->late = c->status & TIMER;
    write_register(c, TMR, 20);
    l->again = c->status & TIMER;
    write_register(c, TMR, 0);
    myri_task_spend(t, 20000000, "wait");
    l->stopped = c->status & TIMER;
}

static void the_timer_runs_down_once_and_can_be_stopped(void **state)
{
    (void)state;
    struct looked l = {0};
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    myri_hw_task(hw, 0, task_of_timer, &l);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(l.early, 0);
    assert_int_equal(l.late, TIMER);
    assert_int_equal(l.again, 0);
    assert_int_equal(l.stopped, 0);
    myri_hw_free(hw);
}

static void task_of_interrupts(struct myri_task *t, void *arg)
{
    uint64_t *took = arg, from;
    struct myri_card *c = &t->host->hw->card[t->host->id];
    myri_task_enable(t, 2);
    write_register(c, HIRQ, 1);
    myri_task_spend(t, 50000000, "wait");
    took[0] = t->host->interrupts; /* held back */
    write_register(c, HIRQ, 2);
    myri_task_spend(t, 50000000, "wait");
    took[1] = t->host->interrupts;
    myri_task_enable(t, 3);
    from = myri_hw_now(t->host->hw);
    took[2] = myri_task_await_interrupt(t, took[1]);
    took[3] = myri_hw_now(t->host->hw) - from;
    from = myri_hw_now(t->host->hw);
    myri_task_spend(t, 1000000, "compute"); /* who is interrupted pays */
    took[4] = myri_hw_now(t->host->hw) - from;
}

static void interrupts_wait_for_their_bit_and_cost_what_the_machine_says(void **state)
{
    (void)state;
    uint64_t took[5] = {0};
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    struct myri_task *t = myri_hw_task(hw, 0, task_of_interrupts, took);
    t->serves = 1; /* of those so far nothing is taken from it */
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(took[0], 0);
    assert_int_equal(took[1], 1);
    assert_int_equal(took[2], 2);
    assert_int_equal(took[3], 10000000);
    assert_int_equal(took[4], 1000000);
    myri_hw_free(hw);
}

/* ---- packets ---- */

static void packets_that_are_lost_or_overtaken_are_counted(void **state)
{
    (void)state;
    struct myri_outcome out;
    struct myri_experiment x = experiment("simple", "H-PP", MYRI_STREAM_RATE, 64);
    x.count = 400;
    x.lost_per_2_32 = (uint64_t)1 << 28; /* one in 16 */
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_true(out.count.packets_lost > 10 && out.count.packets_lost < 50);
    assert_int_equal(out.received + out.count.packets_lost, 400);
    assert_int_equal(out.wrong, 0);
    x.lost_per_2_32 = 0;
    x.late_per_2_32 = (uint64_t)1 << 28;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_int_equal(out.received, 400);
    assert_int_equal(out.count.packets_sent, out.count.packets_received);
}

/* A machine costs only the pages that it uses, also when one of the same size was there before. */
static void a_machine_after_another_takes_few_pages(void **state)
{
    (void)state;
    enum { NODES = 32, PAGE = 4096, ALL = NODES * (MYRI_HW_MEMORY / PAGE) };
    struct rusage before, after;
    struct myri_machine m = machine("H-PP");
    const struct myri_data *d = myri_data_find("systems/probe/firmware.hex");
    void *behind[4]; /* memory that is taken while a machine is there, and keeps what it gives back in the process */
    for (int i = 0; i < 4; i++) {
        struct myri_hw *hw;
        getrusage(RUSAGE_SELF, &before);
        assert_int_equal(myri_hw_new(&m, NODES, 1, d->bytes, d->n, &hw), 0);
        for (int k = 0; k < NODES; k++) {
            assert_int_equal(myri_host_word(&hw->host[k], 8 * PAGE), 0);
            myri_host_set_word(&hw->host[k], 8 * PAGE, ~0u);
        }
        assert_non_null(behind[i] = malloc(1 << 20));
        myri_hw_free(hw);
        getrusage(RUSAGE_SELF, &after);
        if (after.ru_minflt - before.ru_minflt > ALL / 4)
            fail_msg("%ld page faults for %d hosts", after.ru_minflt - before.ru_minflt, (int)NODES);
    }
    for (int i = 0; i < 4; i++)
        free(behind[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_loads_and_copies_cost_what_the_machine_says),
        cmocka_unit_test(frames_beyond_the_windows_trap_both_ways_and_a_copy_loop_hides_behind_its_stores),
        cmocka_unit_test(a_cards_own_transfers_take_a_set_up_and_no_host),
        cmocka_unit_test(the_two_directions_share_the_set_ups_that_a_host_sees),
        cmocka_unit_test(a_send_of_fm_looks_for_messages_before_each_frame),
        cmocka_unit_test(firmware_that_does_not_fit_into_the_card_is_refused),
        cmocka_unit_test(a_word_among_several_is_found_in_turn),
        cmocka_unit_test(a_dma_alone_on_the_bus_takes_its_bytes_at_the_bus_rate),
        cmocka_unit_test(a_packet_is_cut_through),
        cmocka_unit_test(a_packet_leaves_more_slowly_while_a_transfer_takes_the_sram),
        cmocka_unit_test(a_short_packet_that_was_stopped_is_there_before_its_sender_knows),
        cmocka_unit_test(idle_turns_added_up_are_idle_turns_executed),
        cmocka_unit_test(each_queue_that_is_scanned_costs_its_part_of_a_turn),
        cmocka_unit_test(no_transfer_is_faster_than_the_sram),
        cmocka_unit_test(a_trace_shows_all_of_a_programs_time_by_function),
        cmocka_unit_test(the_timer_runs_down_once_and_can_be_stopped),
        cmocka_unit_test(interrupts_wait_for_their_bit_and_cost_what_the_machine_says),
        cmocka_unit_test(packets_that_are_lost_or_overtaken_are_counted),
        cmocka_unit_test(a_machine_after_another_takes_few_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
