/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_trapeze.c - Trapeze's library, and what is lost with it; its cards read marks, so idle turns, and processors
 * that run ahead of each other, are put to the test here. */
#include "tests/myrinet/sides.h"

#include "sim/myrinet/systems/trapeze/host.h"

static const char *const both[] = {"trapeze", "trapeze-store"};

/* ---- messages of a control part and a payload ---- */

enum { MESSAGES = 24, SPARE = 8 };
static uint32_t control_of(uint32_t k)
{
    return 4 * (k * 7 % 33);
}

static uint32_t payload_of(uint32_t k)
{
    static const uint32_t some[] = {0, 4, 8192, 252, 256, 260, 4096, 8188, 1024};
    return some[k % 9];
}

static uint32_t word_of(uint32_t k, uint32_t i)
{
    return 0x1000193u * (k + 1) ^ i * 0x9e3779b9u;
}

struct kept {
    struct sides s;
    uint32_t frame[MESSAGES], spare[SPARE], got, checked, from_1;
};

static void sends_and_takes(struct myri_task *task, void *arg)
{
    struct kept *k = arg;
    struct myri_side *side = side_of(&k->s, task);
    struct tpz *t = side->state;
    if (side->node > 0) { /* two of them send to node 0 */
        for (uint32_t n = 0; n < MESSAGES / 2; n++) {
            uint32_t of = side->node == 1 ? n : MESSAGES / 2 + n, place = side->out + n % 4 * TPZ_FRAME;
            if (n >= 4)
                tpz_await_fetched(t, n - 3); /* what lay there is on the card */
            struct tpz_sendmsg *m = tpz_get_sendmsg_spinwait(t);
            for (uint32_t i = 0; i < control_of(of) / 4; i++)
                tpz_mtod(m)[i] = word_of(of, i);
            for (uint32_t i = 0; i < payload_of(of) / 4; i++)
                myri_host_set_word(side->host, place + 4 * i, word_of(of, 1000 + i));
            tpz_attach_sendmsg(t, m, place);
            tpz_set_payload_len(m, payload_of(of));
            (void)tpz_release_sendmsg(t, m, 0, control_of(of));
            myri_task_spend(task, 60000000, "pause");
        }
        return;
    }
    uint32_t next[3] = {0, 0, MESSAGES / 2}, kept[MESSAGES] = {0}, of_kept[MESSAGES] = {0}, n = 0;
    while (k->got < MESSAGES) {
        struct tpz_rcvmsg m;
        if (!tpz_get_rcvmsg(t, &m, myri_hw_now(k->s.hw) + 1000000000))
            break;
        assert_in_range(m.from, 1, 2);
        uint32_t of = next[m.from]++;
        assert_int_equal(m.control_bytes, control_of(of));
        assert_int_equal(m.bytes, payload_of(of));
        for (uint32_t i = 0; i < m.control_bytes / 4; i++)
            assert_int_equal(myri_host_word(side->host, m.control + 4 * i), word_of(of, i));
        if (m.bytes && n < SPARE) { /* the frame is kept, another one attached */
            of_kept[n] = of;
            kept[n] = tpz_detach_rcvmsg(t, &m);
            assert_int_equal(kept[n], m.frame);
            tpz_attach_rcvmsg(t, &m, k->spare[n++]);
        } else {
            for (uint32_t i = 0; i < m.bytes / 4; i++)
                assert_int_equal(myri_host_word(side->host, m.frame + 4 * i), word_of(of, 1000 + i));
        }
        tpz_release_rcvmsg(t, &m);
        k->got++;
        k->from_1 += m.from == 1;
    }
    for (uint32_t j = 0; j < n; j++) /* nothing has come into them since */
        for (uint32_t i = 0; i < payload_of(of_kept[j]) / 4; i++)
            assert_int_equal(myri_host_word(side->host, kept[j] + 4 * i), word_of(of_kept[j], 1000 + i));
    k->checked = n;
}

static void control_parts_and_payloads_arrive_whole_and_frames_are_kept(void **state)
{
    (void)state;
    for (int v = 0; v < 2; v++) {
        struct kept k = {0};
        make_sides(&k.s, both[v], "H-PP", 3, 4 * TPZ_FRAME, 7);
        for (uint32_t i = 0; i < SPARE; i++)
            k.spare[i] = myri_host_take(k.s.side[0].host, TPZ_FRAME, 1);
        open_sides(&k.s);
        k.s.arg = &k;
        start_sides(&k.s, sends_and_takes);
        if (myri_hw_run(k.s.hw) != 0)
            fail_msg("%s: %s", both[v], rnl_last_error()->text);
        assert_int_equal(k.got, MESSAGES);
        assert_int_equal(k.from_1, MESSAGES / 2);
        assert_int_equal(k.checked, SPARE);
        free_sides(&k.s);
    }
}

