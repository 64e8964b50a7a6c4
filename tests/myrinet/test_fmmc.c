/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_fmmc.c - FM/MC: multicasts of all nodes at once are handed over in one order everywhere, between single
 * messages, however few credits there are; objects are kept; interrupts come where they are wanted. */
#include "sim/myrinet/systems/fmmc/host.h"
#include "tests/myrinet/sides.h"

enum { EACH = 6, LARGEST = 12000, SINGLES = 5, ALL_MOST = MYRI_HW_NODES * EACH };

struct seen {
    struct fmmc fm[MYRI_HW_NODES];
    uint32_t order[MYRI_HW_NODES][ALL_MOST], many[MYRI_HW_NODES], singles[MYRI_HW_NODES], wrong;
    uint32_t slow_us;
    struct fmmc_message *kept[MYRI_HW_NODES];
};

static uint32_t bytes_of(uint32_t node, uint32_t k)
{
    static const uint32_t sizes[] = {4, 248, 252, 5000, 12000, 16};
    return sizes[(node + k) % 6];
}

static void check_bytes(struct fmmc *f, struct fmmc_message *m, uint32_t word)
{
    struct seen *s = f->owner;
    for (uint32_t i = 0; i < m->bytes; i += 4)
        s->wrong += myri_host_word(f->side->host, m->at + i) != word;
}

static void on_multicast(struct fmmc *f, struct fmmc_message *m)
{
    struct seen *s = f->owner;
    uint32_t me = f->side->node, word = myri_host_word(f->side->host, m->at);
    s->wrong += word >> 16 != m->from || m->bytes != bytes_of(m->from, word & 0xffff);
    check_bytes(f, m, word);
    s->order[me][s->many[me]++] = word;
    if (s->kept[me]) /* one is kept until the next one is here */
        fmmc_free_buf(f, s->kept[me]);
    s->kept[me] = m;
    if (s->slow_us && me == f->side->nodes - 1)
        myri_task_spend(f->side->task, s->slow_us * (uint64_t)1000000, "compute");
}

static void on_single(struct fmmc *f, struct fmmc_message *m)
{
    struct seen *s = f->owner;
    check_bytes(f, m, 0x5000000u | m->from);
    s->singles[f->side->node]++;
    fmmc_free_buf(f, m);
}

static void fill(struct myri_side *s, uint32_t word, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += 4)
        myri_host_set_word(s->host, s->out + i, word);
}

static void everybody(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct seen *seen = all->arg;
    struct fmmc *f = &seen->fm[s->node];
    myri_task_spend(t, s->node * (uint64_t)3000000, "stagger");
    for (uint32_t k = 0; k < EACH; k++) {
        uint32_t n = bytes_of(s->node, k);
        fill(s, s->node << 16 | k, n);
        fmmc_broadcast(f, fmmc_next_seqno_and_credits(f, n), 1, s->out, n);
        if (k < SINGLES && s->nodes > 1) {
            fill(s, 0x5000000u | s->node, 500);
            fmmc_send_buf(f, (s->node + 1) % s->nodes, 2, s->out, 500);
        }
    }
    while ((seen->many[s->node] < EACH * s->nodes || seen->singles[s->node] < SINGLES) && !s->hw->fault[0]) {
        myri_task_operate(t, 35, "extract");
        (void)fmmc_extract(f);
    }
}

static void all_at_once(uint32_t nodes, uint32_t slow_us, uint64_t seed)
{
    static struct sides all;
    static struct seen seen;
    memset(&seen, 0, sizeof seen);
    seen.slow_us = slow_us;
    make_sides(&all, "fmmc", "H-A", nodes, LARGEST, seed);
    all.arg = &seen;
    for (uint32_t i = 0; i < nodes; i++) {
        seen.fm[i].owner = &seen;
        seen.fm[i].handler[1] = on_multicast;
        seen.fm[i].handler[2] = on_single;
        assert_int_equal(fmmc_initialize(&seen.fm[i], &all.side[i], FMMC_FRAGMENT), 0);
    }
    start_sides(&all, everybody);
    if (myri_hw_run(all.hw) < 0)
        fail_msg("%u nodes: %s", nodes, rnl_last_error()->text);
    if (seen.wrong)
        fail_msg("%u nodes: %u words are wrong", nodes, seen.wrong);
    for (uint32_t i = 0; i < nodes; i++) {
        assert_int_equal(seen.many[i], EACH * nodes);
        assert_int_equal(seen.singles[i], SINGLES);
        assert_memory_equal(seen.order[i], seen.order[0], EACH * nodes * sizeof seen.order[0][0]);
        assert_int_equal(
            myri_card_peek(&all.hw->card[i], seen.fm[i].card + (uint32_t)offsetof(struct fmmc_card, errors)), 0);
    }
    free_sides(&all);
}

static void multicasts_of_all_come_in_one_order_between_single_messages(void **state)
{
    (void)state;
    for (uint32_t nodes = 2; nodes <= 32; nodes = nodes < 5 ? nodes + 1 : 2 * nodes - 2)
        all_at_once(nodes, 0, nodes);
    all_at_once(32, 0, 99);
}

static void a_slow_receiver_holds_all_up_and_nothing_is_lost(void **state)
{
    (void)state;
    all_at_once(5, 3000, 1);
}

static double to_all(uint32_t receivers, enum myri_bringer who, enum myri_attention how)
{
    struct myri_outcome out;
    struct myri_experiment x = experiment("fmmc", "H-A", MYRI_TO_ALL, 16);
    x.count = 20;
    x.receivers = receivers;
    x.bringer = who;
    x.attention = how;
    if (myri_experiment_run(&x, &out) < 0)
        fail_msg("%s", rnl_last_error()->text);
    assert_int_equal(out.received, 20 * receivers);
    assert_int_equal(out.wrong, 0);
    return out.value;
}

static void a_tree_of_cards_needs_no_host_between(void **state)
{
    (void)state;
    /* of repeats the time is linear in receivers, of a tree it is not; hosts that are interrupted to pass on pay for it
     * at each level, cards do not */
    double repeats = to_all(31, MYRI_BY_REPEATS, MYRI_BY_POLLS) - to_all(15, MYRI_BY_REPEATS, MYRI_BY_POLLS);
    double tree = to_all(31, MYRI_BY_SYSTEM, MYRI_BY_POLLS) - to_all(15, MYRI_BY_SYSTEM, MYRI_BY_POLLS);
    assert_true(repeats > 4 * tree);
    double cards = to_all(7, MYRI_BY_SYSTEM, MYRI_BY_INTERRUPTS) - to_all(7, MYRI_BY_SYSTEM, MYRI_BY_POLLS);
    double hosts = to_all(7, MYRI_BY_HOSTS, MYRI_BY_INTERRUPTS) - to_all(7, MYRI_BY_HOSTS, MYRI_BY_POLLS);
    assert_true(hosts > 1.5 * cards && cards > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multicasts_of_all_come_in_one_order_between_single_messages),
        cmocka_unit_test(a_slow_receiver_holds_all_up_and_nothing_is_lost),
        cmocka_unit_test(a_tree_of_cards_needs_no_host_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