static void changes_a_frame_too_early(struct myri_task *task, void *arg)
{
    struct sides *s = arg;
    struct myri_side *side = side_of(s, task);
    if (side->node == 1)
        return;
    side->system->post(side, 1, TPZ_FRAME);
    myri_task_spend(task, 20000000, "compute");
    myri_host_set_word(side->host, side->out + 8000, 1);
    myri_task_spend(task, 200000000, "wait");
}

static void a_frame_that_is_written_before_it_is_on_the_card_is_reported(void **state)
{
    (void)state;
    struct sides s;
    make_sides(&s, "trapeze", "H-PP", 2, TPZ_FRAME, 1);
    open_sides(&s);
    start_sides(&s, changes_a_frame_too_early);
    assert_int_equal(myri_hw_run(s.hw), RNL_ERR_ABORTED);
    assert_non_null(strstr(rnl_last_error()->text, "changed in its buffer while it crossed the I/O bus"));
    free_sides(&s);
}

/* ---- cut-through ---- */

static double value_of(struct myri_experiment x)
{
    struct myri_outcome o;
    if (myri_experiment_run(&x, &o) < 0)
        fail_msg("%s, %u bytes: %s", x.system->name, x.bytes, rnl_last_error()->text);
    assert_int_equal(o.wrong, 0);
    return o.value;
}

/* What is cut through has its stages at the same time: of a long message no more than one of them, on the slower bus,
 * and what engines and programs take for parts of it; what is stored has the sum. */
static void a_long_message_is_in_all_its_stages_at_once(void **state)
{
    (void)state;
    struct myri_experiment x = experiment("trapeze", "H-PP", MYRI_ONE_WAY, 8192);
    double bus = 8192 / x.machine.v[MYRI_M_dma_rate], wire = 8192 / x.machine.v[MYRI_M_link_rate];
    double setup = x.machine.v[MYRI_M_dma_setup];
    double cut = value_of(x), stored = value_of(experiment("trapeze-store", "H-PP", MYRI_ONE_WAY, 8192));
    assert_true(stored > 2 * bus + wire + 3 * setup);
    assert_true(cut > bus + 3 * setup && cut < 2 * bus);
}

/* ---- what is lost, and nothing else ---- */

static void what_the_network_loses_or_spoils_is_lost_and_nothing_else(void **state)
{
    (void)state;
    for (int v = 0; v < 2; v++)
        for (uint32_t bytes = 64; bytes <= 8192; bytes = bytes == 64 ? 1024 : bytes * 8)
            for (int how = 0; how < 3; how++) {
                struct myri_outcome out;
                struct myri_experiment x = experiment(both[v], "H-PP", MYRI_STREAM_RATE, bytes);
                x.count = 300;
                *(how == 0 ? &x.bad_per_2_32 : how == 1 ? &x.lost_per_2_32 : &x.late_per_2_32) = (uint64_t)1 << 27;
                if (myri_experiment_run(&x, &out) < 0)
                    fail_msg("%s, %u bytes: %s", both[v], bytes, rnl_last_error()->text);
                assert_int_equal(out.wrong, 0);
                assert_true(how != 0 || out.count.packets_bad > 0);
                assert_true(how != 1 || out.count.packets_lost > 0);
                assert_int_equal(out.count.packets_sent, out.count.packets_received + out.count.packets_lost);
                if (how < 2)
                    assert_int_equal(out.received, out.sent - out.count.packets_bad - out.count.packets_lost);
            }
}

static void a_slow_receiver_makes_the_card_drop_and_nothing_else(void **state)
{
    (void)state;
    for (int v = 0; v < 2; v++)
        for (uint32_t bytes = 128; bytes <= 8192; bytes *= 8)
            for (int slow = 0; slow < 2; slow++) {
                struct myri_outcome out;
                struct myri_experiment x = experiment(both[v], "H-PP", MYRI_GOODPUT, bytes);
                x.senders = 4;
                x.count = 60;
                x.slow_us = slow ? 40 + bytes / 20.0 : 0;
                if (myri_experiment_run(&x, &out) < 0)
                    fail_msg("%s, %u bytes: %s", both[v], bytes, rnl_last_error()->text);
                assert_int_equal(out.wrong, 0);
                assert_int_equal(out.count.packets_sent, 240);
                assert_int_equal(out.count.packets_received, 240);
                assert_true(slow ? out.received < 240 && out.received > TPZ_RING : out.received == 240);
            }
}

static void from_two_to_all_nodes_send_to_one(void **state)
{
    (void)state;
    for (int v = 0; v < 2; v++)
        for (uint32_t senders = 1; senders <= 31; senders = senders < 16 ? 2 * senders + 1 : senders + 1) {
            struct myri_outcome out;
            struct myri_experiment x = experiment(both[v], "H-PP", MYRI_GOODPUT, 2048);
            x.senders = senders;
            x.count = 6;
            if (myri_experiment_run(&x, &out) < 0)
                fail_msg("%s, %u senders: %s", both[v], senders, rnl_last_error()->text);
            assert_int_equal(out.received, 6 * senders);
            assert_int_equal(out.wrong, 0);
        }
}

static void an_arrival_interrupts_who_asks_for_it(void **state)
{
    (void)state;
    for (int v = 0; v < 2; v++) {
        struct myri_outcome out;
        struct myri_experiment x = experiment(both[v], "H-PP", MYRI_ANSWER, 128);
        x.count = 50;
        x.slow_us = 20;
        x.attention = MYRI_BY_INTERRUPTS;
        assert_int_equal(myri_experiment_run(&x, &out), 0);
        assert_int_equal(out.wrong, 0);
        assert_int_equal(out.count.interrupts, 50);
        x.attention = MYRI_BY_POLLS;
        assert_int_equal(myri_experiment_run(&x, &out), 0);
        assert_int_equal(out.count.interrupts, 0);
    }
}

/* ---- the same to the bit ---- */

static void turns_that_read_marks_are_added_up_only_where_the_mark_stands(void **state)
{
    (void)state;
    static const enum myri_measure what[] = {MYRI_ONE_WAY, MYRI_STREAM_RATE, MYRI_BOTH_RATE, MYRI_GOODPUT};
    static const char *const changes[][6] = {
        {NULL},
        {"dma_setup=0"},
        {"sram_accesses=1.3"},
        {"link_rate=1"}, /* packets crawl: a mark that moves stands for several turns */
        {"dma_setup=0", "sram_accesses=1.3", "head_latency=2"},
        /* a transfer that the other card starts slows a packet down sooner than a head takes */
        {"dma_setup=0", "sram_accesses=1.3", "head_latency=5", "dma_rate=264", "link_rate=400", "ni_time=0.5"}};
    uint64_t skipped = 0;
    for (int m = 0; m < 4; m++)
        for (size_t c = 0; c < sizeof changes / sizeof changes[0]; c++)
            for (uint32_t bytes = 4; bytes <= 8192; bytes = bytes == 4 ? 300 : bytes == 300 ? 2048 : bytes * 4) {
                struct myri_outcome fast, slow;
                struct myri_experiment x = experiment("trapeze", "H-PP", what[m], bytes);
                x.count = 10;
                x.jitter_us = 4;
                x.senders = what[m] == MYRI_GOODPUT ? 3 : 0;
                for (int k = 0; k < 6 && changes[c][k]; k++)
                    assert_int_equal(myri_machine_set(&x.machine, changes[c][k]), 0);
                if (myri_experiment_run(&x, &fast) < 0)
                    fail_msg("%s, %u bytes, %zu: %s", myri_measure_name(what[m]), bytes, c, rnl_last_error()->text);
                x.no_skip = 1;
                assert_int_equal(myri_experiment_run(&x, &slow), 0);
                if (fast.value != slow.value || fast.end_ps != slow.end_ps || fast.worked != slow.worked)
                    fail_msg("%s, %u bytes, %zu: %.6f is %.6f when all turns are executed, and in step",
                             myri_measure_name(what[m]), bytes, c, fast.value, slow.value);
                skipped += fast.skipped;
                assert_int_equal(slow.skipped, 0);
            }
    assert_true(skipped > 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_parts_and_payloads_arrive_whole_and_frames_are_kept),
        cmocka_unit_test(a_frame_that_is_written_before_it_is_on_the_card_is_reported),
        cmocka_unit_test(a_long_message_is_in_all_its_stages_at_once),
        cmocka_unit_test(what_the_network_loses_or_spoils_is_lost_and_nothing_else),
        cmocka_unit_test(a_slow_receiver_makes_the_card_drop_and_nothing_else),
        cmocka_unit_test(from_two_to_all_nodes_send_to_one),
        cmocka_unit_test(an_arrival_interrupts_who_asks_for_it),
        cmocka_unit_test(turns_that_read_marks_are_added_up_only_where_the_mark_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
